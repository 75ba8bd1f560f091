/* What the importer makes of initializers: which are trained, which are one, which are apart. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/import/notes.h"
#include "tests/import/operators.h"

/* --- Merged initializers --- */

/* Three layer norms, one of them used twice, as the dynamo exporter leaves fresh ones. */
static void merged_norms(struct model_test *t)
{
	model_input(t, "x", TENSOR_TYPE(FLOAT), "2,4");
	notes_filled(t, "ln1.weight", "4", 4, 1);
	notes_filled(t, "ln1.bias", "4", 4, 0);
	notes_signature(t, "p_ln1_weight: PARAMETER target='ln1.weight'\n"
			   "p_ln1_bias: PARAMETER target='ln1.bias'\n"
			   "p_ln2_weight: PARAMETER target='ln2.weight'\n"
			   "p_ln2_bias: PARAMETER target='ln2.bias'\n"
			   "p_sh_weight: PARAMETER target='sh.weight'\n"
			   "p_sh_bias: PARAMETER target='sh.bias'\nx: USER_INPUT\n");
	static const char *const scope[] = {"ln1", "ln2", "sh", "sh"};
	static const char *const name[] = {"n0", "n1", "n2", "n3"};
	static const char *const in[] = {"x", "a", "b", "c"}, *const out[] = {"a", "b", "c", "y"};
	for (int i = 0; i < 4; i++)
		notes_from(t, scope[i],
			model_node(t, "LayerNormalization", name[i],
				arena_printf(t->arena, "%s,ln1.weight,ln1.bias", in[i]), out[i]));
	model_output(t, "y");
}

static void equal_ones_are_separate(void **state)
{
	struct model_test *t = *state;
	merged_norms(t);
	model_accepted(t);
	test_said(t,
		"parameters of their own again: 'ln2.weight', 'sh.weight', 'ln2.bias', 'sh.bias'");
	notes_reads(t, "n0", 1, "ln1.weight");
	notes_reads(t, "n1", 1, "ln2.weight");
	notes_reads(t, "n1", 2, "ln2.bias");
	notes_reads(t, "n2", 1, "sh.weight");
	notes_reads(t, "n3", 2, "sh.bias");
	assert_ptr_equal(notes_input(t, "n2", 1), notes_input(t, "n3", 1));
	/* the copy of the model says so itself */
	const char *copy = test_path(t, "copy.onnx");
	assert_int_equal(import_copy_model(test_path(t, "model.onnx"), copy, &t->options, t->table,
				 NULL, NULL, &t->diag),
		ST_OK);
	assert_int_equal(test_import(t, copy), ST_OK);
	assert_null(t->said.s);
	notes_reads(t, "n3", 1, "sh.weight");
}

static void ties_asked_for_stay(void **state)
{
	struct model_test *t = *state;
	merged_norms(t);
	const struct import_tie tie = {"ln1.weight", "ln1.bias"};
	t->options.tie = &tie;
	t->options.ntie = 1;
	model_accepted(t);
	notes_reads(t, "n1", 2, "ln1.weight");
	notes_reads(t, "n3", 1, "ln1.weight");
}

/* A norm without parameters gets the ones of another: constants, all the same. */
static void constants_are_not_trained(void **state)
{
	struct model_test *t = *state;
	merged_norms(t);
	notes_from(
		t, "free", model_node(t, "LayerNormalization", "n4", "y,ln1.weight,ln1.bias", "z"));
	model_output(t, "z");
	model_accepted(t);
	notes_reads(t, "n0", 1, "ln1.weight");
	assert_int_equal(notes_input(t, "n4", 1)->role, TR_CONSTANT);
	assert_int_equal(notes_input(t, "n4", 2)->role, TR_CONSTANT);
}

/* Without a word on modules: apart, unless PyTorch wrote the file and the nodes' names say that one
 * module is called again. */
