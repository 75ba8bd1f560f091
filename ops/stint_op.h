/* SPDX-License-Identifier: Apache-2.0 */
/* stint_op.h: operators of your own for stint, in a shared object.
 *
 *	cc -shared -fPIC -I ops -o mine.so mine.c
 *	stint compile MODEL.onnx --ops ./mine.so ...
 *
 * The shared object exports two symbols, `stint_ops` and `stint_ops_version` (at the end of this
 * file). It links against nothing of stint's: its functions ("hooks") are handed a struct
 * stint_call whose function pointers are all they need; the stint_... functions below call those
 * pointers. How to write one, with an example: docs/howto/write-a-custom-operator.md.
 *
 * Element types: every float in a model becomes one real type: float, or double under --precision
 * fp64 (stint_call.real_bytes: 4 or 8). Every integer becomes int64_t, a boolean one byte. Shapes
 * are known when compiling; so are constants.
 *
 * Ownership: what a hook is handed lives until it returns, unless it says otherwise here; strings
 * and lists that a hook hands over are copied. The records themselves are read until stint ends.
 *
 * Errors: a hook returns 0, or what stint_fail returned, which reported a message; any other
 * number is a failure without one. Functions that give a stint_value give 0 after a failure and
 * take a 0 from one before without a second message, so that calls may be chained and the hook
 * returns stint_failed(c).
 *
 * A custom operator is never evaluated when compiling: its outputs are not known there, even when
 * its inputs are.
 *
 * Hooks may be called any number of times, in any order of nodes, and must do the same each time:
 * the same model gives the same program. They are called from one thread. */
#ifndef STINT_OP_H
#define STINT_OP_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Raised whenever a struct here changes. */
#define STINT_OPS_VERSION 1

enum { STINT_RANK_MAX = 8, STINT_PAIRS_MAX = 4, STINT_OUTPUTS_MAX = 16 };

enum stint_type {
	STINT_TYPE_ABSENT, /* an optional input that the node leaves out */
	STINT_TYPE_REAL,   /* float or double: see stint_call.real_bytes */
	STINT_TYPE_INT64,
	STINT_TYPE_BOOL, /* one byte, 0 or 1 */
};

struct stint_op_tensor {
	enum stint_type type;
	int rank; /* 0 to STINT_RANK_MAX; 0: a scalar */
	int64_t dim[STINT_RANK_MAX];
	/* An input known when compiling (an initializer that is not trained, a Constant): its
	 * elements, row-major. NULL otherwise. Ignored in what a hook fills in. */
	const void *data;
};

/* A tensor of the graph that a gradient is built in; 0: none. */
typedef int stint_value;

/* An attribute for a node that a gradient makes: exactly one of the values. */
struct stint_attribute {
	const char *name;
	enum {
		STINT_ATTRIBUTE_INT,
		STINT_ATTRIBUTE_FLOAT,
		STINT_ATTRIBUTE_STRING,
		STINT_ATTRIBUTE_INTS,
		STINT_ATTRIBUTE_FLOATS
	} kind;
	int64_t i;
	double f;
	const char *s;
	int n; /* of ints, floats */
	const int64_t *ints;
	const double *floats;
};

struct stint_api;
struct stint_op;

/* One node, as a hook sees it. Functions are handed this very struct, never a copy. */
struct stint_call {
	const struct stint_api *api;
	const struct stint_op *op;
	const char *node; /* its name in the model, for messages */
	int real_bytes;   /* 4 or 8: bytes of a STINT_TYPE_REAL element */
	int threads;      /* of the program being made */
	int nin, nout;    /* nout: the record's */
	const struct stint_op_tensor *in;
	const struct stint_op_tensor *out; /* in `shape`: NULL */
	/* For `shape` to set, 0 before. Floating-point operations of the whole node, when the
	 * record's `work` does not tell; bytes of scratch that `body` calls `ws`. */
	double flops;
	int64_t scratch;
};

/* What a hook may ask for. Call them by the functions below. */
struct stint_api {
	/* any hook */
	int (*fail)(struct stint_call *c, const char *fmt, va_list ap);
	int (*failed)(const struct stint_call *c);
	int64_t (*attribute_int)(const struct stint_call *c, const char *name, int64_t otherwise);
	double (*attribute_float)(const struct stint_call *c, const char *name, double otherwise);
	const char *(*attribute_string)(
		const struct stint_call *c, const char *name, const char *otherwise);
	int (*attribute_ints)(const struct stint_call *c, const char *name, const int64_t **list);
	int (*attribute_floats)(const struct stint_call *c, const char *name, const double **list);
	/* `gradient` */
	stint_value (*input)(struct stint_call *c, int i);
	stint_value (*output)(struct stint_call *c, int k);
	int (*node)(struct stint_call *c, const char *op, int nin, const stint_value *in, int nout,
		stint_value *out, int nattribute, const struct stint_attribute *attribute);
	stint_value (*scalar)(struct stint_call *c, double v);
	stint_value (*ints)(struct stint_call *c, int n, const int64_t *v);
	stint_value (*sum_to)(
		struct stint_call *c, stint_value v, const struct stint_op_tensor *like);
	int (*describe)(struct stint_call *c, stint_value v, struct stint_op_tensor *out);
	/* `body` */
	void (*print)(struct stint_call *c, const char *fmt, va_list ap);
	void (*parallel)(struct stint_call *c, double work, int levels);
	void (*helper)(struct stint_call *c, const char *name, const char *text);
	const char *(*literal)(struct stint_call *c, double v);
	int (*in_place)(const struct stint_call *c, int k);
};

