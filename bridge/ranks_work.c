#include "bridge/ranks_work.h"

enum status ranks_work_of(struct arena *a, const struct graph_problem *gp, const struct plan *plan,
	double bytes, struct ranks_work *out, struct diag *d)
{
	const int64_t shards = gp->graph->shards;
	*out = (struct ranks_work){.shards = shards,
		.bytes = bytes,
		.sum = ARENA_ARRAY(a, struct ranks_sum, plan->nstep),
		.rows = ARENA_ARRAY(a, int64_t, plan->nstep)};
	if (!out->sum || !out->rows)
		return diag_nomem(d);
	for (int i = 0; i < plan->nstep; i++) {
		const struct plan_step *step = &plan->step[i];
		const struct problem_choice *way = &gp->problem->op[step->op].choice[step->choice];
		const struct node *n = gp->node[step->op];
		const struct tensor *x = n->nin ? n->in[0] : NULL;
		/* what runs in each shard has the costs of all (graph_problem_shards) */
		if (n->last)
			out->last += way->cost;
		else
			out->each += way->cost / (double)shards;
		if (n->op->role == ROLE_START_SUM)
			out->sum[out->nsum++] = (struct ranks_sum){
				x->numel, dtype_bytes(x->dtype), tensor_bytes(n->out[1])};
		else if (n->op->role == ROLE_KEEP_ROWS)
			out->rows[out->nrows++] = tensor_bytes(x);
	}
	return ST_OK;
}
