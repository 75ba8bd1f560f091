/* Values of initializers: every element type and encoding, external data, and what is wrong with
 * some. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/import/model.h"

/* Every type, raw and typed: what make_fixtures.py wrote. */
static void element_types(void **state)
{
	struct model_test *t = *state;
	static const struct {
		const char *name;
		enum dtype type;
		double last;
	} kinds[] = {{"FLOAT", DT_F32, -0.5}, {"DOUBLE", DT_F32, -0.5}, {"FLOAT16", DT_F32, -0.5},
		{"BFLOAT16", DT_F32, -0.5}, {"INT8", DT_I64, -1}, {"INT16", DT_I64, -1},
		{"INT32", DT_I64, -1}, {"INT64", DT_I64, -1}, {"UINT8", DT_I64, 4},
		{"UINT16", DT_I64, 4}, {"UINT32", DT_I64, 4}, {"UINT64", DT_I64, 4},
		{"BOOL", DT_BOOL, 1}};
	static const char *const forms[] = {"raw", "typed"};
	t->options.batch = 1;
	assert_int_equal(test_import(t, FIXTURES "/types.onnx"), ST_OK);
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
		for (int form = 0; form < 2; form++) {
			const struct tensor *x = test_tensor(
				t, arena_printf(t->arena, "%s.%s", kinds[i].name, forms[form]));
			assert_int_equal(x->dtype, kinds[i].type);
			assert_int_equal(x->numel, 5);
			for (int k = 0; k < 4; k++)
				assert_true(
					tensor_real(x, k) == (x->dtype == DT_BOOL ? (k > 0) : k));
			assert_true(tensor_real(x, 4) == kinds[i].last);
		}
	}
}

static void half_precision(void **state)
{
	struct model_test *t = *state;
	/* the largest, the smallest normal, the smallest, minus zero, infinity, not a number */
	static const uint16_t halves[] = {0x7bff, 0x0400, 0x0001, 0x8000, 0xfc00, 0x7e00};
	model_small(t);
	model_raw(model_tensor(t, "h", TENSOR_TYPE(FLOAT16), "6"), halves, sizeof halves);
	assert_int_equal(model_import(t), ST_OK);
	const float *v = test_tensor(t, "h")->data;
	assert_true(v[0] == 65504.0f);
	assert_true(v[1] == 0x1p-14f);
	assert_true(v[2] == 0x1p-24f);
	assert_true(v[3] == 0 && 1 / v[3] < 0);
	assert_true(v[4] < -3.4e38f);
	assert_true(v[5] != v[5]);
}

static void values_that_do_not_fit(void **state)
{
	struct model_test *t = *state;
	static const float v[4] = {0};
	model_small(t);
	Onnx__TensorProto *w = t->graph.initializer[0];
	model_raw(w, v, 15);
	model_refused(t, ST_INVALID, "w (tensor): has 15 bytes of data, but its shape needs 16");
	w->has_raw_data = 0;
	model_refused(t, ST_INVALID, "w (tensor): has 0 values, but its shape needs 4");
	w->float_data = (float[]){1, 2, 3, 4, 5};
	w->n_float_data = 5;
	model_refused(t, ST_INVALID, "has 5 values, but its shape needs 4");
	w->n_float_data = 4;
	model_raw(w, v, 0); /* an empty one beside the typed field */
	assert_int_equal(model_import(t), ST_OK);
	assert_true(tensor_real(test_tensor(t, "w"), 3) == 4);
	w->dims[0] = -4;
	model_refused(t, ST_INVALID, "axis 0 has the size -4");
	w->dims[0] = INT64_C(1) << 31;
	model_refused(t, ST_INVALID, "axis 0 has the size 2147483648");
	w->n_dims = 4;
	w->dims = (int64_t[]){1 << 30, 1 << 30, 1 << 30, 0};
	model_refused(t, ST_INVALID, "overflows at axis 1");
	w->n_dims = 9;
	w->dims = (int64_t[]){1, 1, 1, 1, 1, 1, 1, 1, 4};
	model_refused(t, ST_INVALID, "has 9 axes");
	w->n_dims = 1;
	w->dims[0] = 4;
	Onnx__TensorProto__Segment segment = ONNX__TENSOR_PROTO__SEGMENT__INIT;
	w->segment = &segment;
	model_refused(t, ST_INVALID, "segments");
	w->data_type = TENSOR_TYPE(STRING);
	model_refused(t, ST_INVALID, "of type string");
	w->data_type = TENSOR_TYPE(COMPLEX64);
	model_refused(t, ST_INVALID, "of type complex64");
}

