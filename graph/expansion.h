/* What is more than a node: control flow, sequences, optional values.
 *
 * No such thing reaches the graph. While a model is read, a record's `expand` builds in its node's
 * place what the node comes to (docs/adr/0009-control-flow-at-import.md). */
#ifndef STINT_GRAPH_EXPANSION_H
#define STINT_GRAPH_EXPANSION_H

#include "graph/graph.h"

/* What a name stands for while a model is read. A list's tensors are known one by one: which one a
 * node picks is known too, or the model is refused. */
struct value {
	enum { VALUE_NONE, VALUE_TENSOR, VALUE_LIST } kind; /* NONE: absent, an empty optional */
	struct tensor *tensor;
	int n; /* VALUE_LIST */
	struct tensor *const *item;
};

/* A graph that an attribute holds: a branch, the body of a loop. */
struct body {
	int nin, nout;
	int64_t size; /* nodes that building it once may make, those of bodies in it counted once */
	/* Build it once more. `label` tells this time from others in the names of nodes: "3".
	 * Reports a nin or nout that is not the body's. */
	enum status (*build)(const struct body *b, const char *label, int nin,
		const struct value *in, int nout, struct value *out);
	/* Type and shape that the file declares for output k; false: it leaves something open. */
	bool (*declared)(const struct body *b, int k, enum dtype *t, int *rank, int64_t *dim);
};

struct expansion {
	struct graph *g;
	const struct node *node; /* for messages and attributes; in[i] NULL where no tensor */
	int nin, nout;
	const struct value *in;
	struct value *out; /* to be set, all nout */
	int64_t *left;     /* nodes that expansions may still make */
};

/* Call a record's hook. `out` holds nout values. Reports counts of inputs and outputs that the
 * record does not take. */
enum status graph_expand(struct graph *g, const struct op_def *op, const char *name, int nin,
	const struct value *in, int nout, struct value *out, int nattr, const struct attr *attr,
	int64_t *left);
/* Report where `times` times `size` nodes are more than may still be made. */
enum status expansion_reserve(const struct expansion *x, int64_t times, int64_t size);
/* Take off for work that makes no nodes (copies of lists). */
enum status expansion_spend(const struct expansion *x, int64_t nodes);
/* The body in an attribute; NULL, with a message, when there is none. */
const struct body *expansion_body(const struct expansion *x, const char *attribute);
/* Input i, a tensor known at compile time of one element (a condition, a trip count, a position).
 * `what` for the message, which says why it must be known. */
enum status expansion_known(
	const struct expansion *x, int i, const char *what, const struct tensor **out);

#endif
