/* Private to stint_gpu*.c: what they need of NVIDIA's libraries, declared here because no CUDA
 * header may be needed to build, and the inside of a stint_gpu. A test compares all of it with the
 * real headers where the toolkit is installed.
 *
 * Handles are void *, enums int. Entry points carry the suffix of the version declared here:
 * drivers keep old versions for good, so that these exist in every driver since CUDA 12.0. */
#ifndef STINT_GPU_API_H
#define STINT_GPU_API_H

#include "stint_gpu.h"

/* X(type, name, (parameters), (arguments)) */
/* clang-format off */
#define GPU_DRIVER(X) \
	X(int, cuInit, (unsigned flags), (flags)) \
	X(int, cuDriverGetVersion, (int *version), (version)) \
	X(int, cuGetErrorName, (int error, const char **out), (error, out)) \
	X(int, cuGetErrorString, (int error, const char **out), (error, out)) \
	X(int, cuDeviceGetCount, (int *count), (count)) \
	X(int, cuDeviceGet, (int *device, int ordinal), (device, ordinal)) \
	X(int, cuDeviceGetName, (char *name, int size, int device), (name, size, device)) \
	X(int, cuDeviceGetAttribute, (int *out, int what, int device), (out, what, device)) \
	X(int, cuDeviceTotalMem_v2, (size_t *bytes, int device), (bytes, device)) \
	X(int, cuDeviceGetPCIBusId, (char *id, int size, int device), (id, size, device)) \
	X(int, cuDevicePrimaryCtxRetain, (void **out, int device), (out, device)) \
	X(int, cuDevicePrimaryCtxRelease_v2, (int device), (device)) \
	X(int, cuCtxPushCurrent_v2, (void *context), (context)) \
	X(int, cuCtxPopCurrent_v2, (void **context), (context)) \
	X(int, cuMemGetInfo_v2, (size_t *free_bytes, size_t *total), (free_bytes, total)) \
	X(int, cuMemAlloc_v2, (unsigned long long *out, size_t bytes), (out, bytes)) \
	X(int, cuMemFree_v2, (unsigned long long p), (p)) \
	X(int, cuMemHostAlloc, (void **out, size_t bytes, unsigned flags), (out, bytes, flags)) \
	X(int, cuMemFreeHost, (void *p), (p)) \
	X(int, cuPointerGetAttribute, (void *out, int what, unsigned long long p), (out, what, p)) \
	X(int, cuMemcpyHtoDAsync_v2, (unsigned long long to, const void *from, size_t bytes, void *stream), (to, from, bytes, stream)) \
	X(int, cuMemcpyDtoHAsync_v2, (void *to, unsigned long long from, size_t bytes, void *stream), (to, from, bytes, stream)) \
	X(int, cuMemcpyDtoDAsync_v2, (unsigned long long to, unsigned long long from, size_t bytes, void *stream), (to, from, bytes, stream)) \
	X(int, cuMemsetD8Async, (unsigned long long to, unsigned char byte, size_t bytes, void *stream), (to, byte, bytes, stream)) \
	X(int, cuStreamCreate, (void **out, unsigned flags), (out, flags)) \
	X(int, cuStreamDestroy_v2, (void *stream), (stream)) \
	X(int, cuStreamSynchronize, (void *stream), (stream)) \
	X(int, cuStreamWaitEvent, (void *stream, void *event, unsigned flags), (stream, event, flags)) \
	X(int, cuStreamBeginCapture_v2, (void *stream, int mode), (stream, mode)) \
	X(int, cuStreamEndCapture, (void *stream, void **graph), (stream, graph)) \
	X(int, cuEventCreate, (void **out, unsigned flags), (out, flags)) \
	X(int, cuEventDestroy_v2, (void *event), (event)) \
	X(int, cuEventRecord, (void *event, void *stream), (event, stream)) \
	X(int, cuEventElapsedTime, (float *ms, void *from, void *to), (ms, from, to)) \
	X(int, cuGraphGetNodes, (void *graph, void **nodes, size_t *count), (graph, nodes, count)) \
	X(int, cuGraphInstantiateWithFlags, (void **out, void *graph, unsigned long long flags), (out, graph, flags)) \
	X(int, cuGraphUpload, (void *exec, void *stream), (exec, stream)) \
	X(int, cuGraphLaunch, (void *exec, void *stream), (exec, stream)) \
	X(int, cuGraphExecDestroy, (void *exec), (exec)) \
	X(int, cuGraphDestroy, (void *graph), (graph)) \
	X(int, cuLibraryLoadData, (void **out, const void *code, void *jit, void **jit_values, unsigned njit, void *option, void **values, unsigned noption), (out, code, jit, jit_values, njit, option, values, noption)) \
	X(int, cuLibraryUnload, (void *library), (library)) \
	X(int, cuLibraryGetKernel, (void **out, void *library, const char *name), (out, library, name)) \
	X(int, cuKernelGetFunction, (void **out, void *kernel), (out, kernel)) \
	X(int, cuFuncGetAttribute, (int *out, int what, void *function), (out, what, function)) \
	X(int, cuFuncSetAttribute, (void *function, int what, int value), (function, what, value)) \
	X(int, cuLaunchKernel, (void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared, void *stream, void **args, void **extra), (function, gx, gy, gz, bx, by, bz, shared, stream, args, extra))
