#include "bridge/ranks_work.h"

static void add_event(struct ranks_work *w, double at, int of, bool waits)
{
	w->event[w->nevent++] = (struct ranks_event){at, of, waits};
}

/* What n begins. False: nothing. */
static bool job_of(const struct node *n, struct ranks_job *out)
{
	const struct tensor *x = n->nin ? n->in[0] : NULL;
	switch (n->op->role) {
	case ROLE_START_SUM:
		*out = (struct ranks_job){node_int(n, "whole", 1) ? RANKS_SUM : RANKS_SCATTER,
			x->numel, dtype_bytes(x->dtype), tensor_bytes(n->out[1])};
		return true;
	case ROLE_GATHER_PIECES:
		*out = (struct ranks_job){
			.kind = RANKS_GATHER, .numbers = x->numel, .size = dtype_bytes(x->dtype)};
		return true;
	case ROLE_KEEP_ROWS:
	case ROLE_SHARE_ROW:
		*out = (struct ranks_job){.kind = RANKS_JOIN, .size = tensor_bytes(x)};
		return true;
	default:
		return false;
	}
}

/* `begun`: by whom each job was. */
static void add_node(
	struct ranks_work *w, const struct node **begun, const struct node *n, double at)
{
	if (job_of(n, &w->job[w->njob])) {
		begun[w->njob] = n;
		add_event(w, at, w->njob++, false);
	} else if (n->op->traits & OP_WAITS) {
		for (int i = 0; i < w->njob; i++)
			if (begun[i] == n->in[0]->maker)
				add_event(w, at, i, true);
	}
}

enum status ranks_work_of(struct arena *a, const struct graph_problem *gp, const struct plan *plan,
	double bytes, struct ranks_work *out, struct diag *d)
{
	const int64_t times = shards_of_process(gp->graph);
	const struct node **begun = ARENA_ARRAY(a, const struct node *, plan->nstep);
	double at = 0;
	*out = (struct ranks_work){.shards = gp->graph->shards ? gp->graph->shards : 1,
		.bytes = bytes,
		.job = ARENA_ARRAY(a, struct ranks_job, plan->nstep + 1),
		.event = ARENA_ARRAY(a, struct ranks_event, 2 * (int64_t)plan->nstep),
		.done = ARENA_ARRAY(a, double, plan->nstep)};
	if (!begun || !out->job || !out->event || !out->done)
		return diag_nomem(d);
	for (int i = 0; i < plan->nstep; i++) {
		const struct plan_step *step = &plan->step[i];
		const struct node *n = gp->node[step->op];
		double cost = gp->problem->op[step->op].choice[step->choice].cost;
		/* what runs in each shard has the costs of all (graph_problem_shards) */
		cost = n->last ? cost : cost / (double)times;
		*(n->last ? &out->last : &out->each) += cost;
		add_node(out, begun, n, n->op->traits & OP_WAITS ? at : at + cost);
		at += cost;
	}
	for (int i = 0; i < out->njob; i++) /* nobody but the step's end */
		if (out->job[i].kind == RANKS_GATHER)
			add_event(out, at, i, true);
	return ST_OK;
}
