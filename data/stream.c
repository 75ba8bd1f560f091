/* Bytes out of files, plain or gzip's; temporary files. */
#include "data/stream.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int stream_bad(struct stream *s, const char *fmt, ...)
{
	char text[256];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	return dataset_bad(s->message, s->path, "%s", text);
}

/* More of the file for zlib; nothing at the end. */
static int refill(struct stream *s)
{
	if (s->z.avail_in)
		return 0;
	s->z.next_in = s->in;
	size_t most = sizeof s->in;
	if (s->raw && s->left < (int64_t)most)
		most = (size_t)s->left;
	s->z.avail_in = (uInt)fread(s->in, 1, most, s->f);
	s->left -= s->z.avail_in;
	return ferror(s->f) ? stream_bad(s, "cannot read: %s", strerror(errno)) : 0;
}

/* Up to n bytes, n > 0, of what was compressed; zlib checks every member's sum and length. */
static int unpack(struct stream *s, unsigned char *out, uInt n, size_t *got)
{
	s->z.next_out = out;
	s->z.avail_out = n;
	while (s->z.avail_out && !s->ended) {
		if (refill(s))
			return 1;
		int code = inflate(&s->z, Z_NO_FLUSH);
		if (code == Z_BUF_ERROR) /* it wants input, and there was none */
			return stream_bad(s, "the compressed file ends too early");
		if (code != Z_OK && code != Z_STREAM_END)
			return stream_bad(s, "its compression is damaged: %.80s",
				s->z.msg ? s->z.msg : zError(code));
		if (code != Z_STREAM_END)
			continue;
		if (s->raw) {
			s->ended = 1;
			continue;
		}
		if (refill(s))
			return 1;
		if (!s->z.avail_in)
			s->ended = 1;
		else if (inflateReset(&s->z) != Z_OK) /* another member follows */
			return stream_bad(s, "cannot read its compression");
	}
	*got = n - s->z.avail_out;
	if (s->raw)
		s->sum = (uint32_t)crc32(s->sum, out, (uInt)*got);
	return s->raw && s->ended && s->sum != s->wanted
		       ? stream_bad(s, "its compression is damaged: the sum")
		       : 0;
}

int stream_some(struct stream *s, void *out, size_t n, size_t *got)
{
	enum { STEP = 1 << 20 };
	unsigned char *p = out;
	*got = 0;
	if (!s->packed) {
		*got = fread(out, 1, n, s->f);
		return *got < n && ferror(s->f) ? stream_bad(s, "cannot read: %s", strerror(errno))
						: 0;
	}
	while (*got < n) {
		size_t part = 0;
		if (unpack(s, p + *got, n - *got < STEP ? (uInt)(n - *got) : STEP, &part))
			return 1;
		if (!part)
			break;
		*got += part;
	}
	return 0;
}

int stream_get(struct stream *s, void *out, size_t n)
{
	size_t got;
	if (stream_some(s, out, n, &got))
		return 1;
	return got < n ? stream_bad(s, "the file ends too early") : 0;
}

/* Whether the file is compressed, told by gzip's first two bytes. */
static int look(struct stream *s)
{
	struct stat st;
	unsigned char magic[2];
	if (stat(s->path, &st) != 0)
		return stream_bad(s, "cannot open: %s", strerror(errno));
	if (!S_ISREG(st.st_mode))
		return stream_bad(s, "no plain file");
	s->f = fopen(s->path, "rb");
	if (!s->f)
		return stream_bad(s, "cannot open: %s", strerror(errno));
	s->packed = fread(magic, 1, 2, s->f) == 2 && magic[0] == 0x1f && magic[1] == 0x8b;
	rewind(s->f);
	s->expects = s->packed ? -1 : st.st_size;
	if (s->packed && inflateInit2(&s->z, 15 + 16) != Z_OK) { /* 16: gzip's format only */
		s->packed = 0;
		return stream_bad(s, "out of memory");
	}
	return 0;
}

int stream_open(struct stream *s, const char *path, char message[256])
{
	memset(s, 0, sizeof *s);
	s->path = path;
	s->message = message;
	return look(s);
}

