/* Arrays whose values come bit by bit, into one file: .npy, which holds one, or safetensors. Their
 * shapes are known from the start; nothing is kept in memory. Functions return 0, or 1 with a
 * message of 256 bytes. */
#ifndef STINT_ARRAY_STREAM_H
#define STINT_ARRAY_STREAM_H

#include <stddef.h>
#include <stdint.h>

#include "runtime/safetensors.h"

struct array_stream;

/* Arrays of entry[0..n): name, type and shape are read, which must outlive the stream. As
 * safetensors, or else as .npy, of one array. Written beside `path`, under another name. */
int array_stream_open(struct array_stream **out, const char *path, int safetensors,
	const struct safetensors_entry *entry, int n, const struct safetensors_note *note,
	int nnote, char message[256]);
/* The next bytes of array `i`. */
int array_stream_put(
	struct array_stream *s, int i, const void *data, size_t bytes, char message[256]);
/* The file takes its name, once all its arrays are whole. */
int array_stream_end(struct array_stream *s, char message[256]);
/* Frees; what was not ended leaves no file. `s` may be NULL. */
void array_stream_close(struct array_stream *s);

/* The header of a .npy file, of descr `type` ("<f4"); returns its bytes. (npy.c) */
enum { NPY_HEADER = 512 };
size_t npy_header(const char *type, int rank, const int64_t *dim, char out[NPY_HEADER]);

#endif
