
/* Bugs that the shim must see; tests/gpu/shim/test_bugs.c says how. */

extern "C" __global__ void __launch_bounds__(64) bug_missing_barrier(float *y, const float *x)
{
	__shared__ float tile[64];
	tile[threadIdx.x] = x[threadIdx.x];
	y[threadIdx.x] = tile[63 - threadIdx.x];
}

extern "C" __global__ void __launch_bounds__(64) bug_missing_second_barrier(float *y, const float *x)
{
	__shared__ float tile[64];
	float s = 0;
	for (int i = 0; i < 2; i++) {
		tile[threadIdx.x] = x[threadIdx.x] + i;
		__syncthreads();
		s += tile[63 - threadIdx.x];
	}
	y[threadIdx.x] = s;
}

extern "C" __global__ void __launch_bounds__(32) bug_missing_syncwarp(float *y, const float *x)
{
	__shared__ float tile[32];
	tile[threadIdx.x] = x[threadIdx.x];
	const float s = __shfl_xor_sync(0xFFFFFFFFu, x[threadIdx.x], 1); /* orders no memory */
	y[threadIdx.x] = tile[31 - threadIdx.x] + s;
}

extern "C" __global__ void __launch_bounds__(32) bug_missing_wait(float *y, const float *x)
{
	__shared__ float tile[2][32];
	for (int i = 0; i < 2; i++) {
		cp_async_4(&tile[i][threadIdx.x], x + threadIdx.x, 4);
		cp_async_commit();
	}
	cp_async_wait<1>();
	__syncthreads();
	y[threadIdx.x] = tile[0][threadIdx.x] + tile[1][threadIdx.x]; /* the second is under way */
	cp_async_wait<0>();
}

extern "C" __global__ void __launch_bounds__(32) bug_wait_without_barrier(float *y, const float *x)
{
	__shared__ float tile[32];
	cp_async_4(&tile[threadIdx.x], x + threadIdx.x, 4);
	cp_async_commit();
	cp_async_wait<0>();
	y[threadIdx.x] = tile[31 - threadIdx.x];
}

extern "C" __global__ void __launch_bounds__(32) bug_never_waits(const float *x)
{
	__shared__ float tile[32];
	cp_async_4(&tile[threadIdx.x], x + threadIdx.x, 4);
	cp_async_commit();
}

extern "C" __global__ void __launch_bounds__(64) bug_shared_bounds(float *y, const float *x, int past)
{
	__shared__ float tile[64];
	float *p = tile;
	p[threadIdx.x + past] = x[threadIdx.x];
	__syncthreads();
	y[threadIdx.x] = tile[threadIdx.x];
}

extern "C" __global__ void __launch_bounds__(64) bug_dynamic_bounds(float *y, const float *x, int past)
{
	DYNAMIC_SHARED(float, tile);
	tile[threadIdx.x + past] = x[threadIdx.x];
	__syncthreads();
	y[threadIdx.x] = tile[threadIdx.x];
}

extern "C" __global__ void __launch_bounds__(64) bug_global_bounds(float *y, const float *x, int past)
{
	y[threadIdx.x + past] = x[threadIdx.x];
}

extern "C" __global__ void __launch_bounds__(64) bug_read_only(float *y, float *x)
{
	x[threadIdx.x] = y[threadIdx.x];
}

extern "C" __global__ void __launch_bounds__(32) bug_misaligned(float *y, const float *x, int by)
{
	const float4 v = *(const float4 *)(x + by);
	y[threadIdx.x] = v.x + v.w;
}

extern "C" __global__ void __launch_bounds__(64) bug_divergent_shuffle(float *y, const float *x)
{
	float s = x[threadIdx.x];
	if (threadIdx.x % 32 < 20)
		s += __shfl_down_sync(0xFFFFFFFFu, s, 1);
	y[threadIdx.x] = s;
}

extern "C" __global__ void __launch_bounds__(32) bug_shuffle_outside(float *y, const float *x)
{
	float s = x[threadIdx.x];
	if (threadIdx.x < 16)
		s += __shfl_down_sync(0x0000FFFFu, s, 1);
	y[threadIdx.x] = s;
}

extern "C" __global__ void __launch_bounds__(64) bug_divergent_barrier(float *y, const float *x)
{
	if (threadIdx.x < 40)
		__syncthreads();
	y[threadIdx.x] = x[threadIdx.x];
}

extern "C" __global__ void __launch_bounds__(64) bug_two_barriers(float *y, const float *x)
{
	if (threadIdx.x < 32) {
		y[threadIdx.x] = x[threadIdx.x];
		__syncthreads();
	} else {
		__syncthreads();
		y[threadIdx.x] = x[threadIdx.x] + y[threadIdx.x - 32];
	}
}

extern "C" __global__ void __launch_bounds__(32) bug_blocks_race(float *y, const float *x)
{
	y[threadIdx.x] = x[threadIdx.x] + blockIdx.x;
}

extern "C" __global__ void __launch_bounds__(32) bug_blocks_read_write(float *y, const float *x)
{
	const float v = y[0];
	__syncthreads();
	if (threadIdx.x == 0) {
		y[1 + blockIdx.x] = v + x[0];
		if (blockIdx.x == 1)
			y[0] = v + 1;
	}
}

extern "C" __global__ void __launch_bounds__(32) bug_stale_shared(float *y, const float *x)
{
	__shared__ float tile[32];
	if (blockIdx.x == 0)
		tile[threadIdx.x] = x[threadIdx.x];
	y[blockIdx.x * 32 + threadIdx.x] = tile[threadIdx.x];
}

extern "C" __global__ void __launch_bounds__(32) bug_endless(volatile int *y)
{
	while (y[0] == 0)
		;
}

extern "C" __global__ void __launch_bounds__(32) bug_wild(float *y, int64_t far)
{
	y[far] = 1;
}
