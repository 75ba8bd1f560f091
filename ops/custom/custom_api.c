/* What a user's hooks may ask for: the functions behind ops/stint_op.h. Whatever they are handed is
 * checked: it is not ours. */
#include <stdio.h>
#include <string.h>

#include "ops/custom/custom_call.h"

/* The call is the hook's first member. */
static struct hook *hook_of(struct stint_call *c)
{
	return (struct hook *)c;
}

static const struct hook *hook_seen(const struct stint_call *c)
{
	return (const struct hook *)c;
}

static enum status vfail(struct hook *h, const char *fmt, va_list ap)
{
	char message[1024];
	vsnprintf(message, sizeof message, fmt, ap);
	const struct where w = {h->g->file, h->n->name, h->n->op->name};
	enum status st = diag_fail(
		h->g->diag, ST_INVALID, &w, NULL, "%s: %s", h->custom->file, message);
	if (h->status == ST_OK)
		h->status = st;
	return st;
}

enum status hook_fail(struct hook *h, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	enum status st = vfail(h, fmt, ap);
	va_end(ap);
	return st;
}

static void no_memory(struct hook *h)
{
	if (h->status == ST_OK)
		h->status = diag_nomem(h->g->diag);
}

static int api_fail(struct stint_call *c, const char *fmt, va_list ap)
{
	return (int)vfail(hook_of(c), fmt ? fmt : "failed", ap);
}

static int api_failed(const struct stint_call *c)
{
	return (int)hook_seen(c)->status;
}

/* --- Attributes --- */

static const struct attr *find(const struct stint_call *c, const char *name)
{
	return name ? node_attr(hook_seen(c)->n, name) : NULL;
}

static int64_t api_int(const struct stint_call *c, const char *name, int64_t otherwise)
{
	const struct attr *a = find(c, name);
	return a && a->kind == ATTR_INT ? a->i : otherwise;
}

static double api_float(const struct stint_call *c, const char *name, double otherwise)
{
	return name ? node_float(hook_seen(c)->n, name, otherwise) : otherwise;
}

static const char *api_string(const struct stint_call *c, const char *name, const char *otherwise)
{
	const struct attr *a = find(c, name);
	return a && a->kind == ATTR_STRING ? a->s : otherwise;
}

static int api_int_list(const struct stint_call *c, const char *name, const int64_t **list)
{
	const struct attr *a = find(c, name);
	bool there = a && a->kind == ATTR_INTS;
	*list = there ? a->ints : NULL;
	return there ? a->n : 0;
}

static int api_float_list(const struct stint_call *c, const char *name, const double **list)
{
	const struct attr *a = find(c, name);
	bool there = a && a->kind == ATTR_FLOATS;
	*list = there ? a->floats : NULL;
	return there ? a->n : 0;
}

/* --- Building a gradient --- */

static stint_value handle(const struct tensor *t)
{
	return t ? t->id + 1 : 0;
}

struct tensor *hook_tensor(struct hook *h, stint_value v)
{
	if (v > 0 && v <= h->g->ntensor)
		return h->g->tensor[v - 1];
	if (v != 0)
		hook_fail(h, "`%s`: %d is no stint_value of this graph", h->name, v);
	return NULL;
}

/* The graph to build in; NULL once something failed, or, with a message, where nothing is built. */
static struct graph *graph_of(struct hook *h)
{
	if (h->status != ST_OK)
		return NULL;
	if (!h->build)
		hook_fail(h, "`%s` builds no nodes: only `gradient` does", h->name);
	return h->build;
}

/* A failure of the graph's own, which has been reported without naming the file. */
static int graph_failed(struct hook *h, const char *op)
{
	enum status st = h->build->failed;
	hook_fail(h, "its `gradient` cannot make a node %s", op);
	h->status = st != ST_OK ? st : ST_INVALID;
	return (int)h->status;
}

static stint_value api_input(struct stint_call *c, int i)
{
	struct hook *h = hook_of(c);
	if (!graph_of(h))
		return 0;
	if (i < 0)
		hook_fail(h, "`gradient` asks for input %d", i);
	return i >= 0 && i < h->n->nin ? handle(h->n->in[i]) : 0;
}

static stint_value api_output(struct stint_call *c, int k)
{
	struct hook *h = hook_of(c);
	if (!graph_of(h))
		return 0;
	if (k < 0 || k >= h->n->nout) {
		hook_fail(h, "`gradient` asks for output %d of %d", k, h->n->nout);
		return 0;
	}
	return handle(h->n->out[k]);
}