static void without_modules(void **state)
{
	struct model_test *t = *state;
	model_input(t, "x", TENSOR_TYPE(FLOAT), "2,4");
	notes_filled(t, "ones", "4", 4, 1);
	model_weights(t, "w", "4");
	model_node(t, "Mul", "m0", "x,ones", "a");
	model_node(t, "Mul", "m1", "a,ones", "b");
	model_node(t, "Add", "a0", "b,w", "c");
	model_node(t, "Add", "a1", "c,w", "y");
	model_output(t, "y");
	model_accepted(t);
	notes_reads(t, "m0", 1, "ones");
	notes_reads(t, "m1", 1, "ones@m1.1");
	notes_reads(t, "a1", 1, "w"); /* a real tie */
	t->model.producer_name = "pytorch";
	model_accepted(t);
	notes_reads(t, "m1", 1, "ones@m1.1");
	test_said(t, "--tie 'ones=ones@m1.1' keeps that one as it was");
	const struct import_tie tie = {"ones", "ones@m1.1"};
	t->options.tie = &tie;
	t->options.ntie = 1;
	model_accepted(t);
	notes_reads(t, "m1", 1, "ones");
	t->options.tie = &(const struct import_tie){"ones@m1.2", "ones"};
	model_refused(t, ST_USAGE, "--tie: there is no initializer 'ones@m1.2'");
	t->options.ntie = 0;
	t->graph.node[0]->name = "/norm/Mul";
	t->graph.node[1]->name = "/norm_1/Mul_2";
	model_accepted(t);
	notes_reads(t, "/norm_1/Mul_2", 1, "ones");
	t->graph.node[0]->name = "m0";
	t->graph.node[1]->name = "m1";
	t->options.untie_pattern = (const char *const[]){"w", NULL};
	model_accepted(t);
	notes_reads(t, "a0", 1, "w");
	notes_reads(t, "a1", 1, "w@a1.1");
}

static void aliases(void **state)
{
	struct model_test *t = *state;
	model_input(t, "x", TENSOR_TYPE(FLOAT), "2,4");
	t->model.producer_name = "pytorch";
	notes_filled(t, "ln.weight", "4", 4, 1);
	model_weights(t, "l.bias", "4");
	model_node(t, "Identity", "i0", "ln.weight", "out.weight");
	model_node(t, "Identity", "i1", "l.bias", "c.bias");
	model_node(t, "Mul", "m0", "x,ln.weight", "a");
	model_node(t, "Mul", "m1", "a,out.weight", "b");
	model_node(t, "Add", "a0", "b,l.bias", "c");
	model_node(t, "Add", "a1", "c,c.bias", "y");
	model_output(t, "y");
	model_accepted(t);
	notes_reads(t, "m1", 1, "out.weight");
	assert_ptr_equal(tensor_storage((struct tensor *)(uintptr_t)notes_input(t, "a1", 1)),
		test_tensor(t, "l.bias"));
}

/* What the older exporter makes of two equal matrices of linear layers: it folds each, and merges
 * them. */
static const struct tensor *folded(struct model_test *t, const char *first, const char *second)
{
	model_input(t, "x", TENSOR_TYPE(FLOAT), "2,4");
	t->model.producer_name = "pytorch";
	model_weights(t, "onnx::MatMul_7", "4,4");
	model_node(t, "Identity", "i0", "onnx::MatMul_7", "onnx::MatMul_8");
	model_node(t, "MatMul", first, "x,onnx::MatMul_7", "a");
	model_node(t, "MatMul", second, "a,onnx::MatMul_8", "y");
	model_output(t, "y");
	model_accepted(t);
	return tensor_storage((struct tensor *)(uintptr_t)notes_input(t, second, 1));
}

static void a_layer_called_again(void **state)
{
	const struct tensor *w = folded(*state, "/a.0/fc/MatMul", "/a.0_1/fc/MatMul");
	assert_string_equal(w->name, "onnx::MatMul_7");
}

static void layers_of_a_stack(void **state)
{
	const struct tensor *w = folded(*state, "/a.0/fc/MatMul", "/a.1/fc/MatMul");
	assert_string_equal(w->name, "onnx::MatMul_8");
}

