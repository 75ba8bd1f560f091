/* Losses that are a sum over elements, by PyTorch's names and formulas (torch.nn.L1Loss, MSELoss,
 * ...). What counts are the batch's valid rows: control[2] says how many of axis 0 (training: all).
 * Terms are added up 1024 at a time in lanes, these sums in double, so that threads do not matter.
 */
#include <inttypes.h>

#include "ops/labels.h"
#include "ops/rows.h"

/* The term of an element, x of the output and t of the target, and its derivative by x; a loss's
 * options stand by their names. Like PyTorch: |x|' is 0 at 0; the logarithms of bce are at least
 * -100, and its derivative's divisor at least 1e-12; what is 0 log 0 is 0. Written so that no
 * exponential overflows where the term does not. */
static const struct elementwise {
	const char *op, *value, *slope;
} elementwise[] = {
	{"stint.Mse", "d * d", "2 * d"},
	{"stint.L1", "FABS(d)", "(d > 0) - (d < 0)"},
	{"stint.SmoothL1", "FABS(d) < beta ? R(0.5) * d * d / beta : FABS(d) - R(0.5) * beta",
		"FABS(d) >= beta ? (d > 0) - (d < 0) : d / beta"},
	{"stint.Huber", "FABS(d) < delta ? R(0.5) * d * d : delta * (FABS(d) - R(0.5) * delta)",
		"FABS(d) >= delta ? (d > 0 ? delta : -delta) : d"},
	{"stint.Bce", "(t - 1) * MAX(R(-100.0), LOG1P(-x)) - t * MAX(R(-100.0), LOG(x))",
		"d / MAX((1 - x) * x, R(1e-12))"},
	{"stint.BceWithLogits",
		"(1 - t) * x + (1 + (pos_weight - 1) * t) * (MAX(-x, 0) + LOG1P(EXP(-FABS(x))))",
		"1 - t - (1 + (pos_weight - 1) * t) / (1 + EXP(x))"},
	{"stint.KlDiv", "log_target != 0 ? EXP(t) * (t - x) : (t == 0 ? 0 : t * LOG(t)) - t * x",
		"log_target != 0 ? -EXP(t) : -t"},
	{"stint.SoftMargin", "MAX(-t * x, 0) + LOG1P(EXP(-FABS(t * x)))", "-t / (1 + EXP(t * x))"},
	{"stint.HingeEmbedding", "(t != 1 ? MAX(0, margin - x) : 0) + (t != -1 ? x : 0)",
		"(t != 1 && x <= margin ? -1 : 0) + (t != -1 ? 1 : 0)"},
	{"stint.PoissonNll",
		"(log_input != 0 ? EXP(x) - t * x : x - t * LOG(x + eps))\n\t\t\t\t\t"
		"+ (full != 0 && t > 1 ? t * LOG(t) - t + R(0.5) * LOG(R(6.283185307179586) * t) "
		": 0)",
		"log_input != 0 ? EXP(x) - t : 1 - t / (x + eps)"},
};

/* The formulas of a loss, or of its gradient: "stint.MseGrad". */
static const struct elementwise *formula(const struct node *n)
{
	for (const struct elementwise *f = elementwise;; f++) {
		size_t len = strlen(f->op);
		const char *rest = n->op->name + len;
		if (!strncmp(f->op, n->op->name, len) && (!*rest || !strcmp(rest, "Grad")))
			return f;
	}
}

