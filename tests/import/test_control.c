/* Control flow, resolved while a model is read: with the real operators. Where
 * everything is known the outputs are too, and are compared. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "graph/pass.h"
#include "tests/import/operators.h"

/* --- If --- */

/* y = condition ? x + w : Mystery(x) */
static Onnx__NodeProto *choice(struct model_test *t, const char *condition)
{
	model_input(t, "x", TENSOR_TYPE(FLOAT), "2,4");
	model_weights(t, "w", "4");
	Onnx__NodeProto *n = model_node(t, "If", "choice", condition, "y");
	model_inside(t, n, "then_branch");
	model_node(t, "Add", "sum", "x,w", "branch");
	model_node(t, "Relu", "", "branch", "out");
	model_output(t, "out");
	model_inside(t, n, "else_branch");
	model_node(t, "Mystery", "m", "x", "out");
	model_output(t, "out");
	model_outside(t);
	model_output(t, "y");
	return n;
}

static void only_the_branch_taken(void **state)
{
	struct model_test *t = *state;
	choice(t, "c");
	model_truth(t, "c", true);
	model_accepted(t);
	assert_int_equal(t->g->nnode, 2);
	assert_string_equal(t->g->node[0]->name, "choice/then/sum");
	assert_string_equal(t->g->node[0]->out[0]->name, "choice/then/branch");
	assert_string_equal(t->g->node[1]->name, "choice/then/Relu_1");
	assert_string_equal(t->g->output[0]->name, "y");
	model_raw(t->graph.initializer[1], "\0", 1);
	model_refused(t, ST_INVALID, "m (Mystery): operator Mystery is not supported");
}

/* y = c ? Relu(x + w) : x, c being data. */
static Onnx__NodeProto *by_data(struct model_test *t)
{
	model_input(t, "x", TENSOR_TYPE(FLOAT), "2,4");
	model_input(t, "c", TENSOR_TYPE(BOOL), "");
	model_weights(t, "w", "4");
	Onnx__NodeProto *n = model_node(t, "If", "choice", "c", "y");
	model_inside(t, n, "then_branch");
	model_node(t, "Add", "sum", "x,w", "branch");
	model_node(t, "Relu", "", "branch", "out");
	model_output(t, "out");
	model_inside(t, n, "else_branch");
	return n;
}

/* Both branches, and when each runs. */
static void decided_by_data(void **state)
{
	struct model_test *t = *state;
	by_data(t);
	model_output(t, "x");
	model_outside(t);
	model_output(t, "y");
	model_accepted(t);
	assert_int_equal(t->g->nnode, 4);
	const struct node *branch = t->g->node[0], *choose = t->g->node[3];
	assert_int_equal(branch->op->role, ROLE_BRANCH);
	assert_string_equal(branch->out[0]->name, "choice/then");
	assert_string_equal(t->g->node[1]->name, "choice/then/sum");
	for (int i = 1; i < 3; i++)
		assert_ptr_equal(t->g->node[i]->when, branch->out[0]);
	assert_int_equal(choose->op->role, ROLE_CHOOSE);
	assert_null(choose->when);
	assert_ptr_equal(choose->in[0], branch->out[0]);
	assert_ptr_equal(choose->in[1], t->g->node[2]->out[0]);
	assert_ptr_equal(choose->in[2], t->g->input[0]);
	assert_string_equal(t->g->output[0]->name, "y");
	graph_verify(t->g);
}

static void branches_that_differ(void **state)
{
	struct model_test *t = *state;
	by_data(t);
	model_output(t, "w");
	model_outside(t);
	model_output(t, "y");
	model_refused(t, ST_INVALID,
		"choice (If): its output 0 is f32[2, 4] in then_branch and f32[4] in else_branch");
}

/* A condition that is one number for each row decides nothing. */
static void condition_of_many(void **state)
{
	struct model_test *t = *state;
	choice(t, "c");
	model_input(t, "c", TENSOR_TYPE(BOOL), "2");
	model_refused(t, ST_INVALID, "choice (stint.Branch): its condition 'c' is not one BOOL");
}