/* --- External data --- */

static void external_fixture(void **state)
{
	struct model_test *t = *state;
	t->options.batch = 1;
	assert_int_equal(test_import(t, FIXTURES "/external.onnx"), ST_OK);
	assert_true(tensor_real(test_tensor(t, "w"), 3) == 3);
	assert_true(tensor_real(test_tensor(t, "v"), 0) == 10);
	assert_true(tensor_real(test_tensor(t, "v"), 5) == 15);
}

/* A model whose w is external, with these words for it. */
static Onnx__TensorProto *external_model(
	struct model_test *t, const char *location, const char *offset, const char *length)
{
	t->graph.n_input = t->graph.n_node = t->graph.n_initializer = t->graph.n_output = 0;
	model_small(t);
	model_external(t, t->graph.initializer[0], location, offset, length);
	return t->graph.initializer[0];
}

static void external_places(void **state)
{
	struct model_test *t = *state;
	static const float v[5] = {9, 1, 2, 3, 4};
	test_write(t, "w.bin", v, sizeof v);
	assert_int_equal(mkdir(test_path(t, "below"), 0700), 0);
	test_write(t, "below/w..bin", v, sizeof v);
	test_write(t, "empty", v, 0);

	external_model(t, "w.bin", "4", "16");
	assert_int_equal(model_import(t), ST_OK);
	assert_true(tensor_real(test_tensor(t, "w"), 0) == 1);
	external_model(t, "./below/w..bin", NULL, NULL);
	assert_int_equal(model_import(t), ST_OK);
	assert_true(tensor_real(test_tensor(t, "w"), 0) == 9);

	external_model(t, "w.bin", "4", "16");
	model_external(t, model_tensor(t, "none", TENSOR_TYPE(FLOAT), "0"), "empty", "0", "0");
	assert_int_equal(model_import(t), ST_OK);
	assert_int_equal(test_tensor(t, "none")->numel, 0);
}

/* What a stranger's model must not read: names that lead out (CVE-2022-25882; with more steps, and
 * from the root, CVE-2024-27318), links at the end of a path or on it (CVE-2026-27489,
 * CVE-2026-34447), hard links (CVE-2026-34446), pipes, on which one would wait. */
