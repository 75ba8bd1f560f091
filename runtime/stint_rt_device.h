/* SPDX-License-Identifier: MIT-0 */
/* Inside a step: what generated code and the runtime share, where steps run, and how they fail. A
 * program that uses steps needs nothing of it. */
#ifndef STINT_RT_DEVICE_H
#define STINT_RT_DEVICE_H

#include "stint_call.h"
#include "stint_rt.h"
#include "stint_tree.h"

struct stint_lib_planned {
	struct stint_lib_call call;
	size_t workspace; /* bytes planned for; init fails if the library now asks for more */
};

/* The library primitive behind a struct stint_lib_call (runtime/stint_lib.h); opaque here. */
struct stint_lib;

/* Who makes s->lib of the model's calls, and frees it. The model names it: of two steps in one
 * program, which share their runtime, one may have calls and the other none. */
struct stint_library {
	int (*make)(stint_step *s);  /* STINT_OK, or a failure with its message in s */
	void (*free)(stint_step *s); /* also of what was never made */
};

/* Where residents are that are not in the arena: a file without a name, which ends with the process
 * (stint_rt_disk.c). Of its bytes the first is the one behind the arena's last: `offset` counts
 * from the arena's first. All return STINT_OK, or a failure with its message in s. */
struct stint_disk {
	/* Makes the file, all zeros; room on the disk is taken for what steps write. */
	int (*open)(stint_step *s);
	void (*close)(stint_step *s); /* also of what was never opened */
	int (*read)(stint_step *s, size_t offset, void *data, size_t bytes);
	int (*write)(stint_step *s, size_t offset, const void *data, size_t bytes);
	/* From here on, until something else is written there, a resident that no step writes is
	 * read from byte `at` of file fd, which stays the caller's. */
	int (*lend)(stint_step *s, int resident, int fd, uint64_t at);
	/* Waits for all copies that the step has begun. */
	int (*settle)(stint_step *s);
};
/* A weight that is not trained, in no arena. */
static inline int stint_rt_lendable(const struct stint_model *m, const struct stint_tensor *t)
{
	return m->disk && t->offset >= m->arena_bytes &&
	       (t->kind == STINT_CONSTANT || (t->kind == STINT_PARAMETER && !t->trainable));
}

/* What a device's memory holds, and what it is and does at its best (stint_rt_gpu_step.h). */
struct stint_device_memory;
struct stint_device_peaks;

enum { STINT_WORLD = 128 };

/* Where the arena is and steps run: the processor (stint_rt_cpu.c) or a GPU (stint_rt_gpu.c). */
struct stint_device {
	/* The arena, all zeros unless it is another step's, at `arena` or in memory of its own
	 * (NULL), and all that the step needs. On failure the reason is in s->message; `free`
	 * releases what was made. */
	int (*open)(stint_step *s, void *arena);
	void (*free)(stint_step *s); /* also of a step that was never opened */
	/* The arena's byte at `offset`, for the host to use; NULL: the host cannot reach it, or it
	 * is in a file. */
	void *(*at)(const stint_step *s, size_t offset);
	int (*put)(stint_step *s, size_t offset, const void *data, size_t bytes);
	int (*get)(const stint_step *s, size_t offset, void *data, size_t bytes);
	/* These bytes in the host's memory, until `let`: the arena itself, or else memory of zeros
	 * or (filled) a copy, which `put` brings back. NULL: no memory, or the device failed. */
	void *(*hold)(const stint_step *s, size_t offset, size_t bytes, int filled);
	void (*let)(const stint_step *s, void *held);
	/* Within the arena, and, of a step that runs, in the order in which it puts its work there;
	 * the two may overlap where `to` is the lower one. Bytes of zeros. */
	int (*copy)(stint_step *s, void *to, const void *from, size_t bytes);
	int (*zero)(stint_step *s, void *to, size_t bytes);
	/* Begins one step, with these control numbers, and need not wait for its end, unless
	 * somebody looks on. */
	int (*start)(stint_step *s, int train, const int64_t control[STINT_CONTROLS], double lr,
		const struct stint_probe *probe);
	/* Waits for it; sets s->loss. */
	int (*finish)(stint_step *s, int train);
	/* Of a GPU, NULL otherwise. */
	/* What was taken since the last measurement counts as `what`, which outlives s. */
	int (*memory)(stint_step *s, const char *what, struct stint_device_memory *out);
	/* Of processes with a device each: what theirs find each other by, made by one of them, the
	 * others give NULL; and, in `words`, what their results rely on besides the step. */
	int (*world)(stint_step *s, unsigned char id[STINT_WORLD], char words[192]);
	/* By all at once: what s->ranks does in a step is the devices' from now on. */
	int (*join)(stint_step *s, const unsigned char id[STINT_WORLD]);
	/* In memory of its own, up to 1 GiB of what is free then; the arena stays as it is. */
	int (*peaks)(stint_step *s, struct stint_device_peaks *out);
};

