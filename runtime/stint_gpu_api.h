/* SPDX-License-Identifier: MIT-0 */
/* Private to stint_gpu*.c: what they need of NVIDIA's libraries, declared here because no CUDA
 * header may be needed to build, and the inside of a stint_gpu. A test compares all of it with the
 * real headers where the toolkit is installed.
 *
 * Handles are void *, enums int. Entry points carry the suffix of the version declared here:
 * drivers keep old versions for good, so that these exist in every driver since CUDA 12.0. */
#ifndef STINT_GPU_API_H
#define STINT_GPU_API_H

#include "stint_cache.h"
#include "stint_gpu.h"

/* NVIDIA's names of types, as far as the lists below use them. The test has the real ones. */
#ifndef GPU_REAL_TYPES
typedef int CUresult, CUdevice, CUdevice_attribute, CUpointer_attribute, CUfunction_attribute;
typedef int CUstreamCaptureMode, CUjit_option, CUlibraryOption;
typedef unsigned long long CUdeviceptr;
typedef void *CUcontext, *CUstream, *CUevent, *CUgraph, *CUgraphNode, *CUgraphExec;
typedef void *CUlibrary, *CUkernel, *CUfunction;
typedef int nvrtcResult;
typedef void *nvrtcProgram;
typedef int cublasStatus_t, cublasComputeType_t, cudaDataType_t, cublasLtMatmulDescAttributes_t;
typedef int cublasLtMatrixLayoutAttribute_t, cublasLtMatmulPreferenceAttributes_t;
typedef int cublasLtMatmulAlgoConfigAttributes_t;
typedef void *cublasLtHandle_t, *cublasLtMatmulDesc_t, *cublasLtMatrixLayout_t;
typedef void *cublasLtMatmulPreference_t, *cudaStream_t;
typedef struct {
	uint64_t data[8];
} cublasLtMatmulAlgo_t;
typedef struct {
	cublasLtMatmulAlgo_t algo;
	size_t workspaceSize;
	cublasStatus_t state;
	float wavesCount;
	int reserved[4];
} cublasLtMatmulHeuristicResult_t;
typedef int cudnnStatus_t, cudnnBackendDescriptorType_t, cudnnBackendAttributeName_t;
typedef int cudnnBackendAttributeType_t;
typedef void *cudnnHandle_t, *cudnnBackendDescriptor_t;
typedef int ncclResult_t, ncclDataType_t, ncclRedOp_t;
typedef void *ncclComm_t;
typedef struct {
	char internal[128];
} ncclUniqueId;
#endif

