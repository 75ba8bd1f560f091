/* A loss and its gradient in one node (graph/joined.c): where they may be, and where not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "graph/pass.h"
#include "ops/ops.h"

static void put(void *user, enum diag_level level, const struct where *w, const char *message,
	const char *hint)
{
	(void)user, (void)level, (void)hint;
	print_message("%s: %s\n", w && w->node ? w->node : "", message);
}

static struct diag diag = {.put = put};
static const struct target gpu = {.cuda = true, .arch = 90, .threads = 1},
			   cpu = {.portable = true, .threads = 1};

struct made {
	struct graph *g;
	struct tensor *w, *x; /* the parameter, and the scores that it makes */
	struct node *loss;
};

static struct tensor *given(struct graph *g, const char *name, enum dtype type,
	enum tensor_role role, int rank, const int64_t *dim)
{
	struct tensor *x = graph_tensor(g, name, type, rank, dim);
	assert_non_null(x);
	x->role = role;
	return x;
}

static struct made make(const struct target *target)
{
	struct arena *a = arena_new();
	struct made m = {.g = graph_new(a, &diag, "test", ops_table(), target, DT_F32)};
	assert_non_null(m.g);
	m.w = given(m.g, "w", DT_F32, TR_PARAMETER, 2, (const int64_t[]){4, 6});
	m.x = OP1(m.g, "Tanh", m.w);
	struct tensor *label = given(m.g, "label", DT_I64, TR_INPUT, 1, (const int64_t[]){4});
	m.loss = graph_op_node(
		m.g, "stint.CrossEntropy", 2, (struct tensor *[]){m.x, label}, 0, NULL, NULL);
	assert_non_null(m.loss);
	return m;
}

/* The gradients of `loss`; how many nodes of an operator there are then. */
static void differentiate(struct made *m, struct tensor *loss)
{
	int n;
	struct tensor **param, **grad;
	assert_non_null(loss);
	m->g->loss = loss;
	assert_int_equal(graph_autodiff(m->g, &n, &param, &grad), ST_OK);
	assert_int_equal(graph_verify(m->g), ST_OK);
	assert_int_equal(n, 1);
	assert_non_null(grad[0]);
}

static int count(const struct made *m, const char *op)
{
	int n = 0;
	for (int i = 0; i < m->g->nnode; i++)
		n += !strcmp(m->g->node[i]->op->name, op);
	return n;
}

static void expect(struct made *m, int both)
{
	assert_int_equal(count(m, "stint.CrossEntropyBoth"), both);
	assert_int_equal(count(m, "stint.CrossEntropy"), 1 - both);
	assert_int_equal(count(m, "stint.CrossEntropyGrad"), 1 - both);
	arena_free(m->g->arena);
}

static void on_a_gpu(void **state)
{
	(void)state;
	struct made m = make(&gpu);
	differentiate(&m, m.loss->out[0]);
	assert_string_equal(m.g->loss->maker->op->name, "stint.CrossEntropyBoth");
	expect(&m, 1);
	m = make(&cpu);
	differentiate(&m, m.loss->out[0]);
	expect(&m, 0);
}

/* What the gradient is multiplied by is made behind the loss, and moves before it. */
static void what_it_needs_comes_first(void **state)
{
	(void)state;
	struct made m = make(&gpu);
	struct tensor *k = given(m.g, "k", DT_F32, TR_INPUT, 0, NULL);
	differentiate(&m, OP2(m.g, "Mul", m.loss->out[0], OP1(m.g, "Exp", k)));
	expect(&m, 1);
}

static void a_gradient_that_waits_for_the_loss(void **state)
{
	(void)state;
	struct made m = make(&gpu);
	differentiate(&m, OP2(m.g, "Mul", m.loss->out[0], m.loss->out[0]));
	expect(&m, 0);
	m = make(&gpu);
	differentiate(&m, OP1(m.g, "Exp", m.loss->out[0]));
	expect(&m, 0);
}

static void others_read_the_sums(void **state)
{
	(void)state;
	struct made m = make(&gpu);
	struct tensor *sums = OP1(m.g, "Exp", m.loss->out[1]);
	m.g->output = &sums;
	m.g->noutput = 1;
	differentiate(&m, m.loss->out[0]);
	expect(&m, 0);
	m = make(&gpu);
	m.g->output = &m.loss->out[1];
	m.g->noutput = 1;
	differentiate(&m, m.loss->out[0]);
	expect(&m, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(on_a_gpu),
		cmocka_unit_test(what_it_needs_comes_first),
		cmocka_unit_test(a_gradient_that_waits_for_the_loss),
		cmocka_unit_test(others_read_the_sums)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
