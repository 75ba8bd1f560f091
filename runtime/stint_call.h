/* SPDX-License-Identifier: MIT-0 */
/* A call of a library as plain data: what the planner asks about, a step's tables hold and the
 * runtime makes a primitive of. Self-contained C11 and C++, the one header that all parts of stint
 * share with a step.
 *
 * Tensors are dense and row-major, fp32 or, where `types` says so, of 16 bits; sums are fp32.
 * Operands x0, x1, ... and results y0, ... are those of the node, in its order. */
#ifndef STINT_CALL_H
#define STINT_CALL_H

#include <stdint.h>

enum stint_call_kind {
	STINT_CALL_PRODUCT,
	STINT_CALL_CONV_FORWARD, /* y0 = y from x0 = x, x1 = the weight (and x2 = the bias) */
	STINT_CALL_CONV_DATA,    /* y0 = the gradient of x from x0 = that of y, x1 = the weight */
	STINT_CALL_CONV_WEIGHT   /* y0 = the weight's from x0 = x, x1 = the gradient of y */
};

/* Bits of a call's `types`: which tensors are bf16; or fp16, which only a GPU's libraries know. */
enum { STINT_X0_NARROW = 1, STINT_X1_NARROW = 2, STINT_Y0_NARROW = 4, STINT_NARROW_IS_FP16 = 8 };

enum stint_product_extra {
	STINT_PRODUCT_PLAIN,
	STINT_PRODUCT_BIAS, /* x2[n] is added to every row */
	STINT_PRODUCT_ADD,  /* x2[b][m][n] is added, in the type of y0, which may be the same */
	/* Of a GPU's libraries, batch 1: */
	STINT_PRODUCT_SUM0, /* y1[m] becomes the sum of x0 over k */
	STINT_PRODUCT_SUM1  /* y1[n] becomes the sum of x1 over k */
};

/* y0[b] = x0[b] x1[b]: `batch` >= 1 products of m by k and k by n. */
struct stint_product {
	int64_t batch, m, n, k;
	int t0, t1;       /* the operand is stored transposed */
	int each0, each1; /* it has the batch axis; 0: one is shared by all */
	enum stint_product_extra extra;
};

enum stint_conv_way {
	STINT_CONV_DIRECT,
	STINT_CONV_WINOGRAD,
	STINT_CONV_HALVES /* Winograd's on each half of the batch */
};

/* y[n, k, o] = the sum over c and f of x[n, c, o * stride + f * dilation - before] w[k, c, f], each
 * group of channels for itself, plus the bias. Tensors are [n, channels, axes...], the weight [k,
 * c / groups, kernel...]. */
struct stint_convolution {
	int axes; /* 2 or 3; one axis stands as the last of two, the first of which is 1 long */
	int64_t n, c, k, groups;
	int64_t size[3], kernel[3], stride[3], dilation[3]; /* dilation 1: dense */
	int64_t before[3]; /* padding; what comes after follows from the sizes */
	int64_t out[3];
	int bias;
	int x_blocked, y_blocked; /* it is [n, channels / B, axes..., B], B: stint_lib_block */
	int last; /* all have their channels behind the axes; only a GPU's libraries know that */
	enum stint_conv_way way;
};

struct stint_lib_call {
	enum stint_call_kind kind;
	int types;
	union {
		struct stint_product product;
		struct stint_convolution conv; /* of the other kinds */
	};
};

static inline int stint_product_same(const struct stint_product *a, const struct stint_product *b)
{
	return a->batch == b->batch && a->m == b->m && a->n == b->n && a->k == b->k &&
	       a->t0 == b->t0 && a->t1 == b->t1 && a->each0 == b->each0 && a->each1 == b->each1 &&
	       a->extra == b->extra;
}

static inline int stint_convolution_same(
	const struct stint_convolution *a, const struct stint_convolution *b)
{
	int same = a->axes == b->axes && a->n == b->n && a->c == b->c && a->k == b->k &&
		   a->groups == b->groups && a->bias == b->bias && a->x_blocked == b->x_blocked &&
		   a->y_blocked == b->y_blocked && a->last == b->last && a->way == b->way;
	for (int i = 0; same && i < a->axes; i++)
		same = a->size[i] == b->size[i] && a->kernel[i] == b->kernel[i] &&
		       a->stride[i] == b->stride[i] && a->dilation[i] == b->dilation[i] &&
		       a->before[i] == b->before[i] && a->out[i] == b->out[i];
	return same;
}

static inline int stint_lib_call_same(
	const struct stint_lib_call *a, const struct stint_lib_call *b)
{
	return a->kind == b->kind && a->types == b->types &&
	       (a->kind == STINT_CALL_PRODUCT ? stint_product_same(&a->product, &b->product)
					      : stint_convolution_same(&a->conv, &b->conv));
}

/* For messages: "matmul_bias", "conv3_weight". */
static inline const char *stint_lib_call_name(const struct stint_lib_call *c)
{
	const int deep = c->kind != STINT_CALL_PRODUCT && c->conv.axes == 3;
	switch (c->kind) {
	case STINT_CALL_PRODUCT:
		return c->product.extra == STINT_PRODUCT_BIAS   ? "matmul_bias"
		       : c->product.extra == STINT_PRODUCT_ADD  ? "matmul_add"
		       : c->product.extra == STINT_PRODUCT_SUM0 ? "matmul_sum0"
		       : c->product.extra == STINT_PRODUCT_SUM1 ? "matmul_sum1"
								: "matmul";
	case STINT_CALL_CONV_FORWARD:
		return deep ? "conv3_forward" : "conv_forward";
	case STINT_CALL_CONV_DATA:
		return deep ? "conv3_data" : "conv_data";
	case STINT_CALL_CONV_WEIGHT:
		return deep ? "conv3_weight" : "conv_weight";
	}
	return "unknown call";
}

#endif
