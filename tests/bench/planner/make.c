#include "make.h"

#include <string.h>

struct make make_start(struct arena *a, uint64_t seed)
{
	struct make m = {.a = a, .dice = seed * 0x9e3779b97f4a7c15u + 0x1234567};
	for (int i = 0; i < 8; i++)
		make_roll(&m, 2);
	return m;
}

int make_roll(struct make *m, int n)
{
	m->dice ^= m->dice << 13;
	m->dice ^= m->dice >> 7;
	m->dice ^= m->dice << 17;
	return n > 0 ? (int)((m->dice >> 11) % (uint64_t)n) : 0;
}

/* Room for one more; arenas do not free, so the old places are lost: less than what is used. */
static bool grow(struct make *m, void **list, int n, int *cap, size_t size)
{
	if (n < *cap)
		return !m->failed;
	int more = *cap ? *cap * 2 : 64;
	void *p = m->failed ? NULL : arena_alloc(m->a, (size_t)more, size);
	m->failed = !p;
	if (!p)
		return false;
	if (n)
		memcpy(p, *list, (size_t)n * size);
	*list = p;
	*cap = more;
	return true;
}

/* In a variable of the pointer's own type. */
#define GROW(m, list, n, cap)                                                                      \
	do {                                                                                       \
		void *grow_ = (list);                                                              \
		if (!grow((m), &grow_, (n), &(cap), sizeof *(list)))                               \
			return GROW_FAILED;                                                        \
		(list) = grow_;                                                                    \
	} while (0)

static int new_tensor(struct make *m, enum tensor_kind kind, int64_t bytes, const char *name)
{
#define GROW_FAILED 0
	GROW(m, m->tensor, m->ntensor, m->ctensor);
	if (!name)
		m->failed = true;
	m->tensor[m->ntensor] = (struct problem_tensor){
		.id = m->ntensor, .name = name, .bytes = bytes, .kind = kind, .producer = -1};
	return m->ntensor++;
}

int make_resident(struct make *m, enum tensor_kind kind, int64_t bytes, const char *name)
{
	return new_tensor(m, kind, bytes, arena_strdup(m->a, name));
}

static void close_op(struct make *m)
{
	if (m->nop == 0 || m->failed)
		return;
	struct problem_op *op = &m->op[m->nop - 1];
	struct problem_choice c = m->now;
	c.in = arena_memdup(m->a, m->in, (size_t)c.nin, sizeof *m->in);
	c.out = arena_memdup(m->a, m->out, (size_t)c.nout, sizeof *m->out);
	op->choice = arena_memdup(m->a, &c, 1, sizeof c);
	op->pair = arena_memdup(m->a, m->pair, (size_t)m->npair, sizeof *m->pair);
	op->npair = m->npair;
	m->failed = !c.in || !c.out || !op->choice || !op->pair;
}

int make_op(struct make *m, enum phase phase, const char *name, double cost)
{
	close_op(m);
	GROW(m, m->op, m->nop, m->cop);
	m->op[m->nop] = (struct problem_op){.id = m->nop,
		.name = arena_strdup(m->a, name),
		.phase = phase,
		.nchoice = 1,
		.recomputable = phase != PHASE_UPDATE};
	if (!m->op[m->nop].name)
		m->failed = true;
	m->now = (struct problem_choice){.cost = cost};
	m->npair = 0;
	return m->nop++;
}

void make_workspace(struct make *m, int64_t bytes)
{
	m->now.workspace = bytes;
}

void make_once(struct make *m)
{
	if (!m->failed)
		m->op[m->nop - 1].recomputable = false;
}

int make_out(struct make *m, enum tensor_kind kind, int64_t bytes)
{
	GROW(m, m->out, m->now.nout, m->cout);
	const char *name = m->op[m->nop - 1].name;
	int t = new_tensor(m, kind, bytes,
		m->now.nout ? arena_printf(m->a, "%s:%d", name, m->now.nout) : name);
	if (m->failed)
		return 0;
	m->tensor[t].producer = m->nop - 1;
	m->out[m->now.nout++] = t;
	return t;
}
#undef GROW_FAILED

void make_in(struct make *m, int t)
{
#define GROW_FAILED
	GROW(m, m->in, m->now.nin, m->cin);
	for (int i = 0; i < m->now.nin; i++)
		if (m->in[i] == t)
			return;
	m->in[m->now.nin++] = t;
}

void make_pair(struct make *m, int out, int in)
{
	GROW(m, m->pair, m->npair, m->cpair);
	m->pair[m->npair++] = (struct problem_pair){.out = out, .in = in};
}

void make_keep(struct make *m, int t)
{
	if (!m->failed)
		m->tensor[t].keep = true;
}

struct problem *make_finish(struct make *m, const char *name)
{
	close_op(m);
	struct problem *p = m->failed ? NULL : ARENA_NEW(m->a, struct problem);
	if (!p || !name)
		return NULL;
	*p = (struct problem){.name = name,
		.ntensor = m->ntensor,
		.nop = m->nop,
		.tensor = m->tensor,
		.op = m->op};
	return p;
}

double make_roofline(double flops, double bytes)
{
	double compute = flops / 1e6, memory = bytes / 1e5;
	return compute > memory ? compute : memory;
}
