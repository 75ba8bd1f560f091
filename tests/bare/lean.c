/* See lean.h; WAYS is the table's name. */
#include "tests/bare/lean.h"

enum { STINT_THREADS = 1 };
#include "kernels/conv_depth.h"
#include "kernels/conv_forward.h"
#include "kernels/conv_grad_w.h"
#include "kernels/conv_grad_x.h"
#include "kernels/matmul.h"

static void product(const struct matmul_shape *s, float *y, const float *a, const float *b,
	const float *bias, void *ws)
{
	matmul_blocks(s, y, a, b, bias, NULL, ws, 0,
		s->batch * ((s->m + s->rows - 1) / s->rows) *
			((s->n + s->columns - 1) / s->columns));
}

#ifdef STINT_BARE
static int64_t blocks(const struct conv_shape *s, int64_t images, int64_t rows, int64_t columns)
{
	return images * ((rows + s->rows - 1) / s->rows) *
	       ((columns + s->columns - 1) / s->columns);
}

static void forward(const struct window *w, const struct conv_shape *s, float *y, const float *x,
	const float *weight, const float *bias, void *ws)
{
	conv_forward(w, s, y, x, weight, bias, ws, 0,
		blocks(s, s->images * s->groups, s->filters / s->groups,
			w->out[0] * w->out[1] * w->out[2]));
}

static void grad_x(const struct window *w, const struct conv_shape *s, float *dx, const float *dy,
	const float *weight, void *ws)
{
	int64_t phases = 1, most = 1;
	for (int a = 0; a < 3; a++) {
		phases *= w->stride[a];
		most *= (w->size[a] + w->stride[a] - 1) / w->stride[a];
	}
	conv_grad_x(w, s, dx, dy, weight, ws, 0,
		phases * blocks(s, s->images * s->groups, s->channels / s->groups, most));
}

static void grad_w(const struct window *w, const struct conv_shape *s, float *dw, const float *x,
	const float *dy, void *ws)
{
	conv_grad_w(w, s, dw, x, dy, ws, 0,
		blocks(s, s->groups, s->filters / s->groups,
			s->channels / s->groups * w->kernel[0] * w->kernel[1] * w->kernel[2]));
}

#else
static void forward(const struct window *w, const struct conv_shape *s, float *y, const float *x,
	const float *weight, const float *bias, void *ws)
{
	conv_forward(w, s, y, x, weight, bias, ws, 0,
		s->groups * conv_turns(s, s->filters / s->groups, w->out));
}

static void grad_x(const struct window *w, const struct conv_shape *s, float *dx, const float *dy,
	const float *weight, void *ws)
{
	int64_t phases = 1, most[3];
	for (int a = 0; a < 3; a++) {
		phases *= w->stride[a];
		most[a] = (w->size[a] + w->stride[a] - 1) / w->stride[a];
	}
	conv_grad_x(w, s, dx, dy, weight, ws, 0,
		s->groups * phases * conv_turns(s, s->channels / s->groups, most));
}

static void grad_w(const struct window *w, const struct conv_shape *s, float *dw, const float *x,
	const float *dy, void *ws)
{
	conv_grad_w(w, s, dw, x, dy, ws, 0,
		s->groups * ((s->filters / s->groups + s->rows - 1) / s->rows) *
			((s->channels / s->groups + s->columns - 1) / s->columns));
}
#endif

static void depth(const struct window *w, const struct conv_shape *s, float *dw, const float *x,
	const float *dy, void *ws)
{
	conv_grad_w_depth(w, s, dw, x, dy, ws, 0, s->channels / 16);
}

const struct ways WAYS = {product, forward, grad_x, grad_w, depth};
