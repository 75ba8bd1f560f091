/* SPDX-License-Identifier: MIT-0 */
/* Writing safetensors: atomically, the same bytes for the same tensors. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* fsync, fileno */
#endif
#include "safetensors.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "stint_rt.h"

static void put_string(FILE *f, const char *s)
{
	fputc('"', f);
	for (; *s; s++) {
		unsigned char c = (unsigned char)*s;
		if (c == '"' || c == '\\')
			fprintf(f, "\\%c", c);
		else if (c < 32)
			fprintf(f, "\\u%04x", c);
		else
			fputc(c, f);
	}
	fputc('"', f);
}

/* Sets *out; 1 when the entry is malformed or too large. */
static int bytes_of(const struct safetensors_entry *e, int64_t *out)
{
	*out = 0;
	if (!safetensors_type(e->dtype) || e->rank < 0 || e->rank > SAFETENSORS_RANK)
		return 1;
	*out = safetensors_width(e->dtype);
	for (int i = 0; i < e->rank; i++)
		if (e->dim[i] < 0 || __builtin_mul_overflow(*out, e->dim[i], out))
			return 1;
	return (uint64_t)*out > SIZE_MAX;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

int safetensors_check(const struct safetensors_entry *entry, int n, char *message)
{
	int64_t bytes, total = 0;
	int bad = 0;
	const char **name = calloc((size_t)n + 1, sizeof *name);
	if (!name) {
		snprintf(message, SAFETENSORS_MESSAGE, "out of memory");
		return 1;
	}
	for (int i = 0; i < n && !bad; i++) {
		name[i] = entry[i].name;
		bad = bytes_of(&entry[i], &bytes) || __builtin_add_overflow(total, bytes, &total) ||
		      !strcmp(name[i], "__metadata__");
		if (bad)
			snprintf(message, SAFETENSORS_MESSAGE,
				"'%.150s' cannot be written: its name, type or shape does not "
				"suit the format",
				name[i]);
	}
	if (!bad && n)
		qsort(name, (size_t)n, sizeof *name, by_name);
	for (int i = 1; i < n && !bad; i++) {
		bad = !strcmp(name[i - 1], name[i]);
		if (bad)
			snprintf(message, SAFETENSORS_MESSAGE,
				"two tensors to write have the name '%.150s'", name[i]);
	}
	free(name);
	return bad;
}

static void put_header(FILE *f, const struct safetensors_entry *entry, int n,
	const struct safetensors_note *note, int nnote)
{
	int64_t offset = 0, bytes;
	fputc('{', f);
	if (nnote) {
		fputs("\"__metadata__\":{", f);
		for (int i = 0; i < nnote; i++) {
			fputs(i ? "," : "", f);
			put_string(f, note[i].key);
			fputc(':', f);
			put_string(f, note[i].value);
		}
		fputs(n ? "}," : "}", f);
	}
	for (int i = 0; i < n; i++) {
		fputs(i ? "," : "", f);
		put_string(f, entry[i].name);
		fprintf(f, ":{\"dtype\":\"%s\",\"shape\":[", safetensors_type(entry[i].dtype));
		for (int k = 0; k < entry[i].rank; k++)
			fprintf(f, "%s%" PRId64, k ? "," : "", entry[i].dim[k]);
		bytes_of(&entry[i], &bytes);
		fprintf(f, "],\"data_offsets\":[%" PRId64 ",%" PRId64 "]}", offset, offset + bytes);
		offset += bytes;
	}
	fputc('}', f);
}

int safetensors_put_header(FILE *f, const struct safetensors_entry *entry, int n,
	const struct safetensors_note *note, int nnote)
{
	static const unsigned char none[8];
	if (fwrite(none, 1, 8, f) != 8)
		return 1;
	put_header(f, entry, n, note, nnote);
	long end = ftell(f);
	if (end < 0)
		return 1;
	for (; end % 8; end++)
		fputc(' ', f);
	unsigned char length[8];
	for (int i = 0; i < 8; i++)
		length[i] = (unsigned char)((uint64_t)(end - 8) >> (8 * i));
	return fseek(f, 0, SEEK_SET) != 0 || fwrite(length, 1, 8, f) != 8 ||
	       fseek(f, end, SEEK_SET) != 0;
}

int safetensors_parts(const struct safetensors_entry *e, size_t bytes,
	int (*take)(void *to, const void *part, size_t n), void *to)
{
	enum { PART = 1 << 20 };
	if (e->data || !bytes)
		return bytes ? take(to, e->data, bytes) : 0;
	const size_t most = bytes < PART ? bytes : PART;
	unsigned char *part = malloc(most);
	int rc = !part;
	for (size_t at = 0; at < bytes && !rc; at += most) {
		const size_t n = bytes - at < most ? bytes - at : most;
		rc = e->part(e->user, at, n, part);
		if (!rc)
			rc = take(to, part, n);
	}
	free(part);
	return rc;
}

static int put_part(void *to, const void *part, size_t n)
{
	return fwrite(part, 1, n, to) != n;
}

static int put_all(FILE *f, const struct safetensors_entry *entry, int n,
	const struct safetensors_note *note, int nnote, int lasting)
{
	if (safetensors_put_header(f, entry, n, note, nnote))
		return 1;
	for (int i = 0; i < n; i++) {
		int64_t bytes;
		bytes_of(&entry[i], &bytes);
		if (safetensors_parts(&entry[i], (size_t)bytes, put_part, f))
			return 1;
	}
	return fflush(f) != 0 || ferror(f) || (lasting && fsync(fileno(f)) != 0);
}

static void sync_folder(char *path)
{
	char *slash = strrchr(path, '/');
	if (slash)
		slash[slash == path] = '\0';
	int fd = open(slash ? path : ".", O_RDONLY | O_DIRECTORY);
	if (fd >= 0) {
		(void)fsync(fd); /* some file systems refuse: then they cannot do better */
		close(fd);
	}
}

int safetensors_write_at(int fd, const void *data, size_t n, uint64_t at)
{
	const unsigned char *p = data;
	while (n) {
		const ssize_t done = pwrite(fd, p, n, (off_t)at);
		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return done < 0 && errno ? errno : ENOSPC;
		p += done;
		n -= (size_t)done;
		at += (uint64_t)done;
	}
	return 0;
}

int safetensors_draft(struct safetensors_draft *d, const char *path, long owner, char *message)
{
	struct stat st;
	*d = (struct safetensors_draft){NULL, NULL};
	if (stat(path, &st) == 0 && !S_ISREG(st.st_mode)) { /* a rename would replace it */
		snprintf(message, SAFETENSORS_MESSAGE,
			"cannot write %.150s: it is no ordinary file", path);
		return 1;
	}
	d->to = realpath(path, NULL); /* what a link leads to; NULL: nothing is there yet */
	if (!d->to)
		d->to = strdup(path);
	const size_t len = d->to ? strlen(d->to) + 32 : 0;
	d->path = d->to ? malloc(len) : NULL;
	if (d->path) {
		snprintf(d->path, len, "%s.tmp%ld", d->to, owner);
		return 0;
	}
	snprintf(message, SAFETENSORS_MESSAGE, "out of memory");
	safetensors_draft_free(d);
	return 1;
}

static int why(void)
{
	return errno ? errno : EIO;
}

int safetensors_draft_done(struct safetensors_draft *d)
{
	if (rename(d->path, d->to) != 0)
		return why();
	sync_folder(d->to);
	return 0;
}

void safetensors_draft_free(struct safetensors_draft *d)
{
	free(d->path);
	free(d->to);
	*d = (struct safetensors_draft){NULL, NULL};
}

static int write_file(const char *path, const struct safetensors_entry *entry, int n,
	const struct safetensors_note *note, int nnote, int lasting, char *message)
{
	struct safetensors_draft d;
	if (safetensors_check(entry, n, message) ||
		safetensors_draft(&d, path, (long)getpid(), message))
		return 1;
	FILE *f = fopen(d.path, "wb");
	int rc = !f || put_all(f, entry, n, note, nnote, lasting) ? why() : 0;
	if (f && fclose(f) != 0 && !rc)
		rc = why();
	if (!rc)
		rc = safetensors_draft_done(&d);
	if (rc) {
		snprintf(message, SAFETENSORS_MESSAGE, "cannot write %.150s: %s", path,
			strerror(rc));
		if (f)
			remove(d.path);
	}
	safetensors_draft_free(&d);
	return rc != 0;
}

int safetensors_write(const char *path, const struct safetensors_entry *entry, int n,
	const struct safetensors_note *note, int nnote, char *message)
{
	return write_file(path, entry, n, note, nnote, 1, message);
}

int safetensors_write_soon(const char *path, const struct safetensors_entry *entry, int n,
	const struct safetensors_note *note, int nnote, char *message)
{
	return write_file(path, entry, n, note, nnote, 0, message);
}
