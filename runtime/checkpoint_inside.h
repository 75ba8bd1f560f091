/* SPDX-License-Identifier: MIT-0 */
/* What the files of checkpoint.h share. Checkpoints are safetensors files; a sum over the place and
 * the tensors, in the order of their names, tells a broken one even where its header can be read.
 */
#ifndef STINT_CHECKPOINT_INSIDE_H
#define STINT_CHECKPOINT_INSIDE_H

#include "checkpoint.h"
#include "safetensors.h"

#define CHECKPOINT_FORMAT "stint-checkpoint-1"
enum { CHECKPOINT_MESSAGE = 256 };

/* "WHAT PATH: why", of an errno. Returns 1. */
int checkpoint_fail(char *message, const char *what, const char *path, int why);
int checkpoint_is_beside(const char *name);

/* The sum begins with where training stood: a digit changed there would go unseen otherwise. */
unsigned long checkpoint_sum_of_place(const struct checkpoint_place *place);
unsigned long checkpoint_add_bytes(unsigned long sum, const void *data, size_t n);

struct checkpoint_notes {
	int n;
	struct safetensors_note note[8];
	char text[4][24], sum[16];
};
void checkpoint_make_notes(struct checkpoint_notes *x, const struct checkpoint_place *place,
	const char *model, unsigned long sum);

/* A checkpoint's entries, in the order of their names, and whose values they are: resident[i], -1
 * those of `beside`. Of what a process has a piece, `data` is that, and `bytes` of all of it. */
struct checkpoint_entries {
	int n;
	struct safetensors_entry *entry;
	int *resident;
};

/* checkpoint_write of processes that are several (checkpoint_together.c). */
int checkpoint_write_together(const char *path, const struct stint_step *s,
	const struct checkpoint_place *place, const struct checkpoint_entries *e,
	char message[256]);

#endif
