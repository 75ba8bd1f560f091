/* An imported graph whose batch is fixed is built again, node by node, for another one. What says
 * how long the batch is stands in constants: elements of a shape or of an attribute, or a
 * constant's axis along which all is the same. Which of them do is not known, and no operator is
 * known here; so it is tried out, for TIMES the batch, with the records' own rules for shapes: a
 * node that reads samples must make as many times as many, along one axis. Where a node reads
 * something else that would have to be longer and is made of no samples (a table's rows, expanded),
 * that is wished for, and all begins anew. A choice that leads nowhere is taken back.
 *
 * None of this needs to be right: in the end the graphs for one sample, for the fixed batch (which
 * has the file's own numbers) and for what is asked for must be the same nodes, each of which
 * treats samples apart (graph/mixed.c). Then they are one function of a sample. */
#include "graph/free_batch.h"

#include <string.h>

#include "graph/graph_parts.h"
#include "graph/pass.h"

enum { TIMES = 3, ATOMS_MAX = 56, ATTEMPTS_MAX = 200, LIST_MAX = 2 * RANK_MAX, FITTEST = 3 };

/* A place that may say how long the batch is, of a node: an element of its input or attribute, or
 * an axis of its input. A set of them is a mask. */
struct atom {
	int input, attr; /* one of them; the other is -1 */
	int place;
	bool axis;
};

struct freeing {
	struct graph base; /* the graph, its arena and diag changed for an attempt's */
	struct graph *g;
	int64_t fixed, rows;
	const bool *needed, *proven; /* by tensor: of what lives; of the outputs */
	uint64_t *taken;             /* by node: the atoms that count samples */
	int *skip;                   /* by node: so many sets are passed over */
	bool *open;                  /* by node: other sets may do */
	int *wish;                   /* by tensor: the axis that has to count samples */
	unsigned *refused;           /* by tensor: axes that cannot */
	/* of the last attempt */
	struct graph_copy copy;
	int *home;      /* by new node: the old one */
	int stuck;      /* the old node that could not be built; -1: none */
	bool exhausted; /* ... and no other set will do */
	bool again;     /* a wish came up */
};

/* --- Places --- */

static bool fits(const struct freeing *f, int64_t v, bool exactly)
{
	return v > 0 && v % f->fixed == 0 && (v == f->fixed) == exactly;
}

static int64_t before(const struct tensor *t, int axis)
{
	int64_t n = 1;
	for (int k = 0; k < axis; k++)
		n *= t->dim[k];
	return n;
}

/* Bytes of what stands behind a place of the axis. */
static size_t row_bytes(const struct tensor *t, int axis)
{
	return (size_t)(tensor_bytes(t) / (before(t, axis) * t->dim[axis]));
}

static bool all_alike(const struct tensor *t, int axis)
{
	const size_t bytes = row_bytes(t, axis);
	const char *row = t->data;
	bool same = !t->stored && row && t->numel > 0;
	for (int64_t b = 0; same && b < before(t, axis); b++, row += (size_t)t->dim[axis] * bytes)
		for (int64_t i = 1; same && i < t->dim[axis]; i++)
			same = !memcmp(row, row + (size_t)i * bytes, bytes);
	return same;
}

static bool is_list(const struct tensor *t)
{
	return t->role == TR_CONSTANT && t->dtype == DT_I64 && t->data && t->rank <= 1 &&
	       t->numel <= LIST_MAX;
}

static bool may_be_longer(const struct freeing *f, const struct tensor *t, int axis, bool exactly)
{
	return fits(f, t->dim[axis], exactly) &&
	       (t->maker || (t->role == TR_CONSTANT && all_alike(t, axis)));
}

/* Those that are as long as the batch before those that are a multiple. */
static int list_atoms(const struct freeing *f, const struct node *n, struct atom *out)
{
	int count = 0;
	for (int pass = 0; pass < 2; pass++) {
		for (int j = 0; j < n->nin; j++) {
			const struct tensor *t = n->in[j];
			for (int e = 0; t && is_list(t) && e < t->numel; e++)
				if (count < ATOMS_MAX && fits(f, tensor_int(t, e), !pass))
					out[count++] = (struct atom){j, -1, e, false};
			for (int k = 0; t && k < t->rank; k++)
				if (count < ATOMS_MAX && may_be_longer(f, t, k, !pass))
					out[count++] = (struct atom){j, -1, k, true};
		}
		for (int a = 0; a < n->nattr; a++)
			for (int e = 0; n->attr[a].kind == ATTR_INTS && e < n->attr[a].n; e++)
				if (count < ATOMS_MAX && fits(f, n->attr[a].ints[e], !pass))
					out[count++] = (struct atom){-1, a, e, false};
	}
	return count;
}

