/* A model that was compiled for several lengths: each batch takes the step for the shortest that
 * holds it. Files and the longest step's inputs have the longest one's shape; the ends of samples
 * are filled with a token. */
#ifndef STINT_CLI_TRAIN_LENGTHS_H
#define STINT_CLI_TRAIN_LENGTHS_H

#include "api/length_folders.h"
#include "cli/feed.h"

struct length_step {
	struct loaded l;
	int64_t length; /* of --dim */
	int64_t holds;  /* tokens of a row */
	int64_t runs;   /* steps since the start */
};

struct lengths {
	const char *dim; /* NULL: one length, or nobody said --pad: all take the longest */
	int n;
	struct length_step *item; /* growing; of the last, the longest, `l` stays empty */
	const struct loaded *longest;
};

/* `pad`: what --pad was given, "[NAME=]TOKEN"; NULL: nothing. `feed` and `held_out` (n 0: none)
 * mask the ends of samples from now on. lengths_close, also on failure. */
enum status lengths_open(struct arena *a, const char *dir, const char *pad,
	const struct loaded *longest, struct feed *feed, struct feed *held_out, struct lengths *out,
	struct diag *d);
/* The step for the batch that `f` has fed last, its inputs set. */
enum status lengths_take(
	struct lengths *x, const struct feed *f, const struct loaded **step, struct diag *d);
/* The same for an evaluation, which does not count among the runs. The longest one's where another
 * one's target, or output number output[k] (-1: none) that the k-th loss scores, has another shape:
 * scores are kept by it. */
enum status lengths_evaluate(const struct lengths *x, const struct feed *f, const int *output,
	const struct loaded **step, struct diag *d);
/* "  64: 812, 128: 97, 256: 3 steps"; nothing where there is one length. */
void lengths_print(const struct lengths *x);
void lengths_json(const struct lengths *x);
void lengths_close(struct lengths *x);

#endif
