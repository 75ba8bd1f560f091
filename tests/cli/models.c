#include "tests/cli/models.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "import/import_parts.h"

#define FLOAT_TYPE TENSOR_TYPE(FLOAT)

/* Small values that differ, the same every time. */
static void weights(struct model_test *t, const char *name, const char *shape, int n)
{
	float *v = ARENA_ARRAY(t->arena, float, n);
	uint32_t x = 7;
	for (int i = 0; i < n; i++) {
		x = x * 1664525u + 1013904223u; /* Numerical Recipes' generator */
		v[i] = (float)(x >> 8) / 16777216.0f - 0.5f;
	}
	model_raw(model_tensor(t, name, FLOAT_TYPE, shape), v, (size_t)n * sizeof *v);
}

/* y = x w + b, x [N, 4], y [N, 3] */
static void linear(struct model_test *t)
{
	model_input(t, "x", FLOAT_TYPE, "N,4");
	weights(t, "w", "4,3", 12);
	weights(t, "b", "3", 3);
	model_node(t, "Gemm", "fc", "x,w,b", "y");
	model_output(t, "y");
}

/* Two layers with dropout between them. */
static void dropout(struct model_test *t)
{
	static const float ratio = 0.25f;
	static const bool training = true;
	model_input(t, "x", FLOAT_TYPE, "N,4");
	weights(t, "w1", "4,16", 64);
	weights(t, "b1", "16", 16);
	weights(t, "w2", "16,3", 48);
	weights(t, "b2", "3", 3);
	model_raw(model_tensor(t, "ratio", FLOAT_TYPE, ""), &ratio, sizeof ratio);
	model_raw(model_tensor(t, "training", ONNX__TENSOR_PROTO__DATA_TYPE__BOOL, ""), &training,
		sizeof training);
	model_node(t, "Gemm", "fc1", "x,w1,b1", "h");
	model_node(t, "Relu", "act", "h", "r");
	model_node(t, "Dropout", "drop", "r,ratio,training", "d");
	model_node(t, "Gemm", "fc2", "d,w2,b2", "y");
	model_output(t, "y");
}

/* A learned vector through a layer of its own, added to each row: y = (x + q v) w + b */
static void learned(struct model_test *t)
{
	model_input(t, "x", FLOAT_TYPE, "N,4");
	weights(t, "q", "1,4", 4);
	weights(t, "v", "4,4", 16);
	weights(t, "w", "4,3", 12);
	weights(t, "b", "3", 3);
	model_node(t, "Gemm", "query", "q,v", "u");
	model_node(t, "Add", "sum", "x,u", "z");
	model_node(t, "Gemm", "fc", "z,w,b", "y");
	model_output(t, "y");
}

/* linear, of what weighs the samples of a batch against each other; fixed: those two. */
static void weighed_of(struct model_test *t, const char *shape)
{
	model_input(t, "x", FLOAT_TYPE, shape);
	weights(t, "w", "4,3", 12);
	model_int(t, model_node(t, "Softmax", "weigh", "x", "p"), "axis", 0);
	model_node(t, "MatMul", "fc", "p,w", "y");
	model_output(t, "y");
}

static void fixed(struct model_test *t)
{
	weighed_of(t, "2,4");
}

static void weighed(struct model_test *t)
{
	weighed_of(t, "N,4");
}

/* Inputs whose first axes differ. */
static void uneven(struct model_test *t)
{
	model_input(t, "x", FLOAT_TYPE, "2,4");
	model_input(t, "u", FLOAT_TYPE, "3,4");
	weights(t, "w", "4,3", 12);
	model_node(t, "MatMul", "fc", "x,w", "y");
	model_node(t, "MatMul", "again", "u,w", "z");
	model_output(t, "y");
	model_output(t, "z");
}

/* linear, whose samples are seen four in a row. */
static void viewed(struct model_test *t)
{
	static const int64_t shape[] = {-1, 12};
	linear(t);
	model_raw(model_tensor(t, "rows", TENSOR_TYPE(INT64), "2"), shape, sizeof shape);
	model_node(t, "Reshape", "view", "y,rows", "z");
	t->graph.output[0]->name = arena_strdup(t->arena, "z");
}

/* An input decides: y = flag ? x w : x v */
static void choice(struct model_test *t)
{
	model_input(t, "x", FLOAT_TYPE, "N,4");
	model_input(t, "flag", TENSOR_TYPE(BOOL), "");
	weights(t, "w", "4,3", 12);
	weights(t, "v", "4,3", 12);
	Onnx__NodeProto *n = model_node(t, "If", "choice", "flag", "y");
	model_inside(t, n, "then_branch");
	model_node(t, "MatMul", "yes", "x,w", "out");
	model_output(t, "out");
	model_inside(t, n, "else_branch");
	model_node(t, "MatMul", "no", "x,v", "out");
	model_output(t, "out");
	model_outside(t);
	model_output(t, "y");
}

