#include "bridge/ranks_work.h"

#include "planner/problem/moves.h"

/* What each shard fetches. */
struct fetch {
	int job;
	struct plan_move move;
};

/* Of a plan's step what is between ranks. */
struct reading {
	const struct graph_problem *gp;
	const struct plan *plan;
	struct ranks_work *out;
	const struct node **begun; /* by job: by whom it was */
	int nfetch;
	struct fetch *fetch;
};

static void add_event(struct ranks_work *w, const struct ranks_event *e)
{
	w->event[w->nevent++] = *e;
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
	case ROLE_FETCH_PIECES:
		*out = (struct ranks_job){.kind = RANKS_GATHER,
			.numbers = n->out[0]->numel,
			.size = dtype_bytes(x->dtype)};
		return true;
	case ROLE_KEEP_ROWS:
	case ROLE_SHARE_ROW:
		*out = (struct ranks_job){.kind = RANKS_JOIN, .size = tensor_bytes(x)};
		return true;
	default:
		return false;
	}
}

static void add_fetch(struct reading *r, const struct plan_move *m)
{
	const struct node *n = r->gp->node[r->plan->step[m->step].op];
	if (n->op->role != ROLE_FETCH_PIECES || !job_of(n, &r->out->job[r->out->njob]))
		return;
	r->begun[r->out->njob] = n;
	r->fetch[r->nfetch++] = (struct fetch){r->out->njob++, *m};
}

/* Before step i: what is waited for, then what begins. `at` is the time. */
static void add_fetches(struct reading *r, int i, struct ranks_event at)
{
	at.each = true;
	for (int waits = 1; waits >= 0; waits--)
		for (int k = 0; k < r->nfetch; k++) {
			const struct fetch *f = &r->fetch[k];
			at.of = f->job;
			at.waits = waits;
			if ((waits ? f->move.wait : f->move.start) == i)
				add_event(r->out, &at);
		}
}

/* Of step i's own: it is over at `end`. */
static void add_node(struct reading *r, const struct node *n, struct ranks_event at, double end)
{
	struct ranks_work *w = r->out;
	if (job_of(n, &w->job[w->njob])) {
		r->begun[w->njob] = n;
		at.at = end;
		at.of = w->njob++;
		add_event(w, &at);
	} else if (n->op->traits & OP_WAITS) {
		at.waits = true;
		for (at.of = 0; at.of < w->njob; at.of++)
			if (r->begun[at.of] == n->in[0]->maker)
				add_event(w, &at);
	}
}

static void read_plan(struct reading *r, double times)
{
	struct ranks_work *out = r->out;
	struct ranks_event at = {0};
	for (int i = 0; i < r->plan->nstep; i++) {
		const struct plan_step *step = &r->plan->step[i];
		const struct problem_op *op = &r->gp->problem->op[step->op];
		const struct node *n = r->gp->node[step->op];
		add_fetches(r, i, at);
		if (op->from_ranks)
			continue;
		/* what runs in each shard has the costs of all (graph_problem_shards) */
		const double cost = op->choice[step->choice].cost / (n->last ? 1 : times);
		*(n->last ? &out->last : &out->each) += cost;
		add_node(r, n, at, n->op->traits & OP_WAITS ? at.at : at.at + cost);
		at.at += cost;
		at.at_each += n->last ? 0 : cost;
	}
	add_fetches(r, r->plan->nstep, at);
	at.waits = true;
	for (at.of = 0; at.of < out->njob; at.of++) /* nobody but the step's end */
		if (r->begun[at.of]->op->role == ROLE_GATHER_PIECES)
			add_event(out, &at);
}

enum status ranks_work_of(struct arena *a, const struct graph_problem *gp, const struct plan *plan,
	double bytes, struct ranks_work *out, struct diag *d)
{
	struct reading r = {.gp = gp,
		.plan = plan,
		.out = out,
		.begun = ARENA_ARRAY(a, const struct node *, plan->nstep),
		.fetch = ARENA_ARRAY(a, struct fetch, plan->nstep)};
	*out = (struct ranks_work){.shards = gp->graph->shards ? gp->graph->shards : 1,
		.bytes = bytes,
		.job = ARENA_ARRAY(a, struct ranks_job, plan->nstep + 1),
		.event = ARENA_ARRAY(a, struct ranks_event, 2 * (int64_t)plan->nstep),
		.done = ARENA_ARRAY(a, double, plan->nstep)};
	if (!r.begun || !r.fetch || !out->job || !out->event || !out->done)
		return diag_nomem(d);
	struct plan_move *move;
	int n;
	TRY(plan_moves(a, gp->problem, plan, &move, &n, d));
	for (int i = 0; i < n; i++)
		add_fetch(&r, &move[i]);
	read_plan(&r, (double)shards_of_process(gp->graph));
	return ST_OK;
}
