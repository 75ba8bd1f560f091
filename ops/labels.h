/* Shared by the losses: which rows count, labels, and how terms are put together. */
#ifndef STINT_OPS_LABELS_H
#define STINT_OPS_LABELS_H

#include "ops/data.h"

/* The option `reduction` of every loss; NONE is for models' own nodes. */
enum reduction { MEAN, SUM, NONE };
/* clang-format off */
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

/* The class axis of scores `x`; -1: there is none. */
int label_axis(const struct tensor *x, double asked);
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

/* `valid`: how many rows of axis 0 count, of `batch`; `control` NULL: all. */
void emit_valid(struct emit *e, int64_t batch, const char *control);
/* What a kernel calls its inputs; NULL: it does not have that. No `label`: the target holds
 * probabilities. */
struct label_names {
	const char *label, *control, *weight;
};
/* `rows`: how many labels are valid; where the reduction is the mean, `n`: the divisor, the labels
 * that count or the sum of their weights. With `check`, refuse what is no class.
 *
 * CUDA: with `check` all but `rows` is left to emit_reduced, which is a stage of its own. Without,
 * `n` is made in a first stage, by one block; what the caller writes is the second. */
void emit_labels(struct emit *e, const struct node *n, const struct label_view *v,
	const struct label_names *names, bool check);
/* The condition that label r counts: "r < rows && ...". In CUDA a label that is no class does not:
 * other threads may have gone on when it is found. */
void emit_counts(
	struct emit *e, const struct node *n, const struct label_view *v, const char *label);

/* Terms of a loss, one a row: "double *loss" in scratch of 8 bytes each, and the output made of
 * them. `names` as for emit_labels, with `check`. */
void emit_terms(struct emit *e);
void emit_reduced(struct emit *e, const struct node *n, const struct label_view *v,
	const struct label_names *names);
/* Scratch bytes of a gradient whose text begins with emit_labels. */
int64_t label_workspace(const struct node *n, const struct target *t);
/* `scale`, what every row's gradient is multiplied by; with the reduction NONE it is x0[r]: the
 * text is returned. */
const char *emit_scale(struct emit *e, const struct node *n);

#endif
