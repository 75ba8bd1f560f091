/* SPDX-License-Identifier: MIT-0 */
/* Checkpoints are safetensors files; a sum over the place and the tensors, in the order of their
 * names, tells a broken one even where its header can be read. */
#include "checkpoint.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "safetensors.h"

static const char format[] = "stint-checkpoint-1";
enum { PATH = 512, MESSAGE = 256 };

int checkpoint_holds(const struct stint_tensor *t)
{
	return t->kind == STINT_PARAMETER || t->kind == STINT_BUFFER || t->kind == STINT_STATE;
}

static int fail(char *message, const char *what, const char *path)
{
	snprintf(message, MESSAGE, "%s %.150s: %s", what, path, strerror(errno));
	return 1;
}

/* --- The folder --- */

int checkpoint_path(const char *folder, int64_t step, char path[PATH], char message[MESSAGE])
{
	int n = snprintf(path, PATH, "%s/step-%08" PRId64 ".safetensors", folder, step);
	if (n < 0 || n >= PATH) {
		errno = ENAMETOOLONG;
		return fail(message, "cannot use", folder);
	}
	return 0;
}

/* The step in a checkpoint's file name, or -1; *rest: what follows the name. */
static int64_t step_of(const char *name, const char **rest)
{
	int64_t step = 0;
	if (strncmp(name, "step-", 5) != 0)
		return -1;
	const char *p = name + 5;
	for (; *p >= '0' && *p <= '9'; p++)
		if (__builtin_mul_overflow(step, 10, &step) ||
			__builtin_add_overflow(step, *p - '0', &step))
			return -1;
	if (p - name < 5 + 8 || strncmp(p, ".safetensors", 12) != 0)
		return -1;
	*rest = p + 12;
	return step;
}

static int newest_first(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
	return (x < y) - (x > y);
}

/* The steps of the folder's checkpoints, newest first, in *step (the caller frees it). A folder
 * that is not there has none. */
static int list(const char *folder, int64_t **step, size_t *n, char *message)
{
	size_t cap = 16;
	struct dirent *entry;
	*n = 0;
	*step = malloc(cap * sizeof **step);
	if (!*step)
		return fail(message, "cannot list", folder);
	DIR *dir = opendir(folder);
	if (!dir)
		return errno == ENOENT ? 0 : fail(message, "cannot list", folder);
	while ((entry = readdir(dir))) {
		const char *rest;
		int64_t number = step_of(entry->d_name, &rest);
		if (number < 0 || *rest)
			continue;
		if (*n == cap) {
			int64_t *grown = realloc(*step, 2 * cap * sizeof **step);
			if (!grown) {
				closedir(dir);
				return fail(message, "cannot list", folder);
			}
			*step = grown;
			cap *= 2;
		}
		(*step)[(*n)++] = number;
	}
	closedir(dir);
	qsort(*step, *n, sizeof **step, newest_first);
	return 0;
}

static int make_folder(const char *folder, char *message)
{
	char path[PATH];
	size_t len = strlen(folder);
	if (len >= PATH) {
		errno = ENAMETOOLONG;
		return fail(message, "cannot make", folder);
	}
	memcpy(path, folder, len + 1);
	for (size_t i = 1; i <= len; i++)
		if (path[i] == '/' || !path[i]) {
			path[i] = '\0';
			if (mkdir(path, 0777) != 0 && errno != EEXIST)
				return fail(message, "cannot make", path);
			path[i] = folder[i];
		}
	return 0;
}

/* The file is named as an interrupted save's: a later save's clean finds it where it was left. */
int checkpoint_try(const char *folder, char message[MESSAGE])
{
	static const char block[4096];
	char path[PATH];
	if (make_folder(folder, message) || checkpoint_path(folder, 0, path, message))
		return 1;
	const size_t len = strlen(path);
	if (snprintf(path + len, PATH - len, ".tmp%ld", (long)getpid()) >= (int)(PATH - len)) {
		errno = ENAMETOOLONG;
		return fail(message, "cannot use", folder);
	}
	const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	if (fd < 0)
		return fail(message, "cannot write", path);
	errno = ENOSPC; /* what a write that stops short means */
	int rc = write(fd, block, sizeof block) != (ssize_t)sizeof block || fsync(fd) != 0;
	if (rc)
		fail(message, "cannot write", path);
	close(fd);
	if (unlink(path) != 0 && !rc)
		rc = fail(message, "cannot remove", path);
	return rc;
}