/* X(type, name, (parameters)) */
/* clang-format off */
#define GPU_DRIVER(X) \
	X(CUresult, cuInit, (unsigned flags)) \
	X(CUresult, cuDriverGetVersion, (int *version)) \
	X(CUresult, cuGetErrorName, (CUresult error, const char **out)) \
	X(CUresult, cuGetErrorString, (CUresult error, const char **out)) \
	X(CUresult, cuDeviceGetCount, (int *count)) \
	X(CUresult, cuDeviceGet, (CUdevice *device, int ordinal)) \
	X(CUresult, cuDeviceGetName, (char *name, int size, CUdevice device)) \
	X(CUresult, cuDeviceGetAttribute, (int *out, CUdevice_attribute what, CUdevice device)) \
	X(CUresult, cuDeviceTotalMem_v2, (size_t *bytes, CUdevice device)) \
	X(CUresult, cuDeviceGetPCIBusId, (char *id, int size, CUdevice device)) \
	X(CUresult, cuDevicePrimaryCtxRetain, (CUcontext *out, CUdevice device)) \
	X(CUresult, cuDevicePrimaryCtxRelease_v2, (CUdevice device)) \
	X(CUresult, cuCtxPushCurrent_v2, (CUcontext context)) \
	X(CUresult, cuCtxPopCurrent_v2, (CUcontext *context)) \
	X(CUresult, cuMemGetInfo_v2, (size_t *free_bytes, size_t *total)) \
	X(CUresult, cuMemAlloc_v2, (CUdeviceptr *out, size_t bytes)) \
	X(CUresult, cuMemFree_v2, (CUdeviceptr p)) \
	X(CUresult, cuMemHostAlloc, (void **out, size_t bytes, unsigned flags)) \
	X(CUresult, cuMemFreeHost, (void *p)) \
	X(CUresult, cuPointerGetAttribute, (void *out, CUpointer_attribute what, CUdeviceptr p)) \
	X(CUresult, cuMemcpyHtoDAsync_v2, (CUdeviceptr to, const void *from, size_t bytes, CUstream stream)) \
	X(CUresult, cuMemcpyDtoHAsync_v2, (void *to, CUdeviceptr from, size_t bytes, CUstream stream)) \
	X(CUresult, cuMemcpyDtoDAsync_v2, (CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)) \
	X(CUresult, cuMemsetD8Async, (CUdeviceptr to, unsigned char byte, size_t bytes, CUstream stream)) \
	X(CUresult, cuStreamCreate, (CUstream *out, unsigned flags)) \
	X(CUresult, cuStreamDestroy_v2, (CUstream stream)) \
	X(CUresult, cuStreamSynchronize, (CUstream stream)) \
	X(CUresult, cuStreamQuery, (CUstream stream)) \
	X(CUresult, cuStreamWaitEvent, (CUstream stream, CUevent event, unsigned flags)) \
	X(CUresult, cuStreamBeginCapture_v2, (CUstream stream, CUstreamCaptureMode mode)) \
	X(CUresult, cuStreamEndCapture, (CUstream stream, CUgraph *graph)) \
	X(CUresult, cuEventCreate, (CUevent *out, unsigned flags)) \
	X(CUresult, cuEventDestroy_v2, (CUevent event)) \
	X(CUresult, cuEventRecord, (CUevent event, CUstream stream)) \
	X(CUresult, cuEventSynchronize, (CUevent event)) \
	X(CUresult, cuEventElapsedTime, (float *ms, CUevent from, CUevent to)) \
	X(CUresult, cuGraphGetNodes, (CUgraph graph, CUgraphNode *nodes, size_t *count)) \
	X(CUresult, cuGraphInstantiateWithFlags, (CUgraphExec *out, CUgraph graph, unsigned long long flags)) \
	X(CUresult, cuGraphUpload, (CUgraphExec exec, CUstream stream)) \
	X(CUresult, cuGraphLaunch, (CUgraphExec exec, CUstream stream)) \
	X(CUresult, cuGraphExecDestroy, (CUgraphExec exec)) \
	X(CUresult, cuGraphDestroy, (CUgraph graph)) \
	X(CUresult, cuLibraryLoadData, (CUlibrary *out, const void *code, CUjit_option *jit, void **jit_values, unsigned njit, CUlibraryOption *option, void **values, unsigned noption)) \
	X(CUresult, cuLibraryUnload, (CUlibrary library)) \
	X(CUresult, cuLibraryGetKernel, (CUkernel *out, CUlibrary library, const char *name)) \
	X(CUresult, cuKernelGetFunction, (CUfunction *out, CUkernel kernel)) \
	X(CUresult, cuFuncGetAttribute, (int *out, CUfunction_attribute what, CUfunction function)) \
	X(CUresult, cuFuncSetAttribute, (CUfunction function, CUfunction_attribute what, int value)) \
	X(CUresult, cuLaunchKernel, (CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared, CUstream stream, void **args, void **extra))
/* Newer than CUDA 12.0: used where they are. */
#define GPU_DRIVER_NEWER(X) \
	X(CUresult, cuFuncLoad, (CUfunction function))

#define GPU_NVRTC(X) \
	X(const char *, nvrtcGetErrorString, (nvrtcResult error)) \
	X(nvrtcResult, nvrtcVersion, (int *major, int *minor)) \
	X(nvrtcResult, nvrtcCreateProgram, (nvrtcProgram *out, const char *text, const char *name, int nheader, const char *const *header, const char *const *include)) \
	X(nvrtcResult, nvrtcDestroyProgram, (nvrtcProgram *program)) \
	X(nvrtcResult, nvrtcCompileProgram, (nvrtcProgram program, int noption, const char *const *option)) \
	X(nvrtcResult, nvrtcGetCUBINSize, (nvrtcProgram program, size_t *bytes)) \
	X(nvrtcResult, nvrtcGetCUBIN, (nvrtcProgram program, char *cubin)) \
	X(nvrtcResult, nvrtcGetProgramLogSize, (nvrtcProgram program, size_t *bytes)) \
	X(nvrtcResult, nvrtcGetProgramLog, (nvrtcProgram program, char *log))

