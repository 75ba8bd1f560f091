/* What a record is told when the imported graph becomes that of training or of evaluation. */
#ifndef STINT_GRAPH_LOWERING_H
#define STINT_GRAPH_LOWERING_H

#include "graph/graph.h"

enum lower_mode { LOWER_TRAIN, LOWER_EVAL };
/* --dropout NODE=P: what a dropout whose node matches the shell pattern does, whatever the file
 * says. */
struct dropout_ratio {
	const char *pattern;
	double ratio; /* in [0, 1) */
};
struct lower_options {
	enum lower_mode mode;
	bool dropout_off, bn_frozen;
	bool bn_sync;       /* statistics of micro-batches are those of all of them together */
	bool bn_population; /* running variances divide by n, not by n - 1 as PyTorch's */
	int nratio;
	const struct dropout_ratio *ratio;
	struct lower_told *told; /* graph_lower's own */
};
/* What graph_lower says at its end of all nodes together. */
enum lower_tale {
	TOLD_IDLE,   /* they would drop out, and were exported for inference */
	TOLD_SILENT, /* they do, and the file does not say so */
	LOWER_TALES
};
void lower_tell(
	const struct lower_options *o, enum lower_tale what, const char *node, double ratio);

#endif
