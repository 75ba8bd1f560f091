/* Muon with PyTorch's names, defaults and formula (torch.optim.Muon's algorithm box): a matrix goes
 * along its momentum made nearly orthogonal, by an iteration of products that are nodes as others,
 * with their values in the arena. PyTorch rounds these to bf16; here they are as precise as the
 * step's other products.
 *
 * PyTorch takes matrices alone, and leaves the rest to another optimizer, as which AdamW is usual:
 * here that is done for parameters of another rank, and for those of a group with use_muon=0. */
#include <math.h>

#include "ops/optimizer/update_op.h"

static const double usual[] = {3.4445, -4.7750, 2.0315};
enum { NCOEFFICIENT = sizeof usual / sizeof *usual };

/* --- The momentum and the direction; the first node, which reads the gradient. --- */

static enum status muon_infer(struct graph *g, struct node *n)
{
	const struct attr *list = node_attr(n, "ns_coefficients");
	const double steps = node_option(n, "ns_steps");
	if (list && list->n != NCOEFFICIENT)
		return node_fail(g, n, "for example ns_coefficients=3.4445;-4.7750;2.0315",
			"ns_coefficients are %d numbers, not %d", (int)NCOEFFICIENT, list->n);
	if (steps != floor(steps))
		return node_fail(g, n, NULL, "ns_steps is a whole number, not %g", steps);
	return update_infer(g, n);
}

static enum status muon_emit(struct emit *e, const struct node *n)
{
	const struct call_struct option = {"struct muon", "o",
		CALL_FIELDS({"momentum", ARG_REAL(node_option(n, "momentum"))},
			{"rest", ARG_REAL(1 - node_option(n, "momentum"))},
			{"nesterov", ARG_INT(node_option(n, "nesterov") != 0)},
			{"key", ARG_SIZE(op_state_key(n))})};
	return call_kernel(e, &(struct kernel_call){.file = "muon.h",
				      .function = "muon_direction",
				      .turns = n->out[0]->numel,
				      .work = (double)n->out[0]->numel * 4,
				      .args = CALL_ARGS(ARG_Y(0), ARG_Y(1), ARG_X(GRAD),
					      ARG_SIZE(n->out[0]->numel), ARG_X(CONTROL),
					      ARG_X(STATE0), ARG_STRUCT(&option))});
}

/* --- A matrix over its norm --- */

enum { PART = 1024 }; /* GRADIENT_PART (kernels/gradients.h) */

static int64_t normal_workspace(const struct node *n, const struct target *t)
{
	(void)t;
	return (1 + div_up(n->in[0]->numel, PART)) * (int64_t)sizeof(double);
}

static enum status normal_emit(struct emit *e, const struct node *n)
{
	const int64_t numel = n->in[0]->numel, parts = div_up(numel, PART);
	const int64_t first = (int64_t)sizeof(double);
	TRY(call_kernel(
		e, &(struct kernel_call){.file = "gradients.h",
			   .function = "square_parts",
			   .turns = parts,
			   .work = (double)numel * 2,
			   .args = CALL_ARGS(ARG_SCRATCH(first), ARG_X(0), ARG_SIZE(numel))}));
	TRY(call_kernel(e, &(struct kernel_call){.file = "muon.h",
				   .function = "muon_factor",
				   .once = true,
				   .args = CALL_ARGS(ARG_SCRATCH(0), ARG_SCRATCH(first),
					   ARG_SIZE(parts), ARG_DOUBLE(node_float(n, "eps", 0)))}));
	return call_kernel(e, &(struct kernel_call){.file = "muon.h",
				      .function = "muon_scale",
				      .turns = numel,
				      .work = (double)numel,
				      .args = CALL_ARGS(ARG_Y(0), ARG_X(0), ARG_SCRATCH(0))});
}

/* --- The iteration --- */

POINTWISE_OPT2(muon_mix, first, second, first *a + second * b)

static struct tensor *product(struct graph *g, struct tensor *a, bool ta, struct tensor *b, bool tb)
{
	const struct attr attr[] = {ATTR_I("transA", ta), ATTR_I("transB", tb)};
	return graph_op(g, "stint.MatMul", 2, (struct tensor *[]){a, b}, 2, attr);
}

static struct tensor *mix(
	struct graph *g, double first, struct tensor *a, double second, struct tensor *b)
{
	const struct attr attr[] = {ATTR_F("first", first), ATTR_F("second", second)};
	return graph_op(g, "stint.MuonMix", 2, (struct tensor *[]){a, b}, 2, attr);
}

/* x, a matrix over its norm, nearer to orthogonal: aX + (bG + cGG)X of G = X Xᵀ; of a tall matrix
 * the same of its transpose, without making that. */