#define GPU_CUBLASLT(X) \
	X(size_t, cublasLtGetVersion, (void)) \
	X(const char *, cublasLtGetStatusString, (cublasStatus_t status)) \
	X(cublasStatus_t, cublasLtCreate, (cublasLtHandle_t *out)) \
	X(cublasStatus_t, cublasLtDestroy, (cublasLtHandle_t handle)) \
	X(cublasStatus_t, cublasLtMatmulDescCreate, (cublasLtMatmulDesc_t *out, cublasComputeType_t compute, cudaDataType_t scale)) \
	X(cublasStatus_t, cublasLtMatmulDescDestroy, (cublasLtMatmulDesc_t desc)) \
	X(cublasStatus_t, cublasLtMatmulDescSetAttribute, (cublasLtMatmulDesc_t desc, cublasLtMatmulDescAttributes_t what, const void *value, size_t bytes)) \
	X(cublasStatus_t, cublasLtMatrixLayoutCreate, (cublasLtMatrixLayout_t *out, cudaDataType_t type, uint64_t rows, uint64_t cols, int64_t ld)) \
	X(cublasStatus_t, cublasLtMatrixLayoutDestroy, (cublasLtMatrixLayout_t layout)) \
	X(cublasStatus_t, cublasLtMatrixLayoutSetAttribute, (cublasLtMatrixLayout_t layout, cublasLtMatrixLayoutAttribute_t what, const void *value, size_t bytes)) \
	X(cublasStatus_t, cublasLtMatmulPreferenceCreate, (cublasLtMatmulPreference_t *out)) \
	X(cublasStatus_t, cublasLtMatmulPreferenceDestroy, (cublasLtMatmulPreference_t preference)) \
	X(cublasStatus_t, cublasLtMatmulPreferenceSetAttribute, (cublasLtMatmulPreference_t preference, cublasLtMatmulPreferenceAttributes_t what, const void *value, size_t bytes)) \
	X(cublasStatus_t, cublasLtMatmulAlgoGetHeuristic, (cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d, cublasLtMatmulPreference_t preference, int asked, cublasLtMatmulHeuristicResult_t *result, int *got)) \
	X(cublasStatus_t, cublasLtMatmulAlgoCheck, (cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d, const cublasLtMatmulAlgo_t *algo, cublasLtMatmulHeuristicResult_t *result)) \
	X(cublasStatus_t, cublasLtMatmulAlgoConfigGetAttribute, (const cublasLtMatmulAlgo_t *algo, cublasLtMatmulAlgoConfigAttributes_t what, void *value, size_t bytes, size_t *written)) \
	X(cublasStatus_t, cublasLtMatmul, (cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, const void *alpha, const void *a, cublasLtMatrixLayout_t la, const void *b, cublasLtMatrixLayout_t lb, const void *beta, const void *c, cublasLtMatrixLayout_t lc, void *d, cublasLtMatrixLayout_t ld, const cublasLtMatmulAlgo_t *algo, void *workspace, size_t bytes, cudaStream_t stream))

#define GPU_CUDNN(X) \
	X(size_t, cudnnGetVersion, (void)) \
	X(const char *, cudnnGetErrorString, (cudnnStatus_t status)) \
	X(cudnnStatus_t, cudnnCreate, (cudnnHandle_t *out)) \
	X(cudnnStatus_t, cudnnDestroy, (cudnnHandle_t handle)) \
	X(cudnnStatus_t, cudnnSetStream, (cudnnHandle_t handle, cudaStream_t stream)) \
	X(cudnnStatus_t, cudnnBackendCreateDescriptor, (cudnnBackendDescriptorType_t type, cudnnBackendDescriptor_t *out)) \
	X(cudnnStatus_t, cudnnBackendDestroyDescriptor, (cudnnBackendDescriptor_t d)) \
	X(cudnnStatus_t, cudnnBackendFinalize, (cudnnBackendDescriptor_t d)) \
	X(cudnnStatus_t, cudnnBackendSetAttribute, (cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t what, cudnnBackendAttributeType_t type, int64_t count, const void *values)) \
	X(cudnnStatus_t, cudnnBackendGetAttribute, (cudnnBackendDescriptor_t const d, cudnnBackendAttributeName_t what, cudnnBackendAttributeType_t type, int64_t asked, int64_t *count, void *values)) \
	X(cudnnStatus_t, cudnnBackendExecute, (cudnnHandle_t handle, cudnnBackendDescriptor_t plan, cudnnBackendDescriptor_t pack))
