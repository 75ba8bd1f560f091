/* Models that are refused, each with its reason; and damaged bytes, which never crash. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "ops/ops.h"
#include "tests/import/model.h"

/* --- Files --- */

static void no_such_file(void **state)
{
	struct model_test *t = *state;
	assert_int_equal(test_import(t, test_path(t, "none.onnx")), ST_IO);
	test_said(t, "none.onnx: ");
	assert_int_equal(test_import(t, t->folder), ST_IO);
	test_said(t, "is a folder");
	assert_int_equal(mkfifo(test_path(t, "pipe"), 0600), 0);
	assert_int_equal(test_import(t, test_path(t, "pipe")), ST_IO);
}

static void no_model(void **state)
{
	struct model_test *t = *state;
	static const char pointer[] = "version https://git-lfs.github.com/spec/v1\n";
	test_write(t, "model.onnx", "", 0);
	assert_int_equal(test_import(t, test_path(t, "model.onnx")), ST_INVALID);
	test_said(t, "is empty");
	test_write(t, "model.onnx", pointer, sizeof pointer);
	assert_int_equal(test_import(t, test_path(t, "model.onnx")), ST_INVALID);
	test_said(t, "Git LFS");
	t->model.graph = NULL;
	model_refused(t, ST_INVALID, "it has no graph");
}

static void damaged(void **state)
{
	struct model_test *t = *state;
	const char *path = test_path(t, "damaged.onnx");
	size_t len;
	model_small(t);
	Onnx__AttributeProto *a = model_attribute(
		t, t->graph.node[0], "ints", ATTRIBUTE_TYPE(INTS));
	a->n_ints = 2;
	a->ints = (int64_t[]){1, 300};
	const uint8_t *good = model_pack(t, &len);
	/* The opset stands behind the graph, so every shorter file lacks something. */
	for (size_t n = 0; n < len; n++) {
		test_write(t, "damaged.onnx", good, n);
		assert_int_equal(test_import(t, path), ST_INVALID);
	}
	uint8_t *bytes = arena_alloc(t->arena, len, 1);
	uint32_t seed = 1;
	int refused = 0;
	for (int round = 0; round < 3000; round++) {
		memcpy(bytes, good, len);
		for (int k = 0; k <= round % 3; k++) {
			seed = seed * 1664525u + 1013904223u; /* Numerical Recipes' generator */
			bytes[(seed >> 8) % len] ^= (uint8_t)(1u << (seed >> 29));
		}
		test_write(t, "damaged.onnx", bytes, len);
		enum status st = test_import(t, path);
		assert_true(st == ST_OK || st == ST_INVALID);
		refused += st != ST_OK;
	}
	assert_in_range(refused, 1000, 2999);
}

enum { DEEP = 65536 };

/* Put a field's key and length in front of `len` bytes; returns how many there are then. */
static size_t wrap(uint8_t *body, size_t len, const uint8_t *key, size_t nkey)
{
	uint8_t head[8];
	size_t n = nkey;
	memcpy(head, key, nkey);
	for (size_t v = len;; v >>= 7) {
		head[n++] = (uint8_t)(v > 127 ? v | 128 : v);
		if (v <= 127)
			break;
	}
	assert_true(len + n <= DEEP);
	memmove(body + n, body, len);
	memcpy(body, head, n);
	return len + n;
}

/* `n` fields, each holding the next; their keys, of a byte each, go round. */
static size_t nest(uint8_t *out, int n, const uint8_t *key, size_t nkey)
{
	size_t len = 0;
	for (int i = 0; i < n; i++)
		len = wrap(out, len, &key[nkey - 1 - (size_t)i % nkey], 1);
	return len;
}

static void too_deep(struct model_test *t, const uint8_t *bytes, size_t len)
{
	test_write(t, "deep.onnx", bytes, len);
	assert_int_equal(test_import(t, test_path(t, "deep.onnx")), ST_INVALID);
	test_said(t, "64 levels");
}

/* 3,000 levels of graphs in attributes (in the graph, in a training graph, in a function's node),
 * of sequences of sequences. */
