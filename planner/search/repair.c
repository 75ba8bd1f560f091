/* Making a sequence fit: at the slot with the most live bytes, take a tensor that lies idle there
 * and produce it again (or only then) before its next use, with as much of what that needs as is no
 * longer there; or run its consumer earlier; or let the consumer read another tensor. Candidates
 * are ranked by an estimate, the best of them tried out, and the one that costs the least per byte
 * of excess removed stays. */
#include "planner/search/search.h"

#include <math.h>
#include <stdlib.h>

enum { CLOSURE_MAX = 600, DEPTH_MAX = 400, CANDIDATES_MAX = 40, FAILS_MAX = 6, QUICK = 24 };
static const double QUICK_SHARE = 0.7;

/* How a closure treats an input that is no longer live where it is needed. */
enum reach {
	REACH_PEAK, /* produce it again if it was dead at the peak, otherwise keep it longer */
	REACH_ALL,  /* produce it again */
	REACH_ONE,  /* keep it longer */
	REACH_RANDOM,
	REACH_ROOM, /* at random, and produce it again where there is no room to keep it */
};

struct candidate {
	int life, use; /* lifetime, the run that reads it next */
	int prev;      /* key of the last read before, or of its start */
	double score;  /* lower is better */
};

/* What a closure fetches from the host, where that can be done, rather than produce it again. */
enum fetching { FETCH_NONE, FETCH_ALL, FETCH_RANDOM };

/* An edit to the state that could be made. */
struct move {
	enum { MOVE_AGAIN, MOVE_DELAY, MOVE_HASTEN, MOVE_WAY } kind;
	int life, use, way;
	struct seq list; /* MOVE_AGAIN: ops to run before the use */
};

struct repairer {
	struct search *x;
	struct state *s;
	const struct inst *in;
	struct candidate *cand;
	int ncand, cap_cand;
	struct move best;
	double best_score;
	int64_t over; /* of the state as it is */
	double cost;
	bool noisy;
	int at_run; /* the run at hand, */
	int at;     /* and its slot */
	/* of the closure being gathered */
	enum reach reach;
	enum fetching fetching;
	int key;      /* of the use before which it runs */
	double again; /* REACH_RANDOM: probability of producing again */
	double closure_cost;
};

static const struct way *way_of(const struct repairer *r, int o)
{
	return &r->in->way[o][r->s->way[o]];
}

/* Whether an input whose lifetime ends too early is produced again rather than kept longer. */
static bool makes_again(struct repairer *r, const struct lifetime *f)
{
	switch (r->reach) {
	case REACH_ALL:
		return true;
	case REACH_ONE:
		return false;
	case REACH_PEAK:
		return f->end >> 1 < r->at;
	case REACH_RANDOM:
		return search_uniform(r->x) < r->again;
	default:
		r->x->work += 2;
		return search_uniform(r->x) < r->again ||
		       profile_exceeds(&r->s->over, (f->end >> 1) + 1, (r->key >> 1) - 1,
			       -r->s->size[f->tensor]);
	}
}

static bool list_op(struct repairer *r, int o)
{
	struct search *x = r->x;
	if (!seq_reserve(&x->list, x->list.n + 1)) {
		x->nomem = true;
		return false;
	}
	x->list.op[x->list.n++] = o;
	r->closure_cost += way_of(r, o)->cost;
	return true;
}

/* The tensor was there before the closure's key: its copy on the host can be. */
static bool gather_fetch(struct repairer *r, int t)
{
	const int o = r->in->fetch[t], away = r->in->away[t];
	if (r->x->mark[o] == r->x->stamp)
		return true;
	r->x->mark[o] = r->x->stamp;
	r->closure_cost += r->s->count[away] > 0 ? 0 : way_of(r, away)->cost;
	return list_op(r, o);
}

static bool fetches(struct repairer *r, int t)
{
	if (r->fetching == FETCH_NONE || r->in->fetch[t] < 0)
		return false;
	return r->fetching == FETCH_ALL || search_uniform(r->x) < 0.5;
}

