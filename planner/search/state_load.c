/* A state from a sequence, and back. */
#include "planner/search/state.h"

#include <stdlib.h>
#include <string.h>

/* Of everything at once: times a million slots it stays below 2^62. */
#define UNITS_MAX (INT64_C(1) << 41)

/* All that can be live at one slot: every tensor, and the workspaces of the op there and of the
 * updates that follow it. */
static int64_t most_bytes(const struct inst *in)
{
	int64_t sum = in->resident, ws = 0;
	for (int t = 0; t < in->m; t++)
		sum += in->size[t];
	for (int o = 0; o < in->n; o++)
		for (int c = 0; c < in->nway[o]; c++) {
			if (in->floating[o])
				sum += in->way[o][c].ws;
			else
				ws = in->way[o][c].ws > ws ? in->way[o][c].ws : ws;
		}
	return sum + ws;
}

static void set_sizes(struct state *s)
{
	const struct inst *in = s->in;
	int64_t most = most_bytes(in);
	s->unit = in->align;
	while (most / s->unit >= UNITS_MAX / 2)
		s->unit *= 2;
	for (int t = 0; t < in->m; t++)
		s->size[t] = state_units(s, in->size[t]);
}

/* Ops that read each resident, in any way. */
static bool list_readers(struct state *s, struct arena *a)
{
	const struct inst *in = s->in;
	int *fill = ARENA_ARRAY(a, int, in->m + 1);
	s->reader_at = ARENA_ARRAY(a, int, in->m + 2);
	if (!fill || !s->reader_at)
		return false;
	for (int pass = 0; pass < 2; pass++) {
		for (int t = 0; t < in->m && pass == 1; t++)
			s->reader_at[t + 1] += s->reader_at[t];
		if (pass == 1 && !(s->reader = ARENA_ARRAY(a, int, s->reader_at[in->m] + 1)))
			return false;
		for (int o = 0; o < in->n; o++)
			for (int c = 0; c < in->nway[o]; c++)
				for (int k = 0; k < in->way[o][c].nres; k++) {
					int w = in->way[o][c].res[k];
					if (pass == 0)
						s->reader_at[w + 1]++;
					else
						s->reader[s->reader_at[w] + fill[w]++] = o;
				}
	}
	return true;
}

/* Pairs (op, what concerns it) by op, each once; what concerns it in ascending order. */
struct pairs {
	int (*p)[2];
	int n, cap;
	bool nomem;
};

static void add_pair(struct pairs *l, int op, int what)
{
	if (l->n == l->cap) {
		int cap = l->cap * 2 + 64;
		void *p = realloc(l->p, (size_t)cap * sizeof *l->p);
		if (!p) {
			l->nomem = true;
			return;
		}
		l->p = p;
		l->cap = cap;
	}
	l->p[l->n][0] = op;
	l->p[l->n++][1] = what;
}

static int pair_cmp(const void *x, const void *y)
{
	const int *a = x, *b = y;
	return a[0] != b[0] ? (a[0] > b[0]) - (a[0] < b[0]) : (a[1] > b[1]) - (a[1] < b[1]);
}

static bool index_pairs(struct pairs *l, struct arena *a, int n, int **at, int **list)
{
	*at = ARENA_ARRAY(a, int, n + 2);
	*list = ARENA_ARRAY(a, int, l->n + 1);
	if (!*at || !*list || l->nomem)
		return false;
	if (l->n)
		qsort(l->p, (size_t)l->n, sizeof *l->p, pair_cmp);
	int k = 0;
	for (int i = 0; i < l->n; i++) {
		if (i > 0 && pair_cmp(l->p[i], l->p[i - 1]) == 0)
			continue;
		(*list)[k++] = l->p[i][1];
		(*at)[l->p[i][0] + 1] = k;
	}
	for (int o = 0; o < n; o++)
		if ((*at)[o + 1] < (*at)[o])
			(*at)[o + 1] = (*at)[o];
	return true;
}

/* The ops that decide where update f goes: makers of what it reads, readers of what it replaces. */
static void list_deciders(const struct state *s, int f, struct pairs *l)
{
	const struct inst *in = s->in;
	const struct way *w = &in->way[f][0];
	for (int k = 0; k < w->nin; k++) {
		add_pair(l, in->p->tensor[w->in[k]].producer, f);
		if (in->fetch[w->in[k]] >= 0)
			add_pair(l, in->fetch[w->in[k]], f);
	}
	for (int k = 0; k < w->nkill; k++)
		for (int i = s->reader_at[w->kill[k]]; i < s->reader_at[w->kill[k] + 1]; i++)
			if (s->reader[i] != f)
				add_pair(l, s->reader[i], f);
}

