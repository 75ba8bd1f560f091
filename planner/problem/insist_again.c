/* --recompute: what a chosen forward op makes is not kept for the backward pass. It gets a twin in
 * the backward phase, with outputs of its own, and backward ops read those. The twin of an op reads
 * the twins of its inputs where there are any, and besides something that is not there before the
 * forward pass is over, so that no plan can run it early and hold the results all the same. */
#include <stdlib.h>
#include <string.h>

#include "planner/problem/insist.h"

struct twins {
	struct arena *a;
	struct problem *p;
	bool *chosen;  /* by op */
	bool *certain; /* by op: in whatever way the others run, some need its twin */
	int *place;    /* by op: the op before which its twin is listed; nop: no twin is needed */
	int *map;      /* by tensor: the twin's, or -1 */
	int *moved;    /* by op: where it is listed now */
	int ntwin, nextra;
	int kept; /* made last by the forward pass and kept anyhow, as a rule the loss; -1: none */
};

static bool reads(const struct problem_choice *c, int t)
{
	for (int i = 0; i < c->nin; i++)
		if (c->in[i] == t)
			return true;
	return false;
}

static enum status choose(
	struct twins *w, const char *const *pattern, const char *file, struct diag *d)
{
	for (; *pattern; pattern++) {
		bool any = false, able = false;
		for (int o = 0; o < w->p->nop; o++) {
			const struct problem_op *op = &w->p->op[o];
			if (!insist_matches(op, *pattern))
				continue;
			any = true;
			if (op->phase != PHASE_FORWARD || !op->recomputable)
				continue;
			able = w->chosen[o] = true;
		}
		if (!any)
			return insist_no_match(w->a, w->p, "--recompute", *pattern, file, d);
		if (!able)
			return diag_fail(d, ST_USAGE, &(struct where){.file = file}, NULL,
				"--recompute '%s' matches only what cannot run again: backward "
				"ops, updates, and what runs once",
				*pattern);
	}
	return ST_OK;
}

/* `reader`, an op of the backward phase or one with a twin, reads chosen ops; listed at `at`. */
static void note_reader(struct twins *w, const struct problem_op *reader, int at, bool certain)
{
	for (int c = 0; c < reader->nchoice; c++)
		for (int i = 0; i < reader->choice[c].nin; i++) {
			int t = reader->choice[c].in[i], o = w->p->tensor[t].producer;
			if (o < 0 || !w->chosen[o])
				continue;
			if (at < w->place[o])
				w->place[o] = at;
			bool all = certain;
			for (int k = 0; k < reader->nchoice; k++)
				all = all && reads(&reader->choice[k], t);
			w->certain[o] = w->certain[o] || all;
		}
}

static void find_places(struct twins *w)
{
	int n = w->p->nop;
	for (int o = 0; o < n; o++)
		w->place[o] = n;
	for (int o = n - 1; o >= 0; o--) {
		const struct problem_op *op = &w->p->op[o];
		if (op->phase == PHASE_BACKWARD)
			note_reader(w, op, o, !op->optional);
		else if (w->place[o] < n) /* its readers stand after it: all are known */
			note_reader(w, op, w->place[o], w->certain[o]);
	}
}

static bool make_tensors(struct twins *w)
{
	struct problem *p = w->p;
	int64_t id = 0;
	int n = p->ntensor;
	for (int t = 0; t < n; t++) {
		int o = p->tensor[t].producer;
		w->map[t] = o >= 0 && w->place[o] < p->nop ? n + w->nextra++ : -1;
		id = p->tensor[t].id > id ? p->tensor[t].id : id;
	}
	struct problem_tensor *list = ARENA_ARRAY(w->a, struct problem_tensor, n + w->nextra);
	if (!list || id > INT64_MAX - w->nextra)
		return false;
	memcpy(list, p->tensor, (size_t)n * sizeof *list);
	for (int t = 0; t < n; t++) {
		if (w->map[t] < 0)
			continue;
		struct problem_tensor *x = &list[w->map[t]];
		*x = list[t];
		x->id = ++id;
		x->kind = TK_ACTIVATION;
		x->keep = false;
	}
	p->tensor = list;
	return true;
}

/* --- What a twin waits for --- */

static int smaller(const struct problem *p, int x, int y)
{
	return x < 0 || (y >= 0 && p->tensor[y].bytes < p->tensor[x].bytes) ? y : x;
}

static int kept_result(const struct problem *p)
{
	int best = -1;
	for (int t = 0; t < p->ntensor; t++) {
		int maker = p->tensor[t].producer;
		if (!p->tensor[t].keep || maker < 0 || p->op[maker].phase != PHASE_FORWARD)
			continue;
		int last = best < 0 ? -1 : p->tensor[best].producer;
		best = maker > last ? t : maker < last ? best : smaller(p, best, t);
	}
	return best;
}

/* For the twin of op `o`: what costs least to hold and is there only when the forward pass is over;
 * -1: nothing. */
static int trigger(const struct twins *w, int o)
{
	const struct problem *p = w->p;
	const struct problem_choice *reader = &p->op[w->place[o]].choice[0];
	int best = w->kept >= 0 && p->tensor[w->kept].producer >= o ? w->kept : -1;
	for (int i = 0; best < 0 && i < reader->nin; i++) {
		int maker = p->tensor[reader->in[i]].producer;
		if (maker >= 0 && p->op[maker].phase == PHASE_BACKWARD)
			best = smaller(p, best, reader->in[i]);
	}
	for (int f = w->place[o] - 1; best < 0 && f >= o; f--)
		for (int i = 0; p->op[f].phase == PHASE_FORWARD && i < p->op[f].choice[0].nout; i++)
			best = smaller(p, best, p->op[f].choice[0].out[i]);
	return best;
}

