/* Shared by the files of graph/ only. */
#ifndef STINT_GRAPH_PRIVATE_H
#define STINT_GRAPH_PRIVATE_H

#include "graph/op.h"

/* A node with copied inputs and empty outputs, not yet in the graph. NULL when out of memory. */
struct node *graph_node_blank(struct graph *g, const struct op_def *op, const char *name, int nin,
	struct tensor *const *in, int nout);
/* Put a finished node at the end; its outputs' maker is set. */
enum status graph_append(struct graph *g, struct node *n);

/* What OP_POINTWISE records get without writing it. */
enum status pointwise_infer(struct graph *g, struct node *n);
void pointwise_fold(const struct node *n, void *out);

#endif
