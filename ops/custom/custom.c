/* Users' records as ours: each hook calls the user's and checks what comes back, so that a mistake
 * there is told with the file's name, and nothing wrong reaches the passes behind. */
#include "ops/custom/custom.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "ops/custom/custom_call.h"
#include "ops/data.h"

_Static_assert(
	(int)STINT_RANK_MAX == (int)RANK_MAX, "the header promises as many axes as a tensor has");

/* What `shape` said beside shapes. */
struct custom_param {
	double flops;
	int64_t scratch;
};

/* --- Shapes --- */

static enum status check_output(
	struct hook *h, int k, const struct stint_op_tensor *x, enum dtype *type)
{
	*type = x->type == STINT_TYPE_REAL    ? h->g->real
		: x->type == STINT_TYPE_INT64 ? DT_I64
					      : DT_BOOL;
	if (x->type != STINT_TYPE_REAL && x->type != STINT_TYPE_INT64 && x->type != STINT_TYPE_BOOL)
		return hook_fail(h, "`shape` gives output %d no type", k);
	if (x->rank < 0 || x->rank > STINT_RANK_MAX)
		return hook_fail(h, "`shape` gives output %d %d axes; 0 to %d are possible", k,
			x->rank, STINT_RANK_MAX);
	for (int i = 0; i < x->rank; i++)
		if (x->dim[i] < 0)
			return hook_fail(h, "`shape` gives axis %d of output %d the size %" PRId64,
				i, k, x->dim[i]);
	return ST_OK;
}

static enum status make_outputs(
	struct hook *h, struct graph *g, struct node *n, const struct stint_op_tensor *out)
{
	for (int k = 0; k < n->nout; k++) {
		enum dtype type;
		TRY(check_output(h, k, &out[k], &type));
		enum status st = data_output(g, n, k, type, out[k].rank, out[k].dim);
		if (st != ST_OK) {
			hook_fail(h, "`shape` gives output %d a shape that cannot be", k);
			return st;
		}
	}
	return ST_OK;
}

/* A record's pairs hold for any node in ours; the user's only where the shapes are the same: such a
 * node gets a record of its own without the others. */
static enum status fit_pairs(struct graph *g, struct node *n)
{
	const struct custom *c = (const struct custom *)n->op;
	struct custom fit = *c;
	fit.def[0].npair = 0;
	for (int i = 0; i < c->def[0].npair; i++) {
		struct op_pair p = c->def[0].pair[i];
		const struct tensor *in = p.in < n->nin ? n->in[p.in] : NULL, *out = n->out[p.out];
		if (in && tensor_same_shape(in, out) && in->dtype == out->dtype)
			fit.def[0].pair[fit.def[0].npair++] = p;
	}
	if (fit.def[0].npair == c->def[0].npair)
		return ST_OK;
	const struct custom *kept = arena_memdup(g->arena, &fit, 1, sizeof fit);
	if (!kept)
		return diag_nomem(g->diag);
	n->op = kept->def;
	return ST_OK;
}

/* All outputs of the record, whether the model names them or not: the kernel writes them. */
static enum status widen(struct graph *g, struct node *n, int nout)
{
	n->out = ARENA_ARRAY(g->arena, struct tensor *, nout);
	n->nout = nout;
	return n->out ? ST_OK : diag_nomem(g->diag);
}

static enum status custom_infer(struct graph *g, struct node *n)
{
	const struct custom *c = (const struct custom *)n->op;
	struct stint_op_tensor out[STINT_OUTPUTS_MAX] = {0};
	struct hook h;
	TRY(widen(g, n, c->def[0].max_out));
	TRY(hook_begin(&h, g, n, "shape"));
	if (c->user->shape)
		TRY(hook_end(&h, c->user->shape(&h.call, out)));
	for (int k = 0; k < n->nout && !c->user->shape; k++)
		out[k] = h.call.in[0];
	TRY(make_outputs(&h, g, n, out));
	if (!(h.call.flops >= 0) || isinf(h.call.flops))
		return hook_fail(&h, "`shape` sets flops that are no number from 0 on");
	if (h.call.scratch < 0)
		return hook_fail(
			&h, "`shape` asks for %" PRId64 " bytes of scratch", h.call.scratch);
	struct custom_param *p = ARENA_NEW(g->arena, struct custom_param);
	if (!p)
		return diag_nomem(g->diag);
	*p = (struct custom_param){h.call.flops, h.call.scratch};
	n->param = p;
	return fit_pairs(g, n);
}

