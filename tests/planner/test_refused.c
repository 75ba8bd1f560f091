/* test_planner_refused TABLE: what is said of graphs, plans and costs that do not fit. TABLE holds
 *a good text of each, `graph {...}`, and lines that change one of them:
 *
 *	graph "bytes":64 => "bytes":-1 | x: tensor has -1 bytes
 *
 * The first piece of such letters becomes the other, and then one of the messages, "node: message",
 * is the words behind the bar. Plans are read against the good graph, and checked. Lines that begin
 * with # say something to the reader. */
#include "planner/problem/costs.h"
#include "problems.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const char *table_path;

enum { GRAPH, PLAN, COSTS, KINDS };
static const char *const kinds[] = {"graph", "plan", "costs"};

struct said {
	struct text all; /* a line each, between line feeds */
};

static void put(void *user, enum diag_level level, const struct where *w, const char *message,
	const char *hint)
{
	struct said *s = user;
	(void)hint;
	assert_int_equal(level, DIAG_ERROR);
	assert_string_equal(w->file, "a.json");
	text_add(&s->all, "%s%s%s\n", w->node ? w->node : "", w->node ? ": " : "", message);
}

static enum status read_one(
	struct arena *a, int kind, const char *graph, const char *text, struct diag *d)
{
	struct problem *p;
	struct plan *plan;
	struct costs *c;
	if (kind == COSTS)
		return costs_parse(a, text, strlen(text), "a.json", &c, d);
	if (kind == GRAPH)
		return problem_parse(a, text, strlen(text), "a.json", &p, d);
	assert_int_equal(problem_parse(a, graph, strlen(graph), "a.json", &p, d), ST_OK);
	TRY(plan_parse(a, p, text, strlen(text), "a.json", &plan, d));
	return plan_check(p, plan, 64, "a.json", d);
}