/* Newer than cuDNN 9.0, and not asked of stand-ins for it. */
#define GPU_CUDNN_NEWER(X) \
	X(size_t, cudnnGetCudartVersion, (void)) \
	X(void, cudnnGetLastErrorString, (char *message, size_t room))

#define GPU_NCCL(X) \
	X(ncclResult_t, ncclGetVersion, (int *version)) \
	X(const char *, ncclGetErrorString, (ncclResult_t result)) \
	X(const char *, ncclGetLastError, (ncclComm_t comm)) \
	X(ncclResult_t, ncclGetUniqueId, (ncclUniqueId *out)) \
	X(ncclResult_t, ncclCommInitRank, (ncclComm_t *out, int n, ncclUniqueId id, int rank)) \
	X(ncclResult_t, ncclCommDestroy, (ncclComm_t comm)) \
	X(ncclResult_t, ncclCommAbort, (ncclComm_t comm)) \
	X(ncclResult_t, ncclCommGetAsyncError, (ncclComm_t comm, ncclResult_t *out)) \
	X(ncclResult_t, ncclGroupStart, (void)) \
	X(ncclResult_t, ncclGroupEnd, (void)) \
	X(ncclResult_t, ncclSend, (const void *from, size_t count, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream)) \
	X(ncclResult_t, ncclRecv, (void *to, size_t count, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream)) \
	X(ncclResult_t, ncclAllReduce, (const void *from, void *to, size_t count, ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream))
/* clang-format on */

#define GPU_MEMBER(type, name, parameters) type(*name) parameters;
struct gpu_driver {
	GPU_DRIVER(GPU_MEMBER) GPU_DRIVER_NEWER(GPU_MEMBER)
};
struct gpu_nvrtc {
	GPU_NVRTC(GPU_MEMBER)
};
struct gpu_cublaslt {
	GPU_CUBLASLT(GPU_MEMBER)
};
struct gpu_cudnn {
	GPU_CUDNN(GPU_MEMBER) GPU_CUDNN_NEWER(GPU_MEMBER)
};
struct gpu_nccl {
	GPU_NCCL(GPU_MEMBER)
};
#undef GPU_MEMBER

