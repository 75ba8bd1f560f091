/* Protocol buffers' wire format (https://protobuf.dev/programming-guides/encoding) and the messages
 * of onnx.proto, by field number: the tensors that come with ONNX's node tests, and what a model's
 * operators, inputs and outputs are called. Models themselves are read by import/. */
#include "tests/ops/onnx_read.h"

#include <math.h>
#include <string.h>

struct bytes {
	const unsigned char *p, *end;
};
struct field {
	int number, wire;
	uint64_t value;    /* wires 0, 1, 5 */
	struct bytes body; /* wire 2 */
};

static uint64_t read_varint(struct bytes *b)
{
	uint64_t v = 0;
	for (int shift = 0; b->p < b->end && shift < 64; shift += 7) {
		unsigned char c = *b->p++;
		v |= (uint64_t)(c & 127) << shift;
		if (c < 128)
			break;
	}
	return v;
}

static uint64_t read_fixed(struct bytes *b, int n)
{
	uint64_t v = 0;
	for (int i = 0; i < n && b->p < b->end; i++)
		v |= (uint64_t)*b->p++ << (8 * i);
	return v;
}

static bool next(struct bytes *b, struct field *f)
{
	if (b->p >= b->end)
		return false;
	uint64_t key = read_varint(b), len;
	*f = (struct field){.number = (int)(key >> 3), .wire = (int)(key & 7)};
	switch (f->wire) {
	case 0:
		f->value = read_varint(b);
		return true;
	case 1:
		f->value = read_fixed(b, 8);
		return true;
	case 5:
		f->value = read_fixed(b, 4);
		return true;
	case 2:
		len = read_varint(b);
		if (len > (uint64_t)(b->end - b->p))
			return false;
		f->body = (struct bytes){b->p, b->p + len};
		b->p += len;
		return true;
	default:
		return false;
	}
}

static int count(struct bytes b, int number)
{
	struct field f;
	int n = 0;
	while (next(&b, &f))
		n += f.number == number;
	return n;
}

static const char *string(struct arena *a, struct bytes b)
{
	return arena_strndup(a, (const char *)b.p, (size_t)(b.end - b.p));
}

/* --- Numbers --- */

static double as_float(uint64_t bits)
{
	uint32_t low = (uint32_t)bits;
	float x;
	memcpy(&x, &low, sizeof x);
	return (double)x;
}

static double as_double(uint64_t bits)
{
	double x;
	memcpy(&x, &bits, sizeof x);
	return x;
}

/* IEEE 754 half precision. */
static double as_half(uint64_t bits)
{
	int exponent = (int)(bits >> 10 & 31);
	double fraction = (double)(bits & 1023) / 1024;
	double x = exponent == 31 ? (fraction != 0 ? NAN : INFINITY)
		   : exponent     ? ldexp(1 + fraction, exponent - 15)
				  : ldexp(fraction, -14);
	return bits >> 15 & 1 ? -x : x;
}

/* TensorProto.DataType: how wide an element is, the field that holds it when the bytes do not
 * (float, int32, int64, double, uint64 data), and its wire type there. */
static const struct element_type {
	int width, field, wire;
	enum dtype dtype;
	const char *name;
} element_types[] = {[1] = {4, 4, 5, DT_F64, "float32"},
	[2] = {1, 5, 0, DT_I64, "uint8"},
	[3] = {1, 5, 0, DT_I64, "int8"},
	[4] = {2, 5, 0, DT_I64, "uint16"},
	[5] = {2, 5, 0, DT_I64, "int16"},
	[6] = {4, 5, 0, DT_I64, "int32"},
	[7] = {8, 7, 0, DT_I64, "int64"},
	[9] = {1, 5, 0, DT_BOOL, "bool"},
	[10] = {2, 5, 0, DT_F64, "float16"},
	[11] = {8, 10, 1, DT_F64, "float64"},
	[12] = {4, 11, 0, DT_I64, "uint32"},
	[13] = {8, 11, 0, DT_I64, "uint64"},
	[16] = {2, 5, 0, DT_F64, "bfloat16"},
	[21] = {1, 5, 0, DT_I64, "uint4"}, /* two in each */
	[22] = {1, 5, 0, DT_I64, "int4"}};