/* --- A node with some of them changed --- */

static bool times(const struct freeing *f, int64_t v, int64_t *out)
{
	return size_mul(v / f->fixed, f->rows, out);
}

static struct tensor *with_element(struct freeing *f, const struct tensor *t, int place)
{
	struct graph *g = f->copy.to;
	int64_t *v = arena_memdup(g->arena, t->data, (size_t)t->numel, sizeof *v);
	return v && times(f, v[place], &v[place])
		       ? graph_constant(g, t->name, t->dtype, t->rank, t->dim, v)
		       : NULL;
}

static struct tensor *longer_constant(struct freeing *f, const struct tensor *t, int axis)
{
	struct graph *g = f->copy.to;
	const size_t bytes = row_bytes(t, axis);
	int64_t dim[RANK_MAX], rows;
	memcpy(dim, t->dim, sizeof dim);
	if (!times(f, dim[axis], &dim[axis]) || !size_mul(before(t, axis), dim[axis], &rows))
		return NULL;
	char *to = graph_known(g, NULL, rows, (int64_t)bytes);
	for (int64_t i = 0; to && i < rows; i++)
		memcpy(to + (size_t)i * bytes,
			(const char *)t->data + (size_t)(i / dim[axis] * t->dim[axis]) * bytes,
			bytes);
	return to ? graph_constant(g, t->name, t->dtype, t->rank, dim, to) : NULL;
}

/* What a value would be if the wish were met. */
static struct tensor *wished(struct freeing *f, const struct atom *x, const struct node *n)
{
	const struct tensor *old = n->in[x->input], *t = f->copy.map[old->id];
	if (!tensor_same_shape(old, t) || f->refused[old->id] >> x->place & 1)
		return NULL;
	struct tensor *y = arena_memdup(f->copy.to->arena, t, 1, sizeof *t);
	return y && times(f, t->dim[x->place], &y->dim[x->place]) && times(f, t->numel, &y->numel)
		       ? y
		       : NULL;
}

static bool change(struct freeing *f, const struct node *n, const struct atom *x,
	struct tensor **in, struct attr *attr)
{
	if (x->attr >= 0) {
		struct attr *a = &attr[x->attr];
		int64_t *v = arena_memdup(f->copy.to->arena, a->ints, (size_t)a->n, sizeof *v);
		a->ints = v;
		return v && times(f, v[x->place], &v[x->place]);
	}
	struct tensor *t = in[x->input];
	in[x->input] = n->in[x->input]->maker ? wished(f, x, n)
		       : x->axis              ? longer_constant(f, t, x->place)
					      : with_element(f, t, x->place);
	return in[x->input] != NULL;
}

/* What a rule puts in an input's place (a buffer of the node's own) it has put there already. */
static void keep_inputs(struct node *m, struct tensor *const *in)
{
	for (int k = 0; k < m->nin; k++) {
		if (m->in[k] == in[k])
			continue;
		m->in[k]->role = TR_VALUE;
		m->in[k]->data = NULL;
		m->in[k] = in[k];
	}
}

/* The node with the set changed; NULL: there is no such node. */
static struct node *make(struct freeing *f, const struct node *n, uint64_t set)
{
	struct graph *g = f->copy.to;
	struct tensor **in;
	struct node *m = NULL;
	struct atom atom[ATOMS_MAX];
	struct attr *attr = arena_memdup(g->arena, n->attr, (size_t)n->nattr, sizeof *attr);
	bool ok = graph_copy_list(&f->copy, n->nin, n->in, &in) == ST_OK && (attr || !n->nattr);
	const int count = set ? list_atoms(f, n, atom) : 0;
	for (int i = 0; ok && i < count; i++)
		if (set >> i & 1)
			ok = change(f, n, &atom[i], in, attr);
	const int newest = g->ntensor;
	if (n->nin < n->op->min_in) /* its rule has settled what its inputs said */
		return !set && graph_copy_node(&f->copy, n, &m) == ST_OK ? m : NULL;
	if (ok && g->failed == ST_OK)
		m = graph_op_like(g, n, in, n->nattr, attr, NULL);
	if (m)
		keep_inputs(m, in);
	for (int k = 0; m && k < m->nout; k++)
		if (m->out[k] && m->out[k]->id >= newest)
			m->out[k]->name = n->out[k] ? n->out[k]->name : m->out[k]->name;
	return m;
}

