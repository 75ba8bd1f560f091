/* SPDX-License-Identifier: MIT-0 */
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

#include "stint_kinds.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A tensor that lives from init to free: in the arena, or, its offset being arena_bytes or more, in
 * the step's file. */
struct stint_tensor {
	const char *name; /* as in the model */
	int kind, dtype, rank;
	const int64_t *dim;
	size_t bytes, offset;
	int trainable; /* a STINT_PARAMETER with a gradient */
	int by_shards; /* a STINT_INPUT of which each shard of a training step reads its own rows,
			  and nothing reads others: of several processes, each may set its alone */
};

/* A STINT_STATE, STINT_PARAMETER or STINT_CONSTANT of which each of model->ranks processes has its
 * part of the elements alone, a vector, and zeros behind them: the shape of all of it, as files
 * have it. */
struct stint_piece {
	int resident, rank;
	const int64_t *dim;
};

/* A model output: its place holds after stint_eval (never after stint_train, whose memory is
 * reused). */
struct stint_output {
	const char *name;
	int dtype, rank;
	const int64_t *dim;
	size_t bytes, offset;
	/* Why rows of it may depend on what a batch is filled up with; NULL: none does. */
	const char *whole_batch;
};

/* What a caller computes of a step whose loss is not its own (--loss outside:NAME): the loss's
 * gradient by a model output. Both places hold between stint_forward and stint_backward. */
struct stint_outside {
	const char *name; /* the output */
	int dtype, rank;
	const int64_t *dim; /* of a micro-batch, where a step has several */
	size_t bytes, value;
	size_t gradient; /* SIZE_MAX: no parameter depends on it */
};

/* A gradient that stays readable when a training step is done: of a parameter (--optimizer none) or
 * of an input (--input-gradient), of whose type and shape it is. */
struct stint_kept {
	int resident;
	size_t offset;
};

/* One executed step, for people and for `stint bench`. */
struct stint_step_info {
	const char *node, *op;     /* node: the model's name */
	const char *const *kernel; /* its name is there: "k012_softmax", "" of a copy */
	enum { STINT_FORWARD, STINT_BACKWARD, STINT_UPDATE } phase;
	int run; /* 0, or k for the k-th recomputation */
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

/* What a loss was asked for with: a number, or a word ("sum", of "reduction"). */
struct stint_loss_option {
	const char *name, *word; /* word NULL: the number holds */
	double number;
};

/* One of the losses whose sum, each times its weight, is trained. */
struct stint_loss_term {
	const char *name; /* it is told by: "cross-entropy" */
	const char *kind; /* the same, whatever it is called; NULL: the model computes it */
	const char *text; /* as it was asked for: "0.5*cross-entropy:label_smoothing=0.1" */
	double weight;
	int target;                             /* resident; -1: none */
	int output;                             /* the first that it reads; -1: none of `output` */
	const struct stint_loss_option *option; /* ended by no name; NULL: none */
	size_t offset_train, offset_eval;       /* of its value, before the weight */
};

/* Handled by the functions below only. */
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
	const struct stint_library *library; /* NULL: nlib is 0 */
	const struct stint_gpu_model *gpu;   /* NULL: not for a GPU */
	const struct stint_step_info *train_info, *eval_info;
	int control, lr; /* residents; -1: the model has none */
	int nloss;       /* whose sum is trained; 0: the step has no loss */
	const struct stint_loss_term *loss;
	size_t loss_offset_train, loss_offset_eval; /* SIZE_MAX: no loss */
	int loss_dtype;
	int shards; /* micro-batches of a training step: it takes the rows of its inputs in so many
		       parts; the evaluation takes the first part alone */
	int ranks;  /* so many processes train it together (stint_mpi.h), no more and no fewer; 0:
		       any number up to the shards, one among them */
	int noutside;
	const struct stint_outside *outside; /* NULL: the loss is the step's own */
	size_t outside_loss;
	int nkept;
	const struct stint_kept *kept; /* in the residents' order */
	int npiece;
	const struct stint_piece *piece;
	/* Of a step that has tensors in a file: the folder where it makes it, how many bytes these
	 * are, and how many copies a step has. A program that wants it elsewhere copies the model
	 * and says another folder. */
	const struct stint_disk *disk; /* NULL: all is in the arena */
	const char *disk_folder;
	size_t disk_bytes;
	int ncopy;
	int beside;              /* a step for shorter inputs: opened by stint_init_beside alone */
	const char *whole_batch; /* what a training step wants all rows for; NULL: stint_rows */
	double lr_default;       /* the optimizer's learning rate, as compiled */
	int (*train)(stint_step *s, const struct stint_probe *probe); /* NULL: forward only */
	int (*eval)(stint_step *s, const struct stint_probe *probe);
};

enum { STINT_RT_VERSION = 20 };

