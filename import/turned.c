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

/* Rows `from` to `to` of x's transpose. */
static void turn(const struct item *x, int64_t from, int64_t to, unsigned char *out)
{
	const int64_t rows = x->t->dims[0], columns = x->t->dims[1];
	const size_t w = (size_t)x->width;
	for (int64_t i = 0; i < rows; i++)
		for (int64_t k = from; k < to; k++)
			memcpy(out + (size_t)((k - from) * rows + i) * w,
				x->raw + (size_t)(i * columns + k) * w, w);
}

/* In an unnamed file, mapped, as the values were; NULL: there is no room for one. */
static const unsigned char *turned_outside(const struct ties *s, const struct item *x)
{
	struct arena *a = s->im->m.arena;
	const int64_t rows = x->t->dims[0], columns = x->t->dims[1];
	const size_t row = (size_t)rows * (size_t)x->width;
	unsigned char *some = arena_alloc(a, ROWS, row);
	FILE *f = some ? tmpfile() : NULL;
	bool written = f;
	for (int64_t k = 0; written && k < columns; k += ROWS) {
		const int64_t to = columns - k < ROWS ? columns : k + ROWS;
		turn(x, k, to, some);
		written = fwrite(some, row, (size_t)(to - k), f) == (size_t)(to - k);
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
	for (int64_t k = 0; raw && k < columns; k += ROWS)
		turn(x, k, columns - k < ROWS ? columns : k + ROWS, raw + (size_t)k * row);
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

/* What `to` stands for, made of initializer `name`. */
static enum status add_transpose(struct ties *s, const char *name, const char *to)
{
	struct reader *r = ARENA_NEW(s->im->m.arena, struct reader);
	struct item *own = names_get(&s->item, name);
	TRY(ties_transpose(s, name, to));
	if (!r)
		return diag_nomem(s->im->d);
	*r = (struct reader){.node = s->node[s->nnode - 1]};
	*own->end = r;
	own->end = &r->next;
	own->nreader++;
	return ST_OK;
}

static bool same_values(const struct item *x, const struct item *y)
{
	return x->t->data_type == y->t->data_type && x->t->dims[0] == y->t->dims[0] &&
	       x->t->dims[1] == y->t->dims[1] &&
	       !memcmp(x->raw, y->raw, (size_t)x->numel * (size_t)x->width);
}

/* --- All of them --- */

/* What is to be called by one name. */
struct claim {
	const struct item *of;
	bool disputed; /* others have other values, or leave one of their names for such a reason */
	bool added;
};

static enum status take(struct ties *s, const char *name)
{
	void **at = names_at(&s->taken, name);
	if (!at)
		return diag_nomem(s->im->d);
	*at = s;
	return ST_OK;
}

/* What nodes make, and what the caller gives. */
static enum status list_taken(struct ties *s)
{
	const Onnx__GraphProto *g = s->graph;
	for (size_t i = 0; i < g->n_input; i++)
		TRY(take(s, text_of(g->input[i]->name)));
	for (size_t i = 0; i < g->n_node; i++)
		for (size_t k = 0; k < g->node[i]->n_output; k++)
			TRY(take(s, text_of(g->node[i]->output[k])));
	return ST_OK;
}

static bool is_free(const struct ties *s, const char *name)
{
	return name && *name && !names_get(&s->item, name) && !names_get(&s->taken, name);
}

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
		all = r->turned && is_free(s, r->turned);
		if (!all || !strcmp(r->turned, x->first->turned))
			continue;
		r->copy = arena_printf(s->im->m.arena, "%s@%s", x->t->name, r->turned);
		all = is_free(s, r->copy);
	}
	all = all && item_load(s, x);
	for (struct reader *r = x->first; r && !all; r = r->next)
		r->copy = NULL;
	return all;
}

static enum status claim_names(struct ties *s, struct item *x)
{
	x->turned = find_names(s, x);
	for (const struct reader *r = x->first; r && x->turned; r = r->next) {
		void **at = names_at(&s->turned, r->turned);
		struct claim *c = at && *at ? *at : ARENA_NEW(s->im->m.arena, struct claim);
		if (!at || !c)
			return diag_nomem(s->im->d);
		*at = c;
		if (!c->of)
			c->of = x;
		c->disputed |= c->of != x && !same_values(c->of, x);
	}
	return ST_OK;
}

/* Gives up x where one of its names is disputed, and so its others. */
static bool give_up(struct ties *s, struct item *x)
{
	bool disputed = false;
	for (const struct reader *r = x->first; r; r = r->next)
		disputed |= ((const struct claim *)names_get(&s->turned, r->turned))->disputed;
	for (struct reader *r = x->first; r && disputed; r = r->next) {
		((struct claim *)names_get(&s->turned, r->turned))->disputed = true;
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
			TRY(add_transpose(s, r->turned, to));
		*at = x;
	}
	x->dropped = s->dropped = true;
	return ST_OK;
}

/* The file's i-th initializer, unless its name stood before. */
static struct item *item_at(const struct ties *s, size_t i)
{
	struct item *x = names_get(&s->item, text_of(s->graph->initializer[i]->name));
	return x->index == i ? x : NULL;
}

enum status turned_back(struct ties *s)
{
	struct item *x;
	bool more = true;
	s->turned.arena = s->taken.arena = s->im->m.arena;
	if (!s->im->module_first)
		return ST_OK;
	TRY(list_taken(s));
	for (size_t i = 0; i < s->graph->n_initializer; i++)
		if ((x = item_at(s, i)))
			TRY(claim_names(s, x));
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