/* --- Which set --- */

struct wanted {
	const struct node *n;
	int in;        /* the axis of input 0 that counts samples; -1: none */
	bool reads;    /* samples */
	int out, axis; /* which output must count them, along which axis; -1: any */
};

static bool counts_samples(const struct freeing *f, const struct tensor *old)
{
	return old && !tensor_same_shape(old, f->copy.map[old->id]);
}

static struct wanted wanted_of(const struct freeing *f, const struct node *n)
{
	struct wanted w = {.n = n, .in = -1, .axis = -1};
	for (int j = 0; j < n->nin; j++)
		w.reads |= counts_samples(f, n->in[j]);
	if (n->nin && counts_samples(f, n->in[0]))
		w.in = apart_axis(f->copy.map[n->in[0]->id], n->in[0], TIMES);
	for (int k = n->nout - 1; k >= 0; k--)
		if (n->out[k] && f->wish[n->out[k]->id] >= 0) {
			w.out = k;
			w.axis = f->wish[n->out[k]->id];
		}
	return w;
}

/* 0: it will not do. Of views the more, the better it is the axis that it was, or one of samples
 * alone. */
static int fitness(const struct freeing *f, const struct wanted *w, const struct node *m)
{
	const struct tensor *old = w->n->out[w->out], *y = m ? m->out[w->out] : NULL;
	const int axis = y && old ? apart_axis(y, old, TIMES) : AXIS_NONE;
	if (axis < 0 || (w->axis >= 0 && axis != w->axis))
		return 0;
	if (w->n->op->apart != APART_SHAPE || w->in < 0)
		return FITTEST;
	const struct tensor *x = w->n->in[0];
	const bool there = before(x, w->in) == before(old, axis);
	return there && old->dim[axis] == f->fixed ? FITTEST : there ? 2 : 1;
}

/* Sets worth a try, the i-th: none, each atom, all inputs' axes of one number, and pairs of these.
 */
struct sets {
	int single;
	uint64_t first[1 + ATOMS_MAX + RANK_MAX];
	int a, b;
};

static void sets_begin(struct sets *s, int count, const struct atom *atom)
{
	*s = (struct sets){.single = 1};
	for (int i = 0; i < count; i++)
		s->first[s->single++] = (uint64_t)1 << i;
	for (int k = 0; k < RANK_MAX; k++) {
		uint64_t all = 0;
		for (int i = 0; i < count; i++)
			if (atom[i].axis && atom[i].place == k)
				all |= (uint64_t)1 << i;
		if (all & (all - 1))
			s->first[s->single++] = all;
	}
}

static bool sets_next(struct sets *s, uint64_t *set)
{
	if (s->b == s->single) {
		s->a++;
		s->b = s->a + 1;
	}
	if (s->b >= s->single)
		return false;
	*set = s->first[s->a] | s->first[s->b++];
	return true;
}

static void take_back(struct graph *g, const struct graph *to)
{
	g->ntensor = to->ntensor;
	g->nnode = to->nnode;
	g->known_bytes = to->known_bytes;
	g->fold_work = to->fold_work;
	g->failed = ST_OK;
}

/* Constants are changed at once; what is made by a node is wished for. */
static void take(struct freeing *f, const struct node *n, const struct atom *atom, uint64_t set)
{
	f->taken[n->id] = set;
	for (int i = 0; set >> i; i++) {
		if (!(set >> i & 1) || atom[i].attr >= 0 || !n->in[atom[i].input]->maker)
			continue;
		f->wish[n->in[atom[i].input]->id] = atom[i].place;
		f->again = true;
	}
}

