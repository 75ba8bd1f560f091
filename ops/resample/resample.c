/* stint.Resample: a sparse matrix along each axis, all in one pass. A row of the output's last axis
 * is made from the rows that the other axes' terms name, added up in a buffer a thread has for
 * itself, then taken along the last axis. Rows are independent; the tables are part of the step. */
#include "graph/blocking.h"
#include "ops/resample/resample_op.h"

#include <inttypes.h>

#include "codegen/call.h"
#include "ops/product/gemm_op.h"

/* Axes that one node changes, as in kernels/resample_terms.h: more take two. */
enum { RESAMPLE_AXES = 4 };
/* Entries of a table: they become text. */
enum { TERMS_MAX = 1 << 22 };

/* --- Tables --- */

struct resample_axis resample_same(int64_t size)
{
	return (struct resample_axis){.in = size, .out = size};
}

enum status resample_begin(struct graph *g, const struct node *n, int64_t in, int64_t out,
	int64_t terms, struct resample_axis *a)
{
	*a = (struct resample_axis){.in = in, .out = out};
	if (in < 1 || in > TERMS_MAX || out > TERMS_MAX || terms > TERMS_MAX)
		return node_fail(g, n, NULL,
			"cannot go from %" PRId64 " to %" PRId64 " elements along an axis", in,
			out);
	a->start = graph_known(g, n, out + 1, sizeof *a->start);
	a->at = graph_known(g, n, terms, sizeof *a->at);
	a->weight = graph_known(g, n, terms, sizeof *a->weight);
	return a->start && a->at && a->weight ? ST_OK : g->failed;
}

void resample_term(struct resample_axis *a, int64_t at, double weight)
{
	for (int64_t t = a->start[a->rows]; t < a->terms; t++)
		if (a->at[t] == at) {
			a->weight[t] += weight;
			return;
		}
	a->at[a->terms] = (int32_t)at;
	a->weight[a->terms++] = weight;
}

void resample_row(struct resample_axis *a)
{
	int64_t kept = a->start[a->rows];
	for (int64_t t = kept; t < a->terms; t++)
		if (a->weight[t] != 0) {
			a->at[kept] = a->at[t];
			a->weight[kept++] = a->weight[t];
		}
	a->terms = kept;
	a->start[++a->rows] = (int32_t)kept;
}

void resample_end(struct resample_axis *a)
{
	bool ones = true, same = a->in == a->out && a->terms == a->out;
	for (int64_t t = 0; t < a->terms; t++)
		ones &= a->weight[t] == 1;
	for (int64_t i = 0; same && i < a->out; i++)
		same = a->start[i] == i && a->at[i] == i;
	if (ones)
		a->weight = NULL;
	if (ones && same)
		a->start = NULL;
}

/* Terms of an output: by input instead, in the order of the outputs. */
static enum status transpose(struct graph *g, const struct node *n, const struct resample_axis *a,
	struct resample_axis *b)
{
	*b = resample_same(a->in);
	if (!a->start)
		return ST_OK;
	TRY(resample_begin(g, n, a->out, a->in, a->terms, b));
	for (int64_t t = 0; t < a->terms; t++)
		b->start[a->at[t] + 1]++;
	for (int64_t i = 0; i < b->out; i++)
		b->start[i + 1] += b->start[i];
	int32_t *end = arena_memdup(g->arena, b->start, (size_t)b->out + 1, sizeof *end);
	if (!end)
		return diag_nomem(g->diag);
	for (int64_t i = 0; i < a->out; i++)
		for (int64_t t = a->start[i]; t < a->start[i + 1]; t++) {
			const int32_t to = end[a->at[t]]++;
			b->at[to] = (int32_t)i;
			b->weight[to] = a->weight ? a->weight[t] : 1;
		}
	b->terms = a->terms;
	if (!a->weight)
		b->weight = NULL;
	return ST_OK;
}

/* --- The node --- */

