/* One array of a .npz file: "FILE.npz:NAME". That is a zip archive (PKWARE's APPNOTE 6.3, sections
 * 4.3 and 4.5.3) of .npy files, stored or deflated. What is stored is read where it lies, and its
 * checksum left alone: it would take reading everything; what is deflated is unpacked once, and
 * checked. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "data/stream.h"

enum {
	END_BYTES = 22,
	END64_BYTES = 56,
	LOCATOR_BYTES = 20,
	ENTRY_BYTES = 46,
	LOCAL_BYTES = 30,
	COMMENT_MAX = 65535
};
enum { STORED = 0, DEFLATED = 8 };

static uint64_t little(const unsigned char *p, int bytes)
{
	uint64_t v = 0;
	for (int i = bytes - 1; i >= 0; i--)
		v = v << 8 | p[i];
	return v;
}

struct zip {
	FILE *f;
	int64_t bytes;    /* of the file */
	struct stream *s; /* for messages */
};

static int read_at(const struct zip *z, uint64_t at, void *out, size_t n)
{
	if (at > (uint64_t)z->bytes || n > (uint64_t)z->bytes - at)
		return stream_bad(z->s, "the archive ends too early");
	if (fseeko(z->f, (off_t)at, SEEK_SET) != 0 || fread(out, 1, n, z->f) < n)
		return stream_bad(z->s, "cannot read: %s", strerror(errno));
	return 0;
}

/* Where the list of members is, and how many there are. */
struct directory {
	uint64_t at, bytes, entries;
};

static int read_end64(const struct zip *z, uint64_t end, struct directory *out)
{
	unsigned char locator[LOCATOR_BYTES], raw[END64_BYTES];
	if (end < LOCATOR_BYTES || read_at(z, end - LOCATOR_BYTES, locator, sizeof locator))
		return end < LOCATOR_BYTES ? stream_bad(z->s, "a damaged archive") : 1;
	if (little(locator, 4) != 0x07064b50 || read_at(z, little(locator + 8, 8), raw, sizeof raw))
		return stream_bad(z->s, "a damaged archive");
	if (little(raw, 4) != 0x06064b50)
		return stream_bad(z->s, "a damaged archive");
	*out = (struct directory){little(raw + 48, 8), little(raw + 40, 8), little(raw + 32, 8)};
	return 0;
}

/* The last record, which a comment follows. */
static int is_end(const unsigned char *p, size_t n)
{
	return little(p, 4) == 0x06054b50 && little(p + 20, 2) == n - END_BYTES;
}

static int read_end(const struct zip *z, struct directory *out)
{
	const int64_t most = END_BYTES + COMMENT_MAX;
	const size_t n = (size_t)(z->bytes < most ? z->bytes : most);
	unsigned char *raw = malloc(n + 1);
	if (!raw)
		return stream_bad(z->s, "out of memory");
	int rc = read_at(z, (uint64_t)z->bytes - n, raw, n);
	size_t i = n >= END_BYTES ? n - END_BYTES + 1 : 0;
	while (!rc && i && !is_end(raw + i - 1, n - (i - 1)))
		i--;
	if (!rc && !i)
		rc = stream_bad(z->s, "no .npz: the archive's end is missing");
	if (!rc) {
		const unsigned char *p = raw + i - 1;
		*out = (struct directory){little(p + 16, 4), little(p + 12, 4), little(p + 10, 2)};
		if (out->at == UINT32_MAX || out->bytes == UINT32_MAX || out->entries == UINT16_MAX)
			rc = read_end64(z, (uint64_t)z->bytes - n + i - 1, out);
	}
	free(raw);
	return rc;
}

/* A member as the directory has it. */
struct member {
	const char *name;
	size_t length; /* of the name */
	int method, flags;
	uint32_t crc;
	uint64_t packed, bytes, local;
};

/* Sizes of 4 GiB and more stand in an extra field, those that did not fit, in this order. */
static int read_extra(const unsigned char *extra, size_t n, struct member *m)
{
	uint64_t *const value[] = {&m->bytes, &m->packed, &m->local};
	for (size_t at = 0; at + 4 <= n;) {
		const size_t size = (size_t)little(extra + at + 2, 2);
		size_t from = at + 4, end = from + size;
		if (end > n)
			return 1;
		for (int i = 0; little(extra + at, 2) == 1 && i < 3; i++) {
			if (*value[i] != UINT32_MAX)
				continue;
			if (from + 8 > end)
				return 1;
			*value[i] = little(extra + from, 8);
			from += 8;
		}
		at = end;
	}
	return 0;
}

