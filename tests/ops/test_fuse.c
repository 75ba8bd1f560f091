/* What is fused and what is not. Bits are compared by the random models (tests/random), which run
 * fused and unfused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "graph/cost.h"
#include "graph/fused.h"
#include "graph/pass.h"
#include "ops/ops.h"

static void put(void *user, enum diag_level level, const struct where *w, const char *message,
	const char *hint)
{
	(void)user, (void)level, (void)hint;
	print_message("%s: %s\n", w && w->node ? w->node : "", message);
}

static struct diag diag = {.put = put};
static const struct target target = {.portable = true, .threads = 1};
static const int64_t big[] = {4, 8, 16};

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

/* A value that a node makes which is not pointwise. */
static struct tensor *made(struct graph *g, const char *name)
{
	struct tensor *x = graph_tensor(g, name, DT_F32, 3, big);
	assert_non_null(x);
	x->role = TR_INPUT;
	return OP1(g, "Softmax", x);
}

static struct tensor *parameter(struct graph *g, int rank, const int64_t *dim)
{
	struct tensor *x = graph_tensor(g, "p", DT_F32, rank, dim);
	assert_non_null(x);
	x->role = TR_PARAMETER;
	return x;
}

static void outputs(struct graph *g, int n, struct tensor **y)
{
	g->output = arena_memdup(g->arena, y, (size_t)n, sizeof *y);
	g->noutput = n;
}

/* The nodes' titles but for softmax, fused. */
static void check(struct graph *g, const char *expected)
{
	struct text t = {0};
	assert_int_equal(g->failed, ST_OK);
	assert_int_equal(graph_fuse(g), ST_OK);
	for (int i = 0; i < g->nnode; i++) {
		if (!strcmp(g->node[i]->op->name, "Softmax"))
			continue;
		text_puts(&t, t.len ? "; " : "");
		node_title(g->node[i], &t);
	}
	assert_false(t.failed);
	assert_string_equal(t.s ? t.s : "", expected);
	text_free(&t);
}

static void a_chain_is_one(void **state)
{
	struct graph *g = *state;
	struct tensor *x = made(g, "x"), *r = made(g, "r");
	struct tensor *t = OP2(g, "Mul", x, parameter(g, 1, &big[2]));
	struct tensor *y = OP2(g, "Add", OP1(g, "Tanh", t), r);
	outputs(g, 1, &y);
	check(g, "stint.Fused: Mul, Tanh, Add");
	const struct node *n = y->maker;
	assert_int_equal(n->nin, 3);
	struct op_pair pair[8];
	assert_int_equal(node_pairs(n, pair, 8), 2); /* over x and over r, not over the parameter */
	/* two tanh's worth and more: what the stages cost, for inputs read once */
	assert_true(node_cost(n).flops >= 22.0 * 512);
	assert_true(node_cost(n).bytes == 4.0 * (3 * 512 + 16));
}

static void outputs_stay(void **state)
{
	struct graph *g = *state;
	struct tensor *t = OP1(g, "Relu", made(g, "x"));
	struct tensor *y[] = {OP1(g, "Tanh", t), t};
	outputs(g, 2, y);
	check(g, "Relu; Tanh");
}

static void other_readers_need_the_value(void **state)
{
	struct graph *g = *state;
	struct tensor *t = OP1(g, "Relu", made(g, "x"));
	struct tensor *y[] = {OP1(g, "Tanh", t), OP1(g, "Softmax", t)};
	outputs(g, 2, y);
	check(g, "Relu; Tanh");
}

/* The sum is smaller than its two terms: the third is not waited for with both. */
static void a_sum_of_two_does_not_wait(void **state)
{
	struct graph *g = *state;
	struct tensor *a = made(g, "a"), *b = made(g, "b");
	struct tensor *t = OP2(g, "Add", a, b);
	struct tensor *y = OP2(g, "Mul", t, made(g, "c"));
	outputs(g, 1, &y);
	check(g, "Add; Mul");
}

/* But what follows at once takes its place, before the node that stood between. */
static void what_adds_nothing_comes_along(void **state)
{
	struct graph *g = *state;
	struct tensor *t = OP2(g, "Add", made(g, "a"), made(g, "b"));
	struct tensor *other = OP1(g, "Softmax", made(g, "c"));
	struct tensor *y[] = {OP1(g, "Relu", t), other};
	outputs(g, 2, y);
	check(g, "stint.Fused: Add, Relu");
	assert_true(y[0]->maker->id < other->maker->id);
}

/* A cheap value is made by both its readers; a dear one is stored. */
static void cheap_values_are_made_again(void **state)
{
	struct graph *g = *state;
	struct tensor *cheap = OP1(g, "Neg", made(g, "x")), *dear = OP1(g, "Tanh", made(g, "z"));
	struct tensor *y[] = {OP1(g, "Relu", cheap), OP1(g, "Abs", cheap), OP1(g, "Relu", dear),
		OP1(g, "Abs", dear)};
	outputs(g, 4, y);
	check(g, "Tanh; stint.Fused: Neg, Relu; stint.Fused: Neg, Abs; Relu; Abs");
}

/* Neither what is larger than the value it becomes, nor what is of another shape. */
static void shapes_differ(void **state)
{
	struct graph *g = *state;
	struct tensor *row = graph_tensor(g, "row", DT_F32, 1, &big[2]);
	row->role = TR_INPUT;
	struct tensor *t = OP1(g, "Relu", OP1(g, "Softmax", row));
	struct tensor *y = OP2(g, "Add", t, made(g, "x"));
	outputs(g, 1, &y);
	check(g, "Relu; Add");
}

