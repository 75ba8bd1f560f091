/* Opening the files that tests compare. */
#ifndef TESTS_MODELS_OPEN_H
#define TESTS_MODELS_OPEN_H

#include <stdio.h>
#include <stdlib.h>

#include "runtime/safetensors.h"

/* Exit 2 with a message where the file is unusable. */
static inline struct safetensors *open_or_exit(const char *path)
{
	struct safetensors *f;
	char message[SAFETENSORS_MESSAGE];
	if (safetensors_open(&f, path, message) != 0) {
		fprintf(stderr, "%s: %s\n", path, message);
		exit(2);
	}
	return f;
}

#endif