/* The graph's copy of an attribute; false when a part is missing, or there is no memory for it. */
static bool copy_attribute(struct arena *a, const struct stint_attribute *from, struct attr *to)
{
	*to = (struct attr){.name = from->name ? arena_strdup(a, from->name) : NULL};
	size_t n = from->n > 0 ? (size_t)from->n : 0;
	switch (from->kind) {
	case STINT_ATTRIBUTE_INT:
		to->kind = ATTR_INT, to->i = from->i;
		return to->name;
	case STINT_ATTRIBUTE_FLOAT:
		to->kind = ATTR_FLOAT, to->f = from->f;
		return to->name;
	case STINT_ATTRIBUTE_STRING:
		to->kind = ATTR_STRING;
		to->s = from->s ? arena_strdup(a, from->s) : NULL;
		return to->name && to->s;
	case STINT_ATTRIBUTE_INTS:
		to->kind = ATTR_INTS, to->n = (int)n;
		to->ints = from->ints || !n ? arena_memdup(a, from->ints, n, sizeof *from->ints)
					    : NULL;
		return to->name && to->ints;
	case STINT_ATTRIBUTE_FLOATS:
		to->kind = ATTR_FLOATS, to->n = (int)n;
		to->floats = from->floats || !n
				     ? arena_memdup(a, from->floats, n, sizeof *from->floats)
				     : NULL;
		return to->name && to->floats;
	}
	return false;
}

static const struct attr *copy_attributes(
	struct hook *h, const char *op, int n, const struct stint_attribute *from)
{
	struct attr *to = ARENA_ARRAY(h->g->arena, struct attr, n);
	if (!to) {
		no_memory(h);
		return NULL;
	}
	for (int i = 0; i < n; i++)
		if (!copy_attribute(h->g->arena, &from[i], &to[i])) {
			hook_fail(h, "`gradient`: attribute %d of its %s is not filled in", i, op);
			return NULL;
		}
	return to;
}

/* The inputs' tensors, without those left out at the end; their number out, -1 on failure. */
static int copy_inputs(
	struct hook *h, const char *op, int nin, const stint_value *from, struct tensor **to)
{
	const struct op_def *def = op_index_find(h->g->index, op, OPSET_LATEST);
	int n = 0;
	for (int i = 0; i < nin; i++) {
		to[i] = hook_tensor(h, from[i]);
		if (h->status != ST_OK)
			return -1;
		if (!to[i] && def && i < def->min_in) {
			hook_fail(h, "`gradient`: input %d of its %s is missing", i, op);
			return -1;
		}
		n = to[i] ? i + 1 : n;
	}
	return n;
}

static int api_node(struct stint_call *c, const char *op, int nin, const stint_value *in, int nout,
	stint_value *out, int nattribute, const struct stint_attribute *attribute)
{
	struct hook *h = hook_of(c);
	for (int k = 0; k < nout && out; k++)
		out[k] = 0;
	if (!graph_of(h))
		return (int)h->status;
	if (!op || nin < 0 || (nin && !in) || nout < 0 || (nout && !out) || nattribute < 0 ||
		(nattribute && !attribute))
		return (int)hook_fail(
			h, "`gradient`: stint_node(\"%s\") lacks a list or a name", op ? op : "");
	if (!strncmp(op, "stint.", 6))
		return (int)hook_fail(h,
			"`gradient`: %s is stint's own; only ONNX's and custom "
			"operators stay as they are",
			op);
	struct tensor **list = ARENA_ARRAY(h->g->arena, struct tensor *, nin);
	const char *name = arena_strdup(h->g->arena, op);
	const struct attr *a = copy_attributes(h, op, nattribute, attribute);
	if (!list || !name)
		no_memory(h);
	if (h->status != ST_OK)
		return (int)h->status;
	nin = copy_inputs(h, op, nin, in, list);
	if (nin < 0)
		return (int)h->status;
	struct node *n = graph_op_node(h->build, name, nin, list, nattribute, a, NULL);
	if (!n)
		return graph_failed(h, op);
	for (int k = 0; k < nout; k++) {
		if (k >= n->nout || !n->out[k])
			return (int)hook_fail(h, "`gradient`: %s has no output %d", op, k);
		out[k] = handle(n->out[k]);
	}
	return 0;
}

/* A tensor made by a function of the graph's, as a handle. */
static stint_value made(struct hook *h, const struct tensor *t, const char *what)
{
	if (!t && h->status == ST_OK)
		graph_failed(h, what);
	return handle(t);
}

static stint_value api_scalar(struct stint_call *c, double v)
{
	struct hook *h = hook_of(c);
	struct graph *g = graph_of(h);
	return g ? made(h, graph_scalar(g, v), "Constant") : 0;
}

static stint_value api_ints(struct stint_call *c, int n, const int64_t *v)
{
	struct hook *h = hook_of(c);
	struct graph *g = graph_of(h);
	if (!g)
		return 0;
	if (n < 0 || (n && !v)) {
		hook_fail(h, "`gradient`: stint_ints has no list");
		return 0;
	}
	return made(h, graph_ints(g, n, v), "Constant");
}

/* `like` can be had by summing over axes of `v`. */
static bool sums_to(const struct tensor *v, const struct stint_op_tensor *like)
{
	if (like->rank < 0 || like->rank > v->rank)
		return false;
	for (int i = 1; i <= like->rank; i++) {
		int64_t to = like->dim[like->rank - i];
		if (to != 1 && to != v->dim[v->rank - i])
			return false;
	}
	return true;
}

