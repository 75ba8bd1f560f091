/* Updates overwrite what others read: the listed order, and which gradients updates make
 * themselves where that has them read each other's parameters. What the planner's own validation
 * says of a problem shares no code with graph/update_order.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "bridge/from_graph.h"
#include "graph/pass.h"
#include "ops/ops.h"
#include "planner/plan.h"

static char said[400];

static void put(void *user, enum diag_level level, const struct where *w, const char *message,
	const char *hint)
{
	(void)user, (void)level, (void)hint;
	snprintf(said, sizeof said, "%s: %s", w && w->node ? w->node : "", message);
	print_message("%s\n", said);
}

static struct diag diag = {.put = put};
static const struct target target = {.portable = true, .threads = 1};

static int setup(void **state)
{
	struct arena *a = arena_new();
	*state = a ? graph_new(a, &diag, "test", ops_table(), &target, DT_F32) : NULL;
	return *state ? 0 : -1;
}

static int teardown(void **state)
{
	arena_free(((struct graph *)*state)->arena);
	return 0;
}

static struct tensor *given(
	struct graph *g, const char *name, enum tensor_role role, int64_t rows, int64_t columns)
{
	struct tensor *x = graph_tensor(g, name, DT_F32, 2, (const int64_t[]){rows, columns});
	assert_non_null(x);
	x->role = role;
	return x;
}

static struct tensor *product(struct graph *g, struct tensor *a, struct tensor *b)
{
	struct tensor *y = OP2(g, "stint.MatMul", a, b);
	assert_non_null(y);
	return y;
}

static struct node *update(struct graph *g, struct tensor *p, struct tensor *grad)
{
	struct node *u;
	struct tensor *in[] = {p, grad, graph_lr(g), graph_control(g)};
	g->phase = NODE_UPDATE;
	assert_int_equal(
		graph_node(g, "stint.SgdUpdate", p->name, 4, in, 1, 0, NULL, NULL, &u), ST_OK);
	g->phase = NODE_FORWARD;
	return u;
}

static void check_plan(struct graph *g)
{
	const struct plan_options o = {.budget = INT64_MAX, .alignment = 64, .effort = 0.01};
	struct graph_problem gp;
	struct plan *plan;
	assert_int_equal(problem_from_graph(g->arena, g, "order", true, NULL, &gp), ST_OK);
	assert_int_equal(problem_validate(gp.problem, "order", &diag), ST_OK);
	assert_int_equal(plan_make(g->arena, gp.problem, &o, &plan, &diag), ST_OK);
	assert_int_equal(plan_check(gp.problem, plan, o.alignment, "order", &diag), ST_OK);
}

/* w's gradient is the outer product of dy and q, and q is updated first. */
static void a_query_is_read_before_its_update(void **state)
{
	struct graph *g = *state;
	struct tensor *q = given(g, "q", TR_PARAMETER, 1, 8),
		      *w = given(g, "w", TR_PARAMETER, 5, 8);
	struct tensor *dy = OP1(g, "Neg", given(g, "dy", TR_INPUT, 5, 1));
	struct tensor *dw = product(g, dy, q);
	struct node *of_q = update(g, q, OP1(g, "Neg", given(g, "dq", TR_INPUT, 1, 8)));
	struct node *of_w = update(g, w, dw);
	assert_int_equal(graph_fuse(g), ST_OK);
	assert_null(of_w->in[1]);
	assert_true(of_w->id < of_q->id);
	check_plan(g);
}

/* Each would read what the other overwrites: one gradient is stored. */
static void two_that_read_each_other(void **state)
{
	struct graph *g = *state;
	struct tensor *a = given(g, "a", TR_PARAMETER, 1, 1),
		      *b = given(g, "b", TR_PARAMETER, 1, 1);
	struct tensor *dy = OP1(g, "Neg", given(g, "dy", TR_INPUT, 1, 1));
	struct tensor *da = product(g, dy, b), *db = product(g, a, dy);
	struct node *of_a = update(g, a, da), *of_b = update(g, b, db);
	assert_int_equal(graph_fuse(g), ST_OK);
	assert_null(of_a->in[1]);
	assert_non_null(of_b->in[1]);
	check_plan(g);
}

