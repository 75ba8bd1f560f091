/* TensorProto: shapes, types, values; inline or in a file beside the model. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "import/import_parts.h"

typedef Onnx__TensorProto Tensor;

#define TYPE(x) ONNX__TENSOR_PROTO__DATA_TYPE__##x

enum status tensor_bad(
	const struct model *m, const Tensor *t, const char *hint, struct diag *d, const char *what)
{
	const struct where w = {.file = m->path, .node = text_of(t->name), .op = "tensor"};
	return diag_fail(d, ST_INVALID, &w, hint, "%s", what);
}

/* Newer than onnx.proto; two a byte, the first in the lower half. */
enum { UINT4 = 21, INT4 = 22 };

static bool is_half_byte(int32_t type)
{
	return type == UINT4 || type == INT4;
}

int element_width(int32_t type)
{
	switch (type) {
	case TYPE(BOOL):
	case TYPE(INT8):
	case TYPE(UINT8):
		return 1;
	case TYPE(FLOAT16):
	case TYPE(BFLOAT16):
	case TYPE(INT16):
	case TYPE(UINT16):
		return 2;
	case TYPE(FLOAT):
	case TYPE(INT32):
	case TYPE(UINT32):
		return 4;
	case TYPE(DOUBLE):
	case TYPE(INT64):
	case TYPE(UINT64):
		return 8;
	default:
		return 0;
	}
}

int64_t element_bytes(int32_t onnx, int64_t numel)
{
	return is_half_byte(onnx) ? (numel + 1) / 2 : numel * element_width(onnx);
}

const char *element_name(int32_t onnx)
{
	/* by number, those of onnx.proto and the newer ones */
	static const char *const name[] = {"undefined", "float32", "uint8", "int8", "uint16",
		"int16", "int32", "int64", "string", "bool", "float16", "float64", "uint32",
		"uint64", "complex64", "complex128", "bfloat16", "float8e4m3fn", "float8e4m3fnuz",
		"float8e5m2", "float8e5m2fnuz", "uint4", "int4", "float4e2m1"};
	return onnx >= 0 && onnx < (int)(sizeof name / sizeof *name) ? name[onnx] : "unknown";
}

bool element_type(int32_t onnx, enum dtype real, enum dtype *out)
{
	switch (onnx) {
	case TYPE(FLOAT):
	case TYPE(DOUBLE):
	case TYPE(FLOAT16):
	case TYPE(BFLOAT16):
		*out = real;
		return true;
	case TYPE(BOOL):
		*out = DT_BOOL;
		return true;
	default:
		*out = DT_I64;
		return element_width(onnx) != 0 || is_half_byte(onnx);
	}
}

enum status tensor_shape(const struct model *m, const Tensor *t, int *rank, int64_t dim[RANK_MAX],
	int64_t *numel, struct diag *d)
{
	const struct where w = {.file = m->path, .node = text_of(t->name), .op = "tensor"};
	if (t->n_dims > RANK_MAX)
		return diag_fail(
			d, ST_INVALID, &w, "stint handles up to 8 axes", "has %zu axes", t->n_dims);
	*numel = 1;
	*rank = (int)t->n_dims;
	for (int i = 0; i < *rank; i++) {
		dim[i] = t->dims[i];
		if (dim[i] < 0 || dim[i] > INT32_MAX)
			return diag_fail(d, ST_INVALID, &w, "sizes go from 0 to 2147483647",
				"axis %d has the size %" PRId64, i, dim[i]);
		if (!size_mul(*numel, dim[i], numel) || *numel > INT64_MAX / 8)
			return diag_fail(d, ST_INVALID, &w, NULL,
				"its element count overflows at axis %d (size %" PRId64 ")", i,
				dim[i]);
	}
	return ST_OK;
}

enum status tensor_raw(const struct model *m, const Tensor *t, int64_t numel,
	const unsigned char **raw, struct diag *d)
{
	const int64_t bytes = element_bytes(t->data_type, numel);
	*raw = NULL;
	if (tensor_is_external(t))
		return external_raw(m, t, bytes, raw, d);
	if (!t->has_raw_data || (t->raw_data.len == 0 && bytes > 0))
		return ST_OK; /* some writers set an empty one beside the typed field */
	if (t->raw_data.len != (size_t)bytes)
		return diag_fail(d, ST_INVALID,
			&(struct where){.file = m->path, .node = text_of(t->name), .op = "tensor"},
			"the file is damaged",
			"has %zu bytes of data, but its shape needs %" PRId64, t->raw_data.len,
			bytes);
	*raw = t->raw_data.len ? t->raw_data.data : (const unsigned char *)"";
	return ST_OK;
}

/* --- Values --- */

/* IEEE half precision. */
static double half_value(uint16_t h)
{
	int exponent = h >> 10 & 31;
	double fraction = h & 1023;
	double v = exponent == 0    ? ldexp(fraction, -24)
		   : exponent == 31 ? (fraction != 0 ? NAN : INFINITY)
				    : ldexp(1024 + fraction, exponent - 25);
	return h & 0x8000 ? -v : v;
}

static double bfloat_value(uint16_t h)
{
	uint32_t bits = (uint32_t)h << 16;
	float f;
	memcpy(&f, &bits, sizeof f);
	return (double)f;
}

