/* The runtime core that a generated step links. Plain C11, libc and libm; self-contained: `stint
 * compile` puts a copy beside step.c, so that a product builds without stint. The same API serves C
 * and CUDA.
 *
 *	#include "stint_step.h"            // declares the model, includes this file
 *	stint_step *s;
 *	if (stint_init(&s, &stint_model_mlp, NULL, 0)) ...        // or hand in your own arena
 *	stint_load(s, "weights.safetensors");
 *	stint_set(s, "x", images, sizeof images); stint_set(s, "target", labels, sizeof labels);
 *	if (stint_train(s, 1e-3)) fprintf(stderr, "%s\n", stint_message(s));
 *	printf("%g\n", stint_loss(s));
 *	stint_free(s);
 *
 * A step is used by one thread at a time; different steps are independent. Nothing here prints,
 * exits or keeps global state. stint_init allocates; stint_train and stint_eval do not. */
#ifndef STINT_RT_H
#define STINT_RT_H

#include <stddef.h>
#include <stdint.h>

#include "stint_call.h"
#include "stint_tree.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
	STINT_OK = 0,
	STINT_NO_MEMORY = 1,
	STINT_BAD_MACHINE =
		2, /* another instruction set, library version, ... than the step was planned for */
	STINT_BAD_DATA = 3, /* an unknown name, a wrong size, an index or label out of range */
	STINT_BAD_FILE = 4,
	STINT_NO_DEVICE = 5, /* no CUDA driver, or no device that it knows of */
	STINT_LOST = 6 /* another process of several is dead or stuck, or has another step (stint_mpi.h)
			*/
};

/* Element types. The last two, of 2 bytes, are met by stint_probe.output alone. */
enum { STINT_F32, STINT_F64, STINT_I64, STINT_BOOL, STINT_BF16, STINT_F16 };

enum {
	STINT_INPUT,     /* set by the caller before each step (the target too) */
	STINT_PARAMETER, /* trained */
	STINT_BUFFER,    /* running statistics */
	STINT_STATE,     /* optimizer state */
	STINT_SUMS,      /* of gradients, from one micro-batch to the next: of a step alone */
	STINT_CONSTANT,
	STINT_CONTROL /* seed, step count, valid rows; learning rate: set by the functions below */
};

/* A tensor that lives in the arena from init to free. */
struct stint_tensor {
	const char *name; /* as in the model */
	int kind, dtype, rank;
	const int64_t *dim;
	size_t bytes, offset;
	int trainable; /* a STINT_PARAMETER with a gradient */
};

/* Where an input that is set for the next step waits while one is running. */
struct stint_next {
	int resident;
	size_t offset;
};

/* A model output: its place holds after stint_eval (never after stint_train, whose memory is
 * reused). */
struct stint_output {
	const char *name;
	int dtype, rank;
	const int64_t *dim;
	size_t bytes, offset;
};

struct stint_lib_planned {
	struct stint_lib_call call;
	size_t workspace; /* bytes planned for; init fails if the library now asks for more */
};

/* A kernel of a GPU's step: its name in kernels.cu, how many blocks of how many threads are
 * launched, and how many arguments it takes. */
struct stint_kernel {
	const char *name;
	int blocks, threads, args;
};

/* One executed step, for people and for `stint bench`. */
struct stint_step_info {
	const char *node, *op, *kernel; /* node: the model's name */
	int phase;                      /* 0 forward, 1 backward, 2 update */
	int run;                        /* 0, or k for the k-th recomputation */
	double flops,
		bytes; /* floating-point operations; bytes of the tensors it reads and writes */
};

/* Looking into a step while it runs; any member may be NULL. */
struct stint_probe {
	void *user;
	/* Called in the place of the update of resident `parameter`: the finished gradient. One
	 * that the step does not store is made for this call, on the heap; NULL: no memory. */
	void (*gradient)(void *user, int parameter, const void *data, size_t bytes);
	/* Output `output` has just been computed. In training under --precision bf16 or fp16
	 * `dtype` may be STINT_BF16 (the upper half of each float) or STINT_F16. */
	void (*output)(void *user, int output, int dtype, const void *data, size_t bytes);
	/* Step `index` is done. */
	void (*tick)(void *user, int index);
	/* After tick. Not 0: do step `index` once more, at once. To time it alone: what it does in
	 * place it then does to its own result, so that values downstream are of no use. */
	int (*again)(void *user, int index);
	/* Of a device's step, called when the whole step is done, for each run of a step in turn:
	 * the device was at it for `us` microseconds. Nothing waits for the device meanwhile, and
	 * tick and again are called when a step is put there. The evaluation is run first, to keep
	 * the device busy until launches queue up. */
	void (*took)(void *user, int index, double us);
};

typedef struct stint_step stint_step;

