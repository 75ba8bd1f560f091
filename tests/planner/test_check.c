/* The checker against an oracle that executes plans: every mutation that does harm is caught. */
#include "problems.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const struct shape shape = {.nop = 14,
	.nparam = 3,
	.inplace = true,
	.workspace = true,
	.several = true,
	.once = true,
	.optional = true,
	.choices = true,
	.unit = 64,
	.most = 6};

enum { CELL = 64, FREE = -1 };

/* --- The oracle: memory in cells of 64 bytes, each holding which tensor's which version it is ---
 */

struct machine {
	const struct problem *p;
	const struct plan *plan;
	int64_t ncell;
	int *cell;    /* tensor × 1000 + version, or FREE */
	int *claim;   /* step-local: who uses the cell now */
	int *version; /* [ntensor]; 0: never made */
	int *runs, *choice;
};

static int64_t cells(int64_t bytes)
{
	return (bytes + CELL - 1) / CELL;
}

static const struct plan_buffer *buffer_at(const struct machine *m, int t, int s)
{
	for (int i = 0; i < m->plan->nbuffer; i++) {
		const struct plan_buffer *b = &m->plan->buffer[i];
		if (b->tensor == t && b->first_step <= s && s <= b->last_step)
			return b;
	}
	return NULL;
}

static bool holds(const struct machine *m, int t, const struct plan_buffer *b)
{
	if (b->bytes < m->p->tensor[t].bytes)
		return false;
	for (int64_t i = 0; i < cells(b->bytes); i++)
		if (m->cell[b->offset / CELL + i] != t * 1000 + m->version[t])
			return false;
	return true;
}

/* Whether tensor `in` may lie under `out`: declared, same place. */
static bool declared(
	const struct problem_op *op, const struct plan_buffer *out, const struct plan_buffer *in)
{
	for (int i = 0; i < op->npair; i++)
		if (op->pair[i].out == out->tensor && op->pair[i].in == in->tensor &&
			out->offset == in->offset)
			return true;
	return false;
}

static void write_cells(struct machine *m, const struct plan_buffer *b, int value)
{
	for (int64_t i = 0; i < cells(b->bytes); i++)
		m->cell[b->offset / CELL + i] = value;
}

static bool overlap(const struct plan_buffer *a, const struct plan_buffer *b)
{
	return a->bytes > 0 && b->bytes > 0 && a->offset < b->offset + b->bytes &&
	       b->offset < a->offset + a->bytes;
}

static const struct plan_buffer *workspace_at(const struct machine *m, int s)
{
	for (int i = 0; i < m->plan->nbuffer; i++)
		if (m->plan->buffer[i].tensor < 0 && m->plan->buffer[i].first_step == s &&
			m->plan->buffer[i].workspace_of == m->plan->step[s].op)
			return &m->plan->buffer[i];
	return NULL;
}

/* One step, as generated code would do it; false when something goes wrong. */
static bool execute(struct machine *m, int s)
{
	int o = m->plan->step[s].op;
	const struct problem_op *op = &m->p->op[o];
	const struct problem_choice *c = &op->choice[m->plan->step[s].choice];
	const struct plan_buffer *use[32];
	int n = 0;
	if (m->runs[o]++ && (!op->recomputable || m->choice[o] != m->plan->step[s].choice))
		return false;
	m->choice[o] = m->plan->step[s].choice;
	for (int i = 0; i < c->nin; i++) {
		const struct plan_buffer *b = buffer_at(m, c->in[i], s);
		if (!b || !m->version[c->in[i]] || !holds(m, c->in[i], b))
			return false;
		use[n++] = b;
	}
	const struct plan_buffer *ws = workspace_at(m, s);
	if (c->workspace > 0 && (!ws || ws->bytes < c->workspace))
		return false;
	for (int i = 0; i < n && c->workspace > 0; i++)
		if (overlap(ws, use[i]))
			return false;
	for (int i = 0; i < c->nout; i++) {
		const struct plan_buffer *b = buffer_at(m, c->out[i], s);
		if (!b || b->bytes < m->p->tensor[c->out[i]].bytes ||
			(c->workspace > 0 && overlap(ws, b)))
			return false;
		int on = 0;
		for (int k = 0; k < n; k++)
			if (overlap(b, use[k]) &&
				(k >= c->nin || !declared(op, b, use[k]) || ++on > 1))
				return false;
		use[n++] = b;
	}
	if (c->workspace > 0)
		write_cells(m, ws, FREE);
	for (int i = 0; i < c->nout; i++) {
		m->version[c->out[i]]++;
		write_cells(
			m, buffer_at(m, c->out[i], s), c->out[i] * 1000 + m->version[c->out[i]]);
	}
	return true;
}

/* An update must write over its resident. */
static bool updates_in_place(const struct machine *m, int s)
{
	const struct problem_op *op = &m->p->op[m->plan->step[s].op];
	for (int i = 0; op->phase == PHASE_UPDATE && i < op->npair; i++) {
		const struct plan_buffer *out = buffer_at(m, op->pair[i].out, s);
		for (int k = 0; k < m->plan->nbuffer; k++)
			if (m->plan->buffer[k].tensor == op->pair[i].in &&
				(!out || m->plan->buffer[k].offset != out->offset))
				return false;
	}
	return true;
}

