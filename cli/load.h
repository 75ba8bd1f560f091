/* A compiled directory, loaded: its model, and the runtime that it was built with. */
#ifndef STINT_CLI_LOAD_H
#define STINT_CLI_LOAD_H

#include "base/base.h"
#include "runtime/stint_rt.h"

struct loaded {
	void *handle;
	const struct stint_model *model;
	stint_step *step;
	/* the directory's own runtime */
	int (*init)(stint_step **, const struct stint_model *, void *, size_t);
	void (*free)(stint_step *);
	int (*load)(stint_step *, const char *);
	void (*seed)(stint_step *, int64_t);
	int (*train)(stint_step *, double, const struct stint_probe *);
	int (*eval)(stint_step *, int64_t, const struct stint_probe *);
	double (*loss)(const stint_step *);
	const char *(*message)(const stint_step *);
};

/* Open DIR/step.so, set the step up and load `weights` (NULL: DIR's own). */
enum status load_open(
	struct arena *a, const char *dir, const char *weights, struct loaded *out, struct diag *d);
void load_close(struct loaded *l);

/* A failure of the runtime as a status with its message. */
enum status load_fail(const struct loaded *l, int rc, const char *what, struct diag *d);

/* Place of a resident in the arena. */
void *load_at(const struct loaded *l, int resident);
/* Resident by name and kind, or -1. */
int load_find(const struct loaded *l, const char *name, int kind);

#endif
