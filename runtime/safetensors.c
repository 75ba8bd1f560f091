/* SPDX-License-Identifier: MIT-0 */
/* Reading safetensors. The header's JSON is scanned by hand: objects of a fixed form, strings and
 * whole numbers are all that may occur, so nothing here recurses. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* pread */
#endif
#include "safetensors.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "stint_rt.h"

static const struct {
	const char *name;
	int dtype, bytes;
} types[] = {{"F32", STINT_F32, 4}, {"F64", STINT_F64, 8}, {"I64", STINT_I64, 8},
	{"BOOL", STINT_BOOL, 1}, {"F16", STINT_F16, 2}, {"BF16", STINT_BF16, 2}, {"I32", -1, 4},
	{"I16", -1, 2}, {"I8", STINT_I8, 1}, {"U8", STINT_U8, 1}, {"U16", -1, 2}, {"U32", -1, 4},
	{"U64", -1, 8}, {"F8_E4M3", -1, 1}, {"F8_E5M2", -1, 1}};
enum { NTYPE = sizeof types / sizeof *types };

static int place_of(int dtype)
{
	int k = 0;
	while (k < NTYPE && (types[k].dtype < 0 || types[k].dtype != dtype))
		k++;
	return k;
}

const char *safetensors_type(int dtype)
{
	const int k = place_of(dtype);
	return k < NTYPE ? types[k].name : NULL;
}

int safetensors_width(int dtype)
{
	const int k = place_of(dtype);
	return k < NTYPE ? types[k].bytes : 0;
}

/* The format's own limit. */
#define MAX_HEADER ((uint64_t)100 * 1000 * 1000)

struct item {
	struct safetensors_entry entry; /* the first member: an entry is its item */
	int64_t dim[SAFETENSORS_RANK];
	int64_t begin, end; /* in the data */
	char *name;
};

struct safetensors {
	int fd;
	char *header;        /* while it is being scanned */
	void *map;           /* all of it; NULL: a copy, or they are read one by one */
	unsigned char *copy; /* all tensors */
	uint64_t start;      /* where the data begin in the file */
	uint64_t bytes;      /* of the data */
	int n, cap, nnote, capnote;
	struct item *item;
	struct {
		char *key, *value;
	} * note;
};

struct scan {
	const char *p, *end;
	char *message;
	const char *path;
};

static int bad(const struct scan *s, const char *what)
{
	snprintf(s->message, SAFETENSORS_MESSAGE, "%.150s is no valid safetensors file: %s",
		s->path, what);
	return 1;
}

/* --- Tokens --- */

static void skip_space(struct scan *s)
{
	while (s->p < s->end && (*s->p == ' ' || *s->p == '\n' || *s->p == '\r' || *s->p == '\t'))
		s->p++;
}

static int take(struct scan *s, char c)
{
	skip_space(s);
	if (s->p == s->end || *s->p != c)
		return 0;
	s->p++;
	return 1;
}

static int hex4(struct scan *s, unsigned *out)
{
	*out = 0;
	for (int i = 0; i < 4; i++, s->p++) {
		if (s->p == s->end)
			return 1;
		char c = *s->p;
		unsigned v = c >= '0' && c <= '9'   ? (unsigned)(c - '0')
			     : c >= 'a' && c <= 'f' ? (unsigned)(c - 'a' + 10)
			     : c >= 'A' && c <= 'F' ? (unsigned)(c - 'A' + 10)
						    : 16;
		if (v == 16)
			return 1;
		*out = *out * 16 + v;
	}
	return 0;
}

static char *put_utf8(char *o, unsigned c)
{
	if (c < 0x80) {
		*o++ = (char)c;
	} else if (c < 0x800) {
		*o++ = (char)(0xc0 | c >> 6);
		*o++ = (char)(0x80 | (c & 0x3f));
	} else if (c < 0x10000) {
		*o++ = (char)(0xe0 | c >> 12);
		*o++ = (char)(0x80 | (c >> 6 & 0x3f));
		*o++ = (char)(0x80 | (c & 0x3f));
	} else {
		*o++ = (char)(0xf0 | c >> 18);
		*o++ = (char)(0x80 | (c >> 12 & 0x3f));
		*o++ = (char)(0x80 | (c >> 6 & 0x3f));
		*o++ = (char)(0x80 | (c & 0x3f));
	}
	return o;
}

static int unicode(struct scan *s, char **o)
{
	unsigned c, low;
	if (hex4(s, &c) || c == 0 || (c >= 0xdc00 && c < 0xe000))
		return 1; /* names are C strings; a second half of a pair alone is no character */
	if (c >= 0xd800 && c < 0xdc00) { /* the first half of a pair */
		if (s->end - s->p < 6 || s->p[0] != '\\' || s->p[1] != 'u')
			return 1;
		s->p += 2;
		if (hex4(s, &low) || low < 0xdc00 || low > 0xdfff)
			return 1;
		c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
	}
	*o = put_utf8(*o, c);
	return 0;
}

