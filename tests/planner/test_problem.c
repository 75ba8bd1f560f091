/* stint-graph-1: what is read is what was written; every fault is named. */
#include "problems.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const struct shape all = {.nop = 40,
	.nparam = 5,
	.inplace = true,
	.workspace = true,
	.several = true,
	.once = true,
	.optional = true,
	.choices = true,
	.branches = true,
	.unit = 100,
	.most = 9};

static void print_parse_print(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 50; seed++) {
		struct heard h;
		struct diag d = listen(&h);
		struct arena *a = arena_new();
		struct problem *p = random_problem(a, seed, &all), *q;
		((struct problem_choice *)p->op[0].choice)->cost = 1.0 / 3 + (double)seed;
		p->tensor[0].name = "a \"quoted\"\n\\ name \xc3\xa9 \xff";
		assert_int_equal(problem_validate(p, "made", &d), ST_OK);
		struct text s = {0}, t = {0};
		problem_print(p, &s);
		assert_int_equal(problem_parse(a, s.s, s.len, "text", &q, &d), ST_OK);
		assert_true(q->op[0].choice[0].cost == 1.0 / 3 + (double)seed);
		problem_print(q, &t);
		assert_int_equal(h.n, 0);
		if (seed > 1) /* 0xff comes back as U+00FF, which is stable from then on */
			assert_int_equal(q->ntensor, p->ntensor);
		struct problem *r;
		struct text u = {0};
		assert_int_equal(problem_parse(a, t.s, t.len, "text", &r, &d), ST_OK);
		problem_print(r, &u);
		assert_string_equal(t.s, u.s);
		text_free(&s);
		text_free(&t);
		text_free(&u);
		arena_free(a);
	}
}

#define HEAD "{\"format\":\"stint-graph-1\",\"name\":\"x\",\"tensors\":["
#define T(id, kind, bytes)                                                                         \
	"{\"id\":" #id ",\"name\":\"t" #id "\",\"bytes\":" bytes ",\"kind\":\"" kind "\"}"
#define OP(id, in, out, rest)                                                                      \
	"{\"id\":" #id ",\"name\":\"o" #id "\",\"phase\":\"forward\",\"inputs\":" in               \
	",\"outputs\":" out ",\"cost\":1,\"workspace\":0,\"inplace\":[]" rest "}"
#define UPDATE(id, in, out, pairs)                                                                 \
	"{\"id\":" #id ",\"name\":\"u" #id "\",\"phase\":\"update\",\"inputs\":" in                \
	",\"outputs\":" out ",\"cost\":1,\"workspace\":0,\"inplace\":" pairs "}"

/* Texts, how many faults each has at least, and a word that one of the messages says. */
static const struct {
	const char *text;
	int faults;
	const char *says;
} bad[] = {
	{"{", 1, "JSON"},
	{"[]", 1, "stint-graph-1"},
	{"{\"format\":\"other\"}", 1, "stint-graph-1"},
	{HEAD "],\"ops\":[],\"keep\":[]}", 1, "no ops"},
	{HEAD T(0, "input", "8") "," T(0, "activation", "8") "],\"ops\":[" OP(
		 1, "[0]", "[0]", "") "]}",
		1, ""},
	{HEAD T(0, "input", "8") "," T(1, "activation", "-8") "],\"ops\":[" OP(
		 1, "[0]", "[1]", "") "]}",
		1, "-8 bytes"},
	{HEAD T(0, "input", "8") "," T(1, "activation", "1.5") "],\"ops\":[" OP(
		 1, "[0]", "[1]", "") "]}",
		1, "whole"},
	{HEAD T(0, "input", "9223372036854775807") "," T(1, "activation", "8") "],\"ops\":[" OP(
		 1, "[0]", "[1]", "") "]}",
		1, "add up"},
	{HEAD T(0, "other", "8") "," T(1, "activation", "8") "],\"ops\":[" OP(
		 1, "[0]", "[1]", "") "]}",
		1, "unknown kind"},
	{HEAD T(0, "input", "8") "," T(1, "activation", "8") "],\"ops\":[" OP(
		 1, "[0,7]", "[1]", "") "]}",
		1, "tensor 7"},
	{HEAD T(0, "input", "8") "," T(1, "activation", "8") "," T(
		 2, "activation", "8") "],\"ops\":[" OP(1, "[0]", "[1]", "") "]}",
		1, "no op produces"},
	{HEAD T(0, "input", "8") "," T(1, "activation", "8") "," T(2, "activation",
		 "8") "],\"ops\":[" OP(1, "[2]", "[1]", "") "," OP(2, "[1]", "[2]", "") "]}",
		1, "before"},
	{HEAD T(0, "input", "8") "," T(1, "activation", "8") "],\"ops\":[" OP(
		 1, "[0]", "[1]", "") "," OP(2, "[0]", "[1]", "") "]}",
		1, "another op"},
	{HEAD T(0, "input", "8") "," T(1, "activation", "8") "],\"ops\":[" OP(
		 1, "[0]", "[1,1]", "") "]}",
		1, "twice"},
	{HEAD T(0, "input", "8") "," T(1, "activation", "8") "," T(2, "output",
		 "8") "],\"ops\":[" OP(1, "[0]", "[1]", "") "," OP(1, "[1]", "[2]", "") "]}",
		1, "op id 1"},
	{HEAD T(0, "input", "8") "," T(
		 1, "activation", "8") "],\"ops\":[{\"id\":1,\"name\":\"o\",\"phase\":\"sideways\","
				       "\"inputs\":[0],\"outputs\":[1],\"cost\":1}]}",
		1, "sideways"},
	{HEAD T(0, "input", "8") "," T(
		 1, "activation", "8") "],\"ops\":[{\"id\":1,\"name\":\"o\",\"phase\":\"forward\","
				       "\"inputs\":[0],\"outputs\":[1],\"cost\":-1}]}",
		1, "cost"},
	{HEAD T(0, "input", "8") "," T(
		 1, "activation", "8") "],\"ops\":[{\"id\":1,\"name\":\"o\",\"phase\":\"forward\","
				       "\"inputs\":[0],\"outputs\":[1],\"cost\":\"much\"}]}",
		1, "cost"},
	{HEAD T(0, "parameter", "8") "," T(1, "output", "16") "],\"ops\":[" UPDATE(
		 1, "[0]", "[1]", "[[1,0]]") "]}",
		1, "larger"},
	{HEAD T(0, "parameter", "8") "," T(1, "output", "8") "," T(
		 2, "output", "8") "],\"ops\":[" UPDATE(1, "[0]", "[1]", "[[1,0]]") "," UPDATE(2,
		 "[0]", "[2]", "[[2,0]]") "]}",
		2, "after its update"},
	{HEAD T(0, "parameter", "8") "," T(1, "output",
		 "8") "],\"ops\":[{\"id\":1,\"name\":\"o\",\"phase\":\"backward\",\"inputs\":[0],"
		      "\"outputs\":[1],\"cost\":1,\"inplace\":[[1,0]]}]}",
		1, "overwrites"},
	{HEAD T(0, "input", "8") "," T(1, "output",
		 "8") "],\"ops\":[{\"id\":1,\"name\":\"o\",\"phase\":\"backward\",\"inputs\":[0],"
		      "\"outputs\":[1],\"cost\":1,\"inplace\":[[0,1]]}]}",
		1, "not an output"},
	{HEAD T(0, "input", "8") "," T(1, "activation", "8") "],\"ops\":[" OP(
		 1, "[0]", "[1]", "") "],\"keep\":[9]}",
		1, "tensor 9"},
	{HEAD T(0, "input", "8") "," T(1, "activation", "8") "],\"ops\":[" OP(
		 1, "[0]", "[1]", ",\"choices\":[]") "]}",
		1, "choices"},
	{HEAD T(0, "input", "8") "," T(1, "activation", "8") "],\"ops\":[" OP(
		 1, "[0]", "[1]", ",\"when\":7") "]}",
		1, "tensor 7"},
	{HEAD T(0, "input", "8") "," T(1, "activation", "8") "," T(
		 2, "input", "1") "],\"ops\":[" OP(1, "[0]", "[1]", ",\"when\":2") "]}",
		1, "\"when\" is a tensor that the op does not read list it under \"inputs\""},
	{HEAD T(0, "input", "-1") "," T(1, "activation", "-2") "],\"ops\":[" OP(
		 1, "[5]", "[1]", "") "],\"keep\":[9]}",
		4, ""},
};

