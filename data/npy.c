/* .npy files (NumPy's numpy.lib.format, versions 1.0 to 3.0): a magic, a length, a Python
 * dictionary in text with descr, fortran_order and shape, the elements. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/array_stream.h"
#include "data/stream.h"

enum { MAX_HEADER = 1 << 20 };

struct scan {
	const char *p; /* NUL-terminated */
	struct stream *s;
};

static int bad(struct scan *c, const char *what)
{
	return stream_bad(c->s, "malformed .npy header: %s", what);
}

static int take(struct scan *c, char want)
{
	while (*c->p == ' ' || *c->p == '\n' || *c->p == '\t' || *c->p == '\r')
		c->p++;
	if (*c->p != want || !want)
		return 0;
	c->p++;
	return 1;
}

/* 'text' or "text" into out[24]. */
static int quoted(struct scan *c, char out[24])
{
	size_t n = 0;
	char quote = take(c, '\'') ? '\'' : take(c, '"') ? '"' : '\0';
	if (!quote)
		return bad(c, "a string is missing (records are not read)");
	while (*c->p && *c->p != quote) {
		if (n == 23)
			return bad(c, "a string is too long");
		out[n++] = *c->p++;
	}
	out[n] = '\0';
	if (!*c->p)
		return bad(c, "a string does not end");
	c->p++;
	return 0;
}

/* "<f4" */
static int read_type(struct scan *c, struct dataset *d, int *big)
{
	static const struct {
		const char *name;
		enum dataset_type type;
	} types[] = {{"f2", DATASET_F16}, {"f4", DATASET_F32}, {"f8", DATASET_F64},
		{"i1", DATASET_I8}, {"i2", DATASET_I16}, {"i4", DATASET_I32}, {"i8", DATASET_I64},
		{"u1", DATASET_U8}, {"u2", DATASET_U16}, {"u4", DATASET_U32}, {"u8", DATASET_U64},
		{"b1", DATASET_BOOL}};
	char descr[24];
	if (quoted(c, descr))
		return 1;
	const uint16_t one = 1;
	const char order = descr[0];
	if (order && strchr("<>=|", order))
		for (size_t i = 0; i < sizeof types / sizeof *types; i++)
			if (!strcmp(types[i].name, descr + 1)) {
				d->type = types[i].type;
				*big = order == '>' ||
				       (order == '=' && !*(const unsigned char *)&one);
				if (order == '|' && dataset_width(d->type) > 1)
					break;
				return 0;
			}
	return stream_bad(
		c->s, "elements of type '%s' are not read; save as float, integer or bool", descr);
}

/* "(2, 3)", "(2,)", "()" */
static int read_shape(struct scan *c, struct dataset *d)
{
	int comma = 1;
	d->rank = 0;
	if (!take(c, '('))
		return bad(c, "the shape is no tuple");
	while (!take(c, ')')) {
		int64_t v = 0;
		if (!comma || *c->p < '0' || *c->p > '9')
			return bad(c, "the shape");
		for (; *c->p >= '0' && *c->p <= '9'; c->p++)
			if (__builtin_mul_overflow(v, 10, &v) ||
				__builtin_add_overflow(v, *c->p - '0', &v))
				return bad(c, "the shape is too large");
		if (d->rank == DATASET_RANK)
			return stream_bad(c->s, "more than %d axes", DATASET_RANK);
		d->dim[d->rank++] = v;
		comma = take(c, ',');
	}
	return d->rank == 1 && !comma ? bad(c, "the shape is no tuple") : 0;
}

static int read_bool(struct scan *c, int *out)
{
	take(c, ' ');
	*out = !strncmp(c->p, "True", 4);
	if (!*out && strncmp(c->p, "False", 5) != 0)
		return bad(c, "fortran_order");
	c->p += *out ? 4 : 5;
	return 0;
}

static int read_dictionary(struct scan *c, struct dataset *d, int *big, int *fortran)
{
	int seen = 0;
	if (!take(c, '{'))
		return bad(c, "the dictionary is missing");
	while (!take(c, '}')) {
		char key[24];
		if (quoted(c, key))
			return 1;
		int which = !strcmp(key, "descr")           ? 1
			    : !strcmp(key, "fortran_order") ? 2
			    : !strcmp(key, "shape")         ? 4
							    : 0;
		if (!which || (seen & which) || !take(c, ':'))
			return bad(c, "a wrong key");
		seen |= which;
		if (which == 1       ? read_type(c, d, big)
			: which == 2 ? read_bool(c, fortran)
				     : read_shape(c, d))
			return 1;
		if (!take(c, ',') && *c->p != '}')
			return bad(c, "a comma is missing");
	}
	take(c, '\n');
	if (*c->p)
		return bad(c, "there is more behind the dictionary");
	return seen == 7 ? 0 : bad(c, "a key is missing");
}