/* One escape after its backslash. */
static int escape(struct scan *s, char **o)
{
	static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
	if (s->p == s->end)
		return 1;
	char c = *s->p++;
	if (c == 'u')
		return unicode(s, o);
	const char *k = memchr(from, c, sizeof from - 1);
	if (!k)
		return 1;
	*(*o)++ = to[k - from];
	return 0;
}

/* A string, newly allocated. */
static int string(struct scan *s, char **out)
{
	*out = NULL;
	if (!take(s, '"'))
		return bad(s, "a string is missing");
	const char *close = s->p;
	while (close < s->end && *close != '"')
		close += *close == '\\' ? 2 : 1;
	if (close >= s->end)
		return bad(s, "a string does not end");
	char *o = *out = malloc((size_t)(close - s->p) + 1); /* escapes only shrink */
	if (!o)
		return bad(s, "out of memory");
	while (s->p < close) {
		char c = *s->p++;
		if ((unsigned char)c < 32 || (c == '\\' ? escape(s, &o) : (*o++ = c, 0))) {
			free(*out);
			*out = NULL;
			return bad(s, "a string has a bad character");
		}
	}
	*o = '\0';
	s->p = close + 1;
	return 0;
}

static int number(struct scan *s, int64_t *out)
{
	int64_t v = 0;
	skip_space(s);
	const char *start = s->p;
	for (; s->p < s->end && *s->p >= '0' && *s->p <= '9'; s->p++)
		if (__builtin_mul_overflow(v, 10, &v) || __builtin_add_overflow(v, *s->p - '0', &v))
			return bad(s, "a number is too large");
	*out = v;
	if (s->p == start || (*start == '0' && s->p - start > 1))
		return bad(s, "a number is missing or malformed");
	return 0;
}

/* "[1, 2, 3]" */
static int numbers(struct scan *s, int64_t *v, int max, int *n)
{
	*n = 0;
	if (!take(s, '['))
		return bad(s, "a list is missing");
	if (take(s, ']'))
		return 0;
	do {
		if (*n == max)
			return bad(s, "a list is too long");
		if (number(s, &v[(*n)++]))
			return 1;
	} while (take(s, ','));
	return take(s, ']') ? 0 : bad(s, "a list does not end");
}

/* --- The header --- */

static int set_type(struct scan *s, struct item *it, int *width)
{
	char *name;
	if (string(s, &name))
		return 1;
	int k = 0;
	while (k < NTYPE && strcmp(types[k].name, name) != 0)
		k++;
	free(name);
	if (k == NTYPE)
		return bad(s, "an unknown dtype");
	it->entry.dtype = types[k].dtype;
	it->entry.type = types[k].name;
	*width = types[k].bytes;
	return 0;
}

static int tensor_fields(struct scan *s, struct item *it, int *width, int64_t *offset, int *seen)
{
	int n;
	if (!take(s, '{'))
		return bad(s, "a tensor's description is missing");
	do {
		char *key;
		if (string(s, &key))
			return 1;
		int which = !strcmp(key, "dtype")          ? 1
			    : !strcmp(key, "shape")        ? 2
			    : !strcmp(key, "data_offsets") ? 4
							   : 0;
		free(key);
		if (!which || (*seen & which) || !take(s, ':'))
			return bad(s, "a tensor's description has a wrong key");
		*seen |= which;
		int rc = which == 1   ? set_type(s, it, width)
			 : which == 2 ? numbers(s, it->dim, SAFETENSORS_RANK, &it->entry.rank)
				      : numbers(s, offset, 2, &n);
		if (rc || (which == 4 && n != 2))
			return rc ? rc : bad(s, "data_offsets wants two numbers");
	} while (take(s, ','));
	return take(s, '}') ? 0 : bad(s, "a tensor's description does not end");
}

static int tensor(struct scan *s, struct safetensors *f, struct item *it)
{
	int width = 0, seen = 0;
	int64_t offset[2] = {0, 0}, bytes;
	if (tensor_fields(s, it, &width, offset, &seen))
		return 1;
	if (seen != 7)
		return bad(s, "a tensor's description is incomplete");
	bytes = width;
	for (int i = 0; i < it->entry.rank; i++)
		if (__builtin_mul_overflow(bytes, it->dim[i], &bytes))
			return bad(s, "a shape is too large");
	if (offset[1] < offset[0] || (uint64_t)offset[1] > f->bytes ||
		offset[1] - offset[0] != bytes)
		return bad(s, "a tensor's bytes lie outside the file or do not fit its shape");
	it->begin = offset[0];
	it->end = offset[1];
	it->entry.bytes = (size_t)bytes;
	return 0;
}

