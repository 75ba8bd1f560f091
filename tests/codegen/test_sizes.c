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

/* A kernel of this body, where "@12", "@1.5" and "@0.5f" are numbers that the writer has told. */
static void add(struct kernels *ks, const char *marked)
{
	static const struct op_def op = {.name = "stint.Try"};
	static struct kernel_arg args[] = {{'y', 0, "real"}, {'x', 0, "real"}};
	struct number *number = ARENA_ARRAY(ks->arena, struct number, MANY);
	struct text t = {0};
	int n = 0;
	assert_non_null(number);
	for (const char *p = marked; *p;) {
		const size_t plain = strcspn(p, "@");
		text_write(&t, p, plain);
		p += plain;
		if (!*p)
			break;
		const size_t len = strspn(++p, "0123456789.f");
		number[n++] = (struct number){.at = t.len,
			.len = len,
			.kind = p[len - 1] == 'f'     ? 'f'
				: memchr(p, '.', len) ? 'd'
						      : 'i'};
		text_write(&t, p, len);
		p += len;
	}
	assert_false(t.failed);
	ks->kernel[ks->n] = (struct kernel){.op = &op,
		.function = ks->n,
		.narg = 2,
		.arg = args,
		.about = "Try",
		.nstage = 1,
		.stage = {{.end = t.len}},
		.nnumber = n,
		.number = number,
		.body = arena_strdup(ks->arena, t.s)};
	assert_non_null(ks->kernel[ks->n++].body);
	text_free(&t);
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
			"\tTURNS(8, copy(y0 + @%d, x0 + @50176, @%d, @%d, from, to));\n", 1000 + i,
			7000 - i, 1000 + i);
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
		"\tTURNS(8, copy(y0 + n1, x0 + 50176, n2, n1, from, to));\n"
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
	add(ks, "\ty0[0] = x0[@1000];\n");
	add(ks, "\ty0[0] = x0[@1001];\n");
	add(ks, "\ty0[0] = x0[@1002];\n");
	assert_int_equal(functions(ks), 3);
	assert_string_equal(ks->kernel[2].name, "k003_try");
}

static void real_numbers_too(void **state)
{
	struct kernels *ks = *state;
	struct parameter p;
	for (int i = 10; i < 10 + MANY; i++) {
		char body[100];
		snprintf(body, sizeof body, "\ty0[0] = x0[0] * @1.%d5 + @0.%df;\n", i, i);
		add(ks, body);
	}
	assert_int_equal(functions(ks), 1);
	assert_true(kernel_parameter(&ks->kernel[0], 2, &p));
	assert_string_equal(p.type, "double ");
	assert_true(kernel_parameter(&ks->kernel[0], 3, &p));
	assert_string_equal(p.type, "float ");
	assert_string_equal(p.name, "n2");
	assert_false(kernel_parameter(&ks->kernel[0], 4, &p));
	assert_string_equal(ks->kernel[0].shared_body, "\ty0[0] = x0[0] * n1 + n2;\n");
	assert_string_equal(ks->kernel[4].size[1], "0.14f");
}

/* What the writer has not told is part of the form. */
static void others_stay(void **state)
{
	struct kernels *ks = *state;
	for (int i = 100; i < 100 + MANY; i++) {
		char body[100];
		snprintf(body, sizeof body, "\treal t[%d];\n\ty0[0] = t[0] + x0[@%d];\n", i, i);
		add(ks, body);
	}
	assert_int_equal(functions(ks), MANY);
}

/* A function's stages end where its own text does. */
static void stages_stand_apart(void **state)
{
	struct kernels *ks = *state;
	size_t len;
	for (int i = 0; i < MANY; i++) {
		char body[100];
		snprintf(body, sizeof body, "\tfirst(@%d);\n\tsecond(@%d);\n", 5 + i * i, 90 - i);
		add(ks, body);
		struct kernel *k = &ks->kernel[i];
		k->nstage = 2;
		k->stage[1].end = k->stage[0].end;
		k->stage[0].end = (size_t)(strstr(k->body, "\tsecond") - k->body);
	}
	assert_int_equal(functions(ks), 1);
	const char *stage = kernel_stage(&ks->kernel[0], 0, &len);
	assert_string_equal(arena_strndup(ks->arena, stage, len), "\tfirst(n1);\n");
	stage = kernel_stage(&ks->kernel[0], 1, &len);
	assert_string_equal(arena_strndup(ks->arena, stage, len), "\tsecond(n2);\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(numbers_become_parameters, setup, teardown),
		cmocka_unit_test_setup_teardown(few_stay_apart, setup, teardown),
		cmocka_unit_test_setup_teardown(real_numbers_too, setup, teardown),
		cmocka_unit_test_setup_teardown(others_stay, setup, teardown),
		cmocka_unit_test_setup_teardown(stages_stand_apart, setup, teardown)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