static bool machine_run(struct machine *m)
{
	for (int i = 0; i < m->plan->nbuffer; i++) {
		const struct plan_buffer *b = &m->plan->buffer[i];
		if (b->offset < 0 || b->offset % CELL ||
			b->offset + b->bytes > m->plan->arena_bytes)
			return false;
		if (b->tensor < 0 || !tensor_kind_resident(m->p->tensor[b->tensor].kind))
			continue;
		if (m->version[b->tensor]++ || b->first_step != 0)
			return false;
		for (int64_t k = 0; k < cells(b->bytes); k++)
			if (m->cell[b->offset / CELL + k] != FREE)
				return false;
		write_cells(m, b, b->tensor * 1000 + 1);
	}
	for (int s = 0; s < m->plan->nstep; s++)
		if (!execute(m, s) || !updates_in_place(m, s))
			return false;
	for (int o = 0; o < m->p->nop; o++)
		if (!m->runs[o] && !m->p->op[o].optional)
			return false;
	for (int t = 0; t < m->p->ntensor; t++) {
		const struct plan_buffer *b = buffer_at(m, t, m->plan->nstep - 1);
		if (m->p->tensor[t].keep && (!b || !m->version[t] || !holds(m, t, b)))
			return false;
	}
	return true;
}

static bool oracle(const struct problem *p, const struct plan *plan)
{
	struct machine m = {.p = p, .plan = plan, .ncell = cells(plan->arena_bytes) + 1};
	m.cell = malloc((size_t)m.ncell * sizeof(int));
	m.version = calloc((size_t)p->ntensor, sizeof(int));
	m.runs = calloc((size_t)p->nop, sizeof(int));
	m.choice = calloc((size_t)p->nop, sizeof(int));
	for (int64_t i = 0; i < m.ncell; i++)
		m.cell[i] = FREE;
	bool ok = machine_run(&m);
	free(m.cell);
	free(m.version);
	free(m.runs);
	free(m.choice);
	return ok;
}

/* --- Mutations --- */

static struct plan *copy_plan(struct arena *a, const struct plan *plan)
{
	struct plan *p = arena_memdup(a, plan, 1, sizeof *plan);
	p->step = arena_memdup(a, plan->step, (size_t)plan->nstep, sizeof *plan->step);
	p->buffer = arena_memdup(a, plan->buffer, (size_t)plan->nbuffer, sizeof *plan->buffer);
	return p;
}

static void drop_step(struct plan *m, int s)
{
	int o = m->step[s].op;
	memmove(m->step + s, m->step + s + 1, (size_t)(m->nstep - s - 1) * sizeof *m->step);
	m->nstep--;
	for (int i = s; i < m->nstep; i++)
		m->step[i].run -= m->step[i].op == o;
	int n = 0;
	for (int i = 0; i < m->nbuffer; i++) {
		struct plan_buffer b = m->buffer[i];
		if (b.tensor < 0 && b.first_step == s)
			continue;
		b.first_step -= b.first_step > s;
		b.last_step -= b.last_step >= s && b.last_step > b.first_step;
		b.last_step = b.last_step >= m->nstep ? m->nstep - 1 : b.last_step;
		b.first_step = b.first_step > b.last_step ? b.last_step : b.first_step;
		m->buffer[n++] = b;
	}
	m->nbuffer = n;
}

static void swap_steps(struct plan *m, int s, int t)
{
	struct plan_step x = m->step[s];
	m->step[s] = m->step[t];
	m->step[t] = x;
	for (int i = 0; i < m->nbuffer; i++) {
		struct plan_buffer *b = &m->buffer[i];
		if (b->tensor < 0 && b->first_step == s)
			b->first_step = b->last_step = t;
		else if (b->tensor < 0 && b->first_step == t)
			b->first_step = b->last_step = s;
	}
}

static void mutate(struct plan *m, struct dice *d)
{
	struct plan_buffer *b = &m->buffer[roll(d, m->nbuffer)];
	struct plan_buffer *c = &m->buffer[roll(d, m->nbuffer)];
	int s = roll(d, m->nstep), kind = roll(d, 10);
	int64_t offset;
	switch (kind) {
	case 0: /* shift an offset */
		b->offset += CELL * (roll(d, 9) - 4);
		break;
	case 1: /* exchange two offsets */
		offset = b->offset;
		b->offset = c->offset;
		c->offset = offset;
		break;
	case 2:
		drop_step(m, s);
		break;
	case 3:
		swap_steps(m, s, roll(d, m->nstep));
		break;
	case 4:
		if (s + 1 < m->nstep)
			swap_steps(m, s, s + 1);
		break;
	case 5: /* shorten a lifetime */
		if (b->first_step < b->last_step)
			b->last_step -= 1 + roll(d, b->last_step - b->first_step);
		break;
	case 6:
		if (b->first_step < b->last_step)
			b->first_step += 1 + roll(d, b->last_step - b->first_step);
		break;
	case 7: /* drop a buffer */
		*b = m->buffer[--m->nbuffer];
		break;
	case 8: /* put it where another lies */
		b->offset = c->offset;
		break;
	default: /* another op, or another choice */
		if (roll(d, 2))
			m->step[s].op = m->step[roll(d, m->nstep)].op;
		else
			m->step[s].choice ^= 1;
	}
}