/* Values of NVIDIA's enums, by X(ours, value, theirs). */
/* clang-format off */
#define GPU_VALUES(X) \
	X(CU_OUT_OF_MEMORY, 2, CUDA_ERROR_OUT_OF_MEMORY) \
	X(CU_NOT_READY, 600, CUDA_ERROR_NOT_READY) \
	X(CU_STREAM_ALONE, 1, CU_STREAM_NON_BLOCKING) \
	X(CU_CAPTURE_RELAXED, 2, CU_STREAM_CAPTURE_MODE_RELAXED) \
	X(CU_EVENT_PLAIN, 0, CU_EVENT_DEFAULT) \
	X(CU_EVENT_UNTIMED, 2, CU_EVENT_DISABLE_TIMING) \
	X(CU_MAJOR, 75, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) \
	X(CU_MINOR, 76, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR) \
	X(CU_SM, 16, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT) \
	X(CU_CLOCK, 13, CU_DEVICE_ATTRIBUTE_CLOCK_RATE) \
	X(CU_MEMORY_CLOCK, 36, CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE) \
	X(CU_BUS, 37, CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH) \
	X(CU_L2, 38, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE) \
	X(CU_SHARED_BLOCK, 97, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN) \
	X(CU_SHARED_SM, 81, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR) \
	X(CU_REGISTERS_SM, 82, CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR) \
	X(CU_THREADS_SM, 39, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR) \
	X(CU_FUNC_MAX_THREADS, 0, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK) \
	X(CU_FUNC_SHARED, 1, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES) \
	X(CU_FUNC_LOCAL, 3, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES) \
	X(CU_FUNC_REGISTERS, 4, CU_FUNC_ATTRIBUTE_NUM_REGS) \
	X(CU_FUNC_DYNAMIC, 8, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES) \
	X(CU_POINTER_MEMORY, 2, CU_POINTER_ATTRIBUTE_MEMORY_TYPE) \
	X(CU_POINTER_ORDINAL, 9, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL) \
	X(CU_POINTER_START, 11, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR) \
	X(CU_POINTER_BYTES, 12, CU_POINTER_ATTRIBUTE_RANGE_SIZE) \
	X(CU_ON_DEVICE, 2, CU_MEMORYTYPE_DEVICE) \
	X(RTC_OUT_OF_MEMORY, 1, NVRTC_ERROR_OUT_OF_MEMORY) \
	X(RTC_BAD_OPTION, 5, NVRTC_ERROR_INVALID_OPTION) \
	X(RTC_BAD_TEXT, 6, NVRTC_ERROR_COMPILATION) \
	X(LT_NO_MEMORY, 3, CUBLAS_STATUS_ALLOC_FAILED) \
	X(LT_NOT_SUPPORTED, 15, CUBLAS_STATUS_NOT_SUPPORTED) \
	X(LT_COMPUTE_32F, 68, CUBLAS_COMPUTE_32F) \
	X(LT_COMPUTE_TF32, 77, CUBLAS_COMPUTE_32F_FAST_TF32) \
	X(LT_R_32F, 0, CUDA_R_32F) \
	X(LT_R_16BF, 14, CUDA_R_16BF) \
	X(LT_R_16F, 2, CUDA_R_16F) \
	X(LT_OP_N, 0, CUBLAS_OP_N) \
	X(LT_OP_T, 1, CUBLAS_OP_T) \
	X(LT_TRANSA, 3, CUBLASLT_MATMUL_DESC_TRANSA) \
	X(LT_TRANSB, 4, CUBLASLT_MATMUL_DESC_TRANSB) \
	X(LT_EPILOGUE, 7, CUBLASLT_MATMUL_DESC_EPILOGUE) \
	X(LT_BIAS, 8, CUBLASLT_MATMUL_DESC_BIAS_POINTER) \
	X(LT_BIAS_TYPE, 26, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE) \
	X(LT_EPILOGUE_BIAS, 4, CUBLASLT_EPILOGUE_BIAS) \
	X(LT_EPILOGUE_BGRADA, 256, CUBLASLT_EPILOGUE_BGRADA) \
	X(LT_EPILOGUE_BGRADB, 512, CUBLASLT_EPILOGUE_BGRADB) \
	X(LT_BATCH, 5, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT) \
	X(LT_STEP, 6, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET) \
	X(LT_PREF_WORKSPACE, 1, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES) \
	X(LT_PREF_REDUCTION, 3, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK) \
	X(LT_PREF_ALIGN_A, 5, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES) \
	X(LT_PREF_ALIGN_D, 8, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES) \
	X(LT_CONFIG_ID, 0, CUBLASLT_ALGO_CONFIG_ID) \
	X(LT_CONFIG_TILE, 1, CUBLASLT_ALGO_CONFIG_TILE_ID) \
	X(LT_CONFIG_SPLIT, 2, CUBLASLT_ALGO_CONFIG_SPLITK_NUM) \
	X(LT_CONFIG_REDUCTION, 3, CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME) \
	X(LT_CONFIG_STAGES, 6, CUBLASLT_ALGO_CONFIG_STAGES_ID) \
	X(LT_REDUCTION_COMPUTE, 2, CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE) \
	X(DNN_FLOAT, 0, CUDNN_DATA_FLOAT) \
	X(DNN_HALF, 2, CUDNN_DATA_HALF) \
	X(DNN_BFLOAT16, 9, CUDNN_DATA_BFLOAT16) \
	X(DNN_CROSS_CORRELATION, 1, CUDNN_CROSS_CORRELATION) \
	X(DNN_T_HANDLE, 0, CUDNN_TYPE_HANDLE) \
	X(DNN_T_DATA_TYPE, 1, CUDNN_TYPE_DATA_TYPE) \
	X(DNN_T_INT64, 3, CUDNN_TYPE_INT64) \
	X(DNN_T_FLOAT, 4, CUDNN_TYPE_FLOAT) \
	X(DNN_T_POINTER, 6, CUDNN_TYPE_VOID_PTR) \
	X(DNN_T_CONV_MODE, 7, CUDNN_TYPE_CONVOLUTION_MODE) \
	X(DNN_T_HEUR_MODE, 8, CUDNN_TYPE_HEUR_MODE) \
	X(DNN_T_NOTE, 11, CUDNN_TYPE_NUMERICAL_NOTE) \
	X(DNN_T_DESCRIPTOR, 15, CUDNN_TYPE_BACKEND_DESCRIPTOR) \
	X(DNN_T_CHAR, 24, CUDNN_TYPE_CHAR) \
	X(DNN_CONV, 1, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR) \
	X(DNN_ENGINE, 2, CUDNN_BACKEND_ENGINE_DESCRIPTOR) \
	X(DNN_CONFIG, 3, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR) \
	X(DNN_HEUR, 4, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR) \
	X(DNN_PLAN, 5, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR) \
	X(DNN_FORWARD, 10, CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR) \
	X(DNN_WEIGHT, 11, CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR) \
	X(DNN_DATA, 12, CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR) \
	X(DNN_GRAPH, 15, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR) \
	X(DNN_PACK, 16, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR) \
	X(DNN_TENSOR, 17, CUDNN_BACKEND_TENSOR_DESCRIPTOR) \
	X(DNN_DEVICE, 38, CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR) \
	X(DNN_CONV_TYPE, 100, CUDNN_ATTR_CONVOLUTION_COMP_TYPE) \
	X(DNN_CONV_MODE, 101, CUDNN_ATTR_CONVOLUTION_CONV_MODE) \
	X(DNN_CONV_DILATIONS, 102, CUDNN_ATTR_CONVOLUTION_DILATIONS) \
	X(DNN_CONV_STRIDES, 103, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES) \
	X(DNN_CONV_AFTER, 104, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS) \
	X(DNN_CONV_BEFORE, 105, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS) \
	X(DNN_CONV_AXES, 106, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS) \
	X(DNN_HEUR_MODE, 200, CUDNN_ATTR_ENGINEHEUR_MODE) \
	X(DNN_HEUR_GRAPH, 201, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH) \
	X(DNN_HEUR_RESULTS, 202, CUDNN_ATTR_ENGINEHEUR_RESULTS) \
	X(DNN_HEUR_DEVICE, 204, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP) \
	X(DNN_HEUR_A, 3, CUDNN_HEUR_MODE_A) \
	X(DNN_HEUR_FALLBACK, 2, CUDNN_HEUR_MODE_FALLBACK) \
	X(DNN_CONFIG_ENGINE, 300, CUDNN_ATTR_ENGINECFG_ENGINE) \
	X(DNN_PLAN_HANDLE, 400, CUDNN_ATTR_EXECUTION_PLAN_HANDLE) \
	X(DNN_PLAN_CONFIG, 401, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG) \
	X(DNN_PLAN_WORKSPACE, 402, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE) \
	X(DNN_PLAN_DEVICE, 407, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP) \
	X(DNN_FORWARD_ALPHA, 700, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA) \
	X(DNN_FORWARD_BETA, 701, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA) \
	X(DNN_FORWARD_CONV, 702, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC) \
	X(DNN_FORWARD_W, 703, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W) \
	X(DNN_FORWARD_X, 704, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X) \
	X(DNN_FORWARD_Y, 705, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y) \
	X(DNN_DATA_ALPHA, 706, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA) \
	X(DNN_DATA_BETA, 707, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA) \
	X(DNN_DATA_CONV, 708, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC) \
	X(DNN_DATA_W, 709, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W) \
	X(DNN_DATA_X, 710, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX) \
	X(DNN_DATA_Y, 711, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY) \
	X(DNN_WEIGHT_ALPHA, 712, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA) \
	X(DNN_WEIGHT_BETA, 713, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA) \
	X(DNN_WEIGHT_CONV, 714, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC) \
	X(DNN_WEIGHT_W, 715, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW) \
	X(DNN_WEIGHT_X, 716, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X) \
	X(DNN_WEIGHT_Y, 717, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY) \
	X(DNN_GRAPH_HANDLE, 800, CUDNN_ATTR_OPERATIONGRAPH_HANDLE) \
	X(DNN_GRAPH_OPS, 801, CUDNN_ATTR_OPERATIONGRAPH_OPS) \
	X(DNN_TENSOR_ALIGNMENT, 900, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT) \
	X(DNN_TENSOR_TYPE, 901, CUDNN_ATTR_TENSOR_DATA_TYPE) \
	X(DNN_TENSOR_DIMS, 902, CUDNN_ATTR_TENSOR_DIMENSIONS) \
	X(DNN_TENSOR_STRIDES, 903, CUDNN_ATTR_TENSOR_STRIDES) \
	X(DNN_TENSOR_ID, 906, CUDNN_ATTR_TENSOR_UNIQUE_ID) \
	X(DNN_PACK_IDS, 1000, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS) \
	X(DNN_PACK_POINTERS, 1001, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS) \
	X(DNN_PACK_WORKSPACE, 1003, CUDNN_ATTR_VARIANT_PACK_WORKSPACE) \
	X(DNN_ENGINE_INDEX, 1301, CUDNN_ATTR_ENGINE_GLOBAL_INDEX) \
	X(DNN_ENGINE_NOTES, 1303, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE) \
	X(DNN_NOTE_TENSOR_CORE, 0, CUDNN_NUMERICAL_NOTE_TENSOR_CORE) \
	X(DNN_NOTE_DOWN_CONVERT, 1, CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS) \
	X(DNN_NOTE_REDUCED, 2, CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION) \
	X(DNN_NOTE_FFT, 3, CUDNN_NUMERICAL_NOTE_FFT) \
	X(DNN_NOTE_NONDETERMINISTIC, 4, CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC) \
	X(DNN_NOTE_WINOGRAD, 5, CUDNN_NUMERICAL_NOTE_WINOGRAD) \
	X(DNN_NOTE_WINOGRAD_13, 8, CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_13x13) \
	X(DNN_DEVICE_JSON, 2702, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION) \
	X(NCCL_UINT8, 1, ncclUint8) \
	X(NCCL_FLOAT, 7, ncclFloat32) \
	X(NCCL_DOUBLE, 8, ncclFloat64) \
	X(NCCL_SUM, 0, ncclSum) \
	X(NCCL_IN_PROGRESS, 7, ncclInProgress)
