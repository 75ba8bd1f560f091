/* Tensors and nodes: making them, checking them, folding what is known. */
#include "graph/graph.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "graph/graph_parts.h"
#include "graph/loop.h"

struct graph *graph_new(struct arena *a, struct diag *d, const char *file,
	const struct op_table *table, const struct target *target, enum dtype real)
{
	struct graph *g = ARENA_NEW(a, struct graph);
	const struct op_index *index = op_index_new(a, table);
	if (!g || !index) {
		diag_nomem(d);
		return NULL;
	}
	*g = (struct graph){.arena = a,
		.diag = d,
		.file = file,
		.table = table,
		.index = index,
		.target = target,
		.real = real,
		.opset = OPSET_LATEST};
	return g;
}

/* Make room for one more pointer in a list that lives in the arena. */
static bool list_grow(struct arena *a, void *list, int n, int *cap)
{
	if (n < *cap)
		return true;
	if (*cap > INT32_MAX / 2)
		return false;
	int wider = *cap ? *cap * 2 : 256;
	void **fresh = ARENA_ARRAY(a, void *, wider);
	if (!fresh)
		return false;
	void **old;
	memcpy(&old, list, sizeof old);
	if (n)
		memcpy(fresh, old, (size_t)n * sizeof *fresh);
	memcpy(list, &fresh, sizeof fresh);
	*cap = wider;
	return true;
}

static struct tensor *tensor_fail(struct graph *g, enum status st)
{
	if (st == ST_INTERNAL)
		diag_nomem(g->diag);
	if (g->failed == ST_OK)
		g->failed = st;
	return NULL;
}

struct tensor *graph_tensor(
	struct graph *g, const char *name, enum dtype t, int rank, const int64_t *dim)
{
	const struct where w = {.file = g->file, .node = name, .op = "tensor"};
	if (rank < 0 || rank > RANK_MAX) {
		diag_fail(
			g->diag, ST_INVALID, &w, "stint handles up to 8 axes", "has %d axes", rank);
		return tensor_fail(g, ST_INVALID);
	}
	struct tensor *x = ARENA_NEW(g->arena, struct tensor);
	if (!x || !list_grow(g->arena, &g->tensor, g->ntensor, &g->captensor))
		return tensor_fail(g, ST_INTERNAL);
	*x = (struct tensor){.id = g->ntensor,
		.name = name ? name : "",
		.dtype = t,
		.rank = rank,
		.numel = 1,
		.role = TR_VALUE,
		.is_gradient = g->phase == NODE_BACKWARD};
	/* sizes of 0 left out: products of any of the sizes are below it, too */
	int64_t bytes, span = 1;
	for (int i = 0; i < rank; i++) {
		x->dim[i] = dim[i];
		if (!size_mul(x->numel, dim[i], &x->numel) ||
			!size_mul(span, dim[i] == 0 ? 1 : dim[i], &span) ||
			!size_mul(span, dtype_bytes(t), &bytes)) {
			diag_fail(g->diag, ST_INVALID, &w,
				dim[i] < 0 ? "bind it with --batch or --dim"
					   : "reduce the batch size",
				"%s at axis %d (size %" PRId64 ")",
				dim[i] < 0 ? "has a negative size" : "element count overflows", i,
				dim[i]);
			return tensor_fail(g, ST_INVALID);
		}
	}
	g->tensor[g->ntensor++] = x;
	return x;
}

struct tensor *graph_constant(struct graph *g, const char *name, enum dtype t, int rank,
	const int64_t *dim, const void *data)
{
	struct tensor *x = graph_tensor(g, name, t, rank, dim);
	if (x) {
		x->role = TR_CONSTANT;
		x->data = data;
		x->is_gradient = false;
	}
	return x;
}

enum { KNOWN_BYTES_MAX = 1 << 28, KNOWN_TOTAL_MAX = 1 << 30 };

