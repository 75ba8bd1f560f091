#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <ftw.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/import/model.h"

/* --- A few operators --- */

static double relu(const double *in, const double *option)
{
	(void)option;
	return in[0] > 0 ? in[0] : 0;
}

static double add(const double *in, const double *option)
{
	(void)option;
	return in[0] + in[1];
}

static enum status infer_same(struct graph *g, struct node *n)
{
	for (int k = 0; k < n->nout; k++) {
		n->out[k] = graph_tensor(g, "", n->in[0]->dtype, n->in[0]->rank, n->in[0]->dim);
		if (!n->out[k])
			return g->failed;
	}
	return ST_OK;
}

static enum status infer_constant(struct graph *g, struct node *n)
{
	const struct attr *a = node_attr(n, "value");
	if (!a || a->kind != ATTR_TENSOR)
		return node_fail(g, n, NULL, "has no tensor");
	n->out[0] = graph_constant(g, "", a->t->dtype, a->t->rank, a->t->dim, a->t->data);
	return n->out[0] ? ST_OK : g->failed;
}

static const struct op_def family[] = {
	{.name = "Relu",
		.since = 6,
		.min_in = 1,
		.max_in = 1,
		.traits = OP_POINTWISE,
		.expr = "a > 0 ? a : 0",
		.ref = relu},
	{.name = "Add",
		.since = 7,
		.min_in = 2,
		.max_in = 2,
		.traits = OP_POINTWISE,
		.expr = "a + b",
		.ref = add},
	{.name = "Split",
		.since = 13,
		.min_in = 1,
		.max_in = 3,
		.min_out = 1,
		.max_out = 3,
		.infer = infer_same},
	{.name = "Constant", .since = 1, .infer = infer_constant},
	{.name = "com.example.Same", .since = 2, .min_in = 1, .max_in = 1, .infer = infer_same},
	{.name = "stint.own", .min_in = 1, .max_in = 1, .infer = infer_same},
	{.name = NULL},
};

/* --- Setup --- */

static void put(void *user, enum diag_level level, const struct where *w, const char *message,
	const char *hint)
{
	struct model_test *t = user;
	(void)level;
	text_add(&t->said, "%s: %s (%s): %s | %s\n", w->file ? w->file : "", w->node ? w->node : "",
		w->op ? w->op : "", message, hint ? hint : "");
}

int model_setup(void **state)
{
	struct model_test *t = calloc(1, sizeof *t);
	if (!t)
		return -1;
	t->arena = arena_new();
	strcpy(t->folder, "import_test_XXXXXX");
	if (!t->arena || !mkdtemp(t->folder))
		return -1;
	t->diag = (struct diag){.put = put, .user = t};
	onnx__model_proto__init(&t->model);
	onnx__graph_proto__init(&t->graph);
	t->model.graph = &t->graph;
	t->graph.name = "test";
	t->at = &t->graph;
	Onnx__OperatorSetIdProto *opset = ARENA_NEW(t->arena, Onnx__OperatorSetIdProto);
	onnx__operator_set_id_proto__init(opset);
	opset->has_version = 1;
	opset->version = 17;
	t->model.opset_import = ARENA_ARRAY(t->arena, Onnx__OperatorSetIdProto *, 4);
	t->model.opset_import[t->model.n_opset_import++] = opset;
	*state = t;
	return 0;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *f)
{
	(void)st, (void)type, (void)f;
	return remove(path);
}

