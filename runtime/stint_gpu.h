/* SPDX-License-Identifier: MIT-0 */
/* A GPU behind a generated step, as plain C11: NVIDIA's driver, NVRTC, cuBLASLt and cuDNN, found
 * when the program runs. Nothing of CUDA is needed to build; without a driver or a device
 * stint_gpu_open returns STINT_NO_DEVICE. Self-contained: `stint compile` puts copies of
 * stint_gpu*.[hc] beside the step.
 *
 *	stint_gpu *g;
 *	if (stint_gpu_new(&g, NULL) || stint_gpu_open(g, 0)) ... stint_gpu_message(g)
 *	stint_gpu_arena(g, 0, bytes, &arena);
 *	stint_gpu_compile(g, text, 0, NULL, 0, &code); stint_gpu_load(g, &code, &module);
 *	stint_gpu_kernel_find(g, module, "k1", 0, &k1);
 *	stint_gpu_capture_begin(g);
 *	stint_gpu_launch(g, STINT_GPU_MAIN, &k1, grid, block, args); ...
 *	stint_gpu_capture_end(g, &graph);
 *	stint_gpu_replay(g, graph); stint_gpu_sync(g, STINT_GPU_MAIN);
 *	stint_gpu_graph_free(g, graph); stint_gpu_free(g);
 *
 * Errors: functions that return int give STINT_OK or a code of stint_rt.h; the reason is then in
 * stint_gpu_message(g) until the next failure. STINT_NO_DEVICE: no driver or device;
 * STINT_BAD_MACHINE: a library that is missing or too old, or an error of the driver or of a
 * library; STINT_NO_MEMORY: on the host or on the device; STINT_BAD_DATA: a kernel's text, or
 * numbers that make no sense. Out parameters are set only on success, except where said.
 *
 * One thread at a time uses a stint_gpu; different ones are independent, on the same device too.
 * Each call makes the device's primary context current for its duration and puts the caller's
 * own back. Nothing here prints, exits or keeps state outside the stint_gpu. Libraries, once
 * loaded, stay loaded until the process ends: their threads do not survive being unloaded. */
#ifndef STINT_GPU_H
#define STINT_GPU_H

#include <stddef.h>
#include <stdint.h>

#include "stint_call.h"
#include "stint_rt.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct stint_gpu stint_gpu;
typedef unsigned long long stint_gpu_ptr; /* an address on the device */

/* `folders`: where libraries are looked for first, separated by ':'; NULL: STINT_CUDA_LIBS. Loads
 * nothing yet. *out is NULL only when there is no memory. */
int stint_gpu_new(stint_gpu **out, const char *folders);
/* Waits for the device, releases all that was made with g, and g. NULL is fine. */
void stint_gpu_free(stint_gpu *g);
const char *stint_gpu_message(const stint_gpu *g);

/* --- Libraries --- */

enum stint_gpu_library {
	STINT_GPU_DRIVER, /* libcuda.so.1 */
	STINT_GPU_NVRTC,
	STINT_GPU_CUBLASLT,
	STINT_GPU_CUDNN,
	STINT_GPU_NCCL, /* libnccl.so.2 */
	STINT_GPU_LIBRARIES
};

/* Loads a library unless it is loaded. The other functions do so by themselves. Looked for in: the
 * given folders, the system's search path, CUDA_HOME, CUDA_PATH and /usr/local/cuda, then pip's
 * nvidia/.../lib beside VIRTUAL_ENV, CONDA_PREFIX, python3 in PATH, ~/.local and the system's
 * Pythons. A library newer (by major version) than an open device's driver is passed over: open the
 * device first. Of several cuDNN, which have one name whatever CUDA they are for, one for that of a
 * loaded cuBLASLt is taken where there is one. */
int stint_gpu_need(stint_gpu *g, enum stint_gpu_library library);
/* Of a loaded library; "" and 0 else. Versions as the library counts: driver 13000 is 13.0; NVRTC
 * 1000 times the major version and 10 times the minor one; cuBLASLt, cuDNN and NCCL as they say. */
const char *stint_gpu_library_path(const stint_gpu *g, enum stint_gpu_library library);
int stint_gpu_library_version(const stint_gpu *g, enum stint_gpu_library library);
/* A function of a loaded library by name; NULL: not there, or not loaded. */
void *stint_gpu_symbol(const stint_gpu *g, enum stint_gpu_library library, const char *name);

/* --- The device --- */