struct tensor *resample_build(struct graph *g, struct tensor *x, const struct resample *r,
	int nattr, const struct attr *attr)
{
	struct resample first = *r, rest = *r;
	int changed = 0;
	for (int k = 0; k < r->rank; k++)
		if (r->axis[k].start && changed++ >= RESAMPLE_AXES)
			first.axis[k] = resample_same(r->axis[k].in);
		else
			rest.axis[k] = resample_same(r->axis[k].out);
	if (changed == 0 || g->failed != ST_OK)
		return x;
	if (changed > RESAMPLE_AXES) {
		x = resample_build(g, x, &first, nattr, attr);
		return x ? resample_build(g, x, &rest, nattr, attr) : NULL;
	}
	const struct resample *p = arena_memdup(g->arena, r, 1, sizeof *r);
	if (!p) {
		g->failed = diag_nomem(g->diag);
		return NULL;
	}
	return graph_param_op(g, "stint.Resample", 1, &x, nattr, attr, p);
}

static enum status resample_infer(struct graph *g, struct node *n)
{
	const struct resample *p = n->param;
	int64_t dim[RANK_MAX];
	if (!p || p->rank != n->in[0]->rank)
		return node_fail(g, n, NULL, "has no tables for its axes");
	for (int k = 0; k < p->rank; k++)
		dim[k] = p->axis[k].out;
	return data_output(g, n, 0, n->in[0]->dtype, p->rank, dim);
}

static enum status resample_grad(struct graph *g, const struct node *n, struct tensor *const *dy,
	const bool *want, struct tensor **dx)
{
	const struct resample *p = n->param;
	struct resample back = {.rank = p->rank};
	struct attr attr[9];
	int nattr = n->nattr < 8 ? n->nattr : 8;
	if (!want[0])
		return ST_OK;
	for (int k = 0; k < p->rank; k++)
		TRY(transpose(g, n, &p->axis[k], &back.axis[k]));
	if (nattr)
		memcpy(attr, n->attr, (size_t)nattr * sizeof *attr);
	attr[nattr++] = ATTR_I("transposed", 1);
	dx[0] = resample_build(g, dy[0], &back, nattr, attr);
	return g->failed;
}

static enum status resample_block(struct blocking *b)
{
	const struct resample *p = b->n->param;
	struct resample *q = arena_memdup(b->g->arena, p, 1, sizeof *q);
	if (!q)
		return diag_nomem(b->g->diag);
	if (!blocking_has(b, 0) || !blocking_fits(b, b->n->out[0]) || p->axis[1].start)
		return ST_OK;
	const int64_t together = blocking_channels(b, b->n->in[0]);
	q->axis[1] = resample_same(p->axis[1].in / together);
	q->axis[q->rank++] = resample_same(together);
	struct tensor *in = blocking_blocked(b, 0);
	struct node *m = graph_op_like(b->g, b->n, &in, b->n->nattr, b->n->attr, q);
	if (m)
		blocking_give(b, 0, m->out[0], true);
	return b->g->failed;
}

/* --- The kernel --- */

/* An axis of the loops: neighbours that stay as they are make one. */
struct part {
	int64_t in, out, stride;         /* of x, in elements */
	const struct resample_axis *map; /* NULL: stays */
	int64_t each; /* terms of every output; 0: not all have the same number */
	bool one;     /* each is 1, of weight 1 */
};

struct parts {
	int count;
	struct part part[RANK_MAX];
	bool adds;  /* some axis before the last has sums */
	bool moves; /* there are none */
};

static struct part part_of(const struct resample_axis *a)
{
	struct part p = {.in = a->in, .out = a->out, .stride = 1, .map = a->start ? a : NULL};
	if (!p.map)
		return p;
	p.each = a->out ? a->start[1] : 0;
	for (int64_t i = 0; i < a->out; i++)
		p.each = a->start[i + 1] - a->start[i] == p.each ? p.each : 0;
	p.one = p.each == 1 && !a->weight;
	return p;
}

