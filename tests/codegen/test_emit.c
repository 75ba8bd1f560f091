/* What operators' hooks write with: literals, indices, pointwise loops. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "codegen/emit.h"

static const struct target two_threads = {.portable = true, .threads = 2};

static struct tensor shape(enum dtype type, int rank, const int64_t *dim)
{
	struct tensor t = {.dtype = type, .rank = rank, .numel = 1, .name = ""};
	for (int i = 0; i < rank; i++) {
		t.dim[i] = dim[i];
		t.numel *= dim[i];
	}
	return t;
}
#define SHAPE(type, ...)                                                                           \
	shape(type, (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)),                     \
		(int64_t[]){__VA_ARGS__})

static void literals_read_back(void **state)
{
	(void)state;
	struct graph g = {.real = DT_F32};
	struct emit e = {.g = &g};
	char buf[40];
	static const double values[] = {0, -0.0, 0.1, 1.0 / 3, 1e-45, 3.4028234663852886e38,
		16777217, 1e10, -2.5, 123456.789, 1e22};
	for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
		g.real = DT_F32;
		emit_real(&e, values[i], buf);
		assert_int_equal(buf[strlen(buf) - 1], 'f');
		assert_non_null(strpbrk(buf, ".e"));
		assert_true(strtof(buf, NULL) == (float)values[i]);
		g.real = DT_F64;
		emit_real(&e, values[i], buf);
		assert_non_null(strpbrk(buf, ".e"));
		assert_true(strtod(buf, NULL) == values[i]);
	}
	g.real = DT_F32;
	assert_string_equal(emit_real(&e, 0.1, buf), "0.1f");
	assert_string_equal(emit_real(&e, 1, buf), "1.0f");
	assert_string_equal(emit_real(&e, 1e300, buf), "INFINITY");
	assert_string_equal(emit_real(&e, -(double)INFINITY, buf), "-INFINITY");
	assert_string_equal(emit_real(&e, (double)NAN, buf), "NAN");
}

static void broadcast_indices(void **state)
{
	(void)state;
	struct graph g = {.real = DT_F32};
	struct emit e = {.g = &g};
	const struct tensor out = SHAPE(DT_F32, 2, 3, 4), row = SHAPE(DT_F32, 4),
			    column = SHAPE(DT_F32, 3, 1), one = SHAPE(DT_F32, 1, 1);
	const struct tensor *const x[] = {&out, &row, &column, &one};
	for (int i = 0; i < 4; i++) {
		emit_broadcast_index(&e, x[i], &out);
		emit(&e, ";");
	}
	assert_string_equal(e.out.s, "i0*12+i1*4+i2;i2;i1;0;");
	text_free(&e.out);
}

static const struct op_option slope[] = {
	{.name = "alpha", .value = 0.25}, {.name = "unused", .value = 1}, {.name = NULL}};
static const struct op_def add = {.name = "add", .traits = OP_POINTWISE, .expr = "a + b"};
static const struct op_def leaky = {
	.name = "leaky", .traits = OP_POINTWISE, .expr = "a > 0 ? a : alpha * a", .option = slope};

static void check_pointwise(const struct op_def *op, struct tensor a, struct tensor b,
	struct tensor y, const char *expected)
{
	struct graph g = {.real = DT_F32, .target = &two_threads};
	struct emit e = {.g = &g};
	struct tensor *in[] = {&a, &b}, *out[] = {&y};
	const struct node n = {
		.op = op, .nin = op == &add ? 2 : 1, .nout = 1, .in = in, .out = out};
	assert_int_equal(emit_pointwise(&e, &n), ST_OK);
	assert_string_equal(e.out.s, expected);
	text_free(&e.out);
}

static void equal_shapes_are_one_loop(void **state)
{
	(void)state;
	const struct tensor x = SHAPE(DT_F32, 2, 3, 4);
	check_pointwise(&leaky, x, x, x,
		"\tconst real alpha = 0.25f;\n"
		"\tfor (int64_t i = 0; i < 24; i++) {\n"
		"\t\tconst real a = x0[i];\n"
		"\t\ty0[i] = a > 0 ? a : alpha * a;\n"
		"\t}\n");
}

static void axes_merge_around_a_broadcast(void **state)
{
	(void)state;
	const struct tensor x = SHAPE(DT_F32, 8, 16, 32, 32), bias = SHAPE(DT_F32, 16, 1, 1);
	check_pointwise(&add, x, bias, x,
		"\tPARALLEL_FOR(2)\n"
		"\tfor (int64_t i0 = 0; i0 < 8; i0++)\n"
		"\t\tfor (int64_t i1 = 0; i1 < 16; i1++)\n"
		"\t\t\tEACH\n"
		"\t\t\tfor (int64_t i2 = 0; i2 < 1024; i2++) {\n"
		"\t\t\t\tconst real a = x0[i0 * 16384 + i1 * 1024 + i2];\n"
		"\t\t\t\tconst real b = x1[i1];\n"
		"\t\t\t\ty0[i0 * 16384 + i1 * 1024 + i2] = a + b;\n"
		"\t\t\t}\n");
}

static void scalars_stay_outside(void **state)
{
	(void)state;
	const struct tensor x = SHAPE(DT_I64, 5, 2), one = SHAPE(DT_I64, 1);
	check_pointwise(&add, x, one, x,
		"\tconst int64_t b = x1[0];\n"
		"\tfor (int64_t i = 0; i < 10; i++) {\n"
		"\t\tconst int64_t a = x0[i];\n"
		"\t\ty0[i] = a + b;\n"
		"\t}\n");
}

static void loops_begin_where_the_last_statement_did(void **state)
{
	(void)state;
	struct graph g = {.real = DT_F32, .target = &two_threads};
	struct emit e = {.g = &g};
	const struct emit_loop loop[] = {{"b", 8, 1}, {"i", 40, 16}};
	emit(&e, "\treal *part = ws; /* [8][40] */\n");
	emit_loops(&e, 1e6, 2, loop);
	emit(&e, "\n\t\t\tpart[b * 40 + i] = 0;\n\t/* the rest */\n");
	emit_loops(&e, 8, 1, loop);
	emit(&e, " {\n");
	const size_t body = e.out.len;
	emit(&e, "\t\tif (b)\n\t\t\tcontinue;\n");
	emit_deeper(&e, body, 2);
	assert_string_equal(e.out.s, "\treal *part = ws; /* [8][40] */\n"
				     "\tPARALLEL_FOR(2)\n"
				     "\tfor (int64_t b = 0; b < 8; b++)\n"
				     "\t\tfor (int64_t i = 0; i < 40; i += 16)\n"
				     "\t\t\tpart[b * 40 + i] = 0;\n"
				     "\t/* the rest */\n"
				     "\tfor (int64_t b = 0; b < 8; b++) {\n"
				     "\t\t\t\tif (b)\n"
				     "\t\t\t\t\tcontinue;\n");
	text_free(&e.out);
}