/* What processes that share a step's shards do together, all in the same order. Of a sum y's n
 * numbers, of `size` bytes each, are what this one's last shard has left, behind the sums that wait
 * in `sums`; y is the sum over all processes when it is done (JOB_SUM), or has in its place this
 * process's piece, numbers from stint_tree_first(n, r->n, r->rank) up to the next one's first
 * (JOB_SCATTER). JOB_GATHER brings together y's n numbers, of which each process has its piece in
 * place; JOB_JOIN rows of `size` bytes for each shard, of which each has its own. Until it is done
 * y, sums and `room` are those' who do it. */
struct stint_job {
	enum { JOB_SUM, JOB_SCATTER, JOB_GATHER, JOB_JOIN } kind;
	unsigned char *y;
	const unsigned char *sums;
	int64_t n;
	size_t size;
	unsigned char *room; /* for what arrives */
	size_t bytes;        /* of room */
};

/* The processes that share a step's shards (stint_mpi.c): each does those from
 * stint_tree_first(shards, n, rank) up to the next one's first, and all have the same sums then. */
struct stint_ranks {
	int rank, n;
	double patience; /* seconds that one may wait for another; 0: forever */
	int fast;        /* sums are the carrier's own, in whichever order */
	/* Returns STINT_OK or a failure with its message in s, as all of these. */
	int (*begin)(stint_step *s, const struct stint_job *j);
	/* Waits for what was begun with y. */
	int (*await)(stint_step *s, const void *y);
	/* Waits for all that was begun in this step; of a step that has failed gives it up. */
	int (*finish)(stint_step *s, int failed);
	/* Of processes whose devices have lost each other: says in s->message whose process does
	 * not answer, where one does not, and returns STINT_LOST. */
	int (*missing)(stint_step *s);
	/* By all at once: each byte, which is zero in all processes but one, to all. */
	int (*merge)(const stint_step *s, void *data, size_t bytes);
	/* Lends its arena to the first process, until that wants no more. */
	int (*lend)(const stint_step *s);
	/* By that, of the arena of process `rank`; 0 bytes: no more. */
	int (*borrow)(const stint_step *s, int rank, size_t offset, void *data, size_t bytes);
};

struct stint_step {
	const struct stint_model *model;
	unsigned char *arena; /* an address of the device's: to be read or written here only where
				 device->at says so */
	void *owned;          /* what free releases */
	const struct stint_device *device;
	void *gpu;  /* the device's own */
	void *disk; /* model->disk's own */
	struct stint_lib **lib;
	stint_step *longest;   /* in whose arena it runs; NULL: in its own */
	const stint_step *ran; /* of those that run in this arena, the last one */
	unsigned char *own;    /* the constants that the longest one has not, one after the other */
	struct stint_ranks *ranks; /* NULL: this process does all shards */
	uint64_t shared;     /* of weights in pieces: a sum of all of what was read (stint_mix.h) */
	int64_t seed, count; /* count: training steps done */
	int64_t shard;       /* the one that runs */
	int last;            /* the shard that runs is the step's last here, or its only one */
	int64_t rows;        /* that the next training step takes; 0: all */
	int running;         /* a training step has been started and not finished */
	/* Of a step whose loss is computed outside: where its schedule waits for that. */
	struct stint_pause {
		int waits;     /* a forward pass has been made */
		int row, step; /* the next ones */
		size_t at;     /* of the rows' words */
	} pause;
	int kept; /* the last training step has put gradients into the places of model->kept */
	double loss;
	enum { STINT_TOLD_NOTHING, STINT_TOLD_TRAINING, STINT_TOLD_EVALUATION } told; /* last */
	char message[256];
};

extern const struct stint_library stint_rt_library; /* stint_rt_library.c, stint_rt_gpu_library.c */
extern const struct stint_disk stint_rt_disk;       /* stint_rt_disk.c */
extern const struct stint_device stint_rt_cpu;
/* Opens the first device, compiles the model's kernels, plans its library calls and records both
 * steps as graphs. */
