/* Data files: opening by content, elements in memory, and rows out of them. */
#include "dataset.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "dataset_read.h"
#include "kernels/philox.h"

/* --- Reading --- */

int source_bad(struct source *s, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	int n = snprintf(s->message, 256, "%.120s: ", s->path);
	vsnprintf(s->message + n, 256 - (size_t)n, fmt, ap);
	va_end(ap);
	return 1;
}

/* More of the file for zlib; nothing at the end. */
static int refill(struct source *s)
{
	if (s->z.avail_in)
		return 0;
	s->z.next_in = s->in;
	s->z.avail_in = (uInt)fread(s->in, 1, sizeof s->in, s->f);
	return ferror(s->f) ? source_bad(s, "cannot read: %s", strerror(errno)) : 0;
}

/* Up to n bytes, n > 0, of what was compressed; zlib checks every member's sum and length. */
static int unpack(struct source *s, unsigned char *out, uInt n, size_t *got)
{
	s->z.next_out = out;
	s->z.avail_out = n;
	while (s->z.avail_out && !s->ended) {
		if (refill(s))
			return 1;
		int code = inflate(&s->z, Z_NO_FLUSH);
		if (code == Z_BUF_ERROR) /* it wants input, and there was none */
			return source_bad(s, "the compressed file ends too early");
		if (code != Z_OK && code != Z_STREAM_END)
			return source_bad(s, "its compression is damaged: %.80s",
				s->z.msg ? s->z.msg : zError(code));
		if (code != Z_STREAM_END)
			continue;
		if (refill(s))
			return 1;
		if (!s->z.avail_in)
			s->ended = 1;
		else if (inflateReset(&s->z) != Z_OK) /* another member follows */
			return source_bad(s, "cannot read its compression");
	}
	*got = n - s->z.avail_out;
	return 0;
}