struct stint_model {
	int version; /* STINT_RT_VERSION of the generator */
	const char *name;
	size_t arena_bytes, alignment;
	int threads;
	int (*machine_check)(stint_step *s); /* STINT_OK or STINT_BAD_MACHINE with a message */
	int nresident, noutput, nlib, ntrain_steps, neval_steps;
	const struct stint_tensor *resident;
	const struct stint_output *output;
	const struct stint_lib_planned *lib;
	const struct stint_kernel *kernel; /* ended by a NULL name; NULL: not for a GPU */
	const char *kernels_text;          /* kernels.cu, where there are any */
	const struct stint_next *next;     /* a GPU's inputs, ended by resident -1; NULL: not so */
	int tf32;   /* a GPU's library calls may round single-precision operands to tf32 */
	int strict; /* its convolutions may not go Winograd's or Fourier's way */
	const struct stint_step_info *train_info, *eval_info;
	int control, lr;                      /* residents; -1: the model has none */
	int target;                           /* resident; -1: none */
	const char *loss_name, *loss_options; /* "cross-entropy", "label_smoothing=0.1"; NULL */
	size_t loss_offset_train, loss_offset_eval; /* SIZE_MAX: no loss */
	int loss_dtype;
	int shards; /* micro-batches of a training step: it takes the rows of its inputs in so many
		       parts; the evaluation takes the first part alone */
	double lr_default; /* the optimizer's learning rate, as compiled */
	int (*train)(stint_step *s, const struct stint_probe *probe); /* NULL: forward only */
	int (*eval)(stint_step *s, const struct stint_probe *probe);
	size_t host_bytes; /* page-locked, that a GPU's step keeps tensors in; 0: none */
	int ncopy;         /* copies to there and back, in training */
};

enum { STINT_RT_VERSION = 11 };

/* The library primitive behind a struct stint_lib_call (runtime/stint_lib.h); opaque here. */
struct stint_lib;

/* What a device's memory holds. */
struct stint_device_memory {
	int nitem; /* besides the arena, by what took it (stint_gpu.h, stint_gpu_memory) */
	struct stint_device_item {
		const char *what;
		int64_t bytes;
	} item[16];
	int64_t used, total; /* of the device, by all programs */
};

/* What a device is and does at its best, measured: rates a microsecond. */
struct stint_device_peaks {
	char name[192];
	int64_t product; /* floating-point operations of products of so many rows and columns, in
			    the step's precision */
	double flops_us;
	struct stint_device_level {
		double bytes, bytes_us; /* read and written by copies, over so many in all */
	} level[2];                     /* in the device's cache, in its memory */
};

/* Where the arena is and steps run: the processor (stint_rt_cpu.c) or a GPU (stint_rt_gpu.c). */
struct stint_device {
	/* The arena, all zeros, at `arena` or in memory of its own (NULL), and all that the step
	 * needs. On failure the reason is in s->message; `free` releases what was made. */
	int (*open)(stint_step *s, void *arena);
	void (*free)(stint_step *s); /* also of a step that was never opened */
	/* The arena's byte at `offset`, for the host to use; NULL: the host cannot reach it. */
	void *(*at)(const stint_step *s, size_t offset);
	int (*put)(stint_step *s, size_t offset, const void *data, size_t bytes);
	int (*get)(const stint_step *s, size_t offset, void *data, size_t bytes);
	/* These bytes in the host's memory, until `let`: the arena itself, or else memory of zeros
	 * or (filled) a copy, which `put` brings back. NULL: no memory, or the device failed. */
	void *(*hold)(const stint_step *s, size_t offset, size_t bytes, int filled);
	void (*let)(void *held);
	/* Begins one step, with these control numbers, and need not wait for its end, unless
	 * somebody looks on. */
	int (*start)(stint_step *s, int train, const int64_t control[STINT_CONTROLS], double lr,
		const struct stint_probe *probe);
	/* Waits for it; sets s->loss. */
	int (*finish)(stint_step *s, int train);
	/* Of a GPU, NULL otherwise. */
	/* What was taken since the last measurement counts as `what`, which outlives s. */
	int (*memory)(stint_step *s, const char *what, struct stint_device_memory *out);
	/* In memory of its own, up to 1 GiB of what is free then; the arena stays as it is. */
	int (*peaks)(stint_step *s, struct stint_device_peaks *out);
};

/* The processes that share a step's shards (stint_mpi.c): each does those from
 * stint_tree_first(shards, n, rank) up to the next one's first, and all have the same sums then. */
struct stint_ranks {
	int rank, n;
	/* y: the n numbers x, of `size` bytes each, summed over all processes: x is the sum that
	 * this one's last shard has left, behind the sums that wait in `sums`. y may be x. Returns
	 * STINT_OK or a failure with its message in s. */
	int (*sum)(stint_step *s, void *y, const void *x, const void *sums, int64_t n, size_t size,
		void *scratch, size_t bytes);
	/* A row of `bytes` bytes for each shard: each process has its own; all get all. */
	int (*join)(stint_step *s, void *rows, size_t bytes);
};

