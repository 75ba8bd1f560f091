/* Protocol buffers' wire format (https://protobuf.dev/programming-guides/encoding) and the messages
 * of onnx.proto, by field number. */
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

/* A repeated number: one field, or many packed into one. Appends to v (room for `max`). */
static int numbers(const struct field *f, int wire, int n, int max, uint64_t *v)
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

/* Element i of a type from its little-endian bytes. */
static double element(int type, struct bytes raw)
{
	static const int size[] = {[1] = 4, [6] = 4, [7] = 8, [9] = 1, [10] = 2, [11] = 8};
	uint64_t bits = read_fixed(&raw, size[type]);
	switch (type) {
	case 1:
		return as_float(bits);
	case 10:
		return as_half(bits);
	case 11:
		return as_double(bits);
	case 6:
		return (double)(int32_t)(uint32_t)bits;
	default:
		return (double)(int64_t)bits;
	}
}

static bool known_type(int type)
{
	return type == 1 || type == 6 || type == 7 || type == 9 || type == 10 || type == 11;
}

static bool read_values(struct arena *a, struct bytes b, int type, struct onnx_tensor *t)
{
	struct field f;
	int n = 0, size = type == 7 || type == 11 ? 8 : type == 9 ? 1 : type == 10 ? 2 : 4;
	uint64_t *v = arena_alloc(a, (size_t)t->numel, sizeof *v);
	t->v = ARENA_ARRAY(a, double, t->numel);
	if (!v || !t->v)
		return false;
	while (next(&b, &f)) {
		if (f.number == 9 && f.body.end - f.body.p >= t->numel * size) {
			for (int64_t i = 0; i < t->numel; i++)
				t->v[i] = element(
					type, (struct bytes){f.body.p + i * size, f.body.end});
			return true;
		}
		if (f.number == 4 || f.number == 5 || f.number == 7 || f.number == 10)
			n = numbers(&f,
				f.number == 4    ? 5
				: f.number == 10 ? 1
						 : 0,
				n, (int)t->numel, v);
	}
	for (int64_t i = 0; i < t->numel; i++)
		t->v[i] = type == 1    ? as_float(v[i])
			  : type == 10 ? as_half(v[i])
			  : type == 11 ? as_double(v[i])
				       : (double)(int64_t)v[i];
	return n == t->numel;
}

static bool read_tensor(struct arena *a, struct bytes b, struct onnx_tensor *t)
{
	struct field f;
	struct bytes all = b;
	uint64_t dim[RANK_MAX];
	int type = 0;
	*t = (struct onnx_tensor){.numel = 1, .name = ""};
	while (next(&b, &f)) {
		if (f.number == 1)
			t->rank = numbers(&f, 0, t->rank, RANK_MAX, dim);
		if (f.number == 2)
			type = (int)f.value;
		if (f.number == 8)
			t->name = string(a, f.body);
	}
	for (int i = 0; i < t->rank; i++) {
		t->dim[i] = (int64_t)dim[i];
		if (!size_mul(t->numel, t->dim[i], &t->numel) || t->numel > 1 << 26)
			return false;
	}
	t->supported = known_type(type);
	t->type = type == 9 ? DT_BOOL : type == 6 || type == 7 ? DT_I64 : DT_F64;
	return !t->supported || read_values(a, all, type, t);
}

static bool read_lists(struct arena *a, struct bytes b, struct attr *attr)
{
	struct field f;
	int max = (int)(b.end - b.p), ni = 0, nf = 0;
	uint64_t *v = ARENA_ARRAY(a, uint64_t, max);
	uint64_t *w = ARENA_ARRAY(a, uint64_t, max);
	int64_t *ints = ARENA_ARRAY(a, int64_t, max);
	double *floats = ARENA_ARRAY(a, double, max);
	if (!v || !w || !ints || !floats)
		return false;
	while (next(&b, &f)) {
		if (f.number == 8)
			ni = numbers(&f, 0, ni, max, v);
		if (f.number == 7)
			nf = numbers(&f, 5, nf, max, w);
	}
	for (int i = 0; i < ni; i++)
		ints[i] = (int64_t)v[i];
	for (int i = 0; i < nf; i++)
		floats[i] = as_float(w[i]);
	attr->n = attr->kind == ATTR_FLOATS ? nf : ni;
	attr->ints = ints;
	attr->floats = floats;
	return true;
}