struct all_heard {
	int n;
	char text[8192];
};

static void hear_all(void *user, enum diag_level level, const struct where *w, const char *message,
	const char *hint)
{
	struct all_heard *h = user;
	size_t len = strlen(h->text);
	(void)level;
	snprintf(h->text + len, sizeof h->text - len, "%s %s %s %s\n", w->file ? w->file : "",
		w->node ? w->node : "", message, hint ? hint : "");
	h->n++;
}

static void faults_are_named(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct all_heard h = {0};
		struct diag d = {.put = hear_all, .user = &h};
		struct arena *a = arena_new();
		struct problem *p;
		int st = (int)problem_parse(
			a, bad[i].text, strlen(bad[i].text), "bad.json", &p, &d);
		if (st != ST_INVALID || h.n < bad[i].faults || !strstr(h.text, bad[i].says))
			fail_msg("text %zu: status %d, %d faults:\n%s", i, st, h.n, h.text);
		assert_non_null(strstr(h.text, "bad.json"));
		arena_free(a);
	}
}

/* Every text cut short, and every text with one byte changed, is refused or read; never a crash. */
static void damaged_texts(void **state)
{
	(void)state;
	struct arena *a = arena_new();
	struct heard h;
	struct problem *p = random_problem(a, 7, &all), *q;
	struct text s = {0};
	int refused = 0;
	problem_print(p, &s);
	struct dice dice = {99};
	for (int i = 0; i < 2000; i++) {
		struct diag d = listen(&h);
		struct arena *b = arena_new();
		char *copy = arena_strndup(b, s.s, s.len);
		size_t len = s.len;
		if (i % 2)
			len = (size_t)roll(&dice, (int)s.len);
		else
			copy[roll(&dice, (int)s.len)] = "0123456789[]{},:\"-e"[roll(&dice, 19)];
		enum status st = problem_parse(b, copy, len, "damaged", &q, &d);
		assert_true(st == ST_OK || st == ST_INVALID);
		assert_true((st == ST_OK) == (h.n == 0));
		refused += st != ST_OK;
		arena_free(b);
	}
	assert_true(refused > 1000);
	text_free(&s);
	arena_free(a);
}

static void hand_made_costs(void **state)
{
	(void)state;
	const double worst[] = {NAN, INFINITY, -1, 1e300};
	for (int i = 0; i < 4; i++) {
		struct heard h;
		struct diag d = listen(&h);
		struct arena *a = arena_new();
		struct problem *p = chain_problem(a, 3, 64);
		((struct problem_choice *)p->op[2].choice)->cost = worst[i];
		assert_int_equal(problem_validate(p, "made", &d), ST_INVALID);
		assert_true(h.n >= 1);
		arena_free(a);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(print_parse_print),
		cmocka_unit_test(faults_are_named),
		cmocka_unit_test(damaged_texts),
		cmocka_unit_test(hand_made_costs),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
