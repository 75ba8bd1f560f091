/* What Conv and ConvTranspose share. Private to ops/. */
#ifndef STINT_OPS_CONV_OP_H
#define STINT_OPS_CONV_OP_H

#include "graph/blocking.h"
#include "ops/window_op.h"

/* y[N, K, w.out] = x[N, C, w.size] * weight[K, C / groups, w.kernel]. The parameter of Conv,
 * stint.ConvGradX (x's gradient from y's and the weight) and stint.ConvGradW (the weight's from x
 * and y's): any of them can be made from it alone. */
struct conv {
	struct window w;
	int64_t n, c, k, groups;
	int64_t cg, kg;         /* channels of x and y in a group */
	int64_t xblock, yblock; /* x and y stand in blocks of so many channels; 0: plain */
	/* x and y are [N, 1, axes..., all channels], the weight [K, 1, w.kernel, C / groups]: only
	 * for the GPU's library, which calls this NHWC and KRSC. */
	bool last;
};

/* The three passes, as the library calls them. */
enum conv_pass {
	CONV_FORWARD = STINT_CALL_CONV_FORWARD,
	CONV_GRAD_X = STINT_CALL_CONV_DATA,
	CONV_GRAD_W = STINT_CALL_CONV_WEIGHT
};

/* How one of them is computed in plain C (conv_job.c), its tensors' elements of `size` bytes. */
struct conv_job {
	bool direct;                               /* by conv_direct.h */
	bool lanes;                                /* or by conv_depth.h */
	bool pointwise;                            /* products of the matrices as they are */
	struct window w;                           /* that the kernel gets */
	int64_t rows, columns, lines, turn, boxes; /* struct conv_shape of kernels/window.h */
	int64_t phases;                            /* of the stride, where they are apart */
	int64_t turns;
	int64_t elements, bytes; /* scratch of a thread */
};
struct conv_job conv_job_of(
	const struct conv *p, enum conv_pass pass, int64_t size, const struct target *t);

/* conv_block.c */
enum status conv_forward_block(struct blocking *b);
enum status conv_grad_x_block(struct blocking *b);
enum status conv_grad_w_block(struct blocking *b);

/* conv_depth.c: a depthwise convolution's weight gradient, 16 channels at once. Whether it can, the
 * elements of scratch of a thread, and the loop, behind the window `s`. */
bool depth_can(const struct conv *p);
int64_t depth_elements(const struct conv *p);
enum { DEPTH_LANES = 16 };

#endif