static struct node *look(struct freeing *f, const struct wanted *w)
{
	const struct node *n = w->n;
	struct graph *g = f->copy.to;
	const struct graph was = *g;
	struct atom atom[ATOMS_MAX];
	const int count = list_atoms(f, n, atom);
	int left = f->skip[n->id];
	for (int fit = FITTEST; fit > 0; fit--) {
		struct sets s;
		uint64_t set;
		sets_begin(&s, count, atom);
		while (sets_next(&s, &set)) {
			struct node *m = make(f, n, set);
			if (fitness(f, w, m) == fit && left-- == 0) {
				take(f, n, atom, set);
				f->open[n->id] = n->op->apart == APART_SHAPE || set;
				return m;
			}
			take_back(g, &was);
			if (g->diag->out_of_memory)
				return NULL;
		}
	}
	return NULL;
}

/* No set does: a wish that cannot be met is refused. What makes no samples of samples may do so
 * where no output depends on it. */
static struct node *look_no_more(struct freeing *f, const struct wanted *w)
{
	const struct node *n = w->n;
	f->exhausted = f->skip[n->id] > 0;
	if (f->exhausted || f->copy.to->diag->out_of_memory)
		return NULL;
	if (w->axis < 0)
		return graph_node_makes(n, f->proven) ? NULL : make(f, n, 0);
	f->refused[n->out[w->out]->id] |= 1u << w->axis;
	f->wish[n->out[w->out]->id] = AXIS_NONE;
	f->again = true;
	return NULL;
}

static struct node *choose(struct freeing *f, const struct node *n)
{
	const struct wanted w = wanted_of(f, n);
	f->open[n->id] = false;
	f->taken[n->id] = 0;
	if (!w.reads && w.axis < 0)
		return make(f, n, 0);
	struct node *m = look(f, &w);
	return m ? m : look_no_more(f, &w);
}

/* --- All nodes --- */

static enum status begin(struct freeing *f, struct arena *arena, struct diag *d, int64_t rows)
{
	struct graph *const g = f->g;
	f->base = *g;
	f->base.arena = arena;
	f->base.diag = d;
	f->rows = rows;
	f->stuck = -1;
	f->exhausted = f->again = false;
	TRY(graph_copy_begin(&f->copy, &f->base));
	f->copy.to->opset = g->opset;
	f->copy.to->straight_through = g->straight_through;
	f->copy.to->partial = g->partial;
	f->home = ARENA_ARRAY(arena, int, g->nnode);
	if (!f->home)
		return diag_nomem(d);
	for (int i = 0; i < g->ntensor; i++)
		if (f->copy.map[i]) {
			f->copy.map[i]->element = g->tensor[i]->element;
			f->copy.map[i]->axis = g->tensor[i]->axis;
		}
	for (int i = 0; i < g->ninput; i++) {
		const struct tensor *x = g->input[i];
		struct tensor *y = f->copy.map[x->id];
		int64_t bytes;
		if (x->rank == 0 || x->dim[0] != f->fixed)
			continue;
		if (!times(f, x->numel, &y->numel) ||
			!size_mul(y->numel, dtype_bytes(x->dtype), &bytes))
			return diag_fail(d, ST_INVALID, &(struct where){g->file, x->name, "input"},
				"reduce the batch size", "element count overflows at axis 0");
		y->dim[0] = rows;
	}
	return ST_OK;
}

static bool is_needed(const struct freeing *f, const struct node *n)
{
	return graph_node_lives(n, f->needed);
}

/* What an output depends on must be there; the rest, where it can be. */
static bool readable(const struct freeing *f, const struct node *n)
{
	for (int j = 0; j < n->nin; j++)
		if (n->in[j] && !f->copy.map[n->in[j]->id])
			return false;
	return true;
}

/* The graph for so many rows: with what is taken, or, `search`, looking for it. ST_OK also where a
 * node is stuck. */