struct stint_gpu_facts {
	char name[96];
	int major, minor; /* compute capability */
	int arch;         /* what stint_gpu_compile makes for it: 80, 86, 89, 90, 100, 120 */
	int sm;           /* multiprocessors */
	int clock_khz;    /* 0: the driver does not say */
	int memory_clock_khz, bus_bits;
	int l2_bytes;
	int shared_block; /* bytes of shared memory one block may ask for */
	int shared_sm, registers_sm, threads_sm;
	size_t memory;    /* bytes */
	double bandwidth; /* theoretical, bytes a second; 0: unknown */
	int driver;       /* the newest CUDA that the driver knows: 13000 is 13.0 */
};

/* Devices that the driver shows; STINT_NO_DEVICE when none. */
int stint_gpu_count(stint_gpu *g, int *count);
/* Opens device `ordinal`, which must be of compute capability 8.0 or newer: the primary context and
 * the streams below. Once per stint_gpu. */
int stint_gpu_open(stint_gpu *g, int ordinal);
/* Of the open device. */
const struct stint_gpu_facts *stint_gpu_facts_of(const stint_gpu *g);
/* "NVIDIA H200 sm_90 132 SMs driver 13000 cublasLt 130100": what a cached choice of algorithm
 * relies on. Loads cuBLASLt; without it the line says 0. */
const char *stint_gpu_identity(stint_gpu *g, char buf[192]);
/* The newest of the architectures above whose code runs on compute capability major.minor; 0: none.
 */
int stint_gpu_arch(int major, int minor);

/* --- Memory ---
 * All copies and fills are put on a stream and are asynchronous as far as the driver's are: wait
 * with stint_gpu_sync before host memory is read or changed. */

enum stint_gpu_stream {
	STINT_GPU_MAIN,  /* kernels, libraries and replayed graphs */
	STINT_GPU_SIDE,  /* within a step, beside it: copies to the host */
	STINT_GPU_BACK,  /* and from there */
	STINT_GPU_RANKS, /* messages to and from other processes' devices, and their sums */
	STINT_GPU_FEED   /* between steps: what the next one is fed with. No capture joins it */
};

/* The one allocation: `bytes` at `given`, memory of this device that the caller owns, at a multiple
 * of 256; or, given 0, allocated here. Once per stint_gpu. */
int stint_gpu_arena(stint_gpu *g, stint_gpu_ptr given, size_t bytes, stint_gpu_ptr *out);
/* Page-locked host memory, owned by g. */
int stint_gpu_pinned(stint_gpu *g, size_t bytes, void **out);
int stint_gpu_put(stint_gpu *g, int stream, stint_gpu_ptr to, const void *from, size_t bytes);
int stint_gpu_get(stint_gpu *g, int stream, void *to, stint_gpu_ptr from, size_t bytes);
int stint_gpu_copy(stint_gpu *g, int stream, stint_gpu_ptr to, stint_gpu_ptr from, size_t bytes);
int stint_gpu_fill(stint_gpu *g, int stream, stint_gpu_ptr to, unsigned char byte, size_t bytes);

/* Device memory outside the arena by what took it, in order of first appearance: "context",
 * "arena rounding", "kernels", "cuBLASLt", "graph", and what stint_gpu_memory_note named. Measured
 * as the change of free device memory, so what other programs take meanwhile is counted too. */
struct stint_gpu_item {
	const char *what;
	int64_t bytes; /* negative: the driver gave memory back, or took the arena from what it had
			*/
	double ms;     /* that passed until it was measured */
};
/* The number of items; *items is valid until the next call with g. */
int stint_gpu_memory(const stint_gpu *g, const struct stint_gpu_item **items);
/* What free memory shrank by since the last measurement goes to `what`, a string that outlives g.
 * For stages this file does not see: a first run makes libraries load their kernels. */
int stint_gpu_memory_note(stint_gpu *g, const char *what);
/* The same of time alone, with or without a device. Items that only take time have no bytes:
 * "NVRTC", "choosing products", "choosing convolutions". */
void stint_gpu_time_note(stint_gpu *g, const char *what);
/* Free and total now, bytes. */
int stint_gpu_memory_free(stint_gpu *g, size_t *free_bytes, size_t *total_bytes);

/* --- Kernels --- */

struct stint_gpu_code {
	void *data; /* a cubin */
	size_t bytes;
	int cached; /* came from the cache */
};

/* Compiles `text`, which includes nothing, for sm_`arch` (0: the open device's) with --fmad=false
 * and the options given. Needs no device. On STINT_BAD_DATA the compiler's words are in
 * stint_gpu_log. */
int stint_gpu_compile(stint_gpu *g, const char *text, int arch, const char *const *option,
	int noption, struct stint_gpu_code *out);
void stint_gpu_code_free(struct stint_gpu_code *code);
/* What the compiler said last: errors or warnings; "": nothing. Owned by g. */
const char *stint_gpu_log(const stint_gpu *g);

