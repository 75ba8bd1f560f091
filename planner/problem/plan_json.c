/* stint-plan-1, written and read. */
#include "planner/plan.h"
#include "planner/problem/idmap.h"
#include "planner/problem/json_text.h"
#include "planner/problem/loop_facts.h"

#include <inttypes.h>
#include <jansson.h>
#include <limits.h>
#include <string.h>

static void print_buffer(const struct problem *p, const struct plan_buffer *b, struct text *out)
{
	if (b->tensor >= 0)
		text_add(out, "{\"tensor\":%" PRId64, p->tensor[b->tensor].id);
	else
		text_add(out, "{\"workspace_of\":%" PRId64, p->op[b->workspace_of].id);
	text_add(out,
		",\"offset\":%" PRId64 ",\"bytes\":%" PRId64 ",\"first_step\":%d,\"last_step\":%d}",
		b->offset, b->bytes, b->first_step, b->last_step);
}

static void print_step(const struct problem *p, const struct plan_step *s, struct text *out)
{
	const struct problem_op *op = &p->op[s->op];
	if (op->offloads)
		text_add(out, "{\"offload\":%" PRId64, p->tensor[op->offloads - 1].id);
	else if (op->fetches)
		text_add(out, "{\"fetch\":%" PRId64, p->tensor[op->fetches - 1].id);
	else
		text_add(out, "{\"op\":%" PRId64, op->id);
	if (op->has_choices)
		text_add(out, ",\"choice\":%d", s->choice);
	if (op->when) {
		text_puts(out, ",\"when\":");
		json_text_string(out, p->tensor[op->when - 1].name);
	}
}

/* Of the ops that are loops what the graph says, for who reads a plan alone. */
static void print_loops(const struct problem *p, struct text *out)
{
	bool any = false;
	for (int o = 0; o < p->nop; o++) {
		if (!p->op[o].loop)
			continue;
		text_add(out, "%s{\"op\":%" PRId64 ",", any ? ",\n" : "],\n\"loops\":[\n",
			p->op[o].id);
		loop_print(p->op[o].loop, false, out);
		text_puts(out, "}");
		any = true;
	}
	text_puts(out, any ? "\n" : "");
}

static void print_bytes(struct text *out, int64_t bytes)
{
	if (bytes == INT64_MAX)
		text_puts(out, "null");
	else
		text_add(out, "%" PRId64, bytes);
}

void plan_print(const struct problem *p, const struct plan *plan, struct text *out)
{
	text_puts(out, "{\"format\":\"stint-plan-1\",\"graph\":");
	json_text_string(out, plan->graph);
	if (p->costs) {
		text_puts(out, ",\"costs\":");
		json_text_string(out, p->costs);
	}
	text_puts(out, ",\"budget_bytes\":");
	print_bytes(out, plan->budget_bytes);
	if (!plan->feasible) {
		text_add(out,
			",\"feasible\":false,\"min_bytes_known\":%" PRId64
			",\"min_bytes_proven\":%" PRId64 "}\n",
			plan->min_bytes_known, plan->min_bytes_proven);
		return;
	}
	text_add(out,
		",\"arena_bytes\":%" PRId64 ",\"peak_bytes\":%" PRId64 ",\n\"cost\":{\"once\":",
		plan->arena_bytes, plan->peak_bytes);
	json_text_double(out, plan->cost_once);
	text_puts(out, ",\"total\":");
	json_text_double(out, plan->cost_total);
	text_puts(out, ",\"lower_bound\":");
	if (plan->lower_bound < 0)
		text_puts(out, "null");
	else
		json_text_double(out, plan->lower_bound);
	text_puts(out, "},\n\"steps\":[\n");
	for (int s = 0; s < plan->nstep; s++) {
		print_step(p, &plan->step[s], out);
		text_puts(out, s + 1 < plan->nstep ? "},\n" : "}\n");
	}
	text_puts(out, "],\n\"buffers\":[\n");
	for (int i = 0; i < plan->nbuffer; i++) {
		print_buffer(p, &plan->buffer[i], out);
		text_puts(out, i + 1 < plan->nbuffer ? ",\n" : "\n");
	}
	print_loops(p, out);
	text_puts(out, "]}\n");
}

/* --- Reading --- */

struct reader {
	struct arena *a;
	const struct problem *p;
	const char *file;
	struct diag *d;
	struct idmap tensors, ops;
	bool bad, nomem;
};

