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

enum status batchnorm_stats_emit(struct emit *e, const struct node *n)
{
	const struct batchnorm *p = n->param;
	const struct span s = span_of(n->in[0], p);
	const struct call_struct parts = {"struct batchnorm_parts", "parts", SPAN_FIELDS(s)};
	TRY(call_kernel(e, &(struct kernel_call){.file = "batchnorm_stats.h",
				   .function = s.width == 1 ? "batchnorm_stats_planes"
							    : "batchnorm_stats_columns",
				   .ntype = 1,
				   .type = {n->in[0]},
				   .turns = s.parts * s.groups,
				   .work = values_of(&s) * 4,
				   .args = CALL_ARGS(ARG_STRUCT(&parts), ARG_SCRATCH(0), ARG_X(0),
					   batchnorm_control(n, 2))}));
	return call_kernel(e, &(struct kernel_call){.file = "batchnorm.h",
				      .function = "batchnorm_statistics",
				      .turns = s.channels,
				      .work = (double)s.parts * (double)s.channels * 8,
				      .args = CALL_ARGS(ARG_STRUCT(&parts), ARG_Y(0), ARG_Y(1),
					      ARG_Y(2), ARG_Y(3), ARG_X(1), batchnorm_control(n, 2),
					      ARG_SCRATCH(0), ARG_DOUBLE(p->epsilon))});
}

enum status batchnorm_sums_emit(struct emit *e, const struct node *n)
{
	const struct batchnorm *p = n->param;
	const struct span s = span_of(n->in[1], p);
	const struct call_struct parts = {"struct batchnorm_parts", "parts", SPAN_FIELDS(s)};
	TRY(call_kernel(e, &(struct kernel_call){.file = "batchnorm_sums.h",
				   .function = s.width == 1 ? "batchnorm_sums_planes"
							    : "batchnorm_sums_columns",
				   .ntype = 2,
				   .type = {n->in[0], n->in[1]},
				   .turns = s.parts * s.groups,
				   .work = values_of(&s) * 4,
				   .args = CALL_ARGS(ARG_STRUCT(&parts), ARG_SCRATCH(0), ARG_X(0),
					   ARG_X(1), ARG_X(2))}));
	return call_kernel(e, &(struct kernel_call){.file = "batchnorm.h",
				      .function = "batchnorm_gradient",
				      .turns = s.channels,
				      .work = (double)s.parts * (double)s.channels * 8,
				      .args = CALL_ARGS(ARG_STRUCT(&parts), ARG_Y(0), ARG_Y(1),
					      ARG_Y(2), ARG_Y(3), ARG_X(3), batchnorm_rounding(n),
					      batchnorm_control(n, 5), ARG_SCRATCH(0))});
}