/* Two normalisations, whose ones and zeros a tool has merged. */
static void merged(struct model_test *t)
{
	static const float one[] = {1, 1, 1, 1}, none[4];
	model_input(t, "x", FLOAT_TYPE, "N,4");
	model_raw(model_tensor(t, "one", FLOAT_TYPE, "4"), one, sizeof one);
	model_raw(model_tensor(t, "none", FLOAT_TYPE, "4"), none, sizeof none);
	weights(t, "w", "4,4", 16);
	model_node(t, "LayerNormalization", "first", "x,one,none", "a");
	model_node(t, "MatMul", "fc", "a,w", "h");
	model_node(t, "LayerNormalization", "second", "h,one,none", "y");
	model_output(t, "y");
}

/* Two outputs of different width. */
static void two(struct model_test *t)
{
	linear(t);
	weights(t, "v", "3,5", 15);
	model_node(t, "MatMul", "wide", "y,v", "z");
	model_output(t, "z");
}

/* Three outputs of one width: y, z and v. */
static void branches(struct model_test *t)
{
	linear(t);
	weights(t, "wz", "3,3", 9);
	weights(t, "wv", "4,3", 12);
	model_node(t, "MatMul", "second", "y,wz", "z");
	model_node(t, "MatMul", "third", "x,wv", "v");
	model_output(t, "z");
	model_output(t, "v");
}

/* Logarithms of probabilities: p [N, 6, 3], each step's from a share of x [N, 24]. */
static void frames(struct model_test *t)
{
	static const int64_t shape[] = {0, 6, 4};
	model_input(t, "x", FLOAT_TYPE, "N,24");
	model_raw(model_tensor(t, "shape", TENSOR_TYPE(INT64), "3"), shape, sizeof shape);
	weights(t, "w", "4,3", 12);
	model_node(t, "Reshape", "cut", "x,shape", "u");
	model_node(t, "MatMul", "fc", "u,w", "y");
	model_node(t, "LogSoftmax", "log", "y", "p");
	model_output(t, "p");
}

/* Probabilities, as exporters without a softmax spell them: p = e / sum of e, e = exp(x w + b). */
static void probable(struct model_test *t)
{
	static const int64_t axis[] = {-1};
	linear(t);
	model_raw(model_tensor(t, "axis", TENSOR_TYPE(INT64), "1"), axis, sizeof axis);
	model_node(t, "Exp", "powers", "y", "e");
	model_node(t, "ReduceSum", "total", "e,axis", "s");
	model_node(t, "Div", "share", "e,s", "p");
	t->graph.output[0]->name = arena_strdup(t->arena, "p");
}

/* One number, whose bias is a matrix of one: y = x w + b, x [N, 4], y [N, 1]. */
static void single(struct model_test *t)
{
	model_input(t, "x", FLOAT_TYPE, "N,4");
	weights(t, "w", "4,1", 4);
	weights(t, "b", "1,1", 1);
	model_node(t, "MatMul", "fc", "x,w", "u");
	model_node(t, "Add", "bias", "u,b", "y");
	model_output(t, "y");
}

/* Scores of four classes for each pixel of a picture: a convolution of one pixel. */
static void pixels(struct model_test *t)
{
	model_input(t, "x", FLOAT_TYPE, "N,3,16,16");
	weights(t, "w", "4,3,1,1", 12);
	weights(t, "b", "4", 4);
	model_node(t, "Conv", "conv", "x,w,b", "y");
	model_output(t, "y");
}

/* A head whose weight is read twice. */
static void shared(struct model_test *t)
{
	linear(t);
	model_node(t, "MatMul", "again", "x,w", "u");
	model_node(t, "Add", "sum", "y,u", "z");
	t->graph.output[0]->name = arena_strdup(t->arena, "z");
}

/* A scalar beside the samples. */
static void scaled(struct model_test *t)
{
	model_input(t, "scale", FLOAT_TYPE, "");
	linear(t);
	model_node(t, "Mul", "times", "y,scale", "z");
	model_output(t, "z");
}

/* A root of 0 at first, whose gradient is infinite: y = sqrt((x z)^2) + x w + b with z of zeros. */
static void root(struct model_test *t)
{
	static const float zeros[12];
	linear(t);
	model_raw(model_tensor(t, "z", FLOAT_TYPE, "4,3"), zeros, sizeof zeros);
	model_node(t, "MatMul", "in", "x,z", "u");
	model_node(t, "Mul", "square", "u,u", "v");
	model_node(t, "Sqrt", "root", "v", "r");
	model_node(t, "Add", "sum", "y,r", "s");
	t->graph.output[0]->name = arena_strdup(t->arena, "s");
}

/* Gradients that are there already, w and x, or known: a scalar, z = sum(w x + b + c). */
static void known(struct model_test *t)
{
	model_input(t, "x", FLOAT_TYPE, "4");
	weights(t, "w", "4", 4);
	weights(t, "b", "4", 4);
	weights(t, "c", "4", 4);
	model_node(t, "Mul", "times", "w,x", "u");
	model_node(t, "Add", "first", "u,b", "v");
	model_node(t, "Add", "second", "v,c", "y");
	model_int(t, model_node(t, "ReduceSum", "all", "y", "z"), "keepdims", 0);
	model_output(t, "z");
}