/* A branch without nodes hands on what is outside; outputs keep their names. */
static void branch_hands_on(void **state)
{
	struct model_test *t = *state;
	model_input(t, "x", TENSOR_TYPE(FLOAT), "2");
	model_truth(t, "c", true);
	Onnx__NodeProto *n = model_node(t, "If", "choice", "c", "y,z");
	model_inside(t, n, "then_branch");
	model_output(t, "x");
	model_output(t, "x");
	model_inside(t, n, "else_branch");
	model_outside(t);
	model_output(t, "y");
	model_output(t, "z");
	model_output(t, "x");
	model_accepted(t);
	assert_string_equal(t->g->output[0]->name, "y");
	assert_string_equal(t->g->output[1]->name, "z");
	assert_ptr_equal(t->g->output[2], t->g->input[0]);
	assert_ptr_equal(tensor_storage(t->g->output[1]), t->g->input[0]);
}

/* What only hands its input on has a step all the same; what knows its outputs has nothing to do.
 */
static void views_alone(void **state)
{
	struct model_test *t = *state;
	const struct lower_options lower = {.mode = LOWER_TRAIN};
	const struct loss_list none = {0};
	struct graph *g;
	model_input(t, "x", TENSOR_TYPE(FLOAT), "2");
	Onnx__NodeProto *n = model_node(t, "Identity", "", "x", "y");
	model_output(t, "y");
	model_accepted(t);
	assert_int_equal(graph_lower(t->g, &lower, &g), ST_OK);
	assert_int_equal(graph_attach_losses(g, &none), ST_OK);
	assert_ptr_equal(tensor_storage(g->output[0]), g->output[0]);
	assert_string_equal(g->output[0]->name, "y");
	assert_int_equal(graph_verify(g), ST_OK);
	model_number(t, "k", 1);
	n->input[0] = "k";
	model_accepted(t);
	assert_int_equal(graph_lower(t->g, &lower, &g), ST_OK);
	assert_int_equal(graph_attach_losses(g, &none), ST_INVALID);
	test_said(t, "computes nothing");
}

/* The branch reads what a node that stands behind it makes. */
static void nodes_wait_for_what_bodies_read(void **state)
{
	struct model_test *t = *state;
	model_truth(t, "c", true);
	model_input(t, "x", TENSOR_TYPE(FLOAT), "2");
	Onnx__NodeProto *n = model_node(t, "If", "outer", "c", "y");
	model_inside(t, n, "then_branch");
	Onnx__NodeProto *inner = model_node(t, "If", "inner", "c", "mine");
	model_output(t, "mine");
	model_inside(t, inner, "then_branch");
	model_node(t, "Relu", "", "late", "mine"); /* `mine` outside is another */
	model_output(t, "mine");
	model_outside(t);
	Onnx__NodeProto *late = model_node(t, "Relu", "maker", "x", "late");
	model_output(t, "y");
	model_accepted(t);
	assert_string_equal(t->g->node[0]->name, "maker");
	assert_string_equal(t->g->node[1]->name, "outer/then/inner/then/Relu_0");
	late->input[0] = "y";
	model_refused(t, ST_INVALID, "lies on a cycle through '");
}

static void bodies_are_checked(void **state)
{
	struct model_test *t = *state;
	Onnx__NodeProto *n = choice(t, "c");
	model_truth(t, "c", true);
	Onnx__GraphProto *then = n->attribute[0]->g;
	then->node[0]->input[1] = "nowhere";
	model_refused(t, ST_INVALID, "choice (If): reads 'nowhere', which nothing makes");
	then->node[0]->input[1] = "out";
	model_refused(t, ST_INVALID, "lies on a cycle");
	then->node[0]->input[1] = "w";
	then->output[0]->name = "gone";
	model_refused(t, ST_INVALID, "choice (If): reads 'gone', which nothing makes");
	then->n_output = 0;
	model_refused(t, ST_INVALID, "has 0 inputs and 0 outputs; there it needs 0 and 1");
	n->attribute[0]->g = NULL;
	model_refused(t, ST_INVALID, "attribute 'then_branch' has no graph");
	n->attribute[0]->name = "else";
	n->attribute[0]->type = ATTRIBUTE_TYPE(INT);
	model_refused(t, ST_INVALID, "attribute 'then_branch' is missing or holds no graph");
	n->op_type = "Relu";
	model_refused(t, ST_INVALID, "holds a graph, which this operator does not take");
}

