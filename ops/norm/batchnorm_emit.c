/* How the sums of batch normalisation are cut into parts, and the calls of their kernels
 * (kernels/batchnorm.h). */
#include "codegen/call.h"
#include "ops/norm/batchnorm_op.h"
#include "ops/norm/channel_cuda.h"

/* Elements of x in a part, about: 64 KiB in single precision. Channels of [N, C] taken together. */
enum { PART_ELEMENTS = 16384, COLUMNS = 64 };

/* As kernels/batchnorm.h has it. */
struct span {
	int64_t rows, groups, positions, width;
	int64_t row, group, stride;
	int64_t channels, take, slice, slices, parts, each;
};

static int64_t divide_up(int64_t a, int64_t b)
{
	return a / b + (a % b != 0);
}

static struct span span_of(const struct tensor *x, const struct batchnorm *p)
{
	const int64_t block = p->block;
	int64_t inner = 1;
	for (int i = 2; i < x->rank - (block > 1); i++)
		inner *= x->dim[i];
	const int64_t n = x->dim[0], c = x->dim[1] * block;
	struct span s = {
		n, x->dim[1], inner, block, c * inner, inner * block, block, c, 1, 0, 0, 0, 0};
	if (block == 1 && inner == 1)
		s = (struct span){1, divide_up(c, COLUMNS), n, c < COLUMNS ? c : COLUMNS, 0,
			COLUMNS, c, c, 1, 0, 0, 0, 0};
	s.each = p->each ? p->each : 1;
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
	(void)t;
	const struct span s = span_of(n->in[0], n->param);
	return s.parts * s.channels * 2 * (int64_t)sizeof(double);
}

static double values_of(const struct span *s)
{
	return (double)s->rows * (double)s->channels * (double)s->positions;
}

#define SPAN_FIELDS(s)                                                                             \
	CALL_FIELDS({"rows", ARG_INT((s).rows)}, {"groups", ARG_INT((s).groups)},                  \
		{"positions", ARG_INT((s).positions)}, {"width", ARG_INT((s).width)},              \
		{"row", ARG_INT((s).row)}, {"group", ARG_INT((s).group)},                          \
		{"stride", ARG_INT((s).stride)}, {"channels", ARG_INT((s).channels)},              \
		{"take", ARG_INT((s).take)}, {"slice", ARG_INT((s).slice)},                        \
		{"slices", ARG_INT((s).slices)}, {"parts", ARG_INT((s).parts)},                    \
		{"each", ARG_INT((s).each)})

/* Into scratch, of each part of x its sums; `parts` is `s` in the text. */
static enum status call_stats(struct emit *e, const struct node *n, const struct span *s,
	const struct call_struct *parts, struct call_arg control)
{
	return call_kernel(e,
		&(struct kernel_call){.file = "batchnorm_stats.h",
			.function = s->width == 1 ? "batchnorm_stats_planes"
						  : "batchnorm_stats_columns",
			.ntype = 1,
			.type = {n->in[0]},
			.turns = s->parts * s->groups,
			.work = values_of(s) * 4,
			.args = CALL_ARGS(ARG_STRUCT(parts), ARG_SCRATCH(0), ARG_X(0), control)});
}

static enum status call_sums(
	struct emit *e, const struct node *n, const struct span *s, const struct call_struct *parts)
{
	return call_kernel(e, &(struct kernel_call){.file = "batchnorm_sums.h",
				      .function = s->width == 1 ? "batchnorm_sums_planes"
								: "batchnorm_sums_columns",
				      .ntype = 2,
				      .type = {n->in[0], n->in[1]},
				      .turns = s->parts * s->groups,
				      .work = values_of(s) * 4,
				      .args = CALL_ARGS(ARG_STRUCT(parts), ARG_SCRATCH(0), ARG_X(0),
					      ARG_X(1), ARG_X(2))});
}

/* What comes of the parts' sums. */
static enum status call_end(
	struct emit *e, const struct span *s, const char *function, const struct call_arg *args)
{
	return call_kernel(e, &(struct kernel_call){.file = "batchnorm.h",
				      .function = function,
				      .turns = s->channels,
				      .work = (double)s->parts * (double)s->channels * 8,
				      .args = args});
}

