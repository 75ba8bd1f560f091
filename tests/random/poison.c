/* A NaN or an infinity among the data, and whether a NaN must get to the loss: followed through the
 * nodes by what ONNX says of each operator, not by anything of ours. */
#include <math.h>
#include <string.h>

#include "tests/random/random.h"

/* Those of which some element is NaN where some element of any input is. */
static const char *const passes[] = {"Relu", "LeakyRelu", "Elu", "Selu", "Celu", "Sigmoid", "Tanh",
	"Softplus", "Softsign", "HardSigmoid", "Sin", "Cos", "Erf", "Abs", "Atan", "Neg",
	"HardSwish", "Mish", "Gelu", "PRelu", "Sqrt", "Log", "Reciprocal", "Exp", "Add", "Sub",
	"Mul", "Div", "Max", "Min", "Mean", "Sum", "ReduceMean", "ReduceSum", "ReduceMax",
	"ReduceMin", "ReduceL2", "ReduceL1", "ReduceLogSumExp", "ReduceSumSquare", "ReduceProd",
	"Softmax", "LogSoftmax", "Transpose", "Reshape", "Squeeze", "Unsqueeze", "Expand", "Tile",
	"Concat", "MatMul", "Gemm", "LayerNormalization", "InstanceNormalization",
	"GroupNormalization", "BatchNormalization", "LpNormalization", "GlobalMaxPool",
	"GlobalAveragePool", "DepthToSpace", "SpaceToDepth", "LSTM", "GRU", "RNN",
	"SoftmaxCrossEntropyLoss", NULL};
/* The same of their first input; the others say how. */
static const char *const passes_first[] = {"Clip", "Pow", NULL};

static bool is_one_of(const char *name, const char *const *names)
{
	for (; *names; names++)
		if (!strcmp(name, *names))
			return true;
	return false;
}

/* Names of values, in a row. */
struct marked {
	const char **name; /* the input first */
	size_t n;
};

static bool is_marked(const struct marked *m, const char *name)
{
	for (size_t i = 0; i < m->n; i++)
		if (!strcmp(m->name[i], name))
			return true;
	return false;
}

static bool gets_through(const struct marked *m, const Onnx__NodeProto *n)
{
	size_t most = is_one_of(n->op_type, passes)         ? n->n_input
		      : is_one_of(n->op_type, passes_first) ? 1
							    : 0;
	for (size_t i = 0; i < most; i++)
		if (is_marked(m, n->input[i]))
			return true;
	return false;
}

/* Where a NaN in `input` gets to. */
static struct marked follow(struct generator *g, const char *input)
{
	const Onnx__GraphProto *graph = &g->t->graph;
	struct marked m = {ARENA_ARRAY(g->t->arena, const char *, graph->n_node + 1), 1};
	m.name[0] = input;
	for (size_t i = 0; i < graph->n_node; i++)
		if (gets_through(&m, graph->node[i]))
			m.name[m.n++] = graph->node[i]->output[0];
	return m;
}

/* Some of the values on the way become outputs, each of them evidence of the nodes before it. */
static void watch(struct generator *g, const struct marked *m)
{
	struct poison *p = &g->poison;
	for (size_t i = 1; i < m->n && p->nstation < STATIONS; i++) {
		bool already = false;
		for (size_t o = 0; o < g->t->graph.n_output; o++)
			already |= !strcmp(g->t->graph.output[o]->name, m->name[i]);
		if (already || !draw_chance(g, 0.6))
			continue;
		model_output(g->t, m->name[i]);
		p->station[p->nstation++] = m->name[i];
	}
}

void add_poison(struct generator *g)
{
	const double values[] = {NAN, NAN, NAN, INFINITY, -INFINITY};
	const char *real[FEEDS];
	int n = 0;
	for (int k = 0; k < g->nfeed; k++)
		if (g->feed[k].range == 0)
			real[n++] = g->feed[k].name;
	if (!n || !draw_chance(g, 0.15))
		return;
	struct poison *p = &g->poison;
	p->input = real[draw_below(g, n)];
	p->value = values[draw_below(g, sizeof values / sizeof *values)];
	if (!isnan(p->value))
		return;
	struct marked m = follow(g, p->input);
	for (int k = 0; k < n && !p->arrives; k++) { /* preferably one whose end is known */
		struct marked way = follow(g, real[k]);
		p->arrives = is_marked(&way, g->loss_output);
		if (p->arrives) {
			p->input = real[k];
			m = way;
		}
	}
	watch(g, &m);
}
