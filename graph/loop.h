/* A loop that is one node. Its turns have equal shapes, so that one of them is a graph of its own,
 * the body, which is planned once and run as often as the loop has turns. Its backward pass is one
 * node too, whose bodies, one turn's vector-Jacobian products, are made by the same autodiff
 * (graph/loop_gradient.c).
 *
 * Inputs of the loop (ROLE_LOOP): what each of `ncarry` carries is before the first turn; then what
 * the body reads besides: slices along the first axis of scanned tensors, and tensors from around
 * the loop. Outputs: the carries after the last turn; what is collected, [turns, ...] each; where
 * data end it, whether it went on and how often it ran; and what the backward pass wants kept:
 * carries after turns, values inside them.
 *
 * Inputs of the gradient (ROLE_LOOP_GRADIENT): the loop's; the carries that are kept; the gradients
 * of its outputs, and the sums so far of the gradients of its inputs, each of which may be absent;
 * the values that are kept; and where data end the loop how often it ran. Outputs: these sums with
 * the loop's part, in the order of the loop's inputs.
 *
 * A body's inputs, and its outputs, are `outside` (struct tensor): whoever runs it says where each
 * is, and a loop_place says how that goes from turn to turn. */
#ifndef STINT_GRAPH_LOOP_H
#define STINT_GRAPH_LOOP_H

#include "graph/op.h"

enum loop_place_kind {
	LOOP_SAME,     /* the node's operand k, in every turn */
	LOOP_SLICE,    /* a turn's slice of it */
	LOOP_CARRY,    /* carry k: before the turn as an input, after it as an output */
	LOOP_GRADIENT, /* carry k's gradient: after the turn as an input, before it as an output */
};

struct loop_place {
	enum loop_place_kind kind;
	int k;
	bool output;    /* operand k is one of the node's outputs */
	bool backwards; /* the slices are in the order of the last turn to the first */
	int shift;      /* the slice is that of turn t + shift */
};

struct loop_body {
	struct graph *graph;
	struct loop_place *in, *out; /* by graph->input, graph->output */
};

/* Of a loop's node what the planner has found (bridge/loop_plans.h). */
struct graph_problem;
struct plan;
struct loop_planned {
	double cost;
	int64_t workspace, arena;             /* arena: of it, the bodies' */
	const struct graph_problem **problem; /* by body; and its outputs' tensors are `over` */
	struct plan **plan;
};

/* What is kept for the backward pass: carries after each turn, and all that it reads of the turn's
 * own values; the carries alone, so that a turn back does the turn once more; or the carries after
 * so many turns, those that Revolve's schedule says (kernels/revolve.h). */
enum { LOOP_SLOTS_INSIDE = -2, LOOP_SLOTS_ALL = -1 };

struct loop {
	int64_t turns, slots;
	int64_t asks; /* of a loop: the slots that its gradient is to have */
	int ncarry;
	/* By carry, the operand that holds it after turns, of the loop's outputs, of the gradient's
	 * inputs: [turns, ...], or, with slots, one for each and one for the carry before the last
	 * turn. -1: it is not kept. */
	int *kept;
	int inside, ninside; /* values inside turns that are kept: of the gradient's inputs */
	/* Turns in the order in which they run, the gradient's from the last on: run r is body r
	 * while r < lead, and then one of the `cycle` bodies behind these, in turn; but the last
	 * run's is body `last`, where that is not -1. Body `advance`, of a gradient that has slots,
	 * goes forward a turn, for the carries alone; -1: there is none. */
	int nbody, lead, cycle, last, advance;
	/* Where data end it, before `turns` turns are run: of the loop's outputs one BOOL, which
	 * each turn makes, whether another follows; and how many were run, of the loop's outputs,
	 * of the gradient's inputs, which then has a last body behind `last` for each of the others
	 * (kernels/which_body.h). -1: all are run. */
	int go, ran;
	struct loop_body *body;
	struct loop_planned *planned;
};

/* NULL: n is no such node. */
static inline struct loop *node_loop(const struct node *n)
{
	return n->op->role == ROLE_LOOP || n->op->role == ROLE_LOOP_GRADIENT
		       ? (struct loop *)n->param
		       : NULL;
}
/* A copy, with room for so many bodies, in whose places nothing is planned. NULL: out of memory. */
struct loop *loop_copy(struct arena *a, const struct loop *l, int nbody);
/* How often body b runs. */
int64_t loop_runs(const struct loop *l, int b);
/* With slots, the turns before which carries are kept when the loop itself has run, ascending, as
 * kernels/loop_run.h does. NULL: out of memory. */
const int64_t *loop_places(struct arena *a, const struct loop *l, int64_t *n);
/* What is kept for the backward pass, in words. NULL: out of memory. */
const char *loop_keeps(struct arena *a, const struct loop *l);
/* Bytes of a carry. */
int64_t loop_carry_bytes(const struct loop *l, int carry);
/* Output k of a body, a slice in the order of the turns, is a carry, too: which; -1: none. */
int loop_collected_carry(const struct loop_body *b, int k);
/* Output k of a body is a sum, the sum so far being an input; which one, -1: it is none. */
bool loop_makes_sum(const struct loop_body *b, int k);
int loop_sum_before(const struct loop_body *b, int k);
/* A place's tensor among the node's operands; of LOOP_SAME and LOOP_SLICE. */
struct tensor *loop_operand(const struct node *n, const struct loop_place *p);

/* Where in the node's scratch, behind the bodies' arena, carries and their gradients are that no
 * tensor holds: two places each, which may be the same. And one sum that has no place of its own
 * while it is made. -1: none. Places are LOOP_ALIGNED. */
enum { LOOP_ALIGNED = 64 };
struct loop_two {
	int64_t at[2];
};
struct loop_scratch {
	struct loop_two *spare, *gradient; /* by carry */
	int64_t sum, bytes;                /* bytes: of all scratch */
};
enum status loop_scratch_find(struct graph *g, const struct node *n, struct loop_scratch *out);
int64_t loop_aligned(int64_t bytes);

/* Nodes of g from number `node` on, and tensors from number `tensor` on, become the body of a loop,
 * and g is what it was before. Its inputs are the `nin` tensors, which no node makes; behind them
 * come tensors of g that the nodes read, which the caller gets in *around. */
struct loop_nodes {
	int node, tensor;
	int nin, nout;
	struct tensor *const *in, *const *out;
	int naround;
	struct tensor **around;
};
/* One more input of a body, like that tensor; g->input has room. NULL: failed. */
struct tensor *loop_add_input(struct graph *g, const struct tensor *like);
enum status loop_take_body(struct graph *g, struct loop_nodes *what, struct graph **body);
/* g is what it was before nodes from number `node` and tensors from number `tensor` on. */
void loop_forget(struct graph *g, int node, int tensor);

/* A record's gradient rule: n's outputs get those that the backward pass wants kept. dx: the sums
 * so far, and those with the loop's part (OP_SUMS). */
enum status loop_grad(struct graph *g, const struct node *n, struct tensor *const *dy,
	const bool *want, struct tensor **dx);

/* Requires bodies to be as they will run. Each output of a body is made by a node, for itself; what
 * a body knows, and what is the step's, becomes its node's operand. */
enum status loop_settle(struct graph *g, struct node *n);

#endif
