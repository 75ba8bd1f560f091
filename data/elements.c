/* Rows that lie one behind the other in a file. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "data/stream.h"

/* Exactly n bytes at `at`. */
static int get(const struct dataset *d, int fd, void *out, size_t n, int64_t at, char message[256])
{
	unsigned char *p = out;
	while (n) {
		const ssize_t got = pread(fd, p, n, (off_t)at);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return dataset_bad(message, d->path, "cannot read: %s", strerror(errno));
		if (!got)
			return dataset_bad(message, d->path,
				"the file has become shorter since it was opened");
		p += got;
		at += got;
		n -= (size_t)got;
	}
	return 0;
}

static void reverse_bytes(unsigned char *p, size_t n, size_t width)
{
	for (; n; n--, p += width)
		for (size_t i = 0; i < width / 2; i++) {
			unsigned char keep = p[i];
			p[i] = p[width - 1 - i];
			p[width - 1 - i] = keep;
		}
}

int elements_read(const struct dataset *d, const struct elements *e, int64_t first, int64_t n,
	void *out, char message[256])
{
	const size_t width = (size_t)dataset_width(d->type), numbers = (size_t)(n * d->row);
	if (get(d, e->fd, out, numbers * width, e->at + first * d->row * (int64_t)width, message))
		return 1;
	if (e->swap)
		reverse_bytes(out, numbers, width);
	return 0;
}

int elements_all(const struct dataset *d, int64_t first, int64_t n, void *out, char message[256])
{
	return elements_read(d, d->state, first, n, out, message);
}

void elements_free(struct dataset *d)
{
	struct elements *e = d->state;
	if (e && e->fd >= 0)
		(void)close(e->fd);
	free(e);
}

int elements_again(struct dataset *d, const struct dataset *like, char message[256])
{
	struct elements *e = malloc(sizeof *e);
	d->state = e;
	if (!e)
		return dataset_bad(message, d->path, "out of memory");
	memcpy(e, like->state, sizeof *e);
	e->fd = fcntl(e->fd, F_DUPFD_CLOEXEC, 0);
	return e->fd < 0 ? dataset_bad(message, d->path, "cannot open: %s", strerror(errno)) : 0;
}

/* Samples first to first + n - 1: of each element of a row, which the file has one behind the
 * other, n at a time. In Fortran's order the first of the axes 1, 2, ... varies fastest. */
static int turn_block(const struct dataset *d, const struct elements *e, int64_t first, int64_t n,
	unsigned char *column, unsigned char *out, char message[256])
{
	const size_t width = (size_t)dataset_width(d->type), row = (size_t)d->row * width;
	const int64_t samples = d->dim[0];
	int64_t index[DATASET_RANK] = {0}, stride[DATASET_RANK], place = 0;
	stride[d->rank - 1] = 1;
	for (int k = d->rank - 2; k > 0; k--)
		stride[k] = stride[k + 1] * d->dim[k + 1];
	for (int64_t c = 0; c < d->row; c++) {
		if (get(d, e->fd, column, (size_t)n * width,
			    e->at + (c * samples + first) * (int64_t)width, message))
			return 1;
		for (int64_t r = 0; r < n; r++)
			memcpy(out + (size_t)r * row + (size_t)place * width,
				column + (size_t)r * width, width);
		for (int k = 1; k < d->rank; k++) {
			place += stride[k];
			if (++index[k] < d->dim[k])
				break;
			place -= index[k] * stride[k];
			index[k] = 0;
		}
	}
	return 0;
}

int elements_turn(struct dataset *d, struct elements *e, char message[256])
{
	enum { BLOCK = 1 << 24 };
	const int64_t row = d->row * dataset_width(d->type), samples = d->dim[0];
	int64_t n = row > 0 && row < BLOCK ? BLOCK / row : 1;
	n = n < samples ? n : samples;
	unsigned char *out = malloc((size_t)(n * row) + 1),
		      *column = malloc((size_t)n * (size_t)dataset_width(d->type) + 1);
	FILE *f = out && column ? spool_open(d->path, message) : NULL;
	int rc = out && column ? !f : dataset_bad(message, d->path, "out of memory"), fd = -1;
	for (int64_t at = 0; row && at < samples && !rc; at += n) {
		n = n < samples - at ? n : samples - at;
		rc = turn_block(d, e, at, n, column, out, message);
		if (!rc && fwrite(out, (size_t)row, (size_t)n, f) < (size_t)n)
			break;
	}
	if (f)
		rc = spool_close(f, rc, d->path, &fd, message);
	free(out);
	free(column);
	if (rc)
		return 1;
	(void)close(e->fd);
	e->fd = fd;
	e->at = 0;
	return 0;
}