/* A trained limit, one of its numbers without one: y = max(x w + b, mask). */
static void masked(struct model_test *t)
{
	static const float mask[3] = {-INFINITY, -100, -100};
	linear(t);
	model_raw(model_tensor(t, "mask", FLOAT_TYPE, "3"), mask, sizeof mask);
	model_node(t, "Max", "limit", "y,mask", "s");
	t->graph.output[0]->name = arena_strdup(t->arena, "s");
}

/* Rows of a table of 5, chosen by an input of indices. */
static void gather(struct model_test *t)
{
	model_input(t, "i", TENSOR_TYPE(INT64), "N");
	weights(t, "table", "5,3", 15);
	model_node(t, "Gather", "look", "table,i", "y");
	model_output(t, "y");
}

/* Its own loss. */
static void own_loss(struct model_test *t)
{
	linear(t);
	Onnx__AttributeProto *a = model_attribute(t,
		model_node(t, "ReduceMean", "mean", "y", "cost"), "keepdims", ATTRIBUTE_TYPE(INT));
	a->has_i = 1;
	a->i = 0;
	model_output(t, "cost");
}

static void unsupported(struct model_test *t)
{
	linear(t);
	model_node(t, "Mystery", "m1", "y", "p");
	model_node(t, "Riddle", "m2", "p", "q");
	model_node(t, "Mystery", "m3", "q", "r");
	model_output(t, "r");
}

static void mismatch(struct model_test *t)
{
	linear(t);
	weights(t, "wrong", "7", 7);
	model_node(t, "Add", "sum", "y,wrong", "s");
	model_output(t, "s");
}

static void cycle(struct model_test *t)
{
	linear(t);
	model_node(t, "Add", "one", "y,q", "p");
	model_node(t, "Relu", "another", "p", "q");
}

static void missing(struct model_test *t)
{
	linear(t);
	t->graph.node[0]->input[1] = "nowhere";
}

static void huge(struct model_test *t)
{
	linear(t);
	model_input(t, "h", FLOAT_TYPE, "2147483647,2147483647,2147483647");
}

/* Shapes of fewer than 2^63 elements, and no machine's memory. */
static void large(struct model_test *t)
{
	model_input(t, "x", FLOAT_TYPE, "2147483647,1048576");
	model_node(t, "Relu", "act", "x", "y");
	model_output(t, "y");
}

/* Values of 3 GB outside the file. */
static void outside(struct model_test *t)
{
	linear(t);
	for (int i = 0; i < 3; i++)
		model_external(t,
			model_tensor(
				t, arena_printf(t->arena, "big%d", i), FLOAT_TYPE, "1000,1000,250"),
			"big.bin", NULL, NULL);
}

/* Layers with their weights in two files, and a head. */
static void beside(struct model_test *t)
{
	model_input(t, "x", FLOAT_TYPE, "N,4");
	model_external(t, model_tensor(t, "low", FLOAT_TYPE, "4,16"), "low.bin", "64", "256");
	model_external(t, model_tensor(t, "high", FLOAT_TYPE, "16,16"), "high.bin", NULL, NULL);
	weights(t, "w", "16,3", 48);
	model_node(t, "MatMul", "fc1", "x,low", "h1");
	model_node(t, "Relu", "act", "h1", "a1");
	model_node(t, "MatMul", "fc2", "a1,high", "h2");
	model_node(t, "MatMul", "head", "h2,w", "y");
	model_output(t, "y");
}

/* A matrix in another file that two nodes read, and whose name begins with a blank. */
static void twice(struct model_test *t)
{
	model_input(t, "x", FLOAT_TYPE, "N,16");
	model_external(t, model_tensor(t, " high", FLOAT_TYPE, "16,16"), "high.bin", NULL, NULL);
	weights(t, "w", "16,3", 48);
	model_node(t, "MatMul", "fc1", "x, high", "h1");
	model_node(t, "Relu", "act", "h1", "a1");
	model_node(t, "MatMul", "fc2", "a1, high", "h2");
	model_node(t, "MatMul", "head", "h2,w", "y");
	model_output(t, "y");
}

/* Tokens through a table and two layers. */
static void tokens(struct model_test *t)
{
	model_input(t, "x", TENSOR_TYPE(INT64), "N,4");
	model_external(t, model_tensor(t, "table", FLOAT_TYPE, "128,16"), "weights.bin", "0", NULL);
	model_external(t, model_tensor(t, "low", FLOAT_TYPE, "16,64"), "weights.bin", "8192", NULL);
	model_external(
		t, model_tensor(t, "high", FLOAT_TYPE, "64,32"), "weights.bin", "12288", NULL);
	weights(t, "shift", "16", 16);
	weights(t, "bias", "32", 32);
	weights(t, "w", "32,3", 96);
	model_node(t, "Gather", "embed", "table,x", "e");
	model_node(t, "Add", "first", "e,shift", "f");
	model_node(t, "MatMul", "fc1", "f,low", "h1");
	model_node(t, "Relu", "act", "h1", "a1");
	model_node(t, "MatMul", "fc2", "a1,high", "h2");
	model_node(t, "Add", "second", "h2,bias", "s");
	model_node(t, "MatMul", "head", "s,w", "y");
	model_output(t, "y");
}

