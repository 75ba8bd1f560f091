/* A batch that the exporter fixed. */
#ifndef STINT_GRAPH_FREE_BATCH_H
#define STINT_GRAPH_FREE_BATCH_H

#include "graph/slices.h"

/* Requires a graph as imported, with the opset of its nodes; the first axis of an input counts
 * samples where it is `fixed` long. Produces in *out what the file would have come to for `rows`
 * samples, had its batch been free: the same function of each. Where that cannot be proven, *out is
 * NULL and *why says what depends on the size. Reports what is wrong with `rows` alone. */
enum status graph_free_batch(
	struct graph *g, int64_t fixed, int64_t rows, struct graph **out, struct graph_mixed *why);

#endif