struct stint_step {
	const struct stint_model *model;
	unsigned char *arena; /* an address of the device's: to be read or written here only where
				 device->at says so */
	void *owned;          /* what free releases */
	const struct stint_device *device;
	void *gpu; /* the device's own */
	struct stint_lib **lib;
	struct stint_ranks *ranks; /* NULL: this process does all shards */
	int64_t seed, count;       /* count: training steps done */
	int64_t shard;             /* the one that runs */
	int last;    /* the shard that runs is the step's last here, or its only one */
	int running; /* a training step has been started and not finished */
	double loss;
	char message[256];
};

/* Sets up a step in `arena` (model->arena_bytes at model->alignment; NULL: allocated and
 * pre-faulted here). A GPU's step takes the first device that the driver shows, and `arena` is
 * memory of that device; its kernels are compiled here (seconds, the first time) and kept in a
 * cache. On failure *out is NULL unless memory for the step itself was there: then call
 * stint_message and stint_free. */
int stint_init(stint_step **out, const struct stint_model *model, void *arena, size_t arena_bytes);
void stint_free(stint_step *s);

/* Copy into or out of a resident by name; bytes must be its size. An input of a GPU's step is on
 * its way there, from memory of the runtime's, when stint_set returns. */
int stint_set(stint_step *s, const char *name, const void *data, size_t bytes);
int stint_get(const stint_step *s, const char *name, void *data, size_t bytes);
/* The resident's index, or -1; its place, or NULL (also where the arena is a device's). */
int stint_find(const stint_step *s, const char *name);
void *stint_at(stint_step *s, const char *name);
/* Bytes of the arena, wherever it is: at the `offset` of a resident, or of an output after
 * stint_eval. Returns when they are there. */
int stint_write(stint_step *s, size_t offset, const void *data, size_t bytes);
int stint_read(const stint_step *s, size_t offset, void *data, size_t bytes);

/* Parameters, buffers, states and constants from a safetensors file, by name ("state/NAME" for
 * optimizer states, plain names for the rest); each must have the size expected. Names the file
 * does not have keep their values; a file without any known name is an error. */
int stint_load(stint_step *s, const char *path);

void stint_seed(stint_step *s, int64_t seed);
/* One training step: forward, backward, updates. Advances the step count. On STINT_BAD_DATA from an
 * index found out of range in the middle of a step, parameters not yet updated keep their values;
 * of a GPU's step, all do. */
int stint_train(stint_step *s, double lr);
/* The same in two parts: a GPU works in between, while the next inputs are made and set.
 *
 *	stint_set(s, "x", ...);
 *	for (...) {
 *		stint_train_start(s, lr);
 *		stint_set(s, "x", ...);   // the next step's
 *		stint_train_finish(s);    // the loss is there
 *	}
 *
 * In between, only inputs may be set and nothing else be called. On a processor the step is done
 * before the start returns. A start that fails wants no finish. */
int stint_train_start(stint_step *s, double lr);
int stint_train_finish(stint_step *s);
int stint_train_probed(stint_step *s, double lr, const struct stint_probe *probe);
/* The evaluation plan on the inputs as set, of which the first `valid` rows count (for the loss);
 * 0: all. */
int stint_eval(stint_step *s, int64_t valid);
int stint_eval_probed(stint_step *s, int64_t valid, const struct stint_probe *probe);
double stint_loss(const stint_step *s); /* of the last train or eval */
const char *stint_message(const stint_step *s);

/* For generated code: record "STEP: index VALUE is out of range" and return STINT_BAD_DATA. */
int stint_bad_index(stint_step *s, int step, int64_t value, const struct stint_step_info *info);

/* For generated code: a sum of `n` numbers over all processes (struct stint_ranks); and row
 * s->shard of `rows`, n numbers each, in the last shard with the rows of all processes. */
int stint_sum_ranks(stint_step *s, void *y, const void *x, const void *sums, int64_t n,
	void *scratch, size_t bytes);
int stint_keep_row(stint_step *s, void *rows, const void *x, int64_t n);

/* For generated code on a GPU: put a launch of kernel number `kernel` behind what is already to be
 * done there; args: pointers to its arguments. */
int stint_launch(stint_step *s, int kernel, void **args);
/* The same for copies, which run beside launches: number `copy` takes `bytes` from the arena's
 * offset `at` to offset `host` of the host's memory, or back, once all that was put there before is
 * done; what is put behind stint_copied waits until it is over. */
int stint_offload(stint_step *s, int copy, size_t at, size_t bytes, size_t host);
int stint_fetch(stint_step *s, int copy, size_t at, size_t bytes, size_t host);
int stint_copied(stint_step *s, int copy);

#ifdef __cplusplus
}
#endif
#endif