/* Layers copied from one: equal, but not one. */
static void stacks(void **state)
{
	struct model_test *t = *state;
	model_input(t, "x", TENSOR_TYPE(FLOAT), "2,4");
	model_weights(t, "layers.0.bias", "4");
	model_weights(t, "tied.bias", "4");
	notes_signature(t,
		"p0: PARAMETER target='layers.0.bias'\np1: PARAMETER target='layers.1.bias'\n"
		"p2: PARAMETER target='tied.bias'\np3: PARAMETER target='other.bias'\n");
	notes_from(t, "layers.0", model_node(t, "Add", "n0", "x,layers.0.bias", "a"));
	notes_from(t, "layers.1", model_node(t, "Add", "n1", "a,layers.0.bias", "b"));
	notes_from(t, "tied", model_node(t, "Add", "n2", "b,tied.bias", "c"));
	notes_from(t, "other", model_node(t, "Add", "n3", "c,tied.bias", "y"));
	model_output(t, "y");
	model_accepted(t);
	notes_reads(t, "n1", 1, "layers.1.bias");
	notes_reads(t, "n3", 1, "tied.bias");
}

/* --- Transposed copies --- */

/* An embedding, and its transpose as the head's weight, called `copy`. */
static void tied_head(struct model_test *t, const char *copy)
{
	static const float turned[] = {0, 2, 4, 1, 3, 5};
	model_input(t, "i", TENSOR_TYPE(INT64), "4");
	model_weights(t, "em.weight", "3,2");
	model_raw(model_tensor(t, copy, TENSOR_TYPE(FLOAT), "2,3"), turned, sizeof turned);
	model_node(t, "Gather", "look", "em.weight,i", "h");
	model_node(t, "MatMul", "head", arena_printf(t->arena, "h,%s", copy), "y");
	model_output(t, "y");
}

static void is_tied_head(struct model_test *t)
{
	model_accepted(t);
	test_said(t, "holds 'em.weight' transposed: tied to it again, their gradients add up");
	const struct tensor *w = notes_input(t, "head", 1);
	assert_string_equal(w->maker->op->name, "Transpose");
	assert_ptr_equal(w->maker->in[0], notes_input(t, "look", 0));
}

/* As a decomposed export calls it. */
static void permuted(void **state)
{
	tied_head(*state, "permute_3");
	notes_signature(*state, "p_e: PARAMETER target='em.weight'\n");
	is_tied_head(*state);
}

/* --tie of the embedding itself takes its transpose along. */
static void tied_to_another(void **state)
{
	static const struct import_tie tie[] = {{"other", "em.weight"}};
	struct model_test *t = *state;
	tied_head(t, "val_8");
	notes_filled(t, "other", "3,2", 6, 1);
	model_node(t, "Gather", "too", "other,i", "z");
	model_output(t, "z");
	t->options.tie = tie;
	t->options.ntie = 1;
	is_tied_head(t);
	notes_reads(t, "look", 0, "other");
	notes_reads(t, "too", 0, "other");
}

static void transposed(void **state)
{
	struct model_test *t = *state;
	tied_head(t, "val_8");
	is_tied_head(t);
	t->options.untie_pattern = (const char *const[]){"val_*", NULL};
	model_accepted(t);
	notes_reads(t, "head", 1, "val_8");
	const struct import_tie tie[] = {{"em.weight", "val_8"}, {"em.weight", "nothing"}};
	t->options.untie_pattern = NULL;
	t->options.tie = tie;
	t->options.ntie = 1;
	model_accepted(t);
	assert_non_null(notes_input(t, "head", 1)->maker);
	t->options.ntie = 2;
	model_refused(t, ST_USAGE, "there is no initializer 'nothing'");
}

/* --- What is trained --- */

static void roles(void **state)
{
	struct model_test *t = *state;
	model_input(t, "x", TENSOR_TYPE(FLOAT), "2,4");
	model_weights(t, "plain", "4");
	notes_filled(t, "mask", "4", 4, -INFINITY);
	model_weights(t, "val_3", "4");
	model_weights(t, "onnx::MatMul_3", "4,4");
	notes_filled(t, "ratio", "1", 1, 0.5f);
	model_node(t, "Add", "n0", "x,plain", "a");
	model_node(t, "Add", "n1", "a,mask", "b");
	model_node(t, "Sub", "n2", "b,val_3", "c");
	model_node(t, "MatMul", "n3", "c,onnx::MatMul_3", "d");
	model_node(t, "Dropout", "n4", "d,ratio", "y");
	model_output(t, "y");
	model_accepted(t);
	notes_reads(t, "n0", 1, "plain");
	notes_reads(t, "n3", 1, "onnx::MatMul_3");
	notes_not_trained(t, "mask", "a mask");
	notes_not_trained(t, "val_3", "made by the exporter");
	notes_not_trained(t, "ratio", "a setting of its operator");
	t->options.train_pattern = (const char *const[]){"val_3", "plain", NULL};
	t->options.freeze_pattern = (const char *const[]){"pl*", NULL};
	model_accepted(t);
	notes_reads(t, "n2", 1, "val_3");
	notes_not_trained(t, "plain", "--freeze");
	notes_not_trained(t, "onnx::MatMul_3", "not in --train");
}