static bool list_followers(struct state *s, struct arena *a)
{
	const struct inst *in = s->in;
	struct pairs follow = {0}, guard = {0};
	for (int i = 0; i < in->nfloat; i++)
		list_deciders(s, in->floats[i], &follow);
	for (int w = 0; w < in->m; w++)
		s->killer[w] = -1;
	for (int o = 0; o < in->n; o++)
		for (int c = 0; c < in->nway[o]; c++) {
			s->pairs[o] = s->pairs[o] || in->way[o][c].npair > 0;
			for (int k = 0; k < in->way[o][c].nkill && !in->floating[o]; k++) {
				int w = in->way[o][c].kill[k];
				s->killer[w] = o;
				add_pair(&guard, o, w);
				for (int i = s->reader_at[w]; i < s->reader_at[w + 1]; i++)
					add_pair(&guard, s->reader[i], w);
			}
		}
	bool ok = index_pairs(&follow, a, in->n, &s->follow_at, &s->follow) &&
		  index_pairs(&guard, a, in->n, &s->guard_at, &s->guard);
	free(follow.p);
	free(guard.p);
	return ok;
}

bool state_init(struct state *s, struct arena *a, const struct inst *in, double *work)
{
	*s = (struct state){.in = in,
		.work = work,
		.runs.free = -1,
		.lives.free = -1,
		.uses.free = -1,
		.way = ARENA_ARRAY(a, int, in->n + 1),
		.count = ARENA_ARRAY(a, int, in->n + 1),
		.first = ARENA_ARRAY(a, int, in->n + 1),
		.updates = ARENA_ARRAY(a, int, in->n + 1),
		.pairs = ARENA_ARRAY(a, bool, in->n + 1),
		.last = ARENA_ARRAY(a, int, in->m + 1),
		.size = ARENA_ARRAY(a, int64_t, in->m + 1),
		.killer = ARENA_ARRAY(a, int, in->m + 1),
		.late = ARENA_ARRAY(a, bool, in->m + 1),
		.heap = ARENA_ARRAY(a, int, in->nfloat + 1),
		.pending = ARENA_ARRAY(a, bool, in->n + 1),
		.paired = ARENA_ARRAY(a, bool, in->m + 1)};
	if (!s->way || !s->count || !s->first || !s->updates || !s->pairs || !s->last || !s->size ||
		!s->killer || !s->late || !s->heap || !s->pending || !s->paired)
		return false;
	set_sizes(s);
	return list_readers(s, a) && list_followers(s, a);
}

void state_free(struct state *s)
{
	free(s->at);
	free(s->run);
	free(s->life);
	free(s->use);
	free(s->log);
	free(s->suspect);
	profile_free(&s->over);
}

/* Room for a first load; pools grow by themselves later. */
static bool reserve(struct state *s, const struct seq *q)
{
	int nslot = STATE_GAP * (q->n + 2);
	if (nslot > s->cap_slot) {
		int *at = realloc(s->at, (size_t)nslot * sizeof *at);
		if (!at)
			return false;
		s->at = at;
		s->cap_slot = nslot;
	}
	s->nslot = nslot;
	if (s->lives.cap < s->in->m) {
		struct lifetime *l = realloc(s->life, (size_t)s->in->m * 2 * sizeof *l);
		if (!l)
			return false;
		s->life = l;
		s->lives.cap = s->in->m * 2;
	}
	return true;
}

static int add_run(struct state *s, int op, int key)
{
	if (s->runs.n == s->runs.cap) {
		int cap = s->runs.cap * 2 + s->in->n + 64;
		struct run *p = realloc(s->run, (size_t)cap * sizeof *p);
		if (!p) {
			s->nomem = true;
			return -1;
		}
		s->run = p;
		s->runs.cap = cap;
	}
	int r = s->runs.n++;
	int next = op >= 0 ? s->first[op] : -1;
	s->run[r] = (struct run){
		.op = op, .key = key, .next = next, .prev = -1, .life = -1, .use = -1};
	if (next >= 0)
		s->run[next].prev = r;
	if (op >= 0) {
		s->first[op] = r;
		s->count[op]++;
	}
	return r;
}

