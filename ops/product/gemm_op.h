/* The matrix product of kernels/gemm.h, shared by MatMul, Conv and Attention. Private to ops/. */
#ifndef STINT_OPS_GEMM_OP_H
#define STINT_OPS_GEMM_OP_H

#include "ops/family.h"

/* Sizes the kernel and its workspace agree on: terms summed at once, rows and columns packed at
 * once, and the multiples to which tiles of any instruction set round these up. */
enum { GEMM_KC = 256, GEMM_MC = 96, GEMM_NC = 256, GEMM_ROW_UNIT = 24, GEMM_COL_UNIT = 32 };

/* How the m by n products of a batch are cut into blocks that threads compute on their own. Depends
 * on shape and target only, and never changes a bit of the result. */
struct gemm_split {
	int64_t mb, nb; /* rows and columns of a block */
};
struct gemm_split gemm_split(int64_t batch, int64_t m, int64_t n, const struct target *t);

/* Elements of type real that gemm_block needs for blocks of mb by nb with k terms: a multiple of
 * 16; none where nothing is packed. */
int64_t gemm_block_elements(int64_t mb, int64_t nb, int64_t k, const struct target *t);

/* stint.MatMul(a, b [, bias [, added]]): a is [m,k] or [batch,m,k] (transA: [.., k,m]), b is [k,n]
 * or [batch,k,n] (transB: [.., n,k]), bias is [n], what is added has the result's shape, and there
 * is one of the two; an operand of rank 2 is shared by the batch. */
enum { PRODUCT_BIAS = 2, PRODUCT_ADDED };
struct product {
	int64_t batch, m, n, k;
	bool ta, tb; /* stored transposed */
	bool sa, sb; /* has the batch axis */
};
/* Of a node whose param is one: cost, and each thread's bytes of scratch. */
struct op_cost product_cost(const struct node *n);
int64_t product_scratch(const struct node *n, const struct target *t);
/* Input k of such a node stored in small numbers: op_def's `channels` and `stored`. */
int product_channels(const struct node *n, int k);
enum status product_stored(struct graph *g, const struct node *n, struct tensor *const *in, int k,
	const struct stored *s, struct tensor *const *small, struct tensor **out);

/* struct matmul_shape (kernels/matmul.h). */
#define MATMUL_FIELDS(p, split)                                                                    \
	CALL_FIELDS({"batch", ARG_INT((p)->batch)}, {"m", ARG_INT((p)->m)},                        \
		{"n", ARG_INT((p)->n)}, {"k", ARG_INT((p)->k)}, {"rows", ARG_INT((split).mb)},     \
		{"columns", ARG_INT((split).nb)},                                                  \
		{"a_step", ARG_INT((p)->sa ? (p)->m * (p)->k : 0)},                                \
		{"a_row", ARG_INT((p)->ta ? 1 : (p)->k)},                                          \
		{"a_column", ARG_INT((p)->ta ? (p)->m : 1)},                                       \
		{"b_step", ARG_INT((p)->sb ? (p)->k * (p)->n : 0)},                                \
		{"b_row", ARG_INT((p)->tb ? 1 : (p)->n)},                                          \
		{"b_column", ARG_INT((p)->tb ? (p)->k : 1)})

/* y0[n] = (bias +) x[k] w[k][n]. */
struct matvec {
	int64_t n, k;
	bool transposed; /* w is stored as [n][k] */
	int x, w, bias;  /* inputs; bias -1: none */
};
enum status matvec_emit(struct emit *e, const struct matvec *v);

#endif
