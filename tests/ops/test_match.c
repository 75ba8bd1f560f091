/* Composite operators that exporters spell out are recognised, and what only looks like one is not.
 * A program is a list of "Op result operand operand": operands are earlier results, x (an input of
 * shape [2, 3, 8]), i (integers of that shape), z (zeros of that shape), s and b (parameters of
 * shape [8]), p ([3, 8]) or numbers; the last result is the model's output. */
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

static struct tensor *operand(struct machine *m, const char *word)
{
	for (int i = m->n - 1; i >= 0; i--)
		if (!strcmp(m->name[i], word))
			return m->value[i];
	char *end;
	double v = strtod(word, &end);
	assert_true(*word && !*end);
	return graph_scalar(m->g, v);
}

static void run_line(struct machine *m, char *line)
{
	static const int64_t last[] = {-1}, two[] = {-2, -1};
	char *rest = line, *op = strtok_r(rest, " ", &rest), *result = strtok_r(rest, " ", &rest);
	struct tensor *in[4];
	int nin = 0;
	for (char *w; nin < 4 && (w = strtok_r(rest, " ", &rest));)
		in[nin++] = operand(m, w);
	bool mean2 = !strcmp(op, "ReduceMean2");
	const struct attr axes = ATTR_IS("axes", mean2 ? 2 : 1, mean2 ? two : last);
	bool mean = !strncmp(op, "ReduceMean", 10);
	struct node *n;
	assert_int_equal(
		graph_node(m->g, mean ? "ReduceMean" : op, NULL, nin, in, 0, mean, &axes, NULL, &n),
		ST_OK);
	define(m, result, n->out[0]);
}

static void parameter(struct machine *m, const char *name, int rank, const int64_t *dim)
{
	struct tensor *t = graph_tensor(m->g, name, DT_F32, rank, dim);
	define(m, name, t);
	t->role = TR_PARAMETER;
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
	static const int64_t shape[] = {2, 3, 8};
	static const float zeros[48];
	struct tensor *in[] = {
		graph_tensor(m.g, "x", DT_F32, 3, shape), graph_tensor(m.g, "i", DT_I64, 3, shape)};
	define(&m, "x", in[0]);
	define(&m, "i", in[1]);
	define(&m, "z", graph_constant(m.g, "z", DT_F32, 3, shape, zeros));
	in[0]->role = in[1]->role = TR_INPUT;
	m.g->ninput = 2;
	m.g->input = in;
	parameter(&m, "s", 1, (const int64_t[]){8});
	parameter(&m, "b", 1, (const int64_t[]){8});
	parameter(&m, "p", 2, (const int64_t[]){3, 8});
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
		"ReduceMean Sub Mul ReduceMean Add Sqrt Div"},
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
	{"a bias without a scale", NORM "; Add y n b", "stint.LayerNorm Add"},
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