static void nested_too_deep(void **state)
{
	struct model_test *t = *state;
	/* key bytes: field << 3 | 2 */
	static const uint8_t graphs[] = {0x0a, 0x2a, 0x32}; /* node, attribute, g */
	static const uint8_t types[] = {0x22, 0x0a};        /* sequence_type, elem_type */
	static const uint8_t in_graph[] = {0x3a}, in_training[] = {0xa2, 0x01},
			     algorithm[] = {0x12}, in_functions[] = {0xca, 0x01};
	uint8_t *bytes = arena_alloc(t->arena, DEEP, 1);
	size_t len = nest(bytes, 9000, graphs, 3);
	too_deep(t, bytes, wrap(bytes, len, in_graph, 1));
	len = nest(bytes, 9000, graphs, 3);
	len = wrap(bytes, len, algorithm, 1);
	too_deep(t, bytes, wrap(bytes, len, in_training, 2));
	len = nest(bytes, 9000, (const uint8_t[]){0x32, 0x0a, 0x2a}, 3);
	len = wrap(bytes, len, (const uint8_t[]){0x2a}, 1); /* attribute */
	len = wrap(bytes, len, (const uint8_t[]){0x3a}, 1); /* node */
	too_deep(t, bytes, wrap(bytes, len, in_functions, 2));
	len = nest(bytes, 6000, types, 2);
	len = wrap(bytes, len, (const uint8_t[]){0x12}, 1); /* type */
	len = wrap(bytes, len, (const uint8_t[]){0x5a}, 1); /* input */
	too_deep(t, bytes, wrap(bytes, len, in_graph, 1));
}

/* The default of a function's attribute is a field that onnx.proto of 1.12 lacks: read all the
 * same, as guarded. */
static void defaults_too_deep(void **state)
{
	struct model_test *t = *state;
	static const uint8_t graphs[] = {0x32, 0x0a, 0x2a}; /* g, node, attribute */
	uint8_t *bytes = arena_alloc(t->arena, DEEP, 1);
	model_small(t);
	Onnx__FunctionProto *f = model_function(t, "my", "F", "a", "b", "");
	model_unknown(t, &f->base, 11, bytes, nest(bytes, 3000, graphs, 3));
	model_refused(t, ST_INVALID, "64 levels");
	f->base.n_unknown_fields = 0;
	model_unknown(t, &f->base, 11, "\x0a\x05", 2);
	model_refused(t, ST_INVALID, "a field is longer than what holds it");
	f->base.unknown_fields[0].wire_type = PROTOBUF_C_WIRE_TYPE_VARINT;
	f->base.unknown_fields[0].len = 1;
	f->base.unknown_fields[0].data = (uint8_t *)(uintptr_t) "\1";
	model_refused(t, ST_INVALID, "a field in it has another type");
}

/* A megabyte of empty tensors would take 150 as structures. */
static void expands_too_much(void **state)
{
	struct model_test *t = *state;
	size_t n = 1 << 20, head = 4;
	uint8_t *bytes = arena_alloc(t->arena, n + head, 1);
	size_t body = n;
	memcpy(bytes,
		(uint8_t[]){0x3a, (uint8_t)(body & 0x7f) | 0x80, (uint8_t)(body >> 7 & 0x7f) | 0x80,
			(uint8_t)(body >> 14)},
		head);
	for (size_t i = 0; i < n; i += 2)
		bytes[head + i] = 0x2a; /* initializer, of length 0 */
	test_write(t, "model.onnx", bytes, n + head);
	assert_int_equal(test_import(t, test_path(t, "model.onnx")), ST_INVALID);
	test_said(t, "exhaust memory");
}

static void zero_byte_in_a_name(void **state)
{
	struct model_test *t = *state;
	size_t len;
	model_small(t);
	t->graph.node[1]->name = "act#";
	uint8_t *bytes = (uint8_t *)(uintptr_t)model_pack(t, &len);
	uint8_t *at = memmem(bytes, len, "act#", 4);
	assert_non_null(at);
	at[3] = 0;
	test_write(t, "model.onnx", bytes, len);
	assert_int_equal(test_import(t, test_path(t, "model.onnx")), ST_INVALID);
	test_said(t, "zero byte");
}

/* --- What the model says --- */

