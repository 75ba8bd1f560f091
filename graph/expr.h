/* The expression of a pointwise record (graph/op.h: expr, int_expr) as a tree: what it reads, what
 * it calls, and its text again under other names. C's grammar and precedence, and of it what
 * records use: numbers, operands a to h, the record's options, unary and binary operators, ?:,
 * parentheses, casts to int64_t and uint64_t, calls of the functions that expr.c lists. */
#ifndef STINT_GRAPH_EXPR_H
#define STINT_GRAPH_EXPR_H

#include "graph/op.h"

enum expr_kind {
	EXPR_NUMBER,  /* word: as it is written; INFINITY */
	EXPR_OPERAND, /* which: its place among the operands, 0 for a, 1 for b, ... */
	EXPR_OPTION,  /* which: its place among the record's */
	EXPR_UNARY,   /* word: the operator */
	EXPR_BINARY,
	EXPR_CHOICE, /* of[0] ? of[1] : of[2] */
	EXPR_PARENS, /* where the author wrote them */
	EXPR_CAST,   /* word: the type */
	EXPR_CALL,   /* word: the function */
};

enum { EXPR_NODES = 96, EXPR_TEXT = 1000, EXPR_CHILDREN = 3 };

/* What the names of a text stand for. */
struct expr_scope {
	const struct op_option *option; /* ended by a NULL name; may be NULL */
	const char *const *operand; /* ended by NULL, before options of their name; NULL: a to h */
	const double *value; /* of the options: a choice by one alone, `amsgrad ? x : y`, is made,
			      * and what is not taken is no part of the tree. NULL: none is */
};

struct expr_node {
	unsigned char kind, which;
	unsigned char n, of[EXPR_CHILDREN]; /* nodes before this one */
	unsigned char spaces; /* bit i: before the node's own token i stands a space */
	unsigned char length; /* of its word, in the text from `at` on */
	short at;
};

struct expr {
	const char *text; /* not copied */
	int n;            /* the last node is the whole */
	struct expr_node node[EXPR_NODES];
	const char *wrong; /* where it is none: what is not understood, from text[at] on */
	int at;
};

/* False: the text is no such expression. */
bool expr_parse_in(struct expr *x, const char *text, const struct expr_scope *scope);
/* The same over operands a to h. */
bool expr_parse(struct expr *x, const char *text, const struct op_option *option);
/* It mentions operand or option number `which`. */
bool expr_reads(const struct expr *x, enum expr_kind kind, int which);
/* How many exponentials and the like it calls: each counts as 20 operations. */
int expr_slow_calls(const struct expr *x);

/* What operands a to h are called ("": as in the text), and what stands behind the names of
 * options.
 */
struct expr_names {
	char operand[POINTWISE_INPUTS][16], behind_option[16];
	/* For a GPU, of what is rounded to 16 bits: exponentials and quotients of numbers are
	 * nearly right (kernels/primitives.cuh), in a few instructions. */
	bool near;
	/* Functions are those of double precision (kernels/math_double.h). */
	bool wide;
	/* Of the options, if they stand as their values: what is made of these and of numbers alone
	 * is one constant, rounded once, "R(1 - 0.9)". NULL: they stand by their names. */
	const double *value;
	bool inside; /* of such a constant */
};
/* The text, to the byte, but for the names and what is near. C and CUDA: its capitals are macros in
 * both. */
void expr_print(const struct expr *x, const struct expr_names *as, struct text *out);

#endif
