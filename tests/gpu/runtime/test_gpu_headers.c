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

/* Names are those of the driver's symbols, each with the version that it has: no macro makes a
 * newer one of it. */
#define __CUDA_API_VERSION_INTERNAL
#include <cublasLt.h>
#include <cuda.h>
#include <cudnn.h>
#include <nvrtc.h>
#if __has_include(<nccl.h>)
#include <nccl.h>
#define WITH_NCCL
#else /* it is not part of the toolkit */
typedef int ncclResult_t, ncclDataType_t, ncclRedOp_t;
typedef void *ncclComm_t;
typedef struct {
	char internal[128];
} ncclUniqueId;
enum { ncclSum = 0, ncclUint8 = 1, ncclFloat32 = 7, ncclFloat64 = 8, ncclInProgress = 7 };
#endif

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
GPU_CUDNN_NEWER(SAME)
#ifdef WITH_NCCL
GPU_NCCL(SAME)
#endif

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
	assert_int_equal(sizeof(ncclUniqueId), 128);
}

/* What stint_gpu_api.h makes an int or a void * of; and values of attributes, which are given and
 * asked for by their address. */
static void test_sizes(void **state)
{
	static const size_t ints[] = {sizeof(CUresult), sizeof(CUdevice),
		sizeof(CUdevice_attribute), sizeof(CUpointer_attribute),
		sizeof(CUfunction_attribute), sizeof(CUstreamCaptureMode), sizeof(CUjit_option),
		sizeof(CUlibraryOption), sizeof(nvrtcResult), sizeof(cublasStatus_t),
		sizeof(cublasComputeType_t), sizeof(cudaDataType_t),
		sizeof(cublasLtMatmulDescAttributes_t), sizeof(cublasLtMatrixLayoutAttribute_t),
		sizeof(cublasLtMatmulPreferenceAttributes_t),
		sizeof(cublasLtMatmulAlgoConfigAttributes_t), sizeof(cudnnStatus_t),
		sizeof(cudnnBackendDescriptorType_t), sizeof(cudnnBackendAttributeName_t),
		sizeof(cudnnBackendAttributeType_t), sizeof(ncclResult_t), sizeof(ncclDataType_t),
		sizeof(ncclRedOp_t)};
	static const size_t values[] = {sizeof(CUmemorytype), sizeof(cublasOperation_t),
		sizeof(cublasLtEpilogue_t), sizeof(cublasLtReductionScheme_t),
		sizeof(cudnnDataType_t), sizeof(cudnnConvolutionMode_t),
		sizeof(cudnnBackendHeurMode_t), sizeof(cudnnBackendNumericalNote_t)};
	static const size_t pointers[] = {sizeof(CUcontext), sizeof(CUstream), sizeof(CUevent),
		sizeof(CUgraph), sizeof(CUgraphNode), sizeof(CUgraphExec), sizeof(CUlibrary),
		sizeof(CUkernel), sizeof(CUfunction), sizeof(nvrtcProgram),
		sizeof(cublasLtHandle_t), sizeof(cublasLtMatmulDesc_t),
		sizeof(cublasLtMatrixLayout_t), sizeof(cublasLtMatmulPreference_t),
		sizeof(cudaStream_t), sizeof(cudnnHandle_t), sizeof(cudnnBackendDescriptor_t),
		sizeof(ncclComm_t)};
	(void)state;
	for (size_t i = 0; i < sizeof ints / sizeof *ints; i++)
		assert_int_equal(ints[i], sizeof(int));
	for (size_t i = 0; i < sizeof values / sizeof *values; i++)
		assert_int_equal(values[i], sizeof(int));
	for (size_t i = 0; i < sizeof pointers / sizeof *pointers; i++)
		assert_int_equal(pointers[i], sizeof(void *));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_values),
		cmocka_unit_test(test_layouts),
		cmocka_unit_test(test_sizes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
#endif
