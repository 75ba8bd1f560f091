/* What the families of pools share. Private to ops/. */
#ifndef STINT_OPS_POOL_H
#define STINT_OPS_POOL_H

#include "ops/window.h"

/* The parameter of MaxPool, AveragePool, stint.SumPool and their gradients. */
struct pool {
	struct window w;
	int64_t batch, channels;
	bool pad_counts;   /* AveragePool: count_include_pad */
	bool sums;         /* not divided */
	bool column_major; /* MaxPool: the indices' order within a plane */
	bool lanes;        /* the window's last axis is a block of channels */
};

#endif
