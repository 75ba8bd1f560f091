/* Batch normalisation. In training: a recomputable sum over the batch that gives mean, inverse
 * deviation and slope, a pointwise normalisation by them (which others can be fused with), and an
 * update of the running statistics that runs once. The file may hold any of ONNX's forms; all mean
 * the layer where the running statistics are initializers. Where the model computes them, or is
 * given them, no layer keeps any: the node is what ONNX says of it, in training and evaluation. */
#include <inttypes.h>

#include "codegen/call.h"
#include "graph/pass.h"
#include "ops/norm/batchnorm_op.h"
#include "ops/norm/channel_cuda.h"

enum { X, SCALE, BIAS, MEAN, VAR };

/* Inputs behind input 0, which has the channels, up to input `last` have one value for each. */
static enum status check_channels(struct graph *g, const struct node *n, int last)
{
	const struct batchnorm *p = n->param;
	if (n->in[X]->rank < 2)
		return node_fail(
			g, n, NULL, "its input has %d axes; it needs 2 or more", n->in[X]->rank);
	const int64_t channels = n->in[X]->dim[1] * p->block;
	for (int i = SCALE; i <= last; i++)
		if (n->in[i]->rank != 1 || n->in[i]->dim[0] != channels)
			return node_fail(g, n, NULL,
				"input %d does not have one value per channel (%" PRId64 ")", i,
				channels);
	return ST_OK;
}

/* From the attributes, unless the node was handed another's. */
static enum status make_param(struct graph *g, struct node *n, const struct tensor *x)
{
	if (n->param)
		return ST_OK;
	struct batchnorm *p = ARENA_NEW(g->arena, struct batchnorm);
	if (!p)
		return diag_nomem(g->diag);
	*p = (struct batchnorm){.epsilon = node_float(n, "epsilon", 1e-5),
		.momentum = node_float(n, "momentum", 0.9),
		.rows = x->dim[0],
		.each = 1,
		.count = x->dim[0],
		.block = n->op->since ? 1 : node_int(n, "block", 1)};
	if (p->block != 1 && (p->block < 1 || x->rank < 3 || x->dim[x->rank - 1] != p->block))
		return node_fail(g, n, NULL, "its input does not end in blocks of channels");
	for (int i = 2; i < x->rank - (p->block > 1); i++)
		p->count *= x->dim[i];
	n->param = p;
	return ST_OK;
}

static bool is_uniform(const struct tensor *t)
{
	for (int64_t i = 1; i < t->numel; i++)
		if (tensor_real(t, i) != tensor_real(t, 0))
			return false;
	return true;
}

/* "bn/BatchNormalization_1" and "bn/BatchNormalization": one but for a number behind. */
static bool alike(const char *a, const char *b)
{
	size_t n = strlen(a), m = strlen(b);
	const size_t an = n, bm = m;
	while (n > 0 && a[n - 1] >= '0' && a[n - 1] <= '9')
		n--;
	while (m > 0 && b[m - 1] >= '0' && b[m - 1] <= '9')
		m--;
	n = n < an && n > 0 && a[n - 1] == '_' ? n - 1 : an;
	m = m < bm && m > 0 && b[m - 1] == '_' ? m - 1 : bm;
	return n == m && !strncmp(a, b, n);
}

static const char *leaf(const char *name)
{
	const char *dot = strrchr(name, '.');
	return dot ? dot + 1 : name;
}

/* One layer that is called several times (a tower for both images of a pair) is several nodes with
 * one scale. Without scales, statistics that are not those of a new layer tell, or the names, or
 * that the second call's statistics are handed on as a value, `given`, and not as another layer's.
 */
static bool is_same_layer(const struct node *n, const struct node *m, const struct tensor *given,
	const struct tensor *source)
{
	const struct batchnorm *p = n->param, *q = m->param;
	if (p->momentum != q->momentum || p->epsilon != q->epsilon || p->block != q->block)
		return false;
	if (n->in[SCALE]->role == TR_PARAMETER || m->in[SCALE]->role == TR_PARAMETER)
		return n->in[SCALE] == m->in[SCALE];
	if (given != source && strcmp(leaf(given->name), leaf(source->name)) != 0)
		return true;
	return alike(n->name, m->name) || !is_uniform(m->in[MEAN]) || !is_uniform(m->in[VAR]);
}