static stint_value api_sum_to(
	struct stint_call *c, stint_value v, const struct stint_op_tensor *like)
{
	struct hook *h = hook_of(c);
	struct graph *g = graph_of(h);
	struct tensor *x = g ? hook_tensor(h, v) : NULL;
	if (!x)
		return 0;
	if (!like || !sums_to(x, like)) {
		hook_fail(h, "`gradient`: stint_sum_to: nothing of that shape was broadcast");
		return 0;
	}
	struct tensor shape = {.rank = like->rank};
	memcpy(shape.dim, like->dim, sizeof like->dim);
	return made(h, graph_unbroadcast(g, x, &shape), "ReduceSum");
}

static void describe(const struct tensor *t, struct stint_op_tensor *out)
{
	*out = (struct stint_op_tensor){.type = STINT_TYPE_ABSENT};
	if (!t)
		return;
	out->type = dtype_is_real(t->dtype) ? STINT_TYPE_REAL
		    : t->dtype == DT_I64    ? STINT_TYPE_INT64
					    : STINT_TYPE_BOOL;
	out->rank = t->rank;
	memcpy(out->dim, t->dim, sizeof out->dim);
	out->data = t->role == TR_CONSTANT ? t->data : NULL;
}

static int api_describe(struct stint_call *c, stint_value v, struct stint_op_tensor *out)
{
	struct hook *h = hook_of(c);
	const struct tensor *t = graph_of(h) ? hook_tensor(h, v) : NULL;
	if (out)
		describe(t, out);
	return (int)h->status;
}

/* --- Printing a kernel --- */

static struct emit *emit_of(struct hook *h)
{
	if (!h->e && h->status == ST_OK)
		hook_fail(h, "`%s` prints no C text: only `body` does", h->name);
	return h->e;
}

static void api_print(struct stint_call *c, const char *fmt, va_list ap)
{
	struct hook *h = hook_of(c);
	va_list again;
	if (!emit_of(h) || !fmt)
		return;
	va_copy(again, ap);
	int n = vsnprintf(NULL, 0, fmt, again);
	va_end(again);
	char *s = n < 0 ? NULL : arena_alloc(h->g->arena, (size_t)n + 1, 1);
	if (!s) {
		no_memory(h);
		return;
	}
	vsnprintf(s, (size_t)n + 1, fmt, ap);
	text_puts(&h->e->out, s);
}

static void api_parallel(struct stint_call *c, double work, int levels)
{
	struct emit *e = emit_of(hook_of(c));
	if (e)
		emit_parallel(e, work, levels);
}

static void api_helper(struct stint_call *c, const char *name, const char *text)
{
	struct emit *e = emit_of(hook_of(c));
	if (e && name && text)
		emit_helper(e, name, text);
}

static const char *api_literal(struct stint_call *c, double v)
{
	struct hook *h = hook_of(c);
	struct emit *e = emit_of(h);
	char buf[40];
	const char *s = e ? arena_strdup(h->g->arena, emit_real(e, v, buf)) : NULL;
	if (e && !s)
		no_memory(h);
	return s ? s : "0";
}

static int api_in_place(const struct stint_call *c, int k)
{
	const struct hook *h = hook_seen(c);
	int most = (int)(sizeof h->e->in_place / sizeof *h->e->in_place);
	return h->e && k >= 0 && k < most ? h->e->in_place[k] : -1;
}

/* --- The call --- */

static const struct stint_api api = {
	.fail = api_fail,
	.failed = api_failed,
	.attribute_int = api_int,
	.attribute_float = api_float,
	.attribute_string = api_string,
	.attribute_ints = api_int_list,
	.attribute_floats = api_float_list,
	.input = api_input,
	.output = api_output,
	.node = api_node,
	.scalar = api_scalar,
	.ints = api_ints,
	.sum_to = api_sum_to,
	.describe = api_describe,
	.print = api_print,
	.parallel = api_parallel,
	.helper = api_helper,
	.literal = api_literal,
	.in_place = api_in_place,
};

static const struct stint_op_tensor *describe_all(struct arena *a, int n, struct tensor *const *t)
{
	struct stint_op_tensor *list = ARENA_ARRAY(a, struct stint_op_tensor, n);
	for (int i = 0; list && i < n; i++)
		describe(t[i], &list[i]);
	return list;
}

enum status hook_begin(
	struct hook *h, const struct graph *g, const struct node *n, const char *name)
{
	const struct custom *custom = (const struct custom *)n->op;
	bool made = n->nout > 0 && n->out[0];
	*h = (struct hook){.g = g, .n = n, .custom = custom, .name = name};
	h->call = (struct stint_call){.api = &api,
		.op = custom->user,
		.node = n->name,
		.real_bytes = (int)dtype_bytes(g->real),
		.threads = g->target->threads,
		.nin = n->nin,
		.nout = n->nout,
		.in = describe_all(g->arena, n->nin, n->in),
		.out = made ? describe_all(g->arena, n->nout, n->out) : NULL};
	return h->call.in && (h->call.out || !made) ? ST_OK : diag_nomem(g->diag);
}

enum status hook_end(struct hook *h, int returned)
{
	if (h->status == ST_OK && returned != 0)
		hook_fail(h, "`%s` returned %d without saying why", h->name, returned);
	return h->status;
}