static bool gather(struct repairer *r, int o, int depth)
{
	struct search *x = r->x;
	if (r->in->once[o])
		return false;
	if (x->mark[o] == x->stamp)
		return true;
	x->mark[o] = x->stamp;
	if (depth > DEPTH_MAX || x->list.n >= CLOSURE_MAX)
		return false;
	const struct way *w = way_of(r, o);
	for (int k = 0; k < w->nin; k++) {
		const struct lifetime *f = &r->s->life[state_life(r->s, w->in[k], r->key)];
		if (f->run < 0)
			return false;
		if (f->end >= r->key)
			continue;
		int p = r->in->p->tensor[w->in[k]].producer;
		const bool fetch = fetches(r, w->in[k]);
		if ((r->in->once[p] && !fetch) || !makes_again(r, f))
			continue;
		if (fetch ? !gather_fetch(r, w->in[k]) : !gather(r, p, depth + 1))
			return false;
	}
	return list_op(r, o);
}

/* Into x->list: what must run before the use so that it reads a new copy. */
static bool closure(struct repairer *r, const struct candidate *c, enum reach reach)
{
	struct search *x = r->x;
	x->stamp++;
	x->list.n = 0;
	r->closure_cost = 0;
	r->reach = reach;
	r->key = r->s->run[c->use].key;
	if (reach == REACH_RANDOM) /* REACH_ROOM: the caller says */
		r->again = search_uniform(x);
	const int t = r->s->life[c->life].tensor;
	bool ok = fetches(r, t) ? gather_fetch(r, t) : gather(r, r->in->p->tensor[t].producer, 0);
	x->work += x->list.n;
	return ok;
}

/* The cost of the candidate's new copy by a transfer, or produced if that is `cost` and less. */
static double fetch_cost(const struct repairer *r, const struct candidate *c, double cost)
{
	const int t = r->s->life[c->life].tensor, o = r->in->fetch[t], away = r->in->away[t];
	if (o < 0)
		return cost;
	const double v = way_of(r, o)->cost + (r->s->count[away] > 0 ? 0 : way_of(r, away)->cost);
	return v < cost ? v : cost;
}

/* --- Candidates --- */

static int candidate_cmp(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;
	if (x->score != y->score)
		return x->score < y->score ? -1 : 1;
	return (x->life > y->life) - (x->life < y->life);
}

/* The read before the slot and the one after; false when there is none after, or one there. */
static bool find_reads(const struct state *s, int l, int slot, struct candidate *c)
{
	int next = -1, next_key = INT32_MAX;
	state_count(s, s->life[l].nuse);
	c->prev = s->life[l].key;
	for (int u = s->life[l].use; u >= 0; u = s->use[u].next) {
		int key = s->run[s->use[u].run].key;
		if (key >> 1 == slot)
			return false;
		if (key >> 1 < slot) {
			c->prev = key > c->prev ? key : c->prev;
		} else if (key < next_key) {
			next_key = key;
			next = s->use[u].run;
		}
	}
	c->life = l;
	c->use = next;
	return next >= 0 && s->run[next].op >= 0;
}

static bool add_candidate(struct repairer *r, struct candidate c)
{
	if (r->ncand == r->cap_cand) {
		int cap = r->cap_cand * 2 + 256;
		struct candidate *p = realloc(r->cand, (size_t)cap * sizeof *p);
		if (!p) {
			r->x->nomem = true;
			return false;
		}
		r->cand = p;
		r->cap_cand = cap;
	}
	r->cand[r->ncand++] = c;
	return true;
}