static void opsets(void **state)
{
	struct model_test *t = *state;
	model_small(t);
	Onnx__OperatorSetIdProto *opset = t->model.opset_import[0];
	opset->domain = "ai.onnx";
	static const int good[] = {7, 25}, bad[] = {6, 26};
	for (int i = 0; i < 2; i++) {
		opset->version = good[i];
		assert_int_equal(model_import(t), ST_OK);
	}
	for (int i = 0; i < 2; i++) {
		opset->version = bad[i];
		model_refused(t, ST_INVALID, "opsets 7 to 25 are supported");
	}
	/* the newest of several counts; other domains have theirs */
	Onnx__OperatorSetIdProto other = *opset, *newer = &other;
	other.domain = "ai.onnx.ml";
	other.version = 3;
	opset->version = 12;
	t->model.opset_import[t->model.n_opset_import++] = newer;
	assert_int_equal(model_import(t), ST_OK);
	other.domain = "";
	other.version = 26;
	model_refused(t, ST_INVALID, "is written for opset 26; opsets 7 to 25 are supported");
	t->model.n_opset_import = 1;
	opset->domain = "other";
	model_refused(t, ST_INVALID, "says no opset version");
}

static void unsupported_operators(void **state)
{
	struct model_test *t = *state;
	model_small(t);
	model_node(t, "Mystery", "m1", "y", "a");
	model_node(t, "Relu", "foreign", "a", "b")->domain = "com.example";
	model_node(t, "Mystery", "m2", "b", "c");
	model_node(t, "", "m3", "c", "d");
	model_node(t, "stint.own", "m4", "d", "e");
	model_node(t, "own", "m5", "e", "f")->domain = "stint";
	model_node(t, "com.example.Same", "m6", "f", "g");
	model_node(t, "Same", "m7", "g", "h")->domain = "com.example"; /* of version 1 */
	model_refused(t, ST_INVALID,
		"m1 (Mystery): operator Mystery is not supported at opset 17; used 2 times");
	test_said(t, "foreign (com.example.Relu): ");
	test_said(t, "m3 (): operator '' is not supported");
	test_said(t, "m4 (stint.own): ");
	test_said(t, "m6 (com.example.Same): ");
	assert_int_equal(t->diag.errors, 5);
}

static void broken_graphs(void **state)
{
	struct model_test *t = *state;
	model_small(t);
	Onnx__NodeProto *act = t->graph.node[1];
	act->input[0] = "nowhere";
	model_refused(t, ST_INVALID, "act (Relu): reads 'nowhere', which nothing makes");
	act->input[0] = "s";
	act->output[0] = "s";
	model_refused(t, ST_INVALID, "makes 's', which is made already");
	act->output[0] = "x";
	model_refused(t, ST_INVALID, "makes 'x', which is made already");
	act->output[0] = "other";
	model_refused(t, ST_INVALID, "y (output): is made by nothing");
	act->output[0] = "y";
	t->graph.n_output = 0;
	model_refused(t, ST_INVALID, "has no output");
	t->graph.n_output = 1;
	model_node(t, "Relu", "behind", "p", "z");
	model_node(t, "Add", "one", "y,q", "p");
	model_node(t, "Relu", "two", "p", "q");
	model_refused(t, ST_INVALID, "lies on a cycle");
	assert_null(strstr(t->said.s, "behind"));
	t->graph.n_node = 2;
	act->input[0] = "y";
	model_refused(t, ST_INVALID, "act (Relu): lies on a cycle through 'y'");
}

static void duplicate_names(void **state)
{
	struct model_test *t = *state;
	model_small(t);
	model_weights(t, "w", "4");
	model_refused(t, ST_INVALID, "w (tensor): stands twice");
	t->graph.n_initializer--;
	model_input(t, "x", TENSOR_TYPE(FLOAT), "N,4");
	model_refused(t, ST_INVALID, "x (tensor): stands twice");
	t->graph.n_input--;
	model_weights(t, "", "4");
	model_refused(t, ST_INVALID, "has no name");
}

