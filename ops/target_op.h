/* What rules that build a graph ask of a target. The rest of an operator knows none: what a GPU
 * does in another way is a face of the record (`emit_cuda`) or of a call (codegen/call.h). */
#ifndef STINT_OPS_TARGET_OP_H
#define STINT_OPS_TARGET_OP_H

#include "graph/graph.h"

/* A library call for a convolution adds its bias. That of a GPU does not: a node of its own does,
 * which is fused with what follows. */
static inline bool target_adds_conv_bias(const struct target *t)
{
	return !t->cuda;
}

/* Channels that a library's convolution has at least. A GPU's has no engine for tensor cores below
 * 8 of 16 bits (cuDNN Developer Guide, "Tensor Core Operations"): a picture's 3 are filled up. */
static inline int64_t target_conv_channels(const struct target *t)
{
	return t->cuda && t->narrow ? 8 : 1;
}

/* One for a product adds a bias. A GPU's adds one of the product's own type only, and parameters
 * stay wide. */
static inline bool target_adds_product_bias(const struct target *t)
{
	return !t->cuda || !t->narrow;
}

/* The gradient of attention can add up its mask's as well: by threads that each do whole tasks. A
 * GPU's kernel does parts of them. */
static inline bool target_joins_mask_gradient(const struct target *t)
{
	return !t->cuda;
}

/* The elements that are worked on at once where a tensor is made in pieces: of a CPU's step about
 * what its caches hold, of a GPU's what keeps it busy. */
static inline int64_t target_piece_elements(const struct target *t)
{
	return (int64_t)1 << (t->cuda ? 28 : 22);
}

#endif