static enum status build(
	struct freeing *f, struct arena *arena, struct diag *d, int64_t rows, bool search)
{
	TRY(begin(f, arena, d, rows));
	struct graph *g = f->copy.to;
	for (int i = 0; i < f->g->nnode; i++) {
		const struct node *n = f->g->node[i];
		const struct graph was = *g;
		const bool needed = is_needed(f, n);
		if (!needed && !readable(f, n))
			continue;
		g->phase = n->phase;
		struct node *m = search && needed ? choose(f, n) : make(f, n, f->taken[i]);
		if (f->again || d->out_of_memory)
			return d->out_of_memory ? ST_INTERNAL : ST_OK;
		if (!m && needed) {
			f->stuck = i;
			return g->failed == ST_OK ? ST_INVALID : g->failed;
		}
		if (!m) {
			take_back(g, &was);
			continue;
		}
		for (int j = was.nnode; j < g->nnode && j < f->g->nnode; j++)
			f->home[j] = i;
		for (int k = 0; k < n->nout; k++)
			if (n->out[k])
				f->copy.map[n->out[k]->id] = m->out[k];
	}
	return ST_OK;
}

/* --- The proof --- */

static void blame(struct freeing *f, const struct graph_mixed *found, struct graph_mixed *why)
{
	const struct graph *g = f->g;
	*why = (struct graph_mixed){0};
	f->stuck = g->nnode;
	if (found->node) {
		f->stuck = f->home[found->node->id];
		why->node = g->node[f->stuck];
	}
	for (int i = 0; i < g->ntensor && found->tensor; i++)
		if (f->copy.map[i] == found->tensor)
			why->tensor = g->tensor[i];
}

/* The first node of which there are others for another size. */
static const struct node *unlike(const struct graph *a, const struct graph *b)
{
	for (int i = 0; i < a->nnode; i++)
		if (i >= b->nnode || a->node[i]->op != b->node[i]->op)
			return a->node[i];
	return a->nnode ? a->node[a->nnode - 1] : NULL;
}

/* What the last build made, against that of one sample. */
static enum status compare(
	struct freeing *f, const struct graph *one, bool *proven, struct graph_mixed *why)
{
	static const struct lower_options lower;
	struct graph *g = f->copy.to;
	struct graph_apart apart;
	struct graph_mixed found = {0};
	*proven = false;
	TRY(graph_apart(g, one, f->rows, &lower, &apart));
	if (apart.alike)
		TRY(graph_mixed(&apart, g->noutput, g->output, &found));
	else
		found.node = unlike(g, one);
	*proven = apart.alike && !found.node && !found.tensor;
	if (!*proven)
		blame(f, &found, why);
	return ST_OK;
}

/* With a batch as the file has it, all is as the file has it. */
static const struct node *changed(const struct freeing *f)
{
	for (int i = 0; i < f->g->nnode; i++) {
		const struct node *n = f->g->node[i];
		for (int k = 0; k < n->nout; k++) {
			const struct tensor *t = n->out[k] ? f->copy.map[n->out[k]->id] : NULL;
			if (t && (t->dtype != n->out[k]->dtype || !tensor_same_shape(t, n->out[k])))
				return n;
		}
	}
	return NULL;
}

static enum status ends(struct freeing *f)
{
	struct graph *g = f->copy.to;
	g->ninput = f->g->ninput;
	g->noutput = f->g->noutput;
	TRY(graph_copy_list(&f->copy, g->ninput, f->g->input, &g->input));
	TRY(graph_copy_list(&f->copy, g->noutput, f->g->output, &g->output));
	return ST_OK;
}

static enum status prove_at(struct freeing *f, struct arena *arena, struct diag *quiet,
	int64_t rows, const struct graph *one, bool *proven, struct graph_mixed *why)
{
	*proven = false;
	const enum status st = build(f, arena, quiet, rows, false);
	if (f->stuck >= 0 && !quiet->out_of_memory) {
		*why = (struct graph_mixed){.node = f->g->node[f->stuck]};
		return ST_OK;
	}
	TRY(st);
	TRY(ends(f));
	if (one)
		return compare(f, one, proven, why);
	*proven = true;
	return ST_OK;
}

