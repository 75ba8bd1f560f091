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

static const float *trained(void *user, const char *name, int64_t numel)
{
	static const float w[] = {-1, -2, -3, -4}, doubled[] = {7, 8, 9, 10, 11};
	int *calls = user;
	++*calls;
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
	assert_int_equal(export_onnx(FIXTURES "/types.onnx", out, trained, NULL, NULL, &calls, NULL,
				 &t->diag),
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
	assert_int_equal(export_onnx(test_path(t, "model.onnx"), out, trained, NULL, NULL, &calls,
				 NULL, &t->diag),
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
	assert_int_equal(export_onnx(FIXTURES "/external.onnx", once, trained, NULL, NULL, &calls,
				 NULL, &t->diag),
		ST_OK);
	assert_int_equal(export_onnx(FIXTURES "/external.onnx", twice, trained, NULL, NULL, &calls,
				 NULL, &t->diag),
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
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