/* Removes what save's comment says, and what interrupted saves left. Failing to is no failure. */
static void clean(const char *folder, int64_t step, int64_t keep)
{
	char path[PATH], message[MESSAGE];
	int64_t *all, kept = 1;
	size_t n;
	struct dirent *entry;
	if (!list(folder, &all, &n, message))
		for (size_t i = 0; i < n; i++) {
			const bool stays = all[i] < step && (!keep || kept < keep);
			kept += stays;
			if (!stays && all[i] != step &&
				!checkpoint_path(folder, all[i], path, message))
				(void)unlink(path);
		}
	free(all);
	DIR *dir = opendir(folder);
	while (dir && (entry = readdir(dir))) {
		const char *rest;
		if (step_of(entry->d_name, &rest) >= 0 && !strncmp(rest, ".tmp", 4) &&
			(size_t)snprintf(path, PATH, "%s/%s", folder, entry->d_name) < PATH)
			(void)unlink(path);
	}
	if (dir)
		closedir(dir);
}

/* --- Saving --- */

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct safetensors_entry *)a)->name,
		((const struct safetensors_entry *)b)->name);
}

static uLong add_bytes(uLong sum, const unsigned char *p, size_t n)
{
	enum { STEP = 1 << 30 };
	for (; n > STEP; n -= STEP, p += STEP)
		sum = crc32(sum, p, STEP);
	return crc32(sum, p, (uInt)n);
}

/* The sum begins with where training stood: a digit changed there would go unseen otherwise. */
static uLong sum_of_place(const struct checkpoint_place *place)
{
	char text[128];
	int n = snprintf(text, sizeof text, "%" PRId64 " %" PRId64 " %" PRId64 " %" PRId64,
		place->step, place->epoch, place->batch, place->seed);
	const uLong sum = crc32(crc32(0, NULL, 0), (const unsigned char *)text, (uInt)n);
	const char *more = place->training ? place->training : "";
	return add_bytes(sum, (const unsigned char *)more, strlen(more));
}

static int add_part(void *to, const void *part, size_t n)
{
	uLong *sum = to;
	*sum = add_bytes(*sum, part, n);
	return 0;
}

static int write_file(const char *path, const struct safetensors_entry *entry, int n,
	const struct checkpoint_place *place, const char *model, char *message)
{
	const int64_t value[4] = {place->step, place->epoch, place->batch, place->seed};
	char text[4][24], sum[16];
	uLong crc = sum_of_place(place);
	for (int i = 0; i < n; i++)
		if (safetensors_parts(&entry[i], entry[i].bytes, add_part, &crc))
			return fail(message, "cannot write", path);
	snprintf(sum, sizeof sum, "%08lx", crc);
	for (int i = 0; i < 4; i++)
		snprintf(text[i], sizeof text[i], "%" PRId64, value[i]);
	const struct safetensors_note note[] = {{"format", format}, {"model", model},
		{"step", text[0]}, {"epoch", text[1]}, {"batch", text[2]}, {"seed", text[3]},
		{"crc32", sum}, {"training", place->training}};
	const int nnote = (int)(sizeof note / sizeof *note) - !place->training;
	return safetensors_write(path, entry, n, note, nnote, message);
}

static int is_beside(const char *name)
{
	return !strncmp(name, CHECKPOINT_BESIDE, sizeof CHECKPOINT_BESIDE - 1);
}

/* What is written by parts: a state that processes have in pieces, or a resident in a file. */
struct shared {
	const struct stint_step *s;
	int resident;
	int *rc; /* of the transfer that failed */
};