static struct parts parts_of(const struct node *n)
{
	const struct resample *r = n->param;
	struct parts s = {0};
	for (int k = 0; k < r->rank; k++) {
		const struct part p = part_of(&r->axis[k]);
		for (int i = 0; i < s.count; i++)
			s.part[i].stride *= p.in;
		struct part *last = s.count ? &s.part[s.count - 1] : NULL;
		if (last && !last->map && !p.map) {
			last->in *= p.in;
			last->out *= p.out;
			last->stride = 1;
		} else {
			s.part[s.count++] = p;
		}
	}
	const struct part *last = &s.part[s.count - 1];
	for (int i = 0; i < s.count - 1; i++)
		s.adds |= s.part[i].map && !s.part[i].one;
	/* whole numbers are never added up */
	s.moves = !dtype_is_real(n->in[0]->dtype) || (!s.adds && (!last->map || last->one));
	return s;
}

static double row_terms(const struct part *p)
{
	return !p->map ? 1 : p->out ? (double)p->map->terms / (double)p->out : 0;
}

static struct op_cost resample_cost(const struct node *n)
{
	const struct parts s = parts_of(n);
	const struct part *last = &s.part[s.count - 1];
	double rows = 1, terms = 1;
	for (int i = 0; i < s.count - 1; i++) {
		rows *= (double)s.part[i].out;
		terms *= row_terms(&s.part[i]);
	}
	double flops = rows * ((s.adds ? 2 * terms * (double)last->in : 0) +
				      2 * row_terms(last) * (double)last->out);
	return (struct op_cost){
		flops, (double)tensor_bytes(n->in[0]) + (double)tensor_bytes(n->out[0])};
}

/* A row of sums, of reals, which is then taken along the last axis. */
static int64_t row_bytes(const struct node *n, const struct parts *s)
{
	const struct part *last = &s->part[s->count - 1];
	const enum dtype t = n->in[0]->dtype;
	const int64_t bytes = dtype_is_narrow(t) ? (int64_t)sizeof(float) : dtype_bytes(t);
	return s->adds && !s->moves && last->map ? round_up(last->in * bytes, 64) : 0;
}

static int64_t resample_workspace(const struct node *n, const struct target *t)
{
	const struct parts s = parts_of(n);
	return row_bytes(n, &s) * t->threads;
}

/* All axes' tables, one behind another; `start` is NULL where all have `each`. */
struct tables {
	int axes;
	int64_t axis[RESAMPLE_AXES], stride[RESAMPLE_AXES], each[RESAMPLE_AXES],
		first[RESAMPLE_AXES];
	int64_t nstart, terms;
	int32_t *start, *at;
	double *by; /* NULL: all are 1 */
};

static void add_axis(struct tables *t, int axis, const struct part *p)
{
	const struct resample_axis *a = p->map;
	t->axis[t->axes] = axis;
	t->stride[t->axes] = p->stride;
	t->each[t->axes] = p->each;
	t->first[t->axes++] = p->each ? t->terms : t->nstart;
	for (int64_t i = 0; i <= a->out && !p->each; i++)
		t->start[t->nstart++] = (int32_t)(t->terms + a->start[i]);
	for (int64_t i = 0; i < a->terms; i++) {
		if (t->by)
			t->by[t->terms] = a->weight ? a->weight[i] : 1;
		t->at[t->terms++] = a->at[i];
	}
}

static enum status make_tables(const struct graph *g, const struct parts *s, struct tables *t)
{
	int64_t nstart = 0, terms = 0;
	bool weighted = false;
	for (int k = 0; k < s->count; k++) {
		const struct part *p = &s->part[k];
		nstart += p->map && !p->each ? p->out + 1 : 0;
		terms += p->map ? p->map->terms : 0;
		weighted |= p->map && p->map->weight && p->map->terms;
	}
	*t = (struct tables){.start = ARENA_ARRAY(g->arena, int32_t, nstart + 1),
		.at = ARENA_ARRAY(g->arena, int32_t, terms + 1),
		.by = weighted ? ARENA_ARRAY(g->arena, double, terms + 1) : NULL};
	if (!t->start || !t->at || (weighted && !t->by))
		return diag_nomem(g->diag);
	for (int k = 0; k < s->count; k++)
		if (s->part[k].map)
			add_axis(t, k, &s->part[k]);
	return ST_OK;
}