static int read_head(
	struct stream *s, const unsigned char magic[8], struct dataset *d, int *big, int *fortran)
{
	struct scan c = {.s = s};
	unsigned char raw[4] = {0};
	*big = *fortran = 0;
	if (magic[6] < 1 || magic[6] > 3)
		return stream_bad(s, ".npy version %d is not known", magic[6]);
	if (stream_get(s, raw, magic[6] == 1 ? 2 : 4))
		return 1;
	uint32_t len = (uint32_t)raw[3] << 24 | (uint32_t)raw[2] << 16 | (uint32_t)raw[1] << 8 |
		       raw[0];
	if (len > MAX_HEADER)
		return bad(&c, "it is too long");
	char *text = calloc(1, (size_t)len + 1);
	if (!text)
		return stream_bad(s, "out of memory");
	c.p = text;
	int rc = stream_get(s, text, len);
	if (!rc && memchr(text, 0, len))
		rc = bad(&c, "a zero byte");
	rc = rc || read_dictionary(&c, d, big, fortran);
	free(text);
	return rc;
}

int npy_head(
	struct stream *s, const unsigned char magic[8], struct dataset *d, int *swap, int *fortran)
{
	const uint16_t one = 1;
	int big = 0;
	const int rc = read_head(s, magic, d, &big, fortran);
	*swap = dataset_width(d->type) > 1 && big != !*(const unsigned char *)&one;
	return rc;
}

int npy_read(struct stream *s, const unsigned char magic[8], struct dataset *d, struct elements *e)
{
	int big, fortran;
	return read_head(s, magic, d, &big, &fortran) || stream_elements(s, d, big, e) ||
	       (fortran && d->rank > 1 && elements_turn(d, e, s->message));
}

size_t npy_header(const char *type, int rank, const int64_t *dim, char out[NPY_HEADER])
{
	enum { MAGIC = 10 };
	int len = MAGIC + snprintf(out + MAGIC, NPY_HEADER - MAGIC,
				  "{'descr': '%s', 'fortran_order': False, 'shape': (", type);
	for (int k = 0; k < rank; k++)
		len += snprintf(out + len, NPY_HEADER - (size_t)len, k ? " %lld," : "%lld,",
			(long long)dim[k]);
	len += snprintf(out + len, NPY_HEADER - (size_t)len, "), }");
	while ((len + 1) % 64) /* the data begin at a multiple of 64 */
		out[len++] = ' ';
	out[len++] = '\n';
	memcpy(out, "\x93NUMPY\x01", 8);
	out[8] = (char)(len - MAGIC);
	out[9] = (char)((len - MAGIC) >> 8);
	return (size_t)len;
}

int dataset_write_npy(const char *path, int is_double, int rank, const int64_t *dim,
	const void *data, char message[256])
{
	char header[NPY_HEADER];
	int64_t n = 1, bytes = is_double ? 8 : 4;
	int bad_shape = rank < 0 || rank > DATASET_RANK;
	for (int k = 0; k < rank && !bad_shape; k++)
		bad_shape = dim[k] < 0 || __builtin_mul_overflow(bytes, dim[k], &bytes);
	if (bad_shape || (uint64_t)bytes > SIZE_MAX) {
		snprintf(message, 256, "cannot write %.200s: its shape", path);
		return 1;
	}
	for (int k = 0; k < rank; k++)
		n *= dim[k];
	const size_t len = npy_header(is_double ? "<f8" : "<f4", rank, dim, header);
	const size_t count = (size_t)n, width = is_double ? 8 : 4;
	FILE *f = fopen(path, "wb");
	int ok = f && fwrite(header, 1, len, f) == len &&
		 (!count || fwrite(data, width, count, f) == count);
	if (f && fclose(f) != 0)
		ok = 0;
	if (!ok)
		snprintf(message, 256, "cannot write %.200s", path);
	return !ok;
}
