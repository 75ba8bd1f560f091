/* --weights: starting values from a file of the user's, with a word about all that does not fit. */
#ifndef STINT_API_WEIGHTS_H
#define STINT_API_WEIGHTS_H

#include "api/load.h"

/* Averages of the parameters that a checkpoint holds: over the steps (compile --ema), over epochs
 * (train --swa-start). */
enum weights_average { WEIGHTS_TRAINED, WEIGHTS_EMA, WEIGHTS_SWA };

struct weights {
	const char *path; /* NULL: DIR's own values stay */
	int strict;       /* names missing or unused are errors */
	int skip;         /* tensors of another shape keep DIR's values */
	int average;      /* enum weights_average: these in the values' place */
};

/* What --weights-strict and --skip-mismatched are in a popt table. */
/* clang-format off */
#define WEIGHTS_OPTIONS(w)                                                                         \
	{"weights-strict", 0, POPT_ARG_NONE, &(w).strict, 0,                                       \
		"--weights must hold every tensor of the model and no other", NULL},               \
	{"skip-mismatched", 0, POPT_ARG_NONE, &(w).skip, 0,                                        \
		"pass over tensors of --weights that have another shape in the model", NULL}
#define AVERAGE_OPTIONS(average)                                                                   \
	{"ema", 0, POPT_ARG_VAL, &(average), WEIGHTS_EMA,                                          \
		"averages over the steps in the parameters' place (compile --ema)", NULL},         \
	{"swa", 0, POPT_ARG_VAL, &(average), WEIGHTS_SWA,                                          \
		"the average over epochs in their place", NULL}
/* clang-format on */

/* Parameters, running statistics and, where the file holds any, optimizer states, by name. Where
 * something is wrong nothing is loaded, and every problem is told. */
enum status weights_load(
	struct arena *a, const struct loaded *l, const struct weights *w, struct diag *d);
/* A folder's newest good checkpoint, or the file itself that is named. */
enum status weights_of_checkpoint(
	struct arena *a, const char *checkpoint, const char **path, struct diag *d);

/* The folder of checkpoints in `dir`, where training saves unless told otherwise; NULL: no memory.
 */
const char *weights_folder(struct arena *a, const char *dir);
/* The newest checkpoint there; *path NULL: nothing has been trained yet, which a note tells. */
enum status weights_trained(struct arena *a, const char *dir, const char **path, struct diag *d);
/* `eval` and `predict`: whose values are taken, --weights' or --checkpoint's (either may be NULL),
 * or, as a note tells, those that were trained last. */
enum status weights_choose(struct arena *a, const char *dir, const char *file,
	const char *checkpoint, struct weights *w, struct diag *d);

struct safetensors;
struct safetensors_entry;
/* The value of `name` in a file: its average, where one is asked for and there (for running
 * statistics as well, of WEIGHTS_SWA), else its own; NULL: neither, or (*nomem) no memory. */
const struct safetensors_entry *weights_find(struct arena *a, const struct safetensors *file,
	const char *name, int average, bool *nomem);
/* Whose average of that kind an entry's name says that it is; NULL: it is none. */
const char *weights_averaged(const char *entry, int average);
/* ST_INVALID where an average is asked for and the file, `path`, holds none. */
enum status weights_check_average(
	const struct safetensors *file, const char *path, int average, struct diag *d);

#endif
