/* SPDX-License-Identifier: Apache-2.0 */
/* libstint: from an ONNX model, a loss, an optimizer and a memory budget to a training step, called
 * from a program. What the command line does, without its printing. C11 and C++.
 *
 *	struct stint_options *o = NULL;
 *	struct stint_result *r = NULL;
 *	struct stint_trainer *t = NULL;
 *	double loss;
 *	int rc = stint_options_new(&o, "m.onnx");
 *	if (!rc) rc = stint_options_set(o, "loss", "cross-entropy");
 *	if (!rc) rc = stint_options_set(o, "optimizer", "sgd:lr=0.1");
 *	if (!rc) rc = stint_options_set(o, "budget", "70%");
 *	if (!rc) rc = stint_compile(&r, o, "step", NULL);
 *	if (!rc) printf("%lld bytes\n", (long long)stint_result_facts(r)->arena_bytes);
 *	if (!rc) rc = stint_trainer_open(&t, "step");
 *	if (!rc) rc = stint_trainer_set(t, "x", x, sizeof x);
 *	if (!rc) rc = stint_trainer_set(t, "target", labels, sizeof labels);
 *	if (!rc) rc = stint_trainer_train(t, 0.1, &loss);
 *	stint_trainer_free(t), stint_result_free(r), stint_options_free(o);
 *
 * Ownership. A function with a `struct x **out` first makes an object, which the caller frees with
 * that object's free function; free functions take NULL. The object is there also where the
 * function fails, so that it can tell why; *out is NULL where there was no memory for even that.
 * All other pointers that come out are borrowed: from the object that they were asked of, until it
 * is freed or, where that is said, until the next call with it. What goes in is copied.
 *
 * Errors. Functions return an enum stint_status, whose values are the command line's exit codes,
 * and leave messages with the object: stint_..._diagnostic. Nothing prints, exits, or handles
 * signals; a program that shall not end when it writes to a closed pipe or past a file's limit
 * ignores SIGPIPE and SIGXFSZ itself.
 *
 * Threads. An object is used by one thread at a time; different objects are independent. Numbers
 * are read and written as in the C locale: leave LC_NUMERIC so.
 *
 * Structs that are borrowed may grow at their end. Nothing here has the name of anything in a
 * step's own header, so that a program may use both. */
#ifndef STINT_H
#define STINT_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define STINT_PUBLIC __attribute__((visibility("default")))
#else
#define STINT_PUBLIC
#endif

