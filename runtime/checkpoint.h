/* SPDX-License-Identifier: MIT-0 */
/* Checkpoints: what training needs to go on bit for bit. A folder holds step-00000123.safetensors
 * files, the newest kept; each holds every parameter, running statistic and optimizer state, and
 * its notes say where training stood. Saved atomically. Functions return 0, or 1 with a message
 * (256 bytes). */
#ifndef STINT_CHECKPOINT_H
#define STINT_CHECKPOINT_H

#include <stdint.h>

#include "stint_rt_device.h"

struct safetensors_entry;

/* Another return value of saving: several processes save, and all have come to this failure. */
enum { CHECKPOINT_REFUSED = -1 };

/* What begins so is kept beside what the model has, and loading leaves it alone. */
#define CHECKPOINT_BESIDE "state/swa/"

struct checkpoint_place {
	int64_t step;  /* training steps done */
	int64_t epoch; /* the running epoch, from 0 */
	int64_t batch; /* batches done of it */
	int64_t seed;
	/* What else there is to know, in text: the note "training" of a checkpoint that is saved.
	 * NULL: nothing. Loading sets it to NULL: the file has it. */
	const char *training;
	/* Tensors that are saved, too, named CHECKPOINT_BESIDE and on. Loading sets none. */
	const struct safetensors_entry *beside;
	int nbeside;
};

/* Whether a checkpoint can be written there: makes the folder, writes a file in it and removes it.
 */
int checkpoint_try(const char *folder, char message[256]);
/* The path of the checkpoint of a step. */
int checkpoint_path(const char *folder, int64_t step, char path[512], char message[256]);
/* Whether checkpoints hold such a tensor. */
int checkpoint_holds(const struct stint_tensor *t);
/* Save; then remove all but the newest `keep` (0: none is removed), this one being the newest: ones
 * with a higher step go in any case, they belong to a run that this one has replaced. (Refuse a
 * folder that holds checkpoints before starting another run in it.) Creates the folder. */
int checkpoint_save(const char *folder, const struct stint_step *s,
	const struct checkpoint_place *place, int64_t keep, char message[256]);
/* The same values and notes as FOLDER/NAME.safetensors, where nothing else is touched. */
int checkpoint_save_as(const char *folder, const char *name, const struct stint_step *s,
	const struct checkpoint_place *place, char message[256]);
/* The same as a file of that path. */
int checkpoint_write(const char *path, const struct stint_step *s,
	const struct checkpoint_place *place, char message[256]);
/* Where training stood in a file: *is 0 where it is no checkpoint, of which nothing is wrong. */
int checkpoint_read_place(
	const char *path, struct checkpoint_place *place, int *is, char message[256]);
/* Several processes (stint_mpi.h) save together, all of them at once: each writes its share of the
 * file, which has no trace of them, and where they have states in pieces (struct stint_piece) its
 * own; the first one writes for those that do not see its folder. Saving returns STINT_LOST where
 * one does not answer; then, and on a failure of this process alone, 1, it is for the caller to end
 * the others. Each loads its own pieces. */

/* The newest checkpoint that reads well and fits the model, into the step's arena (and its count
 * and seed); older ones are tried when the newest is broken. *found 0 when the folder has none (no
 * error). A failure, where there are some but none is good, leaves the step as it was. `used` gets
 * its path (at most 512 bytes). */
int checkpoint_load(const char *folder, struct stint_step *s, struct checkpoint_place *place,
	int *found, char used[512], char message[256]);
/* The path of the newest readable checkpoint; "" when there is none. */
int checkpoint_newest(const char *folder, char path[512], char message[256]);

#endif
