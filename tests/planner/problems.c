#include "problems.h"

#include <stdio.h>
#include <string.h>

int roll(struct dice *d, int n)
{
	d->s ^= d->s << 13;
	d->s ^= d->s >> 7;
	d->s ^= d->s << 17;
	return n > 0 ? (int)((d->s >> 11) % (uint64_t)n) : 0;
}

static void put(void *user, enum diag_level level, const struct where *w, const char *message,
	const char *hint)
{
	struct heard *h = user;
	(void)hint;
	if (level != DIAG_ERROR)
		return;
	h->n++;
	snprintf(h->last, sizeof h->last, "%s: %s", w->node ? w->node : "", message);
}

struct diag listen(struct heard *h)
{
	*h = (struct heard){0};
	return (struct diag){.put = put, .user = h};
}

static int add_tensor(struct arena *a, struct problem *p, enum tensor_kind kind, int64_t bytes)
{
	int t = p->ntensor++;
	p->tensor[t] = (struct problem_tensor){.id = 100 + t,
		.name = arena_printf(a, "t%d", t),
		.bytes = bytes,
		.kind = kind,
		.producer = -1};
	return t;
}

static struct problem *new_problem(struct arena *a, int nop, int ntensor)
{
	struct problem *p = ARENA_NEW(a, struct problem);
	p->name = "made";
	p->tensor = ARENA_ARRAY(a, struct problem_tensor, ntensor);
	p->op = ARENA_ARRAY(a, struct problem_op, nop);
	return p;
}

static struct problem_op *add_op(struct arena *a, struct problem *p, enum phase phase, double cost)
{
	int o = p->nop++;
	struct problem_choice *c = ARENA_ARRAY(a, struct problem_choice, 3);
	c[0].cost = cost;
	p->op[o] = (struct problem_op){.id = 1000 + o,
		.name = arena_printf(a, "op%d", o),
		.phase = phase,
		.nchoice = 1,
		.choice = c,
		.recomputable = phase != PHASE_UPDATE};
	return &p->op[o];
}

struct making {
	struct arena *a;
	struct problem *p;
	struct dice d;
	const struct shape *shape;
	int made[4096], nmade; /* tensors that may be read */
	int nread[4096];
	int param[64];
	bool param_read[64];
};

static int64_t some_bytes(struct making *m)
{
	return (int64_t)m->shape->unit * (1 + roll(&m->d, m->shape->most));
}

static void add_input(int *in, int *n, int t)
{
	for (int i = 0; i < *n; i++)
		if (in[i] == t)
			return;
	in[(*n)++] = t;
}

static void pick_inputs(struct making *m, int *in, int *nin)
{
	int many = 1 + roll(&m->d, 3);
	for (int i = 0; i < many && m->nmade > 0; i++) {
		/* recent tensors more often, old ones sometimes: what backward ops do */
		int back = roll(&m->d, 3) ? roll(&m->d, m->nmade < 4 ? m->nmade : 4)
					  : roll(&m->d, m->nmade);
		int t = m->made[m->nmade - 1 - back];
		add_input(in, nin, t);
		m->nread[t]++;
	}
	if (m->shape->nparam && roll(&m->d, 2)) {
		int w = roll(&m->d, m->shape->nparam);
		add_input(in, nin, m->param[w]);
		m->param_read[w] = true;
	}
}

static void add_pairs(struct making *m, struct problem_op *op)
{
	const struct problem_choice *c = &op->choice[0];
	struct problem_pair *pair = ARENA_ARRAY(m->a, struct problem_pair, c->nin * c->nout + 1);
	for (int i = 0; i < c->nin; i++)
		for (int j = 0; j < c->nout; j++)
			if (!tensor_kind_resident(m->p->tensor[c->in[i]].kind) &&
				m->p->tensor[c->out[j]].bytes <= m->p->tensor[c->in[i]].bytes &&
				roll(&m->d, 2))
				pair[op->npair++] = (struct problem_pair){c->out[j], c->in[i]};
	op->pair = pair;
}

static void add_choices(struct making *m, struct problem_op *op)
{
	struct problem_choice *c = ARENA_ARRAY(m->a, struct problem_choice, 3);
	memcpy(c, op->choice, sizeof *c);
	op->choice = c;
	op->has_choices = true;
	op->nchoice = 2;
	c[1] = c[0];
	c[1].cost += roll(&m->d, 3);
	c[1].workspace = some_bytes(m);
	if (c[0].nin > 1)
		c[1].nin--;
}

/* One of what all ways read says whether it runs. */
static void add_when(struct problem_op *op)
{
	for (int k = 0; k < op->choice[0].nin && !op->when; k++) {
		bool all = true;
		for (int c = 1; c < op->nchoice; c++) {
			const struct problem_choice *way = &op->choice[c];
			int i = 0;
			while (i < way->nin && way->in[i] != op->choice[0].in[k])
				i++;
			all = all && i < way->nin;
		}
		op->when = all ? 1 + op->choice[0].in[k] : 0;
	}
}