/* Up to n bytes; *got of them, fewer at the end. */
static int read_some(struct source *s, void *out, size_t n, size_t *got)
{
	enum { STEP = 1 << 20 };
	unsigned char *p = out;
	*got = 0;
	if (!s->packed) {
		*got = fread(out, 1, n, s->f);
		return *got < n && ferror(s->f) ? source_bad(s, "cannot read: %s", strerror(errno))
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

int source_get(struct source *s, void *out, size_t n)
{
	size_t got;
	if (read_some(s, out, n, &got))
		return 1;
	return got < n ? source_bad(s, "the file ends too early") : 0;
}

int dataset_width(enum dataset_type type)
{
	static const unsigned char width[] = {[DATASET_F16] = 2,
		[DATASET_F32] = 4,
		[DATASET_F64] = 8,
		[DATASET_I8] = 1,
		[DATASET_I16] = 2,
		[DATASET_I32] = 4,
		[DATASET_I64] = 8,
		[DATASET_U8] = 1,
		[DATASET_U16] = 2,
		[DATASET_U32] = 4,
		[DATASET_U64] = 8,
		[DATASET_BOOL] = 1};
	return width[type];
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

/* `bytes` bytes and then the end. Memory grows with what is really there: a compressed file's
 * header may promise anything. */
static int read_rest(struct source *s, size_t bytes, unsigned char **out)
{
	size_t have = 0, cap = bytes < (1 << 24) || s->expects >= 0 ? bytes : 1 << 24, got;
	unsigned char *p = malloc(cap + 1), extra;
	while (p) {
		*out = p;
		if (read_some(s, p + have, cap - have, &got))
			return 1;
		have += got;
		if (have < cap)
			return source_bad(s, "the file ends too early");
		if (cap == bytes)
			break;
		cap = cap < bytes / 2 ? 2 * cap : bytes;
		p = realloc(*out, cap + 1);
	}
	if (!p)
		return source_bad(s, "out of memory");
	if (read_some(s, &extra, 1, &got)) /* checks a compressed file's sum as well */
		return 1;
	return got ? source_bad(s, "there are bytes behind the last element") : 0;
}

int source_elements(struct source *s, struct dataset *d, int big)
{
	const uint16_t one = 1;
	const int host_big = !*(const unsigned char *)&one;
	const int width = dataset_width(d->type);
	int64_t bytes = width;
	unsigned char *data = NULL;
	d->row = 1;
	for (int k = 0; k < d->rank; k++)
		if (__builtin_mul_overflow(bytes, d->dim[k], &bytes) ||
			(k && __builtin_mul_overflow(d->row, d->dim[k], &d->row)))
			return source_bad(s, "its shape is too large");
	if ((uint64_t)bytes >= SIZE_MAX)
		return source_bad(s, "its shape is too large");
	if (s->expects >= 0 && bytes > s->expects)
		return source_bad(s, "the file ends too early");
	int rc = read_rest(s, (size_t)bytes, &data);
	d->data = data;
	if (!rc && width > 1 && big != host_big)
		reverse_bytes(data, (size_t)bytes / (size_t)width, (size_t)width);
	return rc;
}

static int read_format(struct source *s, struct dataset *d)
{
	unsigned char magic[8] = {0};
	size_t got;
	if (read_some(s, magic, 4, &got))
		return 1;
	if (got == 4 && magic[0] == 0 && magic[1] == 0)
		return idx_read(s, magic, d);
	if (got == 4 && !memcmp(magic, "\x93NUM", 4))
		return source_get(s, magic + 4, 4) ||
		       (memcmp(magic + 4, "PY", 2) ? source_bad(s, "neither .npy nor IDX")
						   : npy_read(s, magic, d));
	if (got == 4 && !memcmp(magic, "PK\3\4", 4))
		return source_bad(s, "an archive (.npz); unpack it and name the .npy files");
	return source_bad(s, "neither .npy nor IDX (plain or gzip)");
}

/* Whether the file is compressed, told by gzip's first two bytes. */
static int open_source(struct source *s)
{
	struct stat st;
	unsigned char magic[2];
	if (stat(s->path, &st) != 0)
		return source_bad(s, "cannot open: %s", strerror(errno));
	if (!S_ISREG(st.st_mode))
		return source_bad(s, "no plain file");
	s->f = fopen(s->path, "rb");
	if (!s->f)
		return source_bad(s, "cannot open: %s", strerror(errno));
	s->packed = fread(magic, 1, 2, s->f) == 2 && magic[0] == 0x1f && magic[1] == 0x8b;
	rewind(s->f);
	s->expects = s->packed ? -1 : st.st_size;
	if (s->packed && inflateInit2(&s->z, 15 + 16) != Z_OK) { /* 16: gzip's format only */
		s->packed = 0;
		return source_bad(s, "out of memory");
	}
	return 0;
}

int dataset_open(struct dataset *out, const char *path, char message[256])
{
	memset(out, 0, sizeof *out);
	struct source *s = calloc(1, sizeof *s);
	size_t len = strlen(path) + 1;
	char *copy = malloc(len);
	if (!s || !copy) {
		free(s);
		free(copy);
		snprintf(message, 256, "%.120s: out of memory", path);
		return 1;
	}
	out->path = memcpy(copy, path, len);
	s->path = path;
	s->message = message;
	int rc = open_source(s) || read_format(s, out);
	if (s->packed)
		(void)inflateEnd(&s->z);
	if (s->f)
		(void)fclose(s->f);
	free(s);
	if (rc)
		dataset_close(out);
	return rc;
}

void dataset_close(struct dataset *d)
{
	free((char *)(uintptr_t)d->path);
	free(d->data);
	memset(d, 0, sizeof *d);
}

/* --- Rows --- */

double dataset_half(uint16_t h)
{
	const int exponent = h >> 10 & 31, fraction = h & 1023;
	double v = exponent == 31 ? (fraction ? (double)NAN : (double)INFINITY)
		   : exponent     ? ldexp(1024 + fraction, exponent - 25)
				  : ldexp(fraction, -24);
	return h & 0x8000 ? -v : v;
}

#define SAME(x) (x)
/* Every element type: its C type and how a stored value becomes a number. */
#define EACH_TYPE(X)                                                                               \
	X(DATASET_F16, uint16_t, dataset_half)                                                     \
	X(DATASET_F32, float, SAME)                                                                \
	X(DATASET_F64, double, SAME)                                                               \
	X(DATASET_I8, int8_t, SAME)                                                                \
	X(DATASET_I16, int16_t, SAME)                                                              \
	X(DATASET_I32, int32_t, SAME)                                                              \
	X(DATASET_I64, int64_t, SAME)                                                              \
	X(DATASET_U8, uint8_t, SAME)                                                               \
	X(DATASET_U16, uint16_t, SAME)                                                             \
	X(DATASET_U32, uint32_t, SAME)                                                             \
	X(DATASET_U64, uint64_t, SAME)                                                             \
	X(DATASET_BOOL, uint8_t, !!)

/* Product and sum are two statements: a compiler may not contract them into one rounding. An
 * unchanged value keeps its bits (a zero's sign too). */
#define REAL_CASE(tag, ctype, number)                                                              \
	case tag:                                                                                  \
		for (int64_t r = 0; r < n; r++) {                                                  \
			const ctype *x = (const ctype *)d->data + index[r] * d->row;               \
			for (int64_t k = 0; k < d->row; k++) {                                     \
				double v = (double)number(x[k]);                                   \
				if (scaled) {                                                      \
					v = v * scale;                                             \
					v = v + shift;                                             \
				}                                                                  \
				*out++ = (REAL)v;                                                  \
			}                                                                          \
		}                                                                                  \
		break;

void dataset_f32(const struct dataset *d, const int64_t *index, int64_t n, double scale,
	double shift, float *out)
{
	const int scaled = scale != 1 || shift != 0;
#define REAL float
	switch (d->type) {
		EACH_TYPE(REAL_CASE)
	}
#undef REAL
}

void dataset_f64(const struct dataset *d, const int64_t *index, int64_t n, double scale,
	double shift, double *out)
{
	const int scaled = scale != 1 || shift != 0;
#define REAL double
	switch (d->type) {
		EACH_TYPE(REAL_CASE)
	}
#undef REAL
}

/* Element i as a whole number: 0, or 1 when it is none that fits (*out is the nearest). */
static int whole(const struct dataset *d, int64_t i, int64_t *out)
{
	double v;
	switch (d->type) {
	case DATASET_F16:
		v = dataset_half(((const uint16_t *)d->data)[i]);
		break;
	case DATASET_F32:
		v = (double)((const float *)d->data)[i];
		break;
	case DATASET_F64:
		v = ((const double *)d->data)[i];
		break;
	case DATASET_U64: {
		uint64_t u = ((const uint64_t *)d->data)[i];
		*out = u > INT64_MAX ? INT64_MAX : (int64_t)u;
		return u > INT64_MAX;
	}
#define WHOLE_CASE(tag, ctype)                                                                     \
	case tag:                                                                                  \
		*out = ((const ctype *)d->data)[i];                                                \
		return 0;
		WHOLE_CASE(DATASET_I8, int8_t)
		WHOLE_CASE(DATASET_I16, int16_t)
		WHOLE_CASE(DATASET_I32, int32_t)
		WHOLE_CASE(DATASET_I64, int64_t)
		WHOLE_CASE(DATASET_U8, uint8_t)
		WHOLE_CASE(DATASET_U16, uint16_t)
		WHOLE_CASE(DATASET_U32, uint32_t)
	case DATASET_BOOL:
	default:
		*out = ((const uint8_t *)d->data)[i] != 0;
		return 0;
	}
	if (!(v >= -0x1p63 && v < 0x1p63)) { /* not a number lands here, too */
		*out = v < 0 ? INT64_MIN : INT64_MAX;
		return 1;
	}
	*out = (int64_t)v;
	return (double)*out < v || (double)*out > v;
}

int dataset_i64(
	const struct dataset *d, const int64_t *index, int64_t n, int64_t *out, char message[256])
{
	for (int64_t r = 0; r < n; r++)
		for (int64_t k = 0; k < d->row; k++)
			if (whole(d, index[r] * d->row + k, out++)) {
				snprintf(message, 256,
					"%.120s: sample %lld holds a value that is no whole number "
					"of 64 bits",
					d->path, (long long)index[r]);
				return 1;
			}
	return 0;
}

#define BOOL_CASE(tag, ctype, number)                                                              \
	case tag:                                                                                  \
		for (int64_t r = 0; r < n; r++) {                                                  \
			const ctype *x = (const ctype *)d->data + index[r] * d->row;               \
			for (int64_t k = 0; k < d->row; k++)                                       \
				*out++ = (double)number(x[k]) != 0;                                \
		}                                                                                  \
		break;

void dataset_bool(const struct dataset *d, const int64_t *index, int64_t n, unsigned char *out)
{
	switch (d->type) {
		EACH_TYPE(BOOL_CASE)
	}
}

int64_t dataset_outside(
	const struct dataset *d, int64_t low, int64_t high, int64_t except, int64_t *value)
{
	const int64_t samples = d->rank ? d->dim[0] : 1;
	for (int64_t r = 0; r < samples; r++)
		for (int64_t k = 0; k < d->row; k++) {
			int odd = whole(d, r * d->row + k, value);
			if (odd || ((*value < low || *value > high) && *value != except))
				return r;
		}
	return -1;
}

/* --- Order --- */

/* Fisher and Yates, from the top; the remainder of 64 random bits is even to n in 2^64. Node -1
 * keeps these numbers apart from those of the model's own nodes. */
void dataset_shuffle(int64_t *order, int64_t n, int64_t seed, int64_t epoch)
{
	for (int64_t i = 0; i < n; i++)
		order[i] = i;
	for (int64_t i = n - 1; i > 0; i--) {
		uint32_t word[4];
		stint_philox_at(seed, epoch, -1, 4 * i, word);
		uint64_t random = (uint64_t)word[1] << 32 | word[0];
		int64_t j = (int64_t)(random % ((uint64_t)i + 1)), keep = order[i];
		order[i] = order[j];
		order[j] = keep;
	}
}