static bool is_part_of_name(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

/* Whether a text has this word. */
static bool mentions(const char *text, const char *word)
{
	const size_t len = strlen(word);
	for (const char *p = text; (p = strstr(p, word)); p++)
		if ((p == text || !is_part_of_name(p[-1])) && !is_part_of_name(p[len]))
			return true;
	return false;
}

/* How terms are put together: kl-div has a word of its own in place of `none`. */
enum { BATCH_MEAN = NONE };

static const char *divisor(const struct node *n)
{
	const int reduction = (int)node_option(n, "reduction");
	return reduction == MEAN ? "n" : reduction == SUM ? "1" : "valid";
}

static enum status scalar_infer(struct graph *g, struct node *n)
{
	if (n->in[0]->numel == 0 || n->in[0]->rank == 0 || !tensor_same_shape(n->in[0], n->in[1]))
		return node_fail(g, n, NULL, "output and target differ in shape, or are empty");
	return data_output(g, n, 0, n->in[0]->dtype, 0, NULL);
}

static enum status like_second(struct graph *g, struct node *n)
{
	return data_output(g, n, 0, n->in[1]->dtype, n->in[1]->rank, n->in[1]->dim);
}

/* An exponential counts as 20 operations. */
static struct op_cost loss_cost(const struct node *n)
{
	const struct tensor *x = n->in[n->out[0]->rank ? 1 : 0]; /* the model's output */
	const char *text = formula(n)->value;
	const bool dear = strstr(text, "EXP") || strstr(text, "LOG");
	struct op_cost c = {(dear ? 25 : 4) * (double)x->numel, (double)tensor_bytes(n->out[0])};
	for (int i = 0; i < n->nin; i++)
		c.bytes += (double)tensor_bytes(n->in[i]);
	return c;
}

enum { CHUNK = 1024 };

static int64_t sum_workspace(const struct node *n, const struct target *t)
{
	(void)t;
	return (n->in[0]->numel + CHUNK - 1) / CHUNK * 8;
}

/* Options, and how many elements count. */
static void emit_head(struct emit *e, const struct node *n, const struct tensor *x,
	const char *text, const char *control)
{
	char buf[40];
	for (const struct op_option *o = n->op->option; o && o->name; o++)
		if (mentions(text, o->name))
			emit(e, "\tconst real %s = %s;\n", o->name,
				emit_real(e, node_option(n, o->name), buf));
	emit_valid(e, x->dim[0], control);
	emit(e, "\tconst int64_t n = valid * %" PRId64 ";\n", x->numel / x->dim[0]);
}

/* What a text speaks of: "const real x = X, t = T, d = x - t;" as far as needed. */
static void emit_names(
	struct emit *e, const char *tabs, const char *text, const char *x, const char *t)
{
	const bool d = mentions(text, "d");
	if (d || mentions(text, "x"))
		emit(e, "%sconst real x = %s;\n", tabs, x);
	if (d || mentions(text, "t"))
		emit(e, "%sconst real t = %s;\n", tabs, t);
	if (d)
		emit(e, "%sconst real d = x - t;\n", tabs);
}

/* A warp has a chunk; then one block the chunks. */
static void sum_emit_cuda(struct emit *e, const struct node *n)
{
	const char *value = formula(n)->value;
	const int64_t chunks = (n->in[0]->numel + CHUNK - 1) / CHUNK;
	block_sums_helper(e);
	emit_head(e, n, n->in[0], value, "x2");
	emit_launch(e, (chunks + 7) / 8, 256);
	emit(e, "\tdouble *const part = ws;\n");
	emit(e, "\tfor (int64_t p = THREAD / 32; p < %" PRId64 "; p += THREADS / 32) {\n", chunks);
	emit(e, "\t\tconst int64_t end = MIN(p * %d + %d, n);\n\t\treal sum = 0;\n", CHUNK, CHUNK);
	emit(e, "\t\tfor (int64_t i = p * %d + threadIdx.x %% 32; i < end; i += 32) {\n", CHUNK);
	emit_names(e, "\t\t\t", value, "x0[i]", "x1[i]");
	emit(e, "\t\t\tsum += %s;\n\t\t}\n", value);
	emit(e, "\t\tconst double all = warp_sum((double)sum);\n");
	emit(e, "\t\tif (threadIdx.x %% 32 == 0)\n\t\t\tpart[p] = all;\n\t}\n");
	emit_stage(e);
	emit_head(e, n, n->in[0], "", "x2");
	emit_launch(e, 1, 256);
	emit(e, "\t__shared__ double wides[BLOCK_WARPS];\n");
	emit(e, "\tconst double *const part = ws;\n\tdouble total = 0;\n");
	emit(e, "\tfor (int64_t p = threadIdx.x; p < (n + %d) / %d; p += 256)\n", CHUNK - 1, CHUNK);
	emit(e, "\t\ttotal += part[p];\n\ttotal = block_sum(total, wides);\n");
	emit(e, "\tif (threadIdx.x == 0)\n\t\ty0[0] = (real)(total / (double)%s);\n", divisor(n));
}

static enum status sum_emit(struct emit *e, const struct node *n)
{
	const char *value = formula(n)->value;
	if (e->g->target->cuda) {
		sum_emit_cuda(e, n);
		return ST_OK;
	}
	emit_head(e, n, n->in[0], value, "x2");
	emit(e, "\tdouble *part = ws, total = 0;\n");
	const int64_t most = n->in[0]->numel;
	emit_loops(e, (double)most * 4, 1, &(struct emit_loop){"p", (most + CHUNK - 1) / CHUNK, 1});
	emit(e, " {\n\t\tconst int64_t end = MIN(p * %d + %d, n);\n", CHUNK, CHUNK);
	emit(e, "\t\tint64_t i = p * %d;\n\t\treal lane[16] = {0};\n", CHUNK);
	emit(e, "\t\tfor (; i + 16 <= end; i += 16)\n\t\t\tfor (int k = 0; k < 16; k++) {\n");
	emit_names(e, "\t\t\t\t", value, "x0[i + k]", "x1[i + k]");
	emit(e, "\t\t\t\tlane[k] += %s;\n\t\t\t}\n", value);
	emit(e, "\t\tfor (int k = 0; i < end; i++, k++) {\n");
	emit_names(e, "\t\t\t", value, "x0[i]", "x1[i]");
	emit(e, "\t\t\tlane[k] += %s;\n\t\t}\n", value);
	emit(e, "\t\tpart[p] = (double)sum_lanes(lane, 16);\n\t}\n");
	emit(e, "\tfor (int64_t p = 0; p < (n + %d) / %d; p++)\n\t\ttotal += part[p];\n", CHUNK - 1,
		CHUNK);
	emit(e, "\ty0[0] = (real)(total / (double)%s);\n", divisor(n));
	return ST_OK;
}

/* The target is given, never computed. */
static enum status loss_rule(struct graph *g, const struct node *n, struct tensor *const *dy,
	const bool *want, struct tensor **dx)
{
	const char *name = arena_printf(g->arena, "%sGrad", n->op->name);
	if (!name)
		return diag_nomem(g->diag);
	if (want[1])
		return node_fail(g, n, NULL, "has no gradient of its target");
	dx[0] = graph_op(g, name, 4, (struct tensor *[]){dy[0], n->in[0], n->in[1], n->in[2]},
		n->nattr, n->attr);
	return g->failed;
}

static enum status grad_emit(struct emit *e, const struct node *n)
{
	const struct tensor *x = n->in[1];
	const char *slope = formula(n)->slope;
	emit_head(e, n, x, slope, "x3");
	emit(e, "\tconst real scale = x0[0] / (real)%s;\n", divisor(n));
	emit_loops(e, (double)x->numel * 4, 1, &(struct emit_loop){"i", x->numel, 1});
	emit(e, " {\n");
	emit_names(e, "\t\t", slope, "x1[i]", "x2[i]");
	emit(e, "\t\ty0[i] = i < n ? scale * (%s) : 0;\n\t}\n", slope);
	return ST_OK;
}

#define OPTIONS(...) ((const struct op_option[]){__VA_ARGS__, {.name = NULL}})
#define ALL_ROWS " =[0,0,1000000,0]"

/* A loss and its gradient. */
#define LOSS(ours, spec, options, ...)                                                             \
	{.name = ours,                                                                             \
		.min_in = 3,                                                                       \
		.max_in = 3,                                                                       \
		.infer = scalar_infer,                                                             \
		.cost = loss_cost,                                                                 \
		.workspace = sum_workspace,                                                        \
		.emit_c = sum_emit,                                                                \
		.grad = loss_rule,                                                                 \
		.loss = spec,                                                                      \
		.loss_target = same_target,                                                        \
		.option = options,                                                                 \
		.example = EXAMPLES(__VA_ARGS__)},                                                 \
	{                                                                                          \
		.name = ours "Grad", .min_in = 4, .max_in = 4, .infer = like_second,               \
		.cost = loss_cost, .npair = 1, .pair = {{0, 1}}, .emit_c = grad_emit,              \
		.option = options                                                                  \
	}

#define ABOVE_0 0x1p-1022
#define PLAIN OPTIONS(REDUCTION)

/* clang-format off */
#define REAL(which, v) {.name = which, .value = v}
#define POSITIVE(which, v, least) {.name = which, .value = v, .low = least, .high = HUGE_VAL}
#define SWITCH(which, v) {.name = which, .value = v, .high = 1}

const struct op_def ops_loss[] = {
	LOSS("stint.Mse", "mse", PLAIN, {.in = "a,B a,B" ALL_ROWS}, {.in = "4,33,17 4,33,17 =[0,0,3,0]"},
		{.in = "4,3 4,3 =[0,0,3,0]", .attr = "reduction=sum"}),
	LOSS("stint.L1", "l1", PLAIN, {.in = "a,B a,B" ALL_ROWS},
		{.in = "4,33,17 4,33,17 =[0,0,3,0]", .attr = "reduction=sum"}),
	LOSS("stint.SmoothL1", "smooth-l1", OPTIONS(POSITIVE("beta", 1, 0), REDUCTION),
		{.in = "a,B a,B" ALL_ROWS}, {.in = "4,33 4,33" ALL_ROWS, .attr = "beta=0.3 reduction=sum"},
		{.in = "4,33 4,33" ALL_ROWS, .attr = "beta=0"}),
	LOSS("stint.Huber", "huber", OPTIONS(POSITIVE("delta", 1, ABOVE_0), REDUCTION),
		{.in = "a,B a,B" ALL_ROWS}, {.in = "4,33 4,33" ALL_ROWS, .attr = "delta=0.3 reduction=sum"}),
	LOSS("stint.Bce", "bce", PLAIN, {.in = "a,B a,B" ALL_ROWS, .low = 0.1, .high = 0.9},
		{.in = "2,3 2,3" ALL_ROWS, .attr = "reduction=sum", .low = 0.01, .high = 0.99}),
	LOSS("stint.BceWithLogits", "bce-with-logits", OPTIONS(REAL("pos_weight", 1), REDUCTION),
		{.in = "a,B a,B" ALL_ROWS, .low = -0.9, .high = 0.9},
		{.in = "4,3 4,3 =[0,0,3,0]", .attr = "pos_weight=2.5 reduction=sum", .low = -8, .high = 8}),
	LOSS("stint.KlDiv", "kl-div", OPTIONS(SWITCH("log_target", 0), {.name = "reduction", .words = "mean sum batchmean"}),
		{.in = "a,B a,B" ALL_ROWS, .low = 0.1, .high = 0.9},
		{.in = "4,3 4,3 =[0,0,3,0]", .attr = "reduction=sum log_target=1"},
		{.in = "4,3 4,3 =[0,0,3,0]", .attr = "reduction=batchmean log_target=1"}),
	LOSS("stint.SoftMargin", "soft-margin", PLAIN, {.in = "a,B a,B" ALL_ROWS},
		{.in = "4,3 4,3 =[0,0,3,0]", .attr = "reduction=sum", .low = -5, .high = 5}),
	LOSS("stint.HingeEmbedding", "hinge-embedding", OPTIONS(REAL("margin", 1), REDUCTION),
		{.in = "a,B a,B" ALL_ROWS, .low = -2, .high = 2},
		{.in = "4,3 4,3 =[0,0,3,0]", .attr = "margin=0.4 reduction=sum"}),
	LOSS("stint.PoissonNll", "poisson-nll", OPTIONS(SWITCH("log_input", 1), SWITCH("full", 0),
			POSITIVE("eps", 1e-8, 0), REDUCTION),
		{.in = "a,B a,B" ALL_ROWS, .high = 3}, {.in = "4,3 4,3" ALL_ROWS, .attr = "full=1", .low = 0.1, .high = 3},
		{.in = "4,3 4,3 =[0,0,3,0]", .attr = "log_input=0 eps=0.1 reduction=sum", .low = 0.1, .high = 3}),
	{0},
};
/* clang-format on */
