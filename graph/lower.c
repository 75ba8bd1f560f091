/* From the imported graph to the training or the evaluation graph, in three steps: recognise
 * spelled-out composites, drop what reaches no output, let each record lower its nodes and read
 * past views that change nothing. Each step copies. */
#include <string.h>

#include "graph/graph_parts.h"
#include "graph/pass.h"

/* Outputs keep the model's name whatever now computes them. */
static void take_name(struct tensor *t, const struct tensor *old)
{
	if (t && t->maker)
		t->name = old->name;
}

static enum status match_node(struct graph_copy *c, const struct node *old, struct node *n)
{
	const struct op_table *t = c->to->table;
	for (int f = 0; f < t->nfamily; f++)
		for (const struct op_def *r = t->family[f]; r->name; r++) {
			struct tensor *replace = NULL;
			if (!r->match)
				continue;
			graph_copy_for(c, old);
			TRY(r->match(c->to, n, &replace));
			if (replace) {
				take_name(replace, old->out[0]);
				c->map[old->out[0]->id] = replace;
				return ST_OK;
			}
		}
	return ST_OK;
}

static enum status recognise(const struct graph *in, struct graph **out)
{
	struct graph_copy c;
	TRY(graph_copy_begin(&c, in));
	for (int i = 0; i < in->nnode; i++) {
		struct node *n;
		TRY(graph_copy_node(&c, in->node[i], &n));
		if (n->out[0])
			TRY(match_node(&c, in->node[i], n));
	}
	return graph_copy_end(&c, out);
}

static enum status lower_node(
	struct graph_copy *c, const struct node *n, const struct lower_options *o)
{
	struct node *copied;
	if (!n->op->lower)
		return graph_copy_node(c, n, &copied);
	struct tensor **in, **made = ARENA_ARRAY(c->to->arena, struct tensor *, n->nout);
	if (!made)
		return diag_nomem(c->to->diag);
	TRY(graph_copy_list(c, n->nin, n->in, &in));
	graph_copy_for(c, n);
	TRY(n->op->lower(c->to, n, in, o, made));
	if (c->to->failed != ST_OK)
		return c->to->failed;
	if (n->out[0] && !made[0])
		return graph_copy_node(c, n, &copied);
	for (int k = 0; k < n->nout; k++)
		if (n->out[k]) {
			take_name(made[k], n->out[k]);
			c->map[n->out[k]->id] = made[k];
		}
	return ST_OK;
}

/* A node that reads what a lowering did not provide (a Dropout's mask, say). */
static enum status check_inputs(const struct graph_copy *c, const struct node *n)
{
	for (int i = 0; i < n->nin; i++)
		if (n->in[i] && !c->map[n->in[i]->id])
			return node_fail(c->to, n, NULL,
				"reads output '%s' of node '%s' (%s), which stint does not provide",
				n->in[i]->name, n->in[i]->maker->name, n->in[i]->maker->op->name);
	return ST_OK;
}

/* --- Views: a gradient is added to what they are of where their reader stands, not where the file
 * has them. A weight that many layers share through views at the file's beginning would have all
 * its gradients wait for the end. --- */

static bool is_view(const struct node *n)
{
	return n && (n->op->traits & (OP_VIEW | OP_STOP)) == OP_VIEW;
}

/* What t is a view of, in its own shape and type, over others or not: Identity, a Cast between
 * reals, a Reshape that changes nothing, or back. */
static struct tensor *read_past(struct tensor *t)
{
	struct tensor *same = t;
	while (t && is_view(t->maker) && t->dtype == t->maker->in[0]->dtype) {
		t = t->maker->in[0];
		same = tensor_same_shape(t, same) ? t : same;
	}
	return same;
}

/* Nobody reads such a view. Outputs keep theirs, and with it their name. */
static void read_past_views(struct graph *g)
{
	for (int i = 0; i < g->nnode; i++)
		for (int k = 0; k < g->node[i]->nin; k++)
			g->node[i]->in[k] = read_past(g->node[i]->in[k]);
}

struct sinking {
	struct node **list, **chain;
	bool *placed; /* by node */
	int n;
};

static void sink(struct sinking *s, struct node *n)
{
	s->list[s->n++] = n;
	s->placed[n->id] = true;
}

/* Its shape, where that is an input, is known. */
static bool sinks(const struct node *n)
{
	bool known = is_view(n);
	for (int k = 1; known && k < n->nin; k++)
		known = !n->in[k] || !n->in[k]->maker;
	return known;
}

