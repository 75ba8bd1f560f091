/* What the cuDNN that is installed says of a step's convolutions; no GPU is needed. */
#ifndef STINT_COMPILE_GPU_ASK_H
#define STINT_COMPILE_GPU_ASK_H

#include "base/base.h"
#include "compile/compile_options.h"
#include "graph/graph.h"
#include "runtime/stint_gpu.h"

/* Answers, one for each convolution that differs. */
struct gpu_asked {
	struct arena *arena; /* the caller's, as the numbers below */
	int arch;
	bool tf32, strict;
	bool sound;  /* an ordinary convolution has an engine, so that what has none is refused */
	bool none;   /* no cuDNN that plans without a device: all is taken to be there */
	int version; /* of cuDNN; 0: not asked yet */
	struct gpu_answer *answer;
};

struct gpu_answer {
	struct gpu_answer *next;
	struct stint_gpu_convolution c;
	bool told;
	bool refused;      /* no engine is deterministic and fits the cap */
	int64_t engine;    /* cuDNN's number of the one taken, */
	int64_t workspace; /* and its bytes */
};

/* NULL: nobody could be asked, or there is no memory. */
const struct gpu_answer *gpu_ask(struct gpu_asked *a, const struct stint_gpu_convolution *c);
/* Warns of each of the graph's convolutions that are refused, once of those that are alike. */
void gpu_asked_tell(const struct gpu_asked *a, const struct graph *g);

#endif
