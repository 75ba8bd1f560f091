/* Copying boxes, and what the data-moving families share. */
#include "ops/data.h"

#include <inttypes.h>

/* Elements per piece of a long contiguous copy, so that threads can share it; the side of a tile of
 * a transposition (two tiles of doubles fit the first cache level). */
enum { COPY_PIECE = 16384, TILE = 32 };

void box_strides(int rank, const int64_t *dim, int64_t *stride)
{
	int64_t step = 1;
	for (int i = rank - 1; i >= 0; i--) {
		stride[i] = step;
		step *= dim[i];
	}
}

static int64_t box_count(const struct box *b)
{
	int64_t n = 1;
	for (int i = 0; i < b->rank; i++)
		n *= b->dim[i];
	return n;
}

void box_run(const struct box *b, size_t size, void *y, const void *x)
{
	int64_t at[BOX_RANK] = {0}, n = box_count(b), xi = b->xoff, yi = b->yoff;
	for (int64_t e = 0; e < n; e++) {
		memcpy((char *)y + (size_t)yi * size, (const char *)x + (size_t)xi * size, size);
		for (int k = b->rank - 1; k >= 0; k--) {
			xi += b->xs[k];
			yi += b->ys[k];
			if (++at[k] < b->dim[k])
				break;
			xi -= b->xs[k] * b->dim[k];
			yi -= b->ys[k] * b->dim[k];
			at[k] = 0;
		}
	}
}

struct box box_simplified(const struct box *b)
{
	struct box s = {.xoff = b->xoff, .yoff = b->yoff};
	for (int i = 0; i < b->rank; i++) {
		if (b->dim[i] == 1)
			continue;
		int k = s.rank++;
		for (; k > 0 && s.ys[k - 1] < b->ys[i]; k--) {
			s.dim[k] = s.dim[k - 1];
			s.xs[k] = s.xs[k - 1];
			s.ys[k] = s.ys[k - 1];
		}
		s.dim[k] = b->dim[i];
		s.xs[k] = b->xs[i];
		s.ys[k] = b->ys[i];
	}
	int r = 0;
	for (int i = 0; i < s.rank; i++) {
		bool joins = r > 0 && s.ys[r - 1] == s.ys[i] * s.dim[i] &&
			     s.xs[r - 1] == s.xs[i] * s.dim[i];
		int k = joins ? r - 1 : r++;
		s.dim[k] = joins ? s.dim[k] * s.dim[i] : s.dim[i];
		s.xs[k] = s.xs[i];
		s.ys[k] = s.ys[i];
	}
	s.rank = r;
	return s;
}

void box_emit_place(struct emit *e, int64_t off, int rank, const int64_t *stride)
{
	bool first = true;
	for (int k = 0; k < rank; k++) {
		int64_t s = stride[k];
		if (s == 0)
			continue;
		emit(e, "%s", first ? (s < 0 ? "-" : "") : (s < 0 ? " - " : " + "));
		if (s < 0)
			s = -s;
		if (s == 1)
			emit(e, "i%d", k);
		else
			emit(e, "i%d * %" PRId64, k, s);
		first = false;
	}
	if (off || first)
		emit(e, "%s%" PRId64,
			first     ? ""
			: off < 0 ? " - "
				  : " + ",
			off < 0 && !first ? -off : off);
}

static struct emit_loop loop_over(struct emit *e, const char *name, int k, int64_t n, int64_t step)
{
	return (struct emit_loop){emit_text(e, "%s%d", name, k), n, step};
}