int model_teardown(void **state)
{
	struct model_test *t = *state;
	nftw(t->folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
	text_free(&t->said);
	arena_free(t->arena);
	free(t);
	return 0;
}

/* --- Making a model --- */

/* One more pointer in a repeated field. */
#define APPEND(t, message, field, item)                                                            \
	do {                                                                                       \
		size_t n_ = (message)->n_##field;                                                  \
		void *wider_ = arena_alloc((t)->arena, n_ + 1, sizeof(item));                      \
		assert_non_null(wider_);                                                           \
		if (n_)                                                                            \
			memcpy(wider_, (message)->field, n_ * sizeof(item));                       \
		(message)->field = wider_;                                                         \
		(message)->field[(message)->n_##field++] = (item);                                 \
	} while (0)

/* The next piece of a list with commas; false at its end. */
static bool piece(struct model_test *t, const char **s, char **out)
{
	if (!*s)
		return false;
	size_t n = strcspn(*s, ",");
	*out = arena_strndup(t->arena, *s, n);
	*s = (*s)[n] ? *s + n + 1 : NULL;
	return true;
}

static const char *list(const char *s)
{
	return *s ? s : NULL;
}

static Onnx__ValueInfoProto *value_info(struct model_test *t, const char *name)
{
	Onnx__ValueInfoProto *v = ARENA_NEW(t->arena, Onnx__ValueInfoProto);
	onnx__value_info_proto__init(v);
	v->name = arena_strdup(t->arena, name);
	return v;
}

void model_input(struct model_test *t, const char *name, int type, const char *shape)
{
	Onnx__ValueInfoProto *v = value_info(t, name);
	v->type = ARENA_NEW(t->arena, Onnx__TypeProto);
	onnx__type_proto__init(v->type);
	v->type->value_case = ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE;
	Onnx__TypeProto__Tensor *tensor = v->type->tensor_type = ARENA_NEW(
		t->arena, Onnx__TypeProto__Tensor);
	onnx__type_proto__tensor__init(tensor);
	tensor->has_elem_type = 1;
	tensor->elem_type = type;
	tensor->shape = ARENA_NEW(t->arena, Onnx__TensorShapeProto);
	onnx__tensor_shape_proto__init(tensor->shape);
	char *s;
	for (const char *p = list(shape); piece(t, &p, &s);) {
		Onnx__TensorShapeProto__Dimension *d = ARENA_NEW(
			t->arena, Onnx__TensorShapeProto__Dimension);
		onnx__tensor_shape_proto__dimension__init(d);
		char *end;
		long long number = strtoll(s, &end, 10);
		if (*s != '?' && *end == '\0') {
			d->value_case = ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE;
			d->dim_value = number;
		} else if (*s != '?') {
			d->value_case = ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM;
			d->dim_param = s;
		}
		APPEND(t, tensor->shape, dim, d);
	}
	APPEND(t, t->at, input, v);
}

void model_output(struct model_test *t, const char *name)
{
	Onnx__ValueInfoProto *v = value_info(t, name);
	APPEND(t, t->at, output, v);
}

Onnx__TensorProto *model_tensor(struct model_test *t, const char *name, int type, const char *shape)
{
	Onnx__TensorProto *x = ARENA_NEW(t->arena, Onnx__TensorProto);
	onnx__tensor_proto__init(x);
	x->name = arena_strdup(t->arena, name);
	x->has_data_type = 1;
	x->data_type = type;
	char *s;
	for (const char *p = list(shape); piece(t, &p, &s);) {
		int64_t dim = strtoll(s, NULL, 10);
		APPEND(t, x, dims, dim);
	}
	APPEND(t, t->at, initializer, x);
	return x;
}

void model_raw(Onnx__TensorProto *tensor, const void *data, size_t len)
{
	tensor->has_raw_data = 1;
	tensor->raw_data = (ProtobufCBinaryData){len, (uint8_t *)(uintptr_t)data};
}

Onnx__TensorProto *model_weights(struct model_test *t, const char *name, const char *shape)
{
	Onnx__TensorProto *x = model_tensor(t, name, TENSOR_TYPE(FLOAT), shape);
	size_t n = 1;
	for (size_t i = 0; i < x->n_dims; i++)
		n *= (size_t)x->dims[i];
	float *v = ARENA_ARRAY(t->arena, float, n);
	for (size_t i = 0; i < n; i++)
		v[i] = (float)i;
	model_raw(x, v, n * sizeof *v);
	return x;
}

static void external_entry(
	struct model_test *t, Onnx__TensorProto *tensor, const char *key, const char *value)
{
	if (!value)
		return;
	Onnx__StringStringEntryProto *e = ARENA_NEW(t->arena, Onnx__StringStringEntryProto);
	onnx__string_string_entry_proto__init(e);
	e->key = arena_strdup(t->arena, key);
	e->value = arena_strdup(t->arena, value);
	APPEND(t, tensor, external_data, e);
}

void model_external(struct model_test *t, Onnx__TensorProto *tensor, const char *location,
	const char *offset, const char *length)
{
	tensor->has_data_location = 1;
	tensor->data_location = ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL;
	tensor->has_raw_data = 0;
	external_entry(t, tensor, "location", location);
	external_entry(t, tensor, "offset", offset);
	external_entry(t, tensor, "length", length);
}

Onnx__NodeProto *model_node(struct model_test *t, const char *op, const char *name,
	const char *inputs, const char *outputs)
{
	Onnx__NodeProto *n = ARENA_NEW(t->arena, Onnx__NodeProto);
	onnx__node_proto__init(n);
	n->op_type = arena_strdup(t->arena, op);
	n->name = arena_strdup(t->arena, name);
	char *s;
	for (const char *p = list(inputs); piece(t, &p, &s);)
		APPEND(t, n, input, s);
	for (const char *p = list(outputs); piece(t, &p, &s);)
		APPEND(t, n, output, s);
	if (t->function)
		APPEND(t, t->function, node, n);
	else
		APPEND(t, t->at, node, n);
	return n;
}

Onnx__NodeProto *model_custom(struct model_test *t, const char *op, const char *name,
	const char *inputs, const char *outputs)
{
	Onnx__NodeProto *n = model_node(t, op, name, inputs, outputs);
	char *dot = strrchr(n->op_type, '.');
	*dot = '\0';
	n->domain = n->op_type;
	n->op_type = dot + 1;
	return n;
}

Onnx__AttributeProto *model_attribute(
	struct model_test *t, Onnx__NodeProto *node, const char *name, int type)
{
	Onnx__AttributeProto *a = ARENA_NEW(t->arena, Onnx__AttributeProto);
	onnx__attribute_proto__init(a);
	a->name = arena_strdup(t->arena, name);
	a->has_type = 1;
	a->type = (Onnx__AttributeProto__AttributeType)type;
	APPEND(t, node, attribute, a);
	return a;
}

void model_int(struct model_test *t, Onnx__NodeProto *node, const char *name, int64_t v)
{
	Onnx__AttributeProto *a = model_attribute(t, node, name, ATTRIBUTE_TYPE(INT));
	a->has_i = 1;
	a->i = v;
}

static int64_t *numbers(struct model_test *t, const char *text, size_t *n)
{
	int64_t *v = ARENA_ARRAY(t->arena, int64_t, strlen(text) + 1);
	char *s;
	*n = 0;
	for (const char *p = list(text); piece(t, &p, &s);)
		v[(*n)++] = strtoll(s, NULL, 10);
	return v;
}

void model_number(struct model_test *t, const char *name, int64_t v)
{
	model_raw(model_tensor(t, name, TENSOR_TYPE(INT64), ""),
		arena_memdup(t->arena, &v, 1, sizeof v), sizeof v);
}

void model_numbers(struct model_test *t, const char *name, const char *text)
{
	size_t n;
	const int64_t *v = numbers(t, text, &n);
	model_raw(model_tensor(t, name, TENSOR_TYPE(INT64), arena_printf(t->arena, "%zu", n)), v,
		n * sizeof *v);
}

void model_truth(struct model_test *t, const char *name, bool v)
{
	model_raw(model_tensor(t, name, TENSOR_TYPE(BOOL), ""), v ? "\1" : "\0", 1);
}

Onnx__GraphProto *model_inside(struct model_test *t, Onnx__NodeProto *node, const char *attribute)
{
	Onnx__AttributeProto *a = model_attribute(t, node, attribute, ATTRIBUTE_TYPE(GRAPH));
	a->g = ARENA_NEW(t->arena, Onnx__GraphProto);
	onnx__graph_proto__init(a->g);
	return t->at = a->g;
}

Onnx__GraphProto *model_loop_body(
	struct model_test *t, Onnx__NodeProto *loop, const char *value, int type, const char *shape)
{
	Onnx__GraphProto *body = model_inside(t, loop, "body");
	model_input(t, "i", TENSOR_TYPE(INT64), "");
	model_input(t, "go", TENSOR_TYPE(BOOL), "");
	model_input(t, value, type, shape);
	return body;
}

Onnx__FunctionProto *model_function(struct model_test *t, const char *domain, const char *name,
	const char *inputs, const char *outputs, const char *attributes)
{
	Onnx__FunctionProto *f = ARENA_NEW(t->arena, Onnx__FunctionProto);
	char *s;
	onnx__function_proto__init(f);
	f->domain = arena_strdup(t->arena, domain);
	f->name = arena_strdup(t->arena, name);
	for (const char *p = list(inputs); piece(t, &p, &s);)
		APPEND(t, f, input, s);
	for (const char *p = list(outputs); piece(t, &p, &s);)
		APPEND(t, f, output, s);
	for (const char *p = list(attributes); piece(t, &p, &s);)
		APPEND(t, f, attribute, s);
	APPEND(t, &t->model, functions, f);
	return t->function = f;
}

void model_unknown(
	struct model_test *t, ProtobufCMessage *m, uint32_t tag, const void *data, size_t len)
{
	assert_in_range(len, 0, 16383);
	uint8_t *bytes = arena_alloc(t->arena, len + 2, 1);
	bytes[0] = (uint8_t)(len & 127) | 128;
	bytes[1] = (uint8_t)(len >> 7);
	memcpy(bytes + 2, data, len);
	const ProtobufCMessageUnknownField field = {.tag = tag,
		.wire_type = PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED,
		.len = len + 2,
		.data = bytes};
	APPEND(t, m, unknown_fields, field);
}

void model_default(struct model_test *t, Onnx__FunctionProto *f, const Onnx__AttributeProto *a)
{
	size_t len = onnx__attribute_proto__get_packed_size(a);
	uint8_t *bytes = arena_alloc(t->arena, len, 1);
	onnx__attribute_proto__pack(a, bytes);
	model_unknown(t, &f->base, 11, bytes, len);
}

void model_outside(struct model_test *t)
{
	t->at = &t->graph;
	t->function = NULL;
}

void model_small(struct model_test *t)
{
	model_input(t, "x", TENSOR_TYPE(FLOAT), "N,4");
	model_weights(t, "w", "4");
	model_node(t, "Add", "sum", "x,w", "s");
	model_node(t, "Relu", "act", "s", "y");
	model_output(t, "y");
	t->options.batch = 2;
}

/* --- Using it --- */

const char *test_path(struct model_test *t, const char *name)
{
	return arena_printf(t->arena, "%s/%s", t->folder, name);
}

void test_write(struct model_test *t, const char *name, const void *data, size_t len)
{
	FILE *f = fopen(test_path(t, name), "wb");
	assert_non_null(f);
	assert_int_equal(len ? fwrite(data, 1, len, f) : 0, len);
	assert_int_equal(fclose(f), 0);
}

const uint8_t *model_pack(struct model_test *t, size_t *len)
{
	*len = onnx__model_proto__get_packed_size(&t->model);
	uint8_t *bytes = arena_alloc(t->arena, *len, 1);
	assert_non_null(bytes);
	onnx__model_proto__pack(&t->model, bytes);
	return bytes;
}

const struct op_table *test_table(void)
{
	static const struct op_def *const families[] = {family};
	static const struct op_table table = {1, families};
	return &table;
}

enum status test_import(struct model_test *t, const char *path)
{
	static const struct target target = {.portable = true, .threads = 1};
	text_free(&t->said);
	t->diag = (struct diag){.put = put, .user = t};
	t->g = NULL;
	enum status st = import_onnx(t->arena, path, &t->options,
		t->table ? t->table : test_table(), &target, DT_F32, &t->diag, &t->g);
	/* a failure has said so, a success has not */
	assert_int_equal(st == ST_OK, t->diag.errors == 0);
	assert_int_equal(st == ST_OK, t->g != NULL);
	return st;
}

/* What the tests import is what fuzzing begins with (tests/fuzz/campaign.sh): with SEEDS in the
 * environment, models of moderate size are saved there, named by their contents. */
static void save_seed(const uint8_t *bytes, size_t len)
{
	const char *folder = getenv("SEEDS");
	uint64_t h = UINT64_C(0xcbf29ce484222325); /* FNV-1a */
	if (!folder || len > 4096)
		return;
	for (size_t i = 0; i < len; i++)
		h = (h ^ bytes[i]) * UINT64_C(0x100000001b3);
	char path[512];
	snprintf(path, sizeof path, "%s/%016" PRIx64, folder, h);
	FILE *f = fopen(path, "wb");
	assert_non_null(f);
	assert_int_equal(fwrite(bytes, 1, len, f), len);
	fclose(f);
}

enum status model_import(struct model_test *t)
{
	size_t len;
	const uint8_t *bytes = model_pack(t, &len);
	test_write(t, "model.onnx", bytes, len);
	save_seed(bytes, len);
	return test_import(t, test_path(t, "model.onnx"));
}

void test_said(const struct model_test *t, const char *text)
{
	if (!t->said.s || !strstr(t->said.s, text))
		fail_msg("no '%s' in:\n%s", text, t->said.s ? t->said.s : "");
}

void model_refused(struct model_test *t, enum status want, const char *text)
{
	assert_int_equal(model_import(t), want);
	test_said(t, text);
}

void model_accepted(struct model_test *t)
{
	if (model_import(t) != ST_OK)
		fail_msg("refused:\n%s", t->said.s ? t->said.s : "");
}

void test_known(struct model_test *t, const char *name, const char *want)
{
	const struct tensor *x = NULL;
	for (int i = 0; i < t->g->noutput; i++)
		if (!strcmp(t->g->output[i]->name, name))
			x = t->g->output[i];
	if (!x || !x->data)
		fail_msg("output '%s' is %s", name, x ? "not known" : "missing");
	struct text got = {0};
	for (int i = 0; x && i < x->rank; i++)
		text_add(&got, "%s%d", i ? "," : "", (int)x->dim[i]);
	text_puts(&got, ":");
	for (int i = 0; x && i < (int)x->numel; i++)
		text_add(&got, " %g", tensor_real(x, i));
	assert_string_equal(got.s, want);
	text_free(&got);
}

struct tensor *test_tensor(const struct model_test *t, const char *name)
{
	for (int i = 0; t->g && i < t->g->ntensor; i++)
		if (!strcmp(t->g->tensor[i]->name, name))
			return t->g->tensor[i];
	fail_msg("no tensor '%s'", name);
	return NULL;
}
