/* Models written again: external data taken in, trained values put in, everything else as it was.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "import/import_parts.h"
#include "ops/ops.h"
#include "tests/import/model.h"

static enum status test_copy(struct model_test *t, const char *from, const char *to)
{
	return import_copy_model(from, to, &t->options, test_table(), NULL, NULL, &t->diag);
}

static void copy_is_the_same(void **state)
{
	struct model_test *t = *state;
	static const char *const files[] = {
		FIXTURES "/newer.onnx", FIXTURES "/types.onnx", FIXTURES "/torch.onnx"};
	const char *out = test_path(t, "copy.onnx");
	for (int i = 0; i < 3; i++) {
		assert_int_equal(test_copy(t, files[i], out), ST_OK);
		t->options.batch = 1;
		assert_int_equal(test_import(t, out), ST_OK);
	}
	/* what this onnx.proto does not know is kept */
	char *bytes;
	size_t len;
	assert_int_equal(test_copy(t, files[0], out), ST_OK);
	assert_int_equal(file_read(t->arena, out, &bytes, &len, &t->diag), ST_OK);
	assert_non_null(memmem(bytes, len, "line 7", 6));
	assert_non_null(memmem(bytes, len, "scope", 5));
}

static void copy_takes_data_in(void **state)
{
	struct model_test *t = *state;
	const char *out = test_path(t, "copy.onnx");
	assert_int_equal(test_copy(t, FIXTURES "/external.onnx", out), ST_OK);
	/* there is no external.bin beside the copy */
	t->options.batch = 1;
	assert_int_equal(test_import(t, out), ST_OK);
	assert_true(tensor_real(test_tensor(t, "v"), 5) == 15);
	assert_true(tensor_real(test_tensor(t, "w"), 2) == 2);
}

/* Data of a node's own tensor, too. */
static void copy_takes_constants_in(void **state)
{
	struct model_test *t = *state;
	static const float v[4] = {4, 3, 2, 1};
	size_t len;
	model_small(t);
	Onnx__NodeProto *n = model_node(t, "Constant", "", "", "k");
	Onnx__TensorProto *value = model_tensor(t, "", TENSOR_TYPE(FLOAT), "4");
	t->graph.n_initializer--;
	model_external(t, value, "k.bin", NULL, NULL);
	model_attribute(t, n, "value", ATTRIBUTE_TYPE(TENSOR))->t = value;
	model_node(t, "Add", "more", "y,k", "z");
	test_write(t, "k.bin", v, sizeof v);
	const uint8_t *bytes = model_pack(t, &len);
	test_write(t, "model.onnx", bytes, len);
	const char *out = test_path(t, "copy.onnx");
	assert_int_equal(test_copy(t, test_path(t, "model.onnx"), out), ST_OK);
	assert_int_equal(unlink(test_path(t, "k.bin")), 0);
	assert_int_equal(test_import(t, out), ST_OK);
	assert_true(tensor_real(test_tensor(t, "k"), 0) == 4);
}

/* What a file has no room for lies beside it; as if there were room for a few KiB. */
static void copy_beside(void **state)
{
	struct model_test *t = *state;
	struct model m;
	struct stat file;
	size_t len;
	const char *out = test_path(t, "copy.onnx");
	model_small(t);
	model_weights(t, "odd", "331");
	model_weights(t, "even", "512,2");
	const uint8_t *bytes = model_pack(t, &len);
	test_write(t, "model.onnx", bytes, len);
	assert_int_equal(model_read(t->arena, test_path(t, "model.onnx"), &m, &t->diag), ST_OK);
	assert_int_equal(model_write(&m, out, 4096, &t->diag), ST_OK);
	assert_int_equal(stat(out, &file), 0);
	assert_true(file.st_size < 1024);
	assert_int_equal(stat(test_path(t, "copy.onnx.data"), &file), 0);
	assert_int_equal(file.st_size, 1344 + 4096); /* the second begins at a multiple of 64 */
	assert_int_equal(test_import(t, out), ST_OK);
	assert_true(tensor_real(test_tensor(t, "odd"), 330) == 330);
	assert_true(tensor_real(test_tensor(t, "even"), 1023) == 1023);
	assert_true(tensor_real(test_tensor(t, "w"), 3) == 3);
	/* and back */
	assert_int_equal(test_copy(t, out, test_path(t, "again.onnx")), ST_OK);
	assert_int_equal(unlink(test_path(t, "copy.onnx.data")), 0);
	assert_int_equal(test_import(t, test_path(t, "again.onnx")), ST_OK);
	assert_true(tensor_real(test_tensor(t, "even"), 1023) == 1023);
}

