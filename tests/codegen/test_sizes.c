/* Which kernels share a function, and its text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "codegen/parts.h"

enum { MANY = 16 };

static struct diag diag;

static int setup(void **state)
{
	struct arena *a = arena_new();
	struct kernels *ks = a ? ARENA_NEW(a, struct kernels) : NULL;
	if (!ks)
		return -1;
	*ks = (struct kernels){.arena = a, .diag = &diag, .cap = 64};
	ks->kernel = ARENA_ARRAY(a, struct kernel, ks->cap);
	*state = ks;
	return ks->kernel ? 0 : -1;
}

static int teardown(void **state)
{
	arena_free(((struct kernels *)*state)->arena);
	return 0;
}

static void add(struct kernels *ks, const char *body)
{
	static const struct op_def op = {.name = "stint.Try"};
	ks->kernel[ks->n] = (struct kernel){.op = &op,
		.function = ks->n,
		.params = "real *restrict y0, const real *restrict x0",
		.about = "Try",
		.body = arena_strdup(ks->arena, body)};
	assert_non_null(ks->kernel[ks->n++].body);
}

/* Kernels of `format`, each with its own number for @. */
static void add_many(struct kernels *ks, const char *format, int first, int step)
{
	for (int i = 0; i < MANY; i++) {
		char body[500];
		const int n = first + i * step;
		struct text t = {0};
		for (const char *p = format; *p; p++)
			if (*p == '@')
				text_add(&t, "%d", n);
			else
				text_write(&t, p, 1);
		assert_false(t.failed);
		snprintf(body, sizeof body, "%s", t.s);
		text_free(&t);
		add(ks, body);
	}
}

static int functions(struct kernels *ks)
{
	int n = 0;
	assert_int_equal(kernels_share(ks), ST_OK);
	assert_int_equal(kernels_name(ks), ST_OK);
	for (int i = 0; i < ks->n; i++)
		n += ks->kernel[i].function == i;
	return n;
}

static void numbers_become_parameters(void **state)
{
	struct kernels *ks = *state;
	for (int i = 0; i < MANY; i++) {
		char body[300];
		snprintf(body, sizeof body,
			"\tfor (int64_t i0 = 0; i0 < 8; i0++) /* of %d */\n"
			"\t\tmemcpy(&y0[i0 * %d], &x0[i0 * 50176 + %d], %d * sizeof(real));\n",
			100 + i, 1000 + i, 7000 - i, 1000 + i);
		add(ks, body);
	}
	assert_int_equal(functions(ks), 1);
	struct text t = {0};
	print_kernels(ks, &t);
	assert_string_equal(t.s,
		"\n/* Try\n * and 15 more of other sizes */\n"
		"KERNEL void k001_try(real *restrict y0, const real *restrict x0, int64_t n1, "
		"int64_t n2)\n"
		"{\n"
		"\tfor (int64_t i0 = 0; i0 < 8; i0++) /* of .. */\n"
		"\t\tmemcpy(&y0[i0 * n1], &x0[i0 * 50176 + n2], n1 * sizeof(real));\n"
		"}\n");
	t.len = 0;
	kernel_print_title(ks, 3, &t);
	assert_string_equal(t.s, "k001_try(1003, 6997)");
	text_free(&t);
	assert_string_equal(ks->kernel[3].name, "k001_try");
}

static void few_stay_apart(void **state)
{
	struct kernels *ks = *state;
	add(ks, "\ty0[0] = x0[1000];\n");
	add(ks, "\ty0[0] = x0[1001];\n");
	add(ks, "\ty0[0] = x0[1002];\n");
	assert_int_equal(functions(ks), 3);
	assert_string_equal(ks->kernel[2].name, "k003_try");
}

static void real_numbers_too(void **state)
{
	struct kernels *ks = *state;
	add_many(ks, "\ty0[0] = x0[0] * 1.@5 + 0.@f;\n", 10, 1);
	assert_int_equal(functions(ks), 1);
	assert_non_null(strstr(ks->kernel[0].shared_params, ", double n1, float n2"));
	assert_string_equal(ks->kernel[0].shared_body, "\ty0[0] = x0[0] * n1 + n2;\n");
	assert_string_equal(ks->kernel[4].size[1], "0.14f");
}