/* The module's word goes before names. */
static void modules(void **state)
{
	struct model_test *t = *state;
	model_input(t, "x", TENSOR_TYPE(FLOAT), "2,4");
	model_weights(t, "p", "4");
	model_weights(t, "table", "4");
	model_weights(t, "cos", "4");
	notes_signature(t,
		"ExportGraphSignature(input_specs=[InputSpec(kind=<InputKind.PARAMETER: 2>, "
		"arg=TensorArgument(name='p_p'), target='p', persistent=None), "
		"InputSpec(kind=<InputKind.BUFFER: 3>, arg=TensorArgument(name='b_table'), "
		"target='table', persistent=True)])");
	model_node(t, "Add", "n0", "x,p", "a");
	model_node(t, "Add", "n1", "a,table", "b");
	model_node(t, "Mul", "n2", "b,cos", "y");
	model_output(t, "y");
	model_accepted(t);
	notes_reads(t, "n0", 1, "p");
	notes_not_trained(t, "table", "buffer of the module");
	notes_not_trained(t, "cos", "made by the exporter");
}

/* A state that the model begins with, in a module of which a weight was folded: the weight is
 * trained under the exporter's name, the state is not. */
static void factories(void **state)
{
	struct model_test *t = *state;
	model_input(t, "x", TENSOR_TYPE(FLOAT), "2,4");
	notes_filled(t, "zeros_1", "4,4", 16, 0);
	model_weights(t, "val_3", "4,4");
	notes_signature(t,
		"ExportGraphSignature(input_specs=[InputSpec(kind=<InputKind.PARAMETER: 2>, "
		"arg=TensorArgument(name='p_q'), target='q', persistent=None)])");
	notes_from(t, "", model_node(t, "MatMul", "n0", "x,zeros_1", "a"));
	notes_from(t, "", model_node(t, "MatMul", "n1", "a,val_3", "y"));
	model_output(t, "y");
	model_accepted(t);
	notes_not_trained(t, "zeros_1", "what torch.zeros and its like give");
	notes_reads(t, "n1", 1, "val_3");
}

/* tf2onnx names what it folds by number; a value for each channel is Keras's bias or batch-norm. */
static void keras(void **state)
{
	struct model_test *t = *state;
	model_input(t, "x", TENSOR_TYPE(FLOAT), "2,3,4,4");
	model_weights(t, "f/bn/batchnorm/mul:0", "1,3,1,1");
	model_weights(t, "const_fold_opt__7", "1,3,1,1");
	model_weights(t, "const_fold_opt__8", "1,1,4,1");
	model_weights(t, "onnx::Add_9", "1,3,1,1");
	model_node(t, "Mul", "n0", "x,f/bn/batchnorm/mul:0", "a");
	model_node(t, "Add", "n1", "a,const_fold_opt__7", "b");
	model_node(t, "Add", "n2", "b,const_fold_opt__8", "c");
	model_node(t, "Add", "n3", "c,onnx::Add_9", "y");
	model_output(t, "y");
	model_accepted(t);
	notes_reads(t, "n1", 1, "const_fold_opt__7");
	notes_not_trained(t, "const_fold_opt__8", "made by the exporter");
	notes_not_trained(t, "onnx::Add_9", "made by the exporter");
	test_said(t, "its batch-norms seem to be folded into other layers ('f/bn/batchnorm/mul:0' "
		     "tells): what is trained is a model without them");
	test_said(t, "export-from-keras.md");
}

/* PyTorch's older exporter computes both of a convolution's tensors; all others it names so for
 * other reasons: it packs an LSTM's, gives a PRelu's slope axes, turns a product's. */
