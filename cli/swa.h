/* stint train --swa-start: the mean of the parameters over epochs, kept beside the step. */
#ifndef STINT_CLI_SWA_H
#define STINT_CLI_SWA_H

#include "api/load.h"
#include "train/weight_average.h"

struct training;
struct safetensors;
struct safetensors_entry;

struct swa {
	int64_t start; /* the first epoch whose end counts, from 1; 0: no average is kept */
	struct swa_rate rate;
	int64_t epochs;  /* that are in the mean */
	bool statistics; /* and running statistics of it are there, too */
	/* Parameters, then running statistics, in the training's arena. */
	int n, parameters;
	struct safetensors_entry *mean;
	int *resident;
};

/* --swa-start and --swa-lr as they were given. Requires the step, loaded. */
enum status swa_begin(struct training *t);
/* An epoch is over, which t->place still counts as running. Values that are not finite are left out
 * of the mean. */
enum status swa_epoch(struct training *t);
/* What a checkpoint is to keep. */
void swa_saved(const struct swa *s, const struct safetensors_entry **entry, int *n);
/* The means of a checkpoint that holds those of `epochs`. */
enum status swa_resume(struct training *t, const struct safetensors *file, int64_t epochs);

/* Whether there is a mean whose running statistics are to be made. */
bool swa_is_due(const struct swa *s);
/* The mean takes the parameters' place in the step, and running statistics become what
 * torch.optim.swa_utils.update_bn makes of them: the equal mean over one epoch's batches, forward
 * as in training. *stopped: a signal came. swa_take_back brings the step back as it was in any
 * case; `done`: the statistics hold. */
enum status swa_put(struct training *t, bool *stopped);
enum status swa_take_back(struct training *t, bool done);

#endif
