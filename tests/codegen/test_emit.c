/* What operators' hooks write with: literals, pointwise loops. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codegen/parts.h"
#include "graph/op_optimizer.h"

static const struct target two_threads = {.portable = true, .threads = 2};

/* Nothing runs in place. */
#define NOWHERE                                                                                    \
	{                                                                                          \
		-1, -1, -1, -1                                                                     \
	}

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

static const struct op_option slope[] = {
	{.name = "alpha", .value = 0.25}, {.name = "unused", .value = 1}, {.name = NULL}};
static const struct op_def add = {.name = "add", .traits = OP_POINTWISE, .expr = "a + b"};
static const struct op_def leaky = {
	.name = "leaky", .traits = OP_POINTWISE, .expr = "a > 0 ? a : alpha * a", .option = slope};

static void check_pointwise(const struct op_def *op, struct tensor a, struct tensor b,
	struct tensor y, const char *expected)
{
	struct graph g = {.real = DT_F32, .target = &two_threads, .arena = arena_new()};
	bool used[3] = {false};
	struct body_uses uses = {.x = used, .y = used + 2};
	struct emit e = {.g = &g, .in_place = NOWHERE, .uses = &uses};
	struct tensor *in[] = {&a, &b}, *out[] = {&y};
	const struct node n = {
		.op = op, .nin = op == &add ? 2 : 1, .nout = 1, .in = in, .out = out};
	assert_int_equal(emit_pointwise(&e, &n), ST_OK);
	assert_string_equal(e.out.s, expected);
	text_free(&e.out);
	arena_free(g.arena);
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

/* The numbers that other kernels may have in the place of this one's: "8 16384 1024". */
static void check_told(struct tensor a, struct tensor b, struct tensor y, const char *expected)
{
	struct graph g = {.real = DT_F32, .target = &two_threads, .arena = arena_new()};
	bool x[2] = {false}, out = false;
	struct body_uses uses = {.x = x, .y = &out};
	struct emit e = {.g = &g, .in_place = NOWHERE, .uses = &uses};
	struct tensor *in[] = {&a, &b}, *outs[] = {&y};
	const struct node n = {.op = &add, .nin = 2, .nout = 1, .in = in, .out = outs};
	struct text t = {0};
	assert_int_equal(emit_pointwise(&e, &n), ST_OK);
	assert_true(uses.told && x[0] && x[1] && out && !uses.ws);
	for (int i = 0; i < uses.nnumber; i++)
		text_add(&t, "%s%.*s", i ? " " : "", (int)uses.number[i].len,
			e.out.s + uses.number[i].at);
	assert_string_equal(t.len ? t.s : "", expected);
	text_free(&t);
	text_free(&e.out);
	arena_free(g.arena);
}

/* Strides up to 16 and short innermost loops stay, for the compiler to see. */
static void numbers_are_told(void **state)
{
	(void)state;
	const struct tensor x = SHAPE(DT_F32, 8, 5, 32, 32), bias = SHAPE(DT_F32, 5, 1, 1);
	check_told(x, bias, x, "8 5 1024 5120 1024 5120 1024");
	const struct tensor flat = SHAPE(DT_F32, 200), longer = SHAPE(DT_F32, 300);
	check_told(flat, flat, flat, "");
	check_told(longer, longer, longer, "300");
	const struct tensor thin = SHAPE(DT_F32, 7, 9), row = SHAPE(DT_F32, 9);
	check_told(thin, row, thin, "7");
}

/* Which inputs a + b has for parameters where its output takes such inputs' bytes. */
static void check_in_place(const int place_of[2], bool first, bool second, const char *text)
{
	struct graph g = {.real = DT_F32, .target = &two_threads, .arena = arena_new()};
	bool x[2] = {false}, out = false;
	struct body_uses uses = {.x = x, .y = &out};
	struct emit e = {.g = &g, .place_of = place_of, .uses = &uses};
	struct tensor a = SHAPE(DT_F32, 6), *in[] = {&a, &a}, *outs[] = {&a};
	const struct node n = {.op = &add, .nin = 2, .nout = 1, .in = in, .out = outs};
	assert_int_equal(emit_pointwise(&e, &n), ST_OK);
	assert_true(x[0] == first && x[1] == second && out);
	assert_string_equal(e.out.s, text);
	text_free(&e.out);
	arena_free(g.arena);
}

/* An input whose bytes the output takes goes by the output's name, and is no parameter: both do,
 * where they are one tensor. */
static void in_place_has_one_name(void **state)
{
	(void)state;
	check_in_place((const int[]){-1, 0}, true, false,
		"\tfor (int64_t i = 0; i < 6; i++) {\n"
		"\t\tconst real a = x0[i];\n"
		"\t\tconst real b = y0[i];\n"
		"\t\ty0[i] = a + b;\n"
		"\t}\n");
	check_in_place((const int[]){0, 0}, false, false,
		"\tfor (int64_t i = 0; i < 6; i++) {\n"
		"\t\tconst real a = y0[i];\n"
		"\t\tconst real b = y0[i];\n"
		"\t\ty0[i] = a + b;\n"
		"\t}\n");
}

static void a_text_that_is_no_expression_is_a_bug(void **state)
{
	(void)state;
	static const struct op_def odd = {.name = "odd", .traits = OP_POINTWISE, .expr = "a + i"};
	struct diag d = {0};
	struct graph g = {.real = DT_F32, .target = &two_threads, .diag = &d};
	struct emit e = {.g = &g};
	struct tensor a = SHAPE(DT_F32, 6), *t[] = {&a};
	const struct node n = {.op = &odd, .nin = 1, .nout = 1, .in = t, .out = t};
	assert_int_equal(emit_pointwise(&e, &n), ST_INTERNAL);
	assert_int_equal(d.errors, 1);
	assert_null(e.out.s);
}

/* --- Optimizers' rules --- */

static void keep_message(void *user, enum diag_level level, const struct where *w,
	const char *message, const char *hint)
{
	(void)level, (void)w, (void)hint;
	snprintf(user, 200, "%s", message);
}

/* What emit_update makes of a rule with two states, for parameters of 6 elements. */
static enum status update_text(
	const struct op_line *each, double speed, bool product, char said[200], struct text *out)
{
	static const struct op_line once[] = {{"rate", "lr / t"}, {"unread", "lr"}, {NULL, NULL}};
	static const struct op_state state[] = {
		{.name = "mean"}, {.name = "top", .with = "speed"}, {.name = NULL}};
	static const struct op_option option[] = {{.name = "lr"}, {.name = "speed"},
		{.name = "weight_decay", .value = 0.5}, {.name = NULL}};
	const struct op_optimizer o = {.name = "made", .state = state, .once = once, .each = each};
	const struct op_def op = {.name = "made", .option = option, .optimizer = &o};
	const struct attr attr = ATTR_F("speed", speed);
	struct diag d = {.put = keep_message, .user = said};
	struct graph g = {.real = DT_F32, .target = &two_threads, .diag = &d, .arena = arena_new()};
	bool used[16] = {false};
	struct body_uses uses = {.x = used, .y = used + 10};
	struct emit e = {.g = &g, .in_place = NOWHERE, .uses = &uses};
	struct tensor x = SHAPE(DT_F32, 6), one = SHAPE(DT_F32, 1), control = SHAPE(DT_I64, 4),
		      column = SHAPE(DT_F32, 2), row = SHAPE(DT_F32, 3);
	struct tensor *in[8] = {&x, product ? NULL : &x, &one, &control, &x, &x};
	int nin = speed != 0 ? 6 : 5;
	if (product) {
		in[nin++] = &column;
		in[nin++] = &row;
	}
	const struct node n = {.op = &op,
		.nin = nin,
		.nout = nin - 3,
		.in = in,
		.out = in,
		.nattr = 1,
		.attr = &attr};
	const enum status st = emit_update(&e, &n);
	*out = e.out;
	arena_free(g.arena);
	return st;
}

static void a_rule_is_a_loop(void **state)
{
	(void)state;
	static const struct op_line each[] = {{"mean", "mean + (1 - speed) * g"},
		{"top", "MAX(top, mean)"}, {"step", "rate * (speed ? top : mean)"},
		{"unread", "g * g"}, {"p", "p - step"}, {NULL, NULL}};
	struct text out;
	char said[200];
	assert_int_equal(update_text(each, 0, false, said, &out), ST_OK);
	assert_string_equal(out.s, "\tconst double lr = (double)x2[0];\n"
				   "\tconst double t = (double)(x3[1] + 1);\n"
				   "\tconst real rate = R(lr / t);\n"
				   "\tif (x3[3])\n\t\treturn;\n"
				   "\tRANGE (6) {\n"
				   "\t\tEACH\n"
				   "\t\tfor (int64_t i = from; i < to; i++) {\n"
				   "\t\t\treal p = x0[i];\n"
				   "\t\t\treal mean = x4[i];\n"
				   "\t\t\tconst real g = x1[i] + R(0.5) * p;\n"
				   "\t\t\tmean = mean + R(1 - 0.0) * g;\n"
				   "\t\t\tconst real step = rate * (mean);\n"
				   "\t\t\tp = p - step;\n"
				   "\t\t\ty1[i] = mean;\n"
				   "\t\t\ty0[i] = p;\n"
				   "\t\t}\n\t}\n");
	text_free(&out);
	assert_int_equal(update_text(each, 0.25, true, said, &out), ST_OK);
	assert_non_null(strstr(out.s, "\t\tIN_ROWS (3) {\n"));
	assert_non_null(strstr(out.s, "const real g = (0 + x6[r] * x7[i - r * 3]) + R(0.5) * p;"));
	assert_non_null(strstr(out.s, "top = MAX(top, mean);"));
	assert_non_null(strstr(out.s, "step = rate * (top);"));
	text_free(&out);
}

static void a_rule_that_is_none_is_a_bug(void **state)
{
	(void)state;
	static const struct op_line each[] = {{"p", "p - lrate * g"}, {NULL, NULL}};
	struct text out;
	char said[200];
	assert_int_equal(update_text(each, 0, false, said, &out), ST_INTERNAL);
	assert_string_equal(said,
		"the record's rule is not understood at \"lrate * g\": no operand, "
		"option or function");
	assert_null(out.s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(literals_read_back),
		cmocka_unit_test(equal_shapes_are_one_loop),
		cmocka_unit_test(axes_merge_around_a_broadcast),
		cmocka_unit_test(scalars_stay_outside), cmocka_unit_test(numbers_are_told),
		cmocka_unit_test(in_place_has_one_name),
		cmocka_unit_test(a_text_that_is_no_expression_is_a_bug),
		cmocka_unit_test(a_rule_is_a_loop), cmocka_unit_test(a_rule_that_is_none_is_a_bug)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
