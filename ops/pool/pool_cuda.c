/* Pools on a GPU: the shape as a type that the functions of kernels/pool.cuh are compiled for. */
#include "ops/pool/pool_op.h"

enum { AXES = 3, LISTS = 8, NUMBERS = 6, THREADS = 256 };

/* What a thread makes of the gradient of a maximum: a patch along the axes that are pooled, a few
 * strides wide, of some 16 places, in two channels that lie together. */
struct patch {
	int64_t along[AXES], pack, turns;
};

static struct patch patch_of(const struct pool *p, const struct tensor *dx)
{
	static const int64_t most[AXES + 1] = {1, 16, 4, 2}; /* along each of so many axes */
	const struct window *w = &p->w;
	struct patch x = {.pack = p->last % 2 == 0 && p->last ? 2 : 1};
	int pooled = 0;
	for (int a = 0; a < AXES; a++)
		pooled += w->kernel[a] > 1 || w->stride[a] > 1;
	x.turns = dx->numel / x.pack;
	for (int a = 0; a < AXES; a++) {
		const bool is_pooled = w->kernel[a] > 1 || w->stride[a] > 1;
		x.along[a] = is_pooled && w->stride[a] <= most[pooled]
				     ? most[pooled] / w->stride[a] * w->stride[a]
				     : 1;
		x.turns = w->size[a] ? x.turns / w->size[a] * div_up(w->size[a], x.along[a]) : 0;
	}
	return x;
}

/* The call, where a thread makes a patch `x`. */
static enum status call_for(
	struct emit *e, const struct node *n, const struct patch *x, struct kernel_call c)
{
	static const char *const name[LISTS][AXES] = {{"kernel0", "kernel1", "kernel2"},
		{"stride0", "stride1", "stride2"}, {"dilation0", "dilation1", "dilation2"},
		{"before0", "before1", "before2"}, {"size0", "size1", "size2"},
		{"out0", "out1", "out2"}, {"end0", "end1", "end2"}, {"patch0", "patch1", "patch2"}};
	const struct pool *p = n->param;
	const struct window *w = &p->w;
	struct call_field field[LISTS * AXES + NUMBERS + 1];
	int64_t end[AXES];
	int count = 0;
	for (int a = 0; a < AXES; a++)
		end[a] = w->size[a] + (p->pad_counts ? w->after[a] : 0);
	const int64_t *const list[LISTS] = {
		w->kernel, w->stride, w->dilation, w->before, w->size, w->out, end, x->along};
	for (int i = 0; i < LISTS; i++)
		for (int a = 0; a < AXES; a++)
			field[count++] = (struct call_field){name[i][a], ARG_INT(list[i][a])};
	const struct call_field number[NUMBERS + 1] = {{"sums", ARG_INT(p->sums)},
		{"pad", ARG_INT(p->pad_counts)}, {"column_major", ARG_INT(p->column_major)},
		{"step", ARG_INT(p->last ? p->last : 1)}, {"brief", ARG_INT(x->turns <= INT32_MAX)},
		{"pack", ARG_INT(x->pack)}, {.name = NULL}};
	memcpy(field + count, number, sizeof number);
	c.file = "pool.cuh";
	c.traits = &(struct call_struct){"struct", "shape", field};
	c.tasks = div_up(x->turns, THREADS);
	c.threads = THREADS;
	return call_kernel(e, &c);
}

/* The same where a thread makes one element of `of`. */
static enum status call(
	struct emit *e, const struct node *n, const struct tensor *of, struct kernel_call c)
{
	const struct patch one = {{1, 1, 1}, 1, of->numel};
	return call_for(e, n, &one, c);
}

enum status pool_cuda_max(struct emit *e, const struct node *n)
{
	const bool indices = n->nout > 1 && n->out[1];
	const struct tensor *of = n->out[n->out[0] ? 0 : 1];
	return call(e, n, of,
		(struct kernel_call){.function = "pool_max",
			.args = CALL_ARGS(n->out[0] ? ARG_Y(0) : ARG_NAME("(real *)0"),
				indices ? ARG_Y(1) : ARG_NAME("(int64_t *)0"), ARG_X(0),
				ARG_SIZE(of->numel))});
}

/* From x, or from the indices. */
enum status pool_cuda_max_grad(struct emit *e, const struct node *n)
{
	const struct patch x = patch_of(n->param, n->out[0]);
	if (n->in[1]->dtype == DT_I64)
		return call(e, n, n->out[0],
			(struct kernel_call){.function = "pool_gather",
				.args = CALL_ARGS(
					ARG_Y(0), ARG_X(1), ARG_X(0), ARG_SIZE(n->out[0]->numel))});
	return call_for(e, n, &x,
		(struct kernel_call){.function = "pool_max_grad",
			.args = CALL_ARGS(ARG_Y(0), ARG_X(1), ARG_X(0), ARG_SIZE(x.turns))});
}

enum status pool_cuda_average(struct emit *e, const struct node *n)
{
	return call(e, n, n->out[0],
		(struct kernel_call){.function = "pool_average",
			.args = CALL_ARGS(ARG_Y(0), ARG_X(0), ARG_SIZE(n->out[0]->numel))});
}

enum status pool_cuda_average_grad(struct emit *e, const struct node *n)
{
	return call(e, n, n->out[0],
		(struct kernel_call){.function = "pool_average_grad",
			.args = CALL_ARGS(ARG_Y(0), ARG_X(0), ARG_SIZE(n->out[0]->numel))});
}
