/* The one place where the planner's folder sees the graph: a graph as a planner's problem. */
#ifndef STINT_BRIDGE_FROM_GRAPH_H
#define STINT_BRIDGE_FROM_GRAPH_H

#include "graph/op.h"
#include "planner/problem/insist.h"

struct graph_problem {
	const struct graph *graph;
	struct problem *problem;
	struct tensor *const *tensor; /* [problem->ntensor] the graph's storage tensors */
	struct node *const *node;     /* [problem->nop] */
	const int *index; /* by graph tensor id: the problem tensor of its storage; -1: none. Tokens
			     of transfers have ids behind the graph's tensors */
};

/* Requires a pruned, verified graph. Views disappear into their sources; tensors without bytes in
 * the step (shapes, folded constants that nothing reads) are left out; constants become parameters.
 * `residents_of`, when not NULL, adds that problem's residents in its order, read or not, so that
 * both plans place them alike. Kept after the last step: the loss, and with keep_outputs the
 * model's outputs. */
enum status problem_from_graph(struct arena *a, const struct graph *g, const char *name,
	bool keep_outputs, const struct graph_problem *residents_of, struct graph_problem *out);

/* Training (NULL: none, and *train_problem is left alone) and evaluation, which keeps its outputs,
 * with the same residents in the same order. `longest` (NULL: none) is the problem of the same
 * model for longer inputs: what lasts over steps has its place there, and what it alone has keeps
 * its own. */
enum status problems_from_graphs(struct arena *a, const char *name, const struct graph *train,
	const struct graph *eval, const struct graph_problem *longest,
	struct graph_problem *train_problem, struct graph_problem *eval_problem);

/* How many residents there are: they come first. */
int residents_of(const struct graph_problem *gp);

/* How many of a training step's shards a process does: of so many as the graph is for, the one with
 * most. */
int64_t shards_of_process(const struct graph *g);
/* Where shards differ: what runs in each costs as often as a process runs it. Requires the costs of
 * one. */
enum status graph_problem_shards(struct arena *a, struct graph_problem *out, struct diag *d);

/* --recompute: `out` with twins for the nodes that match (planner/problem/insist.h). A twin's node
 * is that of the op it repeats. */
enum status graph_problem_again(struct arena *a, struct graph_problem *out,
	const char *const *pattern, const char *file, struct diag *d);

/* --offload: `out` with transfers to the host and back for tensors of at least `least` bytes
 * (planner/problem/transfer.h). Each has a node and a token that are in no graph: the node has the
 * name of the tensor's, reads one storage and makes one, and nothing computes it. */
enum status graph_problem_transfers(
	struct arena *a, struct graph_problem *out, int64_t least, double link, struct diag *d);
/* Whether a node is such a one. */
bool node_transfers(const struct node *n);
/* Whether it brings something from a file or takes it there (graph_put_away), or brings it from
 * other processes (graph_share_parameters). */
static inline bool node_moves(const struct node *n)
{
	return n->op->role == ROLE_FETCH || n->op->role == ROLE_STORE ||
	       n->op->role == ROLE_FETCH_PIECES;
}

#endif