void *graph_known(struct graph *g, const struct node *n, int64_t count, int64_t size)
{
	int64_t bytes, total;
	const struct where w = {g->file, n ? n->name : g->scope, n && n->op ? n->op->name : NULL};
	if (!size_mul(count, size, &bytes) || bytes > KNOWN_BYTES_MAX ||
		!size_add(g->known_bytes, bytes, &total) || total > KNOWN_TOTAL_MAX) {
		diag_fail(g->diag, ST_INVALID, &w, "smaller sizes, or other operators",
			"would need more constants than stint makes at compile time (%" PRId64
			" elements)",
			count);
		return tensor_fail(g, ST_INVALID);
	}
	void *data = arena_alloc(g->arena, (size_t)count, (size_t)size);
	g->known_bytes = total;
	return data ? data : (void *)tensor_fail(g, ST_INTERNAL);
}

struct tensor *graph_scalar(struct graph *g, double value)
{
	void *data = arena_alloc(g->arena, 1, (size_t)dtype_bytes(g->real));
	if (!data)
		return tensor_fail(g, ST_INTERNAL);
	value_set(g->real, data, 0, value);
	return graph_constant(g, "scalar", g->real, 0, NULL, data);
}

struct tensor *graph_ints(struct graph *g, int n, const int64_t *v)
{
	const void *data = arena_memdup(g->arena, v, (size_t)n, sizeof *v);
	if (!data)
		return tensor_fail(g, ST_INTERNAL);
	return graph_constant(g, "ints", DT_I64, 1, (int64_t[]){n}, data);
}

/* --- Values --- */

const char *dtype_name(enum dtype t)
{
	static const char *const name[] = {[DT_F32] = "f32",
		[DT_F64] = "f64",
		[DT_I64] = "i64",
		[DT_BOOL] = "bool",
		[DT_BF16] = "bf16",
		[DT_F16] = "f16",
		[DT_I8] = "i8",
		[DT_U8] = "u8"};
	return name[t];
}

double tensor_real(const struct tensor *t, int64_t i)
{
	switch (t->dtype) {
	case DT_F32:
		return (double)((const float *)t->data)[i];
	case DT_F64:
		return ((const double *)t->data)[i];
	case DT_I64:
		return (double)((const int64_t *)t->data)[i];
	case DT_BOOL:
	case DT_U8:
		return ((const unsigned char *)t->data)[i];
	case DT_BF16:
	case DT_F16:
		return narrow_value(t->dtype, ((const uint16_t *)t->data)[i]);
	case DT_I8:
		return ((const signed char *)t->data)[i];
	}
	return 0;
}

int64_t real_to_int(double v)
{
	if (isnan(v))
		return 0;
	if (v >= 9223372036854775808.0)
		return INT64_MAX;
	if (v < -9223372036854775808.0)
		return INT64_MIN;
	return (int64_t)v;
}

int64_t tensor_int(const struct tensor *t, int64_t i)
{
	return t->dtype == DT_I64 ? ((const int64_t *)t->data)[i] : real_to_int(tensor_real(t, i));
}

void value_set(enum dtype t, void *data, int64_t i, double v)
{
	switch (t) {
	case DT_F32:
		((float *)data)[i] = (float)v;
		break;
	case DT_F64:
		((double *)data)[i] = v;
		break;
	case DT_I64:
		((int64_t *)data)[i] = real_to_int(v);
		break;
	case DT_BOOL:
		((unsigned char *)data)[i] = v != 0;
		break;
	case DT_BF16:
	case DT_F16:
	case DT_I8:
	case DT_U8:
		assert(false && "a known value of a type that none has");
	}
}

int64_t tensor_bytes(const struct tensor *t)
{
	return t->numel * dtype_bytes(t->dtype);
}

int64_t tensor_next(const struct graph *g, const struct tensor *t)
{
	enum { ALIGNED = 256 }; /* as a device's copies like it */
	const int64_t bytes = tensor_bytes(t);
	if (!g->target->cuda || t->role != TR_INPUT || bytes > INT64_MAX / 4)
		return 0;
	return (bytes + ALIGNED - 1) / ALIGNED * ALIGNED;
}