/* Where cubins and choices of algorithms are kept: STINT_CACHE, else XDG_CACHE_HOME/stint, else
 * ~/.cache/stint, or `folder` from now on; NULL or "" (STINT_CACHE= too): nowhere. A folder that
 * cannot be read or written is as good as none. Several processes may share it. */
int stint_gpu_cache(stint_gpu *g, const char *folder);
const char *stint_gpu_cache_folder(const stint_gpu *g); /* "": none */

/* Loads code on the device; it stays until stint_gpu_free. */
int stint_gpu_load(stint_gpu *g, const struct stint_gpu_code *code, int *module);

struct stint_gpu_kernel {
	void *function;
	size_t shared;                     /* dynamic shared memory of a launch, bytes */
	int shared_static;                 /* bytes */
	int registers, local, max_threads; /* per thread; bytes per thread; per block */
};

/* Finds an extern "C" kernel and loads it, so that a capture need not; `shared` bytes of dynamic
 * shared memory go with each launch (above 48 KiB they are asked for here). */
int stint_gpu_kernel_find(
	stint_gpu *g, int module, const char *name, size_t shared, struct stint_gpu_kernel *out);
/* args: pointers to the values of the kernel's parameters. */
int stint_gpu_launch(stint_gpu *g, int stream, const struct stint_gpu_kernel *k,
	const unsigned grid[3], const unsigned block[3], void **args);

/* --- Order and time --- */

/* Marks are points of a stream, numbered from 0 without large gaps; marking again moves the mark.
 * In a capture another stream joins by waiting for a mark of the main one, and has to be waited for
 * before the end; a mark set in a capture means nothing outside of it. */
int stint_gpu_mark(stint_gpu *g, int stream, int mark);
int stint_gpu_wait(stint_gpu *g, int stream, int mark);
/* The first of n numbers in a row that this function has not given out before. Where several parts
 * of a program set marks, all take their numbers from here. */
int stint_gpu_marks(stint_gpu *g, int n);
/* What `stream` is given from now on comes behind what `of` was given so far. In a capture and
 * outside; a capture is joined, and left, this way too. */
int stint_gpu_behind(stint_gpu *g, int stream, int of);
/* The host waits for a mark that was set outside a capture. Then page-locked memory that a copy
 * before the mark read or wrote is the caller's again. One that was never set is reached. */
int stint_gpu_reach(stint_gpu *g, int mark);
/* Milliseconds between two marks that were reached outside a capture. */
int stint_gpu_elapsed(stint_gpu *g, int from, int to, double *ms);
int stint_gpu_sync(stint_gpu *g, int stream);

/* --- Graphs --- */

struct stint_gpu_graph;

/* From begin to end everything put on the streams is recorded, not run; host memory in copies is
 * pinned then, and stays where it is as long as the graph does. What libraries load when they are
 * first used is loaded all the same, and itemised. */
int stint_gpu_capture_begin(stint_gpu *g);
/* Makes what was recorded ready to be replayed. On failure nothing is being recorded any more. */
int stint_gpu_capture_end(stint_gpu *g, struct stint_gpu_graph **out);
int stint_gpu_replay(stint_gpu *g, const struct stint_gpu_graph *graph); /* on the main stream */
size_t stint_gpu_graph_nodes(const struct stint_gpu_graph *graph);
void stint_gpu_graph_free(stint_gpu *g, struct stint_gpu_graph *graph);

/* --- Products by cuBLASLt --- */

enum stint_gpu_type { STINT_GPU_F32, STINT_GPU_BF16, STINT_GPU_F16 };

/* A product and how it is stored and computed. The bias, what is added, and the sums are `extra`.
 */
struct stint_gpu_product {
	struct stint_product shape;
	int64_t ld0, ld1, ldy;       /* elements from row to row as stored; 0: dense */
	int64_t step0, step1, stepy; /* from one product to the next, where each has its own; 0:
					dense */
	enum stint_gpu_type in, out; /* of x0 and x1; of y and extra. Sums are fp32 */
	int tf32;                    /* fp32 operands may be rounded to tf32 */
	size_t cap;                  /* bytes of workspace it may use */
};

/* From a call. Operands of two types are STINT_BAD_DATA. The cap is stint_gpu_matmul_cap's. Needs
 * no device; `arch` as above. */
int stint_gpu_product_of(
	const struct stint_lib_call *call, int arch, struct stint_gpu_product *out);
/* The workspace to plan for: fixed by shape and architecture. */
size_t stint_gpu_matmul_cap(int arch, const struct stint_product *p);

struct stint_gpu_matmul;
enum { STINT_GPU_ALGO = 64 };

