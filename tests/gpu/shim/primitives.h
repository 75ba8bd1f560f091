/* CPU bodies of what kernels/primitives.cuh writes in PTX; where lanes hold what, it says there.
 * Sums of mma are made in double and rounded once: a tensor core's rounding is its own secret, so
 * results are compared within a tolerance. */
#ifndef STINT_SHIM_PRIMITIVES_H
#define STINT_SHIM_PRIMITIVES_H

/* --- Narrow types --- */

/* cvt.rn.bf16x2.f32: to the nearest, ties to even; any NaN becomes 0x7FFF. */
static inline unsigned shim_bf16(float x)
{
	const unsigned i = __float_as_uint(x);
	return x != x ? 0x7FFF : (i + 0x7FFF + (i >> 16 & 1)) >> 16;
}
static inline unsigned pack_bf16(float low, float high)
{
	return shim_bf16(low) | shim_bf16(high) << 16;
}
static inline float wide_f16(unsigned short x)
{
	const int exponent = x >> 10 & 31, fraction = x & 1023;
	const float a = exponent == 31 ? (fraction ? NAN : INFINITY)
			: exponent     ? ldexpf(static_cast<float>(1024 + fraction), exponent - 25)
				       : ldexpf(static_cast<float>(fraction), -24);
	return x >> 15 ? -a : a;
}
/* cvt.rn.f16x2.f32. */
static inline unsigned shim_f16(float x)
{
	const unsigned i = __float_as_uint(x), sign = i >> 16 & 0x8000;
	const float a = fabsf(x);
	if (x != x)
		return 0x7FFF;
	if (a >= 65520)
		return sign | 0x7C00;
	/* in units of the last place there */
	const int exponent = a < 6.103515625e-05f ? -14 : ilogbf(a);
	const unsigned units = static_cast<unsigned>(rintf(ldexpf(a, 10 - exponent)));
	return sign | (units + (static_cast<unsigned>(exponent + 14) << 10));
}
static inline unsigned pack_f16(float low, float high)
{
	return shim_f16(low) | shim_f16(high) << 16;
}
/* cvt.rna.tf32.f32: ties away from zero; the 13 bits below are 0. */
static inline unsigned round_tf32(float x)
{
	const unsigned i = __float_as_uint(x);
	return x != x ? 0x7FFFFFFF : fabsf(x) < INFINITY ? (i + 0x1000) & ~0x1FFFu : i;
}

/* ex2.approx.ftz.f32: as near as it gets; subnormal results and arguments are zeros. */
static inline float exp2_near(float x)
{
	const float y = exp2f(x);
	return y < 1.17549435e-38f ? 0 : y;
}
/* div.full.f32. */
static inline float divide_near(float x, float y)
{
	return x / y;
}

/* --- mma: gathers a warp's fragments, multiplies, hands out --- */

struct shim_mma {
	float *d;
	const unsigned *a, *b;
};
enum shim_operand { SHIM_BF16, SHIM_F16, SHIM_TF32 };
/* Half h (0 low) of a register, or all of it. */
template <shim_operand kind> static inline float shim_element(unsigned r, int h)
{
	const unsigned short half = static_cast<unsigned short>(r >> 16 * h);
	return kind == SHIM_BF16  ? __uint_as_float(static_cast<unsigned>(half) << 16)
	       : kind == SHIM_F16 ? wide_f16(half)
				  : __uint_as_float(r & ~0x1FFFu);
}
template <shim_operand kind> SHIM_UNTRACED void shim_mma_all(void *const *io, unsigned)
{
	enum { K = kind == SHIM_TF32 ? 8 : 16, PAIR = kind == SHIM_TF32 ? 1 : 2 };
	float a[16][K], b[K][8];
	for (int lane = 0; lane < 32; lane++) {
		const shim_mma *m = static_cast<const shim_mma *>(io[lane]);
		const int g = lane / 4, t = lane % 4;
		for (int r = 0; r < 4; r++)
			for (int h = 0; h < PAIR; h++)
				a[g + r % 2 * 8][t * PAIR + h + r / 2 * (K / 2)] =
					shim_element<kind>(m->a[r], h);
		for (int r = 0; r < 2; r++)
			for (int h = 0; h < PAIR; h++)
				b[t * PAIR + h + r * (K / 2)][g] = shim_element<kind>(m->b[r], h);
	}
	for (int lane = 0; lane < 32; lane++) {
		const shim_mma *m = static_cast<const shim_mma *>(io[lane]);
		for (int c = 0; c < 4; c++) {
			const int row = lane / 4 + c / 2 * 8, column = lane % 4 * 2 + c % 2;
			double sum = 0;
			for (int k = 0; k < K; k++)
				sum += static_cast<double>(a[row][k]) * b[k][column];
			m->d[c] = static_cast<float>(sum + m->d[c]);
		}
	}
}
#define SHIM_MMA(name, kind)                                                                       \
	SHIM_UNTRACED static inline void name(                                                     \
		float *d, const unsigned *a, const unsigned *b, SHIM_SITE)                         \
	{                                                                                          \
		shim_mma m = {d, a, b};                                                            \
		shim_hooks.meet(shim_hooks.shim, #name, 0xFFFFFFFFu, 0, &m, shim_mma_all<kind>,    \
			{file, line});                                                             \
	}
