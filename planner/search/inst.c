/* The problem as the search sees it: residents apart from the rest, sizes rounded up, in-place
 * pairs sorted into those always taken (an update over a resident) and those that may be. */
#include "planner/search/solver.h"

struct maker {
	struct arena *a;
	struct inst *in;
	bool nomem;
};

static void *alloc(struct maker *k, int n, size_t size)
{
	void *p = arena_alloc(k->a, n > 0 ? (size_t)n : 1, size);
	if (!p)
		k->nomem = true;
	return p;
}

static bool has(const int *list, int n, int x)
{
	for (int i = 0; i < n; i++)
		if (list[i] == x)
			return true;
	return false;
}

/* Which outputs lie in a resident's place, by the first way that makes them. */
static void find_forced(struct inst *in)
{
	for (int t = 0; t < in->m; t++)
		in->forced[t] = -1;
	for (int o = 0; o < in->n; o++) {
		const struct problem_op *op = &in->p->op[o];
		for (int i = 0; i < op->npair; i++)
			if (in->res[op->pair[i].in])
				in->forced[op->pair[i].out] = op->pair[i].in;
	}
	for (int t = 0; t < in->m; t++)
		if (in->forced[t] >= 0)
			in->size[t] = 0;
}

/* Whether each output with a place in a resident finds that resident among the inputs. */
static bool way_fits(const struct inst *in, const struct problem_choice *c)
{
	for (int i = 0; i < c->nout; i++) {
		int w = in->forced[c->out[i]];
		if (w >= 0 && !has(c->in, c->nin, w))
			return false;
	}
	return true;
}

static void make_way(struct maker *k, int o, int choice, struct way *w)
{
	struct inst *in = k->in;
	const struct problem_op *op = &in->p->op[o];
	const struct problem_choice *c = &op->choice[choice];
	w->choice = choice;
	w->cost = c->cost;
	w->ws = (c->workspace + in->align - 1) & ~(in->align - 1);
	in->slack = w->ws - c->workspace > in->slack ? w->ws - c->workspace : in->slack;
	w->in = alloc(k, c->nin, sizeof *w->in);
	w->out = alloc(k, c->nout, sizeof *w->out);
	w->res = alloc(k, c->nin, sizeof *w->res);
	w->kill = alloc(k, c->nout, sizeof *w->kill);
	w->pair = alloc(k, op->npair, sizeof *w->pair);
	if (k->nomem)
		return;
	for (int i = 0; i < c->nin; i++) {
		int t = c->in[i];
		if (has(c->in, i, t))
			continue;
		if (in->res[t])
			w->res[w->nres++] = t;
		else
			w->in[w->nin++] = t;
	}
	for (int i = 0; i < c->nout; i++) {
		w->out[w->nout++] = c->out[i];
		if (in->forced[c->out[i]] >= 0)
			w->kill[w->nkill++] = in->forced[c->out[i]];
	}
	for (int i = 0; i < op->npair; i++) {
		struct problem_pair pr = op->pair[i];
		if (in->size[pr.out] > 0 && in->size[pr.in] > 0 && has(w->in, w->nin, pr.in) &&
			has(w->out, w->nout, pr.out))
			w->pair[w->npair++] = pr;
	}
}

static void make_op(struct maker *k, int o)
{
	struct inst *in = k->in;
	const struct problem_op *op = &in->p->op[o];
	in->once[o] = !op->recomputable;
	in->optional[o] = op->optional;
	in->transfer[o] = problem_op_transfers(op);
	in->transfers |= in->transfer[o];
	if (op->offloads)
		in->away[op->offloads - 1] = o;
	if (op->fetches)
		in->fetch[op->fetches - 1] = o;
	in->way[o] = alloc(k, op->nchoice, sizeof **in->way);
	double cheapest = op->choice[0].cost;
	for (int c = 0; c < op->nchoice && !k->nomem; c++) {
		if (op->choice[c].cost < cheapest)
			cheapest = op->choice[c].cost;
		if (way_fits(in, &op->choice[c]))
			make_way(k, o, c, &in->way[o][in->nway[o]++]);
	}
	if (!op->optional)
		in->once_cost += cheapest;
}

