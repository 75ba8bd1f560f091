/* What a program writes: "cmd:PROGRAM", run once by /bin/sh. Frames of .npy on its standard output,
 * one behind the other, joined along axis 0 into a temporary file, so that they can be shuffled and
 * read again in each epoch. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "data/stream.h"

/* One frame's elements to `out`. */
static int copy_frame(struct stream *s, int64_t bytes, FILE *out)
{
	static const size_t PART = 1 << 15;
	unsigned char part[1 << 15];
	while (bytes) {
		const size_t n = bytes < (int64_t)PART ? (size_t)bytes : PART;
		if (stream_get(s, part, n))
			return 1;
		if (fwrite(part, 1, n, out) < n)
			return 0; /* told when the file is closed */
		bytes -= (int64_t)n;
	}
	return 0;
}

/* The frame's head, which all frames share but for the first axis. */
static int join_frame(
	struct stream *s, struct dataset *d, struct dataset *frame, int swap, struct elements *e)
{
	int same = frame->rank == d->rank && frame->type == d->type && swap == e->swap;
	for (int k = 1; same && k < d->rank; k++)
		same = frame->dim[k] == d->dim[k];
	if (!same)
		return stream_bad(s, "its frames have several shapes or element types");
	return __builtin_add_overflow(d->dim[0], frame->dim[0], &d->dim[0])
		       ? stream_bad(s, "is too large")
		       : 0;
}

/* *more: there was one. */
static int read_frame(struct stream *s, struct dataset *d, int *more, FILE *out)
{
	struct elements *e = d->state;
	struct dataset frame = {.path = d->path};
	unsigned char magic[8];
	size_t got;
	int swap, fortran;
	int64_t bytes;
	if (stream_some(s, magic, sizeof magic, &got))
		return 1;
	*more = got > 0;
	if (!got)
		return d->rank ? 0 : stream_bad(s, "wrote no .npy");
	if (got < sizeof magic || memcmp(magic, "\x93NUMPY", 6) != 0)
		return stream_bad(s, "wrote something that is no .npy");
	if (npy_head(s, magic, &frame, &swap, &fortran))
		return 1;
	if (frame.rank == 0 || (fortran && frame.rank > 1))
		return stream_bad(s, "a frame is a scalar, or in Fortran's order");
	if (dataset_count(&frame, &bytes))
		return stream_bad(s, "is too large");
	if (d->rank) {
		if (join_frame(s, d, &frame, swap, e))
			return 1;
	} else {
		d->type = frame.type;
		d->rank = frame.rank;
		memcpy(d->dim, frame.dim, sizeof d->dim);
		e->swap = swap;
	}
	return copy_frame(s, bytes, out);
}

static int read_frames(struct stream *s, struct dataset *d)
{
	struct elements *e = d->state;
	int more = 1, rc = 0;
	FILE *out = spool_open(d->path, s->message);
	if (!out)
		return 1;
	while (more && !rc)
		rc = read_frame(s, d, &more, out);
	return spool_close(out, rc, d->path, &e->fd, s->message);
}

/* Why the program ended, where it did not end well. */
static int check_end(struct stream *s, int status)
{
	if (status == -1)
		return stream_bad(s, "%s", strerror(errno));
	if (WIFSIGNALED(status))
		return stream_bad(s, "was ended by signal %d", WTERMSIG(status));
	return WEXITSTATUS(status) ? stream_bad(s, "ended with exit code %d", WEXITSTATUS(status))
				   : 0;
}

static int command_open(struct dataset *d, const char *text, char message[256])
{
	struct elements *e = calloc(1, sizeof *e);
	struct stream s = {.path = d->path, .message = message};
	int64_t bytes;
	d->state = e;
	d->cheap = 1;
	if (!e)
		return dataset_bad(message, d->path, "out of memory");
	e->fd = -1;
	s.f = popen(text, "re");
	if (!s.f)
		return dataset_bad(message, d->path, "cannot be run: %s", strerror(errno));
	const int rc = read_frames(&s, d), at_end = feof(s.f), status = pclose(s.f);
	/* what is not read to its end makes the program fail, and that says nothing */
	if ((!rc || at_end) && check_end(&s, status))
		return 1;
	return rc || (dataset_count(d, &bytes) ? stream_bad(&s, "is too large") : 0);
}

const struct dataset_kind command_kind = {
	.open = command_open, .read = elements_all, .close = elements_free};
