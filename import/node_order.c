/* A valid order of a block's nodes. ONNX asks for a sorted file; we sort, and say where it cannot
 * be done. A node reads its inputs, and what the graphs in its attributes read from around them. */
#include <string.h>

#include "import/import_parts.h"

/* Who makes a name: node index + 1, or SOURCE for inputs and initializers. */
enum { SOURCE = -1 };

struct order {
	struct importer *im;
	struct arena *scratch;
	const struct block *block;
	struct names maker; /* name → pointer-sized node number */
	int n;
	int *waits;                        /* by node: inputs not yet made */
	int *first, *next_reader, *reader; /* readers of each node's outputs, as lists */
	int nreader;
	enum status worst;
	int faults;
};

/* Names of the graphs in attributes that are being looked at, from the innermost outwards. */
struct locals {
	struct names name;
	const struct locals *outer;
};

static const char *label(const Onnx__NodeProto *n)
{
	return n->name && *n->name ? n->name : n->n_output ? text_of(n->output[0]) : "";
}

static enum status node_error(
	struct order *o, int i, const char *hint, const char *fmt, const char *name)
{
	const Onnx__NodeProto *n = o->block->node[i];
	const struct where w = {.file = o->im->m.path, .node = label(n), .op = text_of(n->op_type)};
	return diag_fail(o->im->d, ST_INVALID, &w, hint, fmt, name);
}

static enum status define(struct order *o, const char *name, intptr_t maker, int node)
{
	void **at = names_at(&o->maker, name);
	if (!at)
		return diag_nomem(o->im->d);
	if (*at && node >= 0)
		return node_error(o, node, NULL, "makes '%s', which is made already", name);
	*at = (void *)maker;
	return ST_OK;
}

static enum status define_all(struct order *o)
{
	const struct block *b = o->block;
	size_t n = (size_t)b->nin + (b->graph ? b->graph->n_initializer : 0);
	for (int i = 0; i < o->n; i++)
		n += b->node[i]->n_output;
	if (!names_reserve(&o->maker, n))
		return diag_nomem(o->im->d);
	for (int i = 0; i < b->nin; i++)
		TRY(define(o, b->in[i], SOURCE, -1));
	for (size_t i = 0; b->graph && i < b->graph->n_initializer; i++)
		TRY(define(o, text_of(b->graph->initializer[i]->name), SOURCE, -1));
	for (int i = 0; i < o->n; i++)
		for (size_t k = 0; k < b->node[i]->n_output; k++)
			if (*text_of(b->node[i]->output[k]))
				TRY(define(o, b->node[i]->output[k], i + 1, i));
	return ST_OK;
}

/* --- Who reads what --- */

/* How many names a node may read. */
static size_t count_reads(const Onnx__NodeProto *n)
{
	size_t count = n->n_input;
	for (size_t i = 0; i < n->n_attribute; i++) {
		const Onnx__GraphProto *g = n->attribute[i]->g;
		for (size_t k = 0; g && k < g->n_node; k++)
			count += count_reads(g->node[k]);
		count += g ? g->n_output : 0;
	}
	return count;
}

static void link_reader(struct order *o, int i, const char *name)
{
	intptr_t maker = (intptr_t)names_get(&o->maker, name);
	if (!*name || maker == SOURCE || (maker == 0 && o->block->inner) || o->faults == REPORT_MAX)
		return;
	if (maker == 0) {
		o->worst = node_error(o, i,
			"is an initializer missing from the file? PyTorch's optimizer may have "
			"lost it: export with optimize=False",
			"reads '%s', which nothing makes", name);
		o->faults++;
		return;
	}
	o->reader[o->nreader] = i;
	o->next_reader[o->nreader] = o->first[maker - 1];
	o->first[maker - 1] = o->nreader++;
	o->waits[i]++;
}

static bool is_local(const struct locals *l, const char *name)
{
	for (; l; l = l->outer)
		if (names_get(&l->name, name))
			return true;
	return false;
}

static bool add_locals(struct locals *l, const Onnx__GraphProto *g)
{
	bool ok = true;
	for (size_t i = 0; i < g->n_input + g->n_initializer; i++) {
		const char *name = i < g->n_input ? g->input[i]->name
						  : g->initializer[i - g->n_input]->name;
		void **at = names_at(&l->name, text_of(name));
		ok = ok && at && (*at = l);
	}
	for (size_t i = 0; i < g->n_node; i++)
		for (size_t k = 0; k < g->node[i]->n_output; k++) {
			void **at = names_at(&l->name, text_of(g->node[i]->output[k]));
			ok = ok && at && (*at = l);
		}
	return ok;
}

/* What node i's attribute `g` reads from around it. */
static bool link_graph(
	struct order *o, int i, const Onnx__GraphProto *g, const struct locals *outer)
{
	struct locals l = {.name = {.arena = o->scratch}, .outer = outer};
	if (!add_locals(&l, g))
		return false;
	for (size_t n = 0; n < g->n_node; n++) {
		const Onnx__NodeProto *p = g->node[n];
		for (size_t k = 0; k < p->n_input; k++)
			if (!is_local(&l, text_of(p->input[k])))
				link_reader(o, i, text_of(p->input[k]));
		for (size_t k = 0; k < p->n_attribute; k++)
			if (p->attribute[k]->g && !link_graph(o, i, p->attribute[k]->g, &l))
				return false;
	}
	for (size_t k = 0; k < g->n_output; k++)
		if (!is_local(&l, text_of(g->output[k]->name)))
			link_reader(o, i, text_of(g->output[k]->name));
	return true;
}

