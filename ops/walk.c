/* Walks over picks (ops/walk.h): making them, on the host, and as C text. */
#include "ops/walk.h"
#include "ops/boxes.h"

#include <inttypes.h>
#include <stdio.h>

/* Elements of a row that one turn of a parallel loop takes: two cache lines of floats. A fixed
 * split, so that the order of every sum (that of the indices) depends on no number of threads. */
enum { WALK_PIECE = 32 };

/* Neighbouring threads of a GPU take neighbours. */
static int64_t piece_of(const struct emit *e)
{
	return e->g->target->cuda ? 1 : WALK_PIECE;
}

static const char index_of[] =
	"/* An index into n elements; a negative one counts from their end. */\n"
	"static inline int64_t index_of(int64_t i, int64_t n)\n"
	"{\n"
	"\treturn i < 0 ? i + n : i;\n"
	"}\n";

static int64_t product(const int64_t *dim, int from, int to)
{
	int64_t p = 1;
	for (int i = from; i < to; i++)
		p *= dim[i];
	return p;
}

static void add_line(struct walk *w, int64_t dim, int64_t ds, int64_t us, int64_t is)
{
	int last = w->lines - 1;
	if (dim == 1)
		return;
	/* the same as one longer line */
	if (last >= 0 && w->ds[last] == ds * dim && w->us[last] == us * dim &&
		w->is[last] == is * dim) {
		w->dim[last] *= dim;
		w->ds[last] = ds;
		w->us[last] = us;
		w->is[last] = is;
		return;
	}
	w->dim[w->lines] = dim;
	w->ds[w->lines] = ds;
	w->us[w->lines] = us;
	w->is[w->lines++] = is;
}

static struct walk *begin(struct graph *g, const struct node *n, const struct tensor *x,
	const struct tensor *at, int list_rank, const int64_t *list_dim)
{
	if (at->dtype != DT_I64) {
		node_fail(g, n, NULL, "the indices ('%s') are not integers", at->name);
		return NULL;
	}
	int64_t picks = 1;
	for (int i = 0; i < list_rank; i++)
		if (!size_mul(picks, list_dim[i] == 0 ? 1 : list_dim[i], &picks)) {
			node_fail(g, n, NULL, "picks more elements than can be counted");
			return NULL;
		}
	struct walk *w = ARENA_NEW(g->arena, struct walk);
	if (!w) {
		diag_nomem(g->diag);
		return NULL;
	}
	w->data_rank = x->rank;
	w->list_rank = list_rank;
	memcpy(w->data_dim, x->dim, sizeof w->data_dim);
	memcpy(w->list_dim, list_dim, (size_t)list_rank * sizeof *list_dim);
	return w;
}

/* Indices known at compile time are in range. */
static const struct walk *checked(
	struct graph *g, const struct node *n, const struct walk *w, const struct tensor *at)
{
	for (int64_t i = 0; at->role == TR_CONSTANT && i < at->numel; i++) {
		int64_t v = tensor_int(at, i), size = w->size[i % w->parts];
		if (v < -size || v >= size) {
			node_fail(g, n, NULL,
				"index %" PRId64 " is out of range for an axis of size %" PRId64, v,
				size);
			return NULL;
		}
	}
	return w;
}

const struct walk *walk_elements(struct graph *g, const struct node *n, const struct tensor *x,
	const struct tensor *at, int64_t axis)
{
	int along;
	int64_t xs[RANK_MAX], is[RANK_MAX];
	if (node_axis(g, n, axis, x->rank, &along) != ST_OK)
		return NULL;
	bool fits = at->rank == x->rank;
	for (int i = 0; fits && i < x->rank; i++)
		fits = i == along || at->dim[i] <= x->dim[i];
	if (!fits) {
		char a[200], b[200];
		node_fail(g, n, NULL, "indices of shape %s do not fit data of shape %s",
			tensor_shape_text(at, a), tensor_shape_text(x, b));
		return NULL;
	}
	struct walk *w = begin(g, n, x, at, at->rank, at->dim);
	if (!w)
		return NULL;
	box_strides(x->rank, x->dim, xs);
	box_strides(at->rank, at->dim, is);
	for (int i = 0; i < x->rank; i++)
		if (i != along)
			add_line(w, at->dim[i], xs[i], is[i], is[i]);
	w->count = at->dim[along];
	w->um = w->im = is[along];
	w->parts = 1;
	w->size[0] = x->dim[along];
	w->step[0] = xs[along];
	return checked(g, n, w, at);
}