static void sink_before_reader(struct sinking *s, int nin, struct tensor *const *in)
{
	for (int k = 0; k < nin; k++) {
		int n = 0;
		struct node *maker = in[k] ? in[k]->maker : NULL;
		for (; maker && sinks(maker) && !s->placed[maker->id]; maker = maker->in[0]->maker)
			s->chain[n++] = maker;
		while (n > 0)
			sink(s, s->chain[--n]);
	}
}

/* The others stand right before what reads them first, or at the end. */
static enum status sink_views(struct graph *g)
{
	struct arena *a = g->arena;
	struct sinking s = {.list = ARENA_ARRAY(a, struct node *, g->nnode + 1),
		.chain = ARENA_ARRAY(a, struct node *, g->nnode + 1),
		.placed = ARENA_ARRAY(a, bool, g->nnode + 1)};
	if (!s.list || !s.chain || !s.placed)
		return diag_nomem(g->diag);
	for (int i = 0; i < g->nnode; i++) {
		const struct node *n = g->node[i];
		if (sinks(n))
			continue;
		sink_before_reader(&s, n->nin, n->in);
		for (int k = 0; k < n->nalt; k++)
			sink_before_reader(&s, n->nin, n->alt[k]);
		sink(&s, g->node[i]);
	}
	for (int i = 0; i < g->nnode; i++)
		if (!s.placed[i])
			sink(&s, g->node[i]);
	graph_relist(g, s.n, s.list);
	return ST_OK;
}

/* --- What is said of many nodes at once --- */

struct lower_told {
	struct told {
		int n;
		const char *first; /* node */
		double ratio;
		struct text list;
	} tale[LOWER_TALES];
};

void lower_tell(const struct lower_options *o, enum lower_tale what, const char *node, double ratio)
{
	enum { LISTED = 4 };
	struct told *x = &o->told->tale[what];
	if (x->n++ == 0) {
		x->first = node;
		x->ratio = ratio;
	}
	if (x->n <= LISTED)
		text_add(&x->list, "%s'%s'", x->n > 1 ? ", " : "", node);
	else if (x->n == LISTED + 1)
		text_puts(&x->list, ", ...");
}

static void tell_all(struct graph *g, const struct lower_told *told)
{
	const struct where at = {.file = g->file};
	const struct told *idle = &told->tale[TOLD_IDLE], *silent = &told->tale[TOLD_SILENT];
	if (idle->n && !idle->list.failed)
		diag_warn(g->diag, &at,
			arena_printf(g->arena,
				"export the model in training mode, or --dropout '%s=%g', and so "
				"on",
				idle->first, idle->ratio),
			"%d node%s would drop out, %s exported for inference, and do%s nothing: %s",
			idle->n, idle->n == 1 ? "" : "s", idle->n == 1 ? "is" : "are",
			idle->n == 1 ? "es" : "", idle->list.s);
	if (silent->n && !silent->list.failed)
		diag_note(g->diag, &at,
			arena_printf(
				g->arena, "--dropout '%s=0' has one do nothing", silent->first),
			"%d node%s drop%s out in training as in PyTorch, whose exporter does not "
			"say "
			"so: %s",
			silent->n, silent->n == 1 ? "" : "s", silent->n == 1 ? "s" : "",
			silent->list.s);
}

static enum status lower_all(
	const struct graph *g, const struct lower_options *o, struct graph **out)
{
	struct graph_copy c;
	TRY(graph_copy_begin(&c, g));
	for (int i = 0; i < g->nnode; i++) {
		TRY(check_inputs(&c, g->node[i]));
		TRY(lower_node(&c, g->node[i], o));
	}
	read_past_views(c.to);
	TRY(sink_views(c.to));
	return graph_copy_end(&c, out);
}

enum status graph_lower(const struct graph *in, const struct lower_options *o, struct graph **out)
{
	struct graph *g;
	struct lower_told told = {0};
	struct lower_options with = *o;
	with.told = &told;
	TRY(recognise(in, &g));
	const enum status st = lower_all(g, &with, out);
	if (st == ST_OK)
		tell_all(g, &told);
	for (int i = 0; i < LOWER_TALES; i++)
		text_free(&told.tale[i].list);
	return st == ST_OK ? graph_verify(*out) : st;
}