/* Out of the pieces, others' on loan. */
static int read_shared(void *user, size_t from, size_t n, void *out)
{
	const struct shared *x = user;
	const struct stint_step *s = x->s;
	const size_t offset = s->model->resident[x->resident].offset;
	for (int k = 0; k < s->model->ranks && !*x->rc; k++) {
		const struct stint_filed f = stint_filed_by(s, x->resident, k);
		const size_t end = f.from + f.here < from + n ? f.from + f.here : from + n;
		const size_t begin = f.from > from ? f.from : from;
		void *to = (unsigned char *)out + (begin - from);
		if (begin >= end)
			continue;
		const size_t at = offset + (begin - f.from), bytes = end - begin;
		*x->rc = k == s->ranks->rank ? stint_read(s, at, to, bytes)
					     : s->ranks->borrow(s, k, at, to, bytes);
	}
	return *x->rc;
}

/* What is in a step's file goes from there to the other, by parts. */
static int read_own(void *user, size_t from, size_t n, void *out)
{
	const struct shared *x = user;
	*x->rc = stint_read(x->s, x->s->model->resident[x->resident].offset + from, out, n);
	return *x->rc;
}

static void entries_free(const struct stint_step *s, struct safetensors_entry *entry, int n)
{
	for (int i = 0; entry && i < n; i++) {
		if (!is_beside(entry[i].name) && entry[i].data)
			s->device->let(s, (void *)(uintptr_t)entry[i].data);
		free(entry[i].user);
	}
	free(entry);
}

static int is_in_file(const struct stint_model *m, const struct stint_tensor *t)
{
	return m->disk && t->offset >= m->arena_bytes;
}

/* Of resident i, in the arena, in pieces or in a file. 1: no memory, or the device failed. */
static int make_entry(const struct stint_step *s, int i, int *rc, struct safetensors_entry *entry)
{
	const struct stint_tensor *t = &s->model->resident[i];
	const struct stint_filed f = stint_filed(s, i);
	*entry = (struct safetensors_entry){
		.name = t->name, .dtype = t->dtype, .rank = f.rank, .dim = f.dim, .bytes = f.bytes};
	if (!f.piece && !is_in_file(s->model, t)) {
		entry->data = s->device->hold(s, t->offset, t->bytes, 1);
		return !entry->data;
	}
	struct shared *x = malloc(sizeof *x);
	if (!x)
		return 1;
	*x = (struct shared){s, i, rc};
	entry->part = f.piece ? read_shared : read_own;
	entry->user = x;
	return 0;
}

/* The entries of what is saved, in the order of their names; *n of them. Their values are
 * held until entries_free. NULL: no memory, or the device failed. */
static struct safetensors_entry *entries(
	const struct stint_step *s, const struct checkpoint_place *place, int *rc, int *n)
{
	const struct stint_model *m = s->model;
	struct safetensors_entry *entry = calloc(
		(size_t)m->nresident + (size_t)place->nbeside + 1, sizeof *entry);
	*n = 0;
	for (int i = 0; entry && i < m->nresident; i++) {
		if (!checkpoint_holds(&m->resident[i]))
			continue;
		if (make_entry(s, i, rc, &entry[*n])) {
			entries_free(s, entry, *n);
			return NULL;
		}
		++*n;
	}
	for (int i = 0; entry && i < place->nbeside; i++)
		entry[(*n)++] = place->beside[i];
	if (entry && *n)
		qsort(entry, (size_t)*n, sizeof *entry, by_name);
	return entry;
}

int checkpoint_write(const char *path, const struct stint_step *s,
	const struct checkpoint_place *place, char message[MESSAGE])
{
	int n = 0, lost = 0;
	if (s->model->npiece && !s->ranks) {
		snprintf(message, MESSAGE,
			"cannot write %.150s: the states of a step for %d processes are theirs "
			"together",
			path, s->model->ranks);
		return 1;
	}
	struct safetensors_entry *entry = entries(s, place, &lost, &n);
	if (!entry)
		return fail(message, "cannot write", path);
	const int rc = write_file(path, entry, n, place, s->model->name, message);
	entries_free(s, entry, n);
	if (lost)
		snprintf(message, MESSAGE, "%.255s", s->message);
	return lost ? lost : rc;
}

