/* SPDX-License-Identifier: MIT-0 */
/* The runtime of a step for a microcontroller (`stint compile --bare`): C11 that allocates nothing,
 * opens nothing and prints nothing. The step and its arena are the caller's memory. `stint compile`
 * puts a copy beside step.c. Of a C library it takes memcpy and memset.
 *
 *	#include "stint_step.h"            // declares the model, includes this file
 *	static _Alignas(STINT_NET_ARENA_ALIGNMENT) unsigned char arena[STINT_NET_ARENA_BYTES];
 *	static stint_step step;
 *	if (stint_init(&step, &stint_model_net, arena, sizeof arena)) ...
 *	stint_set(&step, "x", sample, sizeof sample);      // or write to stint_at(&step, "x")
 *	stint_set(&step, "target", &label, sizeof label);
 *	if (stint_train(&step, 0.01f)) ...
 *	loss = stint_loss(&step);
 *
 * Whole numbers, labels too, are int32_t. A step is used by one thread at a time; different steps
 *are independent. */
#ifndef STINT_BARE_H
#define STINT_BARE_H

#include <stddef.h>
#include <stdint.h>

#include "stint_kinds.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { STINT_IN_VALUE = 0xffffffff /* no place in the arena: it is read where its value is */ };

/* A tensor that lasts from one step to the next. */
struct stint_tensor {
	const char *name;  /* as in the model */
	const void *value; /* what it begins as, in read-only memory; NULL: zeros */
	uint32_t bytes, offset;
	uint8_t kind, dtype;
	uint8_t trainable; /* a STINT_PARAMETER with a gradient */
};

/* A model output: its place holds after stint_eval. */
struct stint_output {
	const char *name;
	uint32_t bytes, offset;
	uint8_t dtype;
};

typedef struct stint_step stint_step;

struct stint_model {
	const char *name;
	uint32_t arena_bytes, alignment;
	int nresident, noutput;
	const struct stint_tensor *resident;
	const struct stint_output *output;
	int control, lr;                              /* residents; -1: the model has none */
	uint32_t loss_offset_train, loss_offset_eval; /* STINT_IN_VALUE: no loss */
	int shards;                                   /* micro-batches of a training step */
	float lr_default;            /* the optimizer's learning rate, as compiled */
	int (*train)(stint_step *s); /* NULL: forward only */
	int (*eval)(stint_step *s);
};

/* For generated code: a schedule as data. A row is the number of a kernel and when it is called
 * (STINT_ROW), then the places of what the kernel reads and writes. */
enum {
	STINT_ALWAYS = 0,
	STINT_LAST = 1,    /* by the last micro-batch alone */
	STINT_BRANCH = 16, /* where a condition holds, whose place comes first */
	STINT_WHEN_BITS = 8
};
#define STINT_ROW(kernel, when) ((size_t)(kernel) << STINT_WHEN_BITS | (size_t)(when))

struct stint_frame {
	void *const *at; /* what the row's places are */
	int32_t bad;     /* the index that was out of range */
};

/* A kernel as rows call it. */
struct stint_callee {
	int (*call)(struct stint_frame *f); /* other than 0: f->bad was out of range */
	int places;                         /* in a row, one at least */
};

/* A place is an offset, or STINT_VALUE and a number of a tensor that is read where its value is. */
#define STINT_VALUE ((size_t)1 << 31)

struct stint_schedule {
	int rows;
	const size_t *row;
	const struct stint_callee *callee;
	const void *const *value;
};

/* All of it, on the bytes from `base` on. */
int stint_run(stint_step *s, const struct stint_schedule *x, unsigned char *base);

struct stint_step {
	const struct stint_model *model;
	unsigned char *arena;
	int32_t seed, count; /* count: training steps done */
	float loss;          /* of the last step or evaluation; a NaN where it failed */
	int part;            /* the micro-batch that is next; 0: a step's first */
	int last;            /* the one that runs is the step's last, or its only one */
	int bad_step;        /* where an index or a label was out of range: which step, from 1 */
	int32_t bad_index;   /* and which */
};

/* Sets up *s in `arena` (model->arena_bytes at model->alignment): parameters as compiled, states
 * zero. Where step.c is compiled with -DSTINT_NO_VALUES, tensors of the arena begin as zeros for
 * the caller to set, and their values are not linked. */
int stint_init(stint_step *s, const struct stint_model *model, void *arena, size_t arena_bytes);

/* Copy into or out of a tensor by name; bytes must be its size. Of those that nothing writes
 * (frozen parameters, constants) only stint_get knows. */
int stint_set(stint_step *s, const char *name, const void *data, size_t bytes);
int stint_get(const stint_step *s, const char *name, void *data, size_t bytes);
/* The tensor's place in the arena, or NULL; that of an output, after stint_eval. */
void *stint_at(stint_step *s, const char *name);
const void *stint_output(const stint_step *s, const char *name);

/* What random numbers follow from: dropout's. */
void stint_seed(stint_step *s, int32_t seed);
/* One training step: forward, backward, updates. Compiled with --micro-batch, a step is
 * model->shards calls, s->part of which are done: the caller sets the inputs of one micro-batch
 * before each, but the target, of the whole batch, before the first; the last updates and has the
 * loss. On STINT_BAD_DATA from an index found out of range in the middle of a step, parameters not
 * yet updated keep their values. */
int stint_train(stint_step *s, float lr);
/* The evaluation plan on the inputs as set, of which the first `valid` rows count (for the loss);
 * 0: all. */
int stint_eval(stint_step *s, int32_t valid);
float stint_loss(const stint_step *s);

#ifdef __cplusplus
}
#endif
#endif
