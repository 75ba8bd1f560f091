/* What classes are called. */
#ifndef STINT_CLI_CLASS_NAMES_H
#define STINT_CLI_CLASS_NAMES_H

#include "base/base.h"

struct class_names {
	int64_t n; /* 0: they have no names */
	const char **name;
};

/* Of a text as dataset_classes gives it (NULL: none), in the arena. */
enum status class_names_split(
	struct arena *a, const char *classes, struct class_names *out, struct diag *d);

#endif