/* Tokens in rows of any length, each with its place: y = (table[x] + place slope) w. */
static void sequence(struct model_test *t)
{
	model_input(t, "x", TENSOR_TYPE(INT64), "N,T");
	model_input(t, "tone", FLOAT_TYPE, "N,T,8");
	weights(t, "table", "6,8", 48);
	weights(t, "slope", "1,8", 8);
	weights(t, "w", "8,6", 48);
	model_number(t, "zero", 0);
	model_number(t, "one", 1);
	model_numbers(t, "last", "1");
	model_node(t, "Shape", "shape", "x", "size");
	model_node(t, "Gather", "width", "size,one", "n");
	model_node(t, "Range", "range", "zero,n,one", "places");
	model_int(t, model_node(t, "Cast", "cast", "places", "place"), "to", FLOAT_TYPE);
	model_node(t, "Unsqueeze", "column", "place,last", "places1");
	model_node(t, "Mul", "rise", "places1,slope", "risen");
	model_node(t, "Gather", "embed", "table,x", "e");
	model_node(t, "Add", "toned", "e,tone", "et");
	model_node(t, "Add", "placed", "et,risen", "f");
	model_node(t, "Tanh", "act", "f", "a");
	model_node(t, "MatMul", "head", "a,w", "y");
	model_output(t, "y");
}

/* Rows of tokens of any length, each with one label: y = sum of table[x]. */
static void sentence(struct model_test *t)
{
	model_input(t, "x", TENSOR_TYPE(INT64), "N,T");
	weights(t, "table", "6,16", 96);
	model_numbers(t, "axis", "1");
	model_node(t, "Gather", "embed", "table,x", "e");
	model_int(t, model_node(t, "ReduceSum", "total", "e,axis", "y"), "keepdims", 0);
	model_output(t, "y");
}

/* 36 weights of 64 MiB: 2.25 GiB, in one file. */
static void vast(struct model_test *t)
{
	const char *last = "x";
	model_input(t, "x", FLOAT_TYPE, "N,4096");
	for (int i = 0; i < 36; i++) {
		const char *w = arena_printf(t->arena, "base.%d", i);
		const char *y = arena_printf(t->arena, "h%d", i);
		const char *offset = arena_printf(t->arena, "%" PRId64, (int64_t)i << 26);
		model_external(
			t, model_tensor(t, w, FLOAT_TYPE, "4096,4096"), "vast.bin", offset, NULL);
		model_node(t, "MatMul", w, arena_printf(t->arena, "%s,%s", last, w), y);
		last = y;
	}
	weights(t, "w", "4096,3", 12288);
	model_node(t, "MatMul", "head", arena_printf(t->arena, "%s,w", last), "y");
	model_output(t, "y");
}

static void transposed(
	struct model_test *t, const char *in, const char *out, int n, const int64_t *perm)
{
	Onnx__AttributeProto *a = model_attribute(
		t, model_node(t, "Transpose", out, in, out), "perm", ATTRIBUTE_TYPE(INTS));
	a->n_ints = (size_t)n;
	a->ints = arena_memdup(t->arena, perm, (size_t)n, sizeof *perm);
}

/* Weights that nodes read in ways of their own: one as its file has it, by a transposition that
 * moves nothing; one transposed; one from both sides; a stack of matrices. The end of
 * `low.fc.weight` is `fc.weight`. */
static void readers(struct model_test *t)
{
	static const int64_t stays[] = {0, 1}, turns[] = {1, 0};
	model_input(t, "x", FLOAT_TYPE, "N,4");
	weights(t, "low.fc.weight", "4,4", 16);
	weights(t, "fc.weight", "6,4", 24);
	weights(t, "sides", "6,6", 36);
	weights(t, "stack", "2,6,10", 120);
	weights(t, "scale", "10", 10);
	transposed(t, "low.fc.weight", "same", 2, stays);
	transposed(t, "fc.weight", "turned", 2, turns);
	model_node(t, "MatMul", "low", "x,same", "h");
	model_node(t, "MatMul", "fc", "h,turned", "h1");
	model_node(t, "MatMul", "right", "h1,sides", "h2");
	model_node(t, "MatMul", "square", "sides,sides", "s");
	model_node(t, "MatMul", "again", "h2,s", "h3");
	model_node(t, "MatMul", "head", "h3,stack", "h4");
	model_number(t, "first", 0);
	model_node(t, "Gather", "pick", "h4,first", "h5");
	model_node(t, "Mul", "times", "h5,scale", "y");
	model_output(t, "y");
}

/* A convolution whose kernel is kept with its channels last, and a table kept by columns; `look`
 * and `look.weight` are of one module. */
