/* Models made by a few calls, saved and imported: what the importer's tests are written in. */
#ifndef STINT_TESTS_IMPORT_MODEL_H
#define STINT_TESTS_IMPORT_MODEL_H

#include "graph/op.h"
#include "import/import.h"
#include "onnx.pb-c.h"

#define TENSOR_TYPE(x) ONNX__TENSOR_PROTO__DATA_TYPE__##x
#define ATTRIBUTE_TYPE(x) ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__##x

/* One test's model, its folder, and what became of it. */
struct model_test {
	struct arena *arena;
	char folder[64];
	Onnx__ModelProto model;
	Onnx__GraphProto graph;
	/* where model_input and so on put things; the function, when not NULL, gets the nodes */
	Onnx__GraphProto *at;
	Onnx__FunctionProto *function;
	const struct op_table *table; /* NULL: a few operators of the tests' own */
	struct import_options options;
	/* after test_import */
	struct graph *g;
	struct text said; /* every message and hint, a line each */
	struct diag diag;
};

/* cmocka's setup and teardown: *state is a struct model_test with an empty model of opset 17. */
int model_setup(void **state);
int model_teardown(void **state);

/* Shapes are written "N,3,?": a number, a name, or nothing known; "" has rank 0. */
void model_input(struct model_test *t, const char *name, int type, const char *shape);
void model_output(struct model_test *t, const char *name);
/* An initializer with no values yet. */
Onnx__TensorProto *model_tensor(
	struct model_test *t, const char *name, int type, const char *shape);
/* One of float32 whose raw values are 0, 1, 2, ... */
Onnx__TensorProto *model_weights(struct model_test *t, const char *name, const char *shape);
void model_raw(Onnx__TensorProto *tensor, const void *data, size_t len);
/* Say that a tensor's data lie in a file; offset and length NULL: not said. */
void model_external(struct model_test *t, Onnx__TensorProto *tensor, const char *location,
	const char *offset, const char *length);
/* inputs and outputs are written "a,,b". */
Onnx__NodeProto *model_node(struct model_test *t, const char *op, const char *name,
	const char *inputs, const char *outputs);
/* The same of another domain: "domain.Name". */
Onnx__NodeProto *model_custom(struct model_test *t, const char *op, const char *name,
	const char *inputs, const char *outputs);
Onnx__AttributeProto *model_attribute(
	struct model_test *t, Onnx__NodeProto *node, const char *name, int type);
void model_int(struct model_test *t, Onnx__NodeProto *node, const char *name, int64_t v);
/* Known values, initializers: a scalar, a list "1,2,3" of I64, a truth. */
void model_number(struct model_test *t, const char *name, int64_t v);
void model_numbers(struct model_test *t, const char *name, const char *list);
void model_truth(struct model_test *t, const char *name, bool v);
/* A graph as an attribute of a node; what is made next goes there, until model_outside. */
Onnx__GraphProto *model_inside(struct model_test *t, Onnx__NodeProto *node, const char *attribute);
/* The same of a Loop: its turn `i`, whether it goes on, `go`, and a value that goes around. */
Onnx__GraphProto *model_loop_body(struct model_test *t, Onnx__NodeProto *loop, const char *value,
	int type, const char *shape);
/* A function; nodes made next are its. inputs, outputs and attributes are written "a,b". */
Onnx__FunctionProto *model_function(struct model_test *t, const char *domain, const char *name,
	const char *inputs, const char *outputs, const char *attributes);
/* A field that onnx.proto of 1.12 does not know, holding `len` bytes. */
void model_unknown(
	struct model_test *t, ProtobufCMessage *m, uint32_t tag, const void *data, size_t len);
/* A default of a function's attribute. */
void model_default(struct model_test *t, Onnx__FunctionProto *f, const Onnx__AttributeProto *a);
void model_outside(struct model_test *t);
/* A good model: y = Relu(Add(x, w)), x and y [N, 4], w [4]. */
void model_small(struct model_test *t);

/* The path of a file in the test's folder. */
const char *test_path(struct model_test *t, const char *name);
void test_write(struct model_test *t, const char *name, const void *data, size_t len);
/* Bytes of the model. */
const uint8_t *model_pack(struct model_test *t, size_t *len);
/* The few operators that these tests use. */
const struct op_table *test_table(void);
/* Save the model as model.onnx and import that; or import the file that is there. */
enum status model_import(struct model_test *t);
enum status test_import(struct model_test *t, const char *path);
/* Assert that the import ends with `want`, and that the messages hold `text`. */
void model_refused(struct model_test *t, enum status want, const char *text);
void test_said(const struct model_test *t, const char *text);
/* Assert that the model is imported. */
void model_accepted(struct model_test *t);
/* Assert that output `name` is known: "2,2: 1 2 3 4". */
void test_known(struct model_test *t, const char *name, const char *want);
/* A tensor of the imported graph by name; fails the test where there is none. */
struct tensor *test_tensor(const struct model_test *t, const char *name);

#endif