bool tensor_same_shape(const struct tensor *a, const struct tensor *b)
{
	return a->rank == b->rank &&
	       memcmp(a->dim, b->dim, (size_t)a->rank * sizeof a->dim[0]) == 0;
}

const char *tensor_shape_text(const struct tensor *t, char buf[static 200])
{
	return dims_text(t->rank, t->dim, buf);
}

struct tensor *tensor_storage(struct tensor *t)
{
	return t->storage ? t->storage : t;
}

/* --- Nodes --- */

enum status node_fail(struct graph *g, const struct node *n, const char *hint, const char *fmt, ...)
{
	const struct where w = {.file = g->file, .node = n->name, .op = n->op ? n->op->name : NULL};
	va_list ap;
	va_start(ap, fmt);
	diag_vfail(g->diag, ST_INVALID, &w, hint, fmt, ap);
	va_end(ap);
	return ST_INVALID;
}

struct node *graph_node_blank(struct graph *g, const struct op_def *op, const char *name, int nin,
	struct tensor *const *in, int nout)
{
	struct node *n = ARENA_NEW(g->arena, struct node);
	if (!n)
		return NULL;
	*n = (struct node){.name = name,
		.op = op,
		.phase = g->phase,
		.last = g->last,
		.when = g->when,
		.nin = nin,
		.nout = nout};
	n->in = arena_memdup(g->arena, in, (size_t)nin, sizeof *in);
	n->out = ARENA_ARRAY(g->arena, struct tensor *, nout);
	return n->in && n->out ? n : NULL;
}

enum status graph_append(struct graph *g, struct node *n)
{
	if (!list_grow(g->arena, &g->node, g->nnode, &g->capnode))
		return diag_nomem(g->diag);
	n->id = g->nnode;
	g->node[g->nnode++] = n;
	for (int k = 0; k < n->nout; k++)
		if (n->out[k])
			n->out[k]->maker = n;
	if ((n->op->traits & OP_VIEW) && n->out[0])
		n->out[0]->storage = tensor_storage(n->in[0]);
	return ST_OK;
}

void graph_relist(struct graph *g, int n, struct node *const *list)
{
	for (int i = 0; i < n; i++) {
		g->node[i] = list[i];
		g->node[i]->id = i;
	}
	g->nnode = n;
}

enum status graph_sort(struct graph *g, int nslot, const int *slot)
{
	int *start = ARENA_ARRAY(g->arena, int, nslot + 1);
	struct node **list = ARENA_ARRAY(g->arena, struct node *, g->nnode);
	if (!start || !list)
		return diag_nomem(g->diag);
	for (int i = 0; i < g->nnode; i++)
		start[slot[i] + 1]++;
	for (int i = 0; i < nslot; i++)
		start[i + 1] += start[i];
	for (int i = 0; i < g->nnode; i++)
		list[start[slot[i]]++] = g->node[i];
	graph_relist(g, g->nnode, list);
	return ST_OK;
}

int node_reads(const struct node *n, const struct tensor *t)
{
	int reads = n->when == t;
	for (int k = 0; k < n->nin; k++) {
		reads += n->in[k] == t;
		for (int a = 0; a < n->nalt; a++)
			reads += n->alt[a][k] == t;
	}
	return reads;
}

struct tensor *graph_told(const struct graph *g, int k)
{
	if (k == 0)
		return g->loss;
	for (int i = 0; i < g->nterm && !g->target->bare; i++)
		if (g->term[i].value != g->loss && --k == 0)
			return g->term[i].value;
	return NULL;
}

int graph_reads(const struct graph *g, const struct tensor *t)
{
	int reads = 0;
	for (int i = 0; graph_told(g, i); i++)
		reads += t == graph_told(g, i);
	for (int i = 0; i < g->noutput; i++)
		reads += g->output[i] == t;
	for (int i = 0; i < g->nnode; i++)
		reads += node_reads(g->node[i], t);
	return reads;
}

