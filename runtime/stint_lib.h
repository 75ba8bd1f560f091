/* clang-format off */
/* Library products behind a generated step: oneDNN 2.6 primitives with a user-managed scratchpad.
 * Included by step.c unless it was compiled with --portable. A call is a kind and numbers (struct
 * stint_lib_call); all tensors are dense, row-major fp32 in the layouts named here, or bf16 where
 * `types` says so: 1 for x0, 2 for x1, 4 for y0; 8: these are fp16, which only a GPU's libraries know.
 * Sums are fp32.
 *
 *	"matmul"         p = {B, M, N, K, ta, tb, sa, sb, types}: y[b] = x0[b] x1[b], B >= 1 products
 *	                 of M by K and K by N; ta, tb: the operand is stored transposed; sa, sb: 1
 *	                 when the operand has the batch axis, 0 when it is shared by all
 *	"matmul_bias"    the same with x2[N] added to every row
 *	"conv_forward"   p = {N, C, D0, D1, K, G, k0, k1, s0, s1, d0, d1, pb0, pb1, pe0, pe1, O0, O1,
 *	                 bias, form}: y[N,K,O0,O1] = x0[N,C,D0,D1] * x1[K,C/G,k0,k1] (+ x2[K]); s
 *	                 strides, d dilations (1: dense), pb, pe padding before and after (pe follows
 *	                 from O and is not read). One spatial axis: D0 = k0 = O0 = 1
 *	"conv_data"      the same p: y0 = gradient of x from x0 = dy, x1 = weight
 *	"conv_weight"    the same p: y0 = gradient of the weight from x0 = x, x1 = dy
 *	"conv3_forward", "conv3_data", "conv3_weight"
 *	                 the same over three axes: p = {N, C, K, G, D0, D1, D2, k0, k1, k2, s0, s1, s2,
 *	                 d0, d1, d2, pb0, pb1, pb2, O0, O1, O2, bias, form}
 *
 * The form of a convolution: 1 when x, 2 when y is stored as [N, C/B, ..., B] (B:
 * stint_lib_block), and 0, 4 or 8: direct, Winograd's, or Winograd's on each half of the batch;
 * and 16 times the types. On a GPU, 3: channels last, x [N,D0,D1,C], y [N,O0,O1,K], and the weight
 * [K,k0,k1,C/G], which is plain otherwise.
 *
 * The same call gives the same bits every time with the same number of threads. Outside the
 * workspace a run allocates only oneDNN's tables of arguments: a few hundred bytes, freed at
 * once. */
/* clang-format on */
#ifndef STINT_LIB_H
#define STINT_LIB_H

#include "stint_rt.h"

struct stint_lib;

/* Scratch bytes the call needs in the arena, its reorders included; -1 when the library cannot do
 * it, or only by allocating tensors of its own (then plain C is generated). A fixed rule over
 * shape, instruction set and threads. */
int64_t stint_lib_workspace(const char *kind, const int64_t p[24], int threads);
/* Channels that this machine's convolutions like to find side by side; 0: none. */
int stint_lib_block(void);
/* STINT_OK, or a code of stint_rt.h with a reason in message[256]. *out is NULL on failure. */
int stint_lib_new(
	struct stint_lib **out, const char *kind, const int64_t p[24], int threads, char *message);
void stint_lib_free(struct stint_lib *l);
/* in, out: in the order of the node; ws: 64-aligned. 0, or the library's error code. */
int stint_lib_run(struct stint_lib *l, const void *const *in, void *const *out, void *ws);
/* What plans rely on, printed into the step and compared by init: "oneDNN 2.6.3 avx512_core 2
 * threads". */
const char *stint_lib_identity(int threads, char buf[static 96]);

#endif
