/* What a node is called, how it may be run, and what that takes. */
#ifndef STINT_GRAPH_COST_H
#define STINT_GRAPH_COST_H

#include "graph/op.h"
#include "runtime/stint_call.h"

/* What a node does, for people: "Add", "stint.Fused: Add, Relu". */
void node_title(const struct node *n, struct text *out);

/* A library call that does a node: what is printed into the step and made into a primitive by the
 * runtime; and what the library is not told. */
struct lib_call {
	struct stint_lib_call call;
	/* Of the ways to do a node, what this one is called (NULL: way 0), how many times as fast
	 * as way 0 it is, and whether it rounds more. */
	const char *name;
	double speed;
	bool rough;
	bool slow; /* generated C is faster: not taken on a CPU */
};

/* How a node may be run: on other inputs (alternatives), by other library calls (ways). Choice 0 is
 * what is taken where nothing speaks against it. */
int node_choices(const struct node *n);
struct node node_choice(const struct node *n, int choice);

/* Bytes of a node's inputs and outputs. */
double node_bytes(const struct node *n);
/* Cost and scratch of a node under the graph's target: the library's when it is used. */
struct op_cost node_cost(const struct node *n);
bool node_uses_library(
	const struct graph *g, const struct node *n, struct lib_call *call, int64_t *workspace);
int64_t node_workspace(const struct graph *g, const struct node *n);
/* OP_POINTWISE: the text that does this node, by the types of its inputs; NULL: none does. */
const char *node_expr(const struct node *n);
/* Pairs of a node that hold for its actual shapes (a broadcast input cannot be overwritten). */
int node_pairs(const struct node *n, struct op_pair *out, int max);

/* Kernels in words: "Relu(f32[64,16,28,28]) -> f32[64,16,28,28]; C": operator, inputs, outputs,
 * attributes, and who does it (the library's call, or NULL: C, portable C). The same for any two
 * nodes that run alike, whatever the model; tables of measured times are kept by it. The text up to
 * "(" is the operator. Valid while `g` does not change; lives in `a`. NULL when out of memory. */
struct kernel_keys;
struct kernel_keys *kernel_keys_new(struct arena *a, const struct graph *g);
const char *kernel_key(
	const struct kernel_keys *k, const struct node *n, const struct lib_call *library);

#endif
