/* SPDX-License-Identifier: MIT-0 */
/* For generated code: a schedule as data, and who goes through it. A row is a step: the number of
 * the kernel that it calls, when it does, and the places of what the kernel reads and writes. What
 * happens between calls (copies, what onlookers are shown) stands in lists by step. */
#ifndef STINT_SCHEDULE_H
#define STINT_SCHEDULE_H

#include "stint_rt_device.h"

/* When a row's kernel is called; any of them together. */
enum {
	STINT_ALWAYS = 0,
	STINT_LAST = 1, /* by the last micro-batch alone */
	STINT_UPDATED =
		2, /* where updates are done: nobody has taken the gradients in their place */
	STINT_TOGETHER = 4, /* where somebody looks on; else a row below launches several at once */
	STINT_ASIDE = 8,    /* that row: no step of its own, and only where nobody looks on */
	STINT_BRANCH = 16,  /* where a condition holds: the row's places begin with that one's */
	STINT_PAUSE = 32, /* the caller computes before it: stint_run returns, and goes on there */
	STINT_WHEN_BITS = 8
};
/* A row's first word; the places follow, as many as the kernel takes, of a branch's behind its
 * condition's. */
#define STINT_ROW(kernel, when) ((size_t)(kernel) << STINT_WHEN_BITS | (size_t)(when))

/* What a call has at hand. */
struct stint_frame {
	stint_step *step;
	unsigned char *base; /* places are bytes from here: the arena's first */
	const size_t *at;    /* the row's places */
	int64_t bad;         /* the index that was out of range */
};

/* A kernel as rows call it. */
struct stint_callee {
	const char *name;                   /* "k012_softmax", "k013_conv(8, 3136)" */
	int (*call)(struct stint_frame *f); /* NULL: the step is a copy's */
	int places;                         /* in a row */
	enum stint_fails {
		STINT_NEVER, /* it returns 0 */
		STINT_INDEX, /* other than 0: f->bad was out of range */
		STINT_CODE,  /* other than 0: a library's or a driver's code */
		STINT_SAID   /* other than 0: a status, and the message is in the step */
	} fails;
};

/* A copy beside the kernels, begun before one step and waited for before another. */
struct stint_copy {
	int number, step; /* of the schedule's copies; the step that it is */
	int when;         /* it is begun */
	enum stint_fails fails;
	int (*begin)(stint_step *s, const struct stint_copy *c);
	int (*wait)(stint_step *s, const struct stint_copy *c);
	size_t at, bytes; /* the arena's */
	size_t from;      /* where in the file, the host's memory or, of pieces, the arena */
	size_t size;      /* of pieces: of a number */
};

/* Lists below are by step and end with this one. */
enum { STINT_NO_STEP = 0x7fffffff };

struct stint_move {
	int step; /* before it, but for STINT_THROUGH: in its place */
	enum { STINT_WAIT, STINT_BEGIN, STINT_THROUGH } what;
	int copy;
};

/* What onlookers are shown: an output behind the step, a finished gradient in its place. */
struct stint_shown {
	int step; /* -1: before the first */
	enum { STINT_OUTPUT, STINT_GRADIENT, STINT_PRODUCT } what;
	int of, dtype; /* the model's output, or the parameter */
	size_t at, bytes;
	/* Of a gradient that no step stores: at `at` a column, whose product with this row it is.
	 */
	size_t row, columns;
};

/* Under --debug-arena bytes that hold nothing are NaNs, and poisoned under AddressSanitizer. */
struct stint_life {
	int step;
	size_t at, bytes;
};
struct stint_lives {
	size_t at, bytes; /* of the arena: what is free between steps */
	const struct stint_life *begin, *end;
};

struct stint_schedule {
	int rows; /* steps, and rows aside */
	const size_t *row;
	const struct stint_callee *callee;
	const struct stint_step_info *info;
	const struct stint_shown *shown;
	const struct stint_move *move; /* NULL: no copies */
	const struct stint_copy *copy;
	const struct stint_lives *lives; /* NULL: not --debug-arena */
};

/* All of it, on the bytes from `base` on; or up to a pause (STINT_PAUSED), and from there, where
 * s->pause waits. STINT_OK, or the first failure, with its message in s. */
int stint_run(stint_step *s, const struct stint_schedule *x, unsigned char *base,
	const struct stint_probe *probe);

/* Copies: of a tensor in the step's file, made one after the other in the order in which they
 * begin; of a GPU's, to its host's memory and back (stint_rt_gpu.c), beside its launches; and of
 * what other processes have in pieces: this one's is copied at once, and others' are there when it
 * is waited for. */
int stint_disk_fetch(stint_step *s, const struct stint_copy *c);
int stint_disk_store(stint_step *s, const struct stint_copy *c);
int stint_disk_wait(stint_step *s, const struct stint_copy *c);
int stint_offload(stint_step *s, const struct stint_copy *c);
int stint_fetch(stint_step *s, const struct stint_copy *c);
int stint_copied(stint_step *s, const struct stint_copy *c);
int stint_fetch_pieces(stint_step *s, const struct stint_copy *c);
int stint_await_pieces(stint_step *s, const struct stint_copy *c);

#endif
