/* The sums of batch normalisation as C text. x is read in parts that stay in the core's own cache:
 * each gives its sums for a group of channels, and the parts' sums meet in their order, whatever
 * thread made them. */
#include <inttypes.h>
#include <stdio.h>

#include "ops/batchnorm.h"
#include "ops/channel_cuda.h"
#include "ops/lanes.h"

/* Elements of x in a part, about: 64 KiB in single precision. Channels of [N, C] taken together. */
enum { PART_ELEMENTS = 16384, COLUMNS = 64 };

/* Element k of position i of group g of row r: x[r * row + g * group + i * stride + k]. */
struct span {
	int64_t rows, groups, positions, width; /* numbers of them */
	int64_t row, group, stride;
	int64_t channels;
	int64_t take;   /* rows of a part; 1 where a part is a slice of a row */
	int64_t slice;  /* positions of a part in a row */
	int64_t slices; /* of a row */
	int64_t parts;
};

static int64_t divide_up(int64_t a, int64_t b)
{
	return a / b + (a % b != 0);
}

static struct span span_of(const struct tensor *x, int64_t block)
{
	int64_t inner = 1;
	for (int i = 2; i < x->rank - (block > 1); i++)
		inner *= x->dim[i];
	const int64_t n = x->dim[0], c = x->dim[1] * block;
	struct span s = {
		n, x->dim[1], inner, block, c * inner, inner * block, block, c, 1, 0, 0, 0};
	if (block == 1 && inner == 1)
		s = (struct span){1, divide_up(c, COLUMNS), n, c < COLUMNS ? c : COLUMNS, 0,
			COLUMNS, c, c, 1, 0, 0, 0};
	const int64_t most = PART_ELEMENTS / s.width > 1 ? PART_ELEMENTS / s.width : 1;
	s.slices = s.positions > most ? divide_up(s.positions, most) : 1;
	s.slice = divide_up(s.positions, s.slices);
	if (s.slices == 1 && s.positions > 0 && s.positions <= most / 2)
		s.take = most / s.positions < s.rows ? most / s.positions : s.rows;
	s.slices = s.slice > 0 ? divide_up(s.positions, s.slice) : 1;
	s.parts = s.take > 0 ? divide_up(s.rows, s.take) * s.slices : 0;
	return s;
}

int64_t batchnorm_workspace(const struct node *n, const struct target *t)
{
	if (t->cuda && n->in[0]->numel > 0)
		return batchnorm_cuda_workspace(n);
	const struct span s = span_of(n->in[0], ((const struct batchnorm *)n->param)->block);
	return s.parts * s.channels * 2 * (int64_t)sizeof(double);
}

/* "A", or "p + 1 < 3 ? A : B" where the last part is shorter. */
static void emit_length(struct emit *e, const struct span *s)
{
	const bool sliced = s->slices > 1;
	const int64_t of = sliced ? s->slices : s->parts;
	const int64_t whole = sliced ? s->slice : s->take * s->positions;
	const int64_t all = sliced ? s->positions : s->rows * s->positions;
	const int64_t last = all - (of - 1) * whole;
	if (last == whole || of <= 1)
		emit(e, "%" PRId64, last);
	else if (sliced)
		emit(e, "(p + 1) %% %" PRId64 " ? %" PRId64 " : %" PRId64, of, whole, last);
	else
		emit(e, "p + 1 < %" PRId64 " ? %" PRId64 " : %" PRId64, of, whole, last);
}

/* Opens the loops over parts p and groups g, with `count` positions in the part and `at` the place
 * of its first element; `out` takes the two sums of each of its channels. */