/* Make the sums agree, so that the rules themselves must catch the rest. */
static void fix_sums(const struct problem *p, struct plan *m)
{
	m->arena_bytes = 0;
	for (int i = 0; i < m->nbuffer; i++)
		if (m->buffer[i].offset + m->buffer[i].bytes > m->arena_bytes)
			m->arena_bytes = m->buffer[i].offset + m->buffer[i].bytes;
	int runs[64] = {0};
	m->cost_total = 0;
	for (int s = 0; s < m->nstep; s++) {
		m->step[s].run = runs[m->step[s].op]++;
		int k = m->step[s].choice;
		if (k < p->op[m->step[s].op].nchoice)
			m->cost_total += p->op[m->step[s].op].choice[k].cost;
	}
	m->lower_bound = -1;
	m->budget_bytes = INT64_MAX;
}

static bool valid_choices(const struct problem *p, const struct plan *m)
{
	for (int s = 0; s < m->nstep; s++)
		if (m->step[s].choice < 0 || m->step[s].choice >= p->op[m->step[s].op].nchoice)
			return false;
	return true;
}

static void harm_is_caught(void **state)
{
	(void)state;
	struct dice dice = {4242};
	int harmful = 0, harmless = 0;
	for (uint64_t seed = 1; seed <= 60; seed++) {
		struct heard h;
		struct diag d = listen(&h);
		struct arena *a = arena_new();
		struct problem *p = random_problem(a, seed, &shape);
		struct plan_options o = {.budget = INT64_MAX, .alignment = 64, .effort = 0.02};
		int64_t known, proven;
		struct plan *plan;
		assert_int_equal(problem_validate(p, "made", &d), ST_OK);
		assert_int_equal(plan_minimum(a, p, &o, &known, &proven, &d), ST_OK);
		o.budget = seed % 2 ? known : INT64_MAX;
		assert_int_equal(plan_make(a, p, &o, &plan, &d), ST_OK);
		if (plan_check(p, plan, 64, "plan", &d) != ST_OK)
			fail_msg("seed %d: %s", (int)seed, h.last);
		assert_true(oracle(p, plan));
		for (int i = 0; i < 300; i++) {
			struct arena *b = arena_new();
			struct plan *m = copy_plan(b, plan);
			for (int k = roll(&dice, 3); k >= 0; k--)
				mutate(m, &dice);
			fix_sums(p, m);
			bool harm = !valid_choices(p, m) || !oracle(p, m);
			struct diag quiet = listen(&h);
			enum status st = plan_check(p, m, 64, "mutant", &quiet);
			if (harm && st == ST_OK)
				fail_msg("seed %d, mutant %d: harm not caught", (int)seed, i);
			harmful += harm;
			harmless += !harm;
			arena_free(b);
		}
		arena_free(a);
	}
	assert_true(harmful > 5000);
	assert_true(harmless > 0);
}

/* Each number that a plan states is compared with what follows from the rest. */
static void sums_are_compared(void **state)
{
	(void)state;
	struct arena *a = arena_new();
	struct heard h;
	struct diag d = listen(&h);
	struct problem *p = chain_problem(a, 8, 640);
	struct plan_options o = {.budget = 640 * 8, .alignment = 64};
	struct plan *plan;
	assert_int_equal(plan_make(a, p, &o, &plan, &d), ST_OK);
	assert_int_equal(plan_check(p, plan, 64, "plan", &d), ST_OK);
	for (int i = 0; i < 9; i++) {
		struct plan *m = copy_plan(a, plan);
		switch (i) {
		case 0:
			m->arena_bytes += 64;
			break;
		case 1:
			m->peak_bytes -= 1;
			break;
		case 2:
			m->cost_total *= 1 + 1e-6;
			break;
		case 3:
			m->cost_once *= 1 - 1e-6;
			break;
		case 4:
			m->lower_bound = m->cost_total * (1 + 1e-6);
			break;
		case 5:
			m->budget_bytes = m->arena_bytes - 1;
			break;
		case 6:
			m->buffer[m->nbuffer - 1].bytes -= 64;
			break;
		case 7:
			m->feasible = false;
			break;
		case 8:
			m->buffer[m->nbuffer - 1].offset += 32;
			break;
		}
		assert_int_equal(plan_check(p, m, 64, "plan", &d), ST_INVALID);
	}
	assert_int_equal(plan_check(p, plan, 64, "plan", &d), ST_OK);
	arena_free(a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(harm_is_caught),
		cmocka_unit_test(sums_are_compared),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