/* --- Loop --- */

/* v, all = loop of (go on, v + i * step, v) from v = start; `step` stands outside. */
static Onnx__NodeProto *counting(struct model_test *t, const char *inputs)
{
	model_number(t, "start", 0);
	model_number(t, "step", 10);
	model_truth(t, "yes", true);
	Onnx__NodeProto *n = model_node(t, "Loop", "loop", inputs, "v,all");
	model_loop_body(t, n, "v", TENSOR_TYPE(INT64), "");
	model_node(t, "Mul", "", "i,step", "more");
	model_node(t, "Add", "", "v,more", "v_out");
	model_number(t, "limit", 55);
	model_node(t, "Less", "", "v_out,limit", "go_out");
	model_node(t, "Identity", "", "v_out", "seen");
	model_output(t, "go_out");
	model_output(t, "v_out");
	model_output(t, "seen");
	model_outside(t);
	model_output(t, "v");
	model_output(t, "all");
	return n;
}

static void loop_counts(void **state)
{
	struct model_test *t = *state;
	counting(t, "three,yes,start");
	model_number(t, "three", 3);
	model_accepted(t);
	test_known(t, "v", ": 30");
	test_known(t, "all", "3: 0 10 30");
	assert_int_equal(t->g->nnode, 0);
}

static void loop_until(void **state)
{
	struct model_test *t = *state;
	Onnx__NodeProto *n = counting(t, ",yes,start");
	model_accepted(t);
	test_known(t, "all", "4: 0 10 30 60");
	n->input[1] = "";
	model_accepted(t);
	test_known(t, "v", ": 60");
	n->input[0] = "many";
	model_number(t, "many", INT64_MAX);
	n->input[1] = "yes";
	model_accepted(t);
	test_known(t, "v", ": 60");
}

static void loop_of_no_turns(void **state)
{
	struct model_test *t = *state;
	Onnx__NodeProto *n = counting(t, "none,yes,start");
	model_number(t, "none", -1);
	model_refused(t, ST_INVALID, "loop (Loop): makes no turn, and the shape");
	Onnx__GraphProto *body = n->attribute[0]->g;
	body->output[2]->type = body->input[2]->type; /* a scalar of int64 */
	model_accepted(t);
	test_known(t, "v", ": 0");
	test_known(t, "all", "0:");
}

static void loop_not_known(void **state)
{
	struct model_test *t = *state;
	Onnx__NodeProto *n = counting(t, "n,yes,start");
	model_input(t, "n", TENSOR_TYPE(INT64), "");
	model_refused(t, ST_INVALID, "loop (Loop): the trip count 'n' is not known");
	n->input[0] = "";
	n->input[2] = "n";
	model_refused(t, ST_INVALID,
		"loop (Loop): data say when it ends ('loop/0/go_out'), and nothing how many turns "
		"there");
	n->input[1] = "n";
	model_refused(t, ST_INVALID, "ends ('n'), and nothing how many turns there may be");
	n->input[1] = "yes";
	model_number(t, "five", 5);
	n->input[0] = "five";
	model_refused(t, ST_INVALID, "ends ('loop/0/go_out'), and so how long what it collects is");
}

/* y = loop of at most three turns of (v + v) from v = x, until its first element is over `limit`.
 */
