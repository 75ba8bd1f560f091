/* The C text of normalisations (norm.h). */
#include <inttypes.h>

#include "ops/channel_cuda.h"
#include "ops/lanes.h"
#include "ops/norm_cuda.h"

/* Rows longer than this are summed in double precision. Sums over rows: so many of them at first.
 */
enum { LONG_ROW = 4096, PART_ROWS = 128 };

/* Σ (x − mean)² */
static const char squares_wide[] =
	"/* The sum of (x - mean)^2, in a fixed tree of 16 lanes of doubles. */\n"
	"static double @name(const @0 *x, real mean, int64_t n)\n{\n" LANES_BODY(
		"double", SQUARE_TERM) "}\n";

/* With h = dy·scale, or dy: Σ h, and Σ h (x − mean). */
#define NORM_SUM(type, args, term)                                                                 \
	"/* Over n numbers, in a fixed tree of 16 lanes. */\n"                                     \
	"static " type " @name(const @0 *dy, " args "int64_t n)\n{\n" LANES_BODY(type, term) "}\n"
#define SCALED_TERM(i) "@value0(dy[" i "]) * scale[" i "]"
#define SLOPE_TERM(i) "@value0(dy[" i "]) * (@value1(x[" i "]) - mean)"
#define SCALED_SLOPE_TERM(i) "@value0(dy[" i "]) * scale[" i "] * (@value1(x[" i "]) - mean)"
#define SLOPE_ARGS "const @1 *x, real mean, "
#define SCALED_ARGS "const real *scale, "
static const char scaled_wide[] = NORM_SUM("double", SCALED_ARGS, SCALED_TERM);
static const char slope_lanes[] = NORM_SUM("real", SLOPE_ARGS, SLOPE_TERM);
static const char slope_wide[] = NORM_SUM("double", SLOPE_ARGS, SLOPE_TERM);
static const char scaled_slope_lanes[] = NORM_SUM(
	"real", SCALED_ARGS SLOPE_ARGS, SCALED_SLOPE_TERM);
static const char scaled_slope_wide[] = NORM_SUM(
	"double", SCALED_ARGS SLOPE_ARGS, SCALED_SLOPE_TERM);

static int64_t width_of(const struct norm *p)
{
	return p->channels * p->inner;
}

static bool is_long(const struct norm *p)
{
	return width_of(p) > LONG_ROW;
}

/* No loop over channels is needed. */
static bool is_flat(const struct norm *p, bool affine)
{
	return p->inner == 1 || !affine;
}

/* x[i], about the mean where there is one. */
static const char *difference(struct emit *e, const struct norm *p, const struct tensor *x)
{
	const char *value = emit_value(e, x, "x[i]");
	return p->centred ? emit_text(e, "(%s - mean)", value) : value;
}

/* The function that sums a row of t. */
static const char *sum_function(struct emit *e, const struct norm *p, const struct tensor *t)
{
	return !dtype_is_narrow(t->dtype) && !is_long(p) ? "sum_lanes" : wide_sum(e, t);
}

static void open_rows(struct emit *e, const struct norm *p, int work)
{
	emit_loops(
		e, (double)(p->rows * width_of(p)) * work, 1, &(struct emit_loop){"r", p->rows, 1});
	emit(e, " {\n");
}

/* A pointer to the row's part of a scale or bias. */
static void row_values(struct emit *e, const struct norm *p, const char *name, const char *from)
{
	if (p->groups == 1)
		emit(e, "\t\tconst real *%s = %s;\n", name, from);
	else
		emit(e, "\t\tconst real *%s = %s + r %% %" PRId64 " * %" PRId64 ";\n", name, from,
			p->groups, p->channels);
}

/* --- Forward --- */

static void emit_statistics(struct emit *e, const struct norm *p, const struct tensor *x)
{
	int64_t w = width_of(p);
	const char *squares = emit_helper_on(e, is_long(p) ? "squares_wide" : "squares_lanes",
		is_long(p) ? squares_wide : squares_lanes, 1, &x);
	if (p->centred)
		emit(e, "\t\tconst real mean = (real)(%s(x, %" PRId64 ") / %" PRId64 ");\n",
			sum_function(e, p, x), w, w);
	emit(e, "\t\tconst real invstd = (real)(1 / sqrt((double)%s(x, %s, %" PRId64, squares,
		p->centred ? "mean" : "0", w);
	emit(e, ") / %" PRId64 " + %.17g));\n", w, p->epsilon);
	if (p->centred)
		emit(e, "\t\ty1[r] = mean;\n\t\ty2[r] = invstd;\n");
	else
		emit(e, "\t\ty1[r] = invstd;\n");
}