enum { UINT16 = 4, BFLOAT16 = 16, UINT4 = 21, INT4 = 22 };

static const struct element_type *type_of(int type)
{
	const int n = (int)(sizeof element_types / sizeof *element_types);
	return type > 0 && type < n && element_types[type].width ? &element_types[type] : NULL;
}

static double real_of(int type, uint64_t bits)
{
	switch (type) {
	case 10:
		return as_half(bits);
	case 11:
		return as_double(bits);
	case 16:
		return as_float((bits & 0xffff) << 16);
	default:
		return as_float(bits);
	}
}

/* Sign-extended where the type has a sign; uint64 as its bits. */
static int64_t whole_of(int type, uint64_t bits)
{
	switch (type) {
	case 2:
	case 9:
		return (uint8_t)bits;
	case 3:
		return (int8_t)(uint8_t)bits;
	case 4:
		return (uint16_t)bits;
	case 5:
		return (int16_t)(uint16_t)bits;
	case 6:
		return (int32_t)(uint32_t)bits;
	case 12:
		return (uint32_t)bits;
	case UINT4:
		return (int64_t)(bits & 15);
	case INT4:
		return (int64_t)((bits & 15) ^ 8) - 8;
	default:
		return (int64_t)bits;
	}
}

/* A repeated number: one field, or many packed into one. Appends to v (room for `max`). */
static int64_t numbers(const struct field *f, int wire, int64_t n, int64_t max, uint64_t *v)
{
	if (f->wire != 2) {
		if (n < max)
			v[n++] = f->value;
		return n;
	}
	struct bytes b = f->body;
	while (b.p < b.end && n < max)
		v[n++] = wire == 0 ? read_varint(&b) : read_fixed(&b, wire == 1 ? 8 : 4);
	return n;
}

/* --- Tensors --- */

/* The elements' bits into v (room for numel); false where their number is wrong. */
static bool read_bits(struct bytes b, const struct element_type *e, int64_t numel, uint64_t *v)
{
	struct field f;
	int64_t n = 0;
	while (next(&b, &f)) {
		if (f.number == 9 && f.wire == 2 && f.body.end > f.body.p) {
			struct bytes raw = f.body;
			if (raw.end - raw.p != numel * e->width)
				return false;
			for (n = 0; n < numel; n++)
				v[n] = read_fixed(&raw, e->width);
		} else if (f.number == e->field)
			n = numbers(&f, e->wire, n, numel, v);
	}
	return n == numel;
}

static bool read_values(struct arena *a, struct bytes b, int type, struct onnx_tensor *t)
{
	const struct element_type *e = type_of(type);
	const bool half = type == UINT4 || type == INT4;
	uint64_t *v = ARENA_ARRAY(a, uint64_t, t->numel);
	t->real = ARENA_ARRAY(a, double, t->numel);
	t->whole = ARENA_ARRAY(a, int64_t, t->numel);
	if (!v || !t->real || !t->whole ||
		!read_bits(b, e, half ? (t->numel + 1) / 2 : t->numel, v))
		return false;
	for (int64_t i = t->numel - 1; half && i >= 0; i--)
		v[i] = v[i / 2] >> i % 2 * 4;
	for (int64_t i = 0; i < t->numel; i++)
		if (e->dtype == DT_F64)
			t->real[i] = real_of(type, v[i]);
		else
			t->whole[i] = whole_of(type, v[i]);
	return true;
}