/* Output `out` may be written over input `in`: element i of the output is stored after the last
 * read of element i of the input. Taken where the two have the same shape and type. */
struct stint_pair {
	int out, in;
};

enum stint_flag {
	/* No gradient passes, and that is right (comparisons, indices). Without it, and without
	 * `gradient`, a parameter below such a node cannot be trained: an error. */
	STINT_STOPS_GRADIENT = 1,
	/* The kernel checks what it reads: its C text ends with `return 0;`, or with `return
	 * BAD_INDEX(value);`, which stops the step with a message. */
	STINT_CHECKS = 2,
};

struct stint_op {
	/* "my.domain.Name": domain and operator type of the ONNX node. Not one that stint has. */
	const char *name;
	int min_in, max_in; /* inputs; max_in -1: any number. From min_in on they are optional */
	int nout;           /* outputs, 1 to STINT_OUTPUTS_MAX; 0 stands for 1 */
	unsigned flags;     /* enum stint_flag */
	/* Bit i for input i: an initializer there is a weight whatever its name is, or a setting,
	 * to be known when compiling and never trained. */
	unsigned weights, known;
	/* Operations an element of output 0, where `shape` sets no flops; 0 stands for 1. An
	 * exponential counts as 20. The planner weighs recomputation by it. */
	double work;
	int npair;
	struct stint_pair pair[STINT_PAIRS_MAX];

	/* Check inputs and attributes and fill in type, rank and dim of out[0..c->nout). NULL:
	 * every output is like input 0. */
	int (*shape)(struct stint_call *c, struct stint_op_tensor *out);

	/* Build the gradient. dy[k] is that of output k (0: none reached it, but at least one
	 * did); for every i with want[i] set dx[i], of input i's shape, or leave it 0: no gradient
	 * reaches that input. What the nodes made here read is what training keeps or recomputes.
	 */
	int (*gradient)(
		struct stint_call *c, const stint_value *dy, const bool *want, stint_value *dx);

	/* Print the kernel: the body of a C function, indented by a tab. In scope are x0, x1, ...
	 * (inputs; none for an absent one), y0, y1, ... (all outputs), and `ws` (64-aligned) where
	 * `shape` asked for scratch: pointers to `real`, int64_t or unsigned char, that do not
	 * overlap but for an output that runs in place. Sizes are printed as numbers.
	 *
	 * Available: EXP LOG LOG1P SQRT POW TANH ERF FABS FLOOR CEIL RINT TRUNC FMOD SIN COS TAN
	 * ASIN ACOS ATAN SINH COSH ASINH ACOSH ATANH on `real`; MAX and MIN; R(0.5), a number as
	 * `real`; `real sum_lanes(const real *x, int64_t n)`, `real dot_lanes(x, y, n)`, sums in a
	 * fixed order; INFINITY; memcpy and memset. Include files belong in `helper` texts.
	 *
	 * The text must give the same bits for the same inputs, however many threads there are:
	 * loops after stint_parallel have turns that are independent of each other. It must keep
	 * nothing between calls. Nodes that print the same text share one function, so leave
	 * c->node out of it. */
	int (*body)(struct stint_call *c);
	/* C text at file scope for `body`: functions (static), declarations, #include. Printed once
	 * for the record; NULL: none. More with stint_helper. */
	const char *helper;
};

/* --- For any hook --- */

#if defined(__GNUC__)
#define STINT_FORMAT(at) __attribute__((format(printf, at, at + 1), unused))
#else
#define STINT_FORMAT(at)
#endif

/* Report a failure of this node; the message is put behind file, node and operator. Returns what
 * the hook is to return, never 0. */
STINT_FORMAT(2) static int stint_fail(struct stint_call *c, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	int failed = c->api->fail(c, fmt, ap);
	va_end(ap);
	return failed;
}

/* 0 while nothing failed: the last line of a hook. */
static inline int stint_failed(const struct stint_call *c)
{
	return c->api->failed(c);
}

/* The node's attributes; `otherwise` when there is none of that name or of another kind (an integer
 * is taken for a float). Lists: the number of elements, 0 and NULL when there is none. */
