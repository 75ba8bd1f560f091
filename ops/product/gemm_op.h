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

/* y0[n] = (bias +) x[k] w[k][n]. */
struct matvec {
	int64_t n, k;
	bool transposed; /* w is stored as [n][k] */
	int x, w, bias;  /* inputs; bias -1: none */
};
enum status matvec_emit(struct emit *e, const struct matvec *v);

#endif