static Onnx__NodeProto *doubling(struct model_test *t, const char *made)
{
	model_input(t, "x", TENSOR_TYPE(FLOAT), "2");
	model_input(t, "limit", TENSOR_TYPE(FLOAT), "");
	model_number(t, "three", 3);
	model_number(t, "first", 0);
	Onnx__NodeProto *n = model_node(t, "Loop", "loop", "three,,x", "y");
	model_loop_body(t, n, "v", TENSOR_TYPE(FLOAT), "2");
	model_node(t, "Add", "add", "v,v", "twice");
	model_node(t, "Less", "less", "twice,limit", "all");
	model_node(t, "Gather", "one", "twice,first", "it");
	model_node(t, "Less", "on", "it,limit", "go_on");
	Onnx__NodeProto *join = model_node(t, "Concat", "join", "v,v", "joined");
	Onnx__AttributeProto *axis = model_attribute(t, join, "axis", ATTRIBUTE_TYPE(INT));
	axis->has_i = 1;
	model_output(t, "go_on");
	model_output(t, made);
	model_outside(t);
	model_output(t, "y");
	return n;
}

/* The first turn always runs; each behind it is a branch of one condition, and hands on what it was
 * given where it does not run. */
static void loop_ended_by_data(void **state)
{
	struct model_test *t = *state;
	Onnx__NodeProto *n = doubling(t, "twice");
	model_accepted(t);
	const struct node *branch = NULL, *last = t->g->output[0]->maker;
	int branches = 0;
	for (int i = 0; i < t->g->nnode; i++) {
		const struct node *m = t->g->node[i];
		if (m->op->role == ROLE_BRANCH && branches++ == 0)
			branch = m;
		if (!strncmp(m->name, "loop/0/", 7))
			assert_null(m->when);
		if (!strncmp(m->name, "loop/1/", 7))
			assert_ptr_equal(m->when, branch->out[0]);
	}
	assert_int_equal(branches, 2);
	assert_string_equal(branch->out[0]->name, "loop/on");
	assert_int_equal(last->op->role, ROLE_CHOOSE);
	assert_int_equal(last->in[2]->maker->op->role, ROLE_CHOOSE);
	assert_ptr_equal(last->in[2]->maker->in[0], branch->out[0]);
	graph_verify(t->g);
	n->attribute[0]->g->output[0]->name = "all";
	model_refused(t, ST_INVALID,
		"loop (Loop): what says after turn 1 whether it goes on is not one BOOL");
}

/* What goes around is as it was where a turn does not run. */
static void loop_ended_by_data_of_one_shape(void **state)
{
	struct model_test *t = *state;
	doubling(t, "joined");
	model_refused(t, ST_INVALID,
		"loop (Loop): value 0 that goes around is f32[4] before turn 2 and f32[8] after "
		"it");
}

/* A recurrent cell: the weights inside are one parameter for all turns. */
static void loop_with_weights(void **state)
{
	struct model_test *t = *state;
	model_input(t, "x", TENSOR_TYPE(FLOAT), "2,4");
	model_number(t, "three", 3);
	Onnx__NodeProto *n = model_node(t, "Loop", "loop", "three,,x", "h,all");
	model_loop_body(t, n, "h", TENSOR_TYPE(FLOAT), "2,4");
	model_weights(t, "inner.weight", "4,4");
	model_node(t, "MatMul", "cell", "h,inner.weight", "m");
	model_node(t, "Tanh", "", "m", "h_out");
	model_output(t, "go");
	model_output(t, "h_out");
	model_output(t, "h_out");
	model_outside(t);
	model_output(t, "h");
	model_output(t, "all");
	model_accepted(t);
	const struct tensor *w = test_tensor(t, "inner.weight");
	assert_int_equal(w->role, TR_PARAMETER);
	int readers = 0;
	for (int i = 0; i < t->g->nnode; i++)
		readers += t->g->node[i]->nin > 1 && t->g->node[i]->in[1] == w;
	assert_int_equal(readers, 3);
	assert_string_equal(t->g->node[2]->name, "loop/1/cell");
	assert_string_equal(t->g->output[0]->name, "h");
	assert_int_equal(t->g->output[1]->rank, 3);
	assert_int_equal(t->g->output[1]->dim[0], 3);
	model_weights(t, "inner.weight", "4,4");
	model_accepted(t); /* around the body, another */
	assert_int_equal(test_tensor(t, "inner.weight@body")->role, TR_PARAMETER);
}

