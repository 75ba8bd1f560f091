/* Files that travel inside the binary (base/embed.cmake). */
#ifndef STINT_BASE_EMBEDDED_FILE_H
#define STINT_BASE_EMBEDDED_FILE_H

#include <stddef.h>

struct embedded_file {
	const char *name; /* "stint_rt.c", without a folder */
	const char *text; /* NUL-terminated */
	size_t len;       /* without the NUL */
};

#endif
