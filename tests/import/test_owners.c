/* Which of the module's tensors stands where an exporter has merged equal ones: by the calls that a
 * dynamo file notes, and by modules where it does not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "graph/fused.h"
#include "tests/import/notes.h"
#include "tests/import/operators.h"

/* Nodes "n0", "n1", ...: y = op(x, initializers), of module `scope`, by a call; a chain from x. */
static Onnx__NodeProto *step(struct model_test *t, const char *op, int i, const char *reads,
	const char *scope, const char *target, const char *arguments)
{
	struct arena *a = t->arena;
	const char *from = i ? arena_printf(a, "v%d", i - 1) : "x";
	Onnx__NodeProto *n = model_node(t, op, arena_printf(a, "n%d", i),
		arena_printf(a, "%s,%s", from, reads), arena_printf(a, "v%d", i));
	if (scope)
		notes_from(t, scope, n);
	if (target)
		notes_call(t, arena_printf(a, "c%d", i), target, arguments, n);
	return n;
}

/* nn.MultiheadAttention reads its projection's bias itself; with calls noted or without. */
static void attention(struct model_test *t, bool calls)
{
	static const char linear[] = "aten.linear.default";
	static const char *const arguments[] = {"%x, %p_a_w, %p_a_b", "%v0, %p_b_w, %p_b_b"};
	model_input(t, "x", TENSOR_TYPE(FLOAT), "2,4");
	model_weights(t, "a.out_proj.weight", "4,4");
	model_weights(t, "b.out_proj.weight", "4,4");
	notes_filled(t, "a.in_proj_bias", "2,4", 8, 0);
	notes_filled(t, "a.out_proj.bias", "4", 4, 0);
	notes_signature(t, "p_a_i: PARAMETER target='a.in_proj_bias'\n"
			   "p_a_w: PARAMETER target='a.out_proj.weight'\n"
			   "p_a_b: PARAMETER target='a.out_proj.bias'\n"
			   "p_b_i: PARAMETER target='b.in_proj_bias'\n"
			   "p_b_w: PARAMETER target='b.out_proj.weight'\n"
			   "p_b_b: PARAMETER target='b.out_proj.bias'\nx: USER_INPUT\n");
	for (int i = 0; i < 4; i++) { /* a, b, a, b */
		const char *scope = i % 2 ? "b" : "a";
		step(t, "Gemm", 2 * i,
			i % 2 ? "b.out_proj.weight,a.out_proj.bias"
			      : "a.out_proj.weight,a.out_proj.bias",
			scope, calls ? linear : NULL, arguments[i % 2]);
		step(t, "Add", 2 * i + 1, "a.in_proj_bias", scope, calls ? "aten.add.Tensor" : NULL,
			i % 2 ? "%v0, %p_b_i" : "%v0, %p_a_i");
	}
	model_output(t, "v7");
	model_accepted(t);
}

static void check_attention(const struct model_test *t)
{
	for (int i = 0; i < 2; i++) {
		static const char *const gemm[] = {"n0", "n4"}, *const add[] = {"n1", "n5"};
		static const char *const gemm_b[] = {"n2", "n6"}, *const add_b[] = {"n3", "n7"};
		notes_reads(t, gemm[i], 2, "a.out_proj.bias");
		notes_reads(t, add[i], 1, "a.in_proj_bias");
		notes_reads(t, gemm_b[i], 2, "b.out_proj.bias");
		notes_reads(t, add_b[i], 1, "b.in_proj_bias");
	}
	assert_ptr_equal(notes_input(t, "n2", 2), notes_input(t, "n6", 2));
	assert_int_equal(t->diag.warnings, 0);
}

static void attention_called_twice(void **state)
{
	attention(*state, true);
	check_attention(*state);
}

static void attention_by_modules(void **state)
{
	attention(*state, false);
	check_attention(*state);
}