static uint64_t little_endian(const unsigned char *p, int width)
{
	uint64_t v = 0;
	for (int i = width - 1; i >= 0; i--)
		v = v << 8 | p[i];
	return v;
}

static double real_from_bits(int32_t type, uint64_t bits)
{
	uint32_t low = (uint32_t)bits;
	float f;
	double v;
	switch (type) {
	case TYPE(FLOAT16):
		return half_value((uint16_t)bits);
	case TYPE(BFLOAT16):
		return bfloat_value((uint16_t)bits);
	case TYPE(DOUBLE):
		memcpy(&v, &bits, sizeof v);
		return v;
	default:
		memcpy(&f, &low, sizeof f);
		return (double)f;
	}
}

static int64_t int_from_bits(int32_t type, uint64_t bits)
{
	switch (type) {
	case TYPE(INT8):
		return (int8_t)bits;
	case TYPE(INT16):
		return (int16_t)bits;
	case TYPE(INT32):
		return (int32_t)bits;
	case INT4:
		return (int64_t)((bits & 15) ^ 8) - 8;
	case UINT4:
		return (int64_t)(bits & 15);
	default:
		return (int64_t)bits; /* the unsigned ones of 64 bits wrap */
	}
}

/* How many values the typed field that belongs to the type has. */
static size_t typed_count(const Tensor *t)
{
	switch (t->data_type) {
	case TYPE(FLOAT):
		return t->n_float_data;
	case TYPE(DOUBLE):
		return t->n_double_data;
	case TYPE(INT64):
		return t->n_int64_data;
	case TYPE(UINT32):
	case TYPE(UINT64):
		return t->n_uint64_data;
	default:
		return t->n_int32_data;
	}
}

/* Value i of that field, as bits. */
static uint64_t typed_bits(const Tensor *t, int64_t i)
{
	uint32_t low;
	uint64_t bits;
	switch (t->data_type) {
	case TYPE(FLOAT):
		memcpy(&low, &t->float_data[i], sizeof low);
		return low;
	case TYPE(DOUBLE):
		memcpy(&bits, &t->double_data[i], sizeof bits);
		return bits;
	case TYPE(INT64):
		return (uint64_t)t->int64_data[i];
	case TYPE(UINT32):
	case TYPE(UINT64):
		return t->uint64_data[i];
	default:
		return (uint64_t)(int64_t)t->int32_data[i];
	}
}

static bool is_little_endian(void)
{
	const uint16_t probe = 1;
	return *(const unsigned char *)&probe == 1;
}

/* The file's bytes are our values already: on little-endian machines, of the same type. */
static bool same_bytes(const Tensor *t, enum dtype type, const unsigned char *raw)
{
	return raw && is_little_endian() && (uintptr_t)raw % (size_t)dtype_bytes(type) == 0 &&
	       ((type == DT_F32 && t->data_type == TYPE(FLOAT)) ||
		       (type == DT_F64 && t->data_type == TYPE(DOUBLE)) ||
		       (type == DT_I64 && t->data_type == TYPE(INT64)));
}

static void store(
	const Tensor *t, const unsigned char *raw, int64_t numel, enum dtype type, void *data)
{
	int width = element_width(t->data_type);
	const bool half = is_half_byte(t->data_type);
	for (int64_t i = 0; i < numel; i++) {
		uint64_t bits = half  ? (raw ? raw[i / 2] : typed_bits(t, i / 2)) >> i % 2 * 4
				: raw ? little_endian(raw + i * width, width)
				      : typed_bits(t, i);
		if (type == DT_I64)
			((int64_t *)data)[i] = int_from_bits(t->data_type, bits);
		else
			value_set(type, data, i,
				type == DT_BOOL ? (double)(bits != 0)
						: real_from_bits(t->data_type, bits));
	}
}

enum status tensor_values(const struct model *m, const Tensor *t, enum dtype real, enum dtype *type,
	int *rank, int64_t dim[RANK_MAX], const void **data, struct diag *d)
{
	int64_t numel;
	const unsigned char *raw;
	const struct where w = {.file = m->path, .node = text_of(t->name), .op = "tensor"};
	if (!element_type(t->data_type, real, type))
		return diag_fail(d, ST_INVALID, &w, NULL,
			"has elements of type %s, which is not supported",
			element_name(t->data_type));
	if (t->segment)
		return tensor_bad(m, t, NULL, d, "is stored in segments, which is not supported");
	TRY(tensor_shape(m, t, rank, dim, &numel, d));
	TRY(tensor_raw(m, t, numel, &raw, d));
	/* before memory is taken for it: are the values there? */
	const int64_t count = is_half_byte(t->data_type) ? (numel + 1) / 2 : numel;
	if (!raw && typed_count(t) != (size_t)count)
		return diag_fail(d, ST_INVALID, &w,
			"the file is damaged, or its data lies elsewhere",
			"has %zu values, but its shape needs %" PRId64, typed_count(t), numel);
	*data = raw;
	if (same_bytes(t, *type, raw))
		return ST_OK;
	void *copy = arena_alloc(m->arena, (size_t)numel, (size_t)dtype_bytes(*type));
	if (!copy)
		return diag_nomem(d);
	store(t, raw, numel, *type, copy);
	*data = copy;
	return ST_OK;
}