/* clang-format on */
#define GPU_VALUE(ours, value, theirs) GPU_##ours = value,
enum gpu_value { GPU_VALUES(GPU_VALUE) };
#undef GPU_VALUE

/* --- The inside --- */

enum { GPU_STREAMS = 5, GPU_ITEMS = 16 };

struct gpu_loaded {
	void *handle;
	char *path;
	int version;
};

struct stint_gpu {
	char message[1024];
	char *log;
	char *folders; /* given; NULL: STINT_CUDA_LIBS */
	char *cache;   /* folder; NULL: none */
	struct gpu_loaded library[STINT_GPU_LIBRARIES];
	struct gpu_driver cu;
	struct gpu_nvrtc rtc;
	struct gpu_cublaslt lt;
	struct gpu_cudnn dnn;
	struct gpu_nccl nccl;

	int open, device;
	void *context, *stream[GPU_STREAMS];
	void *turn[GPU_STREAMS]; /* events of stint_gpu_behind; NULL: not used yet */
	int marks;               /* numbers given out */
	struct stint_gpu_facts facts;
	stint_gpu_ptr arena, owned;
	int capturing;
	void *lt_handle, *dnn_handle;
	void *world;     /* NCCL's communicator */
	void *dnn_paper; /* a device that is not there, for which cuDNN plans (stint_gpu_paper.c) */
	void **module, **event, **pinned;
	int nmodule, nevent, npinned;
	struct stint_gpu_item item[GPU_ITEMS];
	int nitem;
	size_t free_last;
	double ms_last; /* when time was last looked at */
};