static void kept_otherwise(struct model_test *t)
{
	static const int64_t last[] = {3, 2, 0, 1}, turns[] = {1, 0};
	model_input(t, "x", FLOAT_TYPE, "N,2,4,4");
	model_input(t, "i", TENSOR_TYPE(INT64), "N");
	weights(t, "kernel", "3,3,2,5", 90);
	weights(t, "table", "5,5", 25);
	weights(t, "look", "5,5", 25);
	weights(t, "look.weight", "5,5", 25);
	transposed(t, "kernel", "k", 4, last);
	transposed(t, "table", "rows", 2, turns);
	model_node(t, "Conv", "conv", "x,k", "c");
	model_node(t, "GlobalMaxPool", "pool", "c", "p");
	model_node(t, "Flatten", "flat", "p", "f");
	model_node(t, "MatMul", "one", "f,look", "m");
	model_node(t, "Gather", "two", "rows,i", "e");
	model_node(t, "Gather", "three", "look.weight,i", "u");
	model_node(t, "Sum", "sum", "m,e,u", "y");
	model_output(t, "y");
}

static void negative(struct model_test *t)
{
	linear(t);
	model_input(t, "n", FLOAT_TYPE, "-3,4");
}

static void old(struct model_test *t)
{
	linear(t);
	t->model.opset_import[0]->version = 6;
}

/* `text` as the name of the input, the node and (with a letter behind it) everything else. */
static void named(struct model_test *t, const char *text)
{
	linear(t);
	char *w = arena_printf(t->arena, "%sw", text), *b = arena_printf(t->arena, "%sb", text),
	     *y = arena_printf(t->arena, "%sy", text), *x = arena_strdup(t->arena, text);
	Onnx__NodeProto *node = t->graph.node[0];
	t->graph.input[0]->name = node->input[0] = x;
	t->graph.initializer[0]->name = node->input[1] = w;
	t->graph.initializer[1]->name = node->input[2] = b;
	t->graph.output[0]->name = node->output[0] = y;
	t->graph.name = node->name = x;
}

/* y = (x w + b) s and z = Relu(x w + b), x [D, 4], s [1]. Everything has a name of its own, in this
 * order: D, x, s, w, b, the product's node, x w + b, y, z; the byte 0x1e stands between them. */
static void names(struct model_test *t, const char *text)
{
	enum { D, X, S, W, B, NODE, H, Y, Z, NAMES };
	char *name[NAMES], *at = arena_strdup(t->arena, text);
	for (int i = 0; i < NAMES; i++) {
		name[i] = at;
		at += strcspn(at, "\x1e");
		if (*at)
			*at++ = '\0';
	}
	model_input(t, "x", FLOAT_TYPE, "D,4");
	t->graph.input[0]->name = name[X];
	t->graph.input[0]->type->tensor_type->shape->dim[0]->dim_param = name[D];
	model_input(t, "s", FLOAT_TYPE, "1");
	t->graph.input[1]->name = name[S];
	weights(t, "w", "4,3", 12);
	t->graph.initializer[0]->name = name[W];
	weights(t, "b", "3", 3);
	t->graph.initializer[1]->name = name[B];
	Onnx__NodeProto *n = model_node(t, "Gemm", "fc", "x,w,b", "h");
	n->name = name[NODE];
	memcpy(n->input, (char *[]){name[X], name[W], name[B]}, 3 * sizeof *n->input);
	n->output[0] = name[H];
	n = model_node(t, "Mul", "", "h,s", "y");
	memcpy(n->input, (char *[]){name[H], name[S]}, 2 * sizeof *n->input);
	n->output[0] = name[Y];
	n = model_node(t, "Relu", "", "h", "z");
	n->input[0] = name[H];
	n->output[0] = name[Z];
	model_output(t, "y");
	t->graph.output[0]->name = name[Y];
	model_output(t, "z");
	t->graph.output[1]->name = name[Z];
}

/* The linear model behind dropouts by the producer `text`: one that is exported for inference, and
 * two that do not say. */
static void idle(struct model_test *t, const char *text)
{
	static const float ratio = 0.25f;
	static const bool training = false;
	t->model.producer_name = arena_strdup(t->arena, text);
	model_input(t, "x", FLOAT_TYPE, "N,4");
	weights(t, "w", "4,3", 12);
	model_raw(model_tensor(t, "ratio", FLOAT_TYPE, ""), &ratio, sizeof ratio);
	model_raw(model_tensor(t, "training", ONNX__TENSOR_PROTO__DATA_TYPE__BOOL, ""), &training,
		sizeof training);
	model_node(t, "Dropout", "off", "x,ratio,training", "a");
	model_node(t, "Dropout", "one", "a,ratio", "b");
	model_node(t, "Dropout", "two", "b,ratio", "c");
	model_node(t, "MatMul", "fc", "c,w", "y");
	model_output(t, "y");
}

/* The linear model with weights of float16, bfloat16 or double, and, but for bfloat16, which ONNX
 * Runtime has no Gemm of, computed so; x and y are floats. */
