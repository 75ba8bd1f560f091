/* stint.Resample: a sparse matrix along each axis, all in one pass. A row of the output's last axis
 * is made from the rows that the other axes' terms name, added up in a buffer a thread has for
 * itself, then taken along the last axis. Rows are independent; the tables are part of the text. */
#include "ops/resample.h"

#include <inttypes.h>
#include <stdio.h>

#include "ops/gemm.h"
#include "ops/resample_parts.h"

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
	bool same = true;
	for (int k = 0; k < r->rank; k++)
		same &= !r->axis[k].start;
	if (same || g->failed != ST_OK)
		return x;
	const struct resample *p = arena_memdup(g->arena, r, 1, sizeof *r);
	if (!p) {
		g->failed = diag_nomem(g->diag);
		return NULL;
	}
	struct node *n = graph_op_node(g, "stint.Resample", 1, &x, nattr, attr, p);
	return n ? n->out[0] : NULL;
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

/* --- C text --- */

static struct part part_of(const struct resample_axis *a)
{
	struct part p = {.in = a->in, .out = a->out, .stride = 1, .map = a->start ? a : NULL};
	if (!p.map)
		return p;
	p.each = a->out ? a->start[1] : 0;
	for (int64_t i = 0; i < a->out; i++) {
		const int64_t terms = a->start[i + 1] - a->start[i];
		p.each = terms == p.each ? p.each : -1;
		p.gaps |= terms == 0;
	}
	p.one = p.each == 1 && !a->weight;
	return p;
}

struct parts resample_parts(const struct node *n)
{
	const struct resample *r = n->param;
	struct parts s = {.type = n->in[0]};
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
	for (int i = 0; i < s.count - 1; i++)
		s.adds |= s.part[i].map && !s.part[i].one;
	return s;
}

static double row_terms(const struct part *p)
{
	return !p->map ? 1 : p->out ? (double)p->map->terms / (double)p->out : 0;
}