static void external_refused(void **state)
{
	struct model_test *t = *state;
	static const struct {
		const char *location, *offset, *length, *said;
	} cases[] = {
		{"w.bin", "8", "16", "beyond the end"},
		{"w.bin", "9223372036854775807", "16", "beyond the end"},
		{"w.bin", "0", "12", "another length than its shape needs"},
		{"w.bin", "-4", "16", "a wrong offset or length"},
		{"w.bin", "4x", "16", "a wrong offset or length"},
		{"w.bin", "", "16", "a wrong offset or length"},
		{"w.bin", "99999999999999999999", "16", "a wrong offset or length"},
		{"", NULL, NULL, "no location"},
		{NULL, NULL, NULL, "no location"},
		{"gone.bin", NULL, NULL, "cannot find its external data 'gone.bin'"},
		{"below", NULL, NULL, "no regular file"},
		{"/etc/passwd", NULL, NULL, "leads out of the model's folder"},
		{"../x.bin", NULL, NULL, "leads out of the model's folder"},
		{"below/../../x.bin", NULL, NULL, "leads out of the model's folder"},
		{"below/..", NULL, NULL, "leads out of the model's folder"},
		{"//etc/passwd", NULL, NULL, "leads out of the model's folder"},
		{"./../x.bin", NULL, NULL, "leads out of the model's folder"},
		{".//..//x.bin", NULL, NULL, "leads out of the model's folder"},
		{"below/./../../x.bin", NULL, NULL, "leads out of the model's folder"},
		{"below/../w.bin", NULL, NULL, "leads out of the model's folder"},
		{"..", NULL, NULL, "leads out of the model's folder"},
		{".", NULL, NULL, "no regular file"},
		{"w.bin/x", NULL, NULL, "cannot find its external data 'w.bin/x'"},
		{"out.bin", NULL, NULL, "a symbolic link stands in the way"},
		{"outside/passwd", NULL, NULL, "a symbolic link stands in the way"},
		{"below/up/w.bin", NULL, NULL, "a symbolic link stands in the way"},
		{"within.bin", NULL, NULL, "a symbolic link stands in the way"},
		{"pipe", NULL, NULL, "no regular file"},
		{"hard.bin", NULL, NULL, "has 2 names (hard links)"},
	};
	static const float v[5] = {9, 1, 2, 3, 4};
	test_write(t, "w.bin", v, sizeof v);
	assert_int_equal(mkdir(test_path(t, "below"), 0700), 0);
	assert_int_equal(symlink("/etc/passwd", test_path(t, "out.bin")), 0);
	assert_int_equal(symlink("/etc", test_path(t, "outside")), 0);
	assert_int_equal(symlink("..", test_path(t, "below/up")), 0);
	assert_int_equal(symlink("w.bin", test_path(t, "within.bin")), 0);
	assert_int_equal(mkfifo(test_path(t, "pipe"), 0600), 0);
	test_write(t, "secret.bin", v, sizeof v);
	assert_int_equal(link(test_path(t, "secret.bin"), test_path(t, "hard.bin")), 0);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		external_model(t, cases[i].location, cases[i].offset, cases[i].length);
		model_refused(t, ST_INVALID, cases[i].said);
		test_said(t, "w (tensor): ");
	}
}

/* A folder whose name begins like the model's is not below it. */
static void external_neighbour(void **state)
{
	struct model_test *t = *state;
	static const float v[4] = {0};
	const uint8_t *bytes;
	size_t len;
	assert_int_equal(mkdir(test_path(t, "m"), 0700), 0);
	assert_int_equal(mkdir(test_path(t, "m2"), 0700), 0);
	test_write(t, "m2/w.bin", v, sizeof v);
	assert_int_equal(symlink("../m2/w.bin", test_path(t, "m/w.bin")), 0);
	external_model(t, "w.bin", NULL, NULL);
	bytes = model_pack(t, &len);
	test_write(t, "m/model.onnx", bytes, len);
	assert_int_equal(test_import(t, test_path(t, "m/model.onnx")), ST_INVALID);
	test_said(t, "a symbolic link stands in the way");
	/* the folder that the user names may be reached through one */
	assert_int_equal(unlink(test_path(t, "m/w.bin")), 0);
	test_write(t, "m/w.bin", v, sizeof v);
	assert_int_equal(symlink("m", test_path(t, "to-m")), 0);
	assert_int_equal(test_import(t, test_path(t, "to-m/model.onnx")), ST_OK);
}