static bool read_tensor(struct arena *a, struct bytes b, int declared, struct onnx_tensor *t)
{
	struct field f;
	struct bytes all = b;
	uint64_t dim[RANK_MAX];
	int type = 0;
	*t = (struct onnx_tensor){.numel = 1};
	while (next(&b, &f)) {
		if (f.number == 1)
			t->rank = (int)numbers(&f, 0, t->rank, RANK_MAX, dim);
		if (f.number == 2 && f.wire == 0 && f.value < 1000)
			type = (int)f.value;
	}
	if (declared == BFLOAT16 && type == UINT16)
		type = declared;
	const struct element_type *e = type_of(type);
	if (!e)
		return false;
	for (int i = 0; i < t->rank; i++) {
		t->dim[i] = (int64_t)dim[i];
		if (!size_mul(t->numel, t->dim[i], &t->numel) || t->numel > 1 << 26)
			return false;
	}
	t->type = e->name;
	t->dtype = e->dtype;
	return read_values(a, all, type, t);
}

/* --- Models --- */

static const char *read_text(struct arena *a, struct bytes b, int number)
{
	struct field f;
	while (next(&b, &f))
		if (f.number == number && f.wire == 2)
			return string(a, f.body);
	return "";
}

/* The bytes of the first field `number`; empty where there is none. */
static struct bytes inside(struct bytes b, int number)
{
	struct field f;
	while (next(&b, &f))
		if (f.number == number && f.wire == 2)
			return f.body;
	return (struct bytes){NULL, NULL};
}

/* ValueInfoProto.type.tensor_type.elem_type */
static int read_type(struct bytes b)
{
	struct bytes tensor = inside(inside(b, 2), 1);
	struct field f;
	while (next(&tensor, &f))
		if (f.number == 1 && f.wire == 0)
			return (int)(f.value & 0xff);
	return 0;
}

static const char *read_operator(struct arena *a, struct bytes b)
{
	const char *op = read_text(a, b, 4), *domain = read_text(a, b, 7);
	return domain && *domain && strcmp(domain, "ai.onnx") != 0
		       ? arena_printf(a, "%s.%s", domain, op)
		       : op;
}

static bool read_graph(struct arena *a, struct bytes b, struct onnx_model *m)
{
	struct field f;
	m->op = ARENA_ARRAY(a, const char *, count(b, 1));
	m->initializer = ARENA_ARRAY(a, const char *, count(b, 5));
	m->in = ARENA_ARRAY(a, const char *, count(b, 11));
	m->out = ARENA_ARRAY(a, const char *, count(b, 12));
	m->in_type = ARENA_ARRAY(a, int, count(b, 11));
	m->out_type = ARENA_ARRAY(a, int, count(b, 12));
	if (!m->op || !m->initializer || !m->in || !m->out || !m->in_type || !m->out_type)
		return false;
	while (next(&b, &f)) {
		if (f.number == 1)
			m->op[m->nop++] = read_operator(a, f.body);
		if (f.number == 5)
			m->initializer[m->ninitializer++] = read_text(a, f.body, 8);
		if (f.number == 11) {
			m->in_type[m->nin] = read_type(f.body);
			m->in[m->nin++] = read_text(a, f.body, 1);
		}
		if (f.number == 12) {
			m->out_type[m->nout] = read_type(f.body);
			m->out[m->nout++] = read_text(a, f.body, 1);
		}
	}
	return true;
}

static bool read_file(struct arena *a, const char *path, struct bytes *out)
{
	struct diag d = {0};
	char *data;
	size_t len;
	if (file_read(a, path, &data, &len, &d) != ST_OK)
		return false;
	*out = (struct bytes){(unsigned char *)data, (unsigned char *)data + len};
	return true;
}

bool onnx_read_model(struct arena *a, const char *path, struct onnx_model *out)
{
	struct bytes b;
	struct field f;
	bool graph = false;
	*out = (struct onnx_model){0};
	if (!read_file(a, path, &b))
		return false;
	while (next(&b, &f))
		if (f.number == 7)
			graph = read_graph(a, f.body, out);
	return graph;
}

bool onnx_read_tensor(struct arena *a, const char *path, int declared, struct onnx_tensor *out)
{
	struct bytes b;
	return read_file(a, path, &b) && read_tensor(a, b, declared, out);
}