static void copy_fails(void **state)
{
	struct model_test *t = *state;
	enum status st = test_copy(t, FIXTURES "/newer.onnx", test_path(t, "no/folder/copy.onnx"));
	assert_int_equal(st, ST_IO);
	st = test_copy(t, test_path(t, "none.onnx"), test_path(t, "copy.onnx"));
	assert_int_equal(st, ST_IO);
}

static const void *trained(void *user, const char *name, int64_t numel, enum dtype *type)
{
	static const float w[] = {-1, -2, -3, -4}, doubled[] = {7, 8, 9, 10, 11};
	int *calls = user;
	++*calls;
	*type = DT_F32;
	if (!strcmp(name, "w")) {
		assert_int_equal(numel, 4);
		return w;
	}
	return !strcmp(name, "DOUBLE.typed") || !strcmp(name, "FLOAT.raw") ? doubled : NULL;
}

static void export_replaces(void **state)
{
	struct model_test *t = *state;
	const char *out = test_path(t, "trained.onnx");
	int calls = 0;
	assert_int_equal(
		export_onnx(FIXTURES "/types.onnx", out,
			&(struct export_values){.lookup = trained, .user = &calls}, &t->diag),
		ST_OK);
	assert_int_equal(calls, 27);
	t->options.batch = 1;
	assert_int_equal(test_import(t, out), ST_OK);
	assert_true(tensor_real(test_tensor(t, "w"), 3) == -4);
	assert_true(tensor_real(test_tensor(t, "DOUBLE.typed"), 4) == 11);
	assert_true(tensor_real(test_tensor(t, "FLOAT.raw"), 0) == 7);
	assert_true(tensor_real(test_tensor(t, "FLOAT.typed"), 0) == 0);
	assert_true(tensor_real(test_tensor(t, "INT8.raw"), 4) == -1);
	assert_int_equal(t->g->nnode, 2);
}

/* Weights and external data of a branch. */
static void bodies_too(void **state)
{
	struct model_test *t = *state;
	static const float v[4] = {4, 3, 2, 1};
	const char *out = test_path(t, "trained.onnx");
	size_t len;
	int calls = 0;
	model_input(t, "x", TENSOR_TYPE(FLOAT), "2,4");
	model_truth(t, "yes", true);
	Onnx__NodeProto *n = model_node(t, "If", "if", "yes", "y");
	model_inside(t, n, "then_branch");
	model_weights(t, "w", "4");
	model_external(t, model_tensor(t, "v", TENSOR_TYPE(FLOAT), "4"), "v.bin", NULL, NULL);
	model_node(t, "Add", "", "x,w", "p");
	model_node(t, "Add", "", "p,v", "q");
	model_output(t, "q");
	model_outside(t);
	model_output(t, "y");
	test_write(t, "v.bin", v, sizeof v);
	const uint8_t *bytes = model_pack(t, &len);
	test_write(t, "model.onnx", bytes, len);
	assert_int_equal(
		export_onnx(test_path(t, "model.onnx"), out,
			&(struct export_values){.lookup = trained, .user = &calls}, &t->diag),
		ST_OK);
	assert_int_equal(calls, 3);
	assert_int_equal(unlink(test_path(t, "v.bin")), 0);
	t->table = ops_table();
	assert_int_equal(test_import(t, out), ST_OK);
	assert_true(tensor_real(test_tensor(t, "w"), 3) == -4);
	assert_true(tensor_real(test_tensor(t, "v"), 3) == 1);
}

static void export_is_repeatable(void **state)
{
	struct model_test *t = *state;
	char *a, *b;
	size_t na, nb;
	int calls = 0;
	const char *once = test_path(t, "1.onnx"), *twice = test_path(t, "2.onnx");
	assert_int_equal(
		export_onnx(FIXTURES "/external.onnx", once,
			&(struct export_values){.lookup = trained, .user = &calls}, &t->diag),
		ST_OK);
	assert_int_equal(
		export_onnx(FIXTURES "/external.onnx", twice,
			&(struct export_values){.lookup = trained, .user = &calls}, &t->diag),
		ST_OK);
	assert_int_equal(file_read(t->arena, once, &a, &na, &t->diag), ST_OK);
	assert_int_equal(file_read(t->arena, twice, &b, &nb, &t->diag), ST_OK);
	assert_int_equal(na, nb);
	assert_memory_equal(a, b, na);
	/* the replaced one does not speak of a file any more, the other has its data inside */
	assert_null(memmem(a, na, "external.bin", 12));
	t->options.batch = 1;
	assert_int_equal(test_import(t, once), ST_OK);
	assert_true(tensor_real(test_tensor(t, "w"), 0) == -1);
	assert_true(tensor_real(test_tensor(t, "v"), 5) == 15);
}