static void fault(struct reader *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void fault(struct reader *r, const char *fmt, ...)
{
	struct where w = {.file = r->file};
	va_list ap;
	va_start(ap, fmt);
	diag_vfail(r->d, ST_INVALID, &w, NULL, fmt, ap);
	va_end(ap);
	r->bad = true;
}

/* Of entry i of a list of `what`; NULL: of the plan itself. */
static int64_t whole(struct reader *r, const json_t *o, const char *key, const char *what, int i)
{
	const json_t *v = json_object_get(o, key);
	if (!json_is_integer(v) && what)
		fault(r, "%s %d: \"%s\" is not a whole number", what, i, key);
	else if (!json_is_integer(v))
		fault(r, "\"%s\" is not a whole number", key);
	return json_integer_value(v);
}

static int step_number(struct reader *r, const json_t *o, const char *key, int i)
{
	int64_t v = whole(r, o, key, "buffer", i);
	if (v < INT_MIN || v > INT_MAX) {
		fault(r, "buffer %d: \"%s\" is out of range", i, key);
		return -1;
	}
	return (int)v;
}

static double number(struct reader *r, const json_t *o, const char *key)
{
	const json_t *v = json_object_get(o, key);
	if (!json_is_number(v))
		fault(r, "\"cost\": \"%s\" is not a number", key);
	return json_number_value(v);
}

static int find_id(
	struct reader *r, const struct idmap *m, const json_t *v, const char *what, int i)
{
	int x = json_is_integer(v) ? idmap_get(m, json_integer_value(v)) : -1;
	if (x < 0)
		fault(r, "%s %d: names what the graph does not have", what, i);
	return x;
}

/* The op of a step: by its id, or by the tensor that it moves. */
static int step_op(struct reader *r, const json_t *e, int i)
{
	const json_t *away = json_object_get(e, "offload"), *back = json_object_get(e, "fetch");
	if (!away && !back)
		return find_id(r, &r->ops, json_object_get(e, "op"), "step", i);
	const int t = find_id(r, &r->tensors, away ? away : back, "step", i);
	for (int o = r->p->nop - 1; t >= 0 && o >= 0 && problem_op_transfers(&r->p->op[o]); o--)
		if ((away ? r->p->op[o].offloads : r->p->op[o].fetches) == 1 + t)
			return o;
	if (t >= 0)
		fault(r, "step %d: the graph has no such transfer of tensor %lld", i,
			(long long)r->p->tensor[t].id);
	return -1;
}

/* "when" is a name, for people: the graph says by an id what it is. */
static void check_when(struct reader *r, const json_t *e, int i, const struct problem_op *op)
{
	const json_t *when = json_object_get(e, "when");
	if (when && (!json_is_string(when) || !op->when))
		fault(r, "step %d: \"when\" is %s", i,
			op->when ? "not a string" : "of an op that always runs");
}

static void read_steps(struct reader *r, const json_t *list, struct plan *plan)
{
	int *runs = arena_alloc(r->a, (size_t)r->p->nop + 1, sizeof *runs);
	plan->step = arena_alloc(r->a, (size_t)plan->nstep + 1, sizeof *plan->step);
	if (!plan->step || !runs) {
		r->nomem = true;
		return;
	}
	for (int i = 0; i < plan->nstep; i++) {
		const json_t *e = json_array_get(list, (size_t)i);
		struct plan_step *st = &plan->step[i];
		st->op = step_op(r, e, i);
		if (st->op < 0)
			continue;
		const json_t *choice = json_object_get(e, "choice");
		if (choice && (!json_is_integer(choice) || json_integer_value(choice) < 0 ||
				      json_integer_value(choice) >= r->p->op[st->op].nchoice))
			fault(r, "step %d: \"choice\" is not one of its op's", i);
		else if (choice)
			st->choice = (int)json_integer_value(choice);
		else if (r->p->op[st->op].has_choices)
			fault(r, "step %d: \"choice\" is missing", i);
		check_when(r, e, i, &r->p->op[st->op]);
		st->run = runs[st->op]++;
	}
}

static void read_buffers(struct reader *r, const json_t *list, struct plan *plan)
{
	plan->buffer = arena_alloc(r->a, (size_t)plan->nbuffer + 1, sizeof *plan->buffer);
	if (!plan->buffer) {
		r->nomem = true;
		return;
	}
	for (int i = 0; i < plan->nbuffer; i++) {
		const json_t *e = json_array_get(list, (size_t)i);
		const json_t *tensor = json_object_get(e, "tensor");
		const json_t *op = json_object_get(e, "workspace_of");
		struct plan_buffer *b = &plan->buffer[i];
		b->tensor = b->workspace_of = -1;
		if ((tensor != NULL) == (op != NULL))
			fault(r, "buffer %d: needs \"tensor\" or \"workspace_of\"", i);
		else if (tensor)
			b->tensor = find_id(r, &r->tensors, tensor, "buffer", i);
		else
			b->workspace_of = find_id(r, &r->ops, op, "buffer", i);
		b->offset = whole(r, e, "offset", "buffer", i);
		b->bytes = whole(r, e, "bytes", "buffer", i);
		b->first_step = step_number(r, e, "first_step", i);
		b->last_step = step_number(r, e, "last_step", i);
	}
}

static const json_t *array_under(struct reader *r, const json_t *root, const char *key, int *n)
{
	const json_t *list = json_object_get(root, key);
	if (!json_is_array(list) || json_array_size(list) > INT_MAX / 4) {
		fault(r, "\"%s\" is not a list", key);
		list = NULL;
	}
	*n = (int)json_array_size(list);
	return list;
}

/* What the plan says of loops is what the graph does. */
static void read_loops(struct reader *r, const json_t *root)
{
	int n;
	const json_t *list = json_object_get(root, "loops") ? array_under(r, root, "loops", &n)
							    : NULL;
	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *e = json_array_get(list, i);
		const int o = find_id(r, &r->ops, json_object_get(e, "op"), "loop", (int)i);
		if (o < 0)
			continue;
		const char *keeps = json_string_value(json_object_get(e, "keeps"));
		struct problem_loop x = r->p->op[o].loop ? *r->p->op[o].loop
							 : (struct problem_loop){.turns = -1};
		bool same = keeps && strcmp(keeps, problem_keeps_name[x.keeps]) == 0;
		for (int k = 0; k < LOOP_NUMBERS; k++)
			same &= whole(r, e, loop_number_name[k], "loop", (int)i) ==
				*loop_number(&x, k);
		if (!same)
			fault(r, "loop %zu: the graph says another of op %" PRId64, i,
				r->p->op[o].id);
	}
}