static void emit_channels(struct emit *e, const struct node *n, const struct norm *p)
{
	bool scale = norm_has(n, NORM_SCALE), bias = norm_has(n, NORM_BIAS);
	emit(e, "\t\tfor (int64_t c = 0; c < %" PRId64 "; c++) {\n", p->channels);
	emit(e, "\t\t\tconst real factor = invstd%s%s;\n", scale ? " * scale[c]" : "",
		bias ? ", shift = bias[c]" : "");
	emit(e, "\t\t\tfor (int64_t i = c * %" PRId64 "; i < (c + 1) * %" PRId64 "; i++)\n",
		p->inner, p->inner);
	const char *y = emit_text(
		e, "%s * factor%s", difference(e, p, n->in[NORM_X]), bias ? " + shift" : "");
	emit(e, "\t\t\t\ty[i] = %s;\n\t\t}\n", emit_stored(e, n->out[0], y));
}

static void emit_flat(struct emit *e, const struct node *n, const struct norm *p)
{
	const char *y = emit_text(e, "%s * invstd%s%s", difference(e, p, n->in[NORM_X]),
		norm_has(n, NORM_SCALE) ? " * scale[i]" : "",
		norm_has(n, NORM_BIAS) ? " + bias[i]" : "");
	emit(e, "\t\tfor (int64_t i = 0; i < %" PRId64 "; i++)\n\t\t\ty[i] = %s;\n", width_of(p),
		emit_stored(e, n->out[0], y));
}

/* No elements: the statistics, if there are any, are zeros. */
static enum status emit_empty(struct emit *e, const struct node *n, const struct norm *p)
{
	emit(e, "\t(void)y0; /* no elements */\n");
	for (int k = 1; k < n->nout; k++)
		emit(e, "\tfor (int64_t r = 0; r < %" PRId64 "; r++)\n\t\ty%d[r] = 0;\n", p->rows,
			k);
	return ST_OK;
}

enum status norm_emit(struct emit *e, const struct node *n)
{
	const struct norm *p = n->param;
	bool scale = norm_has(n, NORM_SCALE), bias = norm_has(n, NORM_BIAS);
	int64_t w = width_of(p);
	if (n->out[0]->numel == 0)
		return emit_empty(e, n, p);
	if (norm_cuda_fits(e, n))
		return norm_cuda_emit(e, n);
	open_rows(e, p, 4);
	emit(e, "\t\tconst %s *x = x0 + r * %" PRId64 ";\n", emit_type(n->in[NORM_X]), w);
	emit(e, "\t\t%s *y = y0 + r * %" PRId64 ";\n", emit_type(n->out[0]), w);
	if (scale)
		row_values(e, p, "scale", "x1");
	if (bias)
		row_values(e, p, "bias", "x2");
	emit_statistics(e, p, n->in[NORM_X]);
	if (!is_flat(p, scale || bias))
		emit_channels(e, n, p);
	else
		emit_flat(e, n, p);
	emit(e, "\t}\n");
	return ST_OK;
}

/* --- The gradient of x. With h = dy·scale: dx = invstd (h − mean(h) − x̂ mean(h x̂)); without a mean
 * the term mean(h) is missing. --- */

/* Σ h and Σ h (x − mean) over a row without channels, in 16 lanes. */
static void emit_flat_sums(
	struct emit *e, const struct norm *p, const struct tensor *const *dy_x, bool scale)
{
	const int64_t w = width_of(p);
	const bool wide = is_long(p);
	const char *slopes = emit_helper_on(e,
		scale ? (wide ? "scaled_slope_wide" : "scaled_slope_lanes")
		      : (wide ? "slope_wide" : "slope_lanes"),
		scale ? (wide ? scaled_slope_wide : scaled_slope_lanes)
		      : (wide ? slope_wide : slope_lanes),
		2, dy_x);
	const char *sums = "dot_lanes";
	if (p->centred && !scale)
		sums = sum_function(e, p, dy_x[0]);
	else if (p->centred && (wide || dtype_is_narrow(dy_x[0]->dtype)))
		sums = emit_helper_on(e, "scaled_wide", scaled_wide, 1, dy_x);
	if (p->centred)
		emit(e, "\t\tconst real level = (real)(%s(dy%s, %" PRId64 ") / %" PRId64 ");\n",
			sums, scale ? ", scale" : "", w, w);
	emit(e, "\t\tconst real slope = (real)(%s(dy%s, x, %s, %" PRId64, slopes,
		scale ? ", scale" : "", p->centred ? "mean" : "0", w);
	emit(e, ") * invstd * invstd / %" PRId64 ");\n", w);
}