/* A norm whose weight and bias are zeros both: one initializer, read twice by one node. */
static void two_in_one_node(void **state)
{
	struct model_test *t = *state;
	model_input(t, "x", TENSOR_TYPE(FLOAT), "2,4");
	notes_filled(t, "a.weight", "4", 4, 0);
	notes_signature(t, "p_aw: PARAMETER target='a.weight'\np_ab: PARAMETER target='a.bias'\n"
			   "p_bw: PARAMETER target='b.weight'\np_bb: PARAMETER target='b.bias'\n");
	step(t, "LayerNormalization", 0, "a.weight,a.weight", "a", "aten.layer_norm.default",
		"%x, [4], %p_aw, %p_ab, 1e-05");
	step(t, "LayerNormalization", 1, "a.weight,a.weight", "b", "aten.layer_norm.default",
		"%v0, [4], %p_bw, %p_bb, 1e-05");
	model_output(t, "v1");
	model_accepted(t);
	notes_reads(t, "n0", 1, "a.weight");
	notes_reads(t, "n0", 2, "a.bias");
	notes_reads(t, "n1", 1, "b.weight");
	notes_reads(t, "n1", 2, "b.bias");
}

/* Two modules share a weight under two names: calls have the one that PyTorch took. Their biases,
 * equal ones, are two. An addmm names its bias first. */
static void real_ties_stay(void **state)
{
	struct model_test *t = *state;
	model_input(t, "x", TENSOR_TYPE(FLOAT), "2,4");
	notes_filled(t, "first.weight", "4", 4, 1);
	notes_filled(t, "first.bias", "4", 4, 0);
	model_weights(t, "w", "4,4");
	notes_signature(t,
		"p0: PARAMETER target='first.weight'\np1: PARAMETER target='first.bias'\n"
		"p2: PARAMETER target='a.weight'\np3: PARAMETER target='a.bias'\n"
		"p4: PARAMETER target='b.weight'\np5: PARAMETER target='b.bias'\n"
		"p6: PARAMETER target='w'\np7: PARAMETER target='bias'\n");
	step(t, "LayerNormalization", 0, "first.weight,first.bias", "first",
		"aten.layer_norm.default", "%x, [4], %p0, %p1, 1e-05");
	step(t, "LayerNormalization", 1, "first.weight,first.bias", "a", "aten.layer_norm.default",
		"%v0, [4], %p4, %p3, 1e-05");
	step(t, "LayerNormalization", 2, "first.weight,first.bias", "b", "aten.layer_norm.default",
		"%v1, [4], %p4, %p5, 1e-05");
	step(t, "Gemm", 3, "w,first.bias", "", "aten.addmm.default", "%p7, %v2, %p6");
	model_output(t, "v3");
	model_accepted(t);
	notes_reads(t, "n0", 1, "first.weight");
	notes_reads(t, "n1", 1, "b.weight");
	notes_reads(t, "n2", 1, "b.weight");
	notes_reads(t, "n1", 2, "a.bias");
	notes_reads(t, "n2", 2, "b.bias");
	notes_reads(t, "n3", 1, "w");
	notes_reads(t, "n3", 2, "bias");
}

/* What is merged with a parameter and no call's argument is a constant; so is a norm without. */
static void arguments_decide(void **state)
{
	struct model_test *t = *state;
	model_input(t, "x", TENSOR_TYPE(FLOAT), "2,4");
	notes_filled(t, "a.weight", "4", 4, 1);
	notes_signature(t, "p0: PARAMETER target='a.weight'\np1: PARAMETER target='b.lost'\n");
	step(t, "Mul", 0, "a.weight", "a", "aten.mul.Tensor", "%x, %p0");
	step(t, "Mul", 1, "a.weight", "b", "aten.rms_norm.default", "%v0, [4]");
	model_output(t, "v1");
	model_accepted(t);
	notes_reads(t, "n0", 1, "a.weight");
	assert_int_equal(notes_input(t, "n1", 1)->role, TR_CONSTANT);
	assert_ptr_not_equal(notes_input(t, "n1", 1), notes_input(t, "n0", 1));
}

/* Fused nodes keep the note of one call: what it does not mention may be the other's. */
static void fused_calls_decide_nothing(void **state)
{
	struct model_test *t = *state;
	model_input(t, "x", TENSOR_TYPE(FLOAT), "2,4");
	notes_filled(t, "a.weight", "4", 4, 1);
	notes_signature(t, "p0: PARAMETER target='a.weight'\n");
	for (int i = 0; i < 2; i++)
		notes_put(t, &step(t, "Mul", i, "a.weight", "a", "aten.relu.default", "%mul")->base,
			9, "pkg.onnxscript.rewriter.rule_name", "FuseSomething");
	model_output(t, "v1");
	model_accepted(t);
	notes_reads(t, "n0", 1, "a.weight");
	notes_reads(t, "n1", 1, "a.weight");
}

