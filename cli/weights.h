/* --weights: starting values from a file of the user's, with a word about all that does not fit. */
#ifndef STINT_CLI_WEIGHTS_H
#define STINT_CLI_WEIGHTS_H

#include "cli/load.h"

struct weights {
	const char *path; /* NULL: DIR's own values stay */
	int strict;       /* names missing or unused are errors */
	int skip;         /* tensors of another shape keep DIR's values */
};

/* What --weights-strict and --skip-mismatched are in a popt table. */
/* clang-format off */
#define WEIGHTS_OPTIONS(w)                                                                         \
	{"weights-strict", 0, POPT_ARG_NONE, &(w).strict, 0,                                       \
		"--weights must hold every tensor of the model and no other", NULL},               \
	{"skip-mismatched", 0, POPT_ARG_NONE, &(w).skip, 0,                                        \
		"pass over tensors of --weights that have another shape in the model", NULL}
/* clang-format on */

/* Parameters, running statistics and, where the file holds any, optimizer states, by name. Where
 * something is wrong nothing is loaded, and every problem is told. */
enum status weights_load(
	struct arena *a, const struct loaded *l, const struct weights *w, struct diag *d);
/* A folder's newest good checkpoint, or the file itself that is named. */
enum status weights_of_checkpoint(
	struct arena *a, const char *checkpoint, const char **path, struct diag *d);

/* `eval` and `predict`: whose values are taken, --weights' or --checkpoint's (either may be NULL).
 */
enum status weights_choose(struct arena *a, const char *file, const char *checkpoint,
	struct weights *w, struct diag *d);

/* Each parameter and its average (compile --ema) change places: before looking at what the averages
 * do, and again behind it. ST_USAGE where the step keeps none; before the first training step the
 * parameters stay, since they are their averages. */
enum status weights_swap_averages(const struct loaded *l, struct diag *d);

#endif