enum status node_counts(struct graph *g, const struct node *n)
{
	const struct op_def *op = n->op;
	const int max_in = op_max_in(op), max_out = op->max_out ? op->max_out : 1;
	if (n->nin < op->min_in || (max_in != -1 && n->nin > max_in)) {
		char most[24] = " or more";
		if (max_in != -1)
			snprintf(most, sizeof most, " to %d", max_in);
		return node_fail(g, n, NULL, "has %d inputs; %s takes %d%s", n->nin, op->name,
			op->min_in, max_in == op->min_in ? "" : most);
	}
	if (max_out != -1 && n->nout > max_out)
		return node_fail(g, n, NULL, "has %d outputs; %s gives at most %d", n->nout,
			op->name, max_out);
	return ST_OK;
}

static enum status check_inputs(struct graph *g, const struct node *n)
{
	const struct op_def *op = n->op;
	TRY(node_counts(g, n));
	for (int i = 0; i < op->min_in; i++)
		if (!n->in[i])
			return node_fail(g, n, NULL, "required input %d is missing", i);
	return ST_OK;
}

static bool all_known(const struct node *n)
{
	for (int i = 0; i < n->nin; i++)
		if (n->in[i] && n->in[i]->role != TR_CONSTANT)
			return false;
	return true;
}

/* infer knew every output already: sizes, constants. */
static bool outputs_known(const struct node *n)
{
	for (int k = 0; k < n->nout; k++)
		if (n->out[k] && n->out[k]->role != TR_CONSTANT)
			return false;
	return true;
}

/* Larger constants, and more work in all, are left to the step: a file of a few bytes could ask for
 * any amount. Small ones, such as shapes, always fold. */
static bool may_work(struct graph *g, double work)
{
	enum { SMALL = 1 << 16 };
	static const double most = 2147483648.0;
	if (work <= SMALL)
		return true;
	if (!(g->fold_work + work <= most))
		return false;
	g->fold_work += work;
	return true;
}

static bool may_fold(struct graph *g, const struct node *n)
{
	for (int k = 0; k < n->nout; k++)
		if (n->out[k] && tensor_bytes(n->out[k]) > KNOWN_BYTES_MAX)
			return false;
	const struct op_cost c = node_cost(n);
	return may_work(g, c.flops + c.bytes);
}

enum status graph_known_work(struct graph *g, const struct node *n, double work)
{
	return may_work(g, work)
		       ? ST_OK
		       : node_fail(g, n, "smaller sizes, or other operators",
				 "would take more work at compile time than stint spends");
}

static void know(struct tensor *t, const void *data)
{
	t->role = TR_CONSTANT;
	t->data = data;
	t->is_gradient = false;
}

/* Output k, which is known, has the elements of weights and no others: moved, or the very same. */
static bool is_weight_still(const struct node *n, int k)
{
	const bool moves = (n->op->traits & OP_ALIKE) && !(n->op->traits & OP_POINTWISE);
	const struct tensor *x = n->nin ? n->in[0] : NULL, *y = n->out[k];
	if (!x || !x->weight || x->dtype != y->dtype)
		return false;
	for (int i = 1; moves && i < n->nin; i++)
		if (n->in[i] && n->in[i]->dtype == y->dtype && !n->in[i]->weight)
			return false;
	return moves ||
	       (x->numel == y->numel && !memcmp(x->data, y->data, (size_t)tensor_bytes(x)));
}