static void typed(struct model_test *t, const char *text)
{
	enum { W = 12, B = 3 };
	const bool brain = !strcmp(text, "bfloat16"), half = !strcmp(text, "float16");
	const int type = brain  ? TENSOR_TYPE(BFLOAT16)
			 : half ? TENSOR_TYPE(FLOAT16)
				: TENSOR_TYPE(DOUBLE);
	unsigned char *raw = ARENA_ARRAY(t->arena, unsigned char, (W + B) * sizeof(double));
	t->model.has_ir_version = true; /* which ONNX Runtime asks for */
	t->model.ir_version = 8;
	const size_t width = brain || half ? 2 : 8;
	for (int i = 0; i < W + B; i++)
		real_put(type, raw + (size_t)i * width, sin(i + 1));
	model_input(t, "x", FLOAT_TYPE, "N,4");
	model_raw(model_tensor(t, "w", type, "4,3"), raw, W * width);
	model_raw(model_tensor(t, "b", type, "3"), raw + W * width, B * width);
	model_int(t, model_node(t, "Cast", "", "x", "xt"), "to", brain ? FLOAT_TYPE : type);
	model_int(t, model_node(t, "Cast", "", "w", "wt"), "to", brain ? FLOAT_TYPE : type);
	model_int(t, model_node(t, "Cast", "", "b", "bt"), "to", brain ? FLOAT_TYPE : type);
	model_node(t, "Gemm", "fc", "xt,wt,bt", "yt");
	model_int(t, model_node(t, "Cast", "", "yt", "y"), "to", FLOAT_TYPE);
	model_output(t, "y");
}

/* --- Operators of --ops --- */

static void attribute_float(struct model_test *t, Onnx__NodeProto *n, const char *name, float v)
{
	Onnx__AttributeProto *a = model_attribute(t, n, name, ATTRIBUTE_TYPE(FLOAT));
	a->has_f = 1;
	a->f = v;
}

/* docs/howto/write-a-custom-operator.md's operator, twice: with its attribute and by default. */
static void snake(struct model_test *t)
{
	model_input(t, "x", FLOAT_TYPE, "N,4");
	weights(t, "w1", "4,16", 64);
	weights(t, "w2", "16,16", 256);
	weights(t, "w3", "16,3", 48);
	model_node(t, "MatMul", "fc1", "x,w1", "h1");
	attribute_float(t, model_custom(t, "my.domain.Snake", "snake1", "h1", "s1"), "a", 1.5f);
	model_node(t, "MatMul", "fc2", "s1,w2", "h2");
	model_custom(t, "my.domain.Snake", "snake2", "h2", "s2");
	model_node(t, "MatMul", "fc3", "s2,w3", "y");
	model_output(t, "y");
}

/* tests/custom/more.c's Blend, with `text` as its attribute `how`. */
static void blend(struct model_test *t, const char *text)
{
	linear(t);
	weights(t, "blend.weight", "3", 3);
	Onnx__NodeProto *n = model_custom(t, "test.ops.Blend", "mix", "y,blend.weight", "z");
	Onnx__AttributeProto *how = model_attribute(t, n, "how", ATTRIBUTE_TYPE(STRING));
	how->has_s = 1;
	how->s.data = (uint8_t *)arena_strdup(t->arena, text);
	how->s.len = strlen(text);
	t->graph.output[0]->name = arena_strdup(t->arena, "z");
}

/* y [N, 40] = x times a matrix of 4 bits in blocks of 32, with `text` for what is wrong with it. */
static void nbits(struct model_test *t, const char *text)
{
	static const unsigned char bytes[40 * 2 * 16];
	model_input(t, "x", FLOAT_TYPE, "N,64");
	model_raw(model_tensor(
			  t, "b", TENSOR_TYPE(UINT8), strcmp(text, "short") ? "40,2,16" : "40,2,8"),
		bytes, strcmp(text, "short") ? sizeof bytes : sizeof bytes / 2);
	weights(t, "scales", strcmp(text, "scales") ? "80" : "40",
		strcmp(text, "scales") ? 80 : 40);
	model_number(t, "order", 0);
	const bool groups = !strcmp(text, "groups"), computed = !strcmp(text, "computed");
	Onnx__NodeProto *n = model_custom(t, "com.microsoft.MatMulNBits", "fc",
		groups     ? "x,b,scales,,order"
		: computed ? "x,b,x"
			   : "x,b,scales",
		"y");
	model_int(t, n, "N", 40);
	model_int(t, n, "K", 64);
	model_int(t, n, "block_size", strcmp(text, "block") ? 32 : 8);
	model_int(t, n, "bits", strcmp(text, "bits") ? 4 : 3);
	model_output(t, "y");
}