/* Whether an earlier node of n's layer has this buffer. */
static bool is_called_again(
	const struct graph *g, const struct node *n, int i, struct tensor *source)
{
	for (int k = 0; source->role == TR_BUFFER && k < g->nnode; k++) {
		const struct node *m = g->node[k];
		if (m != n && m->op == n->op && m->in[i] == source &&
			is_same_layer(n, m, n->in[i], source))
			return true;
	}
	return false;
}

/* Input i, if an initializer, as a buffer of this node's own. Exporters store equal initializers
 * once, and hand them on through Identity: freshly made running statistics come as another layer's,
 * or as its scale. */
static enum status own_buffer(struct graph *g, struct node *n, int i)
{
	struct tensor *given = n->in[i], *source = tensor_storage(given);
	if (source->maker || !source->data) /* a value of the model's */
		return ST_OK;
	if (given == source && given->role != TR_BUFFER && given != n->in[SCALE] &&
		given != n->in[BIAS]) {
		given->role = TR_BUFFER;
		return ST_OK;
	}
	if (is_called_again(g, n, i, source)) {
		n->in[i] = source;
		return ST_OK;
	}
	const char *name = given != source ? given->name
					   : arena_printf(g->arena, "%s.running_%s", n->name,
						     i == MEAN ? "mean" : "var");
	n->in[i] = name ? graph_tensor(g, name, given->dtype, given->rank, given->dim) : NULL;
	if (!n->in[i])
		return name ? g->failed : diag_nomem(g->diag);
	n->in[i]->role = TR_BUFFER;
	n->in[i]->data = source->data;
	return ST_OK;
}

static enum status batchnorm_infer(struct graph *g, struct node *n)
{
	const struct tensor *x = n->in[X];
	TRY(make_param(g, n, x));
	TRY(check_channels(g, n, VAR));
	TRY(own_buffer(g, n, MEAN));
	TRY(own_buffer(g, n, VAR));
	TRY(data_output(g, n, 0, x->dtype, x->rank, x->dim));
	for (int k = 1; k < n->nout;
		k++) /* the running statistics as outputs: nothing may read them */
		TRY(data_output(g, n, k, x->dtype, 1, &x->dim[1]));
	return ST_OK;
}

/* --- The normalisation, by vectors of one value per channel --- */

POINTWISE(normalise, (a - b) * c + d)
/* g: 1 in the rows that count, 0 in the others */
POINTWISE(normalise_grad, (a - e - (b - c) * f) * d * g)

/* A vector of [C] as x's shape has its channels. */
static struct tensor *per_channel(
	struct graph *g, struct tensor *v, const struct tensor *x, const struct batchnorm *p)
{
	int64_t dim[RANK_MAX] = {x->dim[1], 1, 1, 1, 1, 1, 1, 1};
	if (p->block > 1)
		dim[x->rank - 2] = p->block;
	return x->rank == 2 ? v : graph_reshape(g, v, x->rank - 1, dim);
}

/* y = (x - mean) slope + bias. The record says how the gradient goes on. */
static struct tensor *normalise(
	struct graph *g, const char *record, struct tensor *const *in, const struct batchnorm *p)
{
	struct tensor *by[4] = {in[0]};
	for (int i = 1; i < 4; i++)
		by[i] = per_channel(g, in[i], in[0], p);
	return graph_op(g, record, 4, by, 0, NULL);
}

