/* Walks over picks (ops/gather/walk_op.h): making them, on the host, and for kernels
 * (kernels/walk.h). */
#include <inttypes.h>

#include "ops/gather/walk_op.h"

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

/* --- Calls --- */

/* The last line is a row of neighbours. */
static bool has_row(const struct walk *w)
{
	const int last = w->lines - 1;
	return last >= 0 && w->ds[last] == 1 && w->us[last] == 1;
}

struct call_struct walk_struct(const struct walk *w, struct call_field field[WALK_FIELDS])
{
	const int last = w->lines - 1, lines = w->lines - has_row(w);
	int n = 0;
	field[n++] = (struct call_field){"lines", ARG_INT(lines)};
	field[n++] = (struct call_field){"parts", ARG_INT(w->parts)};
	if (lines > 0) {
		field[n++] = (struct call_field){"dim", ARG_SIZES(lines, w->dim)};
		field[n++] = (struct call_field){"ds", ARG_SIZES(lines, w->ds)};
		field[n++] = (struct call_field){"us", ARG_SIZES(lines, w->us)};
		field[n++] = (struct call_field){"is", ARG_SIZES(lines, w->is)};
	}
	field[n++] = (struct call_field){"count", ARG_SIZE(w->count)};
	field[n++] = (struct call_field){"um", ARG_SIZE(w->um)};
	field[n++] = (struct call_field){"im", ARG_SIZE(w->im)};
	field[n++] = (struct call_field){"row", ARG_SIZE(has_row(w) ? w->dim[last] : 1)};
	field[n++] = (struct call_field){"row_is", ARG_INT(has_row(w) ? w->is[last] : 0)};
	field[n++] = (struct call_field){"size", ARG_SIZES(w->parts, w->size)};
	field[n++] = (struct call_field){"step", ARG_SIZES(w->parts, w->step)};
	field[n] = (struct call_field){.name = NULL};
	return (struct call_struct){"struct walk", "walk", field};
}

int64_t walk_turns(const struct walk *w, bool each_pick, int64_t piece)
{
	const int64_t row = has_row(w) ? w->dim[w->lines - 1] : 1;
	if (walk_total(w) == 0)
		return 0;
	return walk_total(w) / row / (each_pick ? 1 : w->count) * div_up(row, piece);
}

enum status walk_check_call(struct emit *e, const struct node *n, const struct walk *w, int k)
{
	struct call_field field[WALK_FIELDS];
	const struct call_struct walk = walk_struct(w, field);
	const struct tensor *at = n->in[k];
	if (at->role == TR_CONSTANT || at->numel == 0)
		return ST_OK;
	const struct call_arg *args = CALL_ARGS(ARG_X(k), ARG_SIZE(at->numel), ARG_STRUCT(&walk));
	const struct kernel_call cuda = {.file = "gather.cuh",
		.function = "block_check_walk",
		.tasks = 1,
		.threads = 256,
		.shared = {"gather_room"},
		.checked = true,
		.args = args};
	return call_kernel(e, &(struct kernel_call){.file = "walk.h",
				      .function = "walk_check",
				      .once = true,
				      .checked = true,
				      .args = args,
				      .cuda = &cuda});
}
