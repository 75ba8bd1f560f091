#include "bridge/loop_plans.h"

#include <string.h>

#include "graph/cost.h"
#include "graph/loop.h"

/* A turn in the least memory: little is gained behind the first plans. */
static const double TIGHT_EFFORT = 0.01;

/* The plan that was found for a problem, by its text. */
struct body_plan {
	const char *problem;
	bool tight;
	struct plan *plan;
	struct body_plan *before;
};

struct planning {
	struct arena *a;
	struct graph *g;
	const struct node *n;
	struct loop *l;
	const struct plan_options *o;
	bool tight;
	struct body_plan **known;
	struct diag *d;
};

/* The last step at which op `o` runs. */
static int step_of(const struct plan *plan, int o)
{
	for (int i = plan->nstep - 1; i >= 0; i--)
		if (plan->step[i].op == o)
			return i;
	return -1;
}

static bool reads(const struct problem_op *op, int t)
{
	for (int c = 0; c < op->nchoice; c++)
		for (int k = 0; k < op->choice[c].nin; k++)
			if (op->choice[c].in[k] == t)
				return true;
	return false;
}

static bool has_pair(const struct node *n, const struct tensor *out, const struct tensor *in)
{
	enum { PAIRS = 16 };
	struct op_pair pair[PAIRS];
	const int npair = node_pairs(n, pair, PAIRS);
	int reads = 0;
	bool paired = false;
	for (int k = 0; k < n->nin; k++)
		reads += n->in[k] && tensor_storage(n->in[k]) == in;
	for (int i = 0; i < npair; i++)
		paired |= n->out[pair[i].out] == out && n->in[pair[i].in] == in;
	return paired && reads == 1;
}

/* The sum so far, where output k of the body can be made in its place: that is read before, or by
 * the node that makes the new one, in place. NULL: it cannot. */
static const struct tensor *made_over(
	const struct loop_body *b, const struct graph_problem *gp, const struct plan *plan, int k)
{
	const int before = loop_sum_before(b, k);
	if (before < 0)
		return NULL;
	const struct tensor *in = b->graph->input[before], *out = b->graph->output[k];
	const int t = gp->index[in->id];
	const int made = step_of(plan, gp->problem->tensor[gp->index[out->id]].producer);
	for (int o = 0; o < gp->problem->nop; o++) {
		if (!reads(&gp->problem->op[o], t))
			continue;
		const int step = step_of(plan, o);
		if (step > made || (step == made && !has_pair(gp->node[o], out, in)))
			return NULL;
	}
	return in;
}

/* A plan of its own, checked. */
static enum status plan_anew(struct planning *p, const struct problem *problem, struct plan **out)
{
	struct plan_options o = *p->o;
	o.budget = p->tight ? 0 : INT64_MAX;
	o.least = o.hasty = p->tight;
	o.mode = p->tight ? PLAN_AUTO : PLAN_KEEP_ALL;
	o.segments = 0;
	o.effort = p->tight ? TIGHT_EFFORT : o.effort;
	TRY(plan_make(p->a, problem, &o, out, p->d));
	return plan_own_check(problem, *out, o.alignment, p->g->file, p->d);
}

/* That of the same problem, where there was one: loops that keep something else, or the same
 * forward pass in training and in evaluation, have the same bodies. */
static enum status plan_once(struct planning *p, const struct problem *problem, struct plan **out)
{
	struct body_plan *x = *p->known;
	struct text t = {0};
	problem_print(problem, &t);
	while (x && !t.failed && (x->tight != p->tight || strcmp(x->problem, t.s) != 0))
		x = x->before;
	const char *text = x || t.failed ? NULL : arena_strdup(p->a, t.s);
	text_free(&t);
	if (x) {
		*out = x->plan;
		return ST_OK;
	}
	if (!text || !(x = ARENA_NEW(p->a, struct body_plan)))
		return diag_nomem(p->d);
	TRY(plan_anew(p, problem, out));
	*x = (struct body_plan){text, p->tight, *out, *p->known};
	*p->known = x;
	return ST_OK;
}

