
/* c = a b' in bf16 with float sums: a of m x k, b of n x k, c of m x n floats; m and n are multiples of 64,
 * k of 32. A block of 4 warps makes 64 x 64 of c, a warp 32 x 32; two tiles of 64 x 32 of a and b stand in
 * shared memory in turns, rows 80 bytes apart (no bank twice in a ldmatrix).
 * dynamic shared: k_gemm_bf16 20480 */
extern "C" __global__ void __launch_bounds__(128) k_gemm_bf16(float *__restrict__ y0, const unsigned short *__restrict__ x0, const unsigned short *__restrict__ x1, int n, int k)
{
	enum { TILE = 64, DEPTH = 32, ROW = DEPTH + 8, PART = TILE * ROW };
	DYNAMIC_SHARED(unsigned short, tile); /* [2][a, b][TILE][ROW] */
	const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
	const int row0 = warp / 2 * 32, column0 = warp % 2 * 32;
	const unsigned short *a = x0 + (int64_t)blockIdx.y * TILE * k;
	const unsigned short *b = x1 + (int64_t)blockIdx.x * TILE * k;
	float sum[2][4][4];
	for (int i = 0; i < 2; i++)
		for (int j = 0; j < 4; j++)
			for (int e = 0; e < 4; e++)
				sum[i][j][e] = 0;
	for (int at = -DEPTH; at < k; at += DEPTH) {
		const int next = at + DEPTH;
		if (next < k) {
			unsigned short *to = tile + next / DEPTH % 2 * 2 * PART;
			for (int i = threadIdx.x; i < TILE * 4; i += 128) {
				const int r = i / 4, c = i % 4 * 8;
				cp_async_16(to + r * ROW + c, a + (int64_t)r * k + next + c, 16);
				cp_async_16(to + PART + r * ROW + c, b + (int64_t)r * k + next + c, 16);
			}
		}
		cp_async_commit();
		if (at < 0)
			continue;
		cp_async_wait<1>();
		__syncthreads();
		const unsigned short *ta = tile + at / DEPTH % 2 * 2 * PART, *tb = ta + PART;
#pragma unroll
		for (int d = 0; d < DEPTH; d += 16) {
			unsigned fa[2][4], fb[2][4];
			for (int i = 0; i < 2; i++)
				ldmatrix_x4(fa[i], ta + (row0 + 16 * i + lane % 16) * ROW + d + lane / 16 * 8);
			for (int j = 0; j < 2; j++)
				ldmatrix_x4(fb[j], tb + (column0 + 16 * j + lane / 16 * 8 + lane % 8) * ROW + d + lane / 8 % 2 * 8);
			for (int i = 0; i < 2; i++)
				for (int j = 0; j < 4; j++)
					mma_bf16(sum[i][j], fa[i], fb[j / 2] + j % 2 * 2);
		}
		__syncthreads();
	}
	for (int i = 0; i < 2; i++)
		for (int j = 0; j < 4; j++)
			for (int e = 0; e < 2; e++) {
				const int r = blockIdx.y * TILE + row0 + 16 * i + lane / 4 + 8 * e;
				const int c = blockIdx.x * TILE + column0 + 8 * j + lane % 4 * 2;
				*(float2 *)(y0 + (int64_t)r * n + c) = make_float2(sum[i][j][2 * e], sum[i][j][2 * e + 1]);
			}
}

/* One warp's fragments as they are, for a test of who holds what. */
extern "C" __global__ void __launch_bounds__(32) k_mma(float *__restrict__ d, const unsigned *__restrict__ a, const unsigned *__restrict__ b, int kind)
{
	float sum[4];
	unsigned fa[4], fb[2];
	for (int i = 0; i < 4; i++) {
		sum[i] = d[threadIdx.x * 4 + i];
		fa[i] = a[threadIdx.x * 4 + i];
	}
	for (int i = 0; i < 2; i++)
		fb[i] = b[threadIdx.x * 2 + i];
	if (kind == 0)
		mma_bf16(sum, fa, fb);
	else if (kind == 1)
		mma_f16(sum, fa, fb);
	else
		mma_tf32(sum, fa, fb);
	for (int i = 0; i < 4; i++)
		d[threadIdx.x * 4 + i] = sum[i];
}

/* Four matrices of 8 x 8 through shared memory: r[lane][0..3], then transposed. */
extern "C" __global__ void __launch_bounds__(32) k_ldmatrix(unsigned *__restrict__ r, const unsigned short *__restrict__ x)
{
	__shared__ __align__(16) unsigned short rows[32][8];
	for (int i = 0; i < 2; i++)
		cp_async_8(&rows[threadIdx.x][4 * i], x + threadIdx.x * 8 + 4 * i, threadIdx.x < 31 ? 8 : 4);
	cp_async_commit();
	cp_async_wait<0>();
	__syncwarp();
	unsigned f[4];
	ldmatrix_x4(f, rows[threadIdx.x]);
	for (int i = 0; i < 4; i++)
		r[threadIdx.x * 4 + i] = f[i];
	ldmatrix_x4_trans(f, rows[threadIdx.x]);
	for (int i = 0; i < 4; i++)
		r[128 + threadIdx.x * 4 + i] = f[i];
}

/* What the conversions make of floats. */
extern "C" __global__ void __launch_bounds__(32) k_convert(unsigned *__restrict__ y, float *__restrict__ z, float *__restrict__ e, const float *__restrict__ x, int n)
{
	for (int i = threadIdx.x; i < n; i += 32) {
		y[3 * i] = pack_bf16(x[i], -x[i]);
		y[3 * i + 1] = pack_f16(x[i], -x[i]);
		y[3 * i + 2] = round_tf32(x[i]);
		z[i] = wide_f16((unsigned short)(y[3 * i + 1] & 0xFFFF));
		e[i] = exp2_near(x[i]);
	}
}
