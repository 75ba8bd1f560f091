/* What runtime/stint_gpu_api.h declares by itself is what the toolkit's headers declare: every
 * function takes and returns what we think (the compiler says so), every value and layout is the
 * same.
 */
#include <stdio.h>
#ifndef WITH_CUDA
int main(void)
{
	printf("no CUDA headers here\n");
	return 77;
}
#else
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <cublasLt.h>
#include <cuda.h>
#include <cudnn.h>
#include <nvrtc.h>

/* Now the lists are about the real types. */
#define GPU_REAL_TYPES
#include "runtime/stint_gpu_api.h"

/* The real function is what we take it for, to the last parameter. */
#define SAME(type, name, parameters)                                                               \
	_Static_assert(__builtin_types_compatible_p(__typeof__(&name), type(*) parameters), #name);
GPU_DRIVER(SAME)
GPU_DRIVER_NEWER(SAME)
GPU_NVRTC(SAME)
GPU_CUBLASLT(SAME)
GPU_CUDNN(SAME)

static void test_values(void **state)
{
	(void)state;
#define VALUE(ours, value, theirs) assert_int_equal(GPU_##ours, theirs);
	GPU_VALUES(VALUE)
	assert_int_equal(CUDA_SUCCESS, 0);
	assert_int_equal(NVRTC_SUCCESS, 0);
	assert_int_equal(CUBLAS_STATUS_SUCCESS, 0);
	assert_int_equal(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, GPU_LT_PREF_ALIGN_A + 1);
	assert_int_equal(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, GPU_LT_PREF_ALIGN_A + 2);
	assert_int_equal(CUBLASLT_REDUCTION_SCHEME_NONE, 0);
}

/* As stint_gpu_api.h has them. */
struct our_algo {
	uint64_t data[8];
};
struct our_result {
	struct our_algo algo;
	size_t workspace;
	int state;
	float waves;
	int reserved[4];
};

static void test_layouts(void **state)
{
	(void)state;
	assert_int_equal(sizeof(struct our_algo), sizeof(cublasLtMatmulAlgo_t));
	assert_int_equal(STINT_GPU_ALGO, sizeof(cublasLtMatmulAlgo_t));
	assert_int_equal(sizeof(struct our_result), sizeof(cublasLtMatmulHeuristicResult_t));
	assert_int_equal(
		offsetof(struct our_result, algo), offsetof(cublasLtMatmulHeuristicResult_t, algo));
	assert_int_equal(offsetof(struct our_result, workspace),
		offsetof(cublasLtMatmulHeuristicResult_t, workspaceSize));
	assert_int_equal(offsetof(struct our_result, state),
		offsetof(cublasLtMatmulHeuristicResult_t, state));
	assert_int_equal(offsetof(struct our_result, waves),
		offsetof(cublasLtMatmulHeuristicResult_t, wavesCount));
	assert_int_equal(sizeof(stint_gpu_ptr), sizeof(CUdeviceptr));
	assert_int_equal(sizeof(CUdevice), sizeof(int));
	assert_int_equal(sizeof(CUresult), sizeof(int));
	assert_int_equal(sizeof(nvrtcResult), sizeof(int));
	assert_int_equal(sizeof(cublasStatus_t), sizeof(int));
	assert_int_equal(sizeof(CUstream), sizeof(void *));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_values),
		cmocka_unit_test(test_layouts),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
#endif
