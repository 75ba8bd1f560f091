/* stint-adapter-1: which adapters a step trains, and of which base; DIR's adapter.json, and a
 * folder's stint_adapter.json. */
#ifndef STINT_API_ADAPTER_TEXT_H
#define STINT_API_ADAPTER_TEXT_H

#include "compile/pipeline.h"

void adapters_print(const struct pipeline *p, struct text *out);

/* One of them, read again. */
struct adapter_read {
	const char *module, *weight;
	enum adapter_kind kind;
	bool turned; /* the weight's first axis is its outputs */
	bool merged; /* it went into its weight */
	struct adapter_spec spec;
};
struct adapters_read {
	int n;
	struct adapter_read *adapter;
	int ntrained; /* names of other parameters that are trained */
	const char **trained;
};
/* ST_IO where there is no such file. */
enum status adapters_read(
	struct arena *a, const char *path, struct adapters_read *out, struct diag *d);

#endif
