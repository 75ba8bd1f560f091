/* Text from a model or a file name, to a stream. */
#ifndef STINT_API_SAFE_PUT_H
#define STINT_API_SAFE_PUT_H

#include <stdio.h>

#include "base/safe.h"

void safe_put(FILE *f, const char *s);
/* As a JSON string; unsafe bytes become the code points U+0000 to U+00FF. */
void safe_json(FILE *f, const char *s);

#endif