/* `text` with the first piece `from` as `to`. */
static const char *changed(struct arena *a, const char *text, const char *from, const char *to)
{
	const char *at = strstr(text, from);
	if (!at)
		fail_msg("there is no %s", from);
	return arena_printf(a, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
}

/* Whether the changed text is refused as the line says; prints why not. */
static bool is_refused(struct arena *a, int kind, char *const *good, char *change)
{
	char *to = strstr(change, " => "), *words = to ? strstr(to, " | ") : NULL;
	struct said said = {{0}};
	struct diag d = {.put = put, .user = &said};
	if (!words)
		fail_msg("no change: %s", change);
	*to = *words = '\0';
	const char *text = changed(a, good[kind], change, to + 4);
	text_puts(&said.all, "\n");
	const enum status st = read_one(a, kind, good[GRAPH], text, &d);
	const char *want = arena_printf(a, "\n%s\n", words + 3);
	const bool ok = st == ST_INVALID && strstr(said.all.s, want);
	if (!ok)
		print_error("%s %s => %s | %s\n\tstatus %d:%s", kinds[kind], change, to + 4,
			words + 3, (int)st, said.all.s);
	text_free(&said.all);
	return ok;
}

static void refused(void **state)
{
	(void)state;
	struct arena *a = arena_new();
	FILE *f = fopen(table_path, "r");
	char *line = NULL, *good[KINDS] = {0};
	size_t room = 0;
	int n = 0, failed = 0;
	assert_non_null(f);
	while (getline(&line, &room, f) > 0) {
		line[strcspn(line, "\n")] = '\0';
		if (!*line || *line == '#')
			continue;
		char *rest = arena_strdup(a, line), *word = strsep(&rest, " ");
		int kind = 0;
		while (kind < KINDS && strcmp(word, kinds[kind]) != 0)
			kind++;
		assert_true(kind < KINDS && rest);
		if (good[kind]) {
			n++;
			failed += !is_refused(a, kind, good, rest);
			continue;
		}
		struct said said = {{0}};
		struct diag d = {.put = put, .user = &said};
		good[kind] = rest;
		if (read_one(a, kind, good[GRAPH], rest, &d) != ST_OK)
			fail_msg("the %s: %s", word, said.all.s);
	}
	free(line);
	fclose(f);
	arena_free(a);
	print_message("%d texts\n", n);
	assert_true(n > 50);
	assert_int_equal(failed, 0);
}

/* --- What no file can hold --- */

/* The good text of a kind. */
static const char *good_text(struct arena *a, int kind)
{
	FILE *f = fopen(table_path, "r");
	char *line = NULL;
	const char *found = NULL;
	const size_t n = strlen(kinds[kind]);
	size_t room = 0;
	assert_non_null(f);
	while (!found && getline(&line, &room, f) > 0)
		if (!strncmp(line, kinds[kind], n) && line[n] == ' ')
			found = arena_strdup(a, line + n + 1);
	free(line);
	fclose(f);
	return found;
}

struct made {
	struct problem *p;
	struct plan *plan;
};

static void no_kind(struct made *m)
{
	m->p->tensor[0].kind = (enum tensor_kind)9;
}

static void no_phase(struct made *m)
{
	m->p->op[0].phase = (enum phase)9;
}

static void no_way(struct made *m)
{
	m->p->op[0].nchoice = 0;
}

static void fewer_than_none(struct made *m)
{
	((struct problem_choice *)(uintptr_t)m->p->op[0].choice)->nin = -1;
}

static void no_input(struct made *m)
{
	((int *)(uintptr_t)m->p->op[0].choice->in)[0] = 99;
}

static void no_output(struct made *m)
{
	((int *)(uintptr_t)m->p->op[0].choice->out)[0] = 99;
}

static void no_pair(struct made *m)
{
	((struct problem_pair *)(uintptr_t)m->p->op[2].pair)->in = 99;
}

static void update_again(struct made *m)
{
	m->p->op[2].recomputable = true;
}

static void no_op(struct made *m)
{
	m->plan->step[0].op = 99;
}

static void no_choice(struct made *m)
{
	m->plan->step[1].choice = 5;
}

static void other_run(struct made *m)
{
	m->plan->step[0].run = 3;
}

static void nobodys_buffer(struct made *m)
{
	m->plan->buffer[0].tensor = 99;
}

static const struct {
	void (*change)(struct made *m);
	const char *said;
} made[] = {
	{no_kind, "x: unknown tensor kind 9"},
	{no_phase, "a: unknown phase 9"},
	{no_way, "a: has no way to execute"},
	{fewer_than_none, "a: negative number of inputs or outputs"},
	{no_input, "a: input 0 names no tensor"},
	{no_output, "a: output 0 names no tensor"},
	{no_pair, "c: in-place pair 0 names no tensor"},
	{update_again, "c: an update op runs exactly once"},
	{no_op, "step 0 names no op"},
	{no_choice, "b: step 1: there is no choice 5"},
	{other_run, "a: step 0 is run 0 of this op, not 3"},
	{nobodys_buffer, "buffer 0 names neither a tensor nor an op"},
};

static void refused_when_made(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof made / sizeof *made; i++) {
		struct arena *a = arena_new();
		struct said said = {{0}};
		struct diag d = {.put = put, .user = &said};
		struct made m;
		const char *graph = good_text(a, GRAPH), *plan = good_text(a, PLAN);
		assert_int_equal(problem_parse(a, graph, strlen(graph), "a.json", &m.p, &d), ST_OK);
		assert_int_equal(
			plan_parse(a, m.p, plan, strlen(plan), "a.json", &m.plan, &d), ST_OK);
		made[i].change(&m);
		enum status st = problem_validate(m.p, "a.json", &d);
		if (st == ST_OK)
			st = plan_check(m.p, m.plan, 64, "a.json", &d);
		assert_int_equal(st, ST_INVALID);
		if (!strstr(said.all.s, made[i].said))
			fail_msg("no '%s' in:\n%s", made[i].said, said.all.s);
		text_free(&said.all);
		arena_free(a);
	}
}

int main(int argc, char **argv)
{
	if (argc != 2)
		return 2;
	table_path = argv[1];
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(refused), cmocka_unit_test(refused_when_made)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