static int notes(struct scan *s, struct safetensors *f)
{
	if (f->note)
		return bad(s, "__metadata__ occurs twice");
	if (!take(s, '{'))
		return bad(s, "__metadata__ is no object");
	if (take(s, '}'))
		return 0;
	do {
		if (f->nnote == f->capnote) {
			int cap = f->capnote ? 2 * f->capnote : 8;
			void *grown = realloc(f->note, (size_t)cap * sizeof *f->note);
			if (!grown)
				return bad(s, "out of memory");
			f->note = grown;
			f->capnote = cap;
		}
		f->note[f->nnote].key = f->note[f->nnote].value = NULL;
		f->nnote++;
		if (string(s, &f->note[f->nnote - 1].key))
			return 1;
		if (!take(s, ':'))
			return bad(s, "__metadata__ is malformed");
		if (string(s, &f->note[f->nnote - 1].value))
			return 1;
	} while (take(s, ','));
	return take(s, '}') ? 0 : bad(s, "__metadata__ does not end");
}

static int add_item(struct scan *s, struct safetensors *f, char *name)
{
	if (f->n == f->cap) {
		int cap = f->cap ? 2 * f->cap : 64;
		void *grown = realloc(f->item, (size_t)cap * sizeof *f->item);
		if (!grown) {
			free(name);
			return bad(s, "out of memory");
		}
		f->item = grown;
		f->cap = cap;
	}
	struct item *it = &f->item[f->n++];
	memset(it, 0, sizeof *it);
	it->name = name;
	return tensor(s, f, it);
}

static int header(struct scan *s, struct safetensors *f)
{
	if (!take(s, '{'))
		return bad(s, "the header is no JSON object");
	if (!take(s, '}')) {
		do {
			char *key;
			if (string(s, &key))
				return 1;
			if (!take(s, ':')) {
				free(key);
				return bad(s, "a ':' is missing");
			}
			int is_note = !strcmp(key, "__metadata__");
			if (is_note)
				free(key);
			if (is_note ? notes(s, f) : add_item(s, f, key))
				return 1;
		} while (take(s, ','));
		if (!take(s, '}'))
			return bad(s, "the header does not end");
	}
	skip_space(s);
	return s->p == s->end ? 0 : bad(s, "there is more behind the header");
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct item *)a)->name, ((const struct item *)b)->name);
}

static int by_place(const void *a, const void *b)
{
	const struct item *x = a, *y = b;
	int begin = (x->begin > y->begin) - (x->begin < y->begin);
	return begin ? begin : (x->end > y->end) - (x->end < y->end);
}

/* The tensors' bytes must follow each other without overlap or gap and fill the file; names must
 * differ. Leaves the items sorted by name. */
static int finish(struct scan *s, struct safetensors *f)
{
	int64_t end = 0;
	if (f->n)
		qsort(f->item, (size_t)f->n, sizeof *f->item, by_place);
	for (int i = 0; i < f->n; end = f->item[i++].end)
		if (f->item[i].begin != end)
			return bad(s, "tensors overlap or leave a gap");
	if ((uint64_t)end != f->bytes)
		return bad(s, "there are bytes behind the last tensor");
	if (f->n)
		qsort(f->item, (size_t)f->n, sizeof *f->item, by_name);
	for (int i = 0; i < f->n; i++) {
		f->item[i].entry.name = f->item[i].name;
		f->item[i].entry.dim = f->item[i].dim;
		if (i && !by_name(&f->item[i - 1], &f->item[i]))
			return bad(s, "a name occurs twice");
	}
	return 0;
}

/* --- The file --- */

static int bad_read(const struct scan *s, int error)
{
	snprintf(s->message, SAFETENSORS_MESSAGE, "cannot read %.150s: %s", s->path,
		strerror(error));
	return 1;
}

int safetensors_read_at(int fd, void *out, size_t n, uint64_t at)
{
	unsigned char *p = out;
	while (n) {
		ssize_t got = pread(fd, p, n, (off_t)at);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return got < 0 ? errno : EIO; /* shorter than it was */
		p += got;
		n -= (size_t)got;
		at += (uint64_t)got;
	}
	return 0;
}