/* Asks for an algorithm, with operands at multiples of 256: the first within the cap whose result
 * does not depend on the order in which blocks happen to finish. The choice is kept in the cache by
 * device, driver and library version. STINT_BAD_MACHINE: there is none. */
int stint_gpu_matmul_new(
	stint_gpu *g, const struct stint_gpu_product *p, struct stint_gpu_matmul **out);
void stint_gpu_matmul_free(struct stint_gpu_matmul *m);              /* before its stint_gpu */
size_t stint_gpu_matmul_workspace(const struct stint_gpu_matmul *m); /* bytes it does use */
/* The choice, to compare and to store. */
void stint_gpu_matmul_algo(const struct stint_gpu_matmul *m, unsigned char algo[STINT_GPU_ALGO]);
/* And in words: "algorithm 66, tile 20, stages 35, split 1", cuBLASLt's numbers of them. */
const char *stint_gpu_matmul_words(const struct stint_gpu_matmul *m, char buf[96]);
/* extra: see the epilogue; 0 without. workspace: cap bytes at a multiple of 256. */
int stint_gpu_matmul_run(stint_gpu *g, int stream, struct stint_gpu_matmul *m, stint_gpu_ptr x0,
	stint_gpu_ptr x1, stint_gpu_ptr y, stint_gpu_ptr extra, stint_gpu_ptr workspace);

/* --- Messages between GPUs by NCCL --- */

/* What the processes of one world find each other by, made by one of them and handed to the others
 * by other means. NULL: NCCL is loaded, nothing made. */
enum { STINT_GPU_WORLD = 128 };
int stint_gpu_world(stint_gpu *g, unsigned char id[STINT_GPU_WORLD]);
/* By all n at once, each with a device of its own. Once per stint_gpu. */
int stint_gpu_world_join(stint_gpu *g, const unsigned char id[STINT_GPU_WORLD], int rank, int n);
/* `broken`: at once, and what is on its way is given up. Else stint_gpu_free does it. */
void stint_gpu_world_end(stint_gpu *g, int broken);

struct stint_gpu_parcel {
	int rank; /* to whom, or (takes) from whom */
	int takes;
	stint_gpu_ptr at;
	size_t bytes;
};
/* Put on STINT_GPU_RANKS, in a capture too: n messages, all on their way together. Those between
 * two processes come in the order in which they are sent. */
int stint_gpu_exchange(stint_gpu *g, const struct stint_gpu_parcel *p, int n);
/* The same: y's n floats, or (wide) doubles, become their sums over all, added in NCCL's order. */
int stint_gpu_reduce(stint_gpu *g, stint_gpu_ptr y, size_t n, int wide);
/* As stint_gpu_sync, but STINT_LOST where another process is gone, or does not come within so many
 * seconds (0: no matter how long). The world is ended then. */
int stint_gpu_world_wait(stint_gpu *g, int stream, double patience);

/* --- Convolutions by cuDNN --- */

struct stint_gpu_convolution {
	enum stint_call_kind kind;
	struct stint_convolution shape;
	enum stint_gpu_type type[3]; /* of x, w, y. Sums are fp32 */
	int tf32;                    /* fp32 operands may be rounded to tf32 */
	int strict;                  /* neither Winograd's way nor Fourier's */
	size_t cap;                  /* bytes of workspace it may use */
};

struct stint_gpu_conv;

/* From a call; a bias, and channels in blocks, are STINT_BAD_DATA. The cap: 4 MiB and as many bytes
 * as x, w and y have in fp32, in whole MiB, at most 32 MiB. */
int stint_gpu_convolution_of(const struct stint_lib_call *call, struct stint_gpu_convolution *out);
/* The first plan that cuDNN's heuristic proposes whose result is the same every time, that does not
 * round fp32 operands unless tf32 says so, and that fits the cap. STINT_BAD_MACHINE: there is none.
 */
int stint_gpu_conv_new(
	stint_gpu *g, const struct stint_gpu_convolution *c, struct stint_gpu_conv **out);
void stint_gpu_conv_free(struct stint_gpu_conv *c);              /* before its stint_gpu */
size_t stint_gpu_conv_workspace(const struct stint_gpu_conv *c); /* bytes it does use */
int64_t stint_gpu_conv_engine(const struct stint_gpu_conv *c);   /* cuDNN's number of it */
int stint_gpu_conv_run(stint_gpu *g, int stream, struct stint_gpu_conv *c, stint_gpu_ptr x,
	stint_gpu_ptr w, stint_gpu_ptr y, stint_gpu_ptr workspace);

#ifdef __cplusplus
}
#endif
#endif