/* For one sample, for the batch that the file has, and for another size. */
static enum status prove(
	struct freeing *f, struct diag *quiet, bool *proven, struct graph_mixed *why)
{
	struct arena *arena = arena_new();
	if (!arena)
		return diag_nomem(quiet);
	enum status st = prove_at(f, arena, quiet, 1, NULL, proven, why);
	const struct graph *one = f->copy.to;
	if (st == ST_OK && *proven)
		st = prove_at(f, arena, quiet, TIMES * f->fixed, one, proven, why);
	if (st == ST_OK && *proven && f->fixed > 1)
		st = prove_at(f, arena, quiet, f->fixed, one, proven, why);
	if (st == ST_OK && *proven && f->fixed == 1)
		st = build(f, arena, quiet, 1, false);
	const struct node *n = st == ST_OK && *proven ? changed(f) : NULL;
	if (n) {
		*proven = false;
		*why = (struct graph_mixed){.node = n};
		f->stuck = n->id;
	}
	arena_free(arena);
	return st;
}

/* --- The search --- */

/* The last choice before what did not do is made otherwise; false: there is none. */
static bool otherwise(struct freeing *f)
{
	int i = f->stuck;
	if (i < f->g->nnode && (f->exhausted || !f->open[i])) {
		f->skip[i] = 0;
		i--;
	}
	while (i >= 0 && (i == f->g->nnode || !f->open[i]))
		i--;
	for (int k = i + 1; k < f->g->nnode; k++)
		f->skip[k] = 0;
	if (i >= 0)
		f->skip[i]++;
	return i >= 0;
}

static enum status attempt(struct freeing *f, bool *found, struct graph_mixed *why)
{
	struct diag quiet = {0};
	struct arena *arena = arena_new();
	if (!arena)
		return diag_nomem(f->g->diag);
	enum status st = build(f, arena, &quiet, TIMES * f->fixed, true);
	if (f->stuck >= 0)
		*why = (struct graph_mixed){.node = f->g->node[f->stuck]};
	else if (st == ST_OK && !f->again)
		st = prove(f, &quiet, found, why);
	arena_free(arena);
	return quiet.out_of_memory ? diag_nomem(f->g->diag) : f->stuck >= 0 ? ST_OK : st;
}

static enum status search(struct freeing *f, bool *found, struct graph_mixed *why)
{
	bool blamed = false;
	*found = false;
	for (int i = 0; i < ATTEMPTS_MAX; i++) {
		struct graph_mixed here = {0};
		TRY(attempt(f, found, &here));
		if (*found)
			return ST_OK;
		if (f->again)
			continue;
		if (!blamed)
			*why = here;
		blamed = true;
		if (!otherwise(f))
			break;
	}
	return ST_OK;
}

/* Bytes of the search's lists. */
static enum status lists(struct freeing *f)
{
	struct graph *g = f->g;
	f->needed = graph_needed(g);
	f->proven = graph_behind(g, g->noutput, g->output);
	f->taken = ARENA_ARRAY(g->arena, uint64_t, g->nnode);
	f->skip = ARENA_ARRAY(g->arena, int, g->nnode);
	f->open = ARENA_ARRAY(g->arena, bool, g->nnode);
	f->wish = ARENA_ARRAY(g->arena, int, g->ntensor);
	f->refused = ARENA_ARRAY(g->arena, unsigned, g->ntensor);
	if (!f->needed || !f->proven || !f->taken || !f->skip || !f->open || !f->wish ||
		!f->refused)
		return diag_nomem(g->diag);
	for (int i = 0; i < g->ntensor; i++)
		f->wish[i] = AXIS_NONE;
	return ST_OK;
}

enum status graph_free_batch(
	struct graph *g, int64_t fixed, int64_t rows, struct graph **out, struct graph_mixed *why)
{
	struct freeing f = {.g = g, .fixed = fixed};
	bool found;
	*out = NULL;
	TRY(lists(&f));
	TRY(search(&f, &found, why));
	if (!found)
		return ST_OK;
	/* a node that nobody needs may fail, and is left out: no error of the model's */
	struct diag quiet = {0};
	const enum status st = build(&f, g->arena, &quiet, rows, false);
	if (quiet.out_of_memory)
		return diag_nomem(g->diag);
	if (st != ST_OK)
		return build(&f, g->arena, g->diag, rows, false);
	f.copy.to->diag = g->diag;
	TRY(ends(&f));
	*out = f.copy.to;
	(*out)->phase = NODE_FORWARD;
	(*out)->opset = OPSET_LATEST;
	return ST_OK;
}
