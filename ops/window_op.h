/* Windows that slide over 1 to 3 spatial axes: what Conv and the pools share. Private to ops/. */
#ifndef STINT_OPS_WINDOW_OP_H
#define STINT_OPS_WINDOW_OP_H

#include "ops/family.h"

/* Always three axes, the missing ones first: size 1, kernel 1, stride 1, no padding. */
struct window {
	int axes;                       /* that the model has */
	int64_t kernel[3], stride[3];   /* stride ≥ 1 */
	int64_t dilation[3];            /* 1: dense */
	int64_t before[3], after[3];    /* padding; after counts only where padding itself does */
	int64_t size[3], out[3];        /* of the input and the output */
	int64_t taps, plane, out_plane; /* products of kernel, size, out */
};

/* Reads kernel_shape (unless `kernel` has it), strides, dilations, pads, auto_pad and ceil_mode of
 * `n`, whose input 0 is [N, C, spatial axes...]. A message otherwise. */
enum status window_read(
	struct graph *g, const struct node *n, const int64_t *kernel, struct window *w);
/* The same where the axes do not come from input 0: `axes` sizes (col2im). */
enum status window_read_sized(struct graph *g, const struct node *n, int axes, const int64_t *size,
	const int64_t *kernel, struct window *w);
/* The same for ConvTranspose, whose input 0 has the axes `out` and whose output has `size`:
 * strides, dilations, pads, auto_pad, output_padding and output_shape of `n`. */
enum status window_read_transposed(
	struct graph *g, const struct node *n, const int64_t *kernel, struct window *w);
/* A tensor of the real type and shape [N, channels, axes of size or out...]; NULL after a message.
 */
struct tensor *window_input(
	struct graph *g, const struct window *w, int64_t batch, int64_t channels);
struct tensor *window_output(
	struct graph *g, const struct window *w, int64_t batch, int64_t channels);
/* The window over [N, C/B, spatial axes..., B], B `block`: the block is one more axis. False where
 * there are three already. */
bool window_block(const struct window *w, int64_t block, struct window *out);
/* A kernel's `struct window`, as an argument. */
#define WINDOW_STRUCT(as, w)                                                                       \
	{                                                                                          \
		"struct window", as,                                                               \
			CALL_FIELDS({"kernel", ARG_INTS(3, (w)->kernel)},                          \
				{"stride", ARG_INTS(3, (w)->stride)},                              \
				{"dilation", ARG_INTS(3, (w)->dilation)},                          \
				{"before", ARG_INTS(3, (w)->before)},                              \
				{"after", ARG_INTS(3, (w)->after)},                                \
				{"size", ARG_INTS(3, (w)->size)}, {"out", ARG_INTS(3, (w)->out)})  \
	}

#endif