/* A matrix of bytes dequantised before a product. */
static void dequantize(struct model_test *t, const char *text)
{
	static const unsigned char bytes[64 * 40];
	const bool computed = !strcmp(text, "computed");
	model_input(t, "x", FLOAT_TYPE, "N,64");
	if (computed)
		model_input(t, "q", TENSOR_TYPE(INT64), "64,40");
	model_raw(model_tensor(t, "w", TENSOR_TYPE(UINT8), "64,40"), bytes, sizeof bytes);
	weights(t, "scales", strcmp(text, "scales") ? "40" : "3", strcmp(text, "scales") ? 40 : 3);
	model_number(t, "zero", 0);
	Onnx__NodeProto *n = model_node(t, "DequantizeLinear", "wide",
		computed                 ? "q,scales"
		: !strcmp(text, "zeros") ? "w,scales,zero"
					 : "w,scales",
		"r");
	model_int(t, n, "axis", strcmp(text, "axis") ? 1 : 7);
	model_int(t, n, "block_size", strcmp(text, "block") ? 0 : -2);
	model_node(t, "MatMul", "fc", "x,r", "y");
	model_output(t, "y");
}

/* Rounds what it is given to whole numbers and back, while it runs. */
static void rounded(struct model_test *t, const char *text)
{
	const bool computed = !strcmp(text, "computed");
	model_input(t, "x", FLOAT_TYPE, "N,64");
	if (computed)
		model_input(t, "scales", FLOAT_TYPE, "64");
	else
		weights(t, "scales", strcmp(text, "scales") ? "64" : "3",
			strcmp(text, "scales") ? 64 : 3);
	Onnx__NodeProto *n = model_node(t, "QuantizeLinear", "round", "x,scales", "whole");
	model_int(t, n, "axis", strcmp(text, "axis") ? 1 : 7);
	if (!strcmp(text, "block"))
		model_int(t, n, "block_size", 2);
	if (!strcmp(text, "float8"))
		model_int(t, n, "output_dtype", 17); /* FLOAT8E4M3FN */
	n = model_node(t, "DequantizeLinear", "back", "whole,scales", "r");
	model_int(t, n, "axis", 1);
	weights(t, "w", "64,3", 64 * 3);
	model_node(t, "MatMul", "fc", "r,w", "y");
	model_output(t, "y");
}

/* What four nodes that change nothing together, one of them in a branch, make of w. */
static void chained(struct model_test *t, const char *name)
{
	struct arena *a = t->arena;
	const char *seen = arena_printf(a, "%s.seen", name);
	Onnx__NodeProto *n = model_node(t, "If", seen, "yes", seen);
	for (int i = 0; i < 2; i++) {
		model_inside(t, n, i ? "else_branch" : "then_branch");
		const char *branch = arena_printf(a, "%s.%d", seen, i);
		model_node(t, i ? "Neg" : "Identity", "", "w", branch);
		model_output(t, branch);
		model_outside(t);
	}
	model_node(
		t, "Reshape", "", arena_printf(a, "%s,cut", seen), arena_printf(a, "%s.cut", name));
	model_node(t, "Identity", "", arena_printf(a, "%s.cut", name),
		arena_printf(a, "%s.same", name));
	model_node(t, "Reshape", "", arena_printf(a, "%s.same,shape", name), name);
}

/* Six layers of one weight, which each of them reads as it is or as what the operator `text`, of
 * which all nodes stand first, makes of it: the same, or "view", that in another shape. */
static void tied(struct model_test *t, const char *text)
{
	enum { LAYERS = 6, WIDE = 32 };
	static const int64_t stays[] = {0, 1};
	const char *last = "h", *w[LAYERS];
	const bool shaped = !strcmp(text, "Reshape") || !strcmp(text, "Expand");
	model_input(t, "x", FLOAT_TYPE, "N,4");
	weights(t, "in", "4,32", 4 * WIDE);
	weights(t, "w", "32,32", WIDE * WIDE);
	weights(t, "out", "32,4", WIDE * 4);
	model_numbers(t, "shape", "32,32");
	model_numbers(t, "cut", "4,8,32");
	model_numbers(t, "one", "1,32,32");
	model_numbers(t, "flat", "-1,32");
	model_truth(t, "yes", true);
	model_node(t, "MatMul", "in", "x,in", "h");
	for (int i = 0; i < LAYERS; i++) {
		w[i] = *text ? arena_printf(t->arena, "w%d", i) : "w";
		if (!strcmp(text, "chain"))
			chained(t, w[i]);
		else if (!strcmp(text, "view"))
			model_node(t, "Reshape", w[i], "w,one", w[i]);
		else if (!strcmp(text, "Transpose"))
			transposed(t, "w", w[i], 2, stays);
		else if (*text) {
			Onnx__NodeProto *n = model_node(
				t, text, w[i], shaped ? "w,shape" : "w", w[i]);
			if (!strcmp(text, "Cast") || !strcmp(text, "Concat"))
				model_int(t, n, text[1] == 'a' ? "to" : "axis", 1);
		}
	}
	for (int i = 0; i < LAYERS; i++) {
		const char *h = arena_printf(t->arena, "h%d", i);
		const char *y = arena_printf(t->arena, "y%d", i);
		model_node(t, "MatMul", h, arena_printf(t->arena, "%s,%s", last, w[i]), h);
		model_node(t, "Tanh", y, h, y);
		last = y;
	}
	model_node(t, "Reshape", "flat", arena_printf(t->arena, "%s,flat", last), "f");
	model_node(t, "MatMul", "out", "f,out", "z");
	model_node(t, "Identity", "same", "z", "y");
	model_output(t, "y");
	model_output(t, "z");
}

