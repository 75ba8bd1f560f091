/* Arrays in files, .npy and IDX, plain or gzip's, told apart by their content. Rows are read where
 * they lie: by pread and not from mapped pages, since a file that somebody cuts while it is mapped
 * is a signal, and here a message. What is compressed is unpacked once, and what stands in
 * Fortran's order turned, into a temporary file. */
#include "data/stream.h"

#include <stdlib.h>
#include <string.h>

static int read_format(struct stream *s, struct dataset *d, struct elements *e)
{
	unsigned char magic[8] = {0};
	size_t got;
	if (stream_some(s, magic, 4, &got))
		return 1;
	if (got == 4 && magic[0] == 0 && magic[1] == 0)
		return idx_read(s, magic, d, e);
	if (got == 4 && !memcmp(magic, "\x93NUM", 4))
		return stream_get(s, magic + 4, 4) ||
		       (memcmp(magic + 4, "PY", 2) ? stream_bad(s, "neither .npy nor IDX")
						   : npy_read(s, magic, d, e));
	if (got == 4 && !memcmp(magic, "PK\3\4", 4))
		return stream_bad(s, "an archive (.npz): name one of its arrays, FILE.npz:ARRAY");
	const size_t n = strlen(d->path), m = sizeof ".safetensors" - 1;
	if (n > m && !strcmp(d->path + n - m, ".safetensors"))
		return stream_bad(s, "name one of its tensors, FILE.safetensors:TENSOR");
	return stream_bad(s, "neither .npy nor IDX (plain or gzip)");
}

static int array_open(struct dataset *d, const char *path, char message[256])
{
	struct elements *e = calloc(1, sizeof *e);
	struct stream *s = calloc(1, sizeof *s);
	d->state = e;
	d->cheap = 1;
	if (e)
		e->fd = -1;
	int rc = e && s ? stream_open(s, path, message) || read_format(s, d, e)
			: dataset_bad(message, path, "out of memory");
	if (s)
		stream_close(s);
	free(s);
	return rc;
}

const struct dataset_kind array_kind = {
	.open = array_open, .read = elements_all, .close = elements_free};