extern const struct stint_device stint_rt_gpu;

/* What stint_run gives where it waits for the caller: no failure, and no step that is done. */
enum { STINT_PAUSED = -1 };

/* The shards of a step that this process does: from *begin up to *end. */
void stint_own_shards(const stint_step *s, int train, int64_t *begin, int64_t *end);
/* Of the whole batch: the first axis of the first input that has one; 0: none has. */
int64_t stint_batch_rows(const struct stint_model *m);
/* How many rows of shard k count, where `valid` ones of the batch do (INT64_MAX: all): none may. */
int64_t stint_rows_left(const struct stint_model *m, int64_t valid, int64_t k);
/* Of a step that is to be begun: STINT_OK, unless another one is running. */
int stint_begin_step(stint_step *s);
/* Shard s->shard, or the rest of it from where it waits on. */
int stint_run_shard(
	stint_step *s, int train, int64_t valid, double lr, const struct stint_probe *probe);

/* Returns rc, with a reason, in which %s is `name`. */
int stint_rt_fail(stint_step *s, int rc, const char *what, const char *name);
int stint_rt_no_memory(stint_step *s); /* STINT_NO_MEMORY, and says so */

/* OpenMP and oneDNN do not look, or end the process, where they get no memory: address space is
 * asked for before. A library call takes STINT_LIB_ROOM at most while it is made, of which it keeps
 * STINT_LIB_KEEPS or so: machine code, 256 KiB for each kernel. */
enum { STINT_LIB_ROOM = 16 << 20, STINT_LIB_KEEPS = 1 << 20 };
/* Whether the process may have so many bytes more. */
int stint_rt_room(size_t bytes);
/* STINT_NO_MEMORY, and says that `what` wants so many bytes and, where the process has a limit,
 * which would do if so many are wanted later. */
int stint_rt_no_room(stint_step *s, const char *what, size_t bytes, size_t later);

/* For who runs steps: record what the library returned, and return STINT_BAD_MACHINE; record
 * "STEP: index VALUE is out of range" and return STINT_BAD_DATA. */
int stint_bad_call(stint_step *s, int step, int code, const struct stint_step_info *info);
int stint_bad_index(stint_step *s, int step, int64_t value, const struct stint_step_info *info);

/* For generated code: the begin of a sum of x's n numbers over all processes (struct stint_ranks),
 * in y, and its end; the rows, in `bytes` bytes, of shard s->shard of all shards' `rows`, in the
 * last shard the begin of those of all processes (on a GPU a kernel has put its own there); and
 * some of these bytes when they are there. */
int stint_start_sum(stint_step *s, void *y, void *room, const void *x, const void *sums, int64_t n,
	size_t bytes, int whole);
int stint_sum_ranks(stint_step *s, void *y, const void *x, int64_t n);
int stint_keep_rows(stint_step *s, void *rows, const void *x, int64_t bytes);
int stint_share_rows(stint_step *s, void *rows, int64_t bytes);
int stint_take_rows(stint_step *s, void *y, const void *rows, int64_t from, int64_t bytes);

/* For generated code, of steps whose model->ranks processes have pieces of n numbers in all: this
 * one's piece of the sum, or of x; and y from the pieces of all, when the step is done. Behind the
 * end of a piece that is smaller than the largest are zeros. */
int stint_scatter_sum(stint_step *s, void *y, const void *x, int64_t n);
int stint_own_piece(stint_step *s, void *y, const void *x, int64_t n);
int stint_gather_pieces(stint_step *s, void *y, const void *piece, int64_t n);
/* How files have a resident; bytes [from, from + here) of that are what a process has. */
struct stint_filed {
	int rank;
	const int64_t *dim;
	size_t bytes, from, here;
	int piece; /* others have the rest */
};
/* Of process `rank`; of this one. Of a piece, where the processes are not known, `here` is 0. */
struct stint_filed stint_filed_by(const stint_step *s, int resident, int rank);
struct stint_filed stint_filed(const stint_step *s, int resident);
/* Whether processes have pieces of parameters or of weights that are not trained, too: then they
 * evaluate together as well. */
int stint_shares_parameters(const struct stint_model *m);
struct safetensors;
struct safetensors_entry;
/* A resident is read from entry e. Where it is one of these, all of that is looked at:
 * other processes, each reading its own, should have the same file (s->shared). 0, or it cannot be
 * read. */
int stint_read_shared(stint_step *s, int resident, const struct safetensors *f,
	const struct safetensors_entry *e);

#endif
