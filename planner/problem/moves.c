#include "planner/problem/moves.h"

#include "planner/problem/transfer.h"

struct moves {
	const struct problem *p;
	const struct plan *plan;
	int n;
	struct plan_move *move;
};

static const struct problem_op *op_of(const struct moves *m, int step)
{
	return &m->p->op[m->plan->step[step].op];
}

static const struct problem_choice *choice_of(const struct moves *m, int step)
{
	return &op_of(m, step)->choice[m->plan->step[step].choice];
}

static bool overlap(const struct plan_buffer *a, const struct plan_buffer *b)
{
	return a->bytes > 0 && b->bytes > 0 && a->offset < b->offset + b->bytes &&
	       b->offset < a->offset + a->bytes;
}

/* The step from which on nobody but what fills the buffer needs its bytes. */
static int free_from(const struct moves *m, int buffer)
{
	const struct plan_buffer *b = &m->plan->buffer[buffer];
	int step = 0;
	for (int i = 0; i < m->plan->nbuffer; i++) {
		const struct plan_buffer *x = &m->plan->buffer[i];
		if (i != buffer && x->first_step < b->first_step && overlap(x, b) &&
			x->last_step + 1 > step)
			step = x->last_step + 1;
	}
	return step;
}

/* The first step behind `after` that writes to the bytes of a buffer that a copy reads there. A
 * copy back that writes there comes behind it by itself, and what writes later behind that one. */
static int written_again(const struct moves *m, int buffer, int after)
{
	const struct plan_buffer *b = &m->plan->buffer[buffer];
	int step = m->plan->nstep;
	for (int i = 0; i < m->plan->nbuffer; i++) {
		const struct plan_buffer *x = &m->plan->buffer[i];
		if (i != buffer && x->first_step > after && x->first_step < step && overlap(x, b))
			step = x->first_step;
	}
	return step < m->plan->nstep && problem_op_moves(op_of(m, step)) ? m->plan->nstep : step;
}

static bool reads(const struct moves *m, int step, int tensor)
{
	const struct problem_choice *c = choice_of(m, step);
	for (int k = 0; k < c->nin; k++)
		if (c->in[k] == tensor)
			return true;
	return false;
}

/* Of what is in `buffer`, which lives as long. */
static int first_reader(const struct moves *m, int buffer, int after)
{
	const struct plan_buffer *b = &m->plan->buffer[buffer];
	for (int step = after + 1; step <= b->last_step && step < m->plan->nstep; step++)
		if (reads(m, step, b->tensor))
			return step;
	return m->plan->nstep;
}

/* What a step moves: of what it reads, the one that is no resident. -1: nothing, in a plan that
 * nobody has checked. */
static int moved(const struct moves *m, int step, bool away)
{
	const struct problem_choice *c = choice_of(m, step);
	int k = 0;
	while (away && k < c->nin && tensor_kind_resident(m->p->tensor[c->in[k]].kind))
		k++;
	return away ? (k < c->nin ? c->in[k] : -1) : c->nout > 0 ? c->out[0] : -1;
}

static int buffer_at(const struct moves *m, int tensor, int step)
{
	for (int i = 0; i < m->plan->nbuffer; i++) {
		const struct plan_buffer *b = &m->plan->buffer[i];
		if (b->tensor == tensor && b->first_step <= step && step <= b->last_step)
			return i;
	}
	return -1;
}

/* Where tensor t was copied to the host. */
static int offload_of(const struct moves *m, int t)
{
	for (int i = 0; i < m->n; i++)
		if (op_of(m, m->move[i].step)->offloads == t + 1)
			return m->move[i].step;
	return -1;
}

static void add(struct moves *m, int step)
{
	const struct problem_op *op = op_of(m, step);
	const bool away = op->offloads || op->to_disk;
	const int tensor = moved(m, step, away);
	const int buffer = tensor < 0 ? -1 : buffer_at(m, tensor, step);
	if (buffer < 0)
		return;
	struct plan_move x = {.step = step, .buffer = buffer, .away = away, .start = step};
	if (!away) {
		const int there = op->fetches ? offload_of(m, tensor) + 1 : 0;
		const int place = free_from(m, buffer);
		x.start = place > there ? place : there;
	}
	x.wait = away ? written_again(m, buffer, step) : first_reader(m, buffer, step);
	m->move[m->n++] = x;
}

/* From a file, or from others, things come in the order in which they are wanted: what is wanted
 * much later would be in the way of the others. None starts before what is wanted before it, nor
 * later than its step. */
static void keep_order(struct moves *m)
{
	for (int i = m->n - 1; i >= 0; i--) {
		struct plan_move *x = &m->move[i];
		for (int k = 0; k < i && !x->away && !op_of(m, x->step)->fetches; k++) {
			const struct plan_move *before = &m->move[k];
			if (!before->away && before->wait <= x->wait && before->start > x->start)
				x->start = before->start < x->step ? before->start : x->step;
		}
	}
}

enum status plan_moves(struct arena *a, const struct problem *p, const struct plan *plan,
	struct plan_move **out, int *n, struct diag *d)
{
	struct moves m = {
		.p = p, .plan = plan, .move = ARENA_ARRAY(a, struct plan_move, plan->nstep + 1)};
	if (!m.move)
		return diag_nomem(d);
	for (int step = 0; step < plan->nstep; step++)
		if (problem_op_moves(op_of(&m, step)))
			add(&m, step);
	keep_order(&m);
	*out = m.move;
	*n = m.n;
	return ST_OK;
}

/* How long a copy is on its way. */
static double time_of(const struct moves *m, int step)
{
	const int times = problem_op_transfers(op_of(m, step)) ? TRANSFER_TIMES_COST : 1;
	return times * choice_of(m, step)->cost;
}

enum status plan_beside(struct arena *a, const struct problem *p, const struct plan *plan,
	double *cost, struct diag *d)
{
	struct moves m = {.p = p, .plan = plan};
	TRY(plan_moves(a, p, plan, &m.move, &m.n, d));
	double *done = ARENA_ARRAY(a, double, m.n), now = 0, idle = 0;
	if (!done)
		return diag_nomem(d);
	for (int step = 0; step <= plan->nstep; step++) {
		for (int i = 0; i < m.n; i++)
			if (m.move[i].wait == step && done[i] > now)
				now = done[i];
		for (int i = 0; i < m.n; i++)
			if (m.move[i].start == step) {
				idle = (idle > now ? idle : now) + time_of(&m, m.move[i].step);
				done[i] = idle;
			}
		if (step < plan->nstep && !problem_op_moves(op_of(&m, step)))
			now += choice_of(&m, step)->cost;
	}
	*cost = now;
	return ST_OK;
}