/* Idle lifetimes at the slot at hand. */
static void list_candidates(struct repairer *r)
{
	const struct state *s = r->s;
	const struct inst *in = r->in;
	r->ncand = 0;
	r->x->work += 0.1 * s->lives.n;
	for (int l = in->m; l < s->lives.n; l++) {
		const struct lifetime *f = &s->life[l];
		struct candidate c;
		if (f->run < 0 || f->key >> 1 >= r->at || f->end >> 1 <= r->at ||
			in->size[f->tensor] == 0 || !find_reads(s, l, r->at, &c))
			continue;
		int o = s->run[f->run].op;
		c.life = l;
		c.score = (fetch_cost(r, &c, way_of(r, o)->cost) + 1e-6 * in->once_cost) /
			  (double)in->size[f->tensor];
		if (!add_candidate(r, c))
			return;
	}
}

/* What is above the target, summed, that would go if the tensor were not there while it is idle. */
static double gain_of(struct repairer *r, const struct candidate *c)
{
	int from = (c->prev >> 1) + 1, to = slot_of(r->s, c->use) - 1;
	int64_t size = r->s->size[r->s->life[c->life].tensor];
	r->x->work += 2 + (to - from) * 0.004;
	return (double)profile_relief(&r->s->over, from, to, size);
}

/* Cheap large ones first, then by what they would save. */
static void rank_candidates(struct repairer *r)
{
	const struct state *s = r->s;
	const struct inst *in = r->in;
	if (r->ncand > CANDIDATES_MAX) {
		qsort(r->cand, (size_t)r->ncand, sizeof *r->cand, candidate_cmp);
		r->ncand = CANDIDATES_MAX;
	}
	for (int i = 0; i < r->ncand; i++) {
		struct candidate *c = &r->cand[i];
		double cost = c->prev == s->life[c->life].key ? 0 /* it can be delayed */
			      : closure(r, c, REACH_PEAK)     ? r->closure_cost
							      : 0.1 * in->once_cost;
		if (cost > 0)
			cost = fetch_cost(r, c, cost);
		c->score = (cost + 1e-9 * in->once_cost) / (gain_of(r, c) + 1e-9);
		if (r->noisy)
			c->score *= 0.5 + search_uniform(r->x);
	}
	if (r->ncand > 0)
		qsort(r->cand, (size_t)r->ncand, sizeof *r->cand, candidate_cmp);
}

/* --- Moves --- */

/* In front of what reads: an update that is placed by rule reads behind the op of its slot. */
static int slot_in_front(const struct state *s, int run)
{
	return s->run[run].key & 1 ? slot_of(s, run) : slot_before(s, slot_of(s, run));
}

static bool delay(struct state *s, int run, int use)
{
	int o = s->run[run].op, before = slot_before(s, slot_of(s, use));
	if (s->in->floating[o] || s->run[use].key & 1 || before <= slot_of(s, run))
		return false;
	state_take(s, run);
	return state_put(s, slot_before(s, slot_of(s, use)), &o, 1);
}

/* Run the consumer as soon as its inputs are there. */
static bool hasten(struct state *s, int at, int run)
{
	int o = s->run[run].op, ready = -1;
	if (s->in->floating[o])
		return false;
	for (int u = s->run[run].use; u >= 0; u = s->use[u].sibling) {
		int key = s->life[s->use[u].life].key;
		ready = key >> 1 > ready ? key >> 1 : ready;
	}
	if (ready >= at)
		return false;
	if (ready >= 0 && s->at[ready] < 0)
		ready = slot_before(s, ready);
	state_take(s, run);
	return state_put(s, ready, &o, 1);
}

static bool apply(struct repairer *r, const struct move *m, const struct seq *list)
{
	struct state *s = r->s;
	bool ok;
	switch (m->kind) {
	case MOVE_AGAIN:
		ok = state_put(s, slot_in_front(s, m->use), list->op, list->n);
		for (int i = 0; i < list->n && ok && s->in->transfers; i++)
			ok = !s->in->transfer[list->op[i]] || state_complete(s, list->op[i]);
		break;
	case MOVE_DELAY:
		ok = delay(s, s->life[m->life].run, m->use);
		break;
	case MOVE_HASTEN:
		ok = hasten(s, r->at, m->use);
		break;
	default:
		state_set_way(s, s->run[m->use].op, m->way);
		ok = state_complete(s, s->run[m->use].op);
	}
	if (ok)
		state_clean(s);
	r->x->nomem = r->x->nomem || s->nomem;
	return ok && !s->nomem;
}