const struct walk *walk_rows(struct graph *g, const struct node *n, const struct tensor *x,
	const struct tensor *at, int64_t batch_dims)
{
	int b = (int)batch_dims, last = at->rank - 1;
	int64_t dim[2 * RANK_MAX], xs[RANK_MAX];
	bool fits = batch_dims >= 0 && batch_dims < at->rank && at->rank > 0;
	int parts = fits && at->dim[last] <= RANK_MAX ? (int)at->dim[last] : -1;
	fits = fits && parts >= 0 && b + parts <= x->rank && parts > 0;
	for (int i = 0; fits && i < b; i++)
		fits = at->dim[i] == x->dim[i];
	int rank = fits ? last + x->rank - b - parts : 0;
	if (!fits || rank > RANK_MAX) {
		char s[200], t[200];
		node_fail(g, n, NULL, "indices of shape %s do not fit data of shape %s",
			tensor_shape_text(at, s), tensor_shape_text(x, t));
		return NULL;
	}
	memcpy(dim, at->dim, (size_t)last * sizeof *dim);
	memcpy(dim + last, x->dim + b + parts, (size_t)(rank - last) * sizeof *dim);
	struct walk *w = begin(g, n, x, at, rank, dim);
	if (!w)
		return NULL;
	box_strides(x->rank, x->dim, xs);
	int64_t inner = product(x->dim, b + parts, x->rank);
	w->count = product(at->dim, b, last);
	add_line(w, product(x->dim, 0, b), product(x->dim, b, x->rank), w->count * inner,
		w->count * parts);
	add_line(w, inner, 1, 1, 0);
	w->um = inner;
	w->im = parts;
	w->parts = parts;
	for (int c = 0; c < parts; c++) {
		w->size[c] = x->dim[b + c];
		w->step[c] = xs[b + c];
	}
	return checked(g, n, w, at);
}

const struct walk *walk_along(struct graph *g, const struct node *n, const struct tensor *x,
	const struct tensor *at, const struct tensor *list, int axis)
{
	int64_t inner = product(x->dim, axis + 1, x->rank), count = list->dim[axis];
	int64_t middle = product(x->dim, 1, axis), size = x->dim[axis];
	struct walk *w = begin(g, n, x, at, list->rank, list->dim);
	if (!w)
		return NULL;
	add_line(w, x->dim[0], middle * size * inner, middle * count * inner, count);
	add_line(w, middle, size * inner, count * inner, 0);
	add_line(w, inner, 1, 1, 0);
	w->count = count;
	w->um = inner;
	w->im = 1;
	w->parts = 1;
	w->size[0] = size;
	w->step[0] = inner;
	return checked(g, n, w, at);
}

/* --- On the host --- */

int64_t walk_total(const struct walk *w)
{
	return w->count * product(w->dim, 0, w->lines);
}

void walk_place(
	const struct walk *w, const struct tensor *at, int64_t t, int64_t *data, int64_t *list)
{
	int64_t lines = product(w->dim, 0, w->lines), m = t / lines, rest = t % lines;
	int64_t index = m * w->im;
	*data = 0;
	*list = m * w->um;
	for (int k = w->lines - 1; k >= 0; k--) {
		int64_t i = rest % w->dim[k];
		rest /= w->dim[k];
		*data += i * w->ds[k];
		*list += i * w->us[k];
		index += i * w->is[k];
	}
	for (int c = 0; c < w->parts; c++) {
		int64_t v = tensor_int(at, index + c);
		*data += (v < 0 ? v + w->size[c] : v) * w->step[c];
	}
}

