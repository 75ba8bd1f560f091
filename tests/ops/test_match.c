/* Composite operators that exporters spell out are recognised, and what only looks like one is not.
 * A program is a list of "Op result operand operand": operands are earlier results, x (an input of
 * shape [2, 3, 8]), i (integers of that shape), l (integers, [2, 3, 1]), z (zeros of that shape), s
 * and b (parameters of shape [8]), p ([3, 8]), c and d ([3, 1]), ones and zeros ([3]), numbers,
 * numbers that fill a vector ("1*3") or lists of whole numbers ("[2,-1]"); an operator's attributes
 * stand behind it
 * ("Cast/to=1"); the last result is the model's output. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "graph/pass.h"
#include "ops/ops.h"

struct program {
	const char *name, *text;
	const char *lowered; /* the operators left */
};

enum { RESULTS = 32 };

struct machine {
	struct graph *g;
	int n;
	const char *name[RESULTS];
	struct tensor *value[RESULTS];
};

static void define(struct machine *m, const char *name, struct tensor *t)
{
	assert_non_null(t);
	assert_in_range(m->n, 0, RESULTS - 1);
	m->name[m->n] = name;
	m->value[m->n++] = t;
}

/* "2,-1]" */
static struct tensor *list(struct machine *m, const char *text)
{
	int64_t *v = ARENA_ARRAY(m->g->arena, int64_t, RANK_MAX);
	int n = 0;
	for (char *end; *text && n < RANK_MAX; text = *end ? end + 1 : end)
		v[n++] = strtoll(text, &end, 10);
	return graph_ints(m->g, n, v);
}

static struct tensor *operand(struct machine *m, const char *word)
{
	for (int i = m->n - 1; i >= 0; i--)
		if (!strcmp(m->name[i], word))
			return m->value[i];
	char *end;
	if (*word == '[')
		return list(m, word + 1);
	double v = strtod(word, &end);
	int64_t n = *end == '*' ? strtoll(end + 1, &end, 10) : 0;
	assert_true(*word && !*end);
	if (n == 0)
		return graph_scalar(m->g, v);
	float *data = ARENA_ARRAY(m->g->arena, float, n);
	for (int64_t i = 0; i < n; i++)
		data[i] = (float)v;
	return graph_constant(m->g, "filled", DT_F32, 1, &n, data);
}

/* "/alpha=0.5/to=1": how many. */
static int attributes(char *text, struct attr *attr)
{
	int n = 0;
	for (char *word, *rest = text; (word = strtok_r(rest, "/", &rest)); n++) {
		char *value = strchr(word, '=');
		assert_non_null(value);
		*value++ = 0;
		attr[n] = strchr(value, '.') ? ATTR_F(word, strtod(value, NULL))
					     : ATTR_I(word, strtoll(value, NULL, 10));
	}
	return n;
}

static void run_line(struct machine *m, char *line)
{
	static const int64_t last[] = {-1}, two[] = {-2, -1};
	char *rest = line, *op = strtok_r(rest, " ", &rest), *result = strtok_r(rest, " ", &rest);
	struct tensor *in[4];
	int nin = 0;
	for (char *w; nin < 4 && (w = strtok_r(rest, " ", &rest));)
		in[nin++] = operand(m, w);
	struct attr attr[4];
	char *slash = strchr(op, '/');
	int nattr = slash ? attributes(slash + 1, attr) : 0;
	if (slash)
		*slash = 0;
	if (!strncmp(op, "ReduceMean", 10) && nin == 1) {
		bool both = op[10] == '2';
		attr[nattr++] = ATTR_IS("axes", both ? 2 : 1, both ? two : last);
		op[10] = 0;
	}
	struct node *n;
	assert_int_equal(graph_node(m->g, op, NULL, nin, in, 0, nattr, attr, NULL, &n), ST_OK);
	define(m, result, n->out[0]);
}

static struct tensor *parameter(struct machine *m, const char *name, int rank, const int64_t *dim)
{
	struct tensor *t = graph_tensor(m->g, name, DT_F32, rank, dim);
	define(m, name, t);
	t->role = TR_PARAMETER;
	t->from_model = true;
	return t;
}

static void print(void *user, enum diag_level level, const struct where *w, const char *message,
	const char *hint)
{
	(void)user, (void)level, (void)hint;
	print_message("%s: %s\n", w && w->node ? w->node : "", message);
}