/* Make the move, measure, take it back; remember it when it is the best so far. */
static void consider(struct repairer *r, struct move m)
{
	struct state *s = r->s;
	int mark = state_mark(s), spreads = s->spreads;
	bool ok = apply(r, &m, &r->x->list) && s->bad == 0;
	int64_t over = profile_over(&s->over);
	double cost = s->cost;
	state_undo(s, mark);
	if (s->spreads != spreads) { /* all keys are new */
		r->at = slot_of(s, r->at_run);
		r->over = profile_over(&s->over);
		for (int i = 0; i < r->ncand; i++)
			r->cand[i].prev = -1;
	}
	double gain = (double)(r->over - over);
	if (!ok || gain <= 0)
		return;
	double score = (cost - r->cost + 1e-12 * r->in->once_cost) / gain;
	if (score < 0) /* cheaper and smaller at once */
		score *= gain * gain;
	if (r->noisy)
		score *= 1 + 0.15 * search_uniform(r->x);
	if (score >= r->best_score)
		return;
	r->best_score = score;
	struct seq keep = r->best.list;
	r->best = m;
	r->best.list = keep;
	if (m.kind == MOVE_AGAIN && !seq_copy(&r->best.list, &r->x->list))
		r->x->nomem = true;
}

static void try_again(struct repairer *r, const struct candidate *c, enum reach reach)
{
	if (closure(r, c, reach))
		consider(r, (struct move){.kind = MOVE_AGAIN, .life = c->life, .use = c->use});
}

/* The same with the tensor from the host, or with what its producer needs from there. */
static void try_fetch(struct repairer *r, const struct candidate *c)
{
	const int t = r->s->life[c->life].tensor;
	r->fetching = r->noisy && r->in->fetch[t] < 0 ? FETCH_RANDOM : FETCH_ALL;
	try_again(r, c, REACH_PEAK);
	if (r->in->fetch[t] >= 0 && r->noisy) {
		r->fetching = FETCH_RANDOM;
		try_again(r, c, REACH_RANDOM);
	}
	r->fetching = FETCH_NONE;
}

/* Ways in which the consumer does not read the tensor. */
static void try_ways(struct repairer *r, const struct candidate *c)
{
	int o = r->s->run[c->use].op, t = r->s->life[c->life].tensor;
	for (int k = 0; k < r->in->nway[o]; k++) {
		const struct way *w = &r->in->way[o][k];
		bool reads = k == r->s->way[o];
		for (int i = 0; i < w->nin; i++)
			reads = reads || w->in[i] == t;
		if (!reads)
			consider(r, (struct move){.kind = MOVE_WAY, .use = c->use, .way = k});
	}
}

/* Ways of the op at work there that need less scratch. */
static void try_own_ways(struct repairer *r)
{
	const int run = r->at_run, o = r->s->run[run].op;
	for (int k = 0; o >= 0 && k < r->in->nway[o]; k++) /* o < 0: the end */
		if (r->in->way[o][k].ws < r->in->way[o][r->s->way[o]].ws)
			consider(r, (struct move){.kind = MOVE_WAY, .use = run, .way = k});
}

