/* Pools on a GPU: the shape as a type that the functions of kernels/pool.cuh are compiled for. */
#include "ops/pool/pool_op.h"

enum { AXES = 3, LISTS = 7, NUMBERS = 5, THREADS = 256 };

/* The call, for each element of the node's output `of`. */
static enum status call(
	struct emit *e, const struct node *n, const struct tensor *of, struct kernel_call c)
{
	static const char *const name[LISTS][AXES] = {{"kernel0", "kernel1", "kernel2"},
		{"stride0", "stride1", "stride2"}, {"dilation0", "dilation1", "dilation2"},
		{"before0", "before1", "before2"}, {"size0", "size1", "size2"},
		{"out0", "out1", "out2"}, {"end0", "end1", "end2"}};
	const struct pool *p = n->param;
	const struct window *w = &p->w;
	struct call_field field[LISTS * AXES + NUMBERS + 1];
	int64_t end[AXES];
	int count = 0;
	for (int a = 0; a < AXES; a++)
		end[a] = w->size[a] + (p->pad_counts ? w->after[a] : 0);
	const int64_t *const list[LISTS] = {
		w->kernel, w->stride, w->dilation, w->before, w->size, w->out, end};
	for (int i = 0; i < LISTS; i++)
		for (int a = 0; a < AXES; a++)
			field[count++] = (struct call_field){name[i][a], ARG_INT(list[i][a])};
	const struct call_field number[NUMBERS + 1] = {{"sums", ARG_INT(p->sums)},
		{"pad", ARG_INT(p->pad_counts)}, {"column_major", ARG_INT(p->column_major)},
		{"step", ARG_INT(p->last ? p->last : 1)},
		{"brief", ARG_INT(of->numel <= INT32_MAX)}, {.name = NULL}};
	memcpy(field + count, number, sizeof number);
	c.file = "pool.cuh";
	c.traits = &(struct call_struct){"struct", "shape", field};
	c.tasks = div_up(of->numel, THREADS);
	c.threads = THREADS;
	return call_kernel(e, &c);
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
	const bool indices = n->in[1]->dtype == DT_I64;
	return call(e, n, n->out[0],
		(struct kernel_call){.function = indices ? "pool_gather" : "pool_max_grad",
			.args = CALL_ARGS(
				ARG_Y(0), ARG_X(1), ARG_X(0), ARG_SIZE(n->out[0]->numel))});
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