static void test_program(void **state)
{
	const struct program *p = *state;
	const struct target target = {.portable = true, .threads = 1};
	struct diag d = {.put = print};
	struct arena *a = arena_new();
	struct machine m = {.g = graph_new(a, &d, "test", ops_table(), &target, DT_F32)};
	static const int64_t shape[] = {2, 3, 8}, rows[] = {2, 3, 1};
	static const float nothing[48];
	struct tensor *in[] = {graph_tensor(m.g, "x", DT_F32, 3, shape),
		graph_tensor(m.g, "i", DT_I64, 3, shape), graph_tensor(m.g, "l", DT_I64, 3, rows)};
	define(&m, "x", in[0]);
	define(&m, "i", in[1]);
	define(&m, "l", in[2]);
	define(&m, "z", graph_constant(m.g, "z", DT_F32, 3, shape, nothing));
	in[0]->role = in[1]->role = in[2]->role = TR_INPUT;
	m.g->ninput = 3;
	m.g->input = in;
	parameter(&m, "s", 1, (const int64_t[]){8});
	parameter(&m, "b", 1, (const int64_t[]){8});
	parameter(&m, "p", 2, (const int64_t[]){3, 8});
	parameter(&m, "c", 2, (const int64_t[]){3, 1});
	parameter(&m, "d", 2, (const int64_t[]){3, 1});
	static const float ones[] = {1, 1, 1}, zeros[3];
	parameter(&m, "ones", 1, (const int64_t[]){3})->data = ones;
	parameter(&m, "zeros", 1, (const int64_t[]){3})->data = zeros;
	char *rest = arena_strdup(a, p->text);
	for (char *line; (line = strtok_r(rest, ";", &rest));)
		run_line(&m, line);
	m.g->noutput = 1;
	m.g->output = &m.value[m.n - 1];
	struct graph *out;
	const struct lower_options eval = {.mode = LOWER_EVAL};
	assert_int_equal(graph_lower(m.g, &eval, &out), ST_OK);
	struct text found = {0};
	for (int i = 0; i < out->nnode; i++)
		text_add(&found, "%s%s", i ? " " : "", out->node[i]->op->name);
	assert_string_equal(found.s, p->lowered);
	assert_string_equal(out->output[0]->name, m.g->output[0]->name);
	text_free(&found);
	arena_free(a);
}

#define NORM                                                                                       \
	"ReduceMean m x; Sub d x m; Pow q d 2; ReduceMean v q; Add e v 1e-5; Sqrt r e; Div n d r"