static struct op_cost custom_cost(const struct node *n)
{
	const struct custom_param *p = n->param;
	struct op_cost c = {p->flops, node_bytes(n)};
	if (p->flops == 0)
		c.flops = (n->op->work > 0 ? n->op->work : 1) * (double)n->out[0]->numel;
	return c;
}

static int64_t custom_workspace(const struct node *n, const struct target *t)
{
	const struct custom_param *p = n->param;
	(void)t;
	return p->scratch;
}

/* --- Gradients --- */

static enum status check_gradient(struct hook *h, int i, stint_value v, struct tensor **dx)
{
	const struct tensor *x = h->n->in[i];
	*dx = hook_tensor(h, v);
	if (h->status != ST_OK || !*dx)
		return h->status;
	char a[200], b[200];
	if (!tensor_same_shape(*dx, x))
		return hook_fail(h, "`gradient` gives input %d, of shape %s, a gradient of %s", i,
			tensor_shape_text(x, a), tensor_shape_text(*dx, b));
	if ((*dx)->dtype != x->dtype)
		return hook_fail(h, "`gradient` gives input %d a gradient that is not real", i);
	return ST_OK;
}

static enum status custom_gradient(struct graph *g, const struct node *n, struct tensor *const *dy,
	const bool *want, struct tensor **dx)
{
	const struct custom *c = (const struct custom *)n->op;
	stint_value from[STINT_OUTPUTS_MAX] = {0};
	/* one more: an operator without inputs has a list, too */
	stint_value *to = ARENA_ARRAY(g->arena, stint_value, n->nin + 1);
	struct hook h;
	if (!to)
		return diag_nomem(g->diag);
	TRY(hook_begin(&h, g, n, "gradient"));
	h.build = g;
	for (int k = 0; k < n->nout; k++)
		from[k] = dy[k] ? dy[k]->id + 1 : 0;
	TRY(hook_end(&h, c->user->gradient(&h.call, from, want, to)));
	for (int i = 0; i < n->nin; i++)
		if (want[i])
			TRY(check_gradient(&h, i, to[i], &dx[i]));
	return g->failed;
}

/* --- Kernels --- */

static enum status custom_emit(struct emit *e, const struct node *n)
{
	const struct custom *c = (const struct custom *)n->op;
	const struct custom_param *p = n->param;
	struct hook h;
	TRY(hook_begin(&h, e->g, n, "body"));
	h.e = e;
	size_t before = e->out.len;
	if (c->user->helper)
		emit_helper(e, n->op->name, c->user->helper);
	TRY(hook_end(&h, c->user->body(&h.call)));
	if (e->out.failed)
		return diag_nomem(e->g->diag);
	if (e->out.len == before)
		return hook_fail(&h, "`body` prints nothing");
	if (p->scratch == 0 && text_mentions(e->out.s + before, "ws"))
		return hook_fail(&h, "`body` uses ws, but `shape` asks for no scratch");
	const char *body = arena_strdup(e->g->arena, e->out.s + before);
	if (!body)
		return diag_nomem(e->g->diag);
	e->out.len = before;
	emit_given(e, n, body);
	return ST_OK;
}

/* --- Records --- */

static enum status record_fail(
	const char *file, const struct stint_op *u, const char *what, struct diag *d)
{
	return diag_fail(d, ST_INVALID, &(struct where){file, u->name, "operator"},
		"ops/stint_op.h says what a record holds", "%s", what);
}

static enum status check_name(const char *file, const struct stint_op *u, struct diag *d)
{
	enum { NAME_MAX_ = 200 }; /* the importer's limit is beyond it */
	const char *dot = strrchr(u->name, '.');
	if (!dot || dot == u->name || !dot[1])
		return record_fail(file, u, "its name is not \"domain.Name\"", d);
	if (strlen(u->name) > NAME_MAX_)
		return record_fail(file, u, "its name is too long", d);
	for (const char *s = u->name; *s; s++)
		if (!isgraph((unsigned char)*s))
			return record_fail(file, u, "its name holds what is no name's", d);
	if (!strncmp(u->name, "stint.", 6) ||
		(!strncmp(u->name, "ai.onnx.", 8) && dot == u->name + 7))
		return record_fail(file, u, "the domains stint and ai.onnx are taken", d);
	return ST_OK;
}

