/* The planner's JSON readers on damaged texts: the fuzzer's entry, fed with good texts in which
 * numbers, words and pieces were exchanged. More of the same: test_planner_readers COUNT [SEED]. */
#include "problems.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char costs[] =
	"{\"format\":\"stint-costs-1\",\"machine\":{\"cpu\":\"Abacus\",\"threads\":2},\"kernels\":["
	"{\"key\":\"A(f32[4]); C\",\"us\":1.5},{\"key\":\"B(f32[4]); C\",\"us\":2,"
	"\"roofline\":1,\"estimated\":true}]}";

/* A plan of planner_fuzz.c's graph. */
static const char plan[] =
	"{\"format\":\"stint-plan-1\",\"graph\":\"g\",\"budget_bytes\":100000,\"arena_bytes\":384,"
	"\"peak_bytes\":352,\"cost\":{\"once\":4,\"total\":4,\"lower_bound\":4},"
	"\"steps\":[{\"op\":7},{\"op\":8,\"choice\":0},{\"op\":9}],\"buffers\":["
	"{\"tensor\":0,\"offset\":0,\"bytes\":64,\"first_step\":0,\"last_step\":2},"
	"{\"tensor\":3,\"offset\":64,\"bytes\":64,\"first_step\":0,\"last_step\":2},"
	"{\"tensor\":1,\"offset\":128,\"bytes\":128,\"first_step\":0,\"last_step\":1},"
	"{\"tensor\":2,\"offset\":256,\"bytes\":64,\"first_step\":1,\"last_step\":2},"
	"{\"workspace_of\":8,\"offset\":320,\"bytes\":32,\"first_step\":1,\"last_step\":1},"
	"{\"tensor\":4,\"offset\":64,\"bytes\":64,\"first_step\":2,\"last_step\":2}]}";

static const char *const values[] = {"0", "1", "-1", "2", "64", "7", "9223372036854775807",
	"-9223372036854775808", "9223372036854775808", "4611686018427387904", "1152921504606846976",
	"2147483647", "2147483648", "4294967296", "0.5", "1e200", "1e300", "1e999", "1e-320",
	"null", "true", "[]", "{}", "[[]]", "\"\"", "\"update\"", "\"forward\"", "\"parameter\"",
	"\"state\"", "\"output\"", "NaN", "\"\xff\"", "\"\\u0000\""};

enum { ROOM = 16384 };

struct damaged {
	struct dice d;
	char text[ROOM];
	size_t len;
};

/* The piece [from, to) becomes `with`. */
static void splice(struct damaged *t, size_t from, size_t to, const char *with, size_t n)
{
	if (t->len - (to - from) + n >= ROOM)
		return;
	memmove(t->text + from + n, t->text + to, t->len - to);
	memcpy(t->text + from, with, n);
	t->len = t->len - (to - from) + n;
}

static bool in_value(char c)
{
	return c && !strchr(",:[]{} \n", c);
}

/* A number, word or key at or after a random place. */
static void pick(struct damaged *t, size_t *from, size_t *to)
{
	size_t at = (size_t)roll(&t->d, (int)t->len);
	while (at < t->len && !in_value(t->text[at]))
		at++;
	*from = *to = at;
	while (*from > 0 && in_value(t->text[*from - 1]))
		--*from;
	while (*to < t->len && in_value(t->text[*to]))
		++*to;
}

/* From a random opening bracket to where it closes. */
static void pick_group(struct damaged *t, size_t *from, size_t *to)
{
	size_t at = (size_t)roll(&t->d, (int)t->len);
	int depth = 0;
	while (at < t->len && t->text[at] != '{' && t->text[at] != '[')
		at++;
	*from = *to = at;
	while (*to < t->len) {
		char c = t->text[(*to)++];
		depth += (c == '{' || c == '[') - (c == '}' || c == ']');
		if (depth == 0)
			break;
	}
}

static void damage(struct damaged *t)
{
	char copy[ROOM];
	size_t from, to, a, b;
	const char *v = values[roll(&t->d, (int)(sizeof values / sizeof *values))];
	if (t->len < 2)
		return;
	pick(t, &from, &to);
	switch (roll(&t->d, 8)) {
	case 0: /* as another place has it */
	case 1:
		for (int i = 0; i < 20; i++) { /* a number for a number, a word for a word */
			pick(t, &a, &b);
			if ((t->text[a] == '"') == (t->text[from] == '"'))
				break;
		}
		memcpy(copy, t->text + a, b - a);
		splice(t, from, to, copy, b - a);
		break;
	case 2: /* a group gone, or twice */
		pick_group(t, &from, &to);
		splice(t, from, to, "", 0);
		break;
	case 3:
		pick_group(t, &from, &to);
		pick_group(t, &a, &b);
		memcpy(copy, t->text + from, to - from);
		copy[to - from] = ',';
		splice(t, a, a, copy, to - from + 1);
		break;
	case 4:
		t->text[roll(&t->d, (int)t->len)] = (char)roll(&t->d, 256);
		break;
	case 5:
		if (roll(&t->d, 4) == 0)
			t->len = (size_t)roll(&t->d, (int)t->len);
		break;
	default:
		splice(t, from, to, v, strlen(v));
	}
}

static void load(struct damaged *t, const char *text, size_t len)
{
	assert_true(len < ROOM);
	memcpy(t->text, text, len);
	t->len = len;
}

static void try_many(uint64_t seed, int count)
{
	static const struct shape tiny = {.nop = 5,
		.nparam = 2,
		.inplace = true,
		.workspace = true,
		.several = true,
		.once = true,
		.optional = true,
		.choices = true,
		.unit = 32,
		.most = 9};
	struct damaged *t = calloc(1, sizeof *t);
	assert_non_null(t);
	t->d.s = seed * 0x9e3779b97f4a7c15u + 5;
	for (int i = 0; i < count; i++) {
		struct arena *a = arena_new();
		struct text graph = {0};
		problem_print(random_problem(a, seed + (uint64_t)(i / 50), &tiny), &graph);
		if (i % 3 == 0)
			load(t, plan, sizeof plan - 1);
		else if (i % 12 == 1)
			load(t, costs, sizeof costs - 1);
		else
			load(t, graph.s, graph.len);
		for (int k = roll(&t->d, 2) * roll(&t->d, 4); k >= 0; k--)
			damage(t);
		LLVMFuzzerTestOneInput((const uint8_t *)t->text, t->len);
		text_free(&graph);
		arena_free(a);
	}
	free(t);
}

static void damaged_texts(void **state)
{
	(void)state;
	try_many(1, 20000);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(damaged_texts)};
	if (argc > 1) {
		try_many(argc > 2 ? strtoull(argv[2], NULL, 10) : 1, atoi(argv[1]));
		return 0;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