static void emit_channel_sums(
	struct emit *e, const struct norm *p, const struct tensor *const *dy_x)
{
	int64_t w = width_of(p);
	const char *centred = emit_helper_on(e, "centred_lanes", centred_lanes, 2, dy_x);
	emit(e, "\t\tdouble sum = 0, dot = 0;\n");
	emit(e, "\t\tfor (int64_t c = 0; c < %" PRId64 "; c++) {\n", p->channels);
	emit(e, "\t\t\tconst int64_t at = c * %" PRId64 ";\n", p->inner);
	emit(e, "\t\t\tsum += (double)scale[c] * %s(dy + at, %" PRId64 ");\n", wide_sum(e, dy_x[0]),
		p->inner);
	emit(e,
		"\t\t\tdot += (double)scale[c] * %s(dy + at, x + at, (double)mean, "
		"%" PRId64 ");\n\t\t}\n",
		centred, p->inner);
	emit(e, "\t\tconst real level = (real)(sum / %" PRId64 ");\n", w);
	emit(e,
		"\t\tconst real slope = (real)(dot * (double)invstd * (double)invstd / %" PRId64
		");\n",
		w);
}

/* dx of one row, once level and slope are there. */
static void emit_flat_row(
	struct emit *e, const struct node *n, const struct norm *p, bool scale, const char *tabs)
{
	const char *dx = emit_text(e, "invstd * (%s%s%s - %s * slope)",
		emit_value(e, n->in[0], "dy[i]"), scale ? " * scale[i]" : "",
		p->centred ? " - level" : "", difference(e, p, n->in[1]));
	emit(e, "%sfor (int64_t i = 0; i < %" PRId64 "; i++)\n", tabs, width_of(p));
	emit(e, "%s\tdx[i] = %s;\n", tabs, emit_stored(e, n->out[0], dx));
}

enum status norm_grad_emit(struct emit *e, const struct node *n)
{
	const struct norm *p = n->param;
	const bool scale = norm_has(n, 4), flat = is_flat(p, scale);
	int64_t w = width_of(p);
	if (n->out[0]->numel == 0) {
		emit(e, "\t(void)y0; /* no elements */\n");
		return ST_OK;
	}
	if (norm_cuda_fits(e, n))
		return norm_grad_cuda_emit(e, n);
	open_rows(e, p, 6);
	const struct tensor *const dy_x[] = {n->in[0], n->in[1]};
	emit(e, "\t\tconst %s *dy = x0 + r * %" PRId64 ";\n", emit_type(n->in[0]), w);
	emit(e, "\t\tconst %s *x = x1 + r * %" PRId64 ";\n", emit_type(n->in[1]), w);
	emit(e, "\t\t%s *dx = y0 + r * %" PRId64 ";\n", emit_type(n->out[0]), w);
	if (scale)
		row_values(e, p, "scale", "x4");
	emit(e, "\t\tconst real %sinvstd = x3[r];\n", p->centred ? "mean = x2[r], " : "");
	if (flat)
		emit_flat_sums(e, p, dy_x, scale);
	else
		emit_channel_sums(e, p, dy_x);
	if (flat) {
		emit_flat_row(e, n, p, scale, "\t\t");
		emit(e, "\t}\n");
		return ST_OK;
	}
	emit(e, "\t\tfor (int64_t c = 0; c < %" PRId64 "; c++) {\n", p->channels);
	emit(e, "\t\t\tconst real factor = scale[c];\n");
	emit(e, "\t\t\tfor (int64_t i = c * %" PRId64 "; i < (c + 1) * %" PRId64 "; i++)\n",
		p->inner, p->inner);
	const char *dx = emit_text(e, "invstd * (%s * factor%s - %s * slope)",
		emit_value(e, n->in[0], "dy[i]"), p->centred ? " - level" : "",
		difference(e, p, n->in[1]));
	emit(e, "\t\t\t\tdx[i] = %s;\n\t\t}\n\t}\n", emit_stored(e, n->out[0], dx));
	return ST_OK;
}

/* --- The gradients of x, scale and bias at once: rows are read once --- */

static int64_t parts_of(const struct norm *p)
{
	return (p->rows + PART_ROWS - 1) / PART_ROWS;
}

