/* SPDX-License-Identifier: MIT-0 */
/* What a checkpoint holds, and its file, by one process. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "checkpoint_inside.h"

int checkpoint_fail(char *message, const char *what, const char *path, int why)
{
	snprintf(message, CHECKPOINT_MESSAGE, "%s %.150s: %s", what, path, strerror(why));
	return 1;
}

int checkpoint_is_beside(const char *name)
{
	return !strncmp(name, CHECKPOINT_BESIDE, sizeof CHECKPOINT_BESIDE - 1);
}

/* --- The sum, and the notes --- */

unsigned long checkpoint_add_bytes(unsigned long sum, const void *data, size_t n)
{
	enum { STEP = 1 << 30 };
	const unsigned char *p = data;
	for (; n > STEP; n -= STEP, p += STEP)
		sum = crc32(sum, p, STEP);
	return n ? crc32(sum, p, (uInt)n) : sum;
}

unsigned long checkpoint_sum_of_place(const struct checkpoint_place *place)
{
	char text[128];
	const char *more = place->training ? place->training : "";
	const int n = snprintf(text, sizeof text, "%" PRId64 " %" PRId64 " %" PRId64 " %" PRId64,
		place->step, place->epoch, place->batch, place->seed);
	return checkpoint_add_bytes(
		checkpoint_add_bytes(crc32(0, NULL, 0), text, (size_t)n), more, strlen(more));
}

void checkpoint_make_notes(struct checkpoint_notes *x, const struct checkpoint_place *place,
	const char *model, unsigned long sum)
{
	const int64_t value[4] = {place->step, place->epoch, place->batch, place->seed};
	snprintf(x->sum, sizeof x->sum, "%08lx", sum);
	for (int i = 0; i < 4; i++)
		snprintf(x->text[i], sizeof x->text[i], "%" PRId64, value[i]);
	const struct safetensors_note note[] = {{"format", CHECKPOINT_FORMAT}, {"model", model},
		{"step", x->text[0]}, {"epoch", x->text[1]}, {"batch", x->text[2]},
		{"seed", x->text[3]}, {"crc32", x->sum}, {"training", place->training}};
	memcpy(x->note, note, sizeof note);
	x->n = (int)(sizeof note / sizeof *note) - !place->training;
}

/* --- Entries --- */

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct safetensors_entry *)a)->name,
		((const struct safetensors_entry *)b)->name);
}

static void entries_free(const struct stint_step *s, struct checkpoint_entries *e)
{
	for (int i = 0; e->entry && i < e->n; i++) {
		if (!checkpoint_is_beside(e->entry[i].name) && e->entry[i].data)
			s->device->let(s, (void *)(uintptr_t)e->entry[i].data);
		free(e->entry[i].user);
	}
	free(e->entry);
	free(e->resident);
}

/* What is in a step's file goes from there to the other, by parts. */
struct away {
	const struct stint_step *s;
	size_t offset;
};

static int read_away(void *user, size_t from, size_t n, void *out)
{
	const struct away *x = user;
	return stint_read(x->s, x->offset + from, out, n);
}

/* 1: no memory. */
static int leave(
	const struct stint_step *s, const struct stint_tensor *t, struct safetensors_entry *entry)
{
	struct away *x = malloc(sizeof *x);
	entry->user = x;
	entry->part = read_away;
	if (x)
		*x = (struct away){s, t->offset};
	return !x;
}

/* 1: no memory, or the device failed. */
static int hold(const struct stint_step *s, int i, struct safetensors_entry *entry)
{
	const struct stint_tensor *t = &s->model->resident[i];
	const struct stint_filed f = stint_filed(s, i);
	*entry = (struct safetensors_entry){
		.name = t->name, .dtype = t->dtype, .rank = f.rank, .dim = f.dim, .bytes = f.bytes};
	if (s->model->disk && t->offset >= s->model->arena_bytes)
		return leave(s, t, entry);
	entry->data = s->device->hold(s, t->offset, t->bytes, 1);
	return !entry->data;
}

static void find_residents(const struct stint_step *s, struct checkpoint_entries *e)
{
	for (int i = 0; i < e->n; i++)
		e->resident[i] = -1;
	for (int i = 0; i < s->model->nresident; i++) {
		const struct safetensors_entry key = {.name = s->model->resident[i].name},
					       *found = NULL;
		if (checkpoint_holds(&s->model->resident[i]))
			found = bsearch(&key, e->entry, (size_t)e->n, sizeof key, by_name);
		if (found)
			e->resident[found - e->entry] = i;
	}
}

/* Values are held until entries_free, which is due in any case. */
static int entries_make(const struct stint_step *s, const struct checkpoint_place *place,
	struct checkpoint_entries *e)
{
	const size_t most = (size_t)s->model->nresident + (size_t)place->nbeside + 1;
	*e = (struct checkpoint_entries){.entry = calloc(most, sizeof *e->entry),
		.resident = calloc(most, sizeof *e->resident)};
	if (!e->entry || !e->resident)
		return 1;
	for (int i = 0; i < s->model->nresident; i++)
		if (checkpoint_holds(&s->model->resident[i]) && hold(s, i, &e->entry[e->n++]))
			return 1;
	for (int i = 0; i < place->nbeside; i++)
		e->entry[e->n++] = place->beside[i];
	qsort(e->entry, (size_t)e->n, sizeof *e->entry, by_name);
	find_residents(s, e);
	return 0;
}

/* --- The file --- */

static int add_part(void *to, const void *part, size_t n)
{
	unsigned long *sum = to;
	*sum = checkpoint_add_bytes(*sum, part, n);
	return 0;
}

static int write_alone(const char *path, const struct stint_step *s,
	const struct checkpoint_place *place, const struct checkpoint_entries *e, char *message)
{
	struct checkpoint_notes notes;
	unsigned long sum = checkpoint_sum_of_place(place);
	for (int i = 0; i < e->n; i++)
		if (safetensors_parts(&e->entry[i], e->entry[i].bytes, add_part, &sum))
			return checkpoint_fail(message, "cannot write", path, EIO);
	checkpoint_make_notes(&notes, place, s->model->name, sum);
	return safetensors_write(path, e->entry, e->n, notes.note, notes.n, message);
}

int checkpoint_write(const char *path, const struct stint_step *s,
	const struct checkpoint_place *place, char message[CHECKPOINT_MESSAGE])
{
	struct checkpoint_entries e;
	int rc;
	if (s->model->npiece && !s->ranks) {
		snprintf(message, CHECKPOINT_MESSAGE,
			"cannot write %.150s: the states of a step for %d processes are theirs "
			"together",
			path, s->model->ranks);
		return 1;
	}
	if (entries_make(s, place, &e))
		rc = checkpoint_fail(message, "cannot write", path, ENOMEM);
	else if (s->ranks && s->ranks->n > 1)
		rc = checkpoint_write_together(path, s, place, &e, message);
	else
		rc = write_alone(path, s, place, &e, message);
	entries_free(s, &e);
	return rc;
}
