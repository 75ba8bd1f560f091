/* Where the bytes of the model's initializers lie in DIR, which has them in weights.safetensors:
 * its model.onnx need not have them again. */
#ifndef STINT_API_WEIGHT_PLACES_H
#define STINT_API_WEIGHT_PLACES_H

#include "api/links.h"

struct safetensors_entry;

#define WEIGHTS_FILE "weights.safetensors"

struct weight_places {
	const struct weight_links *links;
	int n;
	struct weight_place *item; /* by name */
};

/* Of the n entries that were written as DIR/weights.safetensors those that are an initializer as
 * the model has it. */
enum status weight_places_find(struct pipeline *p, const char *dir,
	const struct safetensors_entry *entry, int n, struct weight_places *out);
/* An import_outside: what is linked stays in the model's file. `user`: struct weight_places. */
bool weight_places_of(void *user, const char *name, struct import_place *at);

#endif