static const struct program programs[] = {
	{"softmax of tf2onnx",
		"ReduceSum t x [-1]; Sub z x t; Exp e z; ReduceSum s e [-1]; "
		"Div y e s",
		"Softmax"},
	{"softmax of tf2onnx, shapes given back",
		"ReduceSum/keepdims=0 t x [1]; Reshape u t [2,1,8]; Expand v u [2,3,8]; Sub z x v; "
		"Exp e z; ReduceSum/keepdims=0 s e [1]; Reshape r s [2,1,8]; Expand f r [2,3,8]; "
		"Div y e f",
		"Softmax"},
	{"softmax of what less than the axis was taken from",
		"Sub z x p; Exp e z; ReduceSum s e [1]; Div y e s", "Sub Softmax"},
	{"no softmax: a sum over two axes", "Exp e x; ReduceSum s e [1,2]; Div y e s",
		"Exp ReduceSum Div"},
	{"no softmax: the sum of something else", "Exp e x; ReduceSum s x [1]; Div y e s",
		"Exp ReduceSum Div"},
	{"GELU of the older exporter",
		"Div a x 1.4142135381698608; Erf e a; Add c e 1; Mul m x c; Mul y m 0.5",
		"stint.Gelu"},
	{"GELU of the newer exporter",
		"Div a x 1.4142135381698608; Erf e a; Add c e 1; Mul h 0.5 c; Mul y x h",
		"stint.Gelu"},
	{"GELU written with a product",
		"Mul h 0.5 x; Mul a 0.70710678 x; Erf e a; Add c 1 e; Mul y c h", "stint.Gelu"},
	{"GELU, halved by a quotient",
		"Mul a x 0.70710678; Erf e a; Add c e 1; Mul m c x; Div y m 2", "stint.Gelu"},
	{"GELU with casts",
		"Cast/to=1 h x; Div a h 1.4142135381698608; Erf e a; Cast/to=10 k e; Add c k 1; "
		"Mul m x c; Cast/to=1 f m; Mul y f 0.5",
		"stint.Gelu"},
	{"another factor", "Div a x 1.4142135; Erf e a; Add c e 1; Mul m x c; Mul y m 0.6",
		"Div Erf Add Mul Mul"},
	{"another argument", "Div a x 1.5; Erf e a; Add c e 1; Mul m x c; Mul y m 0.5",
		"Div Erf Add Mul Mul"},
	{"another tensor", "Div a x 1.4142135; Erf e a; Add c e 1; Mul m s c; Mul y m 0.5",
		"Div Erf Add Mul Mul"},
	{"tanh GELU of the older exporter",
		"Mul a x x; Mul c x a; Mul k 0.044714998453855515 c; Add u x k; "
		"Mul z 0.7978845834732056 u; Tanh t z; Add w 1 t; Mul m x w; Mul y 0.5 m",
		"stint.GeluTanh"},
	{"tanh GELU of the newer exporter",
		"Pow c x 3; Mul k 0.044714998453855515 c; Add u x k; Mul z 0.7978845834732056 u; "
		"Tanh t z; Add w t 1; Mul h 0.5 w; Mul y x h",
		"stint.GeluTanh"},
	{"tanh GELU as GPT-2 writes it",
		"Mul h x 0.5; Pow c x 3; Mul k c 0.044715; Add u k x; Mul z u 0.79788456; "
		"Tanh t z; Add w t 1; Mul y h w",
		"stint.GeluTanh"},
	{"a square in place of the cube",
		"Pow c x 2; Mul k 0.044715 c; Add u x k; Mul z 0.79788456 u; Tanh t z; "
		"Add w t 1; Mul h 0.5 w; Mul y x h",
		"Mul Mul Add Mul Tanh Add Mul Mul"},
	{"accumulation by the older exporter", "Exp u x; ScatterElements t z i x; Add y u t",
		"Exp ScatterElements"},
	{"accumulation, turned round", "Exp u x; ScatterElements t z i x; Add y t u",
		"Exp ScatterElements"},
	{"put into others than zeros", "ScatterElements t x i x; Add y x t", "ScatterElements Add"},
	{"put into zeros, and spread", "ScatterElements t z i x; Add y t s", "ScatterElements Add"},
	{"layer norm", NORM "; Mul w n s; Add y w b", "stint.LayerNorm"},
	{"layer norm, operands turned round", NORM "; Mul w s n; Add y b w", "stint.LayerNorm"},
	{"layer norm without a bias", NORM "; Mul y n s", "stint.LayerNorm"},
	{"layer norm without scale and bias", NORM, "stint.LayerNorm"},
	{"layer norm whose differences are taken twice",
		"ReduceMean m x; Sub d x m; Sub f x m; Mul q f f; ReduceMean v q; Add e 1e-5 v; "
		"Sqrt r e; Div n d r; Mul w n s; Add y w b",
		"stint.LayerNorm"},
	{"layer norm over two axes",
		"ReduceMean2 m x; Sub d x m; Pow q d 2; ReduceMean2 v q; Add e v 1e-5; Sqrt r e; "
		"Div n d r; Mul y n p",
		"stint.LayerNorm"},
	{"means over different axes",
		"ReduceMean2 m x; Sub d x m; Pow q d 2; ReduceMean v q; Add e v 1e-5; Sqrt r e; "
		"Div y d r",
		"ReduceMean Sub stint.RmsNorm"},
	{"a scale of another shape", NORM "; Mul y n p", "stint.LayerNorm Mul"},
	{"dropout spelled out",
		"RandomUniformLike u x; Less l u 0.8; CastLike c l x; Div d c 0.8; Mul m x d; Exp "
		"y m",
		"Exp"},
	{"dropout of what is shared by rows",
		"RandomUniformLike u p; Less l u 0.8; CastLike c l p; Div d c 0.8; Mul m d x; Exp "
		"y m",
		"Exp"},
	{"a quotient that is not the probability",
		"RandomUniformLike u x; Less l u 0.8; CastLike c l x; Div d c 0.5; Mul m x d; Exp "
		"y m",
		"stint.RandomUniform Less CastLike Div Mul Exp"},
	{"noise larger than what it multiplies",
		"RandomUniformLike u x; Less l u 0.8; CastLike c l x; Div d c 0.8; Mul m s d; Exp "
		"y m",
		"stint.RandomUniform Less CastLike Div Mul Exp"},
	{"cross-entropy by its labels", "LogSoftmax q x; GatherElements/axis=2 y q l",
		"stint.CrossEntropy Neg Reshape"},
	{"cross-entropy by pairs of a row and its label",
		"Reshape f x [6,8]; Reshape k l [6,1]; Unsqueeze r [0,1,2,3,4,5] [1]; "
		"Concat/axis=-1 c r k; LogSoftmax q f; GatherND y q c",
		"Reshape Reshape stint.CrossEntropy Neg"},
	{"pairs with other rows",
		"Reshape f x [6,8]; Reshape k l [6,1]; Unsqueeze r [0,1,2,3,5,4] [1]; "
		"Concat/axis=-1 c r k; LogSoftmax q f; GatherND y q c",
		"Reshape Concat Reshape LogSoftmax GatherND"},
	{"cross-entropy with weights of classes",
		"LogSoftmax q x; Mul m q 2*8; GatherElements/axis=2 y m l",
		"stint.CrossEntropy Neg Reshape"},
	{"weights that are trained", "LogSoftmax q x; Mul m q s; GatherElements/axis=2 y m l",
		"LogSoftmax Mul GatherElements"},
	{"cross-entropy with smoothing",
		"LogSoftmax q x; GatherElements/axis=-1 g q l; Neg n g; ReduceMean m q; Sub y n m",
		"stint.CrossEntropy Neg Reshape Neg ReduceMean Reshape Sub Sub"},
	{"log-probabilities added up", "LogSoftmax q x; ReduceSum y q [-1]",
		"LogSoftmax ReduceSum"},
	{"cross-entropy of one-hot labels",
		"Squeeze r l [2]; OneHot h r 8 [0,1]; Cast/to=1 f h; LogSoftmax q x; Mul m f q; "
		"ReduceSum y m [2]",
		"Squeeze Less Add Where stint.CrossEntropy Neg Reshape"},
	{"cross-entropy of labels compared with classes",
		"Equal e l [0,1,2,3,4,5,6,7]; Cast/to=7 h e; Cast/to=1 f h; LogSoftmax q x; "
		"Mul m q f; ReduceSum/keepdims=0 y m [2]",
		"stint.CrossEntropy Neg"},
	{"cross-entropy of probabilities",
		"Softmax t x; LogSoftmax q x; Mul m q t; ReduceSum y m [2]",
		"Softmax stint.CrossEntropy Neg Reshape"},
	{"compared with other numbers than the classes'",
		"Equal e l [0,1,2,3,4,5,6,8]; Cast/to=1 f e; LogSoftmax q x; Mul m q f; "
		"ReduceSum y m [2]",
		"Equal Cast stint.CrossEntropy Neg Reshape"},
	{"gathered along another axis", "LogSoftmax/axis=1 q x; GatherElements/axis=2 y q l",
		"LogSoftmax GatherElements"},
	{"added up along another axis", "LogSoftmax q x; ReduceSum y q [1]",
		"LogSoftmax ReduceSum"},
	{"a bias without a scale", NORM "; Add y n b", "stint.LayerNorm Add"},
	{"layer norm with axes as inputs, a reciprocal and casts",
		"Cast/to=10 h x; ReduceMean m h [-1]; Sub d h m; Mul q d d; ReduceMean v q [2]; "
		"Add e v 1e-5; Sqrt r e; Reciprocal i r; Cast/to=10 f i; Mul n d f; Cast/to=1 k n; "
		"Mul w k s; Add y w b",
		"stint.LayerNorm"},
	{"layer norm with torch.var, whose axis comes back by a reshape",
		"ReduceMean m x [-1]; ReduceMean k x [2]; Sub f x k; Mul q f f; "
		"ReduceMean/keepdims=0 v q [2]; Reshape u v [2,3,1]; Expand w u [2,3,1]; Sub d x "
		"m; "
		"Add e w 1e-5; Sqrt r e; Reciprocal i r; Mul n d i; Mul z n s; Add y z b",
		"stint.LayerNorm"},
	{"layer norm without an epsilon",
		"ReduceMean m x; Sub d x m; Mul q d d; ReduceMean v q; Sqrt r v; Div n d r",
		"stint.LayerNorm"},
	{"a variance that is turned round",
		"ReduceMean m x; Sub d x m; Mul q d d; ReduceMean/keepdims=0 v q [2]; "
		"Reshape u v [3,2,1]; Add e u 1e-5; Sqrt r e; Reshape k d [3,2,8]; Div n k r",
		"ReduceMean Sub Mul ReduceMean Reshape Add Sqrt Reshape Div"},
	{"a variance that is spread to other rows",
		"ReduceMean m x; Sub d x m; Mul q d d; ReduceMean/keepdims=0 v q [2]; "
		"Reshape u v [2,1,3]; Reshape k u [2,3]; Transpose h v; Reshape w h [2,3,1]; "
		"Add e w 1e-5; Sqrt r e; Div n d r",
		"ReduceMean Sub Mul ReduceMean Transpose Reshape Add Sqrt Div"},
	{"RMS norm of the older exporter",
		"Pow q x 2; ReduceMean v q; Add e v 1e-6; Sqrt r e; Div i 1 r; Mul n x i; Mul y s "
		"n",
		"stint.RmsNorm"},
	{"RMS norm of the newer exporter, with casts",
		"Cast/to=1 h x; Pow q h 2; ReduceMean v q [-1]; Add e 1e-6 v; Sqrt r e; "
		"Reciprocal i r; Mul n h i; Cast/to=10 k n; Mul y k s",
		"stint.RmsNorm"},
	{"RMS norm with a quotient", "Mul q x x; ReduceMean v q; Add e v 1e-6; Sqrt r e; Div n x r",
		"stint.RmsNorm"},
	{"RMS norm with a power",
		"Mul q x x; ReduceMean v q; Add e v 1e-6; Pow i e -0.5; Mul n i x; Mul y n s",
		"stint.RmsNorm"},
	{"RMS norm with the root of a reciprocal",
		"Mul q x x; ReduceMean v q; Add e v 1e-6; Reciprocal r e; Sqrt i r; Mul n i x",
		"stint.RmsNorm"},
	{"RMS norm over two axes",
		"Mul q x x; ReduceMean2 v q; Add e v 1e-6; Sqrt r e; Div n x r; Mul y n p",
		"stint.RmsNorm"},
	{"RMS norm times a scale plus one",
		"Mul q x x; ReduceMean v q; Add e v 1e-6; Sqrt r e; Div n x r; Add w s 1; Mul y n "
		"w",
		"Add stint.RmsNorm"},
	{"the mean of another square",
		"Mul q x s; ReduceMean v q; Add e v 1e-6; Sqrt r e; Div y x r",
		"Mul ReduceMean Add Sqrt Div"},
	{"another tensor over the root",
		"Mul q x x; ReduceMean v q; Add e v 1e-6; Sqrt r e; Mul k x s; Div y k r",
		"Mul ReduceMean Add Sqrt Mul Div"},
	{"a mean that is not over the last axes",
		"Mul q x x; ReduceMean v q [1]; Add e v 1e-6; Sqrt r e; Div y x r",
		"Mul ReduceMean Add Sqrt Div"},
	{"another power", "Mul q x x; ReduceMean v q; Add e v 1e-6; Pow i e -0.25; Mul y x i",
		"Mul ReduceMean Add Pow Mul"},
	{"what is added to the mean is no constant",
		"Mul q x x; ReduceMean v q; Add e v s; Sqrt r e; Div y x r",
		"Mul ReduceMean Add Sqrt Div"},
	{"SiLU", "Sigmoid g x; Mul y x g", "stint.Silu"},
	{"SiLU, operands turned round, with casts",
		"Cast/to=1 h x; Sigmoid g h; Cast/to=10 k g; Mul y k x", "stint.Silu"},
	{"a gate of another tensor", "Mul h x s; Sigmoid g h; Mul y x g", "Mul Sigmoid Mul"},
	{"softplus", "Exp e x; Add a e 1; Log y a", "Softplus"},
	{"softplus, operands turned round", "Exp e x; Add a 1 e; Log y a", "Softplus"},
	{"the logarithm of two more", "Exp e x; Add a e 2; Log y a", "Exp Add Log"},
	{"Mish", "Softplus f x; Tanh t f; Mul y x t", "Mish"},
	{"Mish with softplus spelled out", "Exp e x; Add a 1 e; Log f a; Tanh t f; Mul y t x",
		"Mish"},
	{"Mish of two tensors", "Softplus f x; Tanh t f; Mul h x s; Mul y h t",
		"Softplus Tanh Mul Mul"},
	{"hard swish with its gate", "HardSigmoid/alpha=0.16666667/beta=0.5 g x; Mul y g x",
		"HardSwish"},
	{"hard swish with another gate", "HardSigmoid/alpha=0.2/beta=0.5 g x; Mul y g x",
		"HardSigmoid Mul"},
	{"hard swish, divided last", "Add a x 3; Clip c a 0 6; Mul m x c; Div y m 6", "HardSwish"},
	{"hard swish, divided first", "Add a 3 x; Clip c a 0 6; Div m c 6; Mul y x m", "HardSwish"},
	{"hard swish with a product",
		"Add a x 3; Clip c a 0 6; Mul m c x; Mul y m 0.16666667163372", "HardSwish"},
	{"hard sigmoid", "Add a x 3; Clip c a 0 6; Div y c 6", "HardSigmoid"},
	{"another ceiling", "Add a x 3; Clip c a 0 5; Mul m x c; Div y m 6",
		"Add stint.Clip Mul Div"},
	{"another offset", "Add a x 2; Clip c a 0 6; Mul m x c; Div y m 6",
		"Add stint.Clip Mul Div"},
	{"another divisor", "Add a x 3; Clip c a 0 6; Mul m x c; Div y m 5",
		"Add stint.Clip Mul Div"},
	{"hard swish of two tensors", "Add a x 3; Clip c a 0 6; Mul h x s; Mul m h c; Div y m 6",
		"Add stint.Clip Mul Mul Div"},
	{"group norm of PyTorch",
		"Reshape r x [0,1,-1]; InstanceNormalization i r 1*1 0*1; Reshape f i [2,3,8]; "
		"Mul w f c; Add y w d",
		"Reshape Reshape stint.GroupNorm"},
	{"group norm of PyTorch, casts between",
		"Cast/to=10 h x; Reshape r h [2,3,-1]; InstanceNormalization i r 1*3 0*3; "
		"Reshape f i [2,3,8]; Cast/to=1 k f; Mul w c k; Add y d w",
		"Reshape Reshape stint.GroupNorm"},
	{"group norm without scale and bias",
		"Reshape r x [0,1,-1]; InstanceNormalization i r 1*1 0*1; Reshape f i [2,3,8]",
		"stint.GroupNorm"},
	{"group norm with ones and zeros as initializers",
		"Reshape r x [0,3,-1]; InstanceNormalization i r ones zeros; Reshape f i [2,3,8]; "
		"Mul w f c; Add y w d",
		"Reshape Reshape stint.GroupNorm"},
	{"an instance norm that is scaled",
		"Reshape r x [0,3,-1]; InstanceNormalization i r ones zeros; Reshape f i [2,3,8]; "
		"Mul w f c; Add y w p",
		"stint.GroupNorm Mul Add"},
	{"group norm whose scale is another",
		"Reshape r x [0,1,-1]; InstanceNormalization i r 2*1 0*1; Reshape f i [2,3,8]; "
		"Mul w f c; Add y w d",
		"Reshape stint.GroupNorm Reshape Mul Add"},
	{"group norm with a scale for each element",
		"Reshape r x [0,1,-1]; InstanceNormalization i r 1*1 0*1; Reshape f i [2,3,8]; "
		"Mul w f p; Add y w d",
		"stint.GroupNorm Mul Add"},
	{"an instance norm over mixed examples",
		"Reshape r x [1,6,-1]; InstanceNormalization i r 1*6 0*6; Reshape y i [2,3,8]",
		"Reshape stint.GroupNorm Reshape"},
	{"a cast through whole numbers",
		"Cast/to=7 k x; Cast/to=1 h k; Mul q h h; ReduceMean v q; Add e v 1e-6; Sqrt r e; "
		"Div y x r",
		"Cast Cast Mul ReduceMean Add Sqrt Div"},
};

int main(void)
{
	enum { N = sizeof programs / sizeof *programs };
	struct CMUnitTest tests[N];
	struct program copy[N];
	memcpy(copy, programs, sizeof copy);
	for (int i = 0; i < N; i++)
		tests[i] = (struct CMUnitTest){
			programs[i].name, test_program, NULL, NULL, &copy[i]};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
