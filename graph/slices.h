/* The batch split inside the graph: a region of nodes that treat samples apart runs slice by slice
 * of the batch. What is between its nodes is then as large as a slice, and the planner may make it
 * again, slice by slice, in the backward pass. Slices' gradients of a weight are added in a binary
 * tree over their numbers, as micro-batches' are (graph/shard.c). */
#ifndef STINT_GRAPH_SLICES_H
#define STINT_GRAPH_SLICES_H

#include "graph/lowering.h"
#include "graph/op.h"

enum { SLICES_MAX = 64 };

/* Nodes [from, to) of an imported graph, run in so many slices. */
struct graph_region {
	int from, to;
	int64_t slices;
};

/* What counts samples, read off two imports of a model, `whole` and `part`, whose batch is a
 * `slices`th. */
struct graph_apart {
	const struct graph *whole, *part;
	int64_t slices;
	const struct lower_options *lower;
	/* By node: it treats samples apart, or has to do with none of them. */
	bool *node;
	/* By tensor: the axis that counts samples; AXIS_NONE: it is the same for both; AXIS_MIXED:
	 * neither. */
	int *axis;
	const int *last; /* by tensor: one past its last reader; nnode + 1 of an output */
	bool alike;      /* the two have the same nodes */
};
enum { AXIS_NONE = -1, AXIS_MIXED = -2 };

/* Where the two are not alike, no node is apart. `lower`: how both will be lowered, for as long as
 * *out is in use. */
enum status graph_apart(const struct graph *whole, const struct graph *part, int64_t slices,
	const struct lower_options *lower, struct graph_apart *out);

/* What keeps these outputs from being the same where a batch is filled up with samples that do not
 * count. Requires that the two are alike. */
struct graph_mixed {
	/* An input of the model, or one of the outputs, the first axis of which counts no samples;
	 * or the first node that takes samples together; both NULL: there is nothing. */
	const struct tensor *tensor;
	const struct node *node;
};
enum status graph_mixed(const struct graph_apart *a, int noutput, struct tensor *const *output,
	struct graph_mixed *out);

/* Regions that may be worth it, of the nodes in a row that are apart and between them make most
 * bytes: all begin with the first of them, and end where half of what was live crosses the border,
 * or with the last. *n may be 0. */
enum { REGIONS_MAX = 5 };
enum status graph_regions(
	const struct graph_apart *a, struct graph_region out[REGIONS_MAX], int *n);
/* The one that ends with the last node of this name; false: there is none. */
bool graph_region_until(const struct graph_apart *a, const char *node, struct graph_region *out);
/* What the region's last node is called. */
const char *graph_region_end(const struct graph_apart *a, const struct graph_region *r);

/* A new imported graph in *out: a->whole with the region in slices. */
enum status graph_slice(
	const struct graph_apart *a, const struct graph_region *r, struct graph **out);

/* Requires all nodes, in their order: slices are taken from tensors one by one, right before they
 * are read, and joined one by one, each as soon as it is there. */
enum status graph_slice_by_slice(const struct graph *in, struct graph **out);

#endif