static void booleans_and_integers(void **state)
{
	struct graph *g = *state;
	struct tensor *x = made(g, "x"), *i = graph_tensor(g, "i", DT_I64, 3, big);
	i->role = TR_INPUT;
	struct tensor *three = graph_ints(g, 1, (int64_t[]){3});
	struct tensor *which = OP2(g, "Less", OP2(g, "Mul", i, i), three);
	struct tensor *y = OP3(g, "Where", which, x, OP1(g, "Neg", x));
	outputs(g, 1, &y);
	check(g, "stint.Fused: Mul, Less, Neg, Where");
	const struct fused *f = node_fused(y->maker);
	assert_non_null(f);
	assert_int_equal(f->stage[0].node->out[0]->dtype, DT_I64);
	assert_int_equal(f->stage[1].node->out[0]->dtype, DT_BOOL);
}

/* The value before the ReLU is no more: its gradient has it made from what it was made from. */
static void alternatives_are_kept(void **state)
{
	struct graph *g = *state;
	struct tensor *x = made(g, "x"), *t = OP1(g, "Neg", x), *y = OP1(g, "Relu", t);
	struct tensor *dy = made(g, "dy");
	g->phase = NODE_BACKWARD;
	struct node *grad = graph_op_node(
		g, "stint.ReluGrad", 2, (struct tensor *[]){dy, y}, 0, NULL, NULL);
	assert_non_null(grad);
	assert_int_equal(graph_alternative(g, grad, (struct tensor *[]){dy, t}), ST_OK);
	struct tensor *dx = grad->out[0], *out[] = {y, dx};
	outputs(g, 2, out);
	check(g, "stint.Fused: Neg, Relu; stint.Fused: ReluGrad");
	const struct node *n = dx->maker;
	assert_int_equal(n->nalt, 1);
	bool reads_x = false, reads_y = false;
	for (int k = 0; k < n->nin; k++) {
		reads_x |= n->alt[0][k] == x;
		reads_y |= n->alt[0][k] == y;
		assert_true(n->in[k] != x);
	}
	assert_true(reads_x && !reads_y);
	struct node other = *n;
	struct text title = {0};
	other.in = n->alt[0];
	node_title(&other, &title);
	assert_string_equal(title.s, "stint.Fused: Neg, ReluGrad");
	text_free(&title);
}

/* An update may stand between a node and its reader: then the old number is needed. */
static void updates_are_not_passed(void **state)
{
	struct graph *g = *state;
	struct tensor *p = parameter(g, 3, big), *x = made(g, "x");
	struct tensor *t = OP2(g, "Mul", x, p);
	g->phase = NODE_UPDATE;
	struct node *u;
	assert_int_equal(
		graph_node(g, "stint.SgdUpdate", "p", 4,
			(struct tensor *[]){p, OP1(g, "Softmax", x), graph_lr(g), graph_control(g)},
			1, 0, NULL, NULL, &u),
		ST_OK);
	g->phase = NODE_FORWARD;
	struct tensor *y = OP1(g, "Relu", t);
	outputs(g, 1, &y);
	check(g, "Mul; stint.SgdUpdate; Relu");
}

/* A chain longer than a node can hold becomes several. */
static void limits_stop_growth(void **state)
{
	struct graph *g = *state;
	enum { LENGTH = 3 * FUSED_STAGES + 7 };
	struct tensor *y = made(g, "x");
	for (int i = 0; i < LENGTH; i++)
		y = OP1(g, i % 2 ? "Neg" : "Abs", y);
	outputs(g, 1, &y);
	assert_int_equal(graph_fuse(g), ST_OK);
	int stages = 0;
	for (int i = 1; i < g->nnode; i++) {
		const struct fused *f = node_fused(g->node[i]);
		stages += f ? f->nstage : 1;
	}
	assert_int_equal(stages, LENGTH);
	assert_int_equal(g->nnode, 1 + (LENGTH + FUSED_STAGES - 1) / FUSED_STAGES);
}

static void keys_tell_stages(void **state)
{
	struct graph *g = *state;
	struct tensor *y[] = {OP1(g, "Relu", OP1(g, "Neg", made(g, "x"))),
		OP1(g, "Neg", OP1(g, "Relu", made(g, "z"))),
		OP1(g, "Relu", OP1(g, "Neg", made(g, "v")))};
	outputs(g, 3, y);
	check(g, "stint.Fused: Neg, Relu; stint.Fused: Relu, Neg; stint.Fused: Neg, Relu");
	struct kernel_keys *k = kernel_keys_new(g->arena, g);
	assert_non_null(k);
	const char *key[3];
	for (int i = 0; i < 3; i++)
		key[i] = kernel_key(k, y[i]->maker, false);
	assert_string_equal(key[0],
		"stint.Fused(f32[4,8,16]) -> f32[4,8,16] Neg(0) = s0, Relu(s0); portable C");
	assert_string_not_equal(key[0], key[1]);
	assert_string_equal(key[0], key[2]);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {TEST(a_chain_is_one), TEST(outputs_stay),
		TEST(other_readers_need_the_value), TEST(a_sum_of_two_does_not_wait),
		TEST(what_adds_nothing_comes_along), TEST(cheap_values_are_made_again),
		TEST(shapes_differ), TEST(booleans_and_integers), TEST(alternatives_are_kept),
		TEST(updates_are_not_passed), TEST(limits_stop_growth), TEST(keys_tell_stages)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