/* --- Ops --- */

static int mapped(const struct twins *w, int t)
{
	return w->map[t] >= 0 ? w->map[t] : t;
}

static int *map_list(const struct twins *w, const int *list, int n)
{
	int *out = ARENA_ARRAY(w->a, int, n + 1); /* room for what a twin waits for */
	for (int i = 0; out && i < n; i++)
		out[i] = mapped(w, list[i]);
	return out;
}

/* The op with the twins' tensors in place of the others: inputs, and for a twin outputs. `after`:
 * one input more; -1: none. */
static bool rewrite(const struct twins *w, struct problem_op *op, bool outputs, int after)
{
	struct problem_choice *choice = arena_memdup(
		w->a, op->choice, (size_t)op->nchoice, sizeof *choice);
	struct problem_pair *pair = arena_memdup(w->a, op->pair, (size_t)op->npair, sizeof *pair);
	if (!choice || !pair)
		return false;
	for (int c = 0; c < op->nchoice; c++) {
		int *in = map_list(w, choice[c].in, choice[c].nin);
		if (outputs)
			choice[c].out = map_list(w, choice[c].out, choice[c].nout);
		if (!in || !choice[c].out)
			return false;
		if (after >= 0 && !reads(&choice[c], after))
			in[choice[c].nin++] = after;
		choice[c].in = in;
	}
	for (int i = 0; i < op->npair; i++) {
		pair[i].in = mapped(w, pair[i].in);
		if (outputs)
			pair[i].out = mapped(w, pair[i].out);
	}
	op->choice = choice;
	op->pair = pair;
	op->when = op->when ? 1 + mapped(w, op->when - 1) : 0;
	return true;
}

static bool make_twin(const struct twins *w, int o, int64_t id, struct problem_op *out)
{
	*out = w->p->op[o];
	out->id = id;
	out->phase = PHASE_BACKWARD;
	out->optional = out->optional || !w->certain[o];
	return rewrite(w, out, true, trigger(w, o));
}

/* The twin of `op`, listed before op `place`. */
struct twin {
	int place, op;
};

static int by_place(const void *x, const void *y)
{
	const struct twin *a = x, *b = y;
	return a->place != b->place ? (a->place > b->place) - (a->place < b->place)
				    : (a->op > b->op) - (a->op < b->op);
}

/* All ops in the new order; *was: the old index of each, of the op that it repeats for a twin. */
static bool make_ops(struct twins *w, int **was)
{
	struct problem *p = w->p;
	int n = p->nop, k = 0, next = 0;
	struct twin *twin = ARENA_ARRAY(w->a, struct twin, n);
	struct problem_op *list = ARENA_ARRAY(w->a, struct problem_op, n + w->ntwin);
	int *from = *was = ARENA_ARRAY(w->a, int, n + w->ntwin);
	if (!twin || !list || !from)
		return false;
	int64_t id = 0;
	for (int o = 0; o < n; o++) {
		id = p->op[o].id > id ? p->op[o].id : id;
		if (w->place[o] < n)
			twin[k++] = (struct twin){w->place[o], o};
	}
	if (id > INT64_MAX - k)
		return false;
	qsort(twin, (size_t)k, sizeof *twin, by_place);
	int at = 0;
	for (int o = 0; o < n; o++) {
		for (; next < k && twin[next].place == o; next++) {
			from[at] = twin[next].op;
			if (!make_twin(w, from[at], ++id, &list[at]))
				return false;
			list[at++].repeats = 1 + w->moved[twin[next].op];
		}
		w->moved[o] = at;
		from[at] = o;
		list[at] = p->op[o];
		if (list[at].phase == PHASE_BACKWARD && !rewrite(w, &list[at], false, -1))
			return false;
		at++;
	}
	for (int t = 0; t < p->ntensor; t++)
		if (p->tensor[t].producer >= 0)
			p->tensor[t].producer = w->moved[p->tensor[t].producer];
	p->op = list;
	p->nop = at;
	p->ntensor += w->nextra;
	for (int o = 0; o < at; o++)
		for (int c = 0; list[o].repeats && c < list[o].nchoice; c++)
			for (int i = 0; i < list[o].choice[c].nout; i++)
				p->tensor[list[o].choice[c].out[i]].producer = o;
	return true;
}

enum status insist_again(struct arena *a, struct problem *p, const char *const *pattern,
	const char *file, int **was, struct diag *d)
{
	struct twins w = {.a = a, .p = p, .kept = kept_result(p)};
	*was = NULL;
	if (!pattern)
		return ST_OK;
	w.chosen = ARENA_ARRAY(a, bool, p->nop);
	w.certain = ARENA_ARRAY(a, bool, p->nop);
	w.place = ARENA_ARRAY(a, int, p->nop);
	w.moved = ARENA_ARRAY(a, int, p->nop);
	w.map = ARENA_ARRAY(a, int, p->ntensor);
	if (!w.chosen || !w.certain || !w.place || !w.moved || !w.map)
		return diag_nomem(d);
	TRY(choose(&w, pattern, file, d));
	find_places(&w);
	for (int o = 0; o < p->nop; o++)
		w.ntwin += w.place[o] < p->nop;
	return make_tensors(&w) && make_ops(&w, was) ? ST_OK : diag_nomem(d);
}