/* Each refused before, or soon after, it begins. */
static void loop_bombs(void **state)
{
	struct model_test *t = *state;
	Onnx__NodeProto *n = counting(t, "many,,start");
	Onnx__GraphProto *body = n->attribute[0]->g;
	model_number(t, "many", INT64_C(1) << 62);
	model_refused(t, ST_INVALID, "loop (Loop): comes to more nodes than stint builds");
	n->input[1] = "yes";
	body->output[0]->name = "go";
	model_refused(t, ST_INVALID, "functions and loops come to more than 200000 nodes");
	body->n_node = 0; /* nothing but turns */
	body->output[1]->name = body->output[2]->name = "v";
	model_refused(t, ST_INVALID, "functions and loops come to more than 200000 nodes");
	n->input[0] = n->input[1] = "";
	model_refused(t, ST_INVALID, "functions and loops come to more than 200000 nodes");
}

/* A thousand times a thousand turns. */
static void nested_loops(void **state)
{
	struct model_test *t = *state;
	model_number(t, "turns", 3);
	model_number(t, "zero", 0);
	Onnx__NodeProto *outer = model_node(t, "Loop", "outer", "turns,,zero", "sum");
	model_loop_body(t, outer, "a", TENSOR_TYPE(INT64), "");
	Onnx__NodeProto *inner = model_node(t, "Loop", "inner", "turns,,a", "a_out");
	model_output(t, "go");
	model_output(t, "a_out");
	model_inside(t, inner, "body");
	model_input(t, "j", TENSOR_TYPE(INT64), "");
	model_input(t, "go2", TENSOR_TYPE(BOOL), "");
	model_input(t, "b", TENSOR_TYPE(INT64), "");
	model_node(t, "Mul", "", "i,j", "p");
	model_node(t, "Add", "", "b,p", "b_out");
	model_output(t, "go2");
	model_output(t, "b_out");
	model_outside(t);
	model_output(t, "sum");
	model_accepted(t);
	test_known(t, "sum", ": 9");
	const int64_t thousand = 1000;
	model_raw(t->graph.initializer[0], &thousand, sizeof thousand);
	model_refused(t, ST_INVALID, "nodes");
}

static void loop_that_does_not_fit(void **state)
{
	struct model_test *t = *state;
	Onnx__NodeProto *n = counting(t, "three,yes,start,start");
	Onnx__GraphProto *body = n->attribute[0]->g;
	model_number(t, "three", 3);
	model_refused(t, ST_INVALID, "loop (Loop): has 4 inputs, its body 3");
	n->n_input = 3;
	body->n_output = 1;
	model_refused(t, ST_INVALID, "its body has 3 inputs and 1 outputs");
	body->n_output = 2;
	model_refused(t, ST_INVALID, "its body has 3 inputs and 2 outputs");
	body->n_node = 0;
	body->n_input = 1;
	body->output[0]->name = body->output[1]->name = "i";
	n->n_input = 1;
	model_refused(t, ST_INVALID, "its body has 1 inputs and 2 outputs");
}

/* --- Scan --- */

