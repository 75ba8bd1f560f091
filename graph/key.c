/* Kernels in words: what a node computes, on which shapes, made how. A time measured for one key
 * serves every node with the same, in any plan and any model. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "graph/cost.h"
#include "graph/fused.h"
#include "graph/op.h"

/* Tensors listed in full; of more, only how many elements the rest has. */
enum { LISTED_MAX = 12, CONSTANT_MAX = 8 };

/* A node that says how its parameters came about. */
struct spoken {
	const void *param;
	const struct node *node;
};

struct kernel_keys {
	struct arena *arena;
	const struct graph *graph;
	int n;
	struct spoken *spoken; /* by param, then by the node's place */
};

static int compare(const void *x, const void *y)
{
	const struct spoken *a = x, *b = y;
	uintptr_t p = (uintptr_t)a->param, q = (uintptr_t)b->param;
	if (p != q)
		return (p > q) - (p < q);
	return (a->node->id > b->node->id) - (a->node->id < b->node->id);
}

struct kernel_keys *kernel_keys_new(struct arena *a, const struct graph *g)
{
	struct kernel_keys *k = ARENA_NEW(a, struct kernel_keys);
	struct spoken *s = ARENA_ARRAY(a, struct spoken, g->nnode);
	if (!k || !s)
		return NULL;
	*k = (struct kernel_keys){.arena = a, .graph = g, .spoken = s};
	for (int i = 0; i < g->nnode; i++)
		if (g->node[i]->param && g->node[i]->nattr > 0)
			s[k->n++] = (struct spoken){g->node[i]->param, g->node[i]};
	qsort(s, (size_t)k->n, sizeof *s, compare);
	return k;
}

/* A node without attributes may have been handed another's parameters (a gradient its forward
 * node's): then that one's attributes tell them. */
static const struct node *who_tells(const struct kernel_keys *k, const struct node *n)
{
	int low = 0, high = k->n;
	if (n->nattr > 0 || !n->param)
		return n;
	while (low < high) {
		int middle = low + (high - low) / 2;
		if ((uintptr_t)k->spoken[middle].param < (uintptr_t)n->param)
			low = middle + 1;
		else
			high = middle;
	}
	return low < k->n && k->spoken[low].param == n->param ? k->spoken[low].node : n;
}

static void add_tensor(struct text *t, const struct tensor *x)
{
	if (!x) {
		text_puts(t, "-");
		return;
	}
	text_add(t, "%s[", dtype_name(x->dtype));
	for (int i = 0; i < x->rank; i++)
		text_add(t, "%s%" PRId64, i ? "," : "", x->dim[i]);
	text_puts(t, "]");
	/* axes, sizes, paddings given as an input */
	if (x->role != TR_CONSTANT || x->dtype != DT_I64 || x->rank > 1 || x->numel > CONSTANT_MAX)
		return;
	for (int64_t i = 0; i < x->numel; i++)
		text_add(t, "%s%" PRId64, i ? "," : "=", tensor_int(x, i));
}

static void add_tensors(struct text *t, int n, struct tensor *const *x)
{
	double rest = 0;
	for (int i = 0; i < n; i++) {
		if (i >= LISTED_MAX) {
			rest += x[i] ? (double)x[i]->numel : 0;
			continue;
		}
		text_puts(t, i ? ", " : "");
		add_tensor(t, x[i]);
	}
	if (n > LISTED_MAX)
		text_add(t, ", and %d more of %.0f elements", n - LISTED_MAX, rest);
}

static void add_attribute(struct text *t, const struct attr *a)
{
	text_add(t, " %s=", a->name);
	switch (a->kind) {
	case ATTR_INT:
		text_add(t, "%" PRId64, a->i);
		break;
	case ATTR_FLOAT:
		text_add(t, "%.9g", a->f);
		break;
	case ATTR_STRING:
		text_puts(t, a->s);
		break;
	case ATTR_INTS:
		for (int i = 0; i < a->n; i++)
			text_add(t, "%s%" PRId64, i ? "," : "", a->ints[i]);
		break;
	case ATTR_FLOATS:
		for (int i = 0; i < a->n; i++)
			text_add(t, "%s%.9g", i ? "," : "", a->floats[i]);
		break;
	case ATTR_STRINGS:
		for (int i = 0; i < a->n; i++)
			text_add(t, "%s%s", i ? "," : "", a->strings[i]);
		break;
	case ATTR_TENSOR:
		add_tensor(t, a->t);
		break;
	case ATTR_BODY:
	case ATTR_OTHER:
		break;
	}
}

/* In the order of their names, whatever the exporter's was. */
static void add_attributes(struct text *t, const struct node *n)
{
	const char *last = "";
	for (int k = 0; k < n->nattr; k++) {
		const struct attr *next = NULL;
		for (int i = 0; i < n->nattr; i++)
			if (strcmp(n->attr[i].name, last) > 0 &&
				(!next || strcmp(n->attr[i].name, next->name) < 0))
				next = &n->attr[i];
		if (!next)
			break;
		add_attribute(t, next);
		last = next->name;
	}
}

/* " Mul(0, 1) = s0, Relu(s0)": inputs by their places, earlier stages as s0, s1, ... */
static void add_stages(struct text *t, const struct node *n, const struct fused *f)
{
	bool live[FUSED_STAGES];
	fused_live(n, f, live);
	for (int q = 0; q < f->nstage; q++) {
		const struct fused_stage *s = &f->stage[q];
		if (!live[q])
			continue;
		text_add(t, " %s(", s->node->op->name);
		for (int k = 0; k < s->node->nin; k++) {
			text_puts(t, k ? ", " : "");
			if (fused_reads_slot(n, s->in[k]))
				text_add(t, "%d", s->in[k].slot);
			else if (s->in[k].stage >= 0)
				text_add(t, "s%d", s->in[k].stage);
			else
				text_puts(t, "-");
		}
		add_attributes(t, s->node);
		text_puts(t, ")");
		if (q + 1 < f->nstage)
			text_add(t, " = s%d,", q);
	}
}

const char *kernel_key(
	const struct kernel_keys *k, const struct node *n, const struct lib_call *library)
{
	struct text t = {0};
	const struct fused *fused = node_fused(n);
	text_add(&t, "%s(", n->op->name);
	add_tensors(&t, n->nin, n->in);
	text_puts(&t, ") -> ");
	add_tensors(&t, n->nout, n->out);
	if (fused)
		add_stages(&t, n, fused);
	else if (!(n->op->traits & OP_UPDATE)) /* its options are factors in a formula: no matter */
		add_attributes(&t, who_tells(k, n));
	text_puts(&t, library ? "; library" : k->graph->target->portable ? "; portable C" : "; C");
	if (library && library->name)
		text_add(&t, ", %s", library->name);
	char *key = t.failed ? NULL : arena_strdup(k->arena, t.s);
	text_free(&t);
	return key;
}