static struct tensor *iterate(struct graph *g, struct tensor *x, const double *k)
{
	const bool tall = x->dim[0] > x->dim[1];
	struct tensor *gram = product(g, x, tall, x, !tall);
	struct tensor *by = gram ? mix(g, k[1], gram, k[2], product(g, gram, false, gram, false))
				 : NULL;
	return by ? mix(g, k[0], x, 1,
			    tall ? product(g, x, false, by, true) : product(g, by, false, x, false))
		  : NULL;
}

/* --- The parameter --- */

enum { ORIGINAL, MATCH_RMS_ADAMW, SPECTRAL_UNCLAMPED };

/* PyTorch's adjust_lr_fn. */
static double ratio_of(const struct node *n, const struct graph *g, const struct tensor *param)
{
	const bool turned = update_is_turned(g, param);
	const double rows = (double)param->dim[turned], columns = (double)param->dim[!turned];
	switch ((int)node_option(n, "adjust_lr_fn")) {
	case MATCH_RMS_ADAMW:
		return 0.2 * sqrt(fmax(rows, columns));
	case SPECTRAL_UNCLAMPED:
		return sqrt(rows / columns);
	default:
		return sqrt(fmax(1, rows / columns));
	}
}

/* The attributes of the last node: the decay, the ratio, the average's. */
static enum status build_step(struct graph *g, const struct update_of *u, const struct node *first,
	struct tensor *direction)
{
	struct update_of end = *u;
	struct attr attr[3] = {ATTR_F("weight_decay", node_option(first, "weight_decay")),
		ATTR_F("ratio", ratio_of(first, g, u->param))};
	struct node *n;
	if (u->averaged)
		attr[2] = *node_attr(first, OP_AVERAGE);
	end.read[GRAD] = direction;
	end.nattr = u->averaged ? 3 : 2;
	end.attr = attr;
	return graph_update(g, op_index_find(g->index, "stint.MuonStep", g->opset), &end, &n);
}

static enum status muon_build(struct graph *g, const struct op_def *op, const struct update_of *u)
{
	const struct node given = {.op = op, .nattr = u->nattr, .attr = u->attr};
	const struct attr *list = node_attr(&given, "ns_coefficients");
	const double *k = list && list->n == NCOEFFICIENT ? list->floats : usual;
	const struct attr eps = ATTR_F("eps", node_option(&given, "eps"));
	struct update_of begin = *u;
	struct node *first;
	if (u->param->rank != 2 || u->param->numel == 0 || node_option(&given, "use_muon") == 0)
		return update_as_adamw(g, op, u, "adamw_eps");
	begin.averaged = false;
	TRY(graph_update(g, op, &begin, &first));
	struct tensor *x = graph_op(g, "stint.MuonNormal", 1, first->out, 1, &eps);
	for (int i = 0; x && i < (int)node_option(&given, "ns_steps"); i++)
		x = iterate(g, x, k);
	return x ? build_step(g, u, first, x) : g->failed;
}

static const struct op_option muon_options[] = {RATE(1e-3), DECAY(0.1), POSITIVE("momentum", 0.95),
	SWITCH("nesterov", 1), {.name = "ns_coefficients", .list = true}, POSITIVE("eps", 1e-7),
	{.name = "ns_steps", .value = 5, .high = 99},
	{.name = "adjust_lr_fn", .words = "original match_rms_adamw spectral_unclamped"},
	SWITCH("use_muon", 1), BETAS(0.9, 0.999), POSITIVE("adamw_eps", 1e-8), {.name = NULL}};
static const struct op_option mix_options[] = {
	{.name = "first", .value = 1}, {.name = "second", .value = 1}, {.name = NULL}};
static const struct op_option step_options[] = {
	DECAY(0), {.name = "ratio", .value = 1}, {.name = NULL}};
static const struct op_state none[] = {{.name = NULL}};

const struct op_def ops_muon[] = {
	{UPDATE("stint.MuonUpdate", 0, muon_infer, muon_emit, muon_options, "muon",
		 STATES({.name = "momentum_buffer"}), .build = muon_build),
		.npair = 1, .pair = {{1, STATE0}}},
	{.name = "stint.MuonNormal",
		.min_in = 1,
		.traits = OP_STOP,
		.infer = data_infer_like,
		.work = 3,
		.workspace = normal_workspace,
		.npair = 1,
		.pair = {{0, 0}},
		.emit_c = normal_emit},
	{.name = "stint.MuonMix",
		.min_in = 2,
		.traits = OP_POINTWISE | OP_STOP,
		.expr = muon_mix_expr,
		.ref = muon_mix_ref,
		.option = mix_options},
	{UPDATE("stint.MuonStep", 0, update_infer, update_emit, step_options, NULL, none,
		 ONCE({"rate", "lr * ratio"}), EACH({"p", "p - rate * g"}), .decoupled = true),
		UPDATE_PAIRS, .role = ROLE_UPDATE_END},
	{0},
};
