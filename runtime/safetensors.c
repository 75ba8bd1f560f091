/* Reading and writing safetensors. The header's JSON is scanned by hand: objects of a fixed form,
 * strings and whole numbers are all that may occur. */
#include "safetensors.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "stint_rt.h"

static const struct {
	const char *name;
	int dtype, bytes;
} types[] = {{"F32", STINT_F32, 4}, {"F64", STINT_F64, 8}, {"I64", STINT_I64, 8},
	{"BOOL", STINT_BOOL, 1}, {"F16", -1, 2}, {"BF16", -1, 2}, {"I32", -1, 4}, {"I16", -1, 2},
	{"I8", -1, 1}, {"U8", -1, 1}, {"U16", -1, 2}, {"U32", -1, 4}, {"U64", -1, 8}};
enum { NTYPE = sizeof types / sizeof *types };

struct item {
	struct safetensors_entry entry;
	int64_t dim[SAFETENSORS_RANK];
	char *name;
};

struct safetensors {
	unsigned char *file;
	size_t size, data; /* of the file; where the tensors begin */
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
	if (hex4(s, &c) || c == 0)
		return 1;
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
	return s->p == start ? bad(s, "a number is missing") : 0;
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
	if (offset[1] < offset[0] || (uint64_t)offset[1] > f->size - f->data ||
		offset[1] - offset[0] != bytes)
		return bad(s, "a tensor's bytes lie outside the file or do not fit its shape");
	it->entry.data = f->file + f->data + offset[0];
	it->entry.bytes = (size_t)bytes;
	return 0;
}

static int notes(struct scan *s, struct safetensors *f)
{
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

static int finish(struct scan *s, struct safetensors *f)
{
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

static int read_file(struct safetensors *f, const char *path, char *message)
{
	FILE *in = fopen(path, "rb");
	long size = -1;
	if (in && fseek(in, 0, SEEK_END) == 0)
		size = ftell(in);
	int ok = size >= 0 && fseek(in, 0, SEEK_SET) == 0;
	if (ok) {
		f->size = (size_t)size;
		f->file = malloc(f->size + 1);
		ok = f->file && fread(f->file, 1, f->size, in) == f->size;
	}
	if (!ok)
		snprintf(message, SAFETENSORS_MESSAGE, "cannot read %.150s: %s", path,
			strerror(errno ? errno : EIO));
	if (in)
		fclose(in);
	return !ok;
}

int safetensors_open(struct safetensors **out, const char *path, char *message)
{
	struct safetensors *f = calloc(1, sizeof *f);
	struct scan s = {.message = message, .path = path};
	*out = NULL;
	if (!f)
		return bad(&s, "out of memory");
	uint64_t len = 0;
	int rc = read_file(f, path, message);
	if (!rc && f->size < 8)
		rc = bad(&s, "it is shorter than its header's length");
	for (int i = 7; !rc && i >= 0; i--)
		len = len << 8 | f->file[i];
	if (!rc && len > f->size - 8)
		rc = bad(&s, "its header is longer than the file");
	if (!rc) {
		f->data = 8 + (size_t)len;
		s.p = (const char *)f->file + 8;
		s.end = s.p + len;
		rc = header(&s, f) || finish(&s, f);
	}
	if (rc)
		safetensors_close(f);
	else
		*out = f;
	return rc;
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
	free(f->file);
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

const char *safetensors_note(const struct safetensors *f, const char *key)
{
	for (int i = 0; i < f->nnote; i++)
		if (!strcmp(f->note[i].key, key))
			return f->note[i].value;
	return NULL;
}

/* --- Writing --- */

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

static int width_of(int dtype)
{
	return dtype == STINT_F32 ? 4 : dtype == STINT_BOOL ? 1 : 8;
}

static uint64_t bytes_of(const struct safetensors_entry *e)
{
	uint64_t n = (uint64_t)width_of(e->dtype);
	for (int i = 0; i < e->rank; i++)
		n *= (uint64_t)e->dim[i];
	return n;
}

static void put_header(FILE *f, const struct safetensors_entry *entry, int n,
	const struct safetensors_note *note, int nnote)
{
	static const char *const name[] = {"F32", "F64", "I64", "BOOL"};
	uint64_t offset = 0;
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
		fprintf(f, ":{\"dtype\":\"%s\",\"shape\":[", name[entry[i].dtype]);
		for (int k = 0; k < entry[i].rank; k++)
			fprintf(f, "%s%" PRId64, k ? "," : "", entry[i].dim[k]);
		fprintf(f, "],\"data_offsets\":[%" PRIu64 ",%" PRIu64 "]}", offset,
			offset + bytes_of(&entry[i]));
		offset += bytes_of(&entry[i]);
	}
	fputc('}', f);
}

static int put_all(FILE *f, const struct safetensors_entry *entry, int n,
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
	for (int i = 0; i < n; i++) {
		size_t bytes = (size_t)bytes_of(&entry[i]);
		if (bytes && fwrite(entry[i].data, 1, bytes, f) != bytes)
			return 1;
	}
	unsigned char length[8];
	for (int i = 0; i < 8; i++)
		length[i] = (unsigned char)((uint64_t)(end - 8) >> (8 * i));
	return fseek(f, 0, SEEK_SET) != 0 || fwrite(length, 1, 8, f) != 8 || fflush(f) != 0 ||
	       fsync(fileno(f)) != 0;
}

static void sync_folder(char *path)
{
	char *slash = strrchr(path, '/');
	if (slash)
		slash[slash == path] = '\0';
	int fd = open(slash ? path : ".", O_RDONLY | O_DIRECTORY);
	if (fd >= 0) {
		fsync(fd); /* some file systems refuse: then the rename is as safe as they make it
			    */
		close(fd);
	}
}

int safetensors_write(const char *path, const struct safetensors_entry *entry, int n,
	const struct safetensors_note *note, int nnote, char *message)
{
	size_t len = strlen(path) + 32;
	char *tmp = malloc(len);
	if (!tmp) {
		snprintf(message, SAFETENSORS_MESSAGE, "out of memory");
		return 1;
	}
	snprintf(tmp, len, "%s.tmp%ld", path, (long)getpid());
	FILE *f = fopen(tmp, "wb");
	int rc = !f || put_all(f, entry, n, note, nnote);
	if (f && fclose(f) != 0)
		rc = 1;
	if (!rc)
		rc = rename(tmp, path) != 0;
	if (rc) {
		snprintf(message, SAFETENSORS_MESSAGE, "cannot write %.150s: %s", path,
			strerror(errno));
		if (f)
			remove(tmp);
	} else {
		snprintf(tmp, len, "%s", path);
		sync_folder(tmp);
	}
	free(tmp);
	return rc;
}
