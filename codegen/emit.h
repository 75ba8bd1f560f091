/* What an operator's emit_c hook writes with.
 *
 * The hook writes the body of one function, indented by one tab. The function's frame is made for
 * it, with the parameters that the body mentions:
 *
 *	KERNEL void k012_softmax(real *restrict y0, const real *restrict x0, void *restrict ws)
 *	{
 *		...body...
 *	}
 *
 * In scope are: x0, x1, ... (inputs by position; an absent optional input has no name), y0, y1, ...
 * (outputs; one that the node does not have has no name), `ws` (node_workspace bytes, 64-aligned,
 * where it asked for any). Elements: `real` (float or double), int64_t, unsigned char for DT_BOOL,
 * and bf16 or fp16 where the record allows it (narrow_in, narrow_out). Pointers do not overlap, but
 * for an output that runs in place of input k: then xk is no parameter but made from the output's
 * pointer, and the same text works. All sizes are printed as numbers: shapes are constants. Two
 * nodes whose bodies come out the same share one function, so nothing of a node's name or id
 * belongs in the text.
 *
 * Available to the text: EXP LOG LOG1P SQRT POW TANH ERF NORMAL_CDF FABS FLOOR CEIL RINT TRUNC
 * FMOD SIN COS TAN ASIN ACOS ATAN SINH COSH ASINH ACOSH ATANH on `real`; `int_power(x, n)` on
 * int64_t, wrapping round; single precision's EXP, TANH and ERF vectorise and are the same on
 * every machine (kernels/math_f32.h); MAX and MIN (`x > y ? x : y`, on integers too); R(0.5), a
 * literal as `real`; INFINITY; `double sum_wide(x, n)` sums in 16 lanes of doubles; `real
 * sum_lanes(const real *x, int64_t n)` and `real dot_lanes(x, y, n)`: sums in a fixed tree of 16
 * lanes, the same bits at any vector width; `philox_lanes(seed, step, node, i, word)`: 128
 * random words. Loops over independent outputs are opened by emit_loops. A sum may only be split
 * over threads in a way that does not depend on their number. An OP_CHECKED kernel returns int:
 * `return 0;` or `return BAD_INDEX(value);`. */
#ifndef STINT_CODEGEN_EMIT_H
#define STINT_CODEGEN_EMIT_H

#include "graph/op.h"

struct body_uses;    /* what a body has used; codegen's own */
struct emit_helpers; /* what emit_helper has gathered; codegen's own */

/* How one launch is made: one of a kernel's stages. */
enum { STAGES_MAX = 12 };
struct launch_shape {
	int blocks, threads;
	int64_t spread; /* turns, where any number of threads may share them; 0: not so */
	int64_t turns;  /* launched so many times; 0: once */
	size_t end;     /* where its text ends in the body */
};

struct emit {
	struct text out;
	const struct graph *g;
	int in_place[4];     /* input whose bytes output k takes in this run; -1: none */
	const int *place_of; /* by input: the output that it has the bytes of, -1: none; two may,
			      * if they are one tensor. NULL: nothing is in place */
	/* CUDA, of the stage that is being written: how many loops threads share so far, and the
	 * turns of the longest. */
	int nloop;
	int64_t turns;
	int64_t tasks; /* emit_launch's; 0: the launch is as the text allows */
	int task_threads;
	int64_t launch_turns; /* emit_repeat'; 0: once */
	size_t stage_from;    /* where it begins in `out` */
	int nstage;           /* stages that are complete */
	struct launch_shape stage[STAGES_MAX];
	bool c_only; /* emit_c_only was called */
	struct body_uses *uses;
	struct emit_helpers *helpers; /* NULL: emit_helper drops its text */
};

/* Append formatted text: what is not told otherwise is the same in all kernels of one form. */
void emit(struct emit *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void emit_tabs(struct emit *e, int tabs);
/* A body that a user's operator gives, on x0, y0, ws: it is looked through for which of them it
 * names. A GPU does it in one thread. */
void emit_given(struct emit *e, const struct node *n, const char *body);
/* A static function (or several) that kernels share, as C text at file scope; registered once per
 * name. */
void emit_helper(struct emit *e, const char *name, const char *text);
/* CUDA: kernels/elements.cuh, for UNROLL, UNROLL_4 and pack<T, V>: V neighbours that memory is read
 * and written by, at multiples of their size. Tensors begin at multiples of 256 bytes. */
void emit_packs(struct emit *e);
/* The text, or what it calls, is C for CPUs and no CUDA: a GPU's step that needs it is refused. A
 * helper with vectors in GNU C's way says so by itself. */
void emit_c_only(struct emit *e);
/* The heads of n loops, one inside another, whose turns are independent: a line "PARALLEL_FOR(n)",
 * which stands for "#pragma omp parallel for ...", when `work` (about: flops or elements in all of
 * them) is worth it and the target has threads; then "for (int64_t b = 0; b < 8; b++)" and so on,
 * each a tab deeper. What follows is the body: " {\n", or a newline and a statement. Nothing for n
 * = 0. In CUDA as many heads, and all threads share the turns: in the indentation of a function's
 * body, where all of a block's threads come by. */
struct emit_loop {
	const char *variable;
	int64_t end, step;
};
void emit_loops(struct emit *e, double work, int n, const struct emit_loop *loop);
/* CUDA: the launch, where the text is no loop that any threads share: `tasks` blocks, or fewer, of
 * `threads` threads, which are whole warps and at most 256. Block blockIdx.x does tasks blockIdx.x,
 * blockIdx.x + gridDim.x, ...; shared memory is declared by the text, at most 48 KiB. */
void emit_launch(struct emit *e, int64_t tasks, int threads);
/* CUDA: here ends a stage, and the next begins: a launch of its own, which starts when all blocks
 * of the one before have ended, and sees what they have written (to `ws`, say). Each stage has its
 * own loops or emit_launch, and no names of the others' but for the parameters, which are the
 * node's. At most STAGES_MAX. The text of one stage is all there is without a call. */
void emit_stage(struct emit *e);
/* CUDA, beside emit_launch: the stage is launched `turns` times; its text reads `int64_t turn`,
 * from 0 on. Stages one behind another that have as many turns take them together: the first of
 * all, then the second, and so on. */
void emit_repeat(struct emit *e, int64_t turns);
/* emit_loops' first line alone: for users' operators, which print their own loops. */
void emit_parallel(struct emit *e, double work, int collapse);
/* "0.1f" or "0.1": a literal of type real with exactly the bits of (real)v; "INFINITY",
 * "-INFINITY". */
const char *emit_real(const struct emit *e, double v, char buf[static 40]);
/* An element as it is stored: "real", "int64_t", "unsigned char", "bf16" or "fp16". */
const char *emit_type(const struct tensor *t);
/* An element as it is computed with: "real" for the narrow types. */
const char *emit_value_type(const struct tensor *t);
/* Formatted text that lasts as long as the graph; "" when out of memory, which fails e->out. */
const char *emit_text(struct emit *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* The value of an element of t, "x0[i]" or "WIDE(x0[i])"; the element that a value becomes in t,
 * "x + 1" or "NARROW(x + 1)". They last as long as the graph, or as the text does. */
const char *emit_value(struct emit *e, const struct tensor *t, const char *element);
const char *emit_stored(struct emit *e, const struct tensor *t, const char *value);
/* The body of an OP_POINTWISE node from its expression. */
enum status emit_pointwise(struct emit *e, const struct node *n);

#endif