static struct tensor *by_batch(
	struct graph *g, struct tensor *const *in, const struct batchnorm *p, struct node **stats)
{
	const int64_t samples = graph_rows(g), rows = in[X]->dim[0];
	struct batchnorm *own = arena_memdup(g->arena, p, 1, sizeof *own);
	if (!own) {
		g->failed = diag_nomem(g->diag);
		return NULL;
	}
	own->each = samples && rows % samples == 0 ? rows / samples : 0;
	struct tensor *by[] = {in[X], in[SCALE], own->each ? graph_control(g) : NULL};
	struct node *s = *stats = p->together ? batchnorm_stats_of_all(g, by[0], by[1], by[2], own)
					      : graph_op_node(g, "stint.BatchNormStats",
							own->each ? 3 : 2, by, 0, NULL, own);
	return !s ? NULL
		  : normalise(g, "stint.Normalise",
			    (struct tensor *[]){in[X], s->out[0], s->out[2], in[BIAS]}, p);
}

static struct tensor *by_running(
	struct graph *g, struct tensor *const *in, const struct batchnorm *p)
{
	struct node *s = graph_op_node(
		g, "stint.BatchNormSlope", 2, (struct tensor *[]){in[SCALE], in[VAR]}, 0, NULL, p);
	return !s ? NULL
		  : normalise(g, "stint.NormaliseBy",
			    (struct tensor *[]){in[X], in[MEAN], s->out[0], in[BIAS]}, p);
}

/* By a mean and a variance that are values like others: gradients go through them. */
static struct tensor *by_given(struct graph *g, struct tensor *const *in, const struct batchnorm *p)
{
	struct tensor *deviation = OP1(
		g, "Sqrt", OP2(g, "Add", in[VAR], graph_scalar(g, p->epsilon)));
	struct tensor *slope = OP2(g, "Div", in[SCALE], deviation), *by[3];
	struct tensor *const vector[3] = {in[MEAN], slope, in[BIAS]};
	for (int i = 0; i < 3; i++)
		by[i] = vector[i] ? per_channel(g, vector[i], in[X], p) : NULL;
	return OP2(g, "Add", OP2(g, "Mul", OP2(g, "Sub", in[X], by[0]), by[1]), by[2]);
}

/* Whether the file normalises by the batch's statistics: up to opset 13 more outputs say so. */
static bool is_training(const struct node *n)
{
	return node_int(n, "training_mode", 0) != 0 || n->nout > 1;
}

/* What overwrites this buffer; NULL: nothing does yet. */
static struct node *update_of(const struct graph *g, const struct tensor *mean)
{
	for (int i = g->nnode - 1; i >= 0; i--)
		if (node_is(g->node[i], "stint.BatchNormUpdate") && g->node[i]->in[0] == mean)
			return g->node[i];
	return NULL;
}

/* Whether either branch of one condition has one of them. */
static bool of_either_branch(const struct tensor *a, const struct tensor *b)
{
	return a && b && a != b && a->maker && a->maker == b->maker &&
	       a->maker->op->role == ROLE_BRANCH;
}

/* The layer was called under another condition. In the other branch of the same one: the
 * statistics of the call that ran, which one update takes in, whichever branch that was. */
static enum status pick_statistics(struct graph *g, struct node *before, struct tensor **list)
{
	struct tensor *const when = before->when;
	if (!of_either_branch(when, g->when) || before->nin > 5)
		return diag_fail(g->diag, ST_INVALID,
			&(struct where){.file = g->file, .node = g->scope},
			"give each call a layer of its own; or --bn frozen, which changes no "
			"statistics",
			"the running statistics '%s' are also those of '%s', which runs under "
			"another condition",
			before->in[0]->name, before->name);
	before->op = op_index_find(g->index, "stint.BatchNormBlend", 0); /* updates no more */
	g->when = node_input(when->maker, 1);
	for (int k = 2; k < 4; k++) {
		struct tensor *in[] = {when, before->in[k], list[k]};
		list[k] = graph_op(g, "stint.Choose", 3, in, 0, NULL);
	}
	return g->failed;
}

/* Of micro-batches each in turn, when all are there, unless all have the same: by what process each
 * was done is all one. A microcontroller does them all, and each at once. */