int64_t norm_all_workspace(const struct node *n, const struct target *t)
{
	const struct norm *p = n->param;
	if (t->cuda)
		return norm_all_cuda_workspace(n);
	return parts_of(p) * p->channels * (p->centred ? 2 : 1) * dtype_bytes(n->out[1]->dtype);
}

/* Of each part the sums, in order. */
static void emit_part_sums(struct emit *e, const struct norm *p)
{
	const int64_t c = p->channels, sums = p->centred ? 2 : 1;
	emit_loops(e, (double)(parts_of(p) * c * sums), 1, &(struct emit_loop){"c", c, 1});
	emit(e, " {\n\t\treal scale = 0%s;\n", p->centred ? ", bias = 0" : "");
	emit(e, "\t\tfor (int64_t p = 0; p < %" PRId64 "; p++) {\n", parts_of(p));
	emit(e, "\t\t\tscale += part[p * %" PRId64 " + c];\n", sums * c);
	if (p->centred)
		emit(e, "\t\t\tbias += part[p * %" PRId64 " + %" PRId64 " + c];\n", sums * c, c);
	emit(e, "\t\t}\n\t\ty1[c] = scale;\n%s\t}\n", p->centred ? "\t\ty2[c] = bias;\n" : "");
}

enum status norm_all_emit(struct emit *e, const struct node *n)
{
	const struct norm *p = n->param;
	const int64_t c = p->channels, sums = p->centred ? 2 : 1;
	const struct tensor *const dy_x[] = {n->in[0], n->in[1]};
	const char *dy = emit_value(e, n->in[0], "dy[i]");
	if (n->out[0]->numel == 0)
		return emit_empty(e, n, p);
	if (norm_cuda_fits(e, n))
		return norm_all_cuda_emit(e, n);
	emit(e, "\treal *const part = ws; /* [%" PRId64 "][%" PRId64 "][%" PRId64 "] */\n",
		parts_of(p), sums, c);
	emit_loops(e, (double)(p->rows * c) * 10, 1, &(struct emit_loop){"p", parts_of(p), 1});
	emit(e, " {\n\t\treal *const restrict sum = part + p * %" PRId64 ";\n", sums * c);
	emit(e, "\t\tconst int64_t end = MIN(%" PRId64 ", (p + 1) * %d);\n", p->rows, PART_ROWS);
	emit(e, "\t\tconst real *scale = x4;\n");
	emit(e, "\t\tfor (int64_t i = 0; i < %" PRId64 "; i++)\n\t\t\tsum[i] = 0;\n", sums * c);
	emit(e, "\t\tfor (int64_t r = p * %d; r < end; r++) {\n", PART_ROWS);
	emit(e, "\t\tconst %s *dy = x0 + r * %" PRId64 ";\n", emit_type(n->in[0]), c);
	emit(e, "\t\tconst %s *x = x1 + r * %" PRId64 ";\n", emit_type(n->in[1]), c);
	emit(e, "\t\t%s *dx = y0 + r * %" PRId64 ";\n", emit_type(n->out[0]), c);
	emit(e, "\t\tconst real %sinvstd = x3[r];\n", p->centred ? "mean = x2[r], " : "");
	emit(e, "\t\tfor (int64_t i = 0; i < %" PRId64 "; i++) {\n", c);
	emit(e, "\t\t\tsum[i] += %s * (%s * invstd);\n", dy, difference(e, p, n->in[1]));
	if (p->centred)
		emit(e, "\t\t\tsum[%" PRId64 " + i] += %s;\n", c, dy);
	emit(e, "\t\t}\n");
	emit_flat_sums(e, p, dy_x, true);
	emit_flat_row(e, n, p, true, "\t\t");
	emit(e, "\t\t}\n\t}\n");
	emit_part_sums(e, p);
	return ST_OK;
}

/* --- The gradients of scale, Σ dy x̂, and bias, Σ dy --- */

