/* Opening sources, and rows out of them. */
#include "data/dataset.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/kind.h"

int dataset_bad(char message[256], const char *path, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	int n = snprintf(message, 256, "%.120s: ", path);
	vsnprintf(message + n, 256 - (size_t)n, fmt, ap);
	va_end(ap);
	return 1;
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

int dataset_count(struct dataset *d, int64_t *bytes)
{
	*bytes = dataset_width(d->type);
	d->row = 1;
	for (int k = 0; k < d->rank; k++)
		if (__builtin_mul_overflow(*bytes, d->dim[k], bytes) ||
			(k && __builtin_mul_overflow(d->row, d->dim[k], &d->row)))
			return 1;
	/* a row's own bytes, too: there may be no rows at all */
	return d->row > INT64_MAX / 16 || (uint64_t)d->row >= SIZE_MAX / 16;
}

int64_t dataset_samples(const struct dataset *d)
{
	return d->rank ? d->dim[0] : 1;
}

const char *dataset_name(const struct dataset *d, int64_t sample)
{
	return d->kind->name ? d->kind->name(d, sample) : NULL;
}

const char *dataset_folder(const struct dataset *d)
{
	return d->kind->folder ? d->kind->folder(d) : NULL;
}

int dataset_sample_file(const struct dataset *d, int64_t sample, char *out, size_t room)
{
	const char *folder = dataset_folder(d);
	return folder ? snprintf(out, room, "%s%s%s", folder, *folder ? "/" : "",
				dataset_name(d, sample))
		      : 0;
}

int dataset_sizes(const struct dataset *d, int *resize, int *crop)
{
	if (d->kind->sizes)
		d->kind->sizes(d, resize, crop);
	return d->kind->sizes != NULL;
}

const char *dataset_classes(const struct dataset *d)
{
	return d->kind->classes ? d->kind->classes(d) : NULL;
}

int dataset_take_classes(struct dataset *d, const char *classes, char message[256])
{
	return d->kind->take_classes ? d->kind->take_classes(d, classes, message) : 0;
}

const char *dataset_columns(const struct dataset *d)
{
	return d->kind->columns ? d->kind->columns(d) : NULL;
}

int dataset_take_columns(struct dataset *d, const char *columns, char message[256])
{
	return d->kind->take_columns ? d->kind->take_columns(d, columns, message) : 0;
}

/* "1" of "cat/1.png", its length. */
static const char *stem(const char *name, size_t *n)
{
	const char *slash = strrchr(name, '/');
	name = slash ? slash + 1 : name;
	const char *dot = strrchr(name, '.');
	*n = dot ? (size_t)(dot - name) : strlen(name);
	return name;
}

int64_t dataset_misnamed(const struct dataset *a, const struct dataset *b)
{
	if (!a->kind->name || !b->kind->name)
		return -1;
	for (int64_t i = 0; i < dataset_samples(a); i++) {
		size_t n, m;
		const char *x = stem(dataset_name(a, i), &n), *y = stem(dataset_name(b, i), &m);
		if (n != m || memcmp(x, y, n) != 0)
			return i;
	}
	return -1;
}

/* How many rows are read at a time. */
static int64_t block_rows(const struct dataset *d)
{
	const int64_t bytes = d->row * dataset_width(d->type);
	return bytes > 0 && bytes < DATASET_BLOCK ? DATASET_BLOCK / bytes : 1;
}

/* Opens `path` or, of the kind that this is, what `like` has opened (NULL: nothing). */
static int open_as(
	struct dataset *out, const char *path, const struct dataset *like, char message[256])
{
	const char *rest;
	memset(out, 0, sizeof *out);
	char *copy = strdup(path);
	if (!copy)
		return dataset_bad(message, path, "out of memory");
	if (like)
		*out = *like;
	out->path = copy;
	out->scratch = out->state = NULL;
	out->kind = dataset_kind_of(path, &rest);
	int rc = like ? elements_again(out, like, message) : out->kind->open(out, rest, message);
	if (!rc) {
		out->scratch = malloc((size_t)block_rows(out) * (size_t)out->row *
					      (size_t)dataset_width(out->type) +
				      1);
		if (!out->scratch)
			rc = dataset_bad(message, path, "out of memory");
	}
	if (rc)
		dataset_close(out);
	return rc;
}

int dataset_open(struct dataset *out, const char *path, char message[256])
{
	return open_as(out, path, NULL, message);
}

int dataset_again(struct dataset *out, const struct dataset *d, char message[256])
{
	return open_as(out, d->path, d->kind->close == elements_free ? d : NULL, message);
}

void dataset_close(struct dataset *d)
{
	if (d->kind)
		d->kind->close(d);
	free(d->scratch);
	free((char *)(uintptr_t)d->path);
	memset(d, 0, sizeof *d);
}

/* --- Numbers --- */

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

/* From element k of a block the same scale and shift serve up to *end. */
static int64_t channel(const struct dataset_map *map, int64_t k, int64_t n, int64_t *end)
{
	*end = n;
	if (!map || map->channels < 2)
		return 0;
	const int64_t next = (k / map->inner + 1) * map->inner;
	*end = next < n ? next : n;
	return k / map->inner % map->channels;
}

/* Product and sum are two statements: a compiler may not contract them into one rounding. An
 * unchanged value keeps its bits (a zero's sign too). */
#define REAL_CASE(tag, ctype, number)                                                              \
	case tag:                                                                                  \
		for (int64_t k = 0, end; k < n; k = end) {                                         \
			const int64_t c = channel(map, k, n, &end);                                \
			const double scale = map ? map->scale[c] : 1,                              \
				     shift = map ? map->shift[c] : 0;                              \
			const int same = scale == 1 && shift == 0;                                 \
			for (int64_t i = k; i < end; i++) {                                        \
				double v = (double)number(((const ctype *)in)[i]);                 \
				if (!same) {                                                       \
					v = v * scale;                                             \
					v = v + shift;                                             \
				}                                                                  \
				out[i] = (REAL)v;                                                  \
			}                                                                          \
		}                                                                                  \
		break;

static void to_f32(enum dataset_type type, const void *in, int64_t n, const struct dataset_map *map,
	float *out)
{
#define REAL float
	switch (type) {
		EACH_TYPE(REAL_CASE)
	}
#undef REAL
}

static void to_f64(enum dataset_type type, const void *in, int64_t n, const struct dataset_map *map,
	double *out)
{
#define REAL double
	switch (type) {
		EACH_TYPE(REAL_CASE)
	}
#undef REAL
}

#define BOOL_CASE(tag, ctype, number)                                                              \
	case tag:                                                                                  \
		for (int64_t k = 0; k < n; k++)                                                    \
			out[k] = (double)number(((const ctype *)in)[k]) != 0;                      \
		break;

static void to_bool(enum dataset_type type, const void *in, int64_t n, unsigned char *out)
{
	switch (type) {
		EACH_TYPE(BOOL_CASE)
	}
}

/* Element i as a whole number: 0, or 1 when it is none that fits (*out is the nearest). */
static int whole(enum dataset_type type, const void *in, int64_t i, int64_t *out)
{
	double v;
	switch (type) {
	case DATASET_F16:
		v = dataset_half(((const uint16_t *)in)[i]);
		break;
	case DATASET_F32:
		v = (double)((const float *)in)[i];
		break;
	case DATASET_F64:
		v = ((const double *)in)[i];
		break;
	case DATASET_U64: {
		uint64_t u = ((const uint64_t *)in)[i];
		*out = u > INT64_MAX ? INT64_MAX : (int64_t)u;
		return u > INT64_MAX;
	}
#define WHOLE_CASE(tag, ctype)                                                                     \
	case tag:                                                                                  \
		*out = ((const ctype *)in)[i];                                                     \
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
		*out = ((const uint8_t *)in)[i] != 0;
		return 0;
	}
	if (!(v >= -0x1p63 && v < 0x1p63)) { /* not a number lands here, too */
		*out = v < 0 ? INT64_MIN : INT64_MAX;
		return 1;
	}
	*out = (int64_t)v;
	return (double)*out < v || (double)*out > v;
}

/* --- Rows --- */

/* How many numbers of the block are whole ones. */
static int64_t to_i64(enum dataset_type type, const void *in, int64_t n, int64_t *out)
{
	for (int64_t k = 0; k < n; k++)
		if (whole(type, in, k, &out[k]))
			return k;
	return n;
}

/* The n rows from index[0], which follow each other: *done of them. */
static int read_block(const struct dataset *d, const int64_t *index, int64_t n, enum dataset_as as,
	const struct dataset_map *map, unsigned char *out, int64_t *done, char message[256])
{
	const int64_t numbers = n * d->row;
	*done = 0;
	if (d->kind->read(d, index[0], n, d->scratch, message)) {
		if (n == 1)
			return 1;
		/* which one it is */
		return read_block(d, index, 1, as, map, out, done, message);
	}
	*done = n;
	if (as == DATASET_AS_F32) {
		to_f32(d->type, d->scratch, numbers, map, (float *)(void *)out);
	} else if (as == DATASET_AS_F64) {
		to_f64(d->type, d->scratch, numbers, map, (double *)(void *)out);
	} else if (as == DATASET_AS_BOOL) {
		to_bool(d->type, d->scratch, numbers, out);
	} else {
		const int64_t good = to_i64(d->type, d->scratch, numbers, (int64_t *)(void *)out);
		if (good == numbers)
			return 0;
		*done = good / d->row;
		return dataset_bad(message, d->path,
			"sample %lld holds a value that is no whole number of 64 bits",
			(long long)index[*done]);
	}
	return 0;
}

int dataset_read(const struct dataset *d, const int64_t *index, int64_t n, enum dataset_as as,
	const struct dataset_map *map, void *out, int64_t *done, char message[256])
{
	static const unsigned char width[] = {[DATASET_AS_F32] = 4,
		[DATASET_AS_F64] = 8,
		[DATASET_AS_I64] = 8,
		[DATASET_AS_BOOL] = 1};
	const int64_t most = block_rows(d);
	unsigned char *at = out;
	for (*done = 0; *done < n;) {
		int64_t run = 1, got;
		while (*done + run < n && run < most && index[*done + run] == index[*done] + run)
			run++;
		const int rc = read_block(d, index + *done, run, as, map, at, &got, message);
		*done += got;
		if (rc)
			return 1;
		at += (size_t)(got * d->row) * width[as];
	}
	return 0;
}

int dataset_outside(const struct dataset *d, int64_t low, int64_t high, int64_t except,
	int64_t *where, int64_t *value, char message[256])
{
	const int64_t samples = dataset_samples(d), most = block_rows(d);
	for (int64_t first = 0; first < samples; first += most) {
		const int64_t n = samples - first < most ? samples - first : most;
		if (d->kind->read(d, first, n, d->scratch, message))
			return 1;
		for (int64_t k = 0; k < n * d->row; k++) {
			const int odd = whole(d->type, d->scratch, k, value);
			if (odd || ((*value < low || *value > high) && *value != except)) {
				*where = first + k / d->row;
				return 0;
			}
		}
	}
	*where = -1;
	return 0;
}