/* Opens the file and reads the header's text, *len bytes. */
static int read_header(struct scan *s, struct safetensors *f, size_t *len)
{
	struct stat st;
	unsigned char raw[8];
	uint64_t n = 0;
	f->fd = open(s->path, O_RDONLY | O_CLOEXEC);
	if (f->fd < 0 || fstat(f->fd, &st) != 0)
		return bad_read(s, errno);
	if (!S_ISREG(st.st_mode))
		return bad(s, "it is no plain file");
	if (st.st_size < 8)
		return bad(s, "it is shorter than its header's length");
	int error = safetensors_read_at(f->fd, raw, sizeof raw, 0);
	for (int i = 7; i >= 0; i--)
		n = n << 8 | raw[i];
	if (!error && n > (uint64_t)st.st_size - 8)
		return bad(s, "its header is longer than the file");
	if (!error && n > MAX_HEADER)
		return bad(s, "its header is longer than the format allows");
	if (!error && !(f->header = malloc((size_t)n + 1)))
		error = ENOMEM;
	if (!error)
		error = safetensors_read_at(f->fd, f->header, (size_t)n, 8);
	if (error)
		return bad_read(s, error);
	f->start = 8 + n;
	f->bytes = (uint64_t)st.st_size - f->start;
	*len = (size_t)n;
	return 0;
}

/* Mapped, so that a large file takes no memory of ours. A header whose length is no multiple of 8
 * leaves numbers where they cannot be read: then a copy is made. */
static int load_data(struct scan *s, struct safetensors *f)
{
	const size_t all = (size_t)(f->start + f->bytes);
	int error = f->bytes < SIZE_MAX - f->start ? 0 : ENOMEM;
	if (!error && f->start % 8 == 0) {
		f->map = mmap(NULL, all, PROT_READ, MAP_PRIVATE, f->fd, 0);
		if (f->map == MAP_FAILED) {
			error = errno;
			f->map = NULL;
		}
	} else if (!error) {
		f->copy = malloc((size_t)f->bytes + 1);
		error = f->copy ? safetensors_read_at(f->fd, f->copy, (size_t)f->bytes, f->start)
				: ENOMEM;
	}
	if (error)
		return bad_read(s, error);
	const unsigned char *data = f->map ? (unsigned char *)f->map + f->start : f->copy;
	for (int i = 0; i < f->n; i++)
		f->item[i].entry.data = data + f->item[i].begin;
	return 0;
}

static int open_file(struct safetensors **out, const char *path, int load, char *message)
{
	struct safetensors *f = calloc(1, sizeof *f);
	struct scan s = {.message = message, .path = path};
	size_t len = 0;
	*out = NULL;
	if (!f)
		return bad_read(&s, ENOMEM);
	int rc = read_header(&s, f, &len);
	if (!rc) {
		s.p = f->header;
		s.end = s.p + len;
		rc = header(&s, f) || finish(&s, f) || (load && load_data(&s, f));
	}
	free(f->header);
	f->header = NULL;
	if (rc)
		safetensors_close(f);
	else
		*out = f;
	return rc;
}

int safetensors_open(struct safetensors **out, const char *path, char *message)
{
	return open_file(out, path, 1, message);
}

int safetensors_open_header(struct safetensors **out, const char *path, char *message)
{
	return open_file(out, path, 0, message);
}

int safetensors_read(const struct safetensors *f, const struct safetensors_entry *e, size_t from,
	size_t n, void *out)
{
	const struct item *it = (const struct item *)(const void *)e;
	if (from > e->bytes || n > e->bytes - from)
		return 1;
	return safetensors_read_at(f->fd, out, n, f->start + (uint64_t)it->begin + from) != 0;
}

int safetensors_place(const struct safetensors *f, const struct safetensors_entry *e, uint64_t *at)
{
	const struct item *it = (const struct item *)(const void *)e;
	*at = f->start + (uint64_t)it->begin;
	return f->fd;
}

void safetensors_close(struct safetensors *f)
{
	if (!f)
		return;
	for (int i = 0; i < f->n; i++)
		free(f->item[i].name);
	for (int i = 0; i < f->nnote; i++) {
		free(f->note[i].key);
		free(f->note[i].value);
	}
	free(f->item);
	free(f->note);
	free(f->copy);
	if (f->map)
		munmap(f->map, (size_t)(f->start + f->bytes));
	if (f->fd >= 0)
		close(f->fd);
	free(f);
}

int safetensors_count(const struct safetensors *f)
{
	return f->n;
}

const struct safetensors_entry *safetensors_at(const struct safetensors *f, int i)
{
	return &f->item[i].entry;
}

const struct safetensors_entry *safetensors_find(const struct safetensors *f, const char *name)
{
	int low = 0, high = f->n;
	while (low < high) {
		int mid = low + (high - low) / 2, c = strcmp(f->item[mid].name, name);
		if (c == 0)
			return &f->item[mid].entry;
		if (c < 0)
			low = mid + 1;
		else
			high = mid;
	}
	return NULL;
}

int safetensors_note_at(const struct safetensors *f, int i, const char **key, const char **value)
{
	if (i >= f->nnote)
		return 0;
	*key = f->note[i].key;
	*value = f->note[i].value;
	return 1;
}

const char *safetensors_note(const struct safetensors *f, const char *key)
{
	for (int i = 0; i < f->nnote; i++)
		if (!strcmp(f->note[i].key, key))
			return f->note[i].value;
	return NULL;
}