int checkpoint_save(const char *folder, const struct stint_step *s,
	const struct checkpoint_place *place, int64_t keep, char message[256])
{
	char path[PATH];
	if (make_folder(folder, message) || checkpoint_path(folder, place->step, path, message))
		return 1;
	const int rc = checkpoint_write(path, s, place, message);
	if (rc)
		return rc;
	clean(folder, place->step, keep);
	return 0;
}

int checkpoint_save_as(const char *folder, const char *name, const struct stint_step *s,
	const struct checkpoint_place *place, char message[256])
{
	char path[PATH];
	if (make_folder(folder, message))
		return 1;
	if ((size_t)snprintf(path, PATH, "%s/%s.safetensors", folder, name) >= PATH) {
		errno = ENAMETOOLONG;
		return fail(message, "cannot use", folder);
	}
	return checkpoint_write(path, s, place, message);
}

/* --- Loading --- */

static int broken(char *message, const char *path, const char *why)
{
	snprintf(message, MESSAGE, "%.150s is no good checkpoint: %s", path, why);
	return 1;
}

static int note_number(const struct safetensors *f, const char *key, int64_t *out)
{
	const char *text = safetensors_note(f, key);
	char *end;
	if (!text || !*text)
		return 1;
	errno = 0;
	long long v = strtoll(text, &end, 10);
	*out = v;
	return errno || *end;
}

static int same_sum(
	const struct safetensors *f, const struct checkpoint_place *place, const char *want)
{
	enum { STEP = 1 << 18 };
	char have[16];
	uLong crc = sum_of_place(place);
	unsigned char *part = malloc(STEP);
	int rc = !part;
	for (int i = 0; i < safetensors_count(f) && !rc; i++) {
		const struct safetensors_entry *e = safetensors_at(f, i);
		for (size_t at = 0; at < e->bytes && !rc; at += STEP) {
			size_t n = e->bytes - at < STEP ? e->bytes - at : STEP;
			rc = safetensors_read(f, e, at, n, part);
			if (!rc)
				crc = crc32(crc, part, (uInt)n);
		}
	}
	free(part);
	snprintf(have, sizeof have, "%08lx", crc);
	return !rc && want && !strcmp(have, want);
}

/* Opens a checkpoint and checks all that can be without a model. */
static int open_file(
	struct safetensors **f, const char *path, struct checkpoint_place *place, char *message)
{
	if (safetensors_open_header(f, path, message))
		return 1;
	const char *kind = safetensors_note(*f, "format"), *why = NULL;
	*place = (struct checkpoint_place){.training = safetensors_note(*f, "training")};
	if (!kind || strcmp(kind, format) != 0)
		why = "another format";
	else if (note_number(*f, "step", &place->step) || note_number(*f, "epoch", &place->epoch) ||
		 note_number(*f, "batch", &place->batch) || note_number(*f, "seed", &place->seed) ||
		 place->step < 0 || place->epoch < 0 || place->batch < 0)
		why = "it does not say where training stood";
	else if (!same_sum(*f, place, safetensors_note(*f, "crc32")))
		why = "it was damaged: its sum is another";
	place->training = NULL;
	if (!why)
		return 0;
	safetensors_close(*f);
	*f = NULL;
	return broken(message, path, why);
}

int checkpoint_read_place(
	const char *path, struct checkpoint_place *place, int *is, char message[MESSAGE])
{
	struct safetensors *f;
	*is = 0;
	if (safetensors_open_header(&f, path, message))
		return 1;
	const char *kind = safetensors_note(f, "format");
	*is = kind && !strcmp(kind, format);
	safetensors_close(f);
	if (!*is)
		return 0;
	if (open_file(&f, path, place, message))
		return 1;
	safetensors_close(f);
	return 0;
}

static int another(char *message, const char *path, const char *name, const char *what)
{
	snprintf(message, MESSAGE, "%.100s belongs to another model or optimizer: '%.60s' %s", path,
		name, what);
	return 1;
}