static void folding_is_a_convolutions(void **state)
{
	struct model_test *t = *state;
	t->model.producer_name = "pytorch";
	model_input(t, "x", TENSOR_TYPE(FLOAT), "2,3,8,8");
	model_weights(t, "onnx::Conv_1", "3,3,3,3");
	model_weights(t, "c.bias", "3");
	model_weights(t, "onnx::PRelu_3", "3,1,1");
	model_weights(t, "onnx::LSTM_4", "1,24,36");
	model_weights(t, "onnx::LSTM_5", "1,24,6");
	model_weights(t, "onnx::LSTM_6", "1,48");
	model_number(t, "rank", 3);
	model_numbers(t, "rows", "2,3,36");
	model_node(t, "Conv", "normed", "x,onnx::Conv_1,c.bias", "a"); /* weight_norm, perhaps */
	model_node(t, "PRelu", "act", "a,onnx::PRelu_3", "b");
	model_node(t, "Reshape", "flat", "b,rows", "d");
	model_node(t, "LSTM", "rnn", "d,onnx::LSTM_4,onnx::LSTM_5,onnx::LSTM_6", "y");
	model_int(t, t->graph.node[t->graph.n_node - 1], "hidden_size", 6);
	model_output(t, "y");
	model_accepted(t);
	assert_null(strstr(t->said.s ? t->said.s : "", "batch-norms"));
	model_weights(t, "onnx::Conv_8", "3,3,1,1");
	model_weights(t, "onnx::Conv_9", "3");
	model_weights(t, "onnx::Conv_10", "3,3,1,1");
	model_weights(t, "onnx::Conv_11", "3");
	model_node(t, "Conv", "folded", "a,onnx::Conv_8,onnx::Conv_9", "e");
	model_node(t, "Conv", "too", "e,onnx::Conv_10,onnx::Conv_11", "z");
	model_output(t, "z");
	model_accepted(t);
	test_said(t, "folded into other layers ('onnx::Conv_8', 'onnx::Conv_10' tell)");
}

static void folding_is_told(void **state)
{
	struct model_test *t = *state;
	model_small(t);
	notes_filled(t, "conv.weight_bias", "4", 4, 1);
	model_accepted(t);
	test_said(t, "folded into other layers ('conv.weight_bias' tells)");
	test_said(t, "optimize=False");
	notes_signature(t,
		"p: PARAMETER target='w'\nb: BUFFER target='bn.running_mean' persistent=True\n"
		"q: PARAMETER target='token'\n");
	model_accepted(t);
	test_said(t, "('bn.running_mean' tells)");
	test_said(t, "1 parameter of the module is nowhere in the file: not used, the second name "
		     "of another, or folded into constants that are not trained: 'token'");
}

/* weight_norm under optimize=True: the product is there, what it was made of is not. */
static void computed_weights_are_told(void **state)
{
	struct model_test *t = *state;
	model_input(t, "x", TENSOR_TYPE(FLOAT), "2,4");
	model_weights(t, "mul_1", "4,4");
	model_output(t, "y");
	notes_signature(
		t, "p: PARAMETER target='fc.weight_g'\np: PARAMETER target='fc.weight_v'\n");
	notes_from(t, "fc", model_node(t, "MatMul", "n0", "x,mul_1", "y"));
	model_accepted(t);
	notes_reads(t, "n0", 1, "mul_1");
	test_said(t, "mul_1 (initializer): seems to be computed from parameters by the exporter: "
		     "it is trained in "
		     "their place");
	test_said(t, "optimize=False");
}

static void computed_beside_is_told(void **state)
{
	struct model_test *t = *state;
	model_input(t, "x", TENSOR_TYPE(FLOAT), "2,4");
	model_weights(t, "u", "4");
	model_weights(t, "einsum_1", "");
	model_output(t, "y");
	notes_signature(t, "p: PARAMETER target='u'\n");
	model_node(t, "Mul", "n0", "x,u", "a");
	model_node(t, "Mul", "n1", "a,einsum_1", "y");
	model_accepted(t);
	test_said(t,
		"einsum_1 (initializer): seems to be computed from parameters by the exporter: "
		"their gradients lack what goes through it");
}

static void called_again(struct model_test *t, const char *scale)
{
	model_input(t, "x", TENSOR_TYPE(FLOAT), "2,4");
	model_weights(t, "s", "4");
	model_weights(t, "s2", "4");
	model_weights(t, "b", "4");
	model_weights(t, "mean", "4");
	model_weights(t, "var", "4");
	model_node(t, "BatchNormalization", "n0", "x,s,b,mean,var", "a");
	model_node(t, "BatchNormalization", "n1", scale, "y");
	model_output(t, "y");
	model_accepted(t);
}