/* Sets up a step in `arena` (model->arena_bytes at model->alignment; NULL: allocated and
 * pre-faulted here). A GPU's step takes the first device that the driver shows, and `arena` is
 * memory of that device; its kernels are compiled here (seconds, the first time) and kept in a
 * cache. On failure *out is NULL unless memory for the step itself was there: then call
 * stint_message and stint_free. */
int stint_init(stint_step **out, const struct stint_model *model, void *arena, size_t arena_bytes);
/* The step for shorter inputs (`--dim NAME=64,128,256`) in the arena of the one for the longest,
 * which is freed after it: parameters, buffers and states are one and the same, and so are seed and
 * step count. Load its own weights.safetensors, then set its inputs before each run: each run of
 * one uses the memory that the others compute in. */
int stint_init_beside(stint_step **out, const struct stint_model *model, stint_step *longest);
void stint_free(stint_step *s);

/* Copy into or out of a resident by name; bytes must be its size. An input of a GPU's step is on
 * its way there, from memory of the runtime's, when stint_set returns. */
int stint_set(stint_step *s, const char *name, const void *data, size_t bytes);
int stint_get(const stint_step *s, const char *name, void *data, size_t bytes);
/* The resident's index, or -1; its place, or NULL (also where the arena is a device's, or where it
 * is in a file). */
int stint_find(const stint_step *s, const char *name);
void *stint_at(stint_step *s, const char *name);
/* Bytes of the arena, wherever it is, or of the step's file: at the `offset` of a resident, or of
 * an output after stint_eval. Returns when they are there. */
int stint_write(stint_step *s, size_t offset, const void *data, size_t bytes);
int stint_read(const stint_step *s, size_t offset, void *data, size_t bytes);

/* Parameters, buffers, states and constants from a safetensors file, by name ("state/NAME" for
 * optimizer states, plain names for the rest); each must have the size expected. Names the file
 * does not have keep their values; a file without any known name is an error. What processes have
 * in pieces is whole in files: it is read after stint_init_ranks, and STINT_BAD_DATA before. */
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
/* A training step whose loss is computed by its caller (model->outside), in two parts:
 *
 *	stint_set(s, "x", ...);
 *	for (int part = 0; part < (m->shards > 1 ? m->shards : 1); part++) {
 *		stint_forward(s);
 *		const float *y = stint_outside_value(s, 0);
 *		float *dy = stint_outside_gradient(s, 0);
 *		... dy[i] = the gradient of the loss of the whole batch by y[i]
 *		stint_backward(s, lr, loss);
 *	}
 *
 * once, or for each micro-batch in turn, with the outputs of its rows; the last one updates. Every
 * gradient is to be written: STINT_BAD_DATA from stint_backward where one was not, after which it
 * may be called again. In between nothing else may be set or called. `loss` is told by stint_loss
 * (of micro-batches: their sum) and changes nothing; NAN where it is not known. */
int stint_forward(stint_step *s);
int stint_backward(stint_step *s, double lr, double loss);
/* Of model->outside[i]: the output's values, and where the gradient is to be written. NULL: no
 * forward pass has been made, or the output has none. */
const void *stint_outside_value(const stint_step *s, int i);
void *stint_outside_gradient(stint_step *s, int i);
/* So many rows of these count, the first ones: all but after stint_rows, where the last
 * micro-batches may have none. Gradients of the others are zeros, whatever is written there. */
int64_t stint_outside_rows(const stint_step *s);
/* The gradient of the loss of the last training step by a parameter (--optimizer none) or an input
 * (--input-gradient), in its place, until anything is run again. NULL: the step keeps none of that
 * name; there is none now, since nothing was trained, or a probe took gradients. */
const void *stint_gradient(const stint_step *s, const char *name);
int stint_train_probed(stint_step *s, double lr, const struct stint_probe *probe);
/* The next training step, and no other, takes the first `rows` rows of its inputs, as a step of so
 * large a batch would: an epoch's last samples. Whatever the inputs hold behind them changes
 * nothing, if it is what other rows might be (labels that are classes, numbers that are finite):
 * the last of these rows again, say. STINT_BAD_DATA where there are no so many rows, or the model
 * wants its batch whole (model->whole_batch). */
int stint_rows(stint_step *s, int64_t rows);
/* The evaluation plan on the inputs as set, of which the first `valid` rows count (for the loss);
 * 0: all. */
int stint_eval(stint_step *s, int64_t valid);
int stint_eval_probed(stint_step *s, int64_t valid, const struct stint_probe *probe);
double stint_loss(const stint_step *s); /* of the last train or eval */
/* Of the same the k-th of the losses that it is the sum of, before its weight; NaN: there is none.
 */
double stint_loss_part(const stint_step *s, int k);
const char *stint_message(const stint_step *s);

#ifdef __cplusplus
}
#endif
#endif
