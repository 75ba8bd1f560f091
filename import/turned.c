/* Weights of linear layers that PyTorch's exporter has stored transposed, under a name of its own
 * ("val_12"): turned back, and called as in the module. So patterns, other weights by name and
 * adapters find them, whether the exporter optimized or not.
 *
 * Only where the call that is noted says so: what is computed of a parameter, or part of it, looks
 * alike. */
#include <stdio.h>
#include <string.h>

#include "import/ties.h"

/* --- Whose it is --- */

/* A product's second matrix, as it is. */
static bool is_factor(const struct ties *s, const struct reader *r)
{
	const struct op_def *op = record_of(s->im, r->node, s->im->top.opset);
	return op && r->input == 1 && op->weights >> 1 & 1 &&
	       (!op->bias.turned || !attribute_int(r->node, op->bias.turned, 0));
}

/* By linear(x, weight, bias); NULL: it does not say. */
static const char *owner_of(const struct reader *r)
{
	const struct module_tensor *t = r->means;
	const bool same = t && t != r->reads && !strcmp(r->call->target, "aten.linear.default") &&
			  call_tensor(r->call, 1) == t;
	return same ? t->name : NULL;
}

/* --- Turning --- */

enum { ROWS = 64 }; /* at a time */

/* ROWS rows of x's transpose, or what is left from `from` on: how many. */
static int64_t turn(const struct item *x, int64_t from, unsigned char *out)
{
	const int64_t rows = x->t->dims[0], columns = x->t->dims[1];
	const int64_t n = columns - from < ROWS ? columns - from : ROWS;
	const size_t w = (size_t)x->width;
	for (int64_t i = 0; i < rows; i++)
		for (int64_t k = 0; k < n; k++)
			memcpy(out + (size_t)(k * rows + i) * w,
				x->raw + (size_t)(i * columns + from + k) * w, w);
	return n;
}

/* In an unnamed file, mapped, as the values were; NULL: there is no room for one. */
static const unsigned char *turned_outside(const struct ties *s, const struct item *x)
{
	struct arena *a = s->im->m.arena;
	const int64_t columns = x->t->dims[1];
	const size_t row = (size_t)x->t->dims[0] * (size_t)x->width;
	unsigned char *some = arena_alloc(a, ROWS, row);
	FILE *f = some ? tmpfile() : NULL;
	bool written = f;
	for (int64_t k = 0, n; written && k < columns; k += n) {
		n = turn(x, k, some);
		written = fwrite(some, row, (size_t)n, f) == (size_t)n;
	}
	arena_release(a, some, ROWS * row);
	const void *raw = written && fflush(f) == 0
				  ? arena_map(a, fileno(f), row * (size_t)columns, NULL)
				  : NULL;
	if (f)
		fclose(f);
	return raw;
}

/* NULL: no memory. */
static const unsigned char *turned_values(const struct ties *s, const struct item *x)
{
	const int64_t columns = x->t->dims[1];
	const size_t row = (size_t)x->t->dims[0] * (size_t)x->width;
	const unsigned char *mapped = x->t->n_external_data ? turned_outside(s, x) : NULL;
	if (mapped)
		return mapped;
	unsigned char *raw = arena_alloc(s->im->m.arena, (size_t)columns, row);
	for (int64_t k = 0; raw && k < columns;)
		k += turn(x, k, raw + (size_t)k * row);
	return raw;
}

/* Initializer `name`, which holds x the right way round. */
static enum status add_turned(struct ties *s, const struct item *x, const char *name)
{
	struct arena *a = s->im->m.arena;
	Tensor *t = ARENA_NEW(a, Tensor);
	struct item *own = ARENA_NEW(a, struct item);
	const unsigned char *raw = turned_values(s, x);
	void **at = names_at(&s->item, name), **from = names_at(&s->im->turned, name);
	if (!t || !own || !raw || !at || !from)
		return diag_nomem(s->im->d);
	*t = *x->t;
	t->name = (char *)(uintptr_t)name;
	t->dims = arena_memdup(a, (int64_t[]){x->t->dims[1], x->t->dims[0]}, 2, sizeof *t->dims);
	if (!t->dims)
		return diag_nomem(s->im->d);
	tensor_set_raw(t, raw, (size_t)x->numel * (size_t)x->width);
	*own = (struct item){.t = t, .index = SIZE_MAX};
	own->end = &own->first;
	*at = own; /* it is lost no more */
	*from = x->t->name;
	s->added[s->nadded++] = t;
	return ST_OK;
}

static bool same_values(const struct item *x, const struct item *y)
{
	return x->t->data_type == y->t->data_type && x->t->dims[0] == y->t->dims[0] &&
	       x->t->dims[1] == y->t->dims[1] &&
	       !memcmp(x->raw, y->raw, (size_t)x->numel * (size_t)x->width);
}

/* --- All of them --- */

