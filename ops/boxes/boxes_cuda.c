/* Copies of boxes on a GPU (kernels/copy.cuh): by packs of neighbours where all that is copied lies
 * at multiples of a pack, a transposition by tiles. */
#include "ops/boxes/boxes_op.h"

enum { TILE = 32, THREADS = 256, LEAST_TILE = 12, PACK_BYTES = 16 };

static bool divides(int64_t n, const struct box *b)
{
	const int m = b->rank - 1;
	bool all = b->dim[m] % n == 0 && b->xoff % n == 0 && b->yoff % n == 0;
	for (int k = 0; k < m; k++)
		all = all && b->xs[k] % n == 0 && b->ys[k] % n == 0;
	return all;
}

/* The same box over packs of n elements, as many as fit 16 bytes and divide all of its numbers. */
static struct box packed(const struct box *b, int64_t size, int64_t *n)
{
	struct box p = *b;
	const int m = b->rank - 1;
	*n = PACK_BYTES / size;
	if (m < 0 || b->xs[m] != 1 || b->ys[m] != 1)
		*n = 1;
	while (*n > 1 && !divides(*n, b))
		*n /= 2;
	if (*n == 1)
		return p;
	p.dim[m] /= *n;
	p.xoff /= *n;
	p.yoff /= *n;
	for (int k = 0; k < m; k++) {
		p.xs[k] /= *n;
		p.ys[k] /= *n;
	}
	return p;
}

static bool wants_tiles(const struct box *b, int *t)
{
	const int m = b->rank - 1;
	for (*t = 0; *t < m; ++*t)
		if (b->ys[m] == 1 && b->xs[*t] == 1 && b->xs[m] != 0 && b->dim[*t] >= LEAST_TILE &&
			b->dim[m] >= LEAST_TILE)
			return true;
	return false;
}

static int64_t is_wide(int64_t turns)
{
	return turns > INT32_MAX;
}

static int64_t tiles_of(const struct box *b, int t)
{
	int64_t n = 1;
	for (int k = 0; k < b->rank; k++)
		n *= k == t || k == b->rank - 1 ? div_up(b->dim[k], TILE) : b->dim[k];
	return n;
}

void box_cuda_kernel(struct box_kernel *k, struct emit *e, int i, int n,
	const struct box_copy *copy, const struct tensor *type)
{
	const int64_t size = dtype_bytes(type->dtype);
	int64_t pack = 1;
	int t;
	*k = (struct box_kernel){.box = box_simplified(&copy->box)};
	const bool tiled = n == 1 && box_count(&k->box) > 0 && wants_tiles(&k->box, &t);
	if (k->box.rank == 0)
		k->box.dim[k->box.rank++] = 1;
	if (!tiled)
		k->box = packed(&k->box, size, &pack);
	const int64_t turns = tiled ? tiles_of(&k->box, t) : box_count(&k->box);
	box_kernel_args(k, e, i, copy);
	k->call = (struct kernel_call){.file = "copy.cuh",
		.function = tiled ? "copy_tiles" : "copy_packs",
		.nconstant = 2,
		.constant = {pack * size, is_wide(turns)},
		.along = i > 0,
		.args = k->args};
	if (!tiled) {
		k->call.turns = turns;
		return;
	}
	k->args[3] = ARG_INT(t);
	k->args[4] = ARG_SIZE(turns);
	k->call.shared[0] = emit_text(e, "copy_tile<%d>", (int)size);
	k->call.tasks = turns;
	k->call.threads = THREADS;
}

/* --- A box in the middle of zeros --- */

/* Along each axis of y, what of x an element shows: x's (i - start) / step where i is in the box.
 * `y.dim`: all of y. */
struct inset {
	struct box x; /* dim, xs, xoff: of the box in x */
	struct box y; /* dim, ys: all of y */
	int64_t start[BOX_RANK], step[BOX_RANK];
};

static struct inset inset_of(const struct box *b, const struct tensor *y)
{
	struct inset s = {.x = {.xoff = b->xoff}};
	int64_t left = b->yoff, stride[RANK_MAX];
	int r = 0;
	box_strides(y->rank, y->dim, stride);
	for (int k = 0; k < y->rank; k++) {
		const int64_t start = left / stride[k], step = b->ys[k] / stride[k];
		const bool whole = start == 0 && step == 1 && b->dim[k] == y->dim[k];
		left -= start * stride[k];
		/* an axis that is all there lengthens the one before it */
		if (r > 0 && whole && s.step[r - 1] == 1 && s.x.xs[r - 1] == b->xs[k] * b->dim[k]) {
			s.x.dim[r - 1] *= b->dim[k];
			s.y.dim[r - 1] *= b->dim[k];
			s.start[r - 1] *= b->dim[k];
			s.x.xs[r - 1] = b->xs[k];
			continue;
		}
		s.x.dim[r] = b->dim[k];
		s.x.xs[r] = b->xs[k];
		s.y.dim[r] = y->dim[k];
		s.start[r] = start;
		s.step[r++] = step;
	}
	s.x.rank = s.y.rank = r;
	return s;
}

/* Over packs, where an inset's last axis and all it begins at are whole numbers of them. */
static int64_t inset_pack(struct inset *s, int64_t size)
{
	const int m = s->x.rank - 1;
	int64_t n = PACK_BYTES / size;
	if (m < 0 || s->x.xs[m] != 1 || s->step[m] != 1)
		return 1;
	struct box rest = s->x; /* all that has to be a multiple */
	memset(rest.ys, 0, sizeof rest.ys);
	rest.yoff = s->start[m];
	while (n > 1 && (!divides(n, &rest) || s->y.dim[m] % n))
		n /= 2;
	s->x.dim[m] /= n;
	s->y.dim[m] /= n;
	s->start[m] /= n;
	s->x.xoff /= n;
	for (int k = 0; k < m; k++)
		s->x.xs[k] /= n;
	return n;
}

enum status box_cuda_inset(struct emit *e, const struct node *n, const struct box *b)
{
	const struct tensor *y = n->out[0];
	if (box_count(b) == 0)
		return fill_call(e, n, 0, fill_value(y, 0));
	struct inset s = inset_of(b, y);
	const int64_t size = dtype_bytes(y->dtype), pack = inset_pack(&s, size);
	if (s.x.rank == 0)
		s.x.rank = 1, s.x.dim[0] = s.y.dim[0] = s.step[0] = 1;
	const int r = s.x.rank;
	const struct call_struct inset = {"struct inset", "inset",
		CALL_FIELDS({"rank", ARG_INT(r)}, {"dim", ARG_SIZES(r, s.y.dim)},
			{"start", ARG_SIZES(r, s.start)}, {"step", ARG_INTS(r, s.step)},
			{"size", ARG_SIZES(r, s.x.dim)}, {"xs", ARG_SIZES(r, s.x.xs)},
			{"xoff", ARG_SIZE(s.x.xoff)})};
	return call_kernel(e, &(struct kernel_call){.file = "copy.cuh",
				      .function = "copy_inset",
				      .nconstant = 2,
				      .constant = {pack * size, is_wide(y->numel / pack)},
				      .turns = y->numel / pack,
				      .args = CALL_ARGS(ARG_Y(0), ARG_X(0), ARG_STRUCT(&inset))});
}