/* Newer than CUDA 12.0: used where they are. */
#define GPU_DRIVER_NEWER(X) \
	X(int, cuFuncLoad, (void *function), (function))

#define GPU_NVRTC(X) \
	X(const char *, nvrtcGetErrorString, (int error), (error)) \
	X(int, nvrtcVersion, (int *major, int *minor), (major, minor)) \
	X(int, nvrtcCreateProgram, (void **out, const char *text, const char *name, int nheader, const char *const *header, const char *const *include), (out, text, name, nheader, header, include)) \
	X(int, nvrtcDestroyProgram, (void **program), (program)) \
	X(int, nvrtcCompileProgram, (void *program, int noption, const char *const *option), (program, noption, option)) \
	X(int, nvrtcGetCUBINSize, (void *program, size_t *bytes), (program, bytes)) \
	X(int, nvrtcGetCUBIN, (void *program, char *cubin), (program, cubin)) \
	X(int, nvrtcGetProgramLogSize, (void *program, size_t *bytes), (program, bytes)) \
	X(int, nvrtcGetProgramLog, (void *program, char *log), (program, log))

#define GPU_CUBLASLT(X) \
	X(size_t, cublasLtGetVersion, (void), ()) \
	X(const char *, cublasLtGetStatusString, (int status), (status)) \
	X(int, cublasLtCreate, (void **out), (out)) \
	X(int, cublasLtDestroy, (void *handle), (handle)) \
	X(int, cublasLtMatmulDescCreate, (void **out, int compute, int scale), (out, compute, scale)) \
	X(int, cublasLtMatmulDescDestroy, (void *desc), (desc)) \
	X(int, cublasLtMatmulDescSetAttribute, (void *desc, int what, const void *value, size_t bytes), (desc, what, value, bytes)) \
	X(int, cublasLtMatrixLayoutCreate, (void **out, int type, uint64_t rows, uint64_t cols, int64_t ld), (out, type, rows, cols, ld)) \
	X(int, cublasLtMatrixLayoutDestroy, (void *layout), (layout)) \
	X(int, cublasLtMatrixLayoutSetAttribute, (void *layout, int what, const void *value, size_t bytes), (layout, what, value, bytes)) \
	X(int, cublasLtMatmulPreferenceCreate, (void **out), (out)) \
	X(int, cublasLtMatmulPreferenceDestroy, (void *preference), (preference)) \
	X(int, cublasLtMatmulPreferenceSetAttribute, (void *preference, int what, const void *value, size_t bytes), (preference, what, value, bytes)) \
	X(int, cublasLtMatmulAlgoGetHeuristic, (void *handle, void *desc, void *a, void *b, void *c, void *d, void *preference, int asked, gpu_lt_result *result, int *got), (handle, desc, a, b, c, d, preference, asked, result, got)) \
	X(int, cublasLtMatmulAlgoCheck, (void *handle, void *desc, void *a, void *b, void *c, void *d, const gpu_lt_algo *algo, gpu_lt_result *result), (handle, desc, a, b, c, d, algo, result)) \
	X(int, cublasLtMatmulAlgoConfigGetAttribute, (const gpu_lt_algo *algo, int what, void *value, size_t bytes, size_t *written), (algo, what, value, bytes, written)) \
	X(int, cublasLtMatmul, (void *handle, void *desc, const void *alpha, const void *a, void *la, const void *b, void *lb, const void *beta, const void *c, void *lc, void *d, void *ld, const gpu_lt_algo *algo, void *workspace, size_t bytes, void *stream), (handle, desc, alpha, a, la, b, lb, beta, c, lc, d, ld, algo, workspace, bytes, stream))