struct noted {
	char names[256];
	int n;
};

static int note_all(void *user, const char *name, const struct export_note **notes)
{
	static char long_value[300];
	static const struct export_note note[] = {
		{"recompute", "kept"}, {"long", long_value}, {"empty", ""}};
	struct noted *x = user;
	memset(long_value, 'v', sizeof long_value - 1);
	strncat(x->names, name, sizeof x->names - strlen(x->names) - 2);
	strcat(x->names, " ");
	*notes = note;
	return x->n;
}

/* The value of `key` in the node's metadata_props, read by hand; NULL: none, or twice. */
static const char *metadata(struct model_test *t, const Onnx__NodeProto *n, const char *key)
{
	const char *found = NULL;
	int times = 0;
	for (unsigned i = 0; i < n->base.n_unknown_fields; i++) {
		const ProtobufCMessageUnknownField *f = &n->base.unknown_fields[i];
		if (f->tag != 9)
			continue;
		size_t head = 1;
		while (f->data[head - 1] & 128)
			head++;
		Onnx__StringStringEntryProto *e = onnx__string_string_entry_proto__unpack(
			NULL, f->len - head, f->data + head);
		assert_non_null(e);
		if (!strcmp(e->key, key)) {
			found = arena_strdup(t->arena, e->value);
			times++;
		}
		onnx__string_string_entry_proto__free_unpacked(e, NULL);
	}
	return times == 1 ? found : NULL;
}

static Onnx__ModelProto *read_model(struct model_test *t, const char *path)
{
	char *bytes;
	size_t len;
	assert_int_equal(file_read(t->arena, path, &bytes, &len, &t->diag), ST_OK);
	Onnx__ModelProto *m = onnx__model_proto__unpack(NULL, len, (const uint8_t *)bytes);
	assert_non_null(m);
	return m;
}

/* Notes come beside what is there, once however often, and nothing else changes. */
static void annotates(void **state)
{
	struct model_test *t = *state;
	const char *once = test_path(t, "1.onnx"), *twice = test_path(t, "2.onnx");
	const char *none = test_path(t, "3.onnx");
	struct noted x = {.n = 3};
	const char *from = FIXTURES "/newer.onnx";
	Onnx__ModelProto *before = read_model(t, from);
	assert_int_equal(export_annotated(from, once, note_all, &x, &t->diag), ST_OK);
	assert_int_equal(export_annotated(once, twice, note_all, &x, &t->diag), ST_OK);
	x.n = 0;
	assert_int_equal(export_annotated(twice, none, note_all, &x, &t->diag), ST_OK);
	Onnx__ModelProto *after = read_model(t, twice);
	assert_int_equal(after->graph->n_node, before->graph->n_node);
	int kept = 0;
	for (size_t i = 0; i < after->graph->n_node; i++) {
		const Onnx__NodeProto *n = after->graph->node[i];
		assert_string_equal(metadata(t, n, "stint.recompute"), "kept");
		assert_string_equal(metadata(t, n, "stint.empty"), "");
		assert_int_equal(strlen(metadata(t, n, "stint.long")), 299);
		assert_int_equal(n->base.n_unknown_fields,
			before->graph->node[i]->base.n_unknown_fields + 3);
		kept += (int)before->graph->node[i]->base.n_unknown_fields;
		if (n->name && *n->name)
			assert_non_null(strstr(x.names, n->name));
	}
	assert_true(kept > 0);
	onnx__model_proto__free_unpacked(before, NULL);
	onnx__model_proto__free_unpacked(after, NULL);
	/* without notes it is the copy again */
	char *a, *b;
	size_t na, nb;
	assert_int_equal(test_copy(t, from, once), ST_OK);
	assert_int_equal(file_read(t->arena, once, &a, &na, &t->diag), ST_OK);
	assert_int_equal(file_read(t->arena, none, &b, &nb, &t->diag), ST_OK);
	assert_int_equal(na, nb);
	assert_memory_equal(a, b, na);
	x.n = -1;
	assert_int_equal(export_annotated(from, once, note_all, &x, &t->diag), ST_INTERNAL);
}

