/* Pools on a GPU: a thread makes one element, of the output or of the gradient, whose neighbours in
 * memory are made by its neighbours. A gradient is gathered from the windows that see its place, in
 * their order: nothing is added to what others write. */
#include <inttypes.h>

#include "ops/pool.h"
#include "ops/pool_cuda_text.h"
#include "ops/turns.h"

/* Elements a place away along the last spatial axis. */
static int64_t step_of(const struct pool *p)
{
	return p->last ? p->last : 1;
}

/* "struct window": the numbers, as the template parameter that functions are compiled for. */
static void emit_window(struct emit *e, const struct pool *p)
{
	static const char *const names[] = {
		"kernel", "stride", "dilation", "before", "size", "out", "end"};
	const struct window *w = &p->w;
	int64_t end[3];
	for (int a = 0; a < 3; a++)
		end[a] = w->size[a] + (p->pad_counts ? w->after[a] : 0);
	const int64_t *const list[] = {
		w->kernel, w->stride, w->dilation, w->before, w->size, w->out, end};
	emit(e, "\tstruct window {\n\t\tenum : int {");
	for (int i = 0; i < 7; i++) {
		emit(e, "%s", i == 4 ? "\n\t\t\t    " : "");
		for (int a = 0; a < 3; a++)
			emit(e, " %s%d = %" PRId64 ",", names[i], a, list[i][a]);
	}
	emit(e,
		"\n\t\t\t     sums = %d, pad = %d };\n\t\tenum : int64_t { step = %" PRId64
		" };\n\t};\n",
		p->sums, p->pad_counts, step_of(p));
}

static int64_t volume(const int64_t *size)
{
	return size[0] * size[1] * size[2];
}

/* The loops over images (or planes) p, places i, j, k, and channels q where these are last. */
static void emit_heads(struct emit *e, const struct node *n, const int64_t *size)
{
	static const char *const names[] = {"i", "j", "k"};
	const struct pool *p = n->param;
	struct emit_loop loop[5] = {{"p", p->batch * p->channels, 1}};
	int count = 1;
	for (int a = 3 - p->w.axes; a < 3; a++)
		loop[count++] = (struct emit_loop){names[a], size[a], 1};
	if (p->last)
		loop[count++] = (struct emit_loop){"q", p->last, 1};
	turns_emit(e, count, loop);
}

/* ", (int)i, (int)j, (int)k)", 0 for an axis that there is not. */
static const char *place_arguments(struct emit *e, const struct pool *p)
{
	return emit_text(e, ", %s, %s, (int)k)", p->w.axes > 2 ? "(int)i" : "0",
		p->w.axes > 1 ? "(int)j" : "0");
}

/* "p * 3136 + q": where the plane or the image's channel begins, of sizes `size`. */
static const char *image(struct emit *e, const struct pool *p, const int64_t *size)
{
	return emit_text(e, "p * %" PRId64 "%s", volume(size) * step_of(p), p->last ? " + q" : "");
}

/* The element at the loops' place, of the tensor of sizes `size`. */
static const char *element(struct emit *e, const struct pool *p, const int64_t *size)
{
	const int axes = p->w.axes;
	const char *at = "p";
	if (axes > 2)
		at = emit_text(e, "(%s * %" PRId64 " + i)", at, size[0]);
	if (axes > 1)
		at = emit_text(e, "(%s * %" PRId64 " + j)", at, size[1]);
	at = emit_text(e, "%s * %" PRId64 " + k", at, size[2]);
	return p->last ? emit_text(e, "(%s) * %" PRId64 " + q", at, p->last) : at;
}

enum status pool_cuda_max(struct emit *e, const struct node *n)
{
	const struct pool *p = n->param;
	const struct tensor *x = n->in[0];
	const int64_t *out = p->w.out;
	const bool values = n->out[0] != NULL, indices = n->nout > 1 && n->out[1];
	emit_helper(e, "pool_place", pool_place_cuda_text);
	const char *max = emit_helper_on(e, "pool_max", pool_max_cuda_text, 1, &x), *where = "";
	if (indices)
		where = emit_helper_on(e, "pool_where", pool_where_cuda_text, 1, &x);
	emit_window(e, p);
	emit_heads(e, n, out);
	const char *from = emit_text(
		e, "<window>(x0 + %s%s", image(e, p, p->w.size), place_arguments(e, p));
	if (values)
		emit(e, "\t\ty0[%s] = %s;\n", element(e, p, out),
			emit_stored(e, n->out[0], emit_text(e, "%s%s", max, from)));
	if (indices)
		emit(e, "\t\ty1[%s] = pool_index<window>(%s%s, p * %" PRId64 ", %d);\n",
			element(e, p, out), where, from, p->w.plane, p->column_major);
	emit(e, "\t}\n");
	return ST_OK;
}

/* y0, of sizes `size`, from a call for each place. */
static void emit_calls(struct emit *e, const struct node *n, const int64_t *size,
	const char *called, const char *arguments)
{
	const struct pool *p = n->param;
	const char *value = emit_text(
		e, "%s<window>(%s%s", called, arguments, place_arguments(e, p));
	emit_window(e, p);
	emit_heads(e, n, size);
	emit(e, "\t\ty0[%s] = %s;\n", element(e, p, size), emit_stored(e, n->out[0], value));
	emit(e, "\t}\n");
}

/* From x, or from the indices. */
enum status pool_cuda_max_grad(struct emit *e, const struct node *n)
{
	const struct pool *p = n->param;
	const struct tensor *const dy = n->in[0], *const x_dy[] = {n->in[1], dy};
	const char *at = image(e, p, p->w.size), *at_dy = image(e, p, p->w.out);
	emit_helper(e, "pool_output", pool_output_cuda_text);
	if (n->in[1]->dtype == DT_I64) {
		const char *gather = emit_helper_on(
			e, "pool_gather", pool_gather_cuda_text, 1, &dy);
		emit_calls(e, n, p->w.size, gather,
			emit_text(e, "x1 + %s, x0 + %s, p * %" PRId64, at_dy, at_dy, p->w.plane));
		return ST_OK;
	}
	emit_helper(e, "pool_place", pool_place_cuda_text);
	emit_helper_on(e, "pool_wins", pool_wins_cuda_text, 2, x_dy);
	emit_calls(e, n, p->w.size,
		emit_helper_on(e, "pool_max_grad", pool_max_grad_cuda_text, 2, x_dy),
		emit_text(e, "x1 + %s, x0 + %s", at, at_dy));
	return ST_OK;
}

enum status pool_cuda_average(struct emit *e, const struct node *n)
{
	const struct pool *p = n->param;
	const struct tensor *x = n->in[0];
	emit_helper(e, "pool_place", pool_place_cuda_text);
	emit_helper(e, "pool_count", pool_count_cuda_text);
	emit_calls(e, n, p->w.out, emit_helper_on(e, "pool_average", pool_average_cuda_text, 1, &x),
		emit_text(e, "x0 + %s", image(e, p, p->w.size)));
	return ST_OK;
}

enum status pool_cuda_average_grad(struct emit *e, const struct node *n)
{
	const struct pool *p = n->param;
	const struct tensor *dy = n->in[0];
	emit_helper(e, "pool_output", pool_output_cuda_text);
	emit_helper(e, "pool_count", pool_count_cuda_text);
	emit_calls(e, n, p->w.size,
		emit_helper_on(e, "pool_average_grad", pool_average_grad_cuda_text, 1, &dy),
		emit_text(e, "x0 + %s", image(e, p, p->w.out)));
	return ST_OK;
}