/* Rows that are contiguous on both sides. */
static void emit_rows(
	struct emit *e, const struct box *b, const char *type, const char *y, const char *x)
{
	int outer = b->rank - 1;
	int64_t n = b->dim[outer], count = box_count(b);
	bool pieces = n > 2 * COPY_PIECE;
	int loops = outer + (pieces ? 1 : 0);
	struct emit_loop loop[BOX_RANK] = {0};
	for (int k = 0; k < loops; k++)
		loop[k] = loop_over(e, "i", k, b->dim[k], k == outer ? COPY_PIECE : 1);
	emit_loops(e, (double)count, loops, loop);
	if (loops)
		emit(e, "\n");
	emit_tabs(e, loops + 1);
	emit(e, "memcpy(&%s[", y);
	box_emit_place(e, b->yoff, loops, b->ys);
	emit(e, "], &%s[", x);
	box_emit_place(e, b->xoff, loops, b->xs);
	if (pieces && n % COPY_PIECE)
		emit(e,
			"], (size_t)(%" PRId64 " - i%d < %d ? %" PRId64
			" - i%d : %d) * sizeof(%s));\n",
			n, outer, COPY_PIECE, n, outer, COPY_PIECE, type);
	else
		emit(e, "], %" PRId64 " * sizeof(%s));\n", pieces ? COPY_PIECE : n, type);
}

static void emit_element(
	struct emit *e, const struct box *b, int depth, const char *y, const char *x)
{
	emit_tabs(e, depth);
	emit(e, "%s[", y);
	box_emit_place(e, b->yoff, b->rank, b->ys);
	emit(e, "] = %s[", x);
	box_emit_place(e, b->xoff, b->rank, b->xs);
	emit(e, "];\n");
}

/* "ik < min(tk + TILE, n)" for a tile that starts at tk. */
static void emit_tile_loop(struct emit *e, int depth, int k, int64_t n)
{
	emit_tabs(e, depth);
	emit(e, "for (int64_t i%d = t%d; i%d < ", k, k, k);
	if (n % TILE == 0)
		emit(e, "t%d + %d; i%d++)\n", k, TILE, k);
	else
		emit(e, "(t%d + %d < %" PRId64 " ? t%d + %d : %" PRId64 "); i%d++)\n", k, TILE, n,
			k, TILE, n, k);
}

/* y is contiguous along the last axis, x along axis t: tile by tile, so that both sides' cache
 * lines are used whole. */
static void emit_tiles(struct emit *e, const struct box *b, int t, const char *y, const char *x)
{
	const int m = b->rank - 1, depth = b->rank + 1;
	struct emit_loop loop[BOX_RANK] = {0};
	for (int k = 0; k < b->rank; k++)
		loop[k] = k == t || k == m ? loop_over(e, "t", k, b->dim[k], TILE)
					   : loop_over(e, "i", k, b->dim[k], 1);
	emit_loops(e, (double)box_count(b), b->rank, loop);
	emit(e, "\n");
	emit_tile_loop(e, depth, t, b->dim[t]);
	emit_tile_loop(e, depth + 1, m, b->dim[m]);
	emit_element(e, b, depth + 2, y, x);
}

/* The innermost loop is not shared, so that the compiler has it for itself; a GPU's threads share
 * all. */
static void emit_elements(struct emit *e, const struct box *b, const char *y, const char *x)
{
	const int m = b->rank - 1;
	struct emit_loop loop[BOX_RANK] = {0};
	for (int k = 0; k < b->rank; k++)
		loop[k] = loop_over(e, "i", k, b->dim[k], 1);
	const bool all = m <= 0 || e->g->target->cuda;
	emit_loops(e, (double)box_count(b), all ? b->rank : m, loop);
	if (b->rank)
		emit(e, "\n");
	if (!all) {
		emit_tabs(e, b->rank);
		emit(e, "for (int64_t i%d = 0; i%d < %" PRId64 "; i%d++)\n", m, m, b->dim[m], m);
	}
	emit_element(e, b, b->rank + 1, y, x);
}

void box_emit(struct emit *e, const struct box *b, const char *type, const char *y, const char *x)
{
	if (box_count(b) == 0) {
		emit(e, "\t(void)%s, (void)%s; /* nothing to copy */\n", y, x);
		return;
	}
	const struct box s = box_simplified(b);
	int m = s.rank - 1;
	if (e->g->target->cuda) { /* beside other loops */
		emit_elements(e, &s, y, x);
		return;
	}
	if (s.rank && s.ys[m] == 1 && s.xs[m] == 1) {
		emit_rows(e, &s, type, y, x);
		return;
	}
	for (int t = 0; t < m; t++)
		if (s.ys[m] == 1 && s.xs[t] == 1 && s.xs[m] != 0 && s.dim[t] >= 4 &&
			s.dim[m] >= 4) {
			emit_tiles(e, &s, t, y, x);
			return;
		}
	emit_elements(e, &s, y, x);
}

