/* .npy files. The format is described in NumPy's documentation, numpy.lib.format (NEP 1). */
#include "npy.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { HEADER_LIMIT = 1 << 20 }; /* NumPy's own headers are hundreds of bytes */

struct text {
	const char *p, *end;
};

static int bad(const struct dataset *d, char *message, const char *what)
{
	snprintf(message, DATASET_MESSAGE, "%.150s is no valid .npy file: %s", d->path, what);
	return 1;
}

/* --- The header: a Python dictionary of three known keys --- */

static void skip_space(struct text *t)
{
	while (t->p < t->end && (*t->p == ' ' || *t->p == '\n' || *t->p == '\t'))
		t->p++;
}

static int take(struct text *t, char c)
{
	skip_space(t);
	if (t->p == t->end || *t->p != c)
		return 0;
	t->p++;
	return 1;
}

static int take_word(struct text *t, const char *word)
{
	size_t n = strlen(word);
	skip_space(t);
	if ((size_t)(t->end - t->p) < n || memcmp(t->p, word, n) != 0)
		return 0;
	t->p += n;
	return 1;
}

/* A quoted string without escapes; 1 when there is none or it is longer than `out`. */
static int take_string(struct text *t, char out[16])
{
	skip_space(t);
	if (t->p == t->end || (*t->p != '\'' && *t->p != '"'))
		return 1;
	const char quote = *t->p++;
	for (int n = 0; n < 16 && t->p < t->end; n++) {
		const char c = *t->p++;
		out[n] = c == quote ? '\0' : c;
		if (c == quote)
			return 0;
		if (c == '\\' || c == '\0')
			return 1;
	}
	return 1;
}

static int take_number(struct text *t, int64_t *out)
{
	int64_t v = 0;
	skip_space(t);
	const char *start = t->p;
	for (; t->p < t->end && *t->p >= '0' && *t->p <= '9'; t->p++)
		if (__builtin_mul_overflow(v, 10, &v) || __builtin_add_overflow(v, *t->p - '0', &v))
			return 1;
	*out = v;
	return t->p == start;
}

/* "()", "(3,)", "(3, 4)". */
static const char *take_shape(struct text *t, struct dataset *d)
{
	int comma = 1;
	d->rank = 0;
	if (!take(t, '('))
		return "the shape is missing";
	while (!take(t, ')')) {
		if (!comma)
			return "the shape is malformed";
		if (d->rank == DATASET_RANK)
			return "it has more than 8 dimensions";
		if (take_number(t, &d->dim[d->rank++]))
			return "the shape is malformed or too large";
		comma = take(t, ',');
	}
	return d->rank == 1 && !comma ? "the shape is malformed" : NULL;
}

/* "<f4": byte order, kind, width. */
static const char *take_type(struct text *t, struct dataset *d, int *swap)
{
	static const struct {
		const char *name;
		enum dataset_type type;
	} types[] = {{"f2", DATASET_F16}, {"f4", DATASET_F32}, {"f8", DATASET_F64},
		{"i1", DATASET_I8}, {"i2", DATASET_I16}, {"i4", DATASET_I32}, {"i8", DATASET_I64},
		{"u1", DATASET_U8}, {"u2", DATASET_U16}, {"u4", DATASET_U32}, {"u8", DATASET_U64},
		{"b1", DATASET_BOOL}};
	char s[16];
	if (take_string(t, s))
		return "its type is not f2, f4, f8, i1 to i8, u1 to u8 or b1";
	for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
		if ((s[0] != '<' && s[0] != '>' && s[0] != '|') ||
			strcmp(s + 1, types[i].name) != 0)
			continue;
		d->type = types[i].type;
		if (s[0] == '|' && dataset_width(d->type) > 1)
			return "its type has no byte order";
		*swap = s[0] == (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? '>' : '<');
		return NULL;
	}
	return "its type is not f2, f4, f8, i1 to i8, u1 to u8 or b1";
}

static const char *take_entry(struct text *t, struct dataset *d, int *seen, int *swap, int *fortran)
{
	char key[16];
	if (take_string(t, key))
		return "its header is malformed";
	int which = !strcmp(key, "descr")           ? 1
		    : !strcmp(key, "fortran_order") ? 2
		    : !strcmp(key, "shape")         ? 4
						    : 0;
	if (!which || (*seen & which) || !take(t, ':'))
		return "its header has a wrong key";
	*seen |= which;
	if (which == 1)
		return take_type(t, d, swap);
	if (which == 4)
		return take_shape(t, d);
	*fortran = take_word(t, "True");
	return *fortran || take_word(t, "False") ? NULL : "fortran_order is no truth value";
}

static const char *parse_header(struct text *t, struct dataset *d, int *swap, int *fortran)
{
	int seen = 0, comma = 1;
	if (!take(t, '{'))
		return "its header is malformed";
	while (!take(t, '}')) {
		const char *what = comma ? take_entry(t, d, &seen, swap, fortran)
					 : "its header is malformed";
		if (what)
			return what;
		comma = take(t, ',');
	}
	skip_space(t);
	return seen != 7        ? "its header is incomplete"
	       : t->p != t->end ? "its header is malformed"
				: NULL;
}

/* --- The file --- */

