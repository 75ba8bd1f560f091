/* stint-graph-1, read and written. Every fault of a file is reported, not just the first. */
#include "planner/problem/idmap.h"
#include "planner/problem/json_text.h"
#include "planner/problem/loop_facts.h"
#include "planner/problem/problem.h"

#include <inttypes.h>
#include <jansson.h>
#include <limits.h>
#include <string.h>

struct reader {
	struct arena *a;
	const char *file;
	struct diag *d;
	struct problem *p;
	struct idmap tensors;
	bool bad, nomem;
};

static void fault(struct reader *r, const char *node, const char *hint, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

static void fault(struct reader *r, const char *node, const char *hint, const char *fmt, ...)
{
	struct where w = {.file = r->file, .node = node};
	va_list ap;
	va_start(ap, fmt);
	diag_vfail(r->d, ST_INVALID, &w, hint, fmt, ap);
	va_end(ap);
	r->bad = true;
}

static void *alloc(struct reader *r, size_t n, size_t size)
{
	void *p = arena_alloc(r->a, n ? n : 1, size);
	if (!p)
		r->nomem = true;
	return p;
}

/* The name of an object for messages and for the problem: its own, or "op 12". */
static const char *name_of(struct reader *r, const json_t *o, const char *what, size_t i)
{
	const char *s = json_string_value(json_object_get(o, "name"));
	char *copy = s ? arena_strdup(r->a, s) : arena_printf(r->a, "%s %zu", what, i);
	if (!copy)
		r->nomem = true;
	if (json_object_get(o, "name") && !s)
		fault(r, copy, NULL, "\"name\" is not a string");
	return copy ? copy : "";
}

/* A whole number under `key`; `fallback` (and a fault unless it may be missing) where there is
 * none.
 */
static int64_t whole(struct reader *r, const json_t *o, const char *key, const char *name,
	bool required, int64_t fallback)
{
	const json_t *v = json_object_get(o, key);
	if (json_is_integer(v))
		return json_integer_value(v);
	if (v || required)
		fault(r, name, "a whole number is needed", "\"%s\" is %s", key,
			v ? "not a whole number" : "missing");
	return fallback;
}

static double cost_of(struct reader *r, const json_t *o, const char *name)
{
	const json_t *v = json_object_get(o, "cost");
	if (json_is_number(v))
		return json_number_value(v);
	fault(r, name, "a number, zero or more, is needed", "\"cost\" is %s",
		v ? "not a number" : "missing");
	return 0;
}

/* What kernel the op or choice is, and what it costs by the committed constants; both optional. */
static void read_kernel(
	struct reader *r, const json_t *o, const char *name, struct problem_choice *c)
{
	const json_t *kernel = json_object_get(o, "kernel");
	const json_t *roofline = json_object_get(o, "roofline");
	if (kernel && !json_is_string(kernel))
		fault(r, name, NULL, "\"kernel\" is not a string");
	if (roofline && !(json_number_value(roofline) >= 0 && json_is_number(roofline)))
		fault(r, name, NULL, "\"roofline\" is not a number of zero or more");
	if (json_is_string(kernel) && !(c->kernel = arena_strdup(r->a, json_string_value(kernel))))
		r->nomem = true;
	c->roofline = roofline ? json_number_value(roofline) : c->cost;
}

static bool flag(
	struct reader *r, const json_t *o, const char *key, const char *name, bool fallback)
{
	const json_t *v = json_object_get(o, key);
	if (v && !json_is_boolean(v))
		fault(r, name, "true or false is needed", "\"%s\" is neither true nor false", key);
	return json_is_boolean(v) ? json_is_true(v) : fallback;
}

/* One of `n` words; 0 and a fault where it is none of them. */
static int word(struct reader *r, const json_t *o, const char *key, const char *name,
	const char *const *words, int n)
{
	const char *s = json_string_value(json_object_get(o, key));
	for (int i = 0; s && i < n; i++)
		if (strcmp(s, words[i]) == 0)
			return i;
	if (s)
		fault(r, name, NULL, "unknown %s \"%s\"", key, s);
	else
		fault(r, name, NULL, "\"%s\" is missing or not a string", key);
	return 0;
}

static int tensor_by_id(struct reader *r, const json_t *v, const char *name, const char *key)
{
	if (!json_is_integer(v)) {
		fault(r, name, "tensors are named by their ids",
			"\"%s\" holds something else than ids", key);
		return -1;
	}
	int t = idmap_get(&r->tensors, json_integer_value(v));
	if (t < 0)
		fault(r, name, "list it under \"tensors\"",
			"\"%s\" names tensor %lld, which is not there", key,
			(long long)json_integer_value(v));
	return t;
}

/* The ids under `key`; unknown ones are reported and left out. */
static int *tensor_list(
	struct reader *r, const json_t *o, const char *key, const char *name, int *n)
{
	const json_t *list = json_object_get(o, key);
	*n = 0;
	if (!json_is_array(list)) {
		fault(r, name, "a list of tensor ids is needed", "\"%s\" is %s", key,
			list ? "not a list" : "missing");
		list = NULL;
	}
	size_t count = json_array_size(list);
	int *out = alloc(r, count, sizeof *out);
	for (size_t i = 0; out && i < count; i++) {
		int t = tensor_by_id(r, json_array_get(list, i), name, key);
		if (t >= 0)
			out[(*n)++] = t;
	}
	return out;
}

/* 1 + the tensor that an op names under `key`; 0: it has no such key. */
static int named_tensor(struct reader *r, const json_t *o, const char *key, const char *name)
{
	const json_t *v = json_object_get(o, key);
	return v ? 1 + tensor_by_id(r, v, name, key) : 0;
}

static void read_tensor(struct reader *r, const json_t *o, int i)
{
	struct problem_tensor *t = &r->p->tensor[i];
	t->name = name_of(r, o, "tensor", (size_t)i);
	t->producer = -1;
	t->kind = TK_ACTIVATION;
	t->id = i;
	if (!json_is_object(o)) {
		fault(r, t->name, NULL, "is not an object");
		return;
	}
	t->id = whole(r, o, "id", t->name, true, i);
	t->bytes = whole(r, o, "bytes", t->name, true, 0);
	t->kind = (enum tensor_kind)word(r, o, "kind", t->name, tensor_kind_name, 6);
	idmap_put(&r->tensors, t->id, i); /* a second use of an id is for problem_validate */
}

static void read_pairs(struct reader *r, const json_t *o, struct problem_op *op)
{
	const json_t *list = json_object_get(o, "inplace");
	if (list && !json_is_array(list))
		fault(r, op->name, "a list of [output, input] is needed",
			"\"inplace\" is not a list");
	size_t n = json_is_array(list) ? json_array_size(list) : 0;
	struct problem_pair *pair = alloc(r, n, sizeof *pair);
	for (size_t i = 0; pair && i < n; i++) {
		const json_t *e = json_array_get(list, i);
		if (json_array_size(e) != 2) {
			fault(r, op->name, NULL, "in-place pair %zu is not [output, input]", i);
			continue;
		}
		int out = tensor_by_id(r, json_array_get(e, 0), op->name, "inplace");
		int in = tensor_by_id(r, json_array_get(e, 1), op->name, "inplace");
		if (out >= 0 && in >= 0)
			pair[op->npair++] = (struct problem_pair){.out = out, .in = in};
	}
	op->pair = pair;
}

static void read_choices(
	struct reader *r, const json_t *o, struct problem_op *op, const struct problem_choice *base)
{
	const json_t *list = json_object_get(o, "choices");
	size_t n = json_array_size(list);
	op->has_choices = list != NULL;
	if (list && (!json_is_array(list) || n == 0 || n > 1000)) {
		fault(r, op->name, "a list of at least one choice is needed",
			"\"choices\" is not such a list");
		n = 0;
	}
	struct problem_choice *c = alloc(r, n ? n : 1, sizeof *c);
	if (!c)
		return;
	op->nchoice = n ? (int)n : 1;
	op->choice = c;
	c[0] = *base;
	for (size_t i = 0; i < n; i++) {
		const json_t *e = json_array_get(list, i);
		c[i] = *base;
		if (!json_is_object(e)) {
			fault(r, op->name, NULL, "choice %zu is not an object", i);
			continue;
		}
		c[i].cost = cost_of(r, e, op->name);
		c[i].workspace = whole(r, e, "workspace", op->name, false, base->workspace);
		read_kernel(r, e, op->name, &c[i]);
		if (json_object_get(e, "inputs"))
			c[i].in = tensor_list(r, e, "inputs", op->name, &c[i].nin);
		if (json_object_get(e, "outputs"))
			c[i].out = tensor_list(r, e, "outputs", op->name, &c[i].nout);
	}
}

/* The turns before which carries are kept. */
static void read_loop_turns(
	struct reader *r, const json_t *o, const char *name, struct problem_loop *l)
{
	const json_t *list = json_object_get(o, "at");
	const size_t n = json_array_size(list);
	int64_t *at = alloc(r, n, sizeof *at);
	bool whole_ones = !list || json_is_array(list);
	for (size_t i = 0; at && i < n; i++) {
		const json_t *v = json_array_get(list, i);
		whole_ones &= json_is_integer(v);
		at[i] = json_integer_value(v);
	}
	if (!whole_ones)
		fault(r, name, NULL, "\"at\" of its loop is not a list of turns");
	l->at = at;
	l->nat = (int64_t)n;
}

static const struct problem_loop *read_loop(struct reader *r, const json_t *o, const char *name)
{
	const json_t *loop = json_object_get(o, "loop");
	struct problem_loop *l = loop ? alloc(r, 1, sizeof *l) : NULL;
	if (!l)
		return NULL;
	if (!json_is_object(loop)) {
		fault(r, name, NULL, "\"loop\" is not an object");
		return NULL;
	}
	*l = (struct problem_loop){
		.keeps = (enum problem_keeps)word(r, loop, "keeps", name, problem_keeps_name, 4)};
	for (int k = 0; k < LOOP_NUMBERS; k++)
		*loop_number(l, k) = whole(r, loop, loop_number_name[k], name, true, 0);
	l->ends_early = flag(r, loop, "ends_early", name, false);
	read_loop_turns(r, loop, name, l);
	return l;
}

static void read_op(struct reader *r, const json_t *o, int i)
{
	static const struct problem_choice nothing;
	struct problem_op *op = &r->p->op[i];
	op->name = name_of(r, o, "op", (size_t)i);
	op->id = i;
	op->nchoice = 1;
	op->choice = &nothing;
	if (!json_is_object(o)) {
		fault(r, op->name, NULL, "is not an object");
		return;
	}
	op->id = whole(r, o, "id", op->name, true, i);
	op->phase = (enum phase)word(r, o, "phase", op->name, phase_name, 3);
	struct problem_choice base = {0};
	base.in = tensor_list(r, o, "inputs", op->name, &base.nin);
	base.out = tensor_list(r, o, "outputs", op->name, &base.nout);
	if (json_object_get(o, "cost") || !json_object_get(o, "choices"))
		base.cost = cost_of(r, o, op->name);
	base.workspace = whole(r, o, "workspace", op->name, false, 0);
	read_kernel(r, o, op->name, &base);
	op->recomputable = flag(r, o, "recomputable", op->name, true) && op->phase != PHASE_UPDATE;
	op->optional = flag(r, o, "optional", op->name, false);
	op->waits = flag(r, o, "waits", op->name, false);
	op->offloads = named_tensor(r, o, "offload", op->name);
	op->fetches = named_tensor(r, o, "fetch", op->name);
	op->from_disk = whole(r, o, "from_disk", op->name, false, 0);
	op->to_disk = whole(r, o, "to_disk", op->name, false, 0);
	op->from_ranks = whole(r, o, "from_ranks", op->name, false, 0);
	op->loop = read_loop(r, o, op->name);
	op->when = named_tensor(r, o, "when", op->name);
	read_pairs(r, o, op);
	read_choices(r, o, op, &base);
	if (r->nomem)
		return;
	for (int k = 0; k < op->nchoice; k++)
		for (int j = 0; j < op->choice[k].nout; j++) {
			struct problem_tensor *t = &r->p->tensor[op->choice[k].out[j]];
			if (t->producer < 0)
				t->producer = i;
		}
}

/* "repeats": the id of an op before this one. */
static void read_repeats(struct reader *r, const json_t *ops)
{
	struct idmap ids;
	if (!idmap_init(&ids, r->p->nop)) {
		r->nomem = true;
		return;
	}
	for (int i = 0; i < r->p->nop; i++) {
		const json_t *id = json_object_get(json_array_get(ops, (size_t)i), "repeats");
		int first = json_is_integer(id) ? idmap_get(&ids, json_integer_value(id)) : -1;
		if (id && first < 0)
			fault(r, r->p->op[i].name, NULL, "\"repeats\" is no op before it");
		r->p->op[i].repeats = 1 + first;
		idmap_put(&ids, r->p->op[i].id, i);
	}
	idmap_free(&ids);
}

static void read_keep(struct reader *r, const json_t *root)
{
	const json_t *list = json_object_get(root, "keep");
	if (list && !json_is_array(list))
		fault(r, NULL, "a list of tensor ids is needed", "\"keep\" is not a list");
	size_t n = json_is_array(list) ? json_array_size(list) : 0;
	for (size_t i = 0; i < n; i++) {
		int t = tensor_by_id(r, json_array_get(list, i), NULL, "keep");
		if (t >= 0)
			r->p->tensor[t].keep = true;
	}
}

static const json_t *list_under(struct reader *r, const json_t *root, const char *key, int *n)
{
	const json_t *list = json_object_get(root, key);
	*n = 0;
	if (!json_is_array(list)) {
		fault(r, NULL, NULL, "\"%s\" is %s", key, list ? "not a list" : "missing");
		return NULL;
	}
	if (json_array_size(list) > INT_MAX / 4) {
		fault(r, NULL, NULL, "\"%s\" has too many entries", key);
		return NULL;
	}
	*n = (int)json_array_size(list);
	return list;
}

static void read_root(struct reader *r, const json_t *root)
{
	struct problem *p = r->p;
	const char *format = json_string_value(json_object_get(root, "format"));
	if (!format || strcmp(format, "stint-graph-1") != 0) {
		fault(r, NULL, "\"format\" must be \"stint-graph-1\"",
			"is not a stint-graph-1 file");
		return;
	}
	p->name = json_object_get(root, "name") ? name_of(r, root, "graph", 0) : "";
	const json_t *costs = json_object_get(root, "costs");
	if (costs && !json_is_string(costs))
		fault(r, NULL, NULL, "\"costs\" is not a string");
	if (json_is_string(costs) && !(p->costs = arena_strdup(r->a, json_string_value(costs))))
		r->nomem = true;
	const json_t *tensors = list_under(r, root, "tensors", &p->ntensor);
	const json_t *ops = list_under(r, root, "ops", &p->nop);
	p->tensor = alloc(r, (size_t)p->ntensor, sizeof *p->tensor);
	p->op = alloc(r, (size_t)p->nop, sizeof *p->op);
	if (r->nomem || !idmap_init(&r->tensors, p->ntensor)) {
		r->nomem = true;
		return;
	}
	for (int i = 0; i < p->ntensor && !r->nomem; i++)
		read_tensor(r, json_array_get(tensors, (size_t)i), i);
	for (int i = 0; i < p->nop && !r->nomem; i++)
		read_op(r, json_array_get(ops, (size_t)i), i);
	if (!r->nomem)
		read_repeats(r, ops);
	if (!r->nomem)
		read_keep(r, root);
	if (!r->nomem && problem_validate(p, r->file, r->d) != ST_OK)
		r->bad = true;
}

/* The last name that the text gives before `at`, where it stopped being JSON: whose number or word
 * is at fault. NULL when there is none; escapes stay as they are written. */
static const char *name_before(struct arena *a, const char *text, size_t at)
{
	static const char key[] = "\"name\"";
	const size_t width = sizeof key - 1;
	for (size_t i = at; i-- > 0;) {
		if (text[i] != '"' || at - i < width || memcmp(text + i, key, width) != 0)
			continue;
		size_t from = i + width;
		while (from < at && text[from] && strchr(" \t\r\n:", text[from]))
			from++;
		size_t to = from + 1;
		while (to < at && to - from < 100 && text[to] != '"')
			to++;
		if (from < at && text[from] == '"')
			return arena_strndup(a, text + from + 1, to - from - 1);
	}
	return NULL;
}

static enum status not_json(struct arena *a, const char *text, size_t len, const char *file,
	const json_error_t *e, struct diag *d)
{
	size_t at = e->position > 0 ? (size_t)e->position : 0;
	struct where w = {.file = file, .node = name_before(a, text, at < len ? at : len)};
	const char *hint = w.node ? "the name is the last one before it" : NULL;
	if (json_error_code(e) == json_error_numeric_overflow)
		hint = "whole numbers go up to 9223372036854775807, others to 1.7e308";
	return diag_fail(d, ST_INVALID, &w, hint, "not valid JSON: line %d, column %d: %s", e->line,
		e->column, e->text);
}

enum status problem_parse(struct arena *a, const char *text, size_t len, const char *file,
	struct problem **out, struct diag *d)
{
	struct reader r = {.a = a, .file = file, .d = d};
	json_error_t e;
	json_t *root = json_loadb(text, len, JSON_REJECT_DUPLICATES, &e);
	if (!root)
		return not_json(a, text, len, file, &e, d);
	r.p = ARENA_NEW(a, struct problem);
	if (r.p)
		read_root(&r, root);
	json_decref(root);
	idmap_free(&r.tensors);
	if (!r.p || r.nomem)
		return diag_nomem(d);
	if (r.bad)
		return d->worst == ST_INTERNAL ? ST_INTERNAL : ST_INVALID;
	*out = r.p;
	return ST_OK;
}

enum status problem_read(struct arena *a, const char *path, struct problem **out, struct diag *d)
{
	char *text;
	size_t len;
	TRY(file_read(a, path, &text, &len, d));
	return problem_parse(a, text, len, path, out, d);
}

/* --- Writing --- */

static void print_ids(
	const struct problem *p, struct text *out, const char *key, const int *t, int n)
{
	text_add(out, ",\"%s\":[", key);
	for (int i = 0; i < n; i++)
		text_add(out, "%s%" PRId64, i ? "," : "", p->tensor[t[i]].id);
	text_puts(out, "]");
}

/* `like`: the kernel of the choice before, which need not be said again. */
static void print_cost(struct text *out, const struct problem_choice *c, const char *like)
{
	text_puts(out, "\"cost\":");
	json_text_double(out, c->cost);
	text_add(out, ",\"workspace\":%" PRId64, c->workspace);
	if (c->kernel && c->kernel[0] && (!like || strcmp(c->kernel, like) != 0)) {
		text_puts(out, ",\"kernel\":");
		json_text_string(out, c->kernel);
	}
	if (c->kernel && (c->roofline < c->cost || c->roofline > c->cost)) {
		text_puts(out, ",\"roofline\":");
		json_text_double(out, c->roofline);
	}
}

static bool same_list(const int *a, int na, const int *b, int nb)
{
	return na == nb && (na == 0 || memcmp(a, b, (size_t)na * sizeof *a) == 0);
}

static void print_choices(const struct problem *p, const struct problem_op *op, struct text *out)
{
	const struct problem_choice *base = &op->choice[0];
	text_puts(out, ",\"choices\":[");
	for (int k = 0; k < op->nchoice; k++) {
		const struct problem_choice *c = &op->choice[k];
		text_puts(out, k ? ",{" : "{");
		print_cost(out, c, base->kernel);
		if (!same_list(c->in, c->nin, base->in, base->nin))
			print_ids(p, out, "inputs", c->in, c->nin);
		if (!same_list(c->out, c->nout, base->out, base->nout))
			print_ids(p, out, "outputs", c->out, c->nout);
		text_puts(out, "}");
	}
	text_puts(out, "]");
}

static void print_op(const struct problem *p, const struct problem_op *op, struct text *out)
{
	const struct problem_choice *base = &op->choice[0];
	text_add(out, "{\"id\":%" PRId64 ",\"name\":", op->id);
	json_text_string(out, op->name);
	text_add(out, ",\"phase\":\"%s\"", phase_name[op->phase]);
	print_ids(p, out, "inputs", base->in, base->nin);
	print_ids(p, out, "outputs", base->out, base->nout);
	text_puts(out, ",");
	print_cost(out, base, NULL);
	text_puts(out, ",\"inplace\":[");
	for (int i = 0; i < op->npair; i++)
		text_add(out, "%s[%" PRId64 ",%" PRId64 "]", i ? "," : "",
			p->tensor[op->pair[i].out].id, p->tensor[op->pair[i].in].id);
	text_add(out, "],\"recomputable\":%s", op->recomputable ? "true" : "false");
	if (op->optional)
		text_puts(out, ",\"optional\":true");
	if (op->waits)
		text_puts(out, ",\"waits\":true");
	if (op->repeats)
		text_add(out, ",\"repeats\":%" PRId64, p->op[op->repeats - 1].id);
	if (op->offloads)
		text_add(out, ",\"offload\":%" PRId64, p->tensor[op->offloads - 1].id);
	if (op->fetches)
		text_add(out, ",\"fetch\":%" PRId64, p->tensor[op->fetches - 1].id);
	if (op->from_disk)
		text_add(out, ",\"from_disk\":%" PRId64, op->from_disk);
	if (op->to_disk)
		text_add(out, ",\"to_disk\":%" PRId64, op->to_disk);
	if (op->from_ranks)
		text_add(out, ",\"from_ranks\":%" PRId64, op->from_ranks);
	if (op->loop) {
		text_puts(out, ",\"loop\":{");
		loop_print(op->loop, true, out);
		text_puts(out, "}");
	}
	if (op->when)
		text_add(out, ",\"when\":%" PRId64, p->tensor[op->when - 1].id);
	if (op->has_choices)
		print_choices(p, op, out);
	text_puts(out, "}");
}

void problem_print(const struct problem *p, struct text *out)
{
	text_puts(out, "{\"format\":\"stint-graph-1\",\"name\":");
	json_text_string(out, p->name);
	if (p->costs) {
		text_puts(out, ",\"costs\":");
		json_text_string(out, p->costs);
	}
	text_puts(out, ",\n\"tensors\":[\n");
	for (int i = 0; i < p->ntensor; i++) {
		const struct problem_tensor *t = &p->tensor[i];
		text_add(out, "{\"id\":%" PRId64 ",\"name\":", t->id);
		json_text_string(out, t->name);
		text_add(out, ",\"bytes\":%" PRId64 ",\"kind\":\"%s\"}%s\n", t->bytes,
			tensor_kind_name[t->kind], i + 1 < p->ntensor ? "," : "");
	}
	text_puts(out, "],\n\"ops\":[\n");
	for (int i = 0; i < p->nop; i++) {
		print_op(p, &p->op[i], out);
		text_puts(out, i + 1 < p->nop ? ",\n" : "\n");
	}
	text_puts(out, "],\n\"keep\":[");
	bool first = true;
	for (int i = 0; i < p->ntensor; i++)
		if (p->tensor[i].keep) {
			text_add(out, "%s%" PRId64, first ? "" : ",", p->tensor[i].id);
			first = false;
		}
	text_puts(out, "]}\n");
}
