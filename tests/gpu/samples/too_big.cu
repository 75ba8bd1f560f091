/* More shared memory than sm_86 gives a block (it would do on sm_90).
 * dynamic shared: k_too_big 110000 */
extern "C" __global__ void __launch_bounds__(64) k_too_big(float *y)
{
	extern __shared__ float tile[];
	tile[threadIdx.x] = y[threadIdx.x];
	__syncthreads();
	y[threadIdx.x] = tile[63 - threadIdx.x];
}