static enum status check_pairs(const char *file, const struct stint_op *u, struct diag *d)
{
	int nout = u->nout ? u->nout : 1;
	if (u->npair < 0 || u->npair > STINT_PAIRS_MAX)
		return record_fail(file, u, "npair is not 0 to STINT_PAIRS_MAX", d);
	for (int i = 0; i < u->npair; i++) {
		struct stint_pair p = u->pair[i];
		if (p.out < 0 || p.out >= nout || p.in < 0 || (u->max_in >= 0 && p.in >= u->max_in))
			return record_fail(
				file, u, "a pair names an input or output that it has not", d);
	}
	return ST_OK;
}

static enum status check_record(const char *file, const struct stint_op *u, struct diag *d)
{
	TRY(check_name(file, u, d));
	if (u->min_in < 0 || (u->max_in < u->min_in && u->max_in != -1))
		return record_fail(file, u, "min_in and max_in are no range", d);
	if (u->nout < 0 || u->nout > STINT_OUTPUTS_MAX)
		return record_fail(file, u, "nout is not 1 to STINT_OUTPUTS_MAX", d);
	if (u->flags & ~(unsigned)(STINT_STOPS_GRADIENT | STINT_CHECKS))
		return record_fail(file, u, "it has flags that are not known", d);
	if (!(u->work >= 0) || isinf(u->work))
		return record_fail(file, u, "work is no number from 0 on", d);
	if (!u->body)
		return record_fail(file, u, "it has no `body`", d);
	if (!u->shape && u->min_in < 1)
		return record_fail(file, u,
			"without `shape` its outputs are like input 0, which it has not", d);
	if (u->gradient && (u->flags & STINT_STOPS_GRADIENT))
		return record_fail(file, u, "it has a `gradient`, and stops it", d);
	return check_pairs(file, u, d);
}

static void fill(struct custom *c, const struct stint_op *u, const char *file)
{
	int nout = u->nout ? u->nout : 1;
	c->user = u;
	c->file = file;
	c->def[0] = (struct op_def){.name = u->name,
		.min_in = u->min_in,
		.max_in = u->max_in,
		.min_out = nout,
		.max_out = nout,
		.traits = (u->flags & STINT_STOPS_GRADIENT ? OP_STOP : 0u) |
			  (u->flags & STINT_CHECKS ? OP_CHECKED : 0u),
		.weights = u->weights,
		.known = u->known,
		.infer = custom_infer,
		.grad = u->gradient ? custom_gradient : NULL,
		.cost = custom_cost,
		.work = u->work,
		.npair = u->npair,
		.workspace = custom_workspace,
		.emit_c = custom_emit};
	for (int i = 0; i < u->npair; i++)
		c->def[0].pair[i] = (struct op_pair){u->pair[i].out, u->pair[i].in};
}

static bool has_name(const struct op_def *const *family, int n, const char *name)
{
	for (int f = 0; f < n; f++)
		for (const struct op_def *r = family[f]; r->name; r++)
			if (!r->instead && !strcmp(r->name, name))
				return true;
	return false;
}

enum status custom_add(struct arena *a, const struct op_table *table, const char *file,
	const struct stint_op *user, const struct op_table **out, struct diag *d)
{
	enum { RECORDS_MAX = 10000 }; /* more: the end is missing */
	int n = 0;
	while (n < RECORDS_MAX && user[n].name)
		n++;
	if (n == 0 || n == RECORDS_MAX)
		return diag_fail(d, ST_INVALID, &(struct where){.file = file},
			"stint_ops holds records and ends with {0}",
			n ? "stint_ops has no end" : "stint_ops holds no record");
	struct op_table *wide = ARENA_NEW(a, struct op_table);
	struct custom *c = ARENA_ARRAY(a, struct custom, n);
	const struct op_def **family = ARENA_ARRAY(a, const struct op_def *, table->nfamily + n);
	if (!wide || !c || !family)
		return diag_nomem(d);
	for (int f = 0; f < table->nfamily; f++)
		family[f] = table->family[f];
	for (int i = 0; i < n; i++) {
		TRY(check_record(file, &user[i], d));
		if (has_name(family, table->nfamily + i, user[i].name))
			return record_fail(file, &user[i], "there is one of that name already", d);
		fill(&c[i], &user[i], file);
		family[table->nfamily + i] = c[i].def;
	}
	*wide = (struct op_table){table->nfamily + n, family};
	*out = wide;
	return ST_OK;
}