/* A node of an operator that is not supported, `text`. */
static void refused(struct model_test *t, const char *text)
{
	model_input(t, "x", FLOAT_TYPE, "N,64");
	if (strchr(text, '.'))
		model_custom(t, text, "node", "x", "y");
	else
		model_node(t, text, "node", "x", "y");
	model_output(t, "y");
}

/* As many layers as the name says: a step of many calls of few kernels. */
static void layers(struct model_test *t, const char *count)
{
	char x[16] = "x", w[16], b[16], h[16], node[64];
	const int n = atoi(count);
	model_input(t, "x", FLOAT_TYPE, "N,8");
	for (int i = 0; i < n; i++) {
		snprintf(w, sizeof w, "w%d", i);
		snprintf(b, sizeof b, "b%d", i);
		snprintf(h, sizeof h, "h%d", i);
		snprintf(node, sizeof node, "%s,%s,%s", x, w, b);
		weights(t, w, "8,8", 64);
		weights(t, b, "8", 8);
		model_node(t, "Gemm", w, node, h);
		snprintf(x, sizeof x, "t%d", i);
		model_node(t, "Tanh", b, h, x);
	}
	model_output(t, x);
}

/* y, and this function of it, the output. */
static void ending(struct model_test *t, const char *operator)
{
	linear(t);
	model_node(t, operator, "end", "y", "p");
	t->graph.output[0]->name = arena_strdup(t->arena, "p");
}

/* An output that no weight has a part in, before one that they have. */
static void aside(struct model_test *t)
{
	model_input(t, "z", FLOAT_TYPE, "N,2");
	model_node(t, "Relu", "aside", "z", "q");
	model_output(t, "q");
	linear(t);
}

/* A picture of so many channels, whose sides the file does not say. */
static void unsized(struct model_test *t, const char *channels)
{
	const int n = 4 * atoi(channels);
	char shape[32];
	snprintf(shape, sizeof shape, "N,%s,H,W", channels);
	model_input(t, "x", FLOAT_TYPE, shape);
	snprintf(shape, sizeof shape, "4,%s,1,1", channels);
	weights(t, "w", shape, n);
	model_node(t, "Conv", "conv", "x,w", "y");
	model_output(t, "y");
}

bool models_make(struct model_test *t, const char *name, const char *text)
{
	static const struct {
		const char *name;
		void (*make)(struct model_test *t);
	} made[] = {{"linear", linear}, {"fixed", fixed}, {"viewed", viewed}, {"uneven", uneven},
		{"weighed", weighed}, {"merged", merged}, {"choice", choice}, {"dropout", dropout},
		{"two", two}, {"branches", branches}, {"frames", frames}, {"probable", probable},
		{"shared", shared}, {"single", single}, {"scaled", scaled}, {"gather", gather},
		{"own_loss", own_loss}, {"unsupported", unsupported}, {"mismatch", mismatch},
		{"cycle", cycle}, {"missing", missing}, {"huge", huge}, {"large", large},
		{"learned", learned}, {"negative", negative}, {"old", old}, {"snake", snake},
		{"root", root}, {"known", known}, {"masked", masked}, {"outside", outside},
		{"beside", beside}, {"twice", twice}, {"vast", vast}, {"tokens", tokens},
		{"sequence", sequence}, {"sentence", sentence}, {"readers", readers},
		{"pixels", pixels}, {"kept_otherwise", kept_otherwise}, {"aside", aside}};
	for (size_t i = 0; i < sizeof made / sizeof *made; i++)
		if (!strcmp(name, made[i].name))
			return made[i].make(t), true;
	if (!strcmp(name, "ending"))
		return ending(t, text), true;
	if (!strcmp(name, "unsized"))
		return unsized(t, text), true;
	if (!strcmp(name, "idle"))
		return idle(t, text), true;
	if (!strcmp(name, "layers"))
		return layers(t, text), true;
	if (!strcmp(name, "typed"))
		return typed(t, text), true;
	if (!strcmp(name, "names"))
		return names(t, text), true;
	if (!strcmp(name, "blend"))
		return blend(t, text), true;
	if (!strcmp(name, "nbits"))
		return nbits(t, text), true;
	if (!strcmp(name, "dequantize"))
		return dequantize(t, text), true;
	if (!strcmp(name, "rounded"))
		return rounded(t, text), true;
	if (!strcmp(name, "tied"))
		return tied(t, text), true;
	if (!strcmp(name, "refused"))
		return refused(t, text), true;
	if (strcmp(name, "named") != 0)
		return false;
	named(t, text);
	return true;
}
