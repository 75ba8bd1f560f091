/* A valid order of the nodes. ONNX asks for a sorted file; we sort, and say where it cannot be
 * done. */
#include <string.h>

#include "import/private.h"

/* Who makes a name: node index + 1, or SOURCE for inputs and initializers. */
enum { SOURCE = -1 };

struct order {
	struct importer *im;
	const Onnx__GraphProto *graph;
	struct names maker; /* name → pointer-sized node number */
	int n;
	int *waits;                        /* by node: inputs not yet made */
	int *first, *next_reader, *reader; /* readers of each node's outputs, as lists */
	int nreader;
};

static const char *label(const Onnx__NodeProto *n)
{
	return n->name && *n->name ? n->name : n->n_output ? text_of(n->output[0]) : "";
}

static enum status node_error(
	struct order *o, int i, const char *hint, const char *fmt, const char *name)
{
	const Onnx__NodeProto *n = o->graph->node[i];
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
	const Onnx__GraphProto *g = o->graph;
	for (size_t i = 0; i < g->n_input; i++)
		TRY(define(o, text_of(g->input[i]->name), SOURCE, -1));
	for (size_t i = 0; i < g->n_initializer; i++)
		TRY(define(o, text_of(g->initializer[i]->name), SOURCE, -1));
	for (int i = 0; i < o->n; i++)
		for (size_t k = 0; k < g->node[i]->n_output; k++)
			if (*text_of(g->node[i]->output[k]))
				TRY(define(o, g->node[i]->output[k], i + 1, i));
	return ST_OK;
}

static enum status link_readers(struct order *o)
{
	size_t edges = 0;
	for (int i = 0; i < o->n; i++)
		edges += o->graph->node[i]->n_input;
	if (edges > INT32_MAX)
		return diag_nomem(o->im->d);
	o->reader = ARENA_ARRAY(o->im->m.arena, int, edges);
	o->next_reader = ARENA_ARRAY(o->im->m.arena, int, edges);
	if (!o->reader || !o->next_reader)
		return diag_nomem(o->im->d);
	enum status worst = ST_OK;
	int faults = 0;
	for (int i = 0; i < o->n && faults < REPORT_MAX; i++) {
		const Onnx__NodeProto *n = o->graph->node[i];
		for (size_t k = 0; k < n->n_input; k++) {
			const char *name = text_of(n->input[k]);
			intptr_t maker = (intptr_t)names_get(&o->maker, name);
			if (!*name || maker == SOURCE)
				continue;
			if (maker == 0) {
				worst = node_error(o, i, "is an initializer missing from the file?",
					"reads '%s', which nothing makes", name);
				faults++;
				continue;
			}
			o->reader[o->nreader] = i;
			o->next_reader[o->nreader] = o->first[maker - 1];
			o->first[maker - 1] = o->nreader++;
			o->waits[i]++;
		}
	}
	return worst;
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

/* A node that `i` waits for: some input's maker is not built either. */
static int waited_for(const struct order *o, int i, const char **name)
{
	const Onnx__NodeProto *n = o->graph->node[i];
	for (size_t k = 0; k < n->n_input; k++) {
		intptr_t maker = (intptr_t)names_get(&o->maker, text_of(n->input[k]));
		if (maker > 0 && o->waits[maker - 1] > 0) {
			*name = n->input[k];
			return (int)maker - 1;
		}
	}
	return i;
}

/* Every waiting node waits for a waiting one: going back from any of them ends on a cycle, at the
 * first node that is met again. The readers' lists, of no more use, mark those that were met. */
static enum status cycle_error(struct order *o)
{
	enum { MET = -2 };
	int i = 0;
	const char *name = "";
	while (o->waits[i] == 0)
		i++;
	while (o->first[i] != MET) {
		o->first[i] = MET;
		i = waited_for(o, i, &name);
	}
	waited_for(o, i, &name);
	return node_error(
		o, i, "the graph must not have cycles", "lies on a cycle through '%s'", name);
}

static enum status sort(struct order *o, int *out)
{
	int *heap = ARENA_ARRAY(o->im->m.arena, int, o->n), ready = 0, done = 0;
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

enum status order_nodes(struct importer *im, const int **order)
{
	struct order o = {.im = im, .graph = im->m.proto->graph, .maker = {.arena = im->m.arena}};
	if (o.graph->n_node > INT32_MAX / 2)
		return diag_nomem(im->d);
	o.n = (int)o.graph->n_node;
	o.waits = ARENA_ARRAY(im->m.arena, int, o.n);
	o.first = ARENA_ARRAY(im->m.arena, int, o.n);
	int *out = ARENA_ARRAY(im->m.arena, int, o.n);
	if (!o.waits || !o.first || !out)
		return diag_nomem(im->d);
	for (int i = 0; i < o.n; i++)
		o.first[i] = -1;
	TRY(define_all(&o));
	TRY(link_readers(&o));
	TRY(sort(&o, out));
	*order = out;
	return ST_OK;
}
