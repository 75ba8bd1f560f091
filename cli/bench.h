/* `stint bench`: what its files share. */
#ifndef STINT_CLI_BENCH_H
#define STINT_CLI_BENCH_H

#include "cli/roof.h"
#include "cli/timing.h"
#include "runtime/stint_rt_gpu_step.h"

/* One function of the step, over all its calls in the schedule; times in microseconds. */
struct bench_kernel {
	const char *name, *op; /* of the first call */
	const char *key;       /* in words (graph/op.h, kernel_key); NULL: not known */
	int calls, again;      /* again: of those, recomputations */
	int phase;             /* of the first call: 0 forward, 1 backward, 2 update */
	double us, again_us;   /* as it runs among the others */
	double alone_us;       /* if each call took what the first takes repeated on its own */
	double predicted_us;   /* where there is a plan */
	double flops, bytes;
	double roof_us; /* the least that the machine allows; 0 before bench_roof */
};

struct bench_memory {
	int64_t arena_resident; /* of the arena's planned bytes, those that are there */
	int64_t outside;        /* resident besides the arena, after the last step */
	int64_t peak;           /* of the process, so far */
	int64_t grown;          /* between the first step and the last */
	/* Of a device's step arena_resident and peak are not known (-1), and outside and grown are
	 * the device's: */
	struct stint_device_memory device;
	int64_t workspace; /* the largest that a library call has, in the arena */
};

/* A compiled directory, measured. */
struct bench {
	struct arena *arena;
	const char *dir;
	struct loaded l;
	struct timing t;
	struct bench_memory memory;
	struct roof roof;
	double calibrated_us; /* what `doctor --calibrate` says of the step; negative: nothing */
	double others; /* processors that other programs took meanwhile; negative: not known */
	int nkernel;
	struct bench_kernel *kernel; /* [nkernel] the slowest first */
	struct bench_kernel all;     /* their sum */
};

/* --- cmd_bench.c --- */

/* Load b->dir and make up its inputs. b->arena and b->dir are set; load_close(&b->l) afterwards,
 * whatever this returns. */
enum status bench_open(struct bench *b, struct diag *d);
/* Time so many steps of b, opened, and hold its kernels against the machine. */
enum status bench_measure(struct bench *b, int steps, struct diag *d);

/* --- bench_kernels.c --- */

/* Sum b->t by kernel; requires the timing, with alone_us, and the plan where there is one. */
enum status bench_kernels(struct bench *b, struct diag *d);
/* Mark one call of each kernel: what timing_alone is to repeat. */
enum status bench_wanted(struct bench *b, bool **wanted, struct diag *d);
/* Hold the kernels against b->roof. */
void bench_roof(struct bench *b);
/* "k012 Conv 16x1x28x28 16x1x3x3 -> 16x16x28x28": function, operator, shapes. */
const char *bench_words(struct arena *a, const struct bench_kernel *k);
/* The same in exactly `width` ≤ 100 columns, unsafe bytes escaped. Into buf. */
const char *bench_brief(const struct bench_kernel *k, int width, char buf[static 128]);

/* --- bench_device.c: a GPU's step --- */

/* What the device's memory holds, after the steps. */
enum status bench_device_memory(struct bench *b, struct diag *d);
/* "2984 ms: context 19, NVRTC 2626": what opening the step took, in parts. */
void bench_opened(struct text *t, const struct stint_device_memory *m);
const char *bench_device_fact_memory(const struct bench *b);
const char *bench_device_fact_machine(const struct bench *b);
void bench_device_json(const struct bench *b);

/* --- bench_print.c --- */

/* The lines above the table: the step, the plan, recomputation, memory, the machine. In b->arena;
 * model and file names in them are as they came. */
enum { BENCH_FACTS = 5 };
enum status bench_facts(const struct bench *b, const char *fact[BENCH_FACTS], struct diag *d);
enum status bench_table(const struct bench *b, struct diag *d);
void bench_json(const struct bench *b);

/* --- bench_html.c --- */

enum status bench_html(const struct bench *b, const char *path, struct diag *d);

/* --- bench_compare.c --- */

/* Open the two, time them in turn, and print how they differ. */
enum status bench_compare(struct bench side[2], int steps, bool json, struct diag *d);

/* --- bench_torch.c --- */

/* Open b, run the same model's step in PyTorch in turn with ours, and print how they differ.
 * ST_USAGE, with the reason, where there is no Python that can. variant: "torch",
 * "torch-channels-last", "torch-compile". */
enum status bench_torch(struct bench *b, const char *variant, int steps, bool json, struct diag *d);

#endif