static enum status fold(struct graph *g, struct node *n, bool *done)
{
	bool pointwise = !n->op->fold && (n->op->traits & OP_POINTWISE);
	*done = outputs_known(n);
	if (!*done && (n->op->traits & OP_VIEW) && all_known(n)) {
		know(n->out[0], n->in[0]->data); /* no second copy, of a large weight perhaps */
		n->out[0]->from_model = n->in[0]->from_model;
		n->out[0]->weight = n->in[0]->weight;
		n->out[0]->stored = n->in[0]->stored;
		*done = true;
	}
	if (*done || !(n->op->fold || pointwise) || !all_known(n) || !may_fold(g, n))
		return ST_OK;
	void **data = ARENA_ARRAY(g->arena, void *, n->nout);
	if (!data)
		return diag_nomem(g->diag);
	for (int k = 0; k < n->nout; k++) {
		if (!n->out[k])
			continue;
		data[k] = arena_alloc(g->arena, (size_t)tensor_bytes(n->out[k]), 1);
		if (!data[k])
			return diag_nomem(g->diag);
	}
	if (pointwise)
		pointwise_fold(n, data[0]);
	else
		TRY(n->op->fold(g, n, data));
	for (int k = 0; k < n->nout; k++) {
		if (!n->out[k])
			continue;
		know(n->out[k], data[k]);
		n->out[k]->weight = is_weight_still(n, k);
	}
	if (n->op->role == ROLE_TRANSPOSE && n->in[0]->stored)
		TRY(stored_transpose(g, n));
	*done = true;
	return ST_OK;
}

static enum status node_finish(struct graph *g, struct node *n)
{
	TRY(check_inputs(g, n));
	if (n->op->expand && !n->op->infer)
		return node_fail(g, n, NULL, "stands for other nodes: only the importer builds it");
	unsigned before = g->diag->errors;
	enum status st = n->op->infer ? n->op->infer(g, n) : pointwise_infer(g, n);
	if (st != ST_OK) {
		/* infer may pass on a failure of graph_tensor, which has reported it */
		return g->diag->errors > before ? st
						: node_fail(g, n, NULL, "cannot infer its shape");
	}
	for (int k = 0; k < n->nout; k++)
		if (n->out[k] && !*n->out[k]->name)
			n->out[k]->name = n->name;
	bool known;
	TRY(fold(g, n, &known));
	return known ? ST_OK : graph_append(g, n);
}

static enum status node_make(struct graph *g, const struct op_def *def, const char *name, int nin,
	struct tensor *const *in, int nout, int nattr, const struct attr *attr, const void *param,
	struct node **out)
{
	struct node *n = graph_node_blank(g, def, name, nin, in, nout);
	if (!n)
		return diag_nomem(g->diag);
	n->nattr = nattr;
	n->attr = nattr ? arena_memdup(g->arena, attr, (size_t)nattr, sizeof *attr) : NULL;
	n->param = param;
	if (nattr && !n->attr)
		return diag_nomem(g->diag);
	TRY(node_finish(g, n));
	*out = n;
	return ST_OK;
}

enum status graph_node(struct graph *g, const char *op, const char *name, int nin,
	struct tensor *const *in, int nout, int nattr, const struct attr *attr, const void *param,
	struct node **out)
{
	if (!name)
		name = g->scope ? g->scope : op;
	const struct op_def *def = op_index_find(g->index, op, g->opset);
	if (!def) {
		const struct where w = {.file = g->file, .node = name, .op = op};
		return diag_fail(g->diag, ST_INVALID, &w,
			"docs/reference/operators.md lists what is supported",
			"operator %s is not supported at opset %d", op, g->opset);
	}
	if (nout <= 0)
		nout = def->min_out ? def->min_out : 1;
	return node_make(g, def, name, nin, in, nout, nattr, attr, param, out);
}

struct node *graph_op_like(struct graph *g, const struct node *like, struct tensor *const *in,
	int nattr, const struct attr *attr, const void *param)
{
	struct node *n = NULL;
	for (int i = 0; i < like->op->min_in && g->failed == ST_OK; i++)
		if (!in[i])
			g->failed = diag_fail(g->diag, ST_INTERNAL, NULL, NULL,
				"%s built with a missing input", like->op->name);
	if (g->failed != ST_OK)
		return NULL;
	g->failed = node_make(
		g, like->op, like->name, like->nin, in, like->nout, nattr, attr, param, &n);
	return n;
}
