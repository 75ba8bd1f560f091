#include "convolution_jobs.h"

#include "ops/conv/conv_op.h"

static struct window window_of(const struct stint_convolution *c)
{
	struct window w = {.axes = c->axes, .taps = 1, .plane = 1, .out_plane = 1};
	for (int i = 0; i < 3; i++) {
		const int from = i - (3 - c->axes);
		const bool there = from >= 0;
		w.kernel[i] = there ? c->kernel[from] : 1;
		w.stride[i] = there ? c->stride[from] : 1;
		w.dilation[i] = there ? c->dilation[from] : 1;
		w.before[i] = w.after[i] = there ? c->before[from] : 0;
		w.size[i] = there ? c->size[from] : 1;
		w.out[i] = there ? c->out[from] : 1;
		w.taps *= w.kernel[i];
		w.plane *= w.size[i];
		w.out_plane *= w.out[i];
	}
	return w;
}

struct convolution_job convolution_job(const struct stint_lib_call *call, int threads)
{
	const struct stint_convolution *const c = &call->conv;
	const struct target target = {.portable = true, .threads = threads};
	const struct conv p = {.w = window_of(c),
		.n = c->n,
		.c = c->c,
		.k = c->k,
		.groups = c->groups,
		.cg = c->c / c->groups,
		.kg = c->k / c->groups};
	const struct conv_job j = conv_job_of(
		&p, (enum conv_pass)call->kind, sizeof(float), &target);
	struct convolution_job out = {.kernel = j.lanes    ? BY_CHANNELS
						: j.direct ? BY_DIRECT_LOOPS
							   : BY_PRODUCTS,
		.rows = j.rows,
		.columns = j.columns,
		.lines = j.lines,
		.turn = j.turn,
		.boxes = j.boxes,
		.turns = j.turns,
		.bytes = j.bytes};
	for (int i = 0; i < 3; i++) {
		out.kernels[i] = j.w.kernel[i];
		out.stride[i] = j.w.stride[i];
		out.dilation[i] = j.w.dilation[i];
		out.before[i] = j.w.before[i];
		out.size[i] = j.w.size[i];
		out.out[i] = j.w.out[i];
	}
	return out;
}