static void clear(struct state *s, const int *way)
{
	const struct inst *in = s->in;
	memcpy(s->way, way, (size_t)in->n * sizeof *way);
	memset(s->count, 0, (size_t)in->n * sizeof *s->count);
	memset(s->late, 0, (size_t)in->m * sizeof *s->late);
	for (int o = 0; o < in->n; o++)
		s->first[o] = -1;
	for (int i = 0; i < s->nslot; i++)
		s->at[i] = -1;
	for (int t = 0; t < in->m; t++) {
		s->last[t] = t;
		s->life[t] = (struct lifetime){.tensor = t,
			.run = -1,
			.key = -1,
			.end = -1,
			.next = -1,
			.prev = -1,
			.use = -1};
	}
	s->runs = (struct pool){.cap = s->runs.cap, .free = -1};
	s->uses = (struct pool){.cap = s->uses.cap, .free = -1};
	s->lives = (struct pool){.n = in->m, .cap = s->lives.cap, .free = -1};
	s->nlog = s->nsuspect = s->bad = 0;
	s->cost = 0;
}

static void load_all(struct state *s, const struct seq *q)
{
	const struct inst *in = s->in;
	for (int i = 0; i < q->n && !s->nomem; i++) {
		int r = add_run(s, q->op[i], 2 * STATE_GAP * (i + 1));
		if (r >= 0)
			state_link(s, r);
	}
	for (int i = 0; i < in->nfloat && !s->nomem; i++) {
		int f = in->floats[i], r = add_run(s, f, 2 * state_place(s, f) + 1);
		if (r < 0)
			return;
		s->updates[f] = r;
		state_link(s, r);
	}
	if (s->nomem)
		return;
	s->end = add_run(s, -1, 2 * (s->nslot - 1));
	if (s->nomem)
		return;
	s->at[s->nslot - 1] = s->end;
	for (int t = 0; t < in->m; t++)
		if (in->keep[t])
			state_bind(s, s->end, t);
	for (int o = 0; o < in->n; o++)
		s->bad += s->count[o] == 0 ? !in->optional[o] : in->once[o] && s->count[o] > 1;
}

/* Every run of which an output is not read. */
static bool suspect_all(struct state *s)
{
	if (s->cap_suspect < s->runs.n) {
		int *p = realloc(s->suspect, (size_t)s->runs.n * sizeof *p);
		if (!p)
			return false;
		s->suspect = p;
		s->cap_suspect = s->runs.n;
	}
	for (int r = 0; r < s->runs.n; r++)
		if (s->run[r].op >= 0)
			s->suspect[s->nsuspect++] = r;
	return true;
}

bool state_load(struct state *s, const struct seq *q, const int *way, int64_t target)
{
	const struct inst *in = s->in;
	s->nomem = !reserve(s, q);
	if (s->nomem)
		return false;
	clear(s, way);
	s->target = target;
	s->loading = true;
	load_all(s, q);
	s->loading = false;
	for (int w = 0; w < in->m && !s->nomem; w++)
		if (s->killer[w] >= 0)
			state_guard(s, w);
	s->nomem = s->nomem || !state_measure(s) || !suspect_all(s);
	if (s->nomem)
		return false;
	state_clean(s);
	state_commit(s);
	*s->work += 4 * s->lives.n;
	return s->bad == 0 && !s->nomem;
}

bool state_measure(struct state *s)
{
	const struct inst *in = s->in;
	if (!profile_clear(&s->over, s->nslot + 1))
		return false;
	int64_t *v = s->over.value;
	for (int l = in->m; l < s->lives.n; l++) {
		const struct lifetime *f = &s->life[l];
		if (f->run < 0)
			continue;
		v[f->key >> 1] += s->size[f->tensor];
		v[(f->end >> 1) + 1] -= s->size[f->tensor];
	}
	s->cost = 0;
	for (int r = 0; r < s->runs.n; r++) {
		if (s->run[r].op < 0)
			continue;
		const struct way *w = &in->way[s->run[r].op][s->way[s->run[r].op]];
		bool placed = s->run[r].key & 1;
		s->cost += w->cost;
		s->run[r].saved = placed || !s->pairs[s->run[r].op] ? 0 : state_saved(s, r);
		int slot = slot_of(s, r);
		int64_t units = state_units(s, w->ws) - s->run[r].saved;
		v[slot] += units;
		v[slot + 1] -= units;
	}
	int64_t target = s->target / s->unit;
	target = target < -UNITS_MAX ? -UNITS_MAX : target > UNITS_MAX ? UNITS_MAX : target;
	profile_sum(&s->over, state_units(s, in->resident) - target, s->at, s->nslot);
	return true;
}

void state_aim(struct state *s, int64_t target)
{
	s->target = target;
	s->nomem = s->nomem || !state_measure(s);
}

bool state_store(const struct state *s, struct seq *q)
{
	q->n = 0;
	for (int i = 0; i < s->nslot; i++) {
		int r = s->at[i];
		if (r < 0 || s->run[r].op < 0)
			continue;
		if (!seq_reserve(q, q->n + 1))
			return false;
		q->op[q->n++] = s->run[r].op;
	}
	return true;
}