/* A name that is to be given, to a parameter or to its transpose. */
struct claim {
	const struct item *of;
	bool disputed; /* others have other values, or the name, or give up one of theirs */
	bool added;
};

/* All of its readers multiply by it. */
static bool may_be_turned(const struct ties *s, const struct item *x)
{
	const char *name = text_of(x->t->name);
	if (x->dropped || x->t->n_dims != 2 || !x->first || names_get(&s->im->module, name) ||
		ties_keep(s, name) || name_matches(s->im->o->untie_pattern, name))
		return false;
	for (const struct reader *r = x->first; r; r = r->next)
		if (!is_factor(s, r))
			return false;
	return true;
}

/* Each reader's, or none's. What the first means keeps x's name for its transpose. */
static bool find_names(struct ties *s, struct item *x)
{
	bool all = may_be_turned(s, x);
	for (struct reader *r = x->first; r && all; r = r->next) {
		r->turned = owner_of(r);
		all = r->turned && *r->turned && !names_get(&s->item, r->turned);
		if (!all || !strcmp(r->turned, x->first->turned))
			continue;
		r->copy = arena_printf(s->im->m.arena, "%s@%s", x->t->name, r->turned);
		all = r->copy && !names_get(&s->item, r->copy);
	}
	all = all && item_load(s, x);
	for (struct reader *r = x->first; r && !all; r = r->next)
		r->copy = NULL;
	return all;
}

static enum status claim(struct ties *s, const struct item *x, const char *name)
{
	void **at = names_at(&s->turned, name);
	struct claim *c = at && *at ? *at : ARENA_NEW(s->im->m.arena, struct claim);
	if (!at || !c)
		return diag_nomem(s->im->d);
	*at = c;
	if (!c->of)
		c->of = x;
	c->disputed |= c->of != x && !same_values(c->of, x);
	return ST_OK;
}

static enum status claim_names(struct ties *s, struct item *x)
{
	x->turned = find_names(s, x);
	for (const struct reader *r = x->first; r && x->turned; r = r->next) {
		TRY(claim(s, x, r->turned));
		if (r->copy)
			TRY(claim(s, x, r->copy));
	}
	return ST_OK;
}

static void dispute(struct ties *s, const char *name)
{
	struct claim *c = names_get(&s->turned, name);
	if (c)
		c->disputed = true;
}

/* Names of what the caller gives, and of what nodes make. */
static void dispute_taken(struct ties *s)
{
	const Onnx__GraphProto *g = s->graph;
	for (size_t i = 0; i < g->n_input; i++)
		dispute(s, text_of(g->input[i]->name));
	for (size_t i = 0; i < g->n_node; i++)
		for (size_t k = 0; k < g->node[i]->n_output; k++)
			dispute(s, text_of(g->node[i]->output[k]));
}

static bool is_disputed(const struct ties *s, const char *name)
{
	return ((const struct claim *)names_get(&s->turned, name))->disputed;
}

/* Gives up x where one of its names is disputed, and so its others. */
static bool give_up(struct ties *s, struct item *x)
{
	bool disputed = false;
	for (const struct reader *r = x->first; r; r = r->next)
		disputed |= is_disputed(s, r->turned) || (r->copy && is_disputed(s, r->copy));
	for (struct reader *r = x->first; r && disputed; r = r->next) {
		dispute(s, r->turned);
		r->copy = NULL;
	}
	x->turned = !disputed;
	return disputed;
}

/* What is read in x's place is the transpose of each reader's own. */
static enum status turn_back(struct ties *s, struct item *x)
{
	for (struct reader *r = x->first; r; r = r->next) {
		struct claim *c = names_get(&s->turned, r->turned);
		const char *to = r->copy ? r->copy : x->t->name;
		void **at = names_at(&s->made, to);
		if (!at)
			return diag_nomem(s->im->d);
		if (!c->added)
			TRY(add_turned(s, x, r->turned));
		c->added = true;
		if (!*at)
			TRY(ties_transpose(s, names_get(&s->item, r->turned), to));
		*at = x;
	}
	x->dropped = s->dropped = true;
	return ST_OK;
}

enum status turned_back(struct ties *s)
{
	struct item *x;
	bool more = true;
	s->turned.arena = s->im->m.arena;
	if (!s->im->module_first)
		return ST_OK;
	for (size_t i = 0; i < s->graph->n_initializer; i++)
		if ((x = item_at(s, i)))
			TRY(claim_names(s, x));
	if (!s->turned.n)
		return ST_OK;
	dispute_taken(s);
	while (more) {
		more = false;
		for (size_t i = 0; i < s->graph->n_initializer; i++)
			if ((x = item_at(s, i)) && x->turned)
				more |= give_up(s, x);
	}
	for (size_t i = 0; i < s->graph->n_initializer; i++)
		if ((x = item_at(s, i)) && x->turned)
			TRY(turn_back(s, x));
	return ST_OK;
}