static void open_parts(struct emit *e, const struct span *s)
{
	emit(e, "\tdouble *const part = ws; /* [%" PRId64 "][2][%" PRId64 "] */\n", s->parts,
		s->channels);
	const struct emit_loop loop[] = {{"p", s->parts, 1}, {"g", s->groups, 1}};
	emit_loops(e, (double)s->rows * (double)s->channels * (double)s->positions * 4, 2, loop);
	emit(e, " {\n\t\t\tconst int64_t count = ");
	emit_length(e, s);
	if (s->slices > 1)
		emit(e,
			";\n\t\t\tconst int64_t at = p / %" PRId64 " * %" PRId64 " + g * %" PRId64
			" + p %% %" PRId64 " * %" PRId64 ";\n",
			s->slices, s->row, s->group, s->slices, s->slice * s->stride);
	else
		emit(e, ";\n\t\t\tconst int64_t at = p * %" PRId64 " + g * %" PRId64 ";\n",
			s->take * s->row, s->group);
	if (s->width > 1 && s->channels % s->width == 0)
		emit(e, "\t\t\tenum { width = %" PRId64 " };\n", s->width);
	else if (s->width > 1)
		emit(e,
			"\t\t\tconst int64_t width = MIN(%" PRId64 " - g * %" PRId64 ", %" PRId64
			");\n",
			s->channels, s->width, s->width);
	emit(e, "\t\t\tdouble *const out = part + p * %" PRId64 " + g * %" PRId64 ";\n",
		2 * s->channels, s->width);
}

/* Opens the loop over a part's rows, if it has several: `o` is the offset of the row. */
static bool open_rows(struct emit *e, const struct span *s)
{
	if (s->take == 1)
		return false;
	emit(e,
		"\t\t\tfor (int64_t o = at; o < at + count / %" PRId64 " * %" PRId64
		"; o += %" PRId64 ")",
		s->positions, s->row, s->row);
	return true;
}

/* A statement for each row of the part: `o` and `n` are its place and its length. */
static void each_row(struct emit *e, const struct span *s, const char *statement)
{
	if (open_rows(e, s))
		emit(e, "\n\t\t\t\t");
	else
		emit(e, "\t\t\t");
	for (const char *p = statement; *p; p++)
		if (*p == '@')
			emit(e, s->take == 1 ? "at" : "o");
		else if (*p == '#' && s->take == 1)
			emit(e, "count");
		else if (*p == '#')
			emit(e, "%" PRId64, s->positions);
		else
			emit(e, "%c", *p);
	emit(e, "\n");
}

/* Opens the loops over the elements of a part: `i` is the place of one, k its channel. */
static int open_elements(struct emit *e, const struct span *s)
{
	const bool rows = open_rows(e, s);
	const char *tab = rows ? "\t" : "";
	emit(e, rows ? "\n" : "");
	emit(e, "%s\t\t\tfor (int64_t j = 0; j < ", tab);
	if (rows)
		emit(e, "%" PRId64, s->positions);
	else
		emit(e, "count");
	emit(e, "; j++)\n%s\t\t\t\tfor (int64_t k = 0; k < width; k++) {\n", tab);
	emit(e, "%s\t\t\t\t\tconst int64_t i = %s + j * %" PRId64 " + k;\n", tab, rows ? "o" : "at",
		s->stride);
	return rows ? 6 : 5;
}

static void each_element(struct emit *e, const struct span *s, const char *statement)
{
	static const char tabs[] = "\t\t\t\t\t\t\t\t";
	const int depth = open_elements(e, s);
	emit(e, "%.*s", depth, tabs);
	for (const char *p = statement; *p; p++)
		if (*p == '\n')
			emit(e, "\n%.*s", depth, tabs);
		else
			emit(e, "%c", *p);
	emit(e, "\n%.*s}\n", depth - 1, tabs);
}

static void each_channel(struct emit *e, const char *statement)
{
	emit(e, "\t\t\tfor (int64_t k = 0; k < width; k++)%s\n", statement);
}

static void open_channels(struct emit *e, const struct span *s)
{
	emit(e, "\t\t}\n");
	emit_loops(e, (double)s->parts * (double)s->channels * 8, 1,
		&(struct emit_loop){"c", s->channels, 1});
	emit(e, " {\n");
}