/* An update that nothing but other such updates reads from can be placed by a rule. */
static void find_floating(struct maker *k)
{
	struct inst *in = k->in;
	bool *read = alloc(k, in->m, sizeof *read);
	in->floats = alloc(k, in->n, sizeof *in->floats);
	if (k->nomem)
		return;
	for (int o = in->n - 1; o >= 0; o--) {
		const struct problem_op *op = &in->p->op[o];
		bool f = op->phase == PHASE_UPDATE && !op->optional && op->nchoice == 1;
		for (int i = 0; f && i < in->way[o][0].nout; i++)
			f = !read[in->way[o][0].out[i]];
		in->floating[o] = f;
		for (int c = 0; !f && c < in->nway[o]; c++)
			for (int i = 0; i < in->way[o][c].nin; i++)
				read[in->way[o][c].in[i]] = true;
	}
	for (int o = 0; o < in->n; o++)
		if (in->floating[o])
			in->floats[in->nfloat++] = o;
}

/* The first way of each op that can run in the listed order. */
static void find_usable(struct maker *k)
{
	struct inst *in = k->in;
	bool *made = alloc(k, in->m, sizeof *made);
	if (k->nomem)
		return;
	for (int o = 0; o < in->n; o++) {
		int pick = 0;
		for (int c = in->nway[o] - 1; c >= 0; c--) {
			bool ready = true;
			for (int i = 0; i < in->way[o][c].nin; i++)
				ready = ready && made[in->way[o][c].in[i]];
			if (ready)
				pick = c;
		}
		in->usable[o] = pick;
		for (int i = 0; i < in->way[o][pick].nout; i++)
			made[in->way[o][pick].out[i]] = true;
	}
}

static void fill(struct maker *k)
{
	struct inst *in = k->in;
	for (int t = 0; t < in->m; t++) {
		const struct problem_tensor *pt = &in->p->tensor[t];
		int64_t bytes = (pt->bytes + in->align - 1) & ~(in->align - 1);
		in->slack = bytes - pt->bytes > in->slack ? bytes - pt->bytes : in->slack;
		in->res[t] = tensor_kind_resident(pt->kind);
		in->fetch[t] = in->away[t] = -1;
		in->keep[t] = pt->keep && !in->res[t];
		in->size[t] = in->res[t] ? 0 : bytes;
		if (in->res[t])
			in->resident += bytes;
	}
	find_forced(in);
	in->held = in->resident;
	for (int t = 0; t < in->m; t++) {
		int w = in->forced[t];
		if (w < 0)
			continue;
		int64_t mask = ~(in->align - 1),
			full = (in->p->tensor[w].bytes + in->align - 1) & mask;
		in->held -= full -
			    (in->keep[t] ? (in->p->tensor[t].bytes + in->align - 1) & mask : 0);
	}
	for (int o = 0; o < in->n && !k->nomem; o++)
		make_op(k, o);
	if (!k->nomem)
		find_floating(k);
	if (!k->nomem)
		find_usable(k);
}

enum status inst_make(
	struct arena *a, const struct problem *p, int64_t align, struct inst **out, struct diag *d)
{
	struct maker k = {.a = a, .in = ARENA_NEW(a, struct inst)};
	struct inst *in = k.in;
	if (!in)
		return diag_nomem(d);
	in->p = p;
	in->n = p->nop;
	in->m = p->ntensor;
	in->align = align;
	in->size = alloc(&k, in->m, sizeof *in->size);
	in->forced = alloc(&k, in->m, sizeof *in->forced);
	in->res = alloc(&k, in->m, sizeof *in->res);
	in->keep = alloc(&k, in->m, sizeof *in->keep);
	in->nway = alloc(&k, in->n, sizeof *in->nway);
	in->way = alloc(&k, in->n, sizeof *in->way);
	in->once = alloc(&k, in->n, sizeof *in->once);
	in->optional = alloc(&k, in->n, sizeof *in->optional);
	in->transfer = alloc(&k, in->n, sizeof *in->transfer);
	in->fetch = alloc(&k, in->m, sizeof *in->fetch);
	in->away = alloc(&k, in->m, sizeof *in->away);
	in->floating = alloc(&k, in->n, sizeof *in->floating);
	in->usable = alloc(&k, in->n, sizeof *in->usable);
	if (!k.nomem)
		fill(&k);
	if (k.nomem)
		return diag_nomem(d);
	for (int o = 0; o < in->n; o++)
		if (in->nway[o] == 0) {
			struct where w = {.node = p->op[o].name};
			return diag_fail(
				d, ST_INVALID, &w, NULL, "no choice replaces its residents");
		}
	*out = in;
	return ST_OK;
}