static enum status plan_body(struct planning *p, int k)
{
	struct loop_planned *to = p->l->planned;
	const struct loop_body *b = &p->l->body[k];
	struct graph_problem *gp = ARENA_NEW(p->a, struct graph_problem);
	const char *name = arena_printf(p->a, "%s/turn", p->n->name);
	if (!gp || !name)
		return diag_nomem(p->d);
	TRY(problem_from_graph(p->a, b->graph, name, true, NULL, gp));
	/* what may be made in the place of what it is made of is made once */
	for (int i = 0; i < b->graph->noutput; i++)
		gp->problem->op[gp->problem->tensor[gp->index[b->graph->output[i]->id]].producer]
			.recomputable = false;
	TRY(plan_once(p, gp->problem, &to->plan[k]));
	to->problem[k] = gp;
	for (int i = 0; i < b->graph->noutput; i++)
		b->graph->output[i]->over = made_over(b, gp, to->plan[k], i);
	if (to->plan[k]->arena_bytes > to->arena)
		to->arena = to->plan[k]->arena_bytes;
	return ST_OK;
}

static enum status plan_loop(struct planning *p)
{
	struct loop *l = p->l;
	struct loop_planned *to = l->planned;
	*to = (struct loop_planned){
		.problem = ARENA_ARRAY(p->a, const struct graph_problem *, l->nbody),
		.plan = ARENA_ARRAY(p->a, struct plan *, l->nbody)};
	if (!to->problem || !to->plan)
		return diag_nomem(p->d);
	for (int k = 0; k < l->nbody; k++)
		TRY(plan_body(p, k));
	for (int k = 0; k < l->nbody; k++)
		to->cost += (double)loop_runs(l, k) * to->plan[k]->cost_total;
	struct loop_scratch scratch;
	TRY(loop_scratch_find(p->g, p->n, &scratch));
	to->workspace = scratch.bytes;
	return ST_OK;
}

enum status loops_plan(struct arena *a, const struct graph *g, const struct plan_options *o,
	bool tight, struct body_plan **known, struct diag *d)
{
	for (int i = 0; g && i < g->nnode; i++) {
		struct planning p = {.a = a,
			.g = (struct graph *)g,
			.n = g->node[i],
			.l = node_loop(g->node[i]),
			.o = o,
			.tight = tight,
			.known = known,
			.d = d};
		if (p.l)
			TRY(plan_loop(&p));
	}
	return ST_OK;
}

/* --- What people are told --- */

static enum problem_keeps keeps_of(const struct loop *l)
{
	bool any = l->ninside > 0;
	for (int i = 0; i < l->ncarry; i++)
		any |= l->kept[i] >= 0;
	return !any                            ? KEEPS_NOTHING
	       : l->slots == LOOP_SLOTS_INSIDE ? KEEPS_INSIDE
	       : l->slots < 0                  ? KEEPS_CARRIES
					       : KEEPS_PLACES;
}

/* Of the gradient's inputs: carries, and values inside turns. */
static int64_t kept_bytes(const struct node *n, const struct loop *l)
{
	int64_t sum = 0;
	for (int i = 0; i < l->ncarry; i++)
		sum += l->kept[i] >= 0 ? tensor_bytes(n->in[l->kept[i]]) : 0;
	for (int i = l->inside; i < l->inside + l->ninside; i++)
		sum += n->in[i] ? tensor_bytes(n->in[i]) : 0;
	return sum;
}

const struct problem_loop *loop_told(struct arena *a, const struct node *n)
{
	const struct loop *l = node_loop(n);
	const bool back = n->op->role == ROLE_LOOP_GRADIENT;
	struct problem_loop *out = ARENA_NEW(a, struct problem_loop);
	if (!out)
		return NULL;
	*out = (struct problem_loop){.turns = l->turns,
		.ends_early = l->ran >= 0,
		.keeps = keeps_of(l),
		.turn_bytes = l->planned->arena,
		.kept_bytes = back ? kept_bytes(n, l) : 0};
	if (out->keeps != KEEPS_PLACES)
		return out;
	out->places = l->slots + 1;
	out->again = l->advance >= 0 ? loop_runs(l, l->advance) : 0;
	if (back && !(out->at = loop_places(a, l, &out->nat)))
		return NULL;
	return out;
}