static void random_op(struct making *m, int i)
{
	struct problem *p = m->p;
	enum phase phase = i < m->shape->nop / 2 ? PHASE_FORWARD : PHASE_BACKWARD;
	struct problem_op *op = add_op(m->a, p, phase, 1 + roll(&m->d, 20));
	struct problem_choice *c = ARENA_ARRAY(m->a, struct problem_choice, 1);
	*c = op->choice[0];
	int *in = ARENA_ARRAY(m->a, int, 8), *out = ARENA_ARRAY(m->a, int, 4);
	pick_inputs(m, in, &c->nin);
	int many = m->shape->several && roll(&m->d, 3) == 0 ? 2 : 1;
	for (int k = 0; k < many; k++) {
		int64_t bytes = roll(&m->d, 20) ? some_bytes(m) : 0;
		out[c->nout] = add_tensor(
			m->a, p, phase == PHASE_FORWARD ? TK_ACTIVATION : TK_GRADIENT, bytes);
		p->tensor[out[c->nout]].producer = p->nop - 1;
		m->made[m->nmade++] = out[c->nout++];
	}
	c->in = in;
	c->out = out;
	if (m->shape->workspace && roll(&m->d, 3) == 0)
		c->workspace = some_bytes(m) + roll(&m->d, 60);
	op->choice = c;
	op->recomputable = !(m->shape->once && roll(&m->d, 6) == 0);
	if (m->shape->inplace)
		add_pairs(m, op);
	if (m->shape->choices && roll(&m->d, 3) == 0)
		add_choices(m, op);
	op->optional = m->shape->optional && roll(&m->d, 6) == 0;
	if (m->shape->branches && roll(&m->d, 3) == 0)
		add_when(op);
}

static void random_update(struct making *m, int w)
{
	struct problem *p = m->p;
	struct problem_op *op = add_op(m->a, p, PHASE_UPDATE, 1);
	struct problem_choice *c = ARENA_ARRAY(m->a, struct problem_choice, 1);
	struct problem_pair *pair = ARENA_ARRAY(m->a, struct problem_pair, 1);
	int *in = ARENA_ARRAY(m->a, int, 2), *out = ARENA_ARRAY(m->a, int, 1);
	in[0] = m->param[w];
	in[1] = m->made[m->nmade - 1 - roll(&m->d, m->nmade < 6 ? m->nmade : 6)];
	m->nread[in[1]]++;
	out[0] = add_tensor(m->a, p, TK_OUTPUT, p->tensor[in[0]].bytes);
	p->tensor[out[0]].producer = p->nop - 1;
	p->tensor[out[0]].keep = true;
	pair[0] = (struct problem_pair){out[0], in[0]};
	*c = (struct problem_choice){.cost = 1, .nin = 2, .nout = 1, .in = in, .out = out};
	op->choice = c;
	op->pair = pair;
	op->npair = 1;
}

struct problem *random_problem(struct arena *a, uint64_t seed, const struct shape *shape)
{
	struct making m = {.a = a, .d = {seed * 0x9e3779b97f4a7c15u + 12345}, .shape = shape};
	for (int i = 0; i < 10; i++)
		roll(&m.d, 2);
	m.p = new_problem(a, shape->nop + shape->nparam, 2 * shape->nop + 2 * shape->nparam + 2);
	int x = add_tensor(a, m.p, TK_INPUT, some_bytes(&m));
	for (int i = 0; i < shape->nparam; i++)
		m.param[i] = add_tensor(a, m.p, TK_PARAMETER, some_bytes(&m) / 2);
	m.made[m.nmade++] = x;
	for (int i = 0; i < shape->nop; i++)
		random_op(&m, i);
	for (int i = 0; i < shape->nparam; i++)
		if (m.param_read[i])
			random_update(&m, i);
	for (int t = 0; t < m.p->ntensor; t++)
		if (!tensor_kind_resident(m.p->tensor[t].kind) && roll(&m.d, 12) == 0)
			m.p->tensor[t].keep = true;
	return m.p;
}

struct problem *chain_problem(struct arena *a, int n, int64_t bytes)
{
	struct problem *p = new_problem(a, 2 * n + 1, 2 * n + 3);
	int *x = ARENA_ARRAY(a, int, n + 1), g = 0;
	x[0] = add_tensor(a, p, TK_INPUT, bytes);
	for (int i = 0; i <= 2 * n; i++) {
		bool forward = i < n, loss = i == n;
		struct problem_op *op = add_op(a, p, i <= n ? PHASE_FORWARD : PHASE_BACKWARD, 1);
		struct problem_choice *c = ARENA_ARRAY(a, struct problem_choice, 1);
		int *in = ARENA_ARRAY(a, int, 2), *out = ARENA_ARRAY(a, int, 1);
		out[0] = add_tensor(a, p, forward ? TK_ACTIVATION : TK_GRADIENT, bytes);
		p->tensor[out[0]].producer = i;
		*c = (struct problem_choice){
			.cost = 1, .nin = forward || loss ? 1 : 2, .nout = 1, .in = in, .out = out};
		in[0] = forward ? x[i] : loss ? x[n] : g;
		if (forward)
			x[i + 1] = out[0];
		else if (!loss)
			in[1] = x[2 * n - i];
		g = out[0];
		op->choice = c;
	}
	p->tensor[g].keep = true;
	return p;
}