/* Records a message and returns code. */
int stint_gpu_fail(stint_gpu *g, int code, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* STINT_OK for result 0, else the driver's words. */
int stint_gpu_check(stint_gpu *g, int result, const char *what);
/* What cuDNN says of its last error besides, " (in parentheses)", or "". */
const char *stint_gpu_cudnn_more(const stint_gpu *g, char buf[256]);
/* Loads cuDNN and what it asks for. */
int stint_gpu_need_cudnn(stint_gpu *g);
/* The context is current between enter and leave; leave returns rc. */
int stint_gpu_enter(stint_gpu *g);
int stint_gpu_leave(stint_gpu *g, int rc);
/* Milliseconds since some moment. */
double stint_gpu_ms(void);
/* stint_gpu_memory_note between enter and leave; `less` bytes are the arena's own. */
int stint_gpu_measure(stint_gpu *g, const char *what, size_t less);
/* A vector of handles grown by one; NULL: no memory. */
void **stint_gpu_grow(void ***list, int *count);

/* Paths of a library's files where it may be, best first, in one allocation that ends with an empty
 * one: `where` 0 the given folders, 1 toolkits, 2 pip's. NULL: no memory. */
char *stint_gpu_places(const stint_gpu *g, enum stint_gpu_library library, int where);

#endif