int stream_member(struct stream *s, int64_t at, int64_t bytes, int deflated, uint32_t sum)
{
	if (fseeko(s->f, (off_t)at, SEEK_SET) != 0)
		return stream_bad(s, "cannot read: %s", strerror(errno));
	s->expects = deflated ? -1 : at + bytes;
	s->packed = s->raw = deflated;
	s->left = bytes;
	s->sum = (uint32_t)crc32(0, NULL, 0);
	s->wanted = sum;
	if (deflated && inflateInit2(&s->z, -15) != Z_OK) { /* no header */
		s->packed = 0;
		return stream_bad(s, "out of memory");
	}
	return 0;
}

void stream_close(struct stream *s)
{
	if (s->packed)
		(void)inflateEnd(&s->z);
	if (s->f)
		(void)fclose(s->f);
	s->f = NULL;
	s->packed = 0;
}

/* --- Temporary files: not memory, and gone with the process --- */

static const char *folder(void)
{
	const char *named = getenv("TMPDIR");
	return named && *named ? named : "/tmp";
}

FILE *spool_open(const char *path, char message[256])
{
	char name[4096];
	int fd = -1;
	if (snprintf(name, sizeof name, "%s/stint-XXXXXX", folder()) < (int)sizeof name)
		fd = mkostemp(name, O_CLOEXEC);
	if (fd >= 0)
		(void)unlink(name);
	FILE *f = fd >= 0 ? fdopen(fd, "w+b") : NULL;
	if (f)
		return f;
	dataset_bad(message, path, "cannot make a temporary file in %.60s ($TMPDIR): %s", folder(),
		strerror(errno));
	if (fd >= 0)
		(void)close(fd);
	return NULL;
}

int spool_close(FILE *f, int failed, const char *path, int *fd, char message[256])
{
	if (!failed && (fflush(f) != 0 || ferror(f)))
		failed = dataset_bad(message, path,
			"cannot write a temporary file in %.60s ($TMPDIR): %s", folder(),
			strerror(errno));
	if (!failed && (*fd = fcntl(fileno(f), F_DUPFD_CLOEXEC, 0)) < 0)
		failed = dataset_bad(message, path, "%s", strerror(errno));
	(void)fclose(f);
	return failed;
}

/* The rest of the stream, `bytes` of them, in a temporary file. */
static int unpack_all(struct stream *s, int64_t bytes, struct elements *out)
{
	unsigned char part[1 << 15], extra;
	size_t got = 0;
	int rc = 0;
	FILE *f = spool_open(s->path, s->message);
	if (!f)
		return 1;
	for (int64_t left = bytes; left && !rc; left -= (int64_t)got) {
		const size_t want = left < (int64_t)sizeof part ? (size_t)left : sizeof part;
		rc = stream_some(s, part, want, &got);
		if (!rc && got < want)
			rc = stream_bad(s, "the file ends too early");
		if (!rc && fwrite(part, 1, got, f) < got)
			break;
	}
	rc = rc || stream_some(s, &extra, 1, &got); /* checks a compressed file's sum as well */
	if (!rc && got && !ferror(f))
		rc = stream_bad(s, "there are bytes behind the last element");
	out->at = 0;
	return spool_close(f, rc, s->path, &out->fd, s->message);
}

int stream_elements(struct stream *s, struct dataset *d, int big, struct elements *out)
{
	const uint16_t one = 1;
	const int host_big = !*(const unsigned char *)&one;
	int64_t bytes;
	if (dataset_count(d, &bytes))
		return stream_bad(s, "its shape is too large");
	out->swap = dataset_width(d->type) > 1 && big != host_big;
	if (s->packed)
		return unpack_all(s, bytes, out);
	out->at = ftello(s->f);
	if (bytes > s->expects - out->at)
		return stream_bad(s, "the file ends too early");
	if (bytes < s->expects - out->at)
		return stream_bad(s, "there are bytes behind the last element");
	out->fd = fcntl(fileno(s->f), F_DUPFD_CLOEXEC, 0);
	return out->fd < 0 ? stream_bad(s, "cannot open: %s", strerror(errno)) : 0;
}
