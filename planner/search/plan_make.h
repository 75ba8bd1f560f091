/* The parts of plan_make and plan_frontier. Private to planner/. */
#ifndef STINT_PLANNER_PLAN_MAKE_H
#define STINT_PLANNER_PLAN_MAKE_H

#include "planner/search/search.h"

/* A sequence under the planner's default ways. */
struct candidate_seq {
	struct seq q;
	double cost;
	int64_t peak;
};

/* By more than the order of a sum's terms makes. */
static inline bool cost_below(double a, double b)
{
	return a < b * (1 - 1e-12);
}

struct solution {
	bool found;
	struct seq q;
	int *way; /* [n] */
	double cost;
};

struct planner {
	struct search x;
	struct state s;
	struct arena *a;   /* the caller's */
	struct arena *tmp; /* gone at the end */
	const struct plan_options *o;
	struct plan_options raised; /* `least` has made a budget of it */
	double effort;
	struct diag *d;
	struct inst *in;
	int *way; /* [n] default ways */
	struct candidate_seq *cand;
	int ncand;
	/* a deterministic function of the problem: the smallest budget known */
	struct solution least;
	int64_t least_arena;
	bool least_final; /* the full search for it was made */
};

enum status planner_init(struct planner *pl, struct arena *a, const struct problem *p,
	const struct plan_options *o, struct diag *d);
void planner_free(struct planner *pl);

bool solution_set(
	struct planner *pl, struct solution *s, const struct seq *q, const int *way, double cost);
/* From and to the planner's state. */
bool solution_take(struct planner *pl, struct solution *s);
bool solution_load(struct planner *pl, const struct seq *q, const int *way);

/* Everything once in several orders; equal, snapped and per-block segments. Fills pl->cand, the
 * listed order first, no one both dearer and larger than another but for the orders. */
enum status candidates_make(struct planner *pl);
/* What the solutions of the lower bound do, as candidates. Once the smallest budget is known only:
 * they depend on the budget. */
enum status candidates_seed(struct planner *pl, const struct bound_seed *seed, int nseed);
/* The sequence that mode, PLAN_KEEP_ALL or PLAN_SEGMENTS, asks for. */
enum status candidates_fixed(struct planner *pl, struct seq *q);

/* What no plan within the budget can cost less than, and whether more work may raise it. */
struct proof {
	double bound;
	bool tried, more;  /* it was raised; it can be further */
	double gap, until; /* that is near enough, from so much work on */
};
/* A cost at which there is nothing left to do: what is cheaper by less than a millionth is no
 * shorter step, as far as costs can tell; and after a while, what is cheaper by less than was asked
 * for. */
static inline double proof_meets(const struct proof *p, const struct search *x)
{
	return p->bound * (1 + (x->work >= p->until && p->gap > 1e-6 ? p->gap : 1e-6));
}

/* To whoever waits. */
static inline void proof_tell(
	const struct planner *pl, double cost, const struct proof *p, double done)
{
	const double once = pl->in->once_cost > 0 ? pl->in->once_cost : 1;
	onlooker_far(pl->in->onlooker, done, "%.4g x one pass, gap at most %.2g %%", cost / once,
		cost > p->bound ? 100 * (cost - p->bound) / cost : 0);
}

/* The cheapest sequence within x.target that `work` finds, from *best too when that is set; *best
 * out, not found when nothing fits. Stops where the bound is met, which it raises the first time,
 * and where starts that differ all end at the same cost. */
enum status portfolio(struct planner *pl, struct proof *proof, double work, struct solution *best);

/* The cheapest plan within o->budget, at or above least_arena; `from` (or NULL) is a start. *chosen
 * out (unless NULL): what the plan was made from. Its bound is what the search came upon, which
 * `proves` raises further. */
enum status planner_solve(struct planner *pl, const struct solution *from, struct solution *chosen,
	bool proves, struct plan **out);

/* *plan, made from `from`, with fetches as early as its budget has room, where there are any. */
enum status prefetch(struct planner *pl, const struct solution *from, struct plan **plan);
/* The same with waits as late as they pay, where there are any. */
enum status overlap(struct planner *pl, const struct solution *from, struct plan **plan);
/* Of a plan with transfers and one without (NULL: there is none), the cheaper. */
struct plan *plan_of_both(struct plan *with, struct plan *without);

/* A plan of little arena, quickly. Sets pl->least. */
enum status minimum_quick(struct planner *pl);
/* The same from a sequence at hand (or NULL). */
enum status minimum_from(struct planner *pl, const struct solution *from);
/* The smallest that is searched for; depends on the problem, the alignment and the mode alone. */
enum status minimum_search(struct planner *pl);

#endif