/* Bodies with a number in the place of @, which goes up from `first`. */
struct case_of_number {
	const char *body;
	int first, step;
};

/* Many of each share so many functions. */
static void expect(struct kernels *ks, const struct case_of_number *c, size_t n, int functions_left)
{
	for (size_t i = 0; i < n; i++) {
		ks->n = 0;
		add_many(ks, c[i].body, c[i].first, c[i].step);
		if (functions(ks) != functions_left)
			fail_msg("should be %d functions: %s", functions_left, c[i].body);
	}
}

/* What the compiler should see, or has to. */
static void some_numbers_stay(void **state)
{
	static const struct case_of_number stay[] = {
		{"\treal t[@];\n\ty0[0] = t[0];\n", 100, 16},
		{"\tdouble a = 0, t[@] = {0};\n\ty0[0] = (real)(a + t[0]);\n", 100, 16},
		{"\tstatic const int64_t a[] = {1,\n\t\t@};\n\ty0[0] = a[0];\n", 100, 1},
		{"\tenum { width = @ };\n\ty0[0] = width;\n", 100, 1},
		{"\ty0[0] = x0[3] / @;\n", 100, 1},
		{"\ty0[0] = 1000 % @;\n", 100, 1},
		{"\ty0[0] = @ >> 3;\n", 100, 1},
		{"\ty0[0] = x0[@];\n", 2, 1},                                        /* small */
		{"\tfor (int64_t i = 0; i < @; i++)\n\t\ty0[i] = x0[i];\n", 100, 8}, /* short */
		{"\ty0[0] = 0x@;\n", 100, 1},
		{"\ty0[0] = @u;\n", 100, 1},
		{"\tputs(\"@\");\n", 100, 1},
		{"#define A @\n\ty0[0] = A;\n#undef A\n", 100, 1},
	};
	expect(*state, stay, sizeof stay / sizeof *stay, MANY);
}

static void others_go(void **state)
{
	static const struct case_of_number go[] = {
		{"\tfor (int64_t i = 0; i < @; i++)\n\t\ty0[i] = x0[i];\n", 1000, 16},
		/* an outer loop, as few turns as it has */
		{"\tfor (int64_t i = 0; i < @; i++)\n\t\tfor (int64_t k = 0; k < 16; k++)\n"
		 "\t\t\ty0[i + k] = x0[i + k];\n",
			2, 1},
		{"\tfor (int64_t i = 0; i < @; i++) {\n\t\tfor (int64_t k = 0; k < 16; k++)\n"
		 "\t\t\ty0[i + k] = x0[i + k];\n\t}\n",
			2, 1},
		{"\treturn stint_lib_run(s->lib[@], in, out, ws);\n", 2, 1},
		{"\tconst real v = x0[7 * @];\n\ty0[0] = v;\n", 100, 1},
		{"\tdouble sum[16] = {0};\n\ty0[0] = (real)(sum[0] + @);\n", 100, 1},
	};
	expect(*state, go, sizeof go / sizeof *go, 1);
}

static void names_are_free(void **state)
{
	struct kernels *ks = *state;
	add_many(ks, "\tconst real n1 = x0[@];\n\ty0[0] = n1;\n", 100, 1);
	assert_int_equal(functions(ks), 1);
	assert_string_equal(
		ks->kernel[0].shared_body, "\tconst real n1 = x0[m1];\n\ty0[0] = n1;\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(numbers_become_parameters, setup, teardown),
		cmocka_unit_test_setup_teardown(few_stay_apart, setup, teardown),
		cmocka_unit_test_setup_teardown(real_numbers_too, setup, teardown),
		cmocka_unit_test_setup_teardown(some_numbers_stay, setup, teardown),
		cmocka_unit_test_setup_teardown(others_go, setup, teardown),
		cmocka_unit_test_setup_teardown(names_are_free, setup, teardown)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
