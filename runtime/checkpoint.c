/* SPDX-License-Identifier: MIT-0 */
/* The folder of checkpoints: what is saved, kept, found again and loaded. */
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

#include "checkpoint_inside.h"

enum { PATH = 512, MESSAGE = CHECKPOINT_MESSAGE };

int checkpoint_holds(const struct stint_tensor *t)
{
	return t->kind == STINT_PARAMETER || t->kind == STINT_BUFFER || t->kind == STINT_STATE;
}

static int fail(char *message, const char *what, const char *path)
{
	return checkpoint_fail(message, what, path, errno);
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

/* Of several processes the first one has the folder. */
static bool keeps_folder(const struct stint_step *s)
{
	return !s->ranks || s->ranks->rank == 0;
}

int checkpoint_save(const char *folder, const struct stint_step *s,
	const struct checkpoint_place *place, int64_t keep, char message[256])
{
	char path[PATH];
	if ((keeps_folder(s) && make_folder(folder, message)) ||
		checkpoint_path(folder, place->step, path, message))
		return 1;
	const int rc = checkpoint_write(path, s, place, message);
	if (!rc && keeps_folder(s))
		clean(folder, place->step, keep);
	return rc;
}

int checkpoint_save_as(const char *folder, const char *name, const struct stint_step *s,
	const struct checkpoint_place *place, char message[256])
{
	char path[PATH];
	if (keeps_folder(s) && make_folder(folder, message))
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
	unsigned long crc = checkpoint_sum_of_place(place);
	unsigned char *part = malloc(STEP);
	int rc = !part;
	for (int i = 0; i < safetensors_count(f) && !rc; i++) {
		const struct safetensors_entry *e = safetensors_at(f, i);
		for (size_t at = 0; at < e->bytes && !rc; at += STEP) {
			size_t n = e->bytes - at < STEP ? e->bytes - at : STEP;
			rc = safetensors_read(f, e, at, n, part);
			if (!rc)
				crc = checkpoint_add_bytes(crc, part, n);
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
	if (!kind || strcmp(kind, CHECKPOINT_FORMAT) != 0)
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
	*is = kind && !strcmp(kind, CHECKPOINT_FORMAT);
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
		beside += checkpoint_is_beside(safetensors_at(f, k)->name);
	/* Names in a file differ, so that all wanted ones were found; any other is too much. */
	const int known = wanted + beside;
	for (int k = 0; known < safetensors_count(f) && k < safetensors_count(f); k++) {
		const char *name = safetensors_at(f, k)->name;
		if (checkpoint_is_beside(name))
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
