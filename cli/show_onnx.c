#include "cli/show_onnx.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "import/import.h"

enum { NOTES = 6, STEPS_TOLD = 12 };

struct annotator {
	struct arena *arena;
	const struct problem *p;
	const struct plan *plan;
	struct plan_facts facts;
	bool *kept;           /* by op: a result of it is kept for the backward pass */
	int *first_of, *next; /* by op, by step: its steps; -1 ends */
	int *by_name;         /* ops by name, then by index */
	struct export_note note[NOTES];
	int nnote;
	bool nomem;
};

/* --- Ops by name --- */

struct named {
	const char *name;
	int op;
};

static int by_name(const void *x, const void *y)
{
	const struct named *a = x, *b = y;
	int order = strcmp(a->name, b->name);
	return order ? order : (a->op > b->op) - (a->op < b->op);
}

static bool sort_ops(struct annotator *w)
{
	int n = w->p->nop;
	struct named *list = ARENA_ARRAY(w->arena, struct named, n);
	w->by_name = ARENA_ARRAY(w->arena, int, n);
	if (!list || !w->by_name)
		return false;
	for (int o = 0; o < n; o++)
		list[o] = (struct named){w->p->op[o].name, o};
	qsort(list, (size_t)n, sizeof *list, by_name);
	for (int i = 0; i < n; i++)
		w->by_name[i] = list[i].op;
	return true;
}

/* The first in by_name that is not before `name`. */
static int find_name(const struct annotator *w, const char *name)
{
	int lo = 0, hi = w->p->nop;
	while (lo < hi) {
		int mid = lo + (hi - lo) / 2;
		if (strcmp(w->p->op[w->by_name[mid]].name, name) < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static bool chain_steps(struct annotator *w)
{
	w->first_of = ARENA_ARRAY(w->arena, int, w->p->nop);
	w->next = ARENA_ARRAY(w->arena, int, w->plan->nstep);
	w->kept = ARENA_ARRAY(w->arena, bool, w->p->nop);
	if (!w->first_of || !w->next || !w->kept)
		return false;
	for (int o = 0; o < w->p->nop; o++)
		w->first_of[o] = -1;
	for (int s = w->plan->nstep - 1; s >= 0; s--) {
		int o = w->plan->step[s].op;
		w->next[s] = w->first_of[o];
		w->first_of[o] = s;
	}
	for (int i = 0; i < w->facts.kept; i++) {
		int t = w->plan->buffer[w->facts.kept_buffer[i]].tensor;
		w->kept[w->p->tensor[t].producer] = true;
	}
	return true;
}

/* --- Notes --- */

static void add(struct annotator *w, const char *key, const char *value)
{
	if (value)
		w->note[w->nnote++] = (struct export_note){key, value};
	else
		w->nomem = true;
}

/* All ops of one node: forward, its gradients, running statistics. */
struct sums {
	double forward, again, backward;
	int64_t bytes;
	int extra, nforward;
	bool kept;
	char steps[STEPS_TOLD * 12 + 8];
	size_t nsteps;
	int told;
};

static void tell_step(struct sums *x, int s)
{
	if (x->told > STEPS_TOLD)
		return;
	const char *form = x->told == STEPS_TOLD ? ", ..." : x->told ? ", %d" : "%d";
	x->told++;
	x->nsteps += (size_t)snprintf(
		x->steps + x->nsteps, sizeof x->steps - x->nsteps, form, s + 1);
}

static void sum_op(const struct annotator *w, int o, struct sums *x)
{
	const struct problem_op *op = &w->p->op[o];
	bool forward = op->phase == PHASE_FORWARD;
	for (int s = w->first_of[o]; s >= 0; s = w->next[s]) {
		const struct plan_step *st = &w->plan->step[s];
		double cost = op->choice[st->choice].cost;
		bool again = plan_step_again(w->p, st);
		*(again ? &x->again : forward ? &x->forward : &x->backward) += cost;
		x->extra += again && w->p->op[plan_step_op(w->p, st)].phase == PHASE_FORWARD;
		if (forward || again)
			tell_step(x, s);
		for (int i = 0; forward && st->run == 0 && i < op->choice[st->choice].nout; i++)
			x->bytes += w->p->tensor[op->choice[st->choice].out[i]].bytes;
	}
	x->nforward += forward;
	x->kept |= w->kept[o];
}

static int notes(void *user, const char *name, const struct export_note **out)
{
	struct annotator *w = user;
	struct sums x = {0};
	for (int i = find_name(w, name);
		i < w->p->nop && strcmp(w->p->op[w->by_name[i]].name, name) == 0; i++)
		sum_op(w, w->by_name[i], &x);
	w->nnote = 0;
	*out = w->note;
	if (x.nforward == 0) /* a view, or folded away: the step does not run it */
		return 0;
	const char *unit = w->p->costs ? "_us" : "";
	add(w, "recompute",
		x.extra  ? arena_printf(w->arena, "recomputed %d time%s", x.extra,
                                  x.extra == 1 ? "" : "s")
		: x.kept ? "kept"
			 : "not needed later");
	add(w, "steps", arena_strdup(w->arena, x.steps));
	add(w, "bytes", arena_printf(w->arena, "%" PRId64, x.bytes));
	add(w, arena_printf(w->arena, "cost%s", unit), arena_printf(w->arena, "%.4g", x.forward));
	if (x.extra)
		add(w, arena_printf(w->arena, "recompute_cost%s", unit),
			arena_printf(w->arena, "%.4g", x.again));
	add(w, arena_printf(w->arena, "backward_cost%s", unit),
		arena_printf(w->arena, "%.4g", x.backward));
	return w->nomem ? -1 : w->nnote;
}

enum status show_onnx(const char *path, const char *model, struct arena *a, const struct problem *p,
	const struct plan *plan, struct diag *d)
{
	struct annotator w = {.arena = a, .p = p, .plan = plan};
	TRY(plan_facts_make(a, p, plan, &w.facts, d));
	if (!sort_ops(&w) || !chain_steps(&w))
		return diag_nomem(d);
	return export_annotated(model, path, notes, &w, d);
}