static void calls_of_a_batchnorm_share_statistics(void **state)
{
	struct model_test *t = *state;
	called_again(t, "a,s,b,mean,var");
	assert_int_equal(t->diag.warnings, 0);
	assert_ptr_equal(notes_input(t, "n1", 3), notes_input(t, "n0", 3));
	assert_ptr_equal(notes_input(t, "n1", 4), notes_input(t, "n0", 4));
}

static void batchnorms_of_equal_statistics_are_fine(void **state)
{
	struct model_test *t = *state;
	called_again(t, "a,s2,b,mean,var");
	assert_int_equal(t->diag.warnings, 0);
	assert_ptr_not_equal(notes_input(t, "n1", 3), notes_input(t, "n0", 3));
}

/* A temperature: a scalar is trained where PyTorch says that it is a parameter, or by its name. */
static void scalars(struct model_test *t)
{
	model_input(t, "x", TENSOR_TYPE(FLOAT), "2,4");
	model_weights(t, "temperature", "");
	model_weights(t, "half", "");
	model_weights(t, "onnx::Mul_3", "");
	model_node(t, "Mul", "n0", "x,temperature", "a");
	model_node(t, "Mul", "n1", "a,half", "b");
	model_node(t, "Mul", "n2", "b,onnx::Mul_3", "y");
	model_output(t, "y");
}

static void scalars_are_constants(void **state)
{
	struct model_test *t = *state;
	scalars(t);
	model_accepted(t);
	notes_not_trained(t, "temperature", "a scalar");
	t->options.train_pattern = (const char *const[]){"temp*", NULL};
	model_accepted(t);
	notes_reads(t, "n0", 1, "temperature");
	notes_not_trained(t, "half", "a scalar");
}

static void scalar_parameters(void **state)
{
	struct model_test *t = *state;
	scalars(t);
	t->model.producer_name = "pytorch";
	model_accepted(t);
	notes_reads(t, "n0", 1, "temperature");
	notes_reads(t, "n1", 1, "half");
	notes_not_trained(t, "onnx::Mul_3", "a scalar");
	notes_signature(t, "p: PARAMETER target='temperature'\n");
	model_accepted(t);
	notes_reads(t, "n0", 1, "temperature");
	notes_not_trained(t, "half", "a scalar");
}

/* --- Gradients stopped, inputs fixed --- */

/* `.detach()` is Identity in ONNX; the newer exporter notes what it was. */
static void detached(void **state)
{
	struct model_test *t = *state;
	model_small(t);
	t->options.batch = 2;
	model_accepted(t);
	assert_false(t->g->output[0]->maker->op->traits & OP_STOP);
	notes_put(t, &t->graph.node[t->graph.n_node - 1]->base, 9, "pkg.torch.onnx.fx_node",
		"%d : call_function[target=torch.ops.aten.detach.default](args = (%s,), kwargs = "
		"{})");
	model_accepted(t);
	assert_true(t->g->output[0]->maker->op->traits & OP_STOP);
}

static void stops(void **state)
{
	struct model_test *t = *state;
	model_small(t);
	t->options.batch = 2;
	t->options.stop_pattern = (const char *const[]){"*", NULL};
	model_accepted(t);
	assert_true(t->g->output[0]->maker->op->traits & OP_STOP);
	t->options.stop_pattern = (const char *const[]){"none*", NULL};
	model_accepted(t);
	assert_false(t->g->output[0]->maker->op->traits & OP_STOP);
	test_said(t, "--stop-gradient 'none*' fits no node of the model itself");
}

