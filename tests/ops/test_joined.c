/* What becomes one node, and what does not: a loss and its gradient (graph/joined.c), a product and
 * what is added to it (graph/addend.c). */
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

/* The gradient of `loss`. */
static void differentiate(struct made *m, struct tensor *loss)
{
	int n;
	struct tensor **param, **grad;
	assert_non_null(loss);
	m->g->loss = loss;
	assert_int_equal(graph_autodiff(m->g, NULL, NULL, &n, &param, &grad), ST_OK);
	assert_int_equal(graph_verify(m->g), ST_OK);
	assert_int_equal(n, 1);
	assert_non_null(grad[0]);
}

/* Nodes of an operator. */
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

static void two_losses(void **state)
{
	(void)state;
	struct made m = make(&gpu);
	struct tensor *x = OP1(m.g, "Sin", m.w);
	struct node *other = graph_op_node(
		m.g, "stint.CrossEntropy", 2, (struct tensor *[]){x, m.loss->in[1]}, 0, NULL, NULL);
	assert_non_null(other);
	differentiate(&m, OP2(m.g, "Add", m.loss->out[0], other->out[0]));
	assert_int_equal(count(&m, "stint.CrossEntropyBoth"), 2);
	assert_int_equal(count(&m, "stint.CrossEntropy"), 0);
	arena_free(m.g->arena);
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

/* --- What is added to a product --- */

/* y = a b + more, `more` given, of a and b [3, 4] and [4, 5]; and after graph_add_inside. */
struct sum {
	struct graph *g;
	struct tensor *a, *b, *more, *y;
	struct node *product;
};

static struct sum sum_begin(const struct target *target)
{
	struct arena *a = arena_new();
	struct sum s = {.g = graph_new(a, &diag, "test", ops_table(), target, DT_F32)};
	assert_non_null(s.g);
	s.a = given(s.g, "a", DT_F32, TR_INPUT, 2, (const int64_t[]){3, 4});
	s.b = given(s.g, "b", DT_F32, TR_PARAMETER, 2, (const int64_t[]){4, 5});
	s.more = given(s.g, "more", DT_F32, TR_INPUT, 2, (const int64_t[]){3, 5});
	return s;
}

static void product_make(struct sum *s, struct tensor *bias)
{
	s->product = graph_op_node(s->g, "stint.MatMul", bias ? 3 : 2,
		(struct tensor *[]){s->a, s->b, bias}, 0, NULL, NULL);
	assert_non_null(s->product);
}

static void sum_make(struct sum *s, struct tensor *bias)
{
	product_make(s, bias);
	s->y = OP2(s->g, "Add", s->more, s->product->out[0]);
	assert_non_null(s->y);
}

static void sum_end(struct sum *s, bool inside)
{
	s->g->output = &s->y;
	s->g->noutput = 1;
	assert_int_equal(graph_add_inside(s->g), ST_OK);
	assert_int_equal(graph_verify(s->g), ST_OK);
	assert_int_equal(s->y->maker == s->product, inside);
	if (inside)
		assert_ptr_equal(s->product->in[s->product->op->addend], s->more);
	arena_free(s->g->arena);
}

static void a_product_adds(void **state)
{
	(void)state;
	const struct target *const target[] = {&cpu, &gpu};
	for (int i = 0; i < 2; i++) {
		struct sum s = sum_begin(target[i]);
		sum_make(&s, NULL);
		sum_end(&s, true);
	}
	/* a second sum goes to the second product */
	struct sum s = sum_begin(&cpu);
	sum_make(&s, NULL);
	s.more = s.y;
	sum_make(&s, NULL);
	sum_end(&s, true);
}

/* The other term is made for the sum alone, and shares its loop. */
static void not_what_is_made_on_the_way(void **state)
{
	(void)state;
	struct sum s = sum_begin(&cpu);
	struct tensor *given_more = s.more;
	s.more = OP1(s.g, "Tanh", given_more);
	sum_make(&s, NULL);
	sum_end(&s, false);
	s = sum_begin(&cpu);
	s.more = OP1(s.g, "Tanh", s.more);
	/* but not where a residual branch begins there, too */
	s.a = OP2(s.g, "MatMul", s.more,
		given(s.g, "c", DT_F32, TR_PARAMETER, 2, (const int64_t[]){5, 4}));
	sum_make(&s, NULL);
	sum_end(&s, true);
}

static void not_beside_a_bias(void **state)
{
	(void)state;
	struct sum s = sum_begin(&cpu);
	sum_make(&s, given(s.g, "bias", DT_F32, TR_PARAMETER, 1, (const int64_t[]){5}));
	sum_end(&s, false);
}

static void not_what_others_read(void **state)
{
	(void)state;
	struct sum s = sum_begin(&cpu);
	sum_make(&s, NULL);
	assert_non_null(OP2(s.g, "Mul", s.product->out[0], s.y));
	sum_end(&s, false);
}

static void not_what_comes_later(void **state)
{
	(void)state;
	struct sum s = sum_begin(&cpu);
	product_make(&s, NULL);
	s.y = OP2(s.g, "Add", s.product->out[0], OP1(s.g, "Exp", s.more));
	sum_end(&s, false);
}

/* Sums over micro-batches. */
static void not_in_the_last_of_them(void **state)
{
	(void)state;
	struct sum s = sum_begin(&cpu);
	s.g->last = true;
	sum_make(&s, NULL);
	sum_end(&s, false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(on_a_gpu), cmocka_unit_test(two_losses),
		cmocka_unit_test(what_it_needs_comes_first),
		cmocka_unit_test(a_gradient_that_waits_for_the_loss),
		cmocka_unit_test(others_read_the_sums), cmocka_unit_test(a_product_adds),
		cmocka_unit_test(not_what_is_made_on_the_way), cmocka_unit_test(not_beside_a_bias),
		cmocka_unit_test(not_what_others_read), cmocka_unit_test(not_what_comes_later),
		cmocka_unit_test(not_in_the_last_of_them)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