#define GPU_CUDNN(X) \
	X(size_t, cudnnGetVersion, (void), ())
/* clang-format on */

/* cublasLtMatmulAlgo_t and cublasLtMatmulHeuristicResult_t */
#ifndef GPU_LT_TYPES /* the test puts the real ones here */
typedef struct {
	uint64_t data[8];
} gpu_lt_algo;
typedef struct {
	gpu_lt_algo algo;
	size_t workspace;
	int state;
	float waves;
	int reserved[4];
} gpu_lt_result;
#endif

#define GPU_MEMBER(type, name, parameters, arguments) type(*name) parameters;
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
	GPU_CUDNN(GPU_MEMBER)
};
#undef GPU_MEMBER

/* Values of NVIDIA's enums, by X(ours, value, theirs). */
/* clang-format off */
#define GPU_VALUES(X) \
	X(CU_OUT_OF_MEMORY, 2, CUDA_ERROR_OUT_OF_MEMORY) \
	X(CU_STREAM_ALONE, 1, CU_STREAM_NON_BLOCKING) \
	X(CU_CAPTURE_RELAXED, 2, CU_STREAM_CAPTURE_MODE_RELAXED) \
	X(CU_EVENT_PLAIN, 0, CU_EVENT_DEFAULT) \
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
	X(LT_CONFIG_REDUCTION, 3, CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME) \
	X(LT_REDUCTION_COMPUTE, 2, CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE)
/* clang-format on */
#define GPU_VALUE(ours, value, theirs) GPU_##ours = value,
enum gpu_value { GPU_VALUES(GPU_VALUE) };
#undef GPU_VALUE

/* --- The inside --- */

enum { GPU_STREAMS = 2, GPU_ITEMS = 16, GPU_KEY = 32 };

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

	int open, device;
	void *context, *stream[GPU_STREAMS];
	struct stint_gpu_facts facts;
	stint_gpu_ptr arena, owned;
	int capturing;
	void *lt_handle;
	void **module, **event, **pinned;
	int nmodule, nevent, npinned;
	struct stint_gpu_item item[GPU_ITEMS];
	int nitem;
	size_t free_last;
};

/* Records a message and returns code. */
int stint_gpu_fail(stint_gpu *g, int code, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* STINT_OK for result 0, else the driver's words. */
int stint_gpu_check(stint_gpu *g, int result, const char *what);
/* The context is current between enter and leave; leave returns rc. */
int stint_gpu_enter(stint_gpu *g);
int stint_gpu_leave(stint_gpu *g, int rc);
/* stint_gpu_memory_note between enter and leave; `less` bytes are the arena's own. */
int stint_gpu_measure(stint_gpu *g, const char *what, size_t less);
/* A vector of handles grown by one; NULL: no memory. */
void **stint_gpu_grow(void ***list, int *count);

/* Paths of a library's files where it may be, best first, in one allocation that ends with an empty
 * one: `where` 0 the given folders, 1 toolkits, 2 pip's. NULL: no memory. */
char *stint_gpu_places(const stint_gpu *g, enum stint_gpu_library library, int where);

/* SHA-256 (FIPS 180-4), for keys. */
struct gpu_hash {
	uint32_t h[8];
	unsigned char block[64];
	uint64_t bytes;
};
void stint_gpu_hash_start(struct gpu_hash *s);
void stint_gpu_hash_add(struct gpu_hash *s, const void *data, size_t bytes);
/* A field: its length, then its bytes, so that fields cannot run into each other. */
void stint_gpu_hash_field(struct gpu_hash *s, const void *data, size_t bytes);
void stint_gpu_hash_end(struct gpu_hash *s, unsigned char key[GPU_KEY]);

/* The cache's entry under key, malloc'ed; NULL: none that is whole. */
void *stint_gpu_cache_read(const stint_gpu *g, const unsigned char key[GPU_KEY], size_t *bytes);
/* Best effort. */
void stint_gpu_cache_write(
	const stint_gpu *g, const unsigned char key[GPU_KEY], const void *data, size_t bytes);

#endif