static void fixed_inputs(void **state)
{
	struct model_test *t = *state;
	const struct import_fix fix[] = {{"w", "1,2.5,-3,4", NULL}, {"k", "2", NULL}};
	model_input(t, "x", TENSOR_TYPE(FLOAT), "2,4");
	model_input(t, "w", TENSOR_TYPE(FLOAT), "4");
	model_input(t, "k", TENSOR_TYPE(INT64), "n");
	model_node(t, "Add", "add", "x,w", "a");
	model_node(t, "Add", "sums", "w,w", "v");
	model_node(t, "Expand", "e", "a,k", "y");
	model_output(t, "v");
	t->options.fix = fix;
	t->options.nfix = 2;
	model_refused(t, ST_INVALID, "e (Expand)");
	t->graph.n_node = 2;
	model_accepted(t);
	assert_int_equal(t->g->ninput, 1);
	test_known(t, "v", "4: 2 5 -6 8");
	t->options.fix = (const struct import_fix[]){{"w", "1,2", NULL}};
	t->options.nfix = 1;
	model_refused(t, ST_USAGE, "--fix w=1,2 does not fit it");
	t->options.fix = (const struct import_fix[]){{"w", "1,2,x,4", NULL}};
	model_refused(t, ST_USAGE, "does not fit it");
	t->options.fix = (const struct import_fix[]){{"none", "1", NULL}};
	model_refused(t, ST_USAGE, "--fix: there is no input 'none'");
}

/* The exporter writes a loss without the label smoothing of the call that it notes. */
static void lost_smoothing(void **state)
{
	static const char key[] = "pkg.torch.onnx.fx_node";
	struct model_test *t = *state;
	model_input(t, "x", TENSOR_TYPE(FLOAT), "2,3");
	model_input(t, "y", TENSOR_TYPE(INT64), "2");
	Onnx__NodeProto *n = model_node(t, "SoftmaxCrossEntropyLoss", "loss", "x,y", "z");
	model_output(t, "z");
	notes_put(t, &n->base, 9, key,
		"%l : call_function[target=torch.ops.aten.cross_entropy_loss.default](args = "
		"(%x, %y, None, 1, -100, 0.0), kwargs = {})");
	model_accepted(t);
	assert_int_equal(t->diag.warnings, 0);
	n->base.n_unknown_fields = 0;
	notes_put(t, &n->base, 9, key,
		"%l : call_function[target=torch.ops.aten.cross_entropy_loss.default](args = "
		"(%x, %y, None, 1, -100, 0.1), kwargs = {})");
	model_accepted(t);
	assert_int_equal(t->diag.warnings, 1);
	test_said(t, "label_smoothing=0.1");
}

/* A batch-norm and two layers of a stack, as tools merge them whoever wrote the file; the bias's
 * zeros are the running mean's, too. What is not uniform may be one on purpose: that is told. */
static void merged_by_tools(void **state)
{
	struct model_test *t = *state;
	t->model.producer_name = "pytorch";
	model_input(t, "x", TENSOR_TYPE(FLOAT), "2,4");
	notes_filled(t, "ones", "4", 4, 1);
	notes_filled(t, "zeros", "4", 4, 0);
	model_weights(t, "onnx::MatMul_3", "4,4");
	model_node(
		t, "BatchNormalization", "/bn/BatchNormalization", "x,ones,zeros,zeros,ones", "a");
	model_node(
		t, "LayerNormalization", "/layers.0/norm/LayerNormalization", "a,ones,zeros", "b");
	model_node(t, "MatMul", "/layers.0/fc/MatMul", "b,onnx::MatMul_3", "c");
	model_node(t, "MatMul", "/layers.1/fc/MatMul", "c,onnx::MatMul_3", "d");
	model_node(t, "LayerNormalization", "/layers.0/norm_1/LayerNormalization", "d,ones,zeros",
		"y");
	model_output(t, "y");
	model_accepted(t);
	notes_reads(t, "/bn/BatchNormalization", 1, "ones");
	notes_reads(t, "/bn/BatchNormalization", 2, "zeros");
	assert_string_equal(notes_input(t, "/bn/BatchNormalization", 3)->name,
		"zeros@/bn/BatchNormalization.3");
	const char *again = "/layers.0/norm_1/LayerNormalization";
	notes_reads(t, again, 1, "ones@/layers.0/norm/LayerNormalization.1");
	notes_reads(t, again, 2, "zeros@/layers.0/norm/LayerNormalization.2");
	notes_reads(t, "/layers.1/fc/MatMul", 1, "onnx::MatMul_3");
	test_said(t, "one parameter, as the file has it: 'onnx::MatMul_3' | --untie NAME parts");
}

/* A layer that is called twice, in a file without notes: of its weight, which is not uniform, two
 * calls tell that they are one layer's, and so of its bias. */
