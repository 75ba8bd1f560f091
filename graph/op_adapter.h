/* The facet of a record beside whose weight an adapter can stand (graph/adapt.c).
 *
 * A small product beside a frozen weight, which learns in its place (Hu et al., "LoRA", 2021,
 * arXiv 2106.09685). */
#ifndef STINT_GRAPH_OP_ADAPTER_H
#define STINT_GRAPH_OP_ADAPTER_H

#include "graph/op.h"

struct adapting; /* the adapter of one weight, for one node that reads it */
/* What PEFT has for the layer: its parameters' names and shapes. */
enum adapter_kind { ADAPTER_NONE, ADAPTER_LINEAR, ADAPTER_CONV, ADAPTER_EMBEDDING };
/* GIVEN: whoever asks for it sets its values, unless they are there. */
enum adapter_start { ADAPTER_ZEROS, ADAPTER_UNIFORM, ADAPTER_NORMAL, ADAPTER_GIVEN };

struct graph *adapting_graph(const struct adapting *x);
/* Its rank, r. */
int64_t adapting_rank(const struct adapting *x);
/* The node reads the weight's matrix transposed, beside the transpositions before it. */
void adapting_turn(struct adapting *x);
/* A parameter of it, made once for all nodes that read the weight: `part` is what PEFT calls it in
 * the module. `fan_in`: terms of a sum that it makes, for UNIFORM. NULL: failed. */
struct tensor *adapting_parameter(struct adapting *x, const char *part, int rank,
	const int64_t *dim, enum adapter_start start, int64_t fan_in);
/* t with its dropout; and times its factor. */
struct tensor *adapting_dropped(struct adapting *x, struct tensor *t);
struct tensor *adapting_scaled(struct adapting *x, struct tensor *t);

/* DoRA: each output's row of weights has a trained length. Whether it is asked for; the adapter's
 * factor; the lengths, `dim`, which are `out` numbers, and in *squares, a constant of [out], the
 * sums of squares of the rows as the model has them. NULL: failed. */
bool adapting_lengths(const struct adapting *x);
double adapting_scale(const struct adapting *x);
struct tensor *adapting_rows(
	struct adapting *x, int rank, const int64_t *dim, struct tensor **squares);

/* How a record's products get an adapter. */
struct op_adapter {
	enum adapter_kind kind;
	int weight; /* the input that it stands beside */
	/* Build what it adds to output 0, from `in`. NULL: the operator becomes others, which have
	 * adapters, when the graph is lowered. */
	enum status (*build)(struct adapting *x, const struct node *n, struct tensor *const *in,
		struct tensor **out);
};

/* Its kind; NONE: nothing can stand there. */
static inline enum adapter_kind op_adapter(const struct op_def *op)
{
	return op->adapter ? op->adapter->kind : ADAPTER_NONE;
}

#endif
