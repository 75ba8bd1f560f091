/* Shared by the files of graph/ only. */
#ifndef STINT_GRAPH_GRAPH_PARTS_H
#define STINT_GRAPH_GRAPH_PARTS_H

#include "graph/cost.h"
#include "graph/op.h"

struct optimizer_spec;

/* A node with copied inputs and empty outputs, not yet in the graph. NULL when out of memory. */
struct node *graph_node_blank(struct graph *g, const struct op_def *op, const char *name, int nin,
	struct tensor *const *in, int nout);
/* Put a finished node at the end; its outputs' maker is set. */
enum status graph_append(struct graph *g, struct node *n);
/* The graph has the n nodes of `list`, in that order. */
void graph_relist(struct graph *g, int n, struct node *const *list);
/* Its nodes by slot[i] of node i, from 0 to below nslot; those of one slot as they stand. */
enum status graph_sort(struct graph *g, int nslot, const int *slot);
/* How often n reads t, alternatives included; and all of the graph, outputs and the loss too. */
int node_reads(const struct node *n, const struct tensor *t);
int graph_reads(const struct graph *g, const struct tensor *t);
/* Value x in type t, by a node of its own. NULL: failed, and told. */
struct tensor *graph_copy_as(struct graph *g, const char *name, struct tensor *x, enum dtype t);
/* Operand k is among the bits of a record's narrow_in or narrow_out. */
static inline bool operand_named(unsigned bits, int k)
{
	return bits == ALL_OPERANDS || (k < 32 && bits >> k & 1);
}

enum { NF4_BLOCK = 64 }; /* elements that have one scale */
/* Weight t, of f32, as int8 with a scale for each of its channels, which `axis` counts, and, of
 * matrices behind one another, for each of these. `turned`: each matrix's columns one behind the
 * other, where axis is the last of two or three. NULL: failed, and told. (quantise.c) */
struct stored *store_int8(struct graph *g, const struct tensor *t, int axis, bool turned);
/* The same as nf4 in blocks of 64 elements, as bitsandbytes has them. `turned`: of a matrix, in the
 * order of its transpose. `twice`: scales in 8 bits. */
struct stored *store_nf4(struct graph *g, const struct tensor *t, bool turned, bool twice);
/* y is the transpose of matrix x: stored as that is, if it can. */
enum status stored_transpose(struct graph *g, const struct node *n);

/* A graph that is copied into a new one, node by node: old tensors to new ones. */
struct graph_copy {
	const struct graph *from;
	struct graph *to;
	struct tensor **map; /* by old id */
};
/* A new graph holding every tensor that no node makes, in the same order. */
enum status graph_copy_begin(struct graph_copy *c, const struct graph *from);
/* The new tensor for old tensor t, which nothing makes yet. NULL: failed, and told. */
struct tensor *graph_copy_tensor(const struct graph_copy *c, const struct tensor *t);
/* The new tensors for a list of old ones. */
enum status graph_copy_list(
	const struct graph_copy *c, int n, struct tensor *const *from, struct tensor ***out);
/* The node as it is, its outputs mapped. Alternatives are not copied. */
enum status graph_copy_node(struct graph_copy *c, const struct node *n, struct node **out);
/* Nodes that are added from here on stand for n: they have its name, and run when it does. */
void graph_copy_for(struct graph_copy *c, const struct node *n);
/* Inputs, outputs, loss; dead nodes out. */
enum status graph_copy_end(struct graph_copy *c, struct graph **out);

/* A copy in which who reads certain tensors that last over steps reads what a node has fetched of
 * them (fetched.c). */
struct fetching {
	struct graph_copy copy; /* its map: to the value that was fetched, once one was */
	struct tensor **home;   /* by old id: what lasts, of which nodes fetch; NULL: it is read */
	/* The elements of old tensor t, fetched by a node at the end. NULL: failed, and told. */
	struct tensor *(*fetch)(struct fetching *f, const struct tensor *t);
};
enum status fetching_begin(struct fetching *f, const struct graph *in);
/* The homes: those that `goes`. An output of the model that is one as it is, is refused: it cannot
 * be in `where`, "a file". */
enum status fetching_find(struct fetching *f,
	bool (*goes)(const struct fetching *f, const struct tensor *t), const char *where,
	const char *hint);
/* Another shape of such a tensor: not copied, but made when somebody reads it. */
bool fetching_is_view(const struct fetching *f, const struct node *n);
/* Makes the map know old tensor t, fetched where it was not. */
enum status fetching_input(struct fetching *f, const struct tensor *t);
/* The node with its alternatives, all of whose inputs the map knows; and the same of one that only
 * reads such tensors, which are fetched before. */