/* Group norms: weights in another shape, of an exporter's name, equal and so merged. */
static void forms(struct model_test *t, bool calls)
{
	model_input(t, "x", TENSOR_TYPE(FLOAT), "2,4,3");
	notes_filled(t, "val_1", "4,1", 4, 1);
	notes_filled(t, "val_2", "4,1", 4, 0);
	notes_signature(t, "p0: PARAMETER target='a.weight'\np1: PARAMETER target='a.bias'\n"
			   "p2: PARAMETER target='b.weight'\np3: PARAMETER target='b.bias'\n");
	for (int i = 0; i < 6; i++) { /* a, b, a */
		const bool b = i / 2 == 1;
		Onnx__NodeProto *n = step(t, i % 2 ? "Add" : "Mul", i, i % 2 ? "val_2" : "val_1",
			b ? "b" : "a", NULL, NULL);
		if (calls)
			notes_call(t,
				i < 2 ? "norm"
				: b   ? "norm_1"
				      : "norm_2",
				"aten.group_norm.default",
				b ? "%y, 2, %p2, %p3" : "%x, 2, %p0, %p1", n);
	}
	model_output(t, "v5");
	model_accepted(t);
	notes_reads(t, "n0", 1, "val_1");
	notes_reads(t, "n1", 1, "val_2");
	notes_reads(t, "n2", 1, calls ? "val_1@b.weight" : "val_1@b");
	notes_reads(t, "n3", 1, calls ? "val_2@b.bias" : "val_2@b");
	notes_reads(t, "n4", 1, "val_1");
	notes_reads(t, "n5", 1, "val_2");
}

static void merged_forms(void **state)
{
	forms(*state, true);
}

static void merged_forms_by_modules(void **state)
{
	forms(*state, false);
}

/* The module reads more of others than it has lost, and nothing tells which: never a constant. */
static void unsure_copies_are_trained(void **state)
{
	struct model_test *t = *state;
	model_input(t, "x", TENSOR_TYPE(FLOAT), "2,4");
	notes_filled(t, "a.shift", "4", 4, 0);
	notes_signature(t, "p0: PARAMETER target='a.shift'\np1: PARAMETER target='b.sub.u'\n"
			   "p2: PARAMETER target='b.sub.v'\n");
	step(t, "Add", 0, "a.shift", "a", NULL, NULL);
	step(t, "Add", 1, "a.shift", "b", NULL, NULL);
	model_output(t, "v1");
	model_accepted(t);
	notes_reads(t, "n0", 1, "a.shift");
	notes_reads(t, "n1", 1, "a.shift@b");
	assert_true(t->diag.warnings > 0);
	test_said(t, "are trained as parameters of their own: 'a.shift@b'");
	t->options.freeze_pattern = (const char *const[]){"a.shift@b", NULL};
	model_accepted(t);
	notes_not_trained(t, "a.shift@b", "--freeze");
}

/* --untie of a real tie whose alias the module knows: a parameter again, not a constant. */
static void untied_copies_are_trained(void **state)
{
	struct model_test *t = *state;
	model_input(t, "x", TENSOR_TYPE(FLOAT), "2,4");
	model_weights(t, "a.b", "4");
	notes_signature(t, "p0: PARAMETER target='a.b'\n");
	step(t, "Add", 0, "a.b", "a", NULL, NULL);
	step(t, "Add", 1, "a.b", "c", NULL, NULL);
	model_output(t, "v1");
	model_accepted(t);
	notes_reads(t, "n1", 1, "a.b");
	t->options.untie_pattern = (const char *const[]){"a.b", NULL};
	model_accepted(t);
	notes_reads(t, "n0", 1, "a.b");
	notes_reads(t, "n1", 1, "a.b@c");
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, model_setup_operators, model_teardown)
	const struct CMUnitTest tests[] = {T(attention_called_twice), T(attention_by_modules),
		T(two_in_one_node), T(real_ties_stay), T(arguments_decide),
		T(fused_calls_decide_nothing), T(merged_forms), T(merged_forms_by_modules),
		T(unsure_copies_are_trained), T(untied_copies_are_trained)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