static struct op_cost resample_cost(const struct node *n)
{
	const struct parts s = resample_parts(n);
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

/* Rows of sums up to this long, which are rounded and nothing else, are arrays; their loops are
 * marked, as a compiler may take one of few turns apart and leave the parts scalar. */
enum { SHORT_ROW = 1024 };

static bool is_short(const struct parts *s)
{
	const struct part *last = &s->part[s->count - 1];
	return !last->map && last->in <= SHORT_ROW;
}

/* Sums are made in y where they end there and it holds reals. */
static bool wants_row(const struct parts *s)
{
	return s->adds && (s->part[s->count - 1].map || dtype_is_narrow(s->type->dtype));
}

static bool wants_buffer(const struct parts *s)
{
	return wants_row(s) && !is_short(s);
}

/* Of reals, as wide as a sum. */
static int64_t real_bytes(const struct parts *s)
{
	return dtype_is_narrow(s->type->dtype) ? (int64_t)sizeof(float)
					       : dtype_bytes(s->type->dtype);
}

static int64_t buffer_bytes(const struct parts *s)
{
	return round_up(s->part[s->count - 1].in * real_bytes(s), 64);
}

static int64_t resample_workspace(const struct node *n, const struct target *t)
{
	const struct parts s = resample_parts(n);
	return wants_buffer(&s) && !t->cuda ? buffer_bytes(&s) * t->threads : 0;
}

static void emit_numbers(struct emit *e, const char *name, int k, const int32_t *v, int64_t count)
{
	emit(e, "\tstatic const int32_t %s%d[] = {", name, k);
	for (int64_t i = 0; i < count; i++)
		emit(e, "%s%" PRId32, i == 0 ? "" : i % 16 ? ", " : ",\n\t\t", v[i]);
	emit(e, "};\n");
}

/* from: where an output's terms begin; at: which element; by: its weight. */
void resample_emit_tables(struct emit *e, const struct parts *s)
{
	char literal[40];
	for (int k = 0; k < s->count; k++) {
		const struct resample_axis *a = s->part[k].map;
		if (!a)
			continue;
		if (s->part[k].each < 0)
			emit_numbers(e, "from", k, a->start, a->out + 1);
		emit_numbers(e, "at", k, a->at, a->terms);
		if (!a->weight)
			continue;
		emit(e, "\tstatic const real by%d[] = {", k);
		for (int64_t i = 0; i < a->terms; i++)
			emit(e, "%s%s",
				i == 0  ? ""
				: i % 8 ? ", "
					: ",\n\t\t",
				emit_real(e, a->weight[i], literal));
		emit(e, "};\n");
	}
}

/* No turn of the next loop reads what another writes. */
static void emit_mark(struct emit *e, int depth)
{
	emit_tabs(e, depth);
	emit(e, "EACH\n");
}

/* The loop over the terms of output `index` of axis k. */
static void emit_terms(struct emit *e, const struct part *p, int k, const char *index)
{
	if (p->each < 0)
		emit(e, "for (int64_t t%d = from%d[%s]; t%d < from%d[%s + 1]; t%d++)", k, k, index,
			k, k, index, k);
	else
		emit(e,
			"for (int64_t t%d = %s * %" PRId64 "; t%d < %s * %" PRId64 " + %" PRId64
			"; t%d++)",
			k, index, p->each, k, index, p->each, p->each, k);
}

/* `row`: the sum of the rows that the axes before the last name. */
static void emit_sum(struct emit *e, const struct parts *s, int depth, const char *row)
{
	const struct part *last = &s->part[s->count - 1];
	bool weighted = false;
	int loops = 0;
	char index[16];
	emit_tabs(e, depth);
	emit(e, "for (int64_t j = 0; j < %" PRId64 "; j++)\n", last->in);
	emit_tabs(e, depth + 1);
	emit(e, "%s[j] = 0;\n", row);
	for (int k = 0; k < s->count - 1; k++) {
		if (!s->part[k].map || s->part[k].one)
			continue;
		emit(e, "%s", loops++ ? "\n" : "");
		snprintf(index, sizeof index, "i%d", k);
		emit_tabs(e, depth++);
		emit_terms(e, &s->part[k], k, index);
		weighted |= s->part[k].map->weight != NULL;
	}
	emit(e, " {\n");
	emit_tabs(e, depth);
	emit(e, "const %s *from = x", emit_type(s->type));
	for (int k = 0; k < s->count - 1; k++)
		if (s->part[k].map && !s->part[k].one)
			emit(e, " + at%d[t%d] * INT64_C(%" PRId64 ")", k, k, s->part[k].stride);
	emit(e, ";\n");
	const char *times = "const real by = ";
	for (int k = 0; k < s->count - 1; k++) {
		if (!s->part[k].map || s->part[k].one || !s->part[k].map->weight)
			continue;
		if (*times == 'c')
			emit_tabs(e, depth);
		emit(e, "%sby%d[t%d]", times, k, k);
		times = " * ";
	}
	emit(e, "%s", weighted ? ";\n" : "");
	if (is_short(s) && wants_row(s))
		emit_mark(e, depth);
	emit_tabs(e, depth);
	emit(e, "for (int64_t j = 0; j < %" PRId64 "; j++)\n", last->in);
	emit_tabs(e, depth + 1);
	emit(e, "%s[j] += %s%s;\n", row, weighted ? "by * " : "",
		emit_value(e, s->type, "from[j]"));
	emit_tabs(e, depth - 1);
	emit(e, "}\n");
}

/* An element of the last axis: of the sum of rows, or of x. */
static const char *element_of(struct emit *e, const struct parts *s, const char *at)
{
	return s->adds ? emit_text(e, "row[%s]", at)
		       : emit_value(e, s->type, emit_text(e, "x[%s]", at));
}

/* The last axis. */
static void emit_last(struct emit *e, const struct parts *s, int depth, double outside)
{
	enum { WRITTEN_OUT = 4 };
	const int k = s->count - 1;
	const struct part *p = &s->part[k];
	char literal[40];
	const bool weighted = p->map->weight != NULL;
	emit_tabs(e, depth);
	if (p->each >= 1 && p->each <= WRITTEN_OUT) {
		const char *sum = "";
		emit(e, "for (int64_t j = 0; j < %" PRId64 "; j++)\n", p->out);
		emit_tabs(e, depth + 1);
		for (int t = 0; t < p->each; t++) {
			const char *at = emit_text(e, "at%d[j * %" PRId64 " + %d]", k, p->each, t);
			const char *by = weighted ? emit_text(e, "by%d[j * %" PRId64 " + %d] * ", k,
							    p->each, t)
						  : "";
			sum = emit_text(
				e, "%s%s%s%s", sum, t ? " + " : "", by, element_of(e, s, at));
		}
		emit(e, "y[j] = %s;\n", emit_stored(e, s->type, sum));
		return;
	}
	emit(e, "for (int64_t j = 0; j < %" PRId64 "; j++) {\n", p->out);
	emit_tabs(e, depth + 1);
	if (p->gaps && outside != 0)
		emit(e, "real sum = from%d[j] < from%d[j + 1] ? 0 : %s;\n", k, k,
			emit_real(e, outside, literal));
	else
		emit(e, "real sum = 0;\n");
	emit_tabs(e, depth + 1);
	emit_terms(e, p, k, "j");
	emit(e, "\n");
	emit_tabs(e, depth + 2);
	emit(e, "sum += ");
	if (weighted)
		emit(e, "by%d[t%d] * ", k, k);
	emit(e, "%s;\n", element_of(e, s, emit_text(e, "at%d[t%d]", k, k)));
	emit_tabs(e, depth + 1);
	emit(e, "y[j] = %s;\n", emit_stored(e, s->type, "sum"));
	emit_tabs(e, depth);
	emit(e, "}\n");
}

void resample_emit_base(struct emit *e, const struct parts *s, int axes)
{
	emit(e, "const %s *x = x0", emit_type(s->type));
	for (int k = 0; k < axes; k++) {
		const struct part *p = &s->part[k];
		if (!p->map)
			emit(e, " + i%d * %" PRId64, k, p->stride);
		else if (p->one)
			emit(e, " + at%d[i%d] * INT64_C(%" PRId64 ")", k, k, p->stride);
	}
	emit(e, ";\n");
}

/* x and y: the rows that the loop variables name. */
static void emit_places(struct emit *e, const struct parts *s, int depth, const char *type)
{
	const struct part *last = &s->part[s->count - 1];
	emit_tabs(e, depth);
	resample_emit_base(e, s, s->count - 1);
	emit_tabs(e, depth);
	emit(e, "%s *y = y0", type);
	int64_t stride = last->out;
	for (int k = s->count - 2; k >= 0; k--) {
		emit(e, " + i%d * %" PRId64, k, stride);
		stride *= s->part[k].out;
	}
	emit(e, ";\n");
}

static void emit_outside(struct emit *e, const struct parts *s, int depth, double outside)
{
	const char *join = "if (";
	char literal[40];
	for (int k = 0; k < s->count - 1; k++) {
		if (!s->part[k].gaps)
			continue;
		if (*join == 'i')
			emit_tabs(e, depth);
		emit(e, "%sfrom%d[i%d] == from%d[i%d + 1]", join, k, k, k, k);
		join = " || ";
	}
	if (*join == 'i')
		return;
	emit(e, ") {\n");
	emit_tabs(e, depth + 1);
	emit(e, "for (int64_t j = 0; j < %" PRId64 "; j++)\n", s->part[s->count - 1].out);
	emit_tabs(e, depth + 2);
	emit(e, "y[j] = %s;\n", emit_stored(e, s->type, emit_real(e, outside, literal)));
	emit_tabs(e, depth + 1);
	emit(e, "continue;\n");
	emit_tabs(e, depth);
	emit(e, "}\n");
}

static void emit_row(struct emit *e, const struct parts *s, int depth)
{
	emit_tabs(e, depth);
	if (is_short(s))
		emit(e, "real row[%" PRId64 "];\n", s->part[s->count - 1].in);
	else
		emit(e, "real *row = (real *)ws + thread_index() * %" PRId64 ";\n",
			buffer_bytes(s) / real_bytes(s));
}

/* y = row, rounded. */
static void emit_rounded(struct emit *e, const struct parts *s, int depth)
{
	if (is_short(s))
		emit_mark(e, depth);
	emit_tabs(e, depth);
	emit(e, "for (int64_t j = 0; j < %" PRId64 "; j++)\n", s->part[s->count - 1].in);
	emit_tabs(e, depth + 1);
	emit(e, "y[j] = %s;\n", emit_stored(e, s->type, "row[j]"));
}

static enum status resample_emit(struct emit *e, const struct node *n)
{
	const struct resample *r = n->param;
	const struct parts s = resample_parts(n);
	const struct part *last = &s.part[s.count - 1];
	const char *type = emit_type(n->out[0]);
	const int outer = s.count - 1, depth = outer + 1;
	if (n->out[0]->numel == 0) {
		emit(e, "\t(void)y0, (void)x0;\n");
		return ST_OK;
	}
	if (e->g->target->cuda)
		return resample_cuda_emit(e, n);
	resample_emit_tables(e, &s);
	struct emit_loop loop[RANK_MAX] = {0};
	for (int k = 0; k < outer; k++)
		loop[k] = (struct emit_loop){emit_text(e, "i%d", k), s.part[k].out, 1};
	emit_loops(e, resample_cost(n).flops, outer, loop);
	if (outer)
		emit(e, " {\n");
	emit_places(e, &s, depth, type);
	if (r->outside != 0)
		emit_outside(e, &s, depth, r->outside);
	if (wants_row(&s))
		emit_row(e, &s, depth);
	if (s.adds)
		emit_sum(e, &s, depth, wants_row(&s) ? "row" : "y");
	if (last->map)
		emit_last(e, &s, depth, r->outside);
	else if (wants_row(&s))
		emit_rounded(e, &s, depth);
	if (!last->map && !s.adds) {
		emit_tabs(e, depth);
		emit(e, "memcpy(y, x, %" PRId64 " * sizeof(%s));\n", last->in, type);
	}
	if (outer) {
		emit_tabs(e, outer);
		emit(e, "}\n");
	}
	return ST_OK;
}

const struct op_def ops_resample[] = {
	{.name = "stint.Resample",
		.min_in = 1,
		.max_in = 1,
		.traits = OP_ALIKE,
		.narrow_in = 1,
		.narrow_out = 1,
		.infer = resample_infer,
		.grad = resample_grad,
		.block = resample_block,
		.cost = resample_cost,
		.workspace = resample_workspace,
		.emit_c = resample_emit},
	{.name = NULL},
};