/* The sum over parts of a channel's number k. */
static void sum_parts(struct emit *e, const struct span *s, int k, const char *name)
{
	emit(e, "\t\t\t%s += part[p * %" PRId64 " + %" PRId64 " + c];\n", name, 2 * s->channels,
		k * s->channels);
}

/* sum += the sum of x0 over each row of the part. */
static void each_sum(struct emit *e, const struct span *s, const struct tensor *x)
{
	char text[80];
	snprintf(text, sizeof text, "sum += %s(x0 + @, #);", wide_sum(e, x));
	each_row(e, s, text);
}

/* Sum, and squares about the part's own mean: in the narrow text of one channel, or the wide one of
 * several. */
static void emit_moments(struct emit *e, const struct span *s, const struct tensor *x)
{
	char text[160];
	if (s->width == 1 && s->stride == 1) {
		const char *squares = emit_helper_on(e, "squares_lanes", squares_lanes, 1, &x);
		emit(e, "\t\t\tdouble sum = 0, squares = 0;\n");
		each_sum(e, s, x);
		emit(e, "\t\t\tconst real mean = (real)(sum / (double)count);\n");
		snprintf(text, sizeof text, "squares += (double)%s(x0 + @, mean, #);", squares);
		each_row(e, s, text);
		emit(e, "\t\t\tconst double off = sum / (double)count - (double)mean;\n");
		emit(e, "\t\t\tout[0] = sum;\n\t\t\tout[%" PRId64 "] = ", s->channels);
		emit(e, "squares - off * off * (double)count;\n");
		return;
	}
	emit(e, "\t\t\tdouble sum[%" PRId64 "] = {0}, squares[%" PRId64 "] = {0};\n", s->width,
		s->width);
	emit(e, "\t\t\treal mean[%" PRId64 "];\n", s->width);
	snprintf(text, sizeof text, "sum[k] += (double)%s;", emit_value(e, x, "x0[i]"));
	each_element(e, s, text);
	each_channel(e, "\n\t\t\t\tmean[k] = (real)(sum[k] / (double)count);");
	snprintf(text, sizeof text, "const real d = %s - mean[k];\nsquares[k] += (double)(d * d);",
		emit_value(e, x, "x0[i]"));
	each_element(e, s, text);
	each_channel(e, " {\n\t\t\t\tconst double off = sum[k] / (double)count - (double)mean[k];");
	emit(e, "\t\t\t\tout[k] = sum[k];\n\t\t\t\tout[%" PRId64 " + k] = ", s->channels);
	emit(e, "squares[k] - off * off * (double)count;\n\t\t\t}\n");
}

/* Chan, Golub, LeVeque, "Updating formulae and a pairwise algorithm for computing sample
 * variances": the squares about the common mean are the parts' own and n (their mean - the common
 * one)². */
enum status batchnorm_stats_emit(struct emit *e, const struct node *n)
{
	const struct batchnorm *p = n->param;
	if (e->g->target->cuda && n->in[0]->numel > 0)
		return batchnorm_stats_cuda_emit(e, n);
	const struct span s = span_of(n->in[0], p->block);
	open_parts(e, &s);
	emit_moments(e, &s, n->in[0]);
	open_channels(e, &s);
	emit(e, "\t\tdouble sum = 0, squares = 0;\n");
	emit(e, "\t\tfor (int64_t p = 0; p < %" PRId64 "; p++)\n", s.parts);
	sum_parts(e, &s, 0, "sum");
	emit(e, "\t\tconst double mean = sum / %" PRId64 ";\n", p->count);
	emit(e, "\t\tfor (int64_t p = 0; p < %" PRId64 "; p++) {\n", s.parts);
	emit(e, "\t\t\tconst double count = ");
	emit_length(e, &s);
	emit(e, ";\n\t\t\tconst double off = part[p * %" PRId64 " + c] / count - mean;\n",
		2 * s.channels);
	emit(e, "\t\t\tsquares += off * off * count;\n");
	sum_parts(e, &s, 1, "squares");
	emit(e, "\t\t}\n\t\ty0[c] = (real)mean;\n");
	emit(e, "\t\ty3[c] = (real)(mean - (double)y0[c]);\n");
	emit(e, "\t\ty1[c] = (real)(1 / sqrt(squares / %" PRId64 " + %.17g));\n", p->count,
		p->epsilon);
	emit(e, "\t\ty2[c] = y1[c] * x1[c];\n\t}\n");
	return ST_OK;
}