/* A channel for each element: 64 columns at a time, rows in order in parts of 128. */
static void emit_columns(struct emit *e, const struct norm *p, const struct node *n)
{
	const int64_t c = p->channels, times = p->rows / p->groups;
	const bool groups = p->groups > 1, mean = p->centred;
	const struct emit_loop loop[] = {{"g", p->groups, 1}, {"c0", c, 64}};
	emit_loops(e, (double)(p->rows * c) * 4, groups ? 2 : 1, groups ? loop : loop + 1);
	emit(e, " {\n");
	const size_t body = e->out.len;
	emit(e, "\t\tconst int64_t width = MIN(%" PRId64 " - c0, 64);\n", c);
	emit(e, "\t\treal scale[64] = {0}%s;\n", mean ? ", bias[64] = {0}" : "");
	emit(e, "\t\tfor (int64_t n0 = 0; n0 < %" PRId64 "; n0 += 128) {\n", times);
	emit(e, "\t\t\treal part[64] = {0}%s;\n", mean ? ", sum[64] = {0}" : "");
	emit(e, "\t\t\tconst int64_t end = MIN(%" PRId64 ", n0 + 128);\n", times);
	emit(e, "\t\t\tfor (int64_t n = n0; n < end; n++) {\n\t\t\t\tconst int64_t r = n");
	if (groups)
		emit(e, " * %" PRId64 " + g", p->groups);
	emit(e, ";\n\t\t\t\tconst real %sinvstd = x3[r];\n", mean ? "mean = x2[r], " : "");
	emit(e, "\t\t\t\tconst %s *dy = x0 + r * %" PRId64 " + c0;\n", emit_type(n->in[0]), c);
	emit(e, "\t\t\t\tconst %s *x = x1 + r * %" PRId64 " + c0;\n", emit_type(n->in[1]), c);
	emit(e, "\t\t\t\tfor (int64_t i = 0; i < width; i++) {\n");
	const char *dy = emit_value(e, n->in[0], "dy[i]");
	emit(e, "\t\t\t\t\tpart[i] += %s * (%s * invstd);\n", dy, difference(e, p, n->in[1]));
	if (mean)
		emit(e, "\t\t\t\t\tsum[i] += %s;\n", dy);
	emit(e, "\t\t\t\t}\n\t\t\t}\n");
	emit(e, "\t\t\tfor (int64_t i = 0; i < width; i++) {\n\t\t\t\tscale[i] += part[i];\n");
	emit(e, "%s\t\t\t}\n\t\t}\n", mean ? "\t\t\t\tbias[i] += sum[i];\n" : "");
	emit(e, "\t\tconst int64_t at = ");
	if (groups)
		emit(e, "g * %" PRId64 " + ", c);
	emit(e, "c0;\n\t\tfor (int64_t i = 0; i < width; i++) {\n\t\t\ty0[at + i] = scale[i];\n");
	emit(e, "%s\t\t}\n\t}\n", mean ? "\t\t\ty1[at + i] = bias[i];\n" : "");
	emit_deeper(e, body, groups);
}

static void emit_planes(struct emit *e, const struct norm *p, const struct node *n)
{
	const struct tensor *const dy_x[] = {n->in[0], n->in[1]};
	const int64_t all = p->groups * p->channels;
	const char *centred = emit_helper_on(e, "centred_lanes", centred_lanes, 2, dy_x);
	emit_loops(e, (double)(p->rows * width_of(p)) * 4, 1, &(struct emit_loop){"c", all, 1});
	emit(e, " {\n\t\tdouble scale = 0, bias = 0;\n");
	emit(e, "\t\tfor (int64_t n = 0; n < %" PRId64 "; n++) {\n", p->rows / p->groups);
	emit(e, "\t\t\tconst int64_t r = n * %" PRId64 " + c / %" PRId64 ";\n", p->groups,
		p->channels);
	emit(e, "\t\t\tconst int64_t at = (n * %" PRId64 " + c) * %" PRId64 ";\n", all, p->inner);
	emit(e,
		"\t\t\tscale += (double)x3[r] * %s(x0 + at, x1 + at, (double)x2[r], "
		"%" PRId64 ");\n",
		centred, p->inner);
	emit(e, "\t\t\tbias += %s(x0 + at, %" PRId64 ");\n\t\t}\n", wide_sum(e, n->in[0]),
		p->inner);
	emit(e, "\t\ty0[c] = (real)scale;\n\t\ty1[c] = (real)bias;\n\t}\n");
}

int64_t norm_scale_workspace(const struct node *n, const struct target *t)
{
	return t->cuda ? norm_scale_cuda_workspace(n) : 0;
}

enum status norm_scale_emit(struct emit *e, const struct node *n)
{
	const struct norm *p = n->param;
	if (n->out[0]->numel == 0)
		emit(e, "\t(void)y0; /* no elements */\n");
	else if (norm_cuda_fits(e, n))
		return norm_scale_cuda_stages(e, n, 0);
	else if (p->inner == 1)
		emit_columns(e, p, n);
	else
		emit_planes(e, p, n);
	return ST_OK;
}