static struct node *update(struct graph *g, struct tensor *const *in, const struct node *stats)
{
	const enum node_phase phase = g->phase;
	const struct batchnorm *p = stats->param;
	const bool later = g->shards_differ && !g->target->bare && !p->together;
	struct tensor *list[7] = {in[MEAN], in[VAR], stats->out[0], stats->out[1],
		stats->nin > 2 ? stats->in[2] : NULL};
	/* Called before in this step: from what that made of them. */
	struct node *before = update_of(g, in[MEAN]);
	struct tensor *const when = g->when;
	const bool elsewhere = before && before->when != when;
	if (before && !elsewhere) {
		before->op = op_index_find(g->index, "stint.BatchNormBlend", 0);
		list[5] = before->out[0];
		list[6] = before->out[1];
	}
	g->phase = NODE_UPDATE;
	for (int k = 0; later && k < 2; k++)
		list[2 + k] = graph_every_shard(g, in[MEAN + k]->name, list[2 + k]);
	g->last = later;
	if (!list[2] || !list[3] || (elsewhere && pick_statistics(g, before, list) != ST_OK))
		return NULL;
	struct node *u = graph_op_node(g, "stint.BatchNormUpdate",
		before && !elsewhere ? 7
		: list[4]            ? 5
				     : 4,
		list, 0, NULL, stats->param);
	g->when = when;
	g->last = false;
	g->phase = phase;
	return u;
}

static enum status batchnorm_lower(struct graph *g, const struct node *n, struct tensor *const *in,
	const struct lower_options *o, struct tensor **out)
{
	/* A momentum of 1 never takes anything into the running statistics: it stands for a layer
	 * without them, which normalises by the batch always. */
	struct batchnorm *p = arena_memdup(g->arena, n->param, 1, sizeof *p);
	struct node *stats;
	if (!p)
		return diag_nomem(g->diag);
	p->population = o->bn_population;
	p->together = o->bn_sync && g->shards_differ ? g->shards : 0;
	const bool given = n->in[MEAN]->role != TR_BUFFER || n->in[VAR]->role != TR_BUFFER;
	const bool always = p->momentum == 1 || given;
	if (given && !is_training(n)) {
		out[0] = by_given(g, in, p);
		return g->failed;
	}
	if (!always && (o->mode == LOWER_EVAL || o->bn_frozen)) {
		out[0] = by_running(g, in, p);
		return g->failed;
	}
	out[0] = by_batch(g, in, p, &stats);
	if (always || g->failed != ST_OK)
		return g->failed;
	struct node *u = update(g, in, stats);
	if (!u)
		return g->failed != ST_OK ? g->failed : ST_INVALID;
	for (int k = 1; k < n->nout && k < 3; k++)
		out[k] = n->out[k] ? u->out[k - 1] : NULL;
	return g->failed;
}

/* Where it is lowered to what the batch has no part in. */
static bool batchnorm_apart(const struct node *n, int axis, const struct lower_options *o)
{
	const struct batchnorm *p = n->param;
	(void)axis;
	if (n->in[MEAN]->role != TR_BUFFER || n->in[VAR]->role != TR_BUFFER)
		return !is_training(n);
	return p->momentum != 1 && o->bn_frozen;
}

/* --- The two forms by themselves, for channels in blocks too --- */

static enum status form_infer(struct graph *g, struct node *n)
{
	TRY(make_param(g, n, n->in[X]));
	TRY(check_channels(g, n, n->nin - 1));
	return data_output(g, n, 0, n->in[X]->dtype, n->in[X]->rank, n->in[X]->dim);
}

static enum status by_batch_lower(struct graph *g, const struct node *n, struct tensor *const *in,
	const struct lower_options *o, struct tensor **out)
{
	(void)o;
	struct node *stats;
	out[0] = by_batch(g, in, n->param, &stats);
	return g->failed;
}

static enum status by_running_lower(struct graph *g, const struct node *n, struct tensor *const *in,
	const struct lower_options *o, struct tensor **out)
{
	(void)o;
	out[0] = by_running(g, in, n->param);
	return g->failed;
}

/* --- The statistics --- */

static enum status vectors(struct graph *g, struct node *n, int channels_of)
{
	const struct batchnorm *p = n->param;
	const struct tensor *x = n->in[channels_of];
	const int64_t channels = x->dim[x->rank > 1] * p->block;
	for (int k = 0; k < n->nout; k++)
		TRY(data_output(g, n, k, x->dtype, 1, &channels));
	return ST_OK;
}

