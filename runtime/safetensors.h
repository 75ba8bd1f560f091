/* SPDX-License-Identifier: MIT-0 */
/* safetensors files: named tensors behind a JSON header (the format is described in the safetensors
 * project's README). Plain C and libc, because products build it. Nothing here prints; messages go
 * into the caller's buffer of SAFETENSORS_MESSAGE bytes. Functions return 0, or 1 with a message.
 */
#ifndef STINT_SAFETENSORS_H
#define STINT_SAFETENSORS_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum { SAFETENSORS_MESSAGE = 256, SAFETENSORS_RANK = 8 };

/* What a type (STINT_F32, ...) is called, and the bytes of an element; NULL and 0: no file has it.
 */
const char *safetensors_type(int dtype);
int safetensors_width(int dtype);

struct safetensors_entry {
	const char *name;
	int dtype; /* STINT_F32, ... (stint_rt.h); -1: another type, kept as bytes */
	int rank;
	const int64_t *dim;
	const void *data;
	size_t bytes;     /* set by the reader; the writer computes it */
	const char *type; /* "BF16": set by the reader, the writer goes by dtype */
	/* For the writer, where `data` is NULL: bytes [from, from + n) of it, or a failure, not 0.
	 */
	int (*part)(void *user, size_t from, size_t n, void *out);
	void *user;
};

/* One entry of the header's "__metadata__": both are text. */
struct safetensors_note {
	const char *key, *value;
};

struct safetensors;

/* The whole file, mapped where that can be. Everything in it is checked: sizes, offsets, shapes,
 * names. *out is NULL on failure. */
int safetensors_open(struct safetensors **out, const char *path, char *message);
/* The same, but keeps the tensors in the file (entry->data is NULL), to be read one by one straight
 * to where they belong. */
int safetensors_open_header(struct safetensors **out, const char *path, char *message);
/* Bytes `from` to `from + n` of a tensor of `f`; 1 when they cannot be read. */
int safetensors_read(const struct safetensors *f, const struct safetensors_entry *e, size_t from,
	size_t n, void *out);
/* The descriptor of f, which safetensors_close closes, and where in it the tensor begins. */
int safetensors_place(const struct safetensors *f, const struct safetensors_entry *e, uint64_t *at);
/* n bytes of a file from `at` on; 0, or an errno. */
int safetensors_read_at(int fd, void *out, size_t n, uint64_t at);
/* The same to it. (safetensors_write.c) */
int safetensors_write_at(int fd, const void *data, size_t n, uint64_t at);
void safetensors_close(struct safetensors *f);
int safetensors_count(const struct safetensors *f);
const struct safetensors_entry *safetensors_at(const struct safetensors *f, int i);
const struct safetensors_entry *safetensors_find(const struct safetensors *f, const char *name);
/* Note i, from 0; 0: there are no more. */
int safetensors_note_at(const struct safetensors *f, int i, const char **key, const char **value);
/* A note's value, or NULL. */
const char *safetensors_note(const struct safetensors *f, const char *key);

/* Writes atomically: a temporary file beside it, fsync, rename, fsync of the folder. Entries lie in
 * the order given. (safetensors_write.c) */
int safetensors_write(const char *path, const struct safetensors_entry *entry, int n,
	const struct safetensors_note *note, int nnote, char *message);
/* The same of what can be made again: does not wait for the disk. */
int safetensors_write_soon(const char *path, const struct safetensors_entry *entry, int n,
	const struct safetensors_note *note, int nnote, char *message);
/* Hands the `bytes` bytes of an entry to `take`, part by part in order, until one fails: what that
 * returned. */
int safetensors_parts(const struct safetensors_entry *e, size_t bytes,
	int (*take)(void *to, const void *part, size_t n), void *to);
/* A file that is written beside PATH until it is whole, and then takes its place (that of what PATH
 * leads to): both on the heap. */
struct safetensors_draft {
	char *path, *to;
};
/* Of process `owner`. Nothing is made yet. */
int safetensors_draft(struct safetensors_draft *d, const char *path, long owner, char *message);
/* It is whole, and on the disk: 0, or an errno. */
int safetensors_draft_done(struct safetensors_draft *d);
void safetensors_draft_free(struct safetensors_draft *d);
/* Its parts, for a writer whose values come later: what the reader would refuse is refused; the
 * header, behind which the tensors lie. */
int safetensors_check(const struct safetensors_entry *entry, int n, char *message);
int safetensors_put_header(FILE *f, const struct safetensors_entry *entry, int n,
	const struct safetensors_note *note, int nnote);

#endif
