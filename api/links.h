/* --link-weights: frozen weights that are not copied into DIR. The step's weights.safetensors has a
 * note for each (runtime/stint_links.h): which file, where in it, and the SHA-256 of its bytes. */
#ifndef STINT_API_LINKS_H
#define STINT_API_LINKS_H

#include "compile/pipeline.h"

struct safetensors_note;

/* A constant of the step whose bytes lie in a file of the model's. */
struct weight_link {
	const char *step, *model; /* its names there */
	const char *path;
	const void *data;
	size_t offset, bytes;
};

struct weight_links {
	int n;
	struct weight_link *item;
};

/* None without --link-weights; a warning where there are none with it. */
enum status links_find(struct pipeline *p, struct weight_links *out);
/* The link of tensor `step`; NULL: it is copied. */
const struct weight_link *links_of(const struct weight_links *links, const char *step);
/* Whether the model's tensor `name` is linked. */
bool links_name(const struct weight_links *links, const char *name);
/* One note for each. */
enum status links_notes(struct arena *a, const struct weight_links *links,
	struct safetensors_note **out, struct diag *d);

/* Whether the weights at `path` are linked to any. */
bool links_any(const char *path);
/* The values that the weights at `path` are linked to, by the model's names. With `values` false
 * only whether their files are there. Every fault is told. */
struct linked_values {
	int n;
	struct linked_value {
		const char *name;
		const void *data;
		size_t bytes;
	} * item;
};
enum status links_read(
	struct arena *a, const char *path, bool values, struct linked_values *out, struct diag *d);

#endif