/* The entry at p, of n bytes; its length, or 0: damaged. */
static size_t read_entry(const unsigned char *p, size_t n, struct member *m)
{
	if (n < ENTRY_BYTES || little(p, 4) != 0x02014b50)
		return 0;
	const size_t name = (size_t)little(p + 28, 2), extra = (size_t)little(p + 30, 2),
		     all = ENTRY_BYTES + name + extra + (size_t)little(p + 32, 2);
	if (all > n)
		return 0;
	*m = (struct member){.name = (const char *)p + ENTRY_BYTES,
		.length = name,
		.flags = (int)little(p + 8, 2),
		.method = (int)little(p + 10, 2),
		.crc = (uint32_t)little(p + 16, 4),
		.packed = little(p + 20, 4),
		.bytes = little(p + 24, 4),
		.local = little(p + 42, 4)};
	return read_extra(p + ENTRY_BYTES + name, extra, m) ? 0 : all;
}

/* NAME, or NAME.npy as NumPy stores it. */
static int is_called(const struct member *m, const char *name)
{
	const size_t n = strlen(name);
	return m->length >= n && memcmp(m->name, name, n) == 0 &&
	       (m->length == n || (m->length == n + 4 && memcmp(m->name + n, ".npy", 4) == 0));
}

static int no_member(const struct zip *z, const char *name, const struct member *first)
{
	if (!first->name)
		return stream_bad(z->s, "has no arrays");
	return stream_bad(z->s, "has no array '%.60s'; its first is '%.*s'", name,
		(int)(first->length < 60 ? first->length : 60), first->name);
}

/* `raw` is the directory: names point there. */
static int look_for(const struct zip *z, const struct directory *dir, const unsigned char *raw,
	const char *name, struct member *out)
{
	struct member first = {0};
	size_t at = 0;
	for (uint64_t i = 0; i < dir->entries; i++) {
		const size_t n = read_entry(raw + at, (size_t)dir->bytes - at, out);
		if (!n)
			return stream_bad(z->s, "a damaged archive");
		if (is_called(out, name))
			return 0;
		first = i ? first : *out;
		at += n;
	}
	return no_member(z, name, &first);
}

/* Where the member's bytes begin: behind a header of its own. */
static int begin_member(const struct zip *z, const struct member *m)
{
	unsigned char local[LOCAL_BYTES];
	if (m->flags & 1)
		return stream_bad(z->s, "is encrypted");
	if (m->method != STORED && m->method != DEFLATED)
		return stream_bad(
			z->s, "is packed by method %d; stored and deflated are read", m->method);
	if (read_at(z, m->local, local, sizeof local))
		return 1;
	const uint64_t at = m->local + LOCAL_BYTES + little(local + 26, 2) + little(local + 28, 2);
	if (little(local, 4) != 0x04034b50 || at > (uint64_t)z->bytes ||
		m->packed > (uint64_t)z->bytes - at ||
		(m->method == STORED && m->packed != m->bytes))
		return stream_bad(z->s, "a damaged archive");
	return stream_member(z->s, (int64_t)at, (int64_t)m->packed, m->method == DEFLATED, m->crc);
}

static int find_member(struct stream *s, const char *name)
{
	const struct zip z = {s->f, s->expects, s};
	struct directory dir = {0};
	struct member m;
	if (s->packed)
		return stream_bad(s, "no .npz, but compressed by gzip");
	if (read_end(&z, &dir))
		return 1;
	if (dir.bytes > (uint64_t)s->expects)
		return stream_bad(s, "a damaged archive");
	unsigned char *raw = malloc((size_t)dir.bytes + 1);
	if (!raw)
		return stream_bad(s, "out of memory");
	const int rc = read_at(&z, dir.at, raw, (size_t)dir.bytes) ||
		       look_for(&z, &dir, raw, name, &m) || begin_member(&z, &m);
	free(raw);
	return rc;
}

static int open_array(struct dataset *d, struct stream *s, const char *name)
{
	unsigned char magic[8];
	if (find_member(s, name) || stream_get(s, magic, sizeof magic))
		return 1;
	return memcmp(magic, "\x93NUMPY", 6) ? stream_bad(s, "is no .npy in the archive")
					     : npy_read(s, magic, d, d->state);
}

static int npz_open(struct dataset *d, const char *text, char message[256])
{
	const char *name = archive_member(text);
	char *file = strndup(text, (size_t)(name - 1 - text));
	struct elements *e = calloc(1, sizeof *e);
	struct stream *s = calloc(1, sizeof *s);
	d->state = e;
	d->cheap = 1;
	if (e)
		e->fd = -1;
	int rc = e && s && file ? stream_open(s, file, message)
				: dataset_bad(message, d->path, "out of memory");
	if (!rc) {
		s->path = d->path; /* messages name the member */
		rc = open_array(d, s, name);
	}
	if (s)
		stream_close(s);
	free(s);
	free(file);
	return rc;
}

const struct dataset_kind npz_kind = {
	.open = npz_open, .read = elements_all, .close = elements_free};
