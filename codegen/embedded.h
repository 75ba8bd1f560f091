/* The runtime's files as text, so that `stint compile` can put copies beside step.c. */
#ifndef STINT_CODEGEN_EMBEDDED_H
#define STINT_CODEGEN_EMBEDDED_H

#include <stddef.h>

struct embedded_file {
	const char *name; /* "stint_rt.c", without a folder */
	const char *text; /* NUL-terminated */
	size_t len;       /* without the NUL */
};

/* Ended by a NULL name. */
const struct embedded_file *embedded_files(void);

#endif
