/* What an operator's hook says of its kernels: functions of kernels/ and their arguments, as data.
 * Each is printed as a call in the node's function, one behind the other; on a GPU each is a launch
 * of its own, which sees all that the ones before it have written.
 *
 *	return call_kernel(e, &(struct kernel_call){
 *		.file = "softmax.h", .function = "softmax_rows",
 *		.ntype = 2, .type = {n->in[0], n->out[0]},
 *		.turns = rows, .work = 8 * elements,
 *		.args = CALL_ARGS(ARG_Y(0), ARG_X(0), ARG_SIZE(n), ARG_NULL)});
 *
 * prints, for 640 rows of 10,
 *
 *	TURNS(640, softmax_rows(y0, x0, 10, NULL, from, to));
 *
 * and, where that is worth it and the target has threads, PARALLEL_TURNS (kernels/turns.h). */
#ifndef STINT_CODEGEN_CALL_H
#define STINT_CODEGEN_CALL_H

#include "codegen/emit.h"

enum call_arg_kind {
	CALL_END,
	CALL_NONE, /* no argument */
	CALL_X,    /* input k, from element `i` on */
	CALL_Y,    /* output k, from element `i` on */
	CALL_INT,
	CALL_SIZE, /* a number that kernels may differ in and still share a function */
	CALL_REAL,
	CALL_DOUBLE,
	CALL_SCRATCH, /* of the node's, from byte `i` on */
	CALL_OWN,     /* of it, `bytes` bytes for each worker, the first from byte `i` on */
	CALL_NULL,
	CALL_STRUCT,  /* a pointer to one */
	CALL_INTS,    /* a field that is an array: `k` numbers */
	CALL_SIZES,   /* the same of such numbers */
	CALL_TABLE,   /* an array of structs */
	CALL_LOCAL,   /* an array, for calls behind one another: not for CUDA */
	CALL_NUMBERS, /* a constant array of so many that they are no arguments */
	CALL_NAME,    /* a function or a constant of kernels/ */
};

struct call_struct;
struct call_table;
struct call_local;
struct call_numbers;
struct call_arg {
	enum call_arg_kind kind;
	int k;
	int64_t i, bytes;
	double v;
	const int64_t *ints;
	const char *name;
	const struct call_struct *of;
	const struct call_table *table;
	const struct call_local *local;
	const struct call_numbers *numbers;
};
#define CALL_ARGS(...)                                                                             \
	(const struct call_arg[])                                                                  \
	{                                                                                          \
		__VA_ARGS__,                                                                       \
		{                                                                                  \
			.kind = CALL_END                                                           \
		}                                                                                  \
	}
#define CALL_ARG(...) ((struct call_arg){__VA_ARGS__})
#define ARG_X(n) CALL_ARG(.kind = CALL_X, .k = (n))
#define ARG_X_OR_NULL(node, n) (node_input(node, n) ? ARG_X(n) : ARG_NULL)
#define ARG_X_AT(n, offset) CALL_ARG(.kind = CALL_X, .k = (n), .i = (offset))
#define ARG_Y(n) CALL_ARG(.kind = CALL_Y, .k = (n))
#define ARG_Y_AT(n, offset) CALL_ARG(.kind = CALL_Y, .k = (n), .i = (offset))
#define ARG_INT(value) CALL_ARG(.kind = CALL_INT, .i = (value))
#define ARG_SIZE(value) CALL_ARG(.kind = CALL_SIZE, .i = (value))
#define ARG_REAL(value) CALL_ARG(.kind = CALL_REAL, .v = (value))
#define ARG_DOUBLE(value) CALL_ARG(.kind = CALL_DOUBLE, .v = (value))
#define ARG_SCRATCH(offset) CALL_ARG(.kind = CALL_SCRATCH, .i = (offset))
#define ARG_OWN(offset, of_each) CALL_ARG(.kind = CALL_OWN, .i = (offset), .bytes = (of_each))
#define ARG_NULL CALL_ARG(.kind = CALL_NULL)
#define ARG_INTS(n, list) CALL_ARG(.kind = CALL_INTS, .k = (n), .ints = (list))
#define ARG_SIZES(n, list) CALL_ARG(.kind = CALL_SIZES, .k = (n), .ints = (list))
#define ARG_TABLE(t) CALL_ARG(.kind = CALL_TABLE, .table = (t))
#define ARG_LOCAL(l) CALL_ARG(.kind = CALL_LOCAL, .local = (l))
#define ARG_NUMBERS(list) CALL_ARG(.kind = CALL_NUMBERS, .numbers = (list))
#define ARG_NAME(word) CALL_ARG(.kind = CALL_NAME, .name = (word))
#define ARG_STRUCT(s) CALL_ARG(.kind = CALL_STRUCT, .of = (s))
/* Control, input k, where it names a shard that differs from others; NULL. */
#define ARG_SHARD(e, k) ((e)->g->shards_differ ? ARG_X(k) : ARG_NULL)
#define ARG_NONE CALL_ARG(.kind = CALL_NONE)
#define ARG_IF(condition, arg) ((condition) ? (arg) : ARG_NONE)

