/* Data files bound to a compiled model's inputs and target. */
#ifndef STINT_CLI_FEED_H
#define STINT_CLI_FEED_H

#include "cli/args.h"
#include "cli/load.h"
#include "runtime/dataset.h"

enum { FEED_MAX = 32 };

struct feed {
	const struct loaded *l;
	int n;
	struct {
		int resident;
		struct dataset data;
		double scale, shift; /* of real inputs; 1 and 0 for the target */
	} bound[FEED_MAX];
	int64_t samples; /* in every file */
	int64_t batch;   /* samples of a step: the first axis of the model's inputs */
	/* Where these differ in it (a graph's nodes and edges, a sequence and a first state) a
	 * sample is all that one step takes: `batch` is 1, and each file holds as many rows of its
	 * input for every sample. */
	bool whole;
	int64_t rows;   /* of a sample, for the loss: 1, or the first axis of the target */
	int64_t *index; /* of rows, where samples are whole */
	int target;     /* index in bound, or -1 */
};

/* Open the files of `inputs` ("[NAME=]FILE": without a NAME they bind in the model's order) and
 * `target` (NULL: none given). Shapes and types must fit, axis 0 counting samples (a file may hold
 * any number of them); labels must be in range. */
enum status feed_open(struct arena *a, const struct loaded *l, const struct arg_list *inputs,
	const char *target, double scale, double shift, struct feed *out, struct diag *d);
void feed_close(struct feed *f);

/* Samples index[0..n), n ≤ batch, into the arena; missing rows repeat the last one. */
enum status feed_batch(const struct feed *f, const int64_t *index, int64_t n, struct diag *d);

/* "[4, 3]" */
void feed_shape(int rank, const int64_t *dim, char buf[200]);
/* The target holds labels of classes. */
bool feed_has_labels(const struct stint_model *m);
/* The output that the loss with its target reads; NULL: not known. */
const struct stint_output *feed_scored_output(const struct stint_model *m);
/* A number of a loss option ("ignore_index") as compiled in, or `def`. */
double feed_loss_option(const struct stint_model *m, const char *name, double def);

#endif