enum status fetching_node(struct fetching *f, const struct node *n, struct node **out);
enum status fetching_reader(struct fetching *f, const struct node *n);

/* Gradients of micro-batches from rows that are kept, in the place of sums (shard_rows.c). */
struct shard_rows {
	struct graph *g;
	int64_t levels; /* sums that would wait */
	int nplain, nslot, ntensor;
	int *slot;            /* by node: which of the first nplain it stands behind */
	struct tensor **rows; /* by tensor: all shards' rows of it; NULL: they are not kept */
	bool pieces;          /* of a total its piece is wanted: graph_own_piece */
};
enum status shard_rows_begin(struct shard_rows *r, struct graph *g, int64_t levels, bool pieces);
/* The sum of `grad` over all shards, there in the last; *total NULL: sums take less. */
enum status shard_rows_total(struct shard_rows *r, struct tensor *grad, struct tensor **total);
/* Puts all nodes that have come since the beginning where they belong. */
enum status shard_rows_end(struct shard_rows *r);

/* Of processes that each have a piece of the optimizer's states: whether all that is asked of
 * gradients is a piece, too. */
bool graph_scatters(const struct graph *g, const struct optimizer_spec *spec);
/* This one's piece of t, taken when `behind` (NULL: nothing) is there; and parameter `whole` anew
 * from the piece that each has. NULL: failed. */
struct tensor *graph_own_piece(struct graph *g, struct tensor *t, struct tensor *behind);
struct tensor *graph_gather_pieces(struct graph *g, struct tensor *whole, struct tensor *piece);

/* --- branches.c: branches that data decide --- */

/* Where `inner` is true, `outer` is; NULL: always. */
bool branch_within(const struct tensor *inner, const struct tensor *outer);
/* When node n reads its input k: of what picks, the branch whose value that is. */
struct tensor *branch_of_choice(const struct node *n, int k);
/* Input k of n is there whenever n reads it. */
bool branch_reads(const struct node *n, int k);
/* A sum of gradients, which is there when `when` is true (NULL: always), and 0 elsewhere. */
struct branch_sum {
	struct tensor *value; /* NULL: nothing was added yet */
	struct tensor *when;
};
enum status branch_add(struct graph *g, struct branch_sum *sum, struct branch_sum x);
/* Its value as it is when `to` is. */
struct tensor *branch_leave(struct graph *g, struct branch_sum x, struct tensor *to);

/* By tensor: marks those that are made, by nodes that let gradients pass, of marked ones.
 * (autodiff.c) */
void graph_mark_wanted(const struct graph *g, bool *wanted);

/* Gradients together with the nodes before them (joined.c); grad: of the first ntensor tensors, of
 * which one may be made by another node then. */
enum status graph_join(struct graph *g, struct tensor **grad, int ntensor);

/* What updates overwrite (order.c): good as long as no node is added, removed or renumbered. */
struct order {
	const struct graph *g;
	const struct node **update; /* by tensor: what overwrites it; NULL: nothing */
	bool *seen;                 /* scratch, by node */
	const struct node **stack;
};
enum status order_begin(struct order *o, const struct graph *g);
/* The update that must run behind node n because n reads input k; NULL: none. */
const struct node *order_update(const struct order *o, const struct node *n, int k);
/* In any order, node n runs behind `first`. */
bool order_needs_behind(struct order *o, const struct node *n, const struct node *first);
/* Nothing reads what was overwritten before it: a part of graph_verify. */
enum status order_verify(const struct order *o);

/* Which axis of a tensor is so many times as long as that of another; AXIS_NONE, AXIS_MIXED
 * (graph/slices.h). */
int apart_axis(const struct tensor *whole, const struct tensor *part, int64_t slices);
/* Node i keeps samples apart by its record's rule. */
struct graph_apart;
bool apart_node(const struct graph_apart *a, int i);

/* By tensor: an output, the loss, or read by a node that lives; NULL when out of memory. (prune.c)
 */
bool *graph_needed(const struct graph *g);
bool graph_node_lives(const struct node *n, const bool *needed);
/* By tensor: these outputs are made of it; NULL when out of memory. And whether the node makes any
 * of them. (mixed.c) */
bool *graph_behind(const struct graph *g, int noutput, struct tensor *const *output);
bool graph_node_makes(const struct node *n, const bool *needed);

/* What OP_POINTWISE records get without writing it. */
enum status pointwise_infer(struct graph *g, struct node *n);
void pointwise_fold(const struct node *n, void *out);

#endif
