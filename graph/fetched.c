/* What lasts over steps and is not there as it is read: a node fetches it in front of its readers
 * (away.c, parameter_pieces.c). */
#include "graph/graph_parts.h"

enum status fetching_begin(struct fetching *f, const struct graph *in)
{
	TRY(graph_copy_begin(&f->copy, in));
	f->home = ARENA_ARRAY(in->arena, struct tensor *, in->ntensor);
	return f->home ? ST_OK : diag_nomem(in->diag);
}

enum status fetching_find(struct fetching *f,
	bool (*goes)(const struct fetching *f, const struct tensor *t), const char *where,
	const char *hint)
{
	const struct graph *g = f->copy.from;
	for (int i = 0; i < g->noutput; i++) {
		const struct tensor *t = g->output[i] ? tensor_storage(g->output[i]) : NULL;
		if (t && !t->maker && goes(f, t))
			return diag_fail(g->diag, ST_USAGE,
				&(struct where){.file = g->file, .node = t->name}, hint,
				"is an output of the model as it is, and cannot be in %s", where);
	}
	for (int i = 0; i < g->ntensor; i++) {
		struct tensor **x = &f->copy.map[i];
		if (g->tensor[i]->maker || !*x || !goes(f, g->tensor[i]))
			continue;
		f->home[i] = *x;
		*x = NULL;
	}
	return ST_OK;
}

bool fetching_is_view(const struct fetching *f, const struct node *n)
{
	return (n->op->traits & OP_VIEW) && f->home[tensor_storage(n->in[0])->id];
}

enum status fetching_input(struct fetching *f, const struct tensor *t)
{
	struct node *view;
	if (!t || f->copy.map[t->id])
		return ST_OK;
	if (!f->home[t->id]) {
		TRY(fetching_input(f, t->maker->in[0]));
		return graph_copy_node(&f->copy, t->maker, &view);
	}
	f->copy.map[t->id] = f->fetch(f, t);
	return f->copy.map[t->id] ? ST_OK : f->copy.to->failed;
}

enum status fetching_node(struct fetching *f, const struct node *n, struct node **out)
{
	struct tensor **in;
	TRY(graph_copy_node(&f->copy, n, out));
	for (int w = 0; w < n->nalt; w++) {
		TRY(graph_copy_list(&f->copy, n->nin, n->alt[w], &in));
		TRY(graph_alternative(f->copy.to, *out, in));
	}
	return ST_OK;
}

/* A fetch runs in every micro-batch: some reader may. */
enum status fetching_reader(struct fetching *f, const struct node *n)
{
	struct node *m;
	f->copy.to->phase = n->phase == NODE_UPDATE ? NODE_BACKWARD : n->phase;
	for (int k = 0; k < n->nin; k++) {
		TRY(fetching_input(f, n->in[k]));
		for (int w = 0; w < n->nalt; w++)
			TRY(fetching_input(f, n->alt[w][k]));
	}
	return fetching_node(f, n, &m);
}