#ifdef __cplusplus
extern "C" {
#endif

enum stint_status {
	STINT_STATUS_OK = 0,
	STINT_STATUS_INTERNAL = 1, /* an error of stint's own, or no memory */
	STINT_STATUS_USAGE = 2, /* an option that there is not, or that does not go with another */
	STINT_STATUS_INVALID = 3,  /* an invalid or unsupported model or data */
	STINT_STATUS_BUDGET = 4,   /* no plan within the budget: the facts say what would be met */
	STINT_STATUS_IO = 5,       /* files, devices, the C compiler */
	STINT_STATUS_DIVERGED = 7, /* training, or saving: values that are not finite */
	STINT_STATUS_INTERRUPTED = 130
};

/* "0.1.0" */
STINT_PUBLIC const char *stint_version(void);

/* --- What there is to say --- */

enum stint_level { STINT_LEVEL_NOTE, STINT_LEVEL_WARNING, STINT_LEVEL_ERROR };

/* All but `message` may be NULL. */
struct stint_diagnostic {
	enum stint_level level;
	const char *file, *node, *op; /* where: a file, a node or tensor in it, its operator */
	const char *message, *hint;
};

/* Somebody who waits for long work; any member may be NULL. Called from the thread that works. */
struct stint_onlooker {
	void *user;
	/* What is being done: "planning for the smallest budget". Valid during the call. */
	void (*now)(void *user, const char *what);
	/* Not 0: the call is to return with STINT_STATUS_INTERRUPTED and nothing half-written.
	 * Asked up to fifty times a second, while a plan is searched, while make runs and between
	 * stages; reading a model and placing buffers may take seconds in between for the largest.
	 */
	int (*stop)(void *user);
};

/* --- Options: those of the command line, by their names --- */

struct stint_options;

STINT_PUBLIC int stint_options_new(struct stint_options **out, const char *model);
STINT_PUBLIC void stint_options_free(struct stint_options *o);
/* `--NAME VALUE`: name "budget", value "70%". A flag's value is NULL. What may be repeated is set
 * again, and nothing else is: "dim", "N=4". What does not go together is found when a plan is made.
 */
STINT_PUBLIC int stint_options_set(struct stint_options *o, const char *name, const char *value);
/* By index from 0, in the order told; NULL: there are no more. */
STINT_PUBLIC const struct stint_diagnostic *stint_options_diagnostic(
	const struct stint_options *o, size_t index);

struct stint_option {
	const char *name;  /* "budget" */
	const char *value; /* what its value is called, "SIZE"; NULL: a flag */
	const char *help;
	const char *const *words; /* all that the value may be, ended by NULL; NULL: not a word */
};
/* The options that there are, by index from 0. Returns 0 where there are no more. */
STINT_PUBLIC int stint_option_at(size_t index, struct stint_option *out);

/* --- Plans --- */

struct stint_result;

/* `stint plan`: the plan, and nothing written. */
STINT_PUBLIC int stint_plan(struct stint_result **out, const struct stint_options *o,
	const struct stint_onlooker *onlooker);
/* `stint compile -o DIR`: DIR as a whole, with its step built unless "no-build" is set; or, where
 * anything fails, DIR as it was. Runs `make`. */
STINT_PUBLIC int stint_compile(struct stint_result **out, const struct stint_options *o,
	const char *dir, const struct stint_onlooker *onlooker);
/* `stint frontier`: what other budgets cost. "points" says how many; "budget" may not be set. */
STINT_PUBLIC int stint_frontier(struct stint_result **out, const struct stint_options *o,
	const struct stint_onlooker *onlooker);
/* The plan of a folder that was compiled before. */
STINT_PUBLIC int stint_read_plan(struct stint_result **out, const char *dir);
STINT_PUBLIC void stint_result_free(struct stint_result *r);
STINT_PUBLIC const struct stint_diagnostic *stint_result_diagnostic(
	const struct stint_result *r, size_t index);

struct stint_facts {
	int feasible;         /* 0: only budget_bytes and min_bytes_... hold */
	int64_t budget_bytes; /* -1: none was asked for */
	int64_t arena_bytes, peak_bytes;
	/* Of a budget that is not met: the least that is known to be, and what no plan is below.
	 * -1: not known. */
	int64_t min_bytes_known, min_bytes_proven;
	double cost_once, cost_total; /* everything once; all that the plan runs */
	double lower_bound;           /* of the cost, for this budget; negative: none is proven */
	int cost_is_time;             /* costs are predicted microseconds */
	int steps, peak_step;         /* of the schedule, from 0 */
	int recomputed_ops, recomputed_runs;
	int micro_batches; /* of a step; 1: the batch is taken whole. 0: not known (stint_read_plan)
			    */
};
/* NULL where there is no plan: after a failure other than STINT_STATUS_BUDGET, and of a frontier.
 */
STINT_PUBLIC const struct stint_facts *stint_result_facts(const struct stint_result *r);

/* One step of a plan's schedule. */
struct stint_plan_step {
	const char *node; /* as in the problem */
	int phase;        /* 0 forward, 1 backward, 2 update */
	int again;        /* it recomputes what an earlier one made */
	double cost;
	int64_t live_bytes; /* of all tensors while it runs, its workspace included */
};
/* By index from 0. Returns 0 where there are no more, and where there are no facts. */
STINT_PUBLIC int stint_result_step(
	const struct stint_result *r, size_t index, struct stint_plan_step *out);

enum stint_text {
	STINT_TEXT_PLAN,     /* stint-plan-1, JSON; also of a budget that is not met */
	STINT_TEXT_GRAPH,    /* stint-graph-1, JSON: the problem that the plan solves */
	STINT_TEXT_FACTS,    /* JSON: what `stint plan --json` prints */
	STINT_TEXT_REPORT,   /* for people: what `stint compile` prints */
	STINT_TEXT_SCHEDULE, /* for people: step by step, what `stint show --steps` prints first */
	STINT_TEXT_HTML,     /* the page of `stint show --html`; plans for other budgets: seconds */
	STINT_TEXT_TRACE,    /* of `stint show --trace` */
	STINT_TEXT_FRONTIER, /* of stint_frontier, as the next: stint-frontier-1, JSON */
	STINT_TEXT_FRONTIER_SVG
};
/* *text, in UTF-8, ends with a NUL byte, which *len (or NULL) does not count; it is r's. Made when
 * first asked for. STINT_STATUS_USAGE: such a result has no such text. */
STINT_PUBLIC int stint_result_text(struct stint_result *r, enum stint_text kind,
	const struct stint_onlooker *onlooker, const char **text, size_t *len);

/* --- Training: a folder's step, in this process --- */

struct stint_trainer;

/* Opens DIR/step.so, and takes DIR's values. On a GPU's step: the first GPU. */
STINT_PUBLIC int stint_trainer_open(struct stint_trainer **out, const char *dir);
STINT_PUBLIC void stint_trainer_free(struct stint_trainer *t);
/* Of the last call that returned a status. */
STINT_PUBLIC const struct stint_diagnostic *stint_trainer_diagnostic(
	const struct stint_trainer *t, size_t index);

enum stint_kind {
	STINT_KIND_INPUT,     /* set before each step */
	STINT_KIND_TARGET,    /* so too: what the loss compares with */
	STINT_KIND_PARAMETER, /* trained */
	STINT_KIND_FROZEN,    /* a parameter that is not trained */
	STINT_KIND_BUFFER,    /* running statistics */
	STINT_KIND_STATE,     /* the optimizer's */
	STINT_KIND_CONSTANT,
	STINT_KIND_OUTPUT /* holds after an evaluation, until the next call that runs anything */
};
enum stint_dtype {
	STINT_DTYPE_F32,
	STINT_DTYPE_F64,
	STINT_DTYPE_I64,
	STINT_DTYPE_BOOL,
	/* Of constants alone: bf16, the upper half of a float; and numbers that stand for others
	 * (--frozen-precision). */
	STINT_DTYPE_BF16,
	STINT_DTYPE_F16,
	STINT_DTYPE_I8 = 7,
	STINT_DTYPE_U8
};

struct stint_array {
	const char *name; /* as in the model */
	enum stint_kind kind;
	enum stint_dtype type;
	int rank;
	const int64_t *dim;
	size_t bytes;
	/* Where its values lie, for as long as t does; NULL: in a GPU's memory. Aligned to 64
	 * bytes. To be written for inputs, targets and parameters. */
	void *data;
};
/* By index from 0: what the step holds, then its outputs. Returns 0 where there are no more. */
STINT_PUBLIC int stint_trainer_array(
	const struct stint_trainer *t, size_t index, struct stint_array *out);
/* Copies in and out by name; `bytes` must be the array's. The way to a GPU's. */
STINT_PUBLIC int stint_trainer_set(
	struct stint_trainer *t, const char *name, const void *data, size_t bytes);
STINT_PUBLIC int stint_trainer_get(
	struct stint_trainer *t, const char *name, void *data, size_t bytes);

/* The optimizer's own rate, as compiled. */
STINT_PUBLIC double stint_trainer_rate(const struct stint_trainer *t);
/* Steps done. Dropout depends on it and on the seed, and so may an optimizer. */
STINT_PUBLIC int64_t stint_trainer_steps(const struct stint_trainer *t);
STINT_PUBLIC void stint_trainer_seed(struct stint_trainer *t, int64_t seed);
/* In how many parts a training step takes the rows of its inputs: an evaluation takes the first of
 * these parts alone. */
STINT_PUBLIC int stint_trainer_parts(const struct stint_trainer *t);
/* The next training step, and no other, takes the first `rows` rows of its inputs, as a step of so
 * large a batch would: an epoch's last ones. Fill the rows behind them with any that could be
 * samples: the last one again. STINT_STATUS_INVALID where the model wants its batch whole, with
 * what it wants it for. */
STINT_PUBLIC int stint_trainer_rows(struct stint_trainer *t, int64_t rows);
/* One step: forward, backward, updates. `loss` may be NULL. */
STINT_PUBLIC int stint_trainer_train(struct stint_trainer *t, double rate, double *loss);
/* The same of a step whose loss the caller computes (--loss outside:NAME), in two parts, or, of a
 * batch in parts, in two for each of them. Between them there are the outputs that the loss is of
 * and their gradients, all of which the caller writes: of the loss of the whole batch. Nothing else
 * is called meanwhile. `loss` is what stint_trainer_train would tell; NAN where it is not known. */
STINT_PUBLIC int stint_trainer_forward(struct stint_trainer *t);
STINT_PUBLIC int stint_trainer_backward(struct stint_trainer *t, double rate, double loss);
/* Output `index` of these, and where its gradient is to be written (NULL: nothing that is trained
 * depends on it), both of value's type and shape. 0: there are no more, or none now. */
STINT_PUBLIC int stint_trainer_outside(
	const struct stint_trainer *t, size_t index, struct stint_array *value, void **gradient);
/* So many rows of these count, the first ones: all but after stint_trainer_rows, where the last
 * parts may have none. Gradients of the others are zeros, whatever is written there. */
STINT_PUBLIC int64_t stint_trainer_outside_rows(const struct stint_trainer *t);
/* The gradients that a training step leaves, by index from 0: by parameters (--optimizer none) and
 * by inputs (--input-gradient), of whose names, kinds, types and shapes they are. Each lies in
 * `data`, to be read, until anything is run again; NULL: nothing was trained since. 0: there are no
 * more. */
STINT_PUBLIC int stint_trainer_gradient(
	const struct stint_trainer *t, size_t index, struct stint_array *out);
/* The model as it answers when it is not trained, and the loss of the first `rows` rows (0: all).
 * NaN without a loss. Of a batch in micro-batches it takes the first one's rows. */
STINT_PUBLIC int stint_trainer_eval(struct stint_trainer *t, int64_t rows, double *loss);

/* One of the losses whose sum, each times its weight, is trained. */
struct stint_loss {
	const char *name; /* "cross-entropy", or what it was called */
	const char *text; /* as it was asked for: "0.5*cross-entropy:output=aux,name=aux" */
	double weight;
	double value; /* of the last step or evaluation, before its weight; NaN: there was none */
};
/* By index from 0. Returns 0 where there are no more. */
STINT_PUBLIC int stint_trainer_loss(
	const struct stint_trainer *t, size_t index, struct stint_loss *out);

/* Parameters, running statistics and optimizer states, as safetensors by the model's names. All of
 * the file or nothing. With the number of steps done and the seed: training goes on from it bit for
 * bit. Values that have become NaN or infinite are not saved: STINT_STATUS_DIVERGED. */
STINT_PUBLIC int stint_trainer_save(struct stint_trainer *t, const char *path);
/* From such a file, or from another that has the model's names; then what it lacks keeps its
 * values, with a warning. `strict`: names that are missing or too many are an error. Where it
 * fails, nothing is changed. */
STINT_PUBLIC int stint_trainer_load(struct stint_trainer *t, const char *path, int strict);

#ifdef __cplusplus
}
#endif
#endif