/* A turn is a row of the output, or one of its elements. */
static enum status resample_call(struct emit *e, const struct node *n, bool elements)
{
	const struct resample *p = n->param;
	const struct tensor *x = n->in[0], *y = n->out[0];
	const struct parts s = parts_of(n);
	const struct part *last = &s.part[s.count - 1];
	const bool last_changes = last->map != NULL;
	const int64_t row = row_bytes(n, &s);
	int64_t dim[RANK_MAX], xs[RANK_MAX];
	struct tables t;
	TRY(make_tables(e->g, &s, &t));
	for (int k = 0; k < s.count; k++) {
		dim[k] = s.part[k].out;
		xs[k] = s.part[k].map ? 0 : s.part[k].stride;
	}
	const struct call_struct box = {"struct box", "box",
		CALL_FIELDS({"rank", ARG_INT(s.count)}, {"dim", ARG_INTS(s.count, dim)},
			{"xs", ARG_INTS(s.count, xs)})};
	const struct call_struct axes = {"struct resample", "axes",
		CALL_FIELDS({"axes", ARG_INT(t.axes - last_changes)},
			{"last", ARG_INT(last_changes)}, {"in", ARG_INT(last->in)},
			{"out", ARG_INT(last->out)}, {"axis", ARG_INTS(t.axes, t.axis)},
			{"stride", ARG_INTS(t.axes, t.stride)}, {"each", ARG_INTS(t.axes, t.each)},
			{"first", ARG_INTS(t.axes, t.first)})};
	const struct call_numbers start = {"start", t.nstart, .whole = t.start};
	const struct call_numbers at = {"at", t.terms, .whole = t.at};
	const struct call_numbers by = {"by", t.terms, .real = t.by};
	const char *const function[2][2] = {{"resample_sum", "resample_sum_elements"},
		{"resample_move", "resample_move_elements"}};
	const bool scratch = !s.moves && !elements;
	return call_kernel(
		e, &(struct kernel_call){.file = s.moves ? "resample_move.h" : "resample_sum.h",
			   .function = function[s.moves][elements],
			   .ntype = 1,
			   .type = {x},
			   .turns = elements || !y->numel ? y->numel : y->numel / last->out,
			   .work = resample_cost(n).flops,
			   .args = CALL_ARGS(ARG_Y(0), ARG_X(0), ARG_STRUCT(&box),
				   ARG_STRUCT(&axes), t.nstart ? ARG_NUMBERS(&start) : ARG_NULL,
				   t.terms ? ARG_NUMBERS(&at) : ARG_NULL,
				   ARG_IF(!s.moves, t.by ? ARG_NUMBERS(&by) : ARG_NULL),
				   s.moves ? ARG_INT((int64_t)p->outside) : ARG_REAL(p->outside),
				   ARG_IF(elements, ARG_INT(y->numel > INT32_MAX)),
				   ARG_IF(scratch, row ? ARG_OWN(0, row) : ARG_NULL))});
}

static enum status resample_emit(struct emit *e, const struct node *n)
{
	return resample_call(e, n, false);
}

static enum status resample_cuda_emit(struct emit *e, const struct node *n)
{
	return resample_call(e, n, true);
}

const struct op_def ops_resample[] = {
	{.name = "stint.Resample",
		.min_in = 1,
		.traits = OP_ALIKE,
		.narrow_in = 1,
		.narrow_out = 1,
		.infer = resample_infer,
		.grad = resample_grad,
		.block = resample_block,
		.cost = resample_cost,
		.workspace = resample_workspace,
		.emit_c = resample_emit,
		.emit_cuda = resample_cuda_emit},
	{.name = NULL},
};