SHIM_MMA(mma_bf16, SHIM_BF16)
SHIM_MMA(mma_f16, SHIM_F16)
SHIM_MMA(mma_tf32, SHIM_TF32)

/* --- ldmatrix --- */

struct shim_rows {
	unsigned *r;
	const unsigned short *row;
	const unsigned short *from[4][2]; /* the elements it got */
};
template <bool transpose> SHIM_UNTRACED void shim_rows_all(void *const *io, unsigned)
{
	for (int lane = 0; lane < 32; lane++)
		for (int m = 0; m < 4; m++) {
			shim_rows *to = static_cast<shim_rows *>(io[lane]);
			for (int h = 0; h < 2; h++) {
				const int i = lane / 4, j = lane % 4 * 2 + h;
				to->from[m][h] = static_cast<const shim_rows *>(
							 io[8 * m + (transpose ? j : i)])
							 ->row +
						 (transpose ? i : j);
			}
			to->r[m] = *to->from[m][0] | static_cast<unsigned>(*to->from[m][1]) << 16;
		}
}
template <bool transpose>
SHIM_UNTRACED void shim_load_rows(
	const char *what, unsigned *r, const void *row, shim_site at, const void *pc)
{
	shim_rows s = {r, static_cast<const unsigned short *>(row), {}};
	if (reinterpret_cast<uintptr_t>(row) % 16)
		shim_hooks.fault(
			shim_hooks.shim, at, "%s: a row's address is no multiple of 16", what);
	if (shim_checked)
		shim_hooks.access(shim_hooks.shim, row, 16, SHIM_READ, pc);
	shim_hooks.meet(shim_hooks.shim, what, 0xFFFFFFFFu, 0, &s, shim_rows_all<transpose>, at);
	/* it read what it got, whoever said where */
	for (int i = 0; shim_checked && i < 8; i++)
		shim_hooks.access(shim_hooks.shim, s.from[i / 2][i % 2], 2, SHIM_READ, pc);
}
SHIM_UNTRACED static inline void ldmatrix_x4(unsigned *r, const void *row, SHIM_SITE)
{
	shim_load_rows<false>("ldmatrix_x4", r, row, {file, line}, __builtin_return_address(0));
}
SHIM_UNTRACED static inline void ldmatrix_x4_trans(unsigned *r, const void *row, SHIM_SITE)
{
	shim_load_rows<true>(
		"ldmatrix_x4_trans", r, row, {file, line}, __builtin_return_address(0));
}

/* --- cp.async --- */

#define SHIM_COPY(bytes)                                                                           \
	static inline void cp_async_##bytes(void *shared, const void *global, int have, SHIM_SITE) \
	{                                                                                          \
		shim_hooks.copy_start(shim_hooks.shim, shared, global, bytes, have, {file, line}); \
	}
SHIM_COPY(4)
SHIM_COPY(8)
SHIM_COPY(16)
static inline void cp_async_commit()
{
	shim_hooks.copy_commit(shim_hooks.shim);
}
template <int n> static inline void cp_async_wait()
{
	shim_hooks.copy_wait(shim_hooks.shim, n);
}

#endif