static enum status stats_infer(struct graph *g, struct node *n)
{
	TRY(make_param(g, n, n->in[X]));
	TRY(check_channels(g, n, SCALE));
	return vectors(g, n, X);
}

static enum status sums_infer(struct graph *g, struct node *n)
{
	return vectors(g, n, 1);
}

enum status batchnorm_block(struct blocking *b)
{
	const struct node *n = b->n;
	const struct batchnorm *given = n->param;
	struct batchnorm *p = arena_memdup(b->g->arena, given, 1, sizeof *p);
	struct tensor *in[6]; /* as many as BatchNormSums takes */
	const int images = n->nin > 3 ? 2 : 1;
	if (!p)
		return diag_nomem(b->g->diag);
	if (given->block != 1 || !blocking_has(b, 0) || !blocking_fits(b, n->in[images - 1]))
		return ST_OK;
	p->block = blocking_channels(b, n->in[0]);
	for (int i = 0; i < n->nin; i++)
		in[i] = i < images ? blocking_blocked(b, i) : blocking_plain(b, i);
	struct node *m = graph_op_like(b->g, n, in, 0, NULL, p);
	for (int k = 0; m && k < n->nout; k++)
		blocking_give(b, k, m->out[k], false);
	return b->g->failed;
}

/* Reads what is large once. */
struct op_cost batchnorm_read_cost(const struct node *n)
{
	struct op_cost c = {0, 0};
	for (int i = 0; i < n->nin; i++) {
		c.bytes += n->in[i] ? (double)tensor_bytes(n->in[i]) : 0;
		c.flops += n->in[i] ? n->op->work * (double)n->in[i]->numel : 0;
	}
	return c;
}

static enum status stats_fold(struct graph *g, const struct node *n, void *const *out)
{
	(void)g;
	const struct batchnorm *p = n->param;
	const struct tensor *x = n->in[X];
	const int64_t block = p->block, channels = n->out[0]->numel, inner = p->count / x->dim[0];
	const int64_t rows = n->nin > 2 ? tensor_int(n->in[2], 2) : x->dim[0],
		      count = inner * (rows < x->dim[0] ? rows : x->dim[0]);
	for (int64_t c = 0; c < channels; c++) {
		double sum[2] = {0}; /* of x, then of squares about its mean */
		for (int pass = 0; pass < 2; pass++)
			for (int64_t i = 0; i < count; i++) {
				int64_t at = (i / inner * channels / block + c / block) * inner +
					     i % inner;
				double v = tensor_real(x, at * block + c % block);
				v -= pass ? sum[0] / (double)count : 0;
				sum[pass] += pass ? v * v : v;
			}
		double invstd = 1 / sqrt(sum[1] / (double)count + p->epsilon);
		value_set(x->dtype, out[3], c, 0);
		value_set(x->dtype, out[0], c, sum[0] / (double)count);
		value_set(x->dtype, out[1], c, invstd);
		value_set(x->dtype, out[2], c, invstd * tensor_real(n->in[SCALE], c));
	}
	return ST_OK;
}

/* Along x's axis 0, of which a sample has `each`: 1 where it counts, 0 where not. One serves all
 * layers. */
static struct tensor *row_mask(struct graph *g, const struct tensor *x, const struct batchnorm *p)
{
	const int64_t each = p->each;
	const int64_t dim[RANK_MAX] = {x->dim[0], 1, 1, 1, 1, 1, 1, 1};
	const struct attr attr[] = {ATTR_I("rows", x->dim[0]), ATTR_I("each", each)};
	struct tensor *const when = g->when;
	struct tensor *control, *mask = NULL;
	if (!each || (x->dim[0] == each && !p->together)) /* all count */
		return graph_scalar(g, 1);
	for (int i = g->nnode - 1; i >= 0 && !mask; i--)
		if (node_is(g->node[i], "stint.RowMask") && g->node[i]->out[0]->numel == x->dim[0])
			mask = g->node[i]->out[0];
	control = graph_control(g);
	g->when = NULL; /* layers of other branches read it, too */
	mask = mask ? mask : graph_op(g, "stint.RowMask", 1, &control, 2, attr);
	g->when = when;
	return mask ? graph_reshape(g, mask, x->rank, dim) : NULL;
}

