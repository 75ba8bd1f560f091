/* Shared by the losses: which rows count, labels, and how terms are put together. */
#ifndef STINT_OPS_LABELS_OP_H
#define STINT_OPS_LABELS_OP_H

#include "codegen/call.h"
#include "graph/op_loss.h"
#include "ops/data.h"

/* The option `reduction` of every loss; NONE is for models' own nodes. */
enum reduction { MEAN, SUM, NONE };
/* clang-format off */
#define WEIGHTS_LIST(which) {.name = which, .high = HUGE_VAL, .list = true}
#define REDUCTION {.name = "reduction", .high = SUM, .words = "mean sum none"}
/* clang-format on */

/* Class scores as [rows, classes, inner], row r of the labels at r * inner + i. */
struct label_view {
	int64_t rows, classes, inner;
	int64_t batch; /* size of axis 0, whose first rows may be the only valid ones */
};

/* PyTorch's class axis is 1, but the last for outputs of rank 3 (language models). */
enum { AXIS_AUTO = -1000 };

/* ignore_index of nodes that have none. */
#define IGNORE_NOTHING (-((int64_t)1 << 62))
/* Attribute of nodes that stand for a spelled-out form: labels that are no class count as ignored,
 * and are no error. */
#define LENIENT "lenient"

/* A loss as one node of `op` (graph/op.h, loss_build), with the attributes that are no lists. With
 * `count`, a micro-batch's part of it: the sum of its terms, or what `summed`, a word of the
 * option `reduction`, says instead, and, where the reduction is the first word, a mean, divided by
 * `count`: how many the whole batch has. */
struct loss_node {
	int nin;
	struct tensor *in[4], *count;
	const char *summed; /* NULL: "sum" */
};
enum status loss_node(struct graph *g, const struct op_def *op, const struct loss_node *node,
	const struct loss_inputs *from, struct tensor **loss);
/* The loss whose terms, [N, ...], other nodes have made: their mean, or sum, over the rows that
 * count, by the option `reduction`. */
enum status loss_of_terms(
	struct graph *g, const struct loss_inputs *in, struct tensor *terms, struct tensor **loss);
/* kl-div of scores against another output's. */
enum status kl_div_against(struct graph *g, const struct op_def *op, const struct loss_inputs *in,
	struct tensor **loss);
/* x as it is computed with in such nodes, in full where --precision stores less: what losses are
 * made of stays real (graph/narrow.c). */
struct tensor *loss_exact(struct graph *g, struct tensor *x);
/* The list that an option gives, as a constant of one axis; NULL: it was not given, or a failure
 * that g remembers. */
struct tensor *loss_list(struct graph *g, const struct loss_inputs *in, const char *option);
/* In micro-batches, how many rows of the whole batch count, times `each`: what a mean is divided
 * by. `rows`: of the batch. NULL: not in micro-batches, or a failure that g remembers. */
struct tensor *loss_count(
	struct graph *g, const struct loss_inputs *in, int64_t rows, int64_t each);
/* `loss_build` of losses of labels, which are counted, or probabilities, whose rows are. */
enum status label_build(struct graph *g, const struct op_def *op, const struct loss_inputs *in,
	struct tensor **loss);

/* The class axis of scores `x`; -1: there is none. */
int label_axis(const struct tensor *x, double asked);
/* Refuses an output for that. */
enum status label_no_axis(struct graph *g, const struct tensor *x);
/* loss_target of losses that take labels. */
enum status label_target(struct graph *g, const struct tensor *y, int nattr,
	const struct attr *attr, enum dtype *type, int *rank, int64_t *dim);
/* loss_target of losses that take a target of the output's shape. */
enum status same_target(struct graph *g, const struct tensor *y, int nattr, const struct attr *attr,
	enum dtype *type, int *rank, int64_t *dim);
/* Check scores (input 0), target (labels, or probabilities of the scores' shape), class weights
 * (NULL: none) and reduction; make output 0. `axis` as label_axis gives it. */
enum status label_infer(struct graph *g, struct node *n, int axis, const struct tensor *target,
	const struct tensor *weight);
/* Rows of scores, by a node's option `axis`. Requires label_infer. */
struct label_view label_view(const struct node *n, const struct tensor *x);
enum reduction label_reduction(const struct node *n);
/* How many labels there are. */
int64_t label_count(const struct label_view *v);

/* Where a node has the labels, control and the classes' weights: positions of inputs; -1: none. */
struct label_inputs {
	int label, control, weight;
};
static inline int label_input(const struct node *n, int k)
{
	return node_input(n, k) ? k : -1;
}
/* Input k as a call's argument, or NULL. */
struct call_arg label_arg(int k);

enum { LABEL_WHOLE = 11 }; /* the field `whole` */

/* A loss of labels, or its gradient, for its calls: struct targets of kernels/labels.h, whose
 * tensors are arguments of their own. */
struct label_call {
	struct label_view v;
	struct label_inputs in;
	int64_t count_at; /* on a GPU, in scratch: a mean's divisor */
	struct call_struct targets;
	struct call_field field[13];
};
void label_call(struct label_call *c, const struct node *n, const struct tensor *scores,
	struct label_inputs in);
/* The struct's numbers, of a node that is no loss: c->v and c->in are set. */
void label_numbers(
	struct label_call *c, int64_t count, int64_t ignored, double smoothing, bool lenient);
/* For a GPU, whose own kernels have no arguments for them, its tensors too. */
void label_tensors(struct label_call *c);
/* The reduction, for kernels. */
struct call_arg label_how(const struct node *n);

/* A loss: `rows` makes the rows' losses, doubles in the node's scratch, before which labels that
 * are no class are refused; on a GPU, where that would be a launch more, when the losses are put
 * together. */
typedef enum status label_rows(struct emit *e, const struct node *n, const struct label_call *c);
enum status label_losses(
	struct emit *e, const struct node *n, const struct label_call *c, label_rows *rows);
enum status label_cuda_losses(
	struct emit *e, const struct node *n, struct label_call *c, label_rows *rows);

/* On a GPU, the divisor of a mean is counted by a launch before the gradient, into scratch; and
 * then the argument `counted`. */
int64_t label_cuda_workspace(const struct node *n, const struct target *t);
enum status label_cuda_count(struct emit *e, const struct node *n, const struct label_call *c);
struct call_arg label_counted(const struct node *n, const struct label_call *c);

#endif