/* A struct of kernels/ as a local of the node's function; fields in their order, ended by a NULL
 * name. */
struct call_field {
	const char *name;
	struct call_arg value;
};
struct call_struct {
	const char *type, *name; /* "struct window", "w" */
	const struct call_field *field;
};
#define CALL_FIELDS(...)                                                                           \
	(const struct call_field[])                                                                \
	{                                                                                          \
		__VA_ARGS__,                                                                       \
		{                                                                                  \
			.name = NULL                                                               \
		}                                                                                  \
	}

/* An array of structs as such a local: rows of so many fields each, in their order. */
struct call_table {
	const char *type, *name;
	int rows, columns;
	const struct call_arg *value;
};

struct call_local {
	const char *type, *name;
	int n;
};

/* Of type int32_t, or real. */
struct call_numbers {
	const char *name;
	int64_t n;
	const int32_t *whole;
	const double *real;
};

enum { CALL_CONSTANTS = 6 };
struct kernel_call {
	const char *file, *function; /* "softmax.h", "softmax_rows" */
	/* Tensors whose elements are the template's X, Y, ...; 0: the file is none. */
	int ntype;
	const struct tensor *type[5];
	/* Independent turns, all together of so much work (flops, or elements); `from` and `to` are
	 * appended to the arguments. 0: there is nothing to do; or, `once`, the function does all,
	 * on a GPU in one thread. */
	int64_t turns;
	bool once;
	double work;
	const struct call_arg *args;
	bool checked; /* `once`, returns a status and takes `bad` last: for OP_CHECKED, whose first
		       * call is one. What follows is not done after a bad index; but a GPU
		       * does it */
	/* CUDA's own kernels (.cuh), in place of turns: so many tasks for blocks of so many
	 * threads, which are whole warps and at most 256. Block blockIdx.x does tasks blockIdx.x,
	 * blockIdx.x + gridDim.x, ... And the numbers that the function is a template of. */
	int64_t tasks;
	int threads;
	int resident; /* registers are given out so that a multiprocessor has room for as many
		       * blocks; 0: as the compiler likes */
	int nconstant;
	int64_t constant[CALL_CONSTANTS];
	const struct call_struct *traits; /* what is constant of the node, as the first of them: a
					   * type whose enumerators are the whole numbers, and whose
					   * functions give the real ones */
	const char
		*shared[2]; /* types in a block's shared memory, the function's first arguments */
	/* What a GPU does instead, as a record has `emit_cuda`: of calls that hooks of many records
	 * make. NULL: the same. */
	const struct kernel_call *cuda;
	bool along; /* CUDA: in the launch of the call before, to which these tasks are not added */
	int64_t repeat; /* launched so many times; `turn` is appended to the arguments. 0: once */
};
enum status call_kernel(struct emit *e, const struct kernel_call *c);
/* The node is a function of the runtime's, "int FUNCTION(stint_step *s, ARGS)", whose failure is
 * the step's; on a GPU, behind calls of kernels, that is called when these are launched. */
struct runtime_call {
	const char *function;
	const struct call_arg *args;
};
enum status call_runtime(struct emit *e, const struct runtime_call *c);
/* How much of a row of n elements a turn takes that costs little: a GPU's neighbouring threads take
 * neighbours. */
int64_t call_piece(const struct emit *e, int64_t n);

/* kernels/FILE for a hook that prints its own text; the types as above. Returns what NAMED appends.
 */
const char *emit_source(struct emit *e, const char *file, int n, const struct tensor *const *t);

#endif