static void read_plan(struct reader *r, const json_t *root, struct plan *plan)
{
	const json_t *budget = json_object_get(root, "budget_bytes");
	plan->budget_bytes = INT64_MAX;
	if (json_is_integer(budget))
		plan->budget_bytes = json_integer_value(budget);
	else if (budget && !json_is_null(budget))
		fault(r, "\"budget_bytes\" is not a whole number");
	if (json_is_false(json_object_get(root, "feasible"))) {
		plan->min_bytes_known = json_integer_value(
			json_object_get(root, "min_bytes_known"));
		plan->min_bytes_proven = json_integer_value(
			json_object_get(root, "min_bytes_proven"));
		return;
	}
	plan->feasible = true;
	plan->arena_bytes = whole(r, root, "arena_bytes", NULL, 0);
	plan->peak_bytes = whole(r, root, "peak_bytes", NULL, 0);
	const json_t *cost = json_object_get(root, "cost");
	plan->cost_once = number(r, cost, "once");
	plan->cost_total = number(r, cost, "total");
	const json_t *bound = json_object_get(cost, "lower_bound");
	plan->lower_bound = !bound || json_is_null(bound) ? -1 : number(r, cost, "lower_bound");
	if (bound && plan->lower_bound < 0 && !json_is_null(bound))
		fault(r, "\"cost\": \"lower_bound\" is below zero");
	const json_t *steps = array_under(r, root, "steps", &plan->nstep);
	const json_t *buffers = array_under(r, root, "buffers", &plan->nbuffer);
	read_steps(r, steps, plan);
	if (!r->nomem)
		read_buffers(r, buffers, plan);
	read_loops(r, root);
}

static bool index_ids(struct reader *r)
{
	if (!idmap_init(&r->tensors, r->p->ntensor) || !idmap_init(&r->ops, r->p->nop))
		return false;
	for (int i = 0; i < r->p->ntensor; i++)
		idmap_put(&r->tensors, r->p->tensor[i].id, i);
	for (int i = 0; i < r->p->nop; i++)
		idmap_put(&r->ops, r->p->op[i].id, i);
	return true;
}

static void read_root(struct reader *r, const json_t *root, struct plan *plan)
{
	const char *format = json_string_value(json_object_get(root, "format"));
	const char *graph = json_string_value(json_object_get(root, "graph"));
	if (!format || strcmp(format, "stint-plan-1") != 0) {
		fault(r, "is not a stint-plan-1 file");
		return;
	}
	if (!graph || strcmp(graph, r->p->name) != 0)
		fault(r, "is a plan for the graph \"%s\", not for \"%s\"", graph ? graph : "",
			r->p->name);
	plan->graph = r->p->name;
	if (!index_ids(r))
		r->nomem = true;
	else
		read_plan(r, root, plan);
}

enum status plan_parse(struct arena *a, const struct problem *p, const char *text, size_t len,
	const char *file, struct plan **out, struct diag *d)
{
	struct reader r = {.a = a, .p = p, .file = file, .d = d};
	struct where w = {.file = file};
	json_error_t e;
	json_t *root = json_loadb(text, len, JSON_REJECT_DUPLICATES, &e);
	if (!root)
		return diag_fail(d, ST_INVALID, &w, NULL, "not valid JSON: line %d, column %d: %s",
			e.line, e.column, e.text);
	struct plan *plan = ARENA_NEW(a, struct plan);
	if (plan)
		read_root(&r, root, plan);
	json_decref(root);
	idmap_free(&r.tensors);
	idmap_free(&r.ops);
	if (!plan || r.nomem)
		return diag_nomem(d);
	if (r.bad)
		return ST_INVALID;
	*out = plan;
	return ST_OK;
}