/* The length of the header text, from the bytes behind the magic. */
static const char *header_length(FILE *in, size_t *length, size_t *start)
{
	unsigned char b[12];
	if (fread(b, 1, 8, in) != 8 || memcmp(b, "\x93NUMPY", 6) != 0)
		return "it does not begin with the magic";
	if (b[6] < 1 || b[6] > 3 || b[7] != 0)
		return "its version is not 1.0, 2.0 or 3.0";
	const size_t n = b[6] == 1 ? 2 : 4;
	if (fread(b + 8, 1, n, in) != n)
		return "it ends in its header";
	*length = 0;
	for (size_t i = n; i-- > 0;)
		*length = *length << 8 | b[8 + i];
	*start = 8 + n + *length;
	return *length > HEADER_LIMIT ? "its header is too long" : NULL;
}

static const char *read_header(FILE *in, struct dataset *d, size_t *start, int *swap, int *fortran)
{
	size_t length;
	const char *what = header_length(in, &length, start);
	if (what)
		return what;
	char *text = malloc(length + 1);
	if (!text)
		return "out of memory";
	struct text t = {text, text + length};
	what = fread(text, 1, length, in) == length ? parse_header(&t, d, swap, fortran)
						    : "it ends in its header";
	free(text);
	return what;
}

/* `from` has its first index fastest; `to` its last. */
static void to_c_order(const struct dataset *d, const unsigned char *from, unsigned char *to,
	size_t count, size_t width)
{
	size_t stride[DATASET_RANK], at = 0;
	int64_t index[DATASET_RANK] = {0};
	for (int i = 0; i < d->rank; i++)
		stride[i] = i ? stride[i - 1] * (size_t)d->dim[i - 1] : width;
	for (size_t k = 0; k < count; k++) {
		memcpy(to + k * width, from + at, width);
		for (int i = d->rank - 1; i >= 0; i--) {
			at += stride[i];
			if (++index[i] < d->dim[i])
				break;
			at -= stride[i] * (size_t)d->dim[i];
			index[i] = 0;
		}
	}
}

static const char *reorder(struct dataset *d, size_t bytes)
{
	const size_t width = dataset_width(d->type);
	unsigned char *to = malloc(bytes + 1);
	if (!to)
		return "out of memory";
	to_c_order(d, d->data, to, bytes / width, width);
	free(d->data);
	d->data = to;
	return NULL;
}

static const char *read_all(FILE *in, struct dataset *d)
{
	struct stat st;
	size_t start = 0, bytes = 0;
	int swap = 0, fortran = 0;
	if (fstat(fileno(in), &st) != 0 || !S_ISREG(st.st_mode))
		return "it is no regular file";
	const char *what = read_header(in, d, &start, &swap, &fortran);
	if (what)
		return what;
	if (dataset_bytes(d, &bytes))
		return "its shape is too large";
	if ((uintmax_t)st.st_size < start || (uintmax_t)st.st_size - start != bytes)
		return "its length does not fit its shape";
	d->data = malloc(bytes + 1);
	if (!d->data)
		return "out of memory";
	if (fread(d->data, 1, bytes, in) != bytes)
		return "it cannot be read to its end";
	if (swap)
		dataset_swap(d->data, bytes / dataset_width(d->type), dataset_width(d->type));
	return fortran && d->rank > 1 ? reorder(d, bytes) : NULL;
}

int npy_read(struct dataset *d, char message[256])
{
	FILE *in = fopen(d->path, "rb");
	if (!in) {
		snprintf(message, DATASET_MESSAGE, "cannot read %.150s: %s", d->path,
			strerror(errno));
		return 1;
	}
	const char *what = read_all(in, d);
	fclose(in);
	return what ? bad(d, message, what) : 0;
}

/* --- Writing --- */

/* The dictionary, padded with spaces so that the data begin at a multiple of 64. */
static int make_header(char out[512], int is_double, int rank, const int64_t *dim)
{
	const char order = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? '<' : '>';
	int n = snprintf(out, 512, "{'descr': '%cf%d', 'fortran_order': False, 'shape': (", order,
		is_double ? 8 : 4);
	for (int i = 0; i < rank; i++)
		n += snprintf(out + n, 512 - (size_t)n, "%s%" PRId64 "%s", i ? ", " : "", dim[i],
			rank == 1 ? "," : "");
	n += snprintf(out + n, 512 - (size_t)n, "), }");
	while ((10 + n + 1) % 64 != 0)
		out[n++] = ' ';
	out[n++] = '\n';
	return n;
}

int dataset_write_npy(const char *path, int is_double, int rank, const int64_t *dim,
	const void *data, char message[256])
{
	struct dataset d = {.type = is_double ? DATASET_F64 : DATASET_F32, .rank = rank};
	char header[512];
	size_t bytes;
	int rc = rank < 0 || rank > DATASET_RANK;
	for (int i = 0; i < rank && !rc; i++) {
		d.dim[i] = dim[i];
		rc = dim[i] < 0;
	}
	if (rc || dataset_bytes(&d, &bytes)) {
		snprintf(message, DATASET_MESSAGE, "cannot write %.150s: a bad shape", path);
		return 1;
	}
	const int n = make_header(header, is_double, rank, dim);
	const unsigned char start[10] = {0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0,
		(unsigned char)(n & 255), (unsigned char)(n >> 8)};
	errno = 0;
	FILE *f = fopen(path, "wb");
	rc = !f || fwrite(start, 1, 10, f) != 10 || fwrite(header, 1, (size_t)n, f) != (size_t)n ||
	     (bytes && fwrite(data, 1, bytes, f) != bytes);
	if (f && fclose(f) != 0)
		rc = 1;
	if (rc)
		snprintf(message, DATASET_MESSAGE, "cannot write %.150s: %s", path,
			strerror(errno ? errno : EIO));
	return rc;
}