enum status batchnorm_stats_emit(struct emit *e, const struct node *n)
{
	const struct batchnorm *p = n->param;
	const struct span s = span_of(n->in[0], p);
	const struct call_struct parts = {"struct batchnorm_parts", "parts", SPAN_FIELDS(s)};
	TRY(call_stats(e, n, &s, &parts, batchnorm_control(n, 2)));
	return call_end(e, &s, "batchnorm_statistics",
		CALL_ARGS(ARG_STRUCT(&parts), ARG_Y(0), ARG_Y(1), ARG_Y(2), ARG_Y(3), ARG_X(1),
			batchnorm_control(n, 2), ARG_SCRATCH(0), ARG_DOUBLE(p->epsilon)));
}

enum status batchnorm_sums_emit(struct emit *e, const struct node *n)
{
	const struct span s = span_of(n->in[1], n->param);
	const struct call_struct parts = {"struct batchnorm_parts", "parts", SPAN_FIELDS(s)};
	TRY(call_sums(e, n, &s, &parts));
	return call_end(e, &s, "batchnorm_gradient",
		CALL_ARGS(ARG_STRUCT(&parts), ARG_Y(0), ARG_Y(1), ARG_Y(2), ARG_Y(3), ARG_X(3),
			batchnorm_rounding(n), batchnorm_control(n, 5), ARG_SCRATCH(0)));
}

/* --- All micro-batches together: a row of sums is a part of the batch --- */

static struct span span_of_all(const struct batchnorm *p, int64_t channels)
{
	return (struct span){
		.rows = p->together * p->rows,
		.groups = 1,
		.positions = p->rows > 0 ? p->count / p->rows : 0,
		.width = channels,
		.row = 1,
		.stride = 1,
		.channels = channels,
		.take = p->rows,
		.slice = p->rows > 0 ? p->count / p->rows : 0,
		.slices = 1,
		.parts = p->together,
		.each = p->each ? p->each : 1,
	};
}

enum status batchnorm_row_emit(struct emit *e, const struct node *n)
{
	const struct span s = span_of(n->in[0], n->param);
	const struct call_struct parts = {"struct batchnorm_parts", "parts", SPAN_FIELDS(s)};
	TRY(call_stats(e, n, &s, &parts, batchnorm_control(n, 1)));
	return call_end(e, &s, "batchnorm_row",
		CALL_ARGS(ARG_STRUCT(&parts), ARG_Y(0), batchnorm_control(n, 1), ARG_SCRATCH(0)));
}

enum status batchnorm_rows_emit(struct emit *e, const struct node *n)
{
	const struct batchnorm *p = n->param;
	const struct span s = span_of_all(p, n->in[0]->dim[1]);
	const struct call_struct parts = {"struct batchnorm_parts", "parts", SPAN_FIELDS(s)};
	return call_end(e, &s, "batchnorm_statistics",
		CALL_ARGS(ARG_STRUCT(&parts), ARG_Y(0), ARG_Y(1), ARG_Y(2), ARG_Y(3), ARG_X(1),
			batchnorm_control_of_all(n, 2), ARG_X(0), ARG_DOUBLE(p->epsilon)));
}

enum status batchnorm_sums_row_emit(struct emit *e, const struct node *n)
{
	const struct span s = span_of(n->in[1], n->param);
	const struct call_struct parts = {"struct batchnorm_parts", "parts", SPAN_FIELDS(s)};
	TRY(call_sums(e, n, &s, &parts));
	return call_end(e, &s, "batchnorm_sums_row",
		CALL_ARGS(ARG_STRUCT(&parts), ARG_Y(0), ARG_Y(1), ARG_Y(2), ARG_X(3),
			ARG_SCRATCH(0)));
}

enum status batchnorm_sums_rows_emit(struct emit *e, const struct node *n)
{
	const struct span s = span_of_all(n->param, n->in[0]->dim[1]);
	const struct call_struct parts = {"struct batchnorm_parts", "parts", SPAN_FIELDS(s)};
	return call_end(e, &s, "batchnorm_gradient",
		CALL_ARGS(ARG_STRUCT(&parts), ARG_NULL, ARG_NULL, ARG_Y(0), ARG_Y(1), ARG_X(1),
			ARG_X(2), batchnorm_control_of_all(n, 3), ARG_X(0)));
}
