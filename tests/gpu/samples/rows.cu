
/* The threads' numbers, as floats and as doubles: sums, then maxima; then the sum of the squares, and in whole packs
 * or not the numbers again. */
extern "C" __global__ void __launch_bounds__(256) k_block(double *__restrict__ y0, float *__restrict__ y1, const real *__restrict__ x0, int n)
{
	__shared__ double wide[2][BLOCK_WARPS];
	__shared__ float part[BLOCK_WARPS];
	const int i = (int)threadIdx.x;
	double s[2] = {(double)x0[i], (double)x0[i] * (double)x0[i]};
	block_sums(s, wide);
	y0[3 * i] = s[0];
	y0[3 * i + 1] = block_max((double)x0[i], wide[0]);
	y0[3 * i + 2] = s[1];
	y1[2 * i] = block_sum(x0[i], part);
	y1[2 * i + 1] = block_max(x0[i], part);
	real v[4], w[4];
	load_values<true>(v, x0, 4 * i, n / 4 * 4);
	load_values<false>(w, x0, 4 * i, n);
	store_values<true>(y1 + 512, v, 4 * i, n / 4 * 4);
	store_values<false>(y1 + 1024, w, 4 * i, n);
}

/* Rows of n, a block to each. */
extern "C" __global__ void __launch_bounds__(256) k_softmax(real *__restrict__ y0, const real *__restrict__ x0, int n)
{
	__shared__ float part[BLOCK_WARPS];
	const real *x = x0 + (int64_t)blockIdx.x * n;
	real *y = y0 + (int64_t)blockIdx.x * n;
	float m = -INFINITY, s = 0;
	for (int i = threadIdx.x; i < n; i += 256)
		m = x[i] > m ? x[i] : m;
	m = block_max(m, part);
	for (int i = threadIdx.x; i < n; i += 256)
		s += EXP(x[i] - m);
	s = block_sum(s, part);
	for (int i = threadIdx.x; i < n; i += 256)
		y[i] = EXP(x[i] - m) / s;
}

/* Rows of n, a block to each; the row is kept in shared memory.
 * dynamic shared: k_layernorm 1200 */
extern "C" __global__ void __launch_bounds__(256) k_layernorm(real *__restrict__ y0, real *__restrict__ mean, real *__restrict__ deviation, const real *__restrict__ x0, const real *__restrict__ scale, const real *__restrict__ bias, int n)
{
	__shared__ float part[BLOCK_WARPS];
	DYNAMIC_SHARED(float, row);
	const real *x = x0 + (int64_t)blockIdx.x * n;
	float s = 0, q = 0;
	for (int i = threadIdx.x; i < n; i += 256) {
		row[i] = x[i];
		s += row[i];
	}
	const float m = block_sum(s, part) / n;
	for (int i = threadIdx.x; i < n; i += 256)
		q += (row[i] - m) * (row[i] - m);
	const float d = 1 / sqrtf(block_sum(q, part) / n + 1e-5f);
	for (int i = threadIdx.x; i < n; i += 256)
		y0[(int64_t)blockIdx.x * n + i] = (row[i] - m) * d * scale[i] + bias[i];
	if (threadIdx.x == 0) {
		mean[blockIdx.x] = m;
		deviation[blockIdx.x] = d;
	}
}

/* Sums over columns in 16 lanes and their fixed tree: 32 columns to a block of 32 x 16. */
extern "C" __global__ void __launch_bounds__(512) k_column_sum(real *__restrict__ y0, const real *__restrict__ x0, int rows, int columns)
{
	__shared__ float lane[16][32];
	const int c = blockIdx.x * 32 + threadIdx.x, k = threadIdx.y;
	float s = 0;
	if (c < columns)
		for (int i = k; i < rows; i += 16)
			s += x0[(int64_t)i * columns + c];
	lane[k][threadIdx.x] = s;
	__syncthreads();
	for (int half = 8; half > 0; half /= 2) {
		if (k < half)
			lane[k][threadIdx.x] += lane[k + half][threadIdx.x];
		__syncthreads();
	}
	if (k == 0 && c < columns)
		y0[c] = lane[0][threadIdx.x];
}

/* Neighbours add up in shared memory, half a warp with its own mask: 8 times the sum of a pair. */
extern "C" __global__ void __launch_bounds__(32) k_pairs(real *__restrict__ y0, const real *__restrict__ x0)
{
	__shared__ float tile[32];
	const int lane = threadIdx.x;
	const unsigned half = lane < 16 ? 0x0000FFFFu : 0xFFFF0000u;
	tile[lane] = x0[lane];
	__syncwarp(half);
	for (int i = 0; i < 4; i++) {
		const float s = tile[lane ^ 1];
		__syncwarp(half);
		tile[lane] += s;
		__syncwarp(half);
	}
	y0[lane] = tile[lane];
}

/* All threads say the same, which is no race. */
extern "C" __global__ void __launch_bounds__(64) k_same(real *__restrict__ y0, const real *__restrict__ x0)
{
	y0[0] = x0[0] * 2;
	y0[1] = x0[1] * 2;
}