static void unsupported_things(void **state)
{
	struct model_test *t = *state;
	model_small(t);
	Onnx__SparseTensorProto sparse = ONNX__SPARSE_TENSOR_PROTO__INIT;
	t->graph.sparse_initializer = (Onnx__SparseTensorProto *[]){&sparse};
	t->graph.n_sparse_initializer = 1;
	Onnx__TensorProto values = ONNX__TENSOR_PROTO__INIT;
	model_refused(t, ST_INVALID, "is a sparse initializer (one of 1)");
	values.name = "few";
	sparse.values = &values;
	model_refused(t, ST_INVALID, "few (tensor): is a sparse initializer");
	t->graph.n_sparse_initializer = 0;

	Onnx__GraphProto branch = ONNX__GRAPH_PROTO__INIT;
	Onnx__AttributeProto *a = model_attribute(
		t, t->graph.node[0], "then_branch", ATTRIBUTE_TYPE(GRAPH));
	a->g = &branch;
	model_refused(t, ST_INVALID,
		"sum (Add): attribute 'then_branch' holds a graph, which this operator does not");
	a->g = NULL;
	a->type = ATTRIBUTE_TYPE(TENSORS);
	model_refused(t, ST_INVALID, "of a kind that is not supported");
	a->type = ATTRIBUTE_TYPE(SPARSE_TENSOR);
	model_refused(t, ST_INVALID, "holds a sparse tensor, which is not supported");
	a->type = ATTRIBUTE_TYPE(TENSOR);
	model_refused(t, ST_INVALID, "has no tensor");
	a->type = ATTRIBUTE_TYPE(STRING);
	a->has_s = 1;
	a->s = (ProtobufCBinaryData){3, (uint8_t *)(uintptr_t) "a\0b"};
	model_refused(t, ST_INVALID, "zero byte");
	a->ref_attr_name = "outer";
	model_refused(t, ST_INVALID, "refers to a function's attribute, but stands in none");
}

static void inputs_refused(void **state)
{
	struct model_test *t = *state;
	model_small(t);
	t->options.batch = 0;
	model_input(t, "z", TENSOR_TYPE(STRING), "1");
	t->graph.input[0]->type->tensor_type->shape->dim[0]->dim_param = "4";
	t->options.ndim = 1;
	t->options.dim = (const struct import_dim[]){{"4", 4}};
	model_refused(t, ST_INVALID, "z (input): has elements of type string");
	Onnx__ValueInfoProto *z = t->graph.input[1];
	z->type->tensor_type->elem_type = 99;
	model_refused(t, ST_INVALID, "of type unknown");
	z->type->tensor_type->elem_type = TENSOR_TYPE(FLOAT);
	z->type->tensor_type->shape->dim[0]->dim_value = -1;
	model_refused(t, ST_INVALID, "axis 0 ('?') has no fixed size");
	z->type->tensor_type->shape->dim[0]->dim_value = INT64_C(1) << 31;
	model_refused(t, ST_INVALID, "axis 0 has the size 2147483648");
	z->type->tensor_type->shape = NULL;
	model_refused(t, ST_INVALID, "z (input): has no shape");
	z->type = NULL;
	model_refused(t, ST_INVALID, "z (input): is no tensor");
	t->graph.n_input = 1;
	model_input(t, "z", TENSOR_TYPE(FLOAT), "1,1,1,1,1,1,1,1,1");
	model_refused(t, ST_INVALID, "has 9 axes");
	t->graph.n_input = 1;
	model_input(t, "z", TENSOR_TYPE(FLOAT), "2147483647,2147483647,2147483647");
	model_refused(t, ST_INVALID, "overflows");
}

static void shapes_that_do_not_fit(void **state)
{
	struct model_test *t = *state;
	model_small(t);
	model_weights(t, "v", "3");
	t->graph.node[0]->input[1] = "v";
	model_refused(t, ST_INVALID, "sum (Add)");
}

/* What PyTorch writes of an LSTM with a projection: no valid file. */
static void projected_lstm(void **state)
{
	struct model_test *t = *state;
	t->table = ops_table();
	model_input(t, "x", TENSOR_TYPE(FLOAT), "5,2,4");
	model_weights(t, "w", "1,24,4");
	model_weights(t, "r", "1,12,3");
	model_weights(t, "h", "1,2,3");
	model_weights(t, "c", "1,2,6");
	Onnx__NodeProto *n = model_node(t, "LSTM", "n0", "x,w,r,,,h,c", "y");
	model_int(t, n, "hidden_size", 3);
	model_output(t, "y");
	model_refused(t, ST_INVALID, "input W has shape");
	model_weights(t, "w3", "1,12,4");
	n->input[1] = "w3";
	model_refused(t, ST_INVALID, "proj_size");
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, model_setup, model_teardown)
	const struct CMUnitTest tests[] = {
		TEST(no_such_file),
		TEST(no_model),
		TEST(damaged),
		TEST(nested_too_deep),
		TEST(defaults_too_deep),
		TEST(expands_too_much),
		TEST(zero_byte_in_a_name),
		TEST(opsets),
		TEST(unsupported_operators),
		TEST(broken_graphs),
		TEST(duplicate_names),
		TEST(unsupported_things),
		TEST(inputs_refused),
		TEST(shapes_that_do_not_fit),
		TEST(projected_lstm),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