static inline int64_t stint_int(const struct stint_call *c, const char *name, int64_t otherwise)
{
	return c->api->attribute_int(c, name, otherwise);
}
static inline double stint_float(const struct stint_call *c, const char *name, double otherwise)
{
	return c->api->attribute_float(c, name, otherwise);
}
static inline const char *stint_string(
	const struct stint_call *c, const char *name, const char *otherwise)
{
	return c->api->attribute_string(c, name, otherwise);
}
static inline int stint_int_list(const struct stint_call *c, const char *name, const int64_t **list)
{
	return c->api->attribute_ints(c, name, list);
}
static inline int stint_float_list(
	const struct stint_call *c, const char *name, const double **list)
{
	return c->api->attribute_floats(c, name, list);
}

/* Elements: the product of the sizes. For a tensor of stint's: it checked that they do not
 * overflow. */
static inline int64_t stint_count(const struct stint_op_tensor *t)
{
	int64_t n = 1;
	for (int i = 0; i < t->rank; i++)
		n *= t->dim[i];
	return n;
}

/* --- For `gradient` --- */

/* The node's inputs and outputs; 0 for an absent one. */
static inline stint_value stint_input(struct stint_call *c, int i)
{
	return c->api->input(c, i);
}
static inline stint_value stint_output(struct stint_call *c, int k)
{
	return c->api->output(c, k);
}

/* A new node: of ONNX's operators as of its newest opset ("Mul"), or a custom one
 * ("my.domain.Name"). Inputs of 0 are left out. Fills in out[0..nout). 0, or a failure. */
static inline int stint_node(struct stint_call *c, const char *op, int nin, const stint_value *in,
	int nout, stint_value *out, int nattribute, const struct stint_attribute *attribute)
{
	return c->api->node(c, op, nin, in, nout, out, nattribute, attribute);
}

/* Output 0 of a new node with one input, or two, and no attributes. */
static inline stint_value stint_op1(struct stint_call *c, const char *op, stint_value a)
{
	stint_value y = 0;
	c->api->node(c, op, 1, &a, 1, &y, 0, NULL);
	return y;
}
static inline stint_value stint_op2(
	struct stint_call *c, const char *op, stint_value a, stint_value b)
{
	const stint_value in[2] = {a, b};
	stint_value y = 0;
	c->api->node(c, op, 2, in, 1, &y, 0, NULL);
	return y;
}

/* Constants: a real of rank 0, integers of rank 1. */
static inline stint_value stint_scalar(struct stint_call *c, double v)
{
	return c->api->scalar(c, v);
}
static inline stint_value stint_ints(struct stint_call *c, int n, const int64_t *v)
{
	return c->api->ints(c, n, v);
}

/* `v` summed over the axes along which a tensor of shape `like` was broadcast (NumPy's rules): for
 * the gradient of an input that was, with &c->in[i]. */
static inline stint_value stint_sum_to(
	struct stint_call *c, stint_value v, const struct stint_op_tensor *like)
{
	return c->api->sum_to(c, v, like);
}

/* Type and shape of a value. 0, or a failure. */
static inline int stint_describe(struct stint_call *c, stint_value v, struct stint_op_tensor *out)
{
	return c->api->describe(c, v, out);
}

/* --- For `body` --- */

/* Append C text. */
STINT_FORMAT(2) static void stint_print(struct stint_call *c, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	c->api->print(c, fmt, ap);
	va_end(ap);
}

/* The loop that is printed next, with the `levels` - 1 loops directly in it, is shared among
 * threads; `work` (about: its operations) says whether that pays. */
static inline void stint_parallel(struct stint_call *c, double work, int levels)
{
	c->api->parallel(c, work, levels);
}

/* C text at file scope, printed once for each `name`; begin that with your domain. */
static inline void stint_helper(struct stint_call *c, const char *name, const char *text)
{
	c->api->helper(c, name, text);
}

/* "0.1f" or "0.1": a literal with exactly the bits of v as `real`. Lives until stint ends. */
static inline const char *stint_literal(struct stint_call *c, double v)
{
	return c->api->literal(c, v);
}

/* The input whose bytes output k takes in this run; -1: none. The same text works for both as long
 * as it keeps the promise of the pair. */
static inline int stint_in_place(const struct stint_call *c, int k)
{
	return c->api->in_place(c, k);
}

/* --- What the shared object defines --- */

#if defined(__GNUC__)
#define STINT_EXPORT __attribute__((visibility("default")))
#else
#define STINT_EXPORT
#endif

/* The records, ended by one without a name: {0}. */
STINT_EXPORT extern const struct stint_op stint_ops[];
/* STINT_OPS_VERSION of the header it was compiled with. */
STINT_EXPORT extern const int stint_ops_version;

#ifdef __cplusplus
}
#endif

#endif
