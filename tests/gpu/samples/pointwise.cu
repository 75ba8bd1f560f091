
/* A fused loop: gelu(x + b) s, in float. */
extern "C" __global__ void __launch_bounds__(256) k_gelu(real *__restrict__ y0, const real *__restrict__ x0, const real *__restrict__ x1, int64_t n, int64_t columns)
{
	for (int64_t i = blockIdx.x * 256l + threadIdx.x; i < n; i += gridDim.x * 256l) {
		const real t = x0[i] + x1[i % columns];
		y0[i] = t * NORMAL_CDF(t) * 0.5f;
	}
}

/* Four at a time, through every elementary function. n is a multiple of 4. */
extern "C" __global__ void __launch_bounds__(256) k_functions(real *__restrict__ y0, const real *__restrict__ x0, int64_t n)
{
	for (int64_t i = (blockIdx.x * 256l + threadIdx.x) * 4; i < n; i += gridDim.x * 1024l) {
		const float4 x = *(const float4 *)(x0 + i);
		float4 y;
		y.x = EXP(x.x) / (1 + EXP(x.x));
		y.y = TANH(x.y) + LOG1P(fabsf(x.y));
		y.z = ERF(x.z) - LOG(x.z * x.z + 1e-6f);
		y.w = sqrtf(fabsf(x.w)) * (x.w > 0 ? 1 : -1);
		*(float4 *)(y0 + i) = y;
	}
}

/* The functions that are evaluated in double. */
extern "C" __global__ void __launch_bounds__(256) k_wide(real *__restrict__ y0, const real *__restrict__ x0, int64_t n)
{
	for (int64_t i = blockIdx.x * 256l + threadIdx.x; i < n; i += gridDim.x * 256l) {
		const real x = x0[i];
		y0[i] = POW(fabsf(x), 1.7f) + SIN(x) - COS(x) + TAN(x);
		y0[n + i] = SINH(x * 0.1f) + COSH(x * 0.1f) + ASINH(x) + ATAN(x) - ACOSH(1 + x * x);
		y0[2 * n + i] = ASIN(x * 0.02f) + ACOS(x * 0.02f) + ATANH(x * 0.02f);
	}
}

/* Stored in bf16: eight to a thread. n is a multiple of 8. */
extern "C" __global__ void __launch_bounds__(256) k_scale_bf16(bf16 *__restrict__ y0, const bf16 *__restrict__ x0, real scale, int64_t n)
{
	for (int64_t i = (blockIdx.x * 256l + threadIdx.x) * 8; i < n; i += gridDim.x * 2048l) {
		const uint4 in = *(const uint4 *)(x0 + i);
		const unsigned w[4] = {in.x, in.y, in.z, in.w};
		unsigned r[4];
		for (int k = 0; k < 4; k++)
			r[k] = pack_bf16(WIDE((bf16)(w[k] & 0xFFFF)) * scale, WIDE((bf16)(w[k] >> 16)) * scale);
		*(uint4 *)(y0 + i) = make_uint4(r[0], r[1], r[2], r[3]);
	}
}

/* Whole numbers, the nearest that there is: Cast's text. */
extern "C" __global__ void __launch_bounds__(256) k_whole(int64_t *__restrict__ y0, const real *__restrict__ x0, int64_t n)
{
	for (int64_t i = blockIdx.x * 256l + threadIdx.x; i < n; i += gridDim.x * 256l)
		y0[i] = x0[i] >= 9223372036854775808.0f ? INT64_MAX
			: x0[i] > -9223372036854775808.0f ? (int64_t)x0[i]
			: x0[i] != x0[i] ? 0 : INT64_MIN;
}

/* AdamW: the rate is read from memory, and nothing is done where skip is set. */
extern "C" __global__ void __launch_bounds__(256) k_adamw(real *__restrict__ w, real *__restrict__ m, real *__restrict__ v, const real *__restrict__ g, const real *__restrict__ rate, const int *__restrict__ skip, int64_t n)
{
	if (__ldg(skip))
		return;
	const real lr = rate[0], c1 = rate[1], c2 = rate[2];
	for (int64_t i = blockIdx.x * 256l + threadIdx.x; i < n; i += gridDim.x * 256l) {
		const real gi = g[i], mi = 0.9f * m[i] + 0.1f * gi, vi = 0.999f * v[i] + 0.001f * gi * gi;
		m[i] = mi;
		v[i] = vi;
		w[i] = w[i] - lr * 0.01f * w[i] - lr * (mi / c1) / (sqrtf(vi / c2) + 1e-8f);
	}
}

/* 1 where an element is not finite: the one thing all may write. */
extern "C" __global__ void __launch_bounds__(256) k_finite(int *__restrict__ bad, const real *__restrict__ x0, int64_t n)
{
	int seen = 0;
	for (int64_t i = blockIdx.x * 256l + threadIdx.x; i < n; i += gridDim.x * 256l)
		seen |= !(fabsf(x0[i]) < INFINITY);
	if (__syncthreads_or(seen) && threadIdx.x == 0)
		atomicOr(bad, 1);
}
