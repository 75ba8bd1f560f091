/* The weight gradient of a depthwise convolution in plain C: 16 channels at once, each a lane. Rows
 * of a small plane are too short to fill a vector; channels are many. */
#include "ops/conv/conv_op.h"
#include "ops/product/gemm_op.h"

enum { MOST = 1 << 19 /* elements of scratch: a plane that stays in a cache */ };

bool depth_can(const struct conv *p)
{
	const struct window *w = &p->w;
	return depth_elements(p) <= MOST && p->groups == p->c && p->cg == 1 && p->kg == 1 &&
	       p->c % DEPTH_LANES == 0 && w->kernel[0] == 1 && w->size[0] == 1 && w->out[0] == 1 &&
	       w->out_plane > 0 && w->before[1] >= 0 && w->before[2] >= 0;
}

int64_t depth_elements(const struct conv *p)
{
	const struct window *w = &p->w;
	int64_t cells = 1;
	for (int a = 1; a < 3; a++)
		cells *= (w->out[a] - 1) * w->stride[a] + (w->kernel[a] - 1) * w->dilation[a] + 1;
	return DEPTH_LANES * (cells + w->out_plane + w->taps);
}