void boxes_emit(struct emit *e, int n, const struct box_copy *copy, const struct tensor *t)
{
	if (e->g->target->cuda) {
		boxes_cuda_emit(e, n, copy, t);
		return;
	}
	for (int i = 0; i < n; i++)
		box_emit(e, &copy[i].box, emit_type(t), copy[i].y, copy[i].x);
}

void zero_emit(struct emit *e, int64_t n, const char *y)
{
	if (n == 0) {
		emit(e, "\t(void)%s;\n", y);
		return;
	}
	emit_loops(e, (double)n, 1, &(struct emit_loop){"i0", n, 1});
	emit(e, "\n\t\t%s[i0] = 0;\n", y);
}

struct op_cost data_move_cost(const struct node *n)
{
	return (struct op_cost){0, 2 * (double)tensor_bytes(n->out[0])};
}

enum status data_settle(
	struct graph *g, struct node *n, int nin, int nattr, const struct attr *attr)
{
	for (int i = 0; i < nattr; i++)
		if (attr[i].kind == ATTR_INTS && !attr[i].ints)
			return diag_nomem(g->diag);
	n->attr = nattr ? arena_memdup(g->arena, attr, (size_t)nattr, sizeof *attr) : NULL;
	if (nattr && !n->attr)
		return diag_nomem(g->diag);
	n->nattr = nattr;
	n->nin = nin;
	return ST_OK;
}

struct attr data_ints(struct graph *g, const char *name, int n, const int64_t *v)
{
	return ATTR_IS(name, n, arena_memdup(g->arena, v, (size_t)n, sizeof *v));
}

enum status data_output(
	struct graph *g, struct node *n, int k, enum dtype t, int rank, const int64_t *dim)
{
	n->out[k] = graph_tensor(g, "", t, rank, dim);
	return n->out[k] ? ST_OK : g->failed;
}

enum status data_lower_to_view(
	struct graph *g, const struct node *n, struct tensor *const *in, struct tensor **out)
{
	out[0] = graph_reshape(g, in[0], n->out[0]->rank, n->out[0]->dim);
	return g->failed;
}

enum status data_lower_same(
	struct graph *g, const struct node *n, struct tensor *const *in, struct tensor **out)
{
	const struct node *m = graph_op_node(
		g, n->op->name, n->nin, in, n->nattr, n->attr, n->param);
	if (m)
		out[0] = m->out[0];
	return g->failed;
}

enum status data_fold_lowered(struct graph *g, const struct node *n, void *const *out)
{
	const struct lower_options o = {.mode = LOWER_EVAL};
	struct tensor *y = NULL;
	TRY(n->op->lower(g, n, n->in, &o, &y));
	if (!y || y->role != TR_CONSTANT || y->dtype != n->out[0]->dtype ||
		y->numel != n->out[0]->numel)
		return node_fail(g, n, "this is a bug in stint", "its lowering does not fold");
	if (y->numel > 0)
		memcpy(out[0], y->data, (size_t)tensor_bytes(y));
	return ST_OK;
}

bool data_element_type(int64_t onnx, enum dtype real, enum dtype *out)
{
	switch (onnx) {
	case 1:  /* FLOAT */
	case 10: /* FLOAT16 */
	case 11: /* DOUBLE */
	case 16: /* BFLOAT16 */
		*out = real;
		return true;
	case 2:  /* UINT8 */
	case 3:  /* INT8 */
	case 4:  /* UINT16 */
	case 5:  /* INT16 */
	case 6:  /* INT32 */
	case 7:  /* INT64 */
	case 12: /* UINT32 */
	case 13: /* UINT64 */
		*out = DT_I64;
		return true;
	case 9: /* BOOL */
		*out = DT_BOOL;
		return true;
	default:
		return false;
	}
}