static enum status mask_infer(struct graph *g, struct node *n)
{
	const int64_t rows = node_int(n, "rows", 1);
	return data_output(g, n, 0, g->real, 1, &rows);
}

static enum status mask_emit(struct emit *e, const struct node *n)
{
	const int64_t rows = n->out[0]->numel;
	return call_kernel(e,
		&(struct kernel_call){.file = "row_mask.h",
			.function = "row_mask",
			.turns = rows,
			.args = CALL_ARGS(ARG_Y(0), ARG_X(0), ARG_SIZE(node_int(n, "each", 1)))});
}

static enum status sums_of(struct graph *g, const struct node *stats, struct tensor *dy,
	struct tensor *x, struct tensor *out[4])
{
	struct tensor *control = node_input(stats, 2);
	struct node *s = graph_op_node(g, "stint.BatchNormSums", control ? 6 : 5,
		(struct tensor *[]){dy, x, stats->out[0], stats->out[1], stats->out[3], control}, 0,
		NULL, stats->param);
	for (int k = 0; s && k < 4; k++)
		out[k] = s->out[k];
	return g->failed;
}

/* The gradient of x comes whole, with what goes by way of mean and slope. That of slope is the
 * scale's already: their maker passes it on. */
static enum status normalise_rule(struct graph *g, const struct node *n, struct tensor *const *dy,
	const bool *want, struct tensor **dx)
{
	const struct node *stats = tensor_storage(n->in[2])->maker;
	const struct batchnorm *p = stats->param;
	struct tensor *x = n->in[0];
	struct tensor *sums[4];
	TRY(p->together ? batchnorm_sums_of_all(g, stats, dy[0], x, want[0], sums)
			: sums_of(g, stats, dy[0], x, sums));
	if (want[0])
		dx[0] = graph_op(g, "stint.NormaliseGrad", 7,
			(struct tensor *[]){dy[0], x, n->in[1], n->in[2],
				per_channel(g, sums[2], x, p), per_channel(g, sums[3], x, p),
				row_mask(g, x, p)},
			0, NULL);
	dx[2] = per_channel(g, sums[0], x, p);
	dx[3] = per_channel(g, sums[1], x, p);
	return g->failed;
}

enum status batchnorm_stats_rule(struct graph *g, const struct node *n, struct tensor *const *dy,
	const bool *want, struct tensor **dx)
{
	(void)g, (void)n, (void)want;
	dx[SCALE] = dy[2];
	return ST_OK;
}

/* With running statistics. */
static enum status normalise_by_rule(struct graph *g, const struct node *n,
	struct tensor *const *dy, const bool *want, struct tensor **dx)
{
	const struct node *slope = tensor_storage(n->in[2])->maker;
	const struct batchnorm *p = slope->param;
	if (want[0])
		dx[0] = OP2(g, "Mul", dy[0], n->in[2]);
	if (!want[2] && !want[3])
		return g->failed;
	struct node *s = graph_op_node(g, "stint.BatchNormSums", 4,
		(struct tensor *[]){dy[0], n->in[0], tensor_storage(n->in[1]), slope->out[1]}, 0,
		NULL, p);
	if (!s)
		return g->failed;
	dx[2] = per_channel(g, s->out[0], n->in[0], p);
	dx[3] = per_channel(g, s->out[1], n->in[0], p);
	return g->failed;
}

static enum status slope_infer(struct graph *g, struct node *n)
{
	for (int k = 0; k < n->nout; k++)
		TRY(data_output(g, n, k, n->in[0]->dtype, 1, n->in[0]->dim));
	return ST_OK;
}

static enum status slope_rule(struct graph *g, const struct node *n, struct tensor *const *dy,
	const bool *want, struct tensor **dx)
{
	(void)g, (void)n, (void)want;
	dx[0] = dy[0];
	return ST_OK;
}