/* From s = 0 over rows r of x, and columns backwards of z: s + r, and what it comes to. */
static Onnx__NodeProto *scanning(struct model_test *t)
{
	model_weights(t, "x", "3,2");
	model_weights(t, "z", "2,3");
	model_raw(model_tensor(t, "zero", TENSOR_TYPE(FLOAT), "2"), "\0\0\0\0\0\0\0\0", 8);
	Onnx__NodeProto *n = model_node(t, "Scan", "scan", "zero,x,z", "last,sums,columns");
	model_int(t, n, "num_scan_inputs", 2);
	model_inside(t, n, "body");
	model_input(t, "s", TENSOR_TYPE(FLOAT), "2");
	model_input(t, "r", TENSOR_TYPE(FLOAT), "2");
	model_input(t, "c", TENSOR_TYPE(FLOAT), "2");
	model_node(t, "Add", "", "s,r", "next");
	model_node(t, "Identity", "", "c", "column");
	model_output(t, "next");
	model_output(t, "next");
	model_output(t, "column");
	model_outside(t);
	model_output(t, "last");
	model_output(t, "sums");
	model_output(t, "columns");
	static const char *const all[] = {"*", NULL};
	t->options.freeze_pattern = all;
	return n;
}

static void list_attribute(
	struct model_test *t, Onnx__NodeProto *n, const char *name, int64_t a, int64_t b)
{
	Onnx__AttributeProto *x = model_attribute(t, n, name, ATTRIBUTE_TYPE(INTS));
	x->ints = ARENA_ARRAY(t->arena, int64_t, 2);
	x->ints[0] = a;
	x->ints[1] = b;
	x->n_ints = 2;
}

static void scan_directions_and_axes(void **state)
{
	struct model_test *t = *state;
	Onnx__NodeProto *n = scanning(t);
	model_refused(t, ST_INVALID, "its scanned inputs have different lengths, 3 and 2");
	list_attribute(t, n, "scan_input_axes", 0, -1);
	model_accepted(t);
	test_known(t, "last", "2: 6 9");
	test_known(t, "sums", "3,2: 0 1 2 4 6 9");
	test_known(t, "columns", "3,2: 0 3 1 4 2 5");
	list_attribute(t, n, "scan_input_directions", 0, 1);
	model_accepted(t);
	test_known(t, "columns", "3,2: 2 5 1 4 0 3");
	list_attribute(t, n, "scan_output_axes", -1, 1);
	list_attribute(t, n, "scan_output_directions", 1, 0);
	model_accepted(t);
	test_known(t, "sums", "2,3: 6 2 0 9 4 1");
	test_known(t, "columns", "2,3: 2 1 0 5 4 3");
	n->attribute[n->n_attribute - 1]->n_ints = 1;
	model_refused(t, ST_INVALID, "attribute 'scan_output_directions' must list 2 numbers");
	n->attribute[0]->i = 4;
	model_refused(t, ST_INVALID, "scan (Scan): has 3 inputs and num_scan_inputs=-1");
}

static void scan_not_known(void **state)
{
	struct model_test *t = *state;
	Onnx__NodeProto *n = scanning(t);
	t->graph.initializer[1]->dims[1] = 1 << 20;
	t->graph.n_initializer--;
	model_input(t, "zero", TENSOR_TYPE(FLOAT), "2");
	model_input(t, "long", TENSOR_TYPE(FLOAT), "1048576,2");
	n->input[1] = "long";
	t->graph.initializer[1] = t->graph.initializer[0];
	t->graph.n_initializer = 1;
	n->input[2] = "long";
	model_refused(t, ST_INVALID, "scan (Scan): comes to more nodes than stint builds");
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, model_setup_operators, model_teardown)
	const struct CMUnitTest tests[] = {
		TEST(only_the_branch_taken),
		TEST(decided_by_data),
		TEST(branches_that_differ),
		TEST(condition_of_many),
		TEST(branch_hands_on),
		TEST(views_alone),
		TEST(nodes_wait_for_what_bodies_read),
		TEST(bodies_are_checked),
		TEST(loop_counts),
		TEST(loop_until),
		TEST(loop_of_no_turns),
		TEST(loop_not_known),
		TEST(loop_ended_by_data),
		TEST(loop_ended_by_data_of_one_shape),
		TEST(loop_with_weights),
		TEST(loop_bombs),
		TEST(nested_loops),
		TEST(loop_that_does_not_fit),
		TEST(scan_directions_and_axes),
		TEST(scan_not_known),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