static void one_layer_twice(void **state)
{
	struct model_test *t = *state;
	model_input(t, "x", TENSOR_TYPE(FLOAT), "2,4");
	model_weights(t, "w", "4,4");
	model_weights(t, "v", "4,4");
	notes_filled(t, "b", "4", 4, 0);
	model_node(t, "Gemm", "Gemm_0", "x,w,b", "a");
	model_node(t, "Gemm", "Gemm_1", "a,w,b", "c");
	model_node(t, "Gemm", "Gemm_2", "c,v,b", "d");
	model_node(t, "MatMul", "MatMul_0", "d,v", "e");
	model_node(t, "Add", "Add_0", "e,b", "f");
	model_node(t, "MatMul", "MatMul_1", "f,v", "g");
	model_node(t, "Add", "Add_1", "b,g", "h");
	model_node(t, "MatMul", "MatMul_2", "h,w", "i");
	model_node(t, "Add", "Add_2", "i,b", "y");
	model_output(t, "y");
	model_accepted(t);
	notes_reads(t, "Gemm_1", 2, "b");
	notes_reads(t, "Gemm_2", 2, "b@Gemm_2.2");
	notes_reads(t, "Add_0", 1, "b@Add_0.1");
	notes_reads(t, "Add_1", 0, "b@Add_0.1");
	notes_reads(t, "Add_2", 1, "b@Add_2.1");
}

/* A factor that two nodes read, as attention's in files without notes: no parameter, and none
 * twice. */
static void factors_are_not_parted(void **state)
{
	struct model_test *t = *state;
	model_input(t, "x", TENSOR_TYPE(FLOAT), "2,4");
	notes_filled(t, "/Sqrt_output_0", "1", 1, 3);
	notes_filled(t, "w", "4,4", 16, 2);
	model_node(t, "MatMul", "fc", "x,w", "h");
	model_node(t, "Mul", "/Mul", "h,/Sqrt_output_0", "a");
	model_node(t, "Mul", "/Mul_1", "a,/Sqrt_output_0", "y");
	model_output(t, "y");
	model_accepted(t);
	assert_null(t->said.s);
	assert_string_equal(notes_input(t, "/Mul_1", 1)->name, "/Sqrt_output_0");
	assert_int_equal(test_tensor(t, "/Sqrt_output_0")->role, TR_CONSTANT);
	/* asked for, its copy is no more than it is */
	t->options.untie_pattern = (const char *const[]){"*", NULL};
	model_accepted(t);
	assert_string_equal(notes_input(t, "/Mul_1", 1)->name, "/Sqrt_output_0@/Mul_1.1");
	assert_int_equal(test_tensor(t, "/Sqrt_output_0@/Mul_1.1")->role, TR_CONSTANT);
}

static void fused_weights_are_told(void **state)
{
	struct model_test *t = *state;
	model_input(t, "x", TENSOR_TYPE(FLOAT), "2,4");
	static const float some[16] = {.1F, .2F, -.3F, .7F};
	model_raw(
		model_tensor(t, "/fc_weight_fused", TENSOR_TYPE(FLOAT), "4,4"), some, sizeof some);
	model_node(t, "MatMul", "fc", "x,/fc_weight_fused", "y");
	model_output(t, "y");
	model_accepted(t);
	test_said(t, "/fc_weight_fused (initializer): is made of a layer's weights and what its "
		     "outputs were multiplied by: trained as one");
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, model_setup_operators, model_teardown)
	const struct CMUnitTest tests[] = {T(equal_ones_are_separate), T(ties_asked_for_stay),
		T(constants_are_not_trained), T(without_modules), T(merged_by_tools),
		T(one_layer_twice), T(aliases), T(a_layer_called_again), T(layers_of_a_stack),
		T(stacks), T(transposed), T(permuted), T(tied_to_another), T(roles), T(modules),
		T(factories), T(folding_is_a_convolutions), T(folding_is_told), T(keras),
		T(computed_weights_are_told), T(computed_beside_is_told), T(scalars_are_constants),
		T(scalar_parameters), T(calls_of_a_batchnorm_share_statistics),
		T(batchnorms_of_equal_statistics_are_fine), T(detached), T(stops), T(fixed_inputs),
		T(lost_smoothing), T(factors_are_not_parted), T(fused_weights_are_told)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