static enum status slope_emit(struct emit *e, const struct node *n)
{
	const struct batchnorm *p = n->param;
	return call_kernel(e, &(struct kernel_call){.file = "batchnorm.h",
				      .function = "batchnorm_slope",
				      .turns = n->in[0]->numel,
				      .args = CALL_ARGS(ARG_Y(0), ARG_Y(1), ARG_X(0), ARG_X(1),
					      ARG_DOUBLE(p->epsilon))});
}

/* --- Running statistics: PyTorch's running variance is the unbiased one --- */

static enum status update_infer(struct graph *g, struct node *n)
{
	for (int k = 0; k < 2; k++)
		TRY(data_output(g, n, k, n->in[k]->dtype, 1, n->in[k]->dim));
	return ST_OK;
}

/* One row of statistics, which may be those of all micro-batches, or one for each of them. */
static enum status update_emit(struct emit *e, const struct node *n)
{
	const struct batchnorm *p = n->param;
	const int64_t parts = p->together ? p->together : 1;
	const int old = n->nin > 5 ? 5 : 0; /* of the call before */
	const struct call_arg control = p->together ? batchnorm_control_of_all(n, 4)
						    : batchnorm_control(n, 4);
	return call_kernel(e,
		&(struct kernel_call){.file = "batchnorm.h",
			.function = "batchnorm_update",
			.turns = n->in[0]->dim[0],
			.args = CALL_ARGS(ARG_Y(0), ARG_Y(1), ARG_X(old), ARG_X(old + 1), ARG_X(2),
				ARG_X(3), control, ARG_INT(n->in[2]->numel / n->in[0]->numel),
				ARG_INT(n->in[0]->numel), ARG_REAL(p->momentum),
				ARG_REAL(1 - p->momentum), ARG_DOUBLE(p->epsilon),
				ARG_SIZE(parts * p->rows), ARG_SIZE(p->each ? p->each : 1),
				ARG_SIZE(parts * p->count), ARG_INT(p->population))});
}

/* clang-format off */
#define FORMS {.in = "a,b,c,D b b b b", .low = 0.2, .high = 1.2}, {.in = "7,5 5 5 5 5", .low = 0.2, .high = 1.2}, {.in = "9,70 70 70 70 70", .low = 0.2, .high = 1.2}, \
	{.in = "3,2,17 2 2 2 2", .attr = "epsilon=0.01 momentum=0.7", .low = 0.2, .high = 1.2}, \
	{.in = "3,4,17 4 4 4:data 4:data", .low = 0.2, .high = 1.2}, {.in = "7,5 5 5 5:data 5", .low = 0.2, .high = 1.2}, \
	{.in = "3,4,4,5 4 4 4:data 4:data", .attr = "training_mode=1", .low = 0.2, .high = 1.2}

