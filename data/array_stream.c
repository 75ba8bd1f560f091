#include "data/array_stream.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/stint_rt.h"

struct array_stream {
	FILE *file;
	char *path, *work;
	int safetensors, n;
	struct part {
		int64_t at, end; /* where its next byte goes, and where it ends */
	} * part;
};

static int fail(char *message, const char *path, const char *why)
{
	snprintf(message, 256, "cannot write %.150s: %s", path, why);
	return 1;
}

static int64_t bytes_of(const struct safetensors_entry *e)
{
	int64_t bytes = e->dtype == STINT_F32 ? 4 : e->dtype == STINT_BOOL ? 1 : 8;
	for (int k = 0; k < e->rank; k++)
		bytes *= e->dim[k]; /* safetensors_check has done so, too */
	return bytes;
}

static int put_header(struct array_stream *s, const struct safetensors_entry *entry,
	const struct safetensors_note *note, int nnote)
{
	static const char *const type[] = {"<f4", "<f8", "<i8", "|b1"};
	char header[NPY_HEADER];
	if (s->safetensors)
		return safetensors_put_header(s->file, entry, s->n, note, nnote);
	const size_t len = npy_header(type[entry->dtype], entry->rank, entry->dim, header);
	return fwrite(header, 1, len, s->file) != len;
}

/* Where the parts lie, and the header before them. */
static int lay_out(struct array_stream *s, const struct safetensors_entry *entry,
	const struct safetensors_note *note, int nnote)
{
	if (put_header(s, entry, note, nnote))
		return 1;
	int64_t at = ftell(s->file);
	if (at < 0)
		return 1;
	for (int i = 0; i < s->n; i++) {
		s->part[i] = (struct part){at, at + bytes_of(&entry[i])};
		at = s->part[i].end;
	}
	return 0;
}

int array_stream_open(struct array_stream **out, const char *path, int safetensors,
	const struct safetensors_entry *entry, int n, const struct safetensors_note *note,
	int nnote, char message[256])
{
	struct stat st;
	*out = NULL;
	if (safetensors_check(entry, n, message))
		return 1;
	if (!safetensors && n != 1)
		return fail(message, path, "a .npy file holds one array");
	if (stat(path, &st) == 0 && !S_ISREG(st.st_mode)) /* a rename would replace it */
		return fail(message, path, "it is no ordinary file");
	struct array_stream *s = calloc(1, sizeof *s);
	if (!s)
		return fail(message, path, "out of memory");
	*out = s;
	s->safetensors = safetensors;
	s->n = n;
	s->part = calloc((size_t)n + 1, sizeof *s->part);
	s->path = realpath(path, NULL); /* what a link leads to; NULL: nothing is there yet */
	if (!s->path)
		s->path = strdup(path);
	const size_t len = s->path ? strlen(s->path) + 32 : 1;
	s->work = malloc(len);
	if (!s->part || !s->path || !s->work)
		return fail(message, path, "out of memory");
	snprintf(s->work, len, "%s.tmp%ld", s->path, (long)getpid());
	s->file = fopen(s->work, "wb");
	if (!s->file || lay_out(s, entry, note, nnote))
		return fail(message, path, strerror(errno));
	return 0;
}

int array_stream_put(
	struct array_stream *s, int i, const void *data, size_t bytes, char message[256])
{
	struct part *p = &s->part[i];
	if ((int64_t)bytes > p->end - p->at)
		return fail(message, s->path, "more values than its shape has");
	if (fseeko(s->file, p->at, SEEK_SET) != 0 || fwrite(data, 1, bytes, s->file) != bytes)
		return fail(message, s->path, strerror(errno));
	p->at += (int64_t)bytes;
	return 0;
}

int array_stream_end(struct array_stream *s, char message[256])
{
	for (int i = 0; i < s->n; i++)
		if (s->part[i].at != s->part[i].end)
			return fail(message, s->path, "fewer values than its shape has");
	int bad = fflush(s->file) != 0 || ferror(s->file) || fsync(fileno(s->file)) != 0;
	bad |= fclose(s->file) != 0;
	s->file = NULL;
	if (bad || rename(s->work, s->path) != 0) {
		fail(message, s->path, strerror(errno));
		(void)unlink(s->work);
		return 1;
	}
	return 0;
}

void array_stream_close(struct array_stream *s)
{
	if (!s)
		return;
	if (s->file) {
		fclose(s->file);
		(void)unlink(s->work);
	}
	free(s->part);
	free(s->path);
	free(s->work);
	free(s);
}