/* Each stage of a kernel is launched in its own way, and loops begin anew. */
static void stages_are_launches(void **state)
{
	(void)state;
	static const struct target gpu = {.cuda = true, .threads = 1};
	struct graph g = {.real = DT_F32, .target = &gpu};
	struct emit e = {.g = &g};
	const struct emit_loop loop = {"i", 1000, 1};
	emit(&e, "\tfirst(y0, ws);\n");
	emit_launch(&e, 5, 64);
	emit_stage(&e);
	emit_loops(&e, 1000, 1, &loop);
	emit(&e, "\n\t\ty1[i] = x0[i];\n");
	emit_stage(&e);
	emit(&e, "\tlast(y1);\n");
	assert_int_equal(e.nstage, 2);
	assert_int_equal(e.stage[0].blocks, 5);
	assert_int_equal(e.stage[0].threads, 64);
	assert_int_equal(e.stage[1].blocks, 4);
	assert_int_equal(e.stage[1].threads, 256);
	assert_int_equal(e.tasks + e.nloop + e.turns, 0);
	assert_string_equal(e.out.s, "\tfirst(y0, ws);\n\f"
				     "\tfor (int64_t i = THREAD; i < 1000; i += THREADS)\n"
				     "\t\ty1[i] = x0[i];\n\f"
				     "\tlast(y1);\n");
	text_free(&e.out);
}

/* Turns end with their stage; their number stands in the text. */
static void stages_take_turns(void **state)
{
	(void)state;
	static const struct target gpu = {.cuda = true, .threads = 1};
	struct graph g = {.real = DT_F32, .target = &gpu};
	struct emit e = {.g = &g};
	emit_launch(&e, 5, 64);
	emit_repeat(&e, 128);
	emit(&e, "\tstep(y0, turn);\n");
	emit_stage(&e);
	emit_launch(&e, 3, 32);
	emit(&e, "\tlast(y0);\n");
	emit_stage(&e);
	assert_int_equal(e.stage[0].turns, 128);
	assert_int_equal(e.stage[0].blocks, 5);
	assert_int_equal(e.stage[1].turns, 0);
	assert_int_equal(e.stage[1].blocks, 3);
	assert_string_equal(e.out.s, "\tenum : int64_t { TURNS = 128 };\n"
				     "\tstep(y0, turn);\n\f"
				     "\tlast(y0);\n\f");
	text_free(&e.out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(literals_read_back),
		cmocka_unit_test(broadcast_indices), cmocka_unit_test(equal_shapes_are_one_loop),
		cmocka_unit_test(axes_merge_around_a_broadcast),
		cmocka_unit_test(scalars_stay_outside),
		cmocka_unit_test(loops_begin_where_the_last_statement_did),
		cmocka_unit_test(stages_are_launches), cmocka_unit_test(stages_take_turns)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