static void a_breach_names_both(void **state)
{
	struct graph *g = *state;
	struct tensor *w = given(g, "w", TR_PARAMETER, 4, 4), *x = given(g, "x", TR_INPUT, 4, 4);
	struct tensor *flat = graph_reshape(g, w, 1, (const int64_t[]){16}), *y;
	struct node *u = update(g, w, OP1(g, "Neg", x));
	g->scope = "reader";
	y = OP1(g, "Abs", flat); /* through a view, too */
	g->scope = "last";
	struct tensor *z = OP1(g, "Abs", x), *out[] = {y, z};
	g->output = out;
	g->noutput = 2;
	assert_int_equal(graph_verify(g), ST_INTERNAL);
	assert_string_equal(
		said, "w: graph verify: overwrites 'w' before node 'reader' (Abs) reads it");
	assert_int_equal(graph_order(g), ST_OK);
	assert_int_equal(graph_verify(g), ST_OK);
	assert_true(y->maker->id + 1 == u->id && u->id + 1 == z->maker->id);
	check_plan(g);
}

/* --- Random ones: every update's gradient is a product of some parameter, perhaps its own, or of a
 * value, seen through a view or not --- */

enum { MOST = 7, ROUNDS = 300 };

struct drawn {
	int n, reads[MOST]; /* reads[i]: the parameter in i's gradient; -1: none */
	struct node *update[MOST];
	bool taken[MOST];
};

static unsigned draw(uint32_t *x, unsigned below)
{
	*x = *x * 1664525u + 1013904223u; /* Numerical Recipes' generator */
	return (*x >> 10) % below;
}

static void draw_graph(struct graph *g, struct drawn *d, uint32_t *x)
{
	struct tensor *p[MOST], *grad[MOST], *dy = OP1(g, "Neg", given(g, "dy", TR_INPUT, 1, 1));
	d->n = 1 + (int)draw(x, MOST);
	for (int i = 0; i < d->n; i++)
		p[i] = given(g, arena_printf(g->arena, "p%d", i), TR_PARAMETER, 1, 1);
	for (int i = 0; i < d->n; i++) {
		d->reads[i] = (int)draw(x, (unsigned)d->n + 1) - 1;
		struct tensor *v = d->reads[i] < 0 ? OP1(g, "Abs", dy) : p[d->reads[i]];
		if (draw(x, 2))
			v = graph_reshape(g, v, 2, v->dim);
		grad[i] = draw(x, 2) ? product(g, v, dy) : product(g, dy, v);
	}
	for (int done = 0, i; done < d->n; done++) {
		do
			i = (int)draw(x, (unsigned)d->n);
		while (d->update[i]);
		d->update[i] = update(g, p[i], grad[i]);
	}
}

/* Along what has been taken in, `from` has to run before `to`. */
static bool before(const struct drawn *d, int from, int to, int steps)
{
	return from == to || (steps > 0 && d->taken[from] && d->reads[from] >= 0 &&
				     before(d, d->reads[from], to, steps - 1));
}

/* What can be taken in is; each list is one that runs. */
static void random_updates(void **state)
{
	uint32_t x = 1;
	int stored = 0;
	for (int round = 0; round < ROUNDS; round++) {
		struct drawn d = {0};
		struct arena *a = arena_new();
		struct graph *g = graph_new(a, &diag, "test", ops_table(), &target, DT_F32);
		assert_non_null(g);
		draw_graph(g, &d, &x);
		assert_int_equal(graph_fuse(g), ST_OK);
		for (int i = 0; i < d.n; i++)
			d.taken[i] = !d.update[i]->in[1];
		for (int i = 0; i < d.n; i++) {
			assert_true(
				d.taken[i] || (d.reads[i] >= 0 && before(&d, d.reads[i], i, d.n)));
			stored += !d.taken[i];
		}
		check_plan(g);
		arena_free(a);
	}
	assert_true(stored > ROUNDS / 10); /* circles were drawn */
	(void)state;
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {TEST(a_query_is_read_before_its_update),
		TEST(two_that_read_each_other), TEST(a_breach_names_both),
		cmocka_unit_test(random_updates)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