static enum status link_readers(struct order *o)
{
	size_t edges = 0;
	for (int i = 0; i < o->n; i++)
		edges += count_reads(o->block->node[i]);
	if (edges > INT32_MAX)
		return diag_nomem(o->im->d);
	o->reader = ARENA_ARRAY(o->scratch, int, edges);
	o->next_reader = ARENA_ARRAY(o->scratch, int, edges);
	if (!o->reader || !o->next_reader)
		return diag_nomem(o->im->d);
	for (int i = 0; i < o->n; i++) {
		const Onnx__NodeProto *n = o->block->node[i];
		for (size_t k = 0; k < n->n_input; k++)
			link_reader(o, i, text_of(n->input[k]));
		for (size_t k = 0; k < n->n_attribute; k++)
			if (n->attribute[k]->g && !link_graph(o, i, n->attribute[k]->g, NULL))
				return diag_nomem(o->im->d);
	}
	return o->worst;
}

/* Nodes in file order as far as possible: a heap of the ready ones, smallest index first. */
static void push(int *heap, int *n, int v)
{
	int i = (*n)++;
	while (i && heap[(i - 1) / 2] > v) {
		heap[i] = heap[(i - 1) / 2];
		i = (i - 1) / 2;
	}
	heap[i] = v;
}

static int pop(int *heap, int *n)
{
	int top = heap[0], v = heap[--*n], i = 0;
	for (int c; (c = 2 * i + 1) < *n; i = c) {
		if (c + 1 < *n && heap[c + 1] < heap[c])
			c++;
		if (heap[c] >= v)
			break;
		heap[i] = heap[c];
	}
	heap[i] = v;
	return top;
}

/* The name of what `maker` makes and `reader` reads, itself or in its bodies. */
static const char *name_between(const struct order *o, int maker, int reader)
{
	const Onnx__NodeProto *n = o->block->node[reader];
	for (size_t k = 0; k < n->n_input; k++)
		if ((intptr_t)names_get(&o->maker, text_of(n->input[k])) == maker + 1)
			return n->input[k];
	return text_of(o->block->node[maker]->output[0]);
}

/* Every waiting node waits for a waiting one: going back from any of them ends on a cycle, at the
 * first node that is met again. The readers' lists, of no more use then, mark those that were met.
 */
static enum status cycle_error(struct order *o)
{
	enum { MET = -2 };
	int *waited_for = ARENA_ARRAY(o->scratch, int, o->n), i = 0;
	if (!waited_for)
		return diag_nomem(o->im->d);
	for (int k = 0; k < o->n; k++)
		for (int e = o->first[k]; o->waits[k] > 0 && e >= 0; e = o->next_reader[e])
			waited_for[o->reader[e]] = k;
	while (o->waits[i] == 0)
		i++;
	for (; o->first[i] != MET; i = waited_for[i])
		o->first[i] = MET;
	return node_error(o, i, "the graph must not have cycles", "lies on a cycle through '%s'",
		name_between(o, waited_for[i], i));
}

static enum status sort(struct order *o, int *out)
{
	int *heap = ARENA_ARRAY(o->scratch, int, o->n), ready = 0, done = 0;
	if (!heap)
		return diag_nomem(o->im->d);
	for (int i = 0; i < o->n; i++)
		if (o->waits[i] == 0)
			push(heap, &ready, i);
	while (ready) {
		int i = pop(heap, &ready);
		out[done++] = i;
		for (int e = o->first[i]; e >= 0; e = o->next_reader[e])
			if (--o->waits[o->reader[e]] == 0)
				push(heap, &ready, o->reader[e]);
	}
	return done == o->n ? ST_OK : cycle_error(o);
}

static enum status order_all(struct order *o, int *out)
{
	o->waits = ARENA_ARRAY(o->scratch, int, o->n);
	o->first = ARENA_ARRAY(o->scratch, int, o->n);
	if (!o->waits || !o->first || !out)
		return diag_nomem(o->im->d);
	for (int i = 0; i < o->n; i++)
		o->first[i] = -1;
	TRY(define_all(o));
	TRY(link_readers(o));
	return sort(o, out);
}

/* Whether a loss reads each node: it makes what the loss reads, or another that is read reads it.
 * Requires the order. */
static enum status find_unread(struct order *o, const int *sorted, const bool **out)
{
	const struct import_options *options = o->im->o;
	bool *unread = ARENA_ARRAY(o->im->m.arena, bool, o->n);
	if (!unread)
		return diag_nomem(o->im->d);
	for (int i = o->n - 1; i >= 0; i--) {
		const int v = sorted[i];
		const Onnx__NodeProto *n = o->block->node[v];
		bool read = false;
		for (size_t k = 0; k < n->n_output && options->read == IMPORT_READ_OUTPUTS; k++)
			read |= name_listed(options->output, text_of(n->output[k]));
		for (int e = o->first[v]; e >= 0; e = o->next_reader[e])
			read |= !unread[o->reader[e]];
		unread[v] = !read;
	}
	*out = unread;
	return ST_OK;
}

enum status order_nodes(struct importer *im, struct block *b)
{
	struct arena *scratch = arena_new();
	if (!scratch)
		return diag_nomem(im->d);
	struct order o = {
		.im = im, .scratch = scratch, .block = b, .maker = {.arena = scratch}, .n = b->n};
	int *out = ARENA_ARRAY(im->m.arena, int, b->n);
	enum status st = order_all(&o, out);
	if (st == ST_OK && b->graph == im->m.proto->graph && im->o->read != IMPORT_READ_ALL)
		st = find_unread(&o, out, &b->unread);
	arena_free(scratch);
	b->order = out;
	return st;
}
