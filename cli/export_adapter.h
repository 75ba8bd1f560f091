/* What `stint export` writes: trained values, and adapters. */
#ifndef STINT_CLI_EXPORT_ADAPTER_H
#define STINT_CLI_EXPORT_ADAPTER_H

#include "api/adapter_text.h"
#include "api/links.h"
#include "api/weights.h"
#include "runtime/safetensors.h"

struct values {
	struct arena *a;
	struct safetensors *file;
	struct linked_values linked;
	int average; /* enum weights_average */
	int replaced;
	bool failed; /* out of memory */
	struct adapters_read adapters;
	const struct export_note *note; /* what the model tells of them */
};

/* An entry's value, or its average, by name; NULL: there is none. As floats; NULL: no reals. */
const struct safetensors_entry *values_find(struct values *v, const char *name);
const float *values_floats(struct values *v, const struct safetensors_entry *e);

/* ST_INVALID where an adapter is not among the values. */
enum status adapters_check(struct values *v, struct diag *d);
/* What the adapter of a weight comes to. `user`: a struct values. */
extern const struct export_merge adapter_merge;
/* An export_check: ST_INVALID where an adapter went into no weight. */
enum status adapters_merged(void *user, struct diag *d);
/* adapter_model.safetensors, adapter_config.json and stint_adapter.json, which is made where it is
 * not there. */
enum status adapter_write(struct values *v, const char *dir, const char *folder, struct diag *d);

#endif