/* --- C text --- */

void walk_emit_check(struct emit *e, const struct node *n, const struct walk *w, int k)
{
	const struct tensor *at = n->in[k];
	if (at->role == TR_CONSTANT || at->numel == 0)
		return;
	if (w->parts == 1)
		emit(e, "\tfor (int64_t m = 0; m < %" PRId64 "; m++) {\n", at->numel);
	else
		emit(e, "\tfor (int64_t m = 0; m < %" PRId64 "; m += %d) {\n", at->numel, w->parts);
	for (int c = 0; c < w->parts; c++) {
		char part[20] = "m";
		if (c)
			snprintf(part, sizeof part, "m + %d", c);
		emit(e, "\t\tif (x%d[%s] < %" PRId64 " || x%d[%s] >= %" PRId64 ")\n", k, part,
			-w->size[c], k, part, w->size[c]);
		emit(e, "\t\t\treturn BAD_INDEX(x%d[%s]);\n", k, part);
	}
	emit(e, "\t}\n");
}

static void emit_term(struct emit *e, bool *first, const char *variable, int number, int64_t stride)
{
	if (stride == 0)
		return;
	emit(e, "%s%s", *first ? "" : " + ", variable);
	if (number >= 0)
		emit(e, "%d", number);
	if (stride != 1)
		emit(e, " * %" PRId64, stride);
	*first = false;
}

/* "i0 * 12 + m * 3" over the first `lines` lines. */
static void emit_sum(struct emit *e, int lines, const int64_t *stride, int64_t m_stride)
{
	bool first = true;
	for (int k = 0; k < lines; k++)
		emit_term(e, &first, "i", k, stride[k]);
	emit_term(e, &first, "m", -1, m_stride);
	if (first)
		emit(e, "0");
}

/* The pick's place in the data, over the first `lines` lines; the index may use more of them. */
static void emit_data_place(struct emit *e, const struct walk *w, int lines, int input)
{
	bool first = true;
	for (int k = 0; k < lines; k++)
		emit_term(e, &first, "i", k, w->ds[k]);
	for (int c = 0; c < w->parts; c++) {
		emit(e, "%sindex_of(x%d[", first ? "" : " + ", input);
		emit_sum(e, w->lines, w->is, w->im);
		if (c)
			emit(e, " + %d", c);
		emit(e, "], %" PRId64 ")", w->size[c]);
		if (w->step[c] != 1)
			emit(e, " * %" PRId64, w->step[c]);
		first = false;
	}
}

/* The loops over lines i0, i1, ... before `to` and, where `last` is one, over that. */
static void emit_lines(struct emit *e, const struct walk *w, int to, struct emit_loop last)
{
	struct emit_loop loop[RANK_MAX + 1];
	for (int k = 0; k < to; k++)
		loop[k] = (struct emit_loop){emit_text(e, "i%d", k), w->dim[k], 1};
	loop[to] = last;
	emit_loops(e, 4 * (double)walk_total(w), to + (last.variable != NULL), loop);
}

/* The last line is a row of neighbours. */
static bool has_row(const struct walk *w)
{
	int last = w->lines - 1;
	return last >= 0 && w->ds[last] == 1 && w->us[last] == 1;
}

/* The loop over m and, in a row, over its elements [from, end). */
static void emit_picks(struct emit *e, const struct walk *w, int input, int depth, bool row,
	const char *m_loop, const char *body)
{
	int outer = w->lines - row;
	const bool pieces = row && w->dim[outer] > piece_of(e);
	emit_tabs(e, depth);
	emit(e, "%s {\n", m_loop);
	/* one index for the whole row */
	bool shared = row && w->is[outer] == 0;
	if (shared) {
		emit_tabs(e, depth + 1);
		emit(e, "const int64_t row = ");
		emit_data_place(e, w, outer, input);
		emit(e, ";\n");
	}
	if (row) {
		emit_tabs(e, depth + 1);
		if (pieces)
			emit(e, "for (int64_t i%d = p; i%d < end; i%d++) {\n", outer, outer, outer);
		else
			emit(e, "for (int64_t i%d = 0; i%d < %" PRId64 "; i%d++) {\n", outer, outer,
				w->dim[outer], outer);
	}
	emit_tabs(e, depth + 1 + row);
	emit(e, "const int64_t at = ");
	if (shared)
		emit(e, "row + i%d", outer);
	else
		emit_data_place(e, w, w->lines, input);
	emit(e, ", k = ");
	emit_sum(e, w->lines, w->us, w->um);
	emit(e, ";\n");
	emit_tabs(e, depth + 1 + row);
	emit(e, "%s\n", body);
	if (row) {
		emit_tabs(e, depth + 1);
		emit(e, "}\n");
	}
	emit_tabs(e, depth);
	emit(e, "}\n");
}

