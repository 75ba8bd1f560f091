/* What an emit hook writes into: the body of one function, whose frame is made for it, with the
 * parameters that the body uses:
 *
 *	KERNEL void k012_softmax(real *restrict y0, const real *restrict x0, void *restrict ws)
 *	{
 *		PARALLEL_TURNS(32, softmax_rows_real_real(y0, x0, 10, from, to));
 *	}
 *
 * x0, x1, ... are inputs and y0, y1, ... outputs by position; `ws` is node_workspace bytes,
 * 64-aligned. Pointers do not overlap, but for an output that runs in place of an input, which goes
 * by the output's name. Operators write calls (codegen/call.h). Printed in full are pointwise
 * expressions (pointwise_loops.c) and what users' operators give: nobody reads their text again.
 * Two nodes whose bodies come out the same share one function, so nothing of a node's name or id
 * belongs in it. */
#ifndef STINT_CODEGEN_EMIT_H
#define STINT_CODEGEN_EMIT_H

#include "base/literal.h"
#include "graph/op.h"

struct body_uses;    /* what a body has used; codegen's own */
struct emit_helpers; /* what emit_helper has gathered; codegen's own */

/* How one launch is made: one of a kernel's stages. */
enum { STAGES_MAX = 12 };
struct launch_shape {
	int blocks, threads;
	int64_t spread; /* turns, where any number of threads may share them; 0: not so */
	int64_t turns;  /* launched so many times; 0: once */
	int resident;   /* blocks that a multiprocessor is to have room for; 0: not said */
	size_t end;     /* where its text ends in the body */
};

struct emit {
	struct text out;
	const struct graph *g;
	int in_place[4];     /* input whose bytes output k takes in this run; -1: none */
	const int *place_of; /* by input: the output that it has the bytes of, -1: none; two may,
			      * if they are one tensor. NULL: nothing is in place */
	int nstage;          /* of a GPU: the launches so far */
	struct launch_shape stage[STAGES_MAX];
	struct text then; /* the call of the runtime's behind them */
	bool c_only;      /* emit_c_only was called */
	struct body_uses *uses;
	struct emit_helpers *helpers; /* NULL: emit_helper drops its text */
};

/* Append formatted text: what is the same in all kernels of one form. Numbers that may differ:
 * emit_size. */
void emit(struct emit *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* A body that a user's operator gives, on x0, y0, ws: it is looked through for which of them it
 * names. A GPU does it in one thread. */
void emit_given(struct emit *e, const struct node *n, const char *body);
/* A static function (or several) that kernels share, as C text at file scope; registered once per
 * name. */
void emit_helper(struct emit *e, const char *name, const char *text);
/* The text, or what it calls, is C for CPUs and no CUDA: a GPU's step that needs it is refused. A
 * helper with vectors in GNU C's way says so by itself. */
void emit_c_only(struct emit *e);
/* A line "PARALLEL_FOR(levels)" where `work` (about: flops or elements) is worth it and the target
 * has threads: before so many loops, one inside another, whose turns are independent. For users'
 * operators, which print their own loops. */
void emit_parallel(struct emit *e, double work, int levels);
/* "0.1f" or "0.1": a literal of type real with exactly the bits of (real)v; "INFINITY",
 * "-INFINITY". */
const char *emit_real(const struct emit *e, double v, char buf[static LITERAL_TEXT]);
/* An element as it is stored: "real", "int64_t", "unsigned char", "bf16", "fp16" or
 * "int8_t". */
const char *emit_type(const struct tensor *t);
/* An element as it is computed with: "real" for the narrow types. */
const char *emit_value_type(const struct tensor *t);
/* Formatted text that lasts as long as the graph; "" when out of memory, which fails e->out. */
const char *emit_text(struct emit *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* The body of an OP_POINTWISE node from its expression. */
enum status emit_pointwise(struct emit *e, const struct node *n);
/* That of an optimizer from the lines of its rule; more calls may follow. */
enum status emit_update(struct emit *e, const struct node *n);

#endif