/* false: of a kind that is not read. */
static bool read_attr(struct arena *a, struct bytes b, struct attr *attr, struct onnx_tensor **t)
{
	struct field f;
	struct bytes all = b;
	uint64_t type = 0;
	while (next(&b, &f)) {
		if (f.number == 1)
			attr->name = string(a, f.body);
		if (f.number == 2)
			attr->f = as_float(f.value);
		if (f.number == 3)
			attr->i = (int64_t)f.value;
		if (f.number == 4)
			attr->s = string(a, f.body);
		if (f.number == 5) {
			*t = ARENA_NEW(a, struct onnx_tensor);
			if (!*t || !read_tensor(a, f.body, *t) || !(*t)->supported)
				return false;
		}
		if (f.number == 20)
			type = f.value;
	}
	static const int kind[] = {[1] = ATTR_FLOAT,
		[2] = ATTR_INT,
		[3] = ATTR_STRING,
		[4] = ATTR_TENSOR,
		[6] = ATTR_FLOATS,
		[7] = ATTR_INTS};
	if (type == 0 || type == 5 || type > 7)
		return false;
	memcpy(&attr->kind, &kind[type], sizeof attr->kind);
	return read_lists(a, all, attr);
}

static bool read_node(struct arena *a, struct bytes b, struct onnx_node *n)
{
	struct field f;
	*n = (struct onnx_node){.op = "", .domain = "", .supported = true};
	n->in = ARENA_ARRAY(a, const char *, count(b, 1));
	n->out = ARENA_ARRAY(a, const char *, count(b, 2));
	n->attr = ARENA_ARRAY(a, struct attr, count(b, 5));
	n->tensor = ARENA_ARRAY(a, struct onnx_tensor *, count(b, 5));
	if (!n->in || !n->out || !n->attr || !n->tensor)
		return false;
	while (next(&b, &f)) {
		if (f.number == 1)
			n->in[n->nin++] = string(a, f.body);
		if (f.number == 2)
			n->out[n->nout++] = string(a, f.body);
		if (f.number == 4)
			n->op = string(a, f.body);
		if (f.number == 7)
			n->domain = string(a, f.body);
		if (f.number == 5) {
			int k = n->nattr++;
			n->supported &= read_attr(a, f.body, &n->attr[k], &n->tensor[k]);
		}
	}
	return true;
}

static const char *read_name(struct arena *a, struct bytes b)
{
	struct field f;
	while (next(&b, &f))
		if (f.number == 1)
			return string(a, f.body);
	return "";
}

static bool read_graph(struct arena *a, struct bytes b, struct onnx_model *m)
{
	struct field f;
	m->node = ARENA_ARRAY(a, struct onnx_node, count(b, 1));
	m->init = ARENA_ARRAY(a, struct onnx_tensor, count(b, 5));
	m->in = ARENA_ARRAY(a, const char *, count(b, 11));
	m->out = ARENA_ARRAY(a, const char *, count(b, 12));
	if (!m->node || !m->init || !m->in || !m->out)
		return false;
	while (next(&b, &f)) {
		if (f.number == 1 && !read_node(a, f.body, &m->node[m->nnode++]))
			return false;
		if (f.number == 5 && !read_tensor(a, f.body, &m->init[m->ninit++]))
			return false;
		if (f.number == 11)
			m->in[m->nin++] = read_name(a, f.body);
		if (f.number == 12)
			m->out[m->nout++] = read_name(a, f.body);
	}
	return true;
}

/* The version of ONNX's own operators, 0 for another domain. */
static int read_opset(struct arena *a, struct bytes b)
{
	struct field f;
	int version = 0;
	bool own = true;
	while (next(&b, &f)) {
		if (f.number == 1)
			own = f.body.p == f.body.end || !strcmp(string(a, f.body), "ai.onnx");
		if (f.number == 2)
			version = (int)f.value;
	}
	return own ? version : 0;
}

bool onnx_read_model(struct arena *a, const char *path, struct onnx_model *out)
{
	struct diag d = {0};
	struct field f;
	char *data;
	size_t len;
	bool graph = false;
	*out = (struct onnx_model){0};
	if (file_read(a, path, &data, &len, &d) != ST_OK)
		return false;
	struct bytes b = {(unsigned char *)data, (unsigned char *)data + len};
	while (next(&b, &f)) {
		if (f.number == 7)
			graph = read_graph(a, f.body, out);
		int version = f.number == 8 ? read_opset(a, f.body) : 0;
		out->opset = version ? version : out->opset;
	}
	return graph;
}

bool onnx_read_tensor(struct arena *a, const char *path, struct onnx_tensor *out)
{
	struct diag d = {0};
	char *data;
	size_t len;
	if (file_read(a, path, &data, &len, &d) != ST_OK)
		return false;
	return read_tensor(
		a, (struct bytes){(unsigned char *)data, (unsigned char *)data + len}, out);
}