static const void *reals(void *user, const char *name, int64_t numel, enum dtype *type)
{
	static const float half[] = {0.1f, 1 + 0x1p-11f, 1 + 0x3p-11f, 6e-8f, -65504},
			   brain[] = {0.1f, 1 + 0x1p-8f, 1 + 0x3p-8f, 1e-40f, -3e38f},
			   single[64] = {0.1f, 0.3f}; /* the small model's own, too */
	static const double wide[] = {1.0 / 3, 1e300}, large[] = {1e5};
	(void)user;
	(void)numel;
	*type = !strcmp(name, "wide") || !strcmp(name, "large") ? DT_F64 : DT_F32;
	return !strcmp(name, "half")    ? (const void *)half
	       : !strcmp(name, "brain") ? (const void *)brain
	       : !strcmp(name, "wide")  ? (const void *)wide
	       : !strcmp(name, "large") ? (const void *)large
					: (const void *)single;
}

/* Each initializer stays of its type; what is rounded has numpy's and PyTorch's bits. */
static void export_keeps_types(void **state)
{
	struct model_test *t = *state;
	static const struct {
		const char *name;
		int type;
		const char *shape;
		size_t bytes;
	} made[] = {{"half", TENSOR_TYPE(FLOAT16), "5", 10},
		{"brain", TENSOR_TYPE(BFLOAT16), "5", 10}, {"wide", TENSOR_TYPE(DOUBLE), "2", 16},
		{"unchanged", TENSOR_TYPE(DOUBLE), "2", 16}};
	static const uint16_t half[] = {0x2e66, 0x3c00, 0x3c02, 0x0001, 0xfbff},
			      brain[] = {0x3dcd, 0x3f80, 0x3f82, 0x0001, 0xff62};
	/* rounded to single precision the first is the value that comes back, the other is not */
	static const double begun[] = {0.1, 0.2}, unchanged[] = {0.1, 0.3f},
			    wide[] = {1.0 / 3, 1e300};
	static const void *const want[] = {half, brain, wide, unchanged};
	const char *from = test_path(t, "model.onnx"), *out = test_path(t, "trained.onnx");
	struct export_values x = {.lookup = reals};
	size_t len;
	model_small(t);
	for (int i = 0; i < 4; i++)
		model_raw(model_tensor(t, made[i].name, made[i].type, made[i].shape), begun,
			made[i].bytes);
	const uint8_t *bytes = model_pack(t, &len);
	test_write(t, "model.onnx", bytes, len);
	assert_int_equal(export_onnx(from, out, &x, &t->diag), ST_OK);
	Onnx__ModelProto *after = read_model(t, out);
	for (int i = 0; i < 4; i++) {
		const Onnx__TensorProto *p = after->graph->initializer[i + 1];
		assert_string_equal(p->name, made[i].name);
		assert_int_equal(p->data_type, made[i].type);
		assert_int_equal(p->raw_data.len, made[i].bytes);
		assert_memory_equal(p->raw_data.data, want[i], made[i].bytes);
	}
	onnx__model_proto__free_unpacked(after, NULL);
	/* what is too large for the type: nothing is written, unless that is wanted */
	model_raw(model_tensor(t, "large", TENSOR_TYPE(FLOAT16), "1"), half, 2);
	bytes = model_pack(t, &len);
	test_write(t, "model.onnx", bytes, len);
	out = test_path(t, "infinite.onnx");
	assert_int_equal(export_onnx(from, out, &x, &t->diag), ST_INVALID);
	test_said(t, "1 of its values are too large for the file's float16");
	assert_int_equal(access(out, F_OK), -1);
	x.infinite = true;
	assert_int_equal(export_onnx(from, out, &x, &t->diag), ST_OK);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, model_setup, model_teardown)
	const struct CMUnitTest tests[] = {
		TEST(copy_is_the_same),
		TEST(copy_takes_data_in),
		TEST(copy_takes_constants_in),
		TEST(copy_beside),
		TEST(copy_fails),
		TEST(export_replaces),
		TEST(bodies_too),
		TEST(export_is_repeatable),
		TEST(annotates),
		TEST(export_keeps_types),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