/* Two tensors in one file, one in another; what lies behind the second is cut off. */
static void external_files(void **state)
{
	struct model_test *t = *state;
	static const float v[8] = {1, 2, 3, 4, 5, 6, 7, 8};
	test_write(t, "1.bin", v, sizeof v);
	test_write(t, "2.bin", v + 4, 4 * sizeof *v);
	external_model(t, "1.bin", "0", "16");
	model_external(t, model_tensor(t, "a", TENSOR_TYPE(FLOAT), "4"), "1.bin", "16", NULL);
	model_external(t, model_tensor(t, "b", TENSOR_TYPE(FLOAT), "3"), "2.bin", "4", NULL);
	assert_int_equal(model_import(t), ST_OK);
	assert_true(tensor_real(test_tensor(t, "w"), 3) == 4);
	assert_true(tensor_real(test_tensor(t, "a"), 0) == 5);
	assert_true(tensor_real(test_tensor(t, "b"), 2) == 8);
	test_write(t, "2.bin", v, 15);
	model_refused(t, ST_INVALID, "12 bytes from 4 on, of '2.bin' with 15");
	test_said(t, "b (tensor): ");
}

/* KiB of memory that is no file's. */
static long anonymous(void)
{
	char line[128];
	long kib = -1;
	FILE *f = fopen("/proc/self/status", "r");
	while (f && kib < 0 && fgets(line, sizeof line, f))
		if (sscanf(line, "RssAnon: %ld", &kib) != 1)
			kib = -1;
	if (f)
		fclose(f);
	return kib;
}

/* 2.25 GiB, in a file with holes: nothing of it is taken into memory of ours, and the last value is
 * where it should be. One byte less, and the tensor is named. */
static void external_vast(void **state)
{
	struct model_test *t = *state;
	static const float last = 3;
	static const char *const frozen[] = {"v*", NULL}; /* else they would be looked through */
	const off_t bytes = INT64_C(2415919104);
	test_write(t, "vast.bin", "", 0);
	const char *path = test_path(t, "vast.bin");
	const int fd = open(path, O_WRONLY);
	assert_true(fd >= 0);
	if (ftruncate(fd, bytes) != 0 || pwrite(fd, &last, 4, bytes - 4) != 4)
		skip(); /* a file system without such files */
	close(fd);
	t->graph.n_input = t->graph.n_node = t->graph.n_initializer = t->graph.n_output = 0;
	model_small(t);
	for (int i = 0; i < 9; i++) {
		char name[8], offset[24];
		snprintf(name, sizeof name, "v%d", i);
		snprintf(offset, sizeof offset, "%" PRId64, (int64_t)i << 28);
		model_external(t, model_tensor(t, name, TENSOR_TYPE(FLOAT), "8192,8192"),
			"vast.bin", offset, NULL);
	}
	t->options.freeze_pattern = frozen;
	const long before = anonymous();
	assert_int_equal(model_import(t), ST_OK);
	assert_true(tensor_real(test_tensor(t, "v8"), 8192 * 8192 - 1) == 3);
	assert_true(anonymous() - before < 65536);
	assert_int_equal(truncate(path, bytes - 1), 0);
	model_refused(t, ST_INVALID, "lies beyond the end of the file");
	test_said(t, "v8 (tensor): ");
}

static void other_writers(void **state)
{
	struct model_test *t = *state;
	t->options.batch = 3;
	assert_int_equal(test_import(t, FIXTURES "/newer.onnx"), ST_OK);
	assert_int_equal(test_import(t, FIXTURES "/torch.onnx"), ST_OK);
	assert_int_equal(t->g->nnode, 4);
	assert_int_equal(t->g->input[0]->dim[0], 3);
	assert_int_equal(test_tensor(t, "bias")->role, TR_PARAMETER);
	assert_true(tensor_real(test_tensor(t, "bias"), 3) == 3);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, model_setup, model_teardown)
	const struct CMUnitTest tests[] = {
		TEST(element_types),
		TEST(half_precision),
		TEST(values_that_do_not_fit),
		TEST(external_fixture),
		TEST(external_places),
		TEST(external_refused),
		TEST(external_neighbour),
		TEST(external_files),
		TEST(external_vast),
		TEST(other_writers),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