const struct op_def ops_batchnorm[] = {
	{.name = "BatchNormalization", .traits = OP_COUNTED, .apart = APART_FIRST, .apart_if = batchnorm_apart, .weights = 6, .since = 7, .min_in = 5, .min_out = 1, .max_out = 5,
		.infer = batchnorm_infer, .lower = batchnorm_lower, .example = EXAMPLES(FORMS)},
	{.name = "stint.BatchNormByBatch", .min_in = 3, .infer = form_infer, .lower = by_batch_lower,
		.example = EXAMPLES({.in = "a,b,c,D b b", .low = 0.2, .high = 1.2}, {.in = "5,2 2 2"}, {.in = "600,3:data 3 3"}, {.in = "2,2,9000:data 2 2"},
			{.in = "3,2,5,c,4 8 8", .attr = "block=4", .low = 0.2, .high = 1.2}, {.in = "3,2,20,16 32 32", .attr = "block=16"},
			{.in = "2,2,1100,16:data 32 32", .attr = "block=16"}, {.in = "50,1,40,16:data 16 16", .attr = "block=16"})},
	{.name = "stint.BatchNormByRunning", .min_in = 5, .infer = form_infer, .lower = by_running_lower,
		.example = EXAMPLES({.in = "a,b,c,D b b b:data b:data", .low = 0.2, .high = 1.2}, {.in = "5,2 2 2 2:data 2:data", .low = 0.2, .high = 1.2},
			{.in = "3,2,c,4 8 8 8:data 8:data", .attr = "block=4", .low = 0.2, .high = 1.2})},
	{.name = "stint.BatchNormStats", .narrow_in = 1, .min_in = 2, .max_in = 3, .min_out = 4, .max_out = 4, .infer = stats_infer, .block = batchnorm_block,
		.fold = stats_fold, .grad = batchnorm_stats_rule, .cost = batchnorm_read_cost, .work = 6, .workspace = batchnorm_workspace,
		.emit_c = batchnorm_stats_emit, .emit_cuda = batchnorm_stats_cuda_emit, .workspace_cuda = batchnorm_cuda_workspace,
		.example = EXAMPLES({.in = "a,b,c,D:data b:data"}, {.in = "3,70:data 70:data"}, {.in = "400,65:data 65:data"},
			{.in = "3,2,9001:data 2:data", .low = 0.2, .high = 1.2}, {.in = "700,2,31:data 2:data"}, {.in = "3,2,5,c,4:data 8:data", .attr = "block=4"},
			{.in = "3,2,700,16:data 32:data", .attr = "block=16"}, {.in = "2,2,1100,16:data 32:data", .attr = "block=16"},
			{.in = "50,1,40,16:data 16:data", .attr = "block=16"},
			{.in = "9,4,3:data 4:data =[0,0,5,0]"}, {.in = "9,70:data 70:data =[0,0,1,0]"}, {.in = "700,2,31:data 2:data =[0,0,3,0]"},
			{.in = "3,2,9001:data 2:data =[0,0,2,0]"}, {.in = "400,65:data 65:data =[0,0,399,0]"},
			{.in = "5,2,5,c,4:data 8:data =[0,0,3,0]", .attr = "block=4"}, {.in = "50,1,40,16:data 16:data =[0,0,33,0]", .attr = "block=16"})},
	{.name = "stint.BatchNormSums", .narrow_in = 3, .min_in = 4, .max_in = 6, .min_out = 4, .max_out = 4, .infer = sums_infer, .block = batchnorm_block,
		.cost = batchnorm_read_cost, .work = 4, .workspace = batchnorm_workspace, .emit_c = batchnorm_sums_emit,
		.emit_cuda = batchnorm_sums_cuda_emit, .workspace_cuda = batchnorm_cuda_workspace},
	{.name = "stint.BatchNormSlope", .min_in = 2, .min_out = 2, .max_out = 2, .infer = slope_infer,
		.grad = slope_rule, .work = 20, .emit_c = slope_emit},
	{.name = "stint.Normalise", .min_in = 4, .traits = OP_POINTWISE, .expr = normalise_expr,
		.ref = normalise_ref, .grad = normalise_rule, .work = 3},
	{.name = "stint.NormaliseBy", .min_in = 4, .traits = OP_POINTWISE, .expr = normalise_expr,
		.ref = normalise_ref, .grad = normalise_by_rule, .work = 3},
	{.name = "stint.RowMask", .min_in = 1, .traits = OP_STOP, .infer = mask_infer, .emit_c = mask_emit},
	{.name = "stint.NormaliseGrad", .min_in = 7, .traits = OP_POINTWISE, .expr = normalise_grad_expr,
		.ref = normalise_grad_ref, .work = 5},
	/* The same for the layer's next call in the step, which then overwrites them. */
	{.name = "stint.BatchNormBlend", .min_in = 4, .max_in = 7, .min_out = 2, .max_out = 2,
		.traits = OP_STOP, .infer = update_infer, .emit_c = update_emit},
	{.name = "stint.BatchNormUpdate", .min_in = 4, .max_in = 7, .min_out = 2, .max_out = 2,
		.traits = OP_UPDATE | OP_ONCE, .infer = update_infer, .emit_c = update_emit, .npair = 2,
		.pair = {{0, 0}, {1, 1}}},
	{0},
};
/* clang-format on */