static void try_candidate(struct repairer *r, const struct candidate *c, bool stuck)
{
	/* read before the first trial: the pool of lifetimes may move */
	const int run = r->s->life[c->life].run;
	const bool delayed = c->prev == r->s->life[c->life].key;
	if (r->in->transfers)
		try_fetch(r, c);
	if (!r->in->once[r->s->run[run].op]) {
		try_again(r, c, REACH_PEAK);
		if (r->noisy) {
			try_again(r, c, REACH_RANDOM);
		} else if (r->x->list.n > 1 || stuck) {
			try_again(r, c, REACH_ALL);
			try_again(r, c, REACH_ONE);
		}
	}
	if (delayed)
		consider(r, (struct move){.kind = MOVE_DELAY, .life = c->life, .use = c->use});
	consider(r, (struct move){.kind = MOVE_HASTEN, .use = c->use});
	try_ways(r, c);
}

/* A slot above the target, each with the same chance. */
static int random_slot(struct search *x, struct state *s)
{
	profile_refresh(&s->over);
	int pick = -1, seen = 0;
	for (int b = 0; b < s->over.n / PROFILE_BLOCK; b++) {
		if (s->over.block[b].max <= 0)
			continue;
		for (int i = b * PROFILE_BLOCK; i < (b + 1) * PROFILE_BLOCK; i++)
			if (profile_at(&s->over, i) > 0 && search_below(x, ++seen) == 0)
				pick = i;
	}
	return pick;
}

/* Some candidates at random, the best by a noisy estimate, untried. */
static bool quick_step(struct repairer *r)
{
	struct search *x = r->x;
	double best = 1e300, again = search_uniform(x) < 0.5 ? 0 : search_uniform(x);
	for (int i = 0; i < QUICK && i < r->ncand; i++) {
		int k = i + search_below(x, r->ncand - i);
		struct candidate c = r->cand[k];
		r->cand[k] = r->cand[i];
		r->again = again;
		r->fetching = x->in->transfers && search_uniform(x) < 0.7 ? FETCH_RANDOM
									  : FETCH_NONE;
		const bool made = closure(r, &c, REACH_ROOM);
		r->fetching = FETCH_NONE;
		if (!made)
			continue;
		double score = (r->closure_cost + 1e-9 * r->in->once_cost) /
			       (gain_of(r, &c) + 1e-9);
		score *= exp(1.5 * (search_uniform(x) - 0.5));
		if (score >= best)
			continue;
		best = score;
		r->best.kind = MOVE_AGAIN;
		r->best.life = c.life;
		r->best.use = c.use;
		if (!seq_copy(&r->best.list, &x->list))
			x->nomem = true;
	}
	return best < 1e300 && apply(r, &r->best, &r->best.list);
}

static bool step(struct repairer *r, int effort, int fails)
{
	struct search *x = r->x;
	bool random = fails > 0 || (r->noisy && search_uniform(x) < 0.3);
	r->at = random ? random_slot(x, r->s) : profile_worst(&r->s->over);
	r->at_run = r->s->at[r->at];
	r->over = profile_over(&r->s->over);
	r->cost = r->s->cost;
	r->best_score = 1e300;
	list_candidates(r);
	if (r->noisy && fails == 0 && search_uniform(x) < QUICK_SHARE)
		return quick_step(r);
	rank_candidates(r);
	int top = fails > 0 ? 3 * effort : effort;
	for (int i = 0; i < top && i < r->ncand && !x->nomem; i++)
		try_candidate(r, &r->cand[i], fails > 0);
	try_own_ways(r);
	return r->best_score < 1e300 && apply(r, &r->best, &r->best.list);
}

bool repair(struct search *x, struct state *s, double cost_limit, int effort, bool noisy)
{
	struct repairer r = {.x = x, .s = s, .in = x->in, .noisy = noisy};
	int fails = 0;
	state_clean(s);
	while (profile_over(&s->over) > 0 && s->bad == 0 && !search_done(x) &&
		s->cost <= cost_limit && s->runs.n < 10 * x->in->n + 400) {
		if (step(&r, effort, fails))
			fails = 0;
		else if (++fails > FAILS_MAX)
			break;
	}
	free(r.cand);
	seq_free(&r.best.list);
	x->nomem = x->nomem || s->nomem;
	return state_fits(s) && s->cost <= cost_limit && !x->nomem;
}
