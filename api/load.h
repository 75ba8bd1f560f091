/* A compiled directory, loaded: its model, and the runtime that it was built with. */
#ifndef STINT_API_LOAD_H
#define STINT_API_LOAD_H

#include "base/base.h"
#include "runtime/stint_rt_device.h"

struct weights;

struct loaded {
	void *handle;
	const struct stint_model *model;
	stint_step *step;
	int code; /* what setting the step up gave: STINT_NO_DEVICE, say */
	/* the directory's own runtime */
	int (*init)(stint_step **, const struct stint_model *, void *, size_t);
	int (*init_beside)(stint_step **, const struct stint_model *, stint_step *);
	void (*free)(stint_step *);
	int (*load)(stint_step *, const char *);
	void (*seed)(stint_step *, int64_t);
	int (*train)(stint_step *, double, const struct stint_probe *);
	int (*train_start)(stint_step *, double);
	int (*train_finish)(stint_step *);
	int (*rows)(stint_step *, int64_t);
	int (*forward)(stint_step *);
	int (*backward)(stint_step *, double, double);
	const void *(*outside_value)(const stint_step *, int);
	void *(*outside_gradient)(stint_step *, int);
	int64_t (*outside_rows)(const stint_step *);
	const void *(*gradient)(const stint_step *, const char *);
	int (*eval)(stint_step *, int64_t, const struct stint_probe *);
	double (*loss)(const stint_step *);
	double (*loss_part)(const stint_step *, int);
	const char *(*message)(const stint_step *);
	/* What is held of the step's memory, from when it was asked for: residents, then outputs.
	 */
	void **held;
};

/* Whether `dir` is a folder that stint compiled; else what it is. */
enum status load_folder(struct arena *a, const char *dir, struct diag *d);
/* Open DIR/step.so, for what its model says; load_close, also on failure. */
enum status load_model(struct arena *a, const char *dir, struct loaded *l, struct diag *d);
/* The same, and set the step up. */
enum status load_step(struct arena *a, const char *dir, struct loaded *out, struct diag *d);
/* Of a step that is set up: DIR's values, then those of `w` (api/weights.h; may be NULL). */
enum status load_weights(struct arena *a, const char *dir, const struct weights *w,
	struct loaded *l, struct diag *d);
/* Refuses a step of several processes that have its parameters in pieces: this one is alone. */
enum status load_alone(const char *dir, const struct loaded *l, struct diag *d);
/* All three. */
enum status load_open(struct arena *a, const char *dir, const struct weights *w, struct loaded *out,
	struct diag *d);
/* The step for a shorter length, DIR/length-N, in the arena of `longest`, with the values of its
 * own. `longest` is closed after it. */
enum status load_beside(struct arena *a, const char *dir, const struct loaded *longest,
	struct loaded *out, struct diag *d);
void load_close(struct loaded *l);

/* A failure of the runtime as a status with its message. */
enum status load_fail(const struct loaded *l, int rc, const char *what, struct diag *d);

/* Tensors of the step, by pointers: into the arena, or, where that is a device's, to copies which
 * stay until load_close. NULL: the step has failed, or there is no memory; load_lost says which. */
/* To write a resident: what was written holds after load_send. Before the next of these, what it
 * shows is what was written last. */
void *load_at(const struct loaded *l, int resident);
enum status load_send(const struct loaded *l, int resident, struct diag *d);
/* What a resident holds; what an output does after an evaluation. */
const void *load_values(const struct loaded *l, int resident);
const void *load_output(const struct loaded *l, int output);
enum status load_lost(const struct loaded *l, const char *what, struct diag *d);
/* Whether the arena is a GPU's. */
bool load_on_gpu(const struct loaded *l);
/* Resident by name and kind, or -1. */
int load_find(const struct loaded *l, const char *name, int kind);

/* Whether a loss compares with this resident; and the k-th of those, each once, in the losses'
 * order, -1: there are no more. */
bool load_is_target(const struct stint_model *m, int resident);
int load_target(const struct stint_model *m, int k);
/* An option that a loss was compiled with; NULL: it was not given. */
const struct stint_loss_option *load_loss_option(
	const struct stint_loss_term *loss, const char *name);

#endif