static void emit_products(struct emit *e, const struct span *s, const struct node *n)
{
	char text[200];
	const struct tensor *const dy_x[] = {n->in[0], n->in[1]};
	if (s->width == 1 && s->stride == 1) {
		const char *centred = emit_helper_on(e, "centred_lanes", centred_lanes, 2, dy_x);
		emit(e, "\t\t\tdouble sum = 0, dot = 0;\n");
		each_sum(e, s, n->in[0]);
		snprintf(
			text, sizeof text, "dot += %s(x0 + @, x1 + @, (double)x2[g], #);", centred);
		each_row(e, s, text);
		emit(e, "\t\t\tout[0] = sum;\n\t\t\tout[%" PRId64 "] = dot;\n", s->channels);
		return;
	}
	emit(e, "\t\t\tdouble sum[%" PRId64 "] = {0}, dot[%" PRId64 "] = {0};\n", s->width,
		s->width);
	emit(e, "\t\t\tconst real *const mean = x2 + g * %" PRId64 ";\n", s->width);
	snprintf(text, sizeof text,
		"const double dy = (double)%s;\n"
		"sum[k] += dy;\n"
		"dot[k] += dy * ((double)%s - (double)mean[k]);",
		emit_value(e, n->in[0], "x0[i]"), emit_value(e, n->in[1], "x1[i]"));
	each_element(e, s, text);
	each_channel(e, " {\n\t\t\t\tout[k] = sum[k];");
	emit(e, "\t\t\t\tout[%" PRId64 " + k] = dot[k];\n\t\t\t}\n", s->channels);
}

/* Ioffe and Szegedy, "Batch Normalization", section 3, rewritten: dx = scale·invstd (dy − mean(dy)
 * − x̂ mean(dy x̂)). `level` makes up for the rounding of the mean and of `tilt`: the sum of dx comes
 * out as near zero as it should. */
enum status batchnorm_sums_emit(struct emit *e, const struct node *n)
{
	const struct batchnorm *p = n->param;
	if (e->g->target->cuda && n->in[0]->numel > 0)
		return batchnorm_sums_cuda_emit(e, n);
	const struct span s = span_of(n->in[1], p->block);
	open_parts(e, &s);
	emit_products(e, &s, n);
	open_channels(e, &s);
	emit(e, "\t\tdouble sum = 0, dot = 0;\n");
	emit(e, "\t\tfor (int64_t p = 0; p < %" PRId64 "; p++) {\n", s.parts);
	sum_parts(e, &s, 0, "sum");
	sum_parts(e, &s, 1, "dot");
	emit(e, "\t\t}\n\t\tconst double invstd = (double)x3[c];\n");
	emit(e, "\t\ty0[c] = (real)(dot * invstd);\n\t\ty1[c] = (real)sum;\n");
	emit(e, "\t\ty3[c] = (real)(dot * invstd * invstd / %" PRId64 ");\n", p->count);
	emit(e, "\t\ty2[c] = (real)(sum / %" PRId64 "%s);\n\t}\n", p->count,
		n->nin > 4 && n->in[4] ? " - (double)x4[c] * (double)y3[c]" : "");
	return ST_OK;
}
