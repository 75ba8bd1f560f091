/* Fetches start earlier where there is room: a copy from the host that begins some ops before what
 * it brings is read runs beside these ops. The plan costs the same; only places and the order
 * change. Each fetch moves back over ops until these take as long as the copy, or until its tensor
 * would not fit beside what is live there. */
#include "planner/problem/transfer.h"
#include "planner/search/plan_make.h"

#include <stdlib.h>
#include <string.h>

enum { TRIES = 4 };

struct mover {
	const struct inst *in;
	const int *way;
	const struct seq *q;
	const struct sim *s;
	int64_t *mem; /* [s->n] live bytes, with what has moved */
	int *step_of; /* [q->n] */
	int *to;      /* [q->n] the position before which the op goes */
	int *move;    /* the positions from which ops go, in order */
};

static bool touches(const struct way *w, int t)
{
	for (int k = 0; k < w->nin; k++)
		if (w->in[k] == t)
			return true;
	for (int k = 0; k < w->nout; k++)
		if (w->out[k] == t)
			return true;
	return false;
}

/* The fetch at position i, over ops of `reach` times its own cost. */
static void move_back(struct mover *m, int i, double reach, int64_t limit)
{
	const int o = m->q->op[i], t = m->in->p->op[o].fetches - 1;
	const int64_t size = m->in->size[t];
	double left = reach * m->in->way[o][0].cost;
	int at = m->step_of[i];
	for (int j = i - 1; j >= 0 && left > 0; j--) {
		const int before = m->q->op[j];
		const struct way *w = &m->in->way[before][m->way[before]];
		bool room = m->in->away[t] != before && !touches(w, t);
		for (int s = m->step_of[j]; s < at && room; s++)
			room = m->mem[s] + size <= limit;
		if (!room)
			return;
		for (int s = m->step_of[j]; s < at; s++)
			m->mem[s] += size;
		at = m->step_of[j];
		m->to[i] = j;
		left -= m->in->transfer[before] ? 0 : w->cost;
	}
}

/* The sequence with fetches moved; false where none is. */
static bool move_all(struct mover *m, double reach, int64_t limit, struct seq *out)
{
	int n = 0;
	memcpy(m->mem, m->s->mem, (size_t)m->s->n * sizeof *m->mem);
	for (int s = 0; s < m->s->n; s++)
		if (!m->in->floating[m->s->step[s]])
			m->step_of[m->s->core[s]] = s;
	for (int i = 0; i < m->q->n; i++) {
		m->to[i] = i;
		if (m->in->p->op[m->q->op[i]].fetches)
			move_back(m, i, reach, limit);
		if (m->to[i] < i)
			m->move[n++] = i;
	}
	out->n = 0;
	for (int j = 0; j < m->q->n; j++) {
		for (int k = 0; k < n; k++)
			if (m->to[m->move[k]] == j)
				out->op[out->n++] = m->q->op[m->move[k]];
		if (m->to[j] == j)
			out->op[out->n++] = m->q->op[j];
	}
	return n > 0;
}

enum status prefetch(struct planner *pl, const struct solution *from, struct plan **plan)
{
	const struct inst *in = pl->in;
	struct search *x = &pl->x;
	const int64_t limit = pl->o->budget < INT64_MAX ? pl->o->budget : (*plan)->arena_bytes;
	struct seq moved = {0};
	enum status st = ST_OK;
	if (!in->transfers)
		return ST_OK;
	for (int k = 0; k < TRIES && st == ST_OK; k++) {
		struct mover m = {.in = in, .way = from->way, .q = &from->q, .s = &x->s};
		struct plan *tried;
		if (!simulate(x, &from->q, from->way, &x->s))
			break;
		m.mem = ARENA_ARRAY(pl->tmp, int64_t, x->s.n + 1);
		m.step_of = ARENA_ARRAY(pl->tmp, int, from->q.n + 1);
		m.to = ARENA_ARRAY(pl->tmp, int, from->q.n + 1);
		m.move = ARENA_ARRAY(pl->tmp, int, from->q.n + 1);
		if (!m.mem || !m.step_of || !m.to || !m.move || !seq_reserve(&moved, from->q.n)) {
			st = diag_nomem(pl->d);
			break;
		}
		if (!move_all(&m, TRANSFER_TIMES_COST * 1.0 / (1 << k), limit, &moved))
			break;
		st = emit_plan(x, pl->a, &moved, from->way, limit, &tried, pl->d);
		if (st == ST_OK && tried->arena_bytes <= limit) {
			tried->budget_bytes = (*plan)->budget_bytes;
			*plan = tried;
			break;
		}
	}
	seq_free(&moved);
	return st;
}
