#include "bridge/ranks_work.h"

/* Who has begun what, in the order of ranks_work. */
struct begun {
	const struct node **sum, **rows;
};

static void add_event(struct ranks_work *w, double at, int of, bool waits)
{
	w->event[w->nevent++] = (struct ranks_event){at, of, waits};
}

/* Rows are numbered from -1 down until it is known how many sums there are. */
static void add_wait(struct ranks_work *w, const struct begun *b, const struct node *n, double at)
{
	for (int i = 0; i < w->nsum; i++)
		if (b->sum[i] == n->in[0]->maker)
			add_event(w, at, i, true);
	for (int i = 0; i < w->nrows; i++)
		if (b->rows[i] == n->in[0]->maker)
			add_event(w, at, -1 - i, true);
}

static void add_node(struct ranks_work *w, struct begun *b, const struct node *n, double at)
{
	const struct tensor *x = n->nin ? n->in[0] : NULL;
	if (n->op->role == ROLE_START_SUM) {
		add_event(w, at, w->nsum, false);
		b->sum[w->nsum] = n;
		w->sum[w->nsum++] = (struct ranks_sum){
			x->numel, dtype_bytes(x->dtype), tensor_bytes(n->out[1])};
	} else if (n->op->role == ROLE_KEEP_ROWS || n->op->role == ROLE_SHARE_ROW) {
		add_event(w, at, -1 - w->nrows, false);
		b->rows[w->nrows] = n;
		w->rows[w->nrows++] = tensor_bytes(x);
	} else if (n->op->traits & OP_WAITS) {
		add_wait(w, b, n, at);
	}
}

enum status ranks_work_of(struct arena *a, const struct graph_problem *gp, const struct plan *plan,
	double bytes, struct ranks_work *out, struct diag *d)
{
	const int64_t shards = gp->graph->shards;
	struct begun begun = {ARENA_ARRAY(a, const struct node *, plan->nstep),
		ARENA_ARRAY(a, const struct node *, plan->nstep)};
	double at = 0;
	*out = (struct ranks_work){.shards = shards,
		.bytes = bytes,
		.sum = ARENA_ARRAY(a, struct ranks_sum, plan->nstep),
		.rows = ARENA_ARRAY(a, int64_t, plan->nstep),
		.event = ARENA_ARRAY(a, struct ranks_event, 2 * (int64_t)plan->nstep),
		.done = ARENA_ARRAY(a, double, plan->nstep)};
	if (!begun.sum || !begun.rows || !out->sum || !out->rows || !out->event || !out->done)
		return diag_nomem(d);
	for (int i = 0; i < plan->nstep; i++) {
		const struct plan_step *step = &plan->step[i];
		const struct node *n = gp->node[step->op];
		double cost = gp->problem->op[step->op].choice[step->choice].cost;
		/* what runs in each shard has the costs of all (graph_problem_shards) */
		cost = n->last ? cost : cost / (double)shards;
		*(n->last ? &out->last : &out->each) += cost;
		add_node(out, &begun, n, n->op->traits & OP_WAITS ? at : at + cost);
		at += cost;
	}
	for (int i = 0; i < out->nevent; i++)
		if (out->event[i].of < 0)
			out->event[i].of = out->nsum - 1 - out->event[i].of;
	return ST_OK;
}
