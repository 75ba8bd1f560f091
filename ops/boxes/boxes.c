/* Copies of boxes, and fills (kernels/copy.h, fill.h). */
#include "ops/boxes/boxes_op.h"

/* Elements of a piece of a row, and the side of a tile: as in kernels/copy.h. */
enum { COPY_PIECE = 16384, COPY_TILE = 32, LEAST_TILE = 4 };

void box_strides(int rank, const int64_t *dim, int64_t *stride)
{
	int64_t step = 1;
	for (int i = rank - 1; i >= 0; i--) {
		stride[i] = step;
		step *= dim[i];
	}
}

int64_t box_count(const struct box *b)
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

/* The axis along which x's elements are neighbours where tiles are worth it; -1: they are not. */
static int tiled_axis(const struct box *b)
{
	const int m = b->rank - 1;
	for (int t = 0; t < m; t++)
		if (b->ys[m] == 1 && b->xs[t] == 1 && b->xs[m] != 0 && b->dim[t] >= LEAST_TILE &&
			b->dim[m] >= LEAST_TILE)
			return t;
	return -1;
}

static int64_t tiles_of(const struct box *b, int t)
{
	int64_t n = 1;
	for (int k = 0; k < b->rank; k++)
		n *= k == t || k == b->rank - 1 ? div_up(b->dim[k], COPY_TILE) : b->dim[k];
	return n;
}

void box_kernel_args(struct box_kernel *k, struct emit *e, int number, const struct box_copy *copy)
{
	const struct box *b = &k->box;
	int n = 0;
	k->field[n++] = (struct call_field){"rank", ARG_INT(b->rank)};
	k->field[n++] = (struct call_field){"dim", ARG_SIZES(b->rank, b->dim)};
	k->field[n++] = (struct call_field){"xs", ARG_SIZES(b->rank, b->xs)};
	k->field[n++] = (struct call_field){"ys", ARG_SIZES(b->rank, b->ys)};
	k->field[n++] = (struct call_field){"xoff", ARG_SIZE(b->xoff)};
	k->field[n] = (struct call_field){"yoff", ARG_SIZE(b->yoff)};
	k->of = (struct call_struct){"struct box", emit_text(e, "box%d", number), k->field};
	k->args[0] = copy->y;
	k->args[1] = copy->x;
	k->args[2] = ARG_STRUCT(&k->of);
}

static void box_kernel(struct box_kernel *k, struct emit *e, int number,
	const struct box_copy *copy, const struct tensor *type)
{
	*k = (struct box_kernel){.box = box_simplified(&copy->box)};
	struct box *b = &k->box;
	if (b->rank == 0)
		b->dim[b->rank++] = 1;
	const int m = b->rank - 1;
	const int t = b->xs[m] == 1 && b->ys[m] == 1 ? -1 : tiled_axis(b);
	const int64_t count = box_count(b);
	const int64_t pieces = count == 0 ? 0 : count / b->dim[m] * div_up(b->dim[m], COPY_PIECE);
	box_kernel_args(k, e, number, copy);
	k->args[3] = ARG_IF(t >= 0, ARG_INT(t));
	k->call = (struct kernel_call){.file = "copy.h",
		.function = t < 0 ? "copy_rows" : "copy_tiles",
		.ntype = 1,
		.type = {type},
		.turns = t < 0 ? pieces : tiles_of(b, t),
		.work = (double)count,
		.args = k->args};
}

enum status boxes_call(struct emit *e, int n, const struct box_copy *copy, const struct tensor *t)
{
	for (int i = 0; i < n; i++) {
		struct box_kernel k, cuda;
		box_kernel(&k, e, i, &copy[i], t);
		box_cuda_kernel(&cuda, e, i, n, &copy[i], t);
		k.call.cuda = &cuda.call;
		TRY(call_kernel(e, &k.call));
	}
	return ST_OK;
}

enum status box_settle(struct graph *g, struct node *n, struct box b)
{
	n->param = arena_memdup(g->arena, &b, 1, sizeof b);
	return n->param ? ST_OK : diag_nomem(g->diag);
}

enum status box_fold(struct graph *g, const struct node *n, void *const *out)
{
	(void)g;
	box_run(n->param, (size_t)dtype_bytes(n->in[0]->dtype), out[0], n->in[0]->data);
	return ST_OK;
}

enum status box_emit(struct emit *e, const struct node *n)
{
	const struct box *b = n->param;
	return boxes_call(e, 1, &(struct box_copy){*b, ARG_Y(0), ARG_X(0)}, n->out[0]);
}

enum status fill_call(struct emit *e, const struct node *n, int k, struct call_arg value)
{
	const struct tensor *y = n->out[k];
	const bool real = dtype_is_real(y->dtype);
	return call_kernel(e, &(struct kernel_call){.file = real ? "fill.h" : "fill_whole.h",
				      .function = real                  ? "fill"
						  : y->dtype == DT_BOOL ? "fill_bool"
									: "fill_whole",
				      .ntype = real,
				      .type = {y},
				      .turns = y->numel,
				      .work = (double)y->numel,
				      .args = CALL_ARGS(ARG_Y(k), value)});
}

struct call_arg fill_value(const struct tensor *y, double value)
{
	return dtype_is_real(y->dtype) ? ARG_REAL(value) : ARG_INT((int64_t)value);
}

enum status box_inset_call(struct emit *e, const struct node *n, const struct box *b, double fill)
{
	const struct box_copy copy = {*b, ARG_Y(0), ARG_X(0)};
	if (box_count(b) < n->out[0]->numel)
		TRY(fill_call(e, n, 0, fill_value(n->out[0], fill)));
	return boxes_call(e, 1, &copy, n->out[0]);
}
