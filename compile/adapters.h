/* --lora and --adapter: adapters beside an imported model's weights. */
#ifndef STINT_COMPILE_ADAPTERS_H
#define STINT_COMPILE_ADAPTERS_H

#include "compile/pipeline.h"

/* What names of adapters' parameters begin with, as PEFT's do. */
#define ADAPTER_PREFIX "base_model.model."

/* An adapter as PEFT saves it: adapter_config.json and adapter_model.safetensors; where stint wrote
 * them, stint_adapter.json beside. */
struct adapter_folder {
	const char *path, *file; /* of the folder, of its tensors */
	int nspec;
	struct adapter_spec *spec;
	const char **train; /* names of other parameters that it holds, ended by NULL */
	const char *base;   /* the hash of the weights that it was trained beside; NULL: unknown */
	struct safetensors *tensors; /* to be closed; NULL: there is no folder */
};
enum status adapter_folder_read(
	struct arena *a, const char *path, struct adapter_folder *out, struct diag *d);

/* Before an import: the folder of p->o->adapter, if it says one. */
enum status adapters_begin(const struct pipeline *p, struct diag *d, struct adapter_folder *from);
/* Of an imported graph the one with what p->o->lora or the folder say, if they say anything.
 * Sets p->adapter and p->base_hash. */
enum status adapters_add(
	struct pipeline *p, struct diag *d, const struct adapter_folder *from, struct graph **g);

#endif
