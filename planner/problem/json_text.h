/* Writing JSON by hand, byte for byte the same everywhere. */
#ifndef STINT_PLANNER_JSON_TEXT_H
#define STINT_PLANNER_JSON_TEXT_H

#include "base/base.h"

/* The shortest decimal that reads back as exactly `v`; "null" for what JSON cannot hold. */
void json_text_double(struct text *t, double v);
/* A quoted string. Bytes that are not UTF-8 are written as the code points U+0080 to U+00FF. */
void json_text_string(struct text *t, const char *s);

#endif