/* Whether the file has exactly what the model wants. */
static int check(
	const struct stint_step *s, const struct safetensors *f, const char *path, char *message)
{
	const struct stint_model *m = s->model;
	int wanted = 0, beside = 0;
	for (int i = 0; i < m->nresident; i++) {
		const struct stint_tensor *t = &m->resident[i];
		if (!checkpoint_holds(t))
			continue;
		const struct safetensors_entry *e = safetensors_find(f, t->name);
		if (!e)
			return another(message, path, t->name, "is missing");
		const struct stint_filed want = stint_filed(s, i);
		if (e->dtype != t->dtype || e->rank != want.rank || e->bytes != want.bytes ||
			(e->rank &&
				memcmp(e->dim, want.dim, (size_t)e->rank * sizeof *e->dim) != 0))
			return another(message, path, t->name, "has another type or shape");
		wanted++;
	}
	for (int k = 0; k < safetensors_count(f); k++)
		beside += is_beside(safetensors_at(f, k)->name);
	/* Names in a file differ, so that all wanted ones were found; any other is too much. */
	const int known = wanted + beside;
	for (int k = 0; known < safetensors_count(f) && k < safetensors_count(f); k++) {
		const char *name = safetensors_at(f, k)->name;
		if (is_beside(name))
			continue;
		int i = 0;
		while (i < m->nresident && (!checkpoint_holds(&m->resident[i]) ||
						   strcmp(m->resident[i].name, name) != 0))
			i++;
		if (i == m->nresident)
			return another(message, path, name, "is not in the model");
	}
	return 0;
}

static int read_entry(struct stint_step *s, const struct safetensors *f, int resident)
{
	const struct stint_tensor *t = &s->model->resident[resident];
	const struct safetensors_entry *e = safetensors_find(f, t->name);
	const struct stint_filed filed = stint_filed(s, resident);
	enum { PART = 16 << 20 };
	int rc = 0;
	for (size_t at = 0; at < filed.here && !rc; at += PART) {
		const size_t n = filed.here - at < PART ? filed.here - at : PART;
		void *held = s->device->hold(s, t->offset + at, n, 0);
		if (!held)
			return 1;
		rc = safetensors_read(f, e, filed.from + at, n, held) ||
		     stint_write(s, t->offset + at, held, n);
		s->device->let(s, held);
	}
	return rc;
}

/* Into the arena. */
static int fill(struct stint_step *s, const struct safetensors *f, const char *path, char *message)
{
	const struct stint_model *m = s->model;
	if (check(s, f, path, message))
		return 1;
	for (int i = 0; i < m->nresident; i++) {
		const struct stint_tensor *t = &m->resident[i];
		if (checkpoint_holds(t) && read_entry(s, f, i))
			return broken(message, path, "it cannot be read");
	}
	return 0;
}

/* Tries the folder's checkpoints, newest first; `s` NULL: for reading only. */
static int search(const char *folder, struct stint_step *s, struct checkpoint_place *place,
	int *found, char used[PATH], char *message)
{
	char why[MESSAGE];
	int64_t *step;
	size_t n;
	struct safetensors *f;
	struct checkpoint_place at;
	*found = 0;
	used[0] = '\0';
	int rc = list(folder, &step, &n, message);
	for (size_t i = 0; i < n && !rc && !*found; i++) {
		rc = checkpoint_path(folder, step[i], used, message);
		if (rc || open_file(&f, used, &at, i ? why : message))
			continue;
		*found = !s || !fill(s, f, used, i ? why : message);
		safetensors_close(f);
	}
	free(step);
	if (!rc && *found)
		*place = at;
	else
		used[0] = '\0';
	return rc || (n && !*found);
}

int checkpoint_load(const char *folder, struct stint_step *s, struct checkpoint_place *place,
	int *found, char used[512], char message[256])
{
	int rc = search(folder, s, place, found, used, message);
	if (!rc && *found) {
		s->count = place->step;
		s->seed = place->seed;
	}
	return rc;
}

int checkpoint_newest(const char *folder, char path[512], char message[256])
{
	struct checkpoint_place place;
	int found;
	return search(folder, NULL, &place, &found, path, message);
}
