/* Text from a model or a file name may hold anything; a terminal shows it escaped. */
#ifndef STINT_CLI_SAFE_H
#define STINT_CLI_SAFE_H

#include <stddef.h>
#include <stdio.h>

enum { SAFE_MAX = 5 };

/* The first character of `s` (not empty) as it is shown, with a NUL, into out: itself when it is a
 * printable one in good UTF-8, "\n", or a byte as "\x1b". Returns the bytes of `s` that it took;
 * *columns: how wide it is shown. */
size_t safe_char(const char *s, char out[static SAFE_MAX], int *columns);
void safe_put(FILE *f, const char *s);
/* As a JSON string; unsafe bytes become the code points U+0000 to U+00FF. */
void safe_json(FILE *f, const char *s);

#endif