void walk_emit(struct emit *e, const struct walk *w, int input, bool backwards, const char *body)
{
	char m_loop[100];
	bool row = has_row(w);
	int outer = w->lines - row;
	bool pieces = row && w->dim[outer] > piece_of(e);
	int64_t n = row ? w->dim[outer] : 1;
	if (walk_total(w) == 0)
		return;
	snprintf(m_loop, sizeof m_loop,
		backwards ? "for (int64_t m = %" PRId64 " - 1; m >= 0; m--)"
			  : "for (int64_t m = 0; m < %" PRId64 "; m++)",
		w->count);
	emit_helper(e, "index_of", index_of);
	emit_lines(e, w, outer, (struct emit_loop){pieces ? "p" : NULL, n, piece_of(e)});
	if (outer + pieces)
		emit(e, pieces ? " {\n" : "\n");
	if (pieces) {
		emit_tabs(e, outer + 2);
		emit(e,
			"const int64_t end = p + %" PRId64 " < %" PRId64 " ? p + %" PRId64
			" : %" PRId64 ";\n",
			piece_of(e), n, piece_of(e), n);
	}
	emit_picks(e, w, input, outer + 1 + pieces, row, m_loop, body);
	if (pieces) {
		emit_tabs(e, outer + 1);
		emit(e, "}\n");
	}
}

/* The loops over m and the lines before `to`; m outside of the last line where that is shared too.
 */
static void emit_gather_lines(struct emit *e, const struct walk *w, int to)
{
	struct emit_loop loop[RANK_MAX + 1];
	const struct emit_loop m = {"m", w->count, 1};
	const bool inside = to == w->lines && to > 0 && e->g->target->cuda;
	if (!inside) {
		emit_lines(e, w, to, m);
		return;
	}
	for (int k = 0; k < to; k++)
		loop[k + (k == to - 1)] = (struct emit_loop){emit_text(e, "i%d", k), w->dim[k], 1};
	loop[to - 1] = m;
	emit_loops(e, 4 * (double)walk_total(w), to + 1, loop);
}

void walk_emit_gather(struct emit *e, const struct walk *w, int input, const char *type)
{
	/* a GPU's threads share rows, too: neighbours read neighbours */
	bool row = has_row(w) && !e->g->target->cuda;
	int outer = w->lines - row;
	if (walk_total(w) == 0)
		return;
	emit_helper(e, "index_of", index_of);
	emit_gather_lines(e, w, outer);
	emit(e, "\n");
	emit_tabs(e, outer + 2);
	if (row && w->is[outer] == 0) {
		emit(e, "memcpy(&y0[");
		emit_sum(e, outer, w->us, w->um);
		emit(e, "], &x0[");
		emit_data_place(e, w, outer, input);
		emit(e, "], %" PRId64 " * sizeof(%s));\n", w->dim[outer], type);
		return;
	}
	if (row) {
		emit(e, "for (int64_t i%d = 0; i%d < %" PRId64 "; i%d++)\n", outer, outer,
			w->dim[outer], outer);
		emit_tabs(e, outer + 3);
	}
	emit(e, "y0[");
	emit_sum(e, w->lines, w->us, w->um);
	emit(e, "] = x0[");
	emit_data_place(e, w, w->lines, input);
	emit(e, "];\n");
}
