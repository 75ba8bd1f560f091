/* Text from a model or a file name may hold any bytes; people and programs get it escaped. */
#ifndef STINT_BASE_SAFE_H
#define STINT_BASE_SAFE_H

#include "base/base.h"

enum { SAFE_MAX = 5 };

/* The first character of `s` (not empty) as it is shown, with a NUL, into out: itself when it is a
 * printable one in good UTF-8, "\n", or a byte as "\x1b". Returns the bytes of `s` that it took;
 * *columns: how wide it is shown. */
size_t safe_char(const char *s, char out[static SAFE_MAX], int *columns);

/* `s` as it is shown, as a JSON string: unsafe bytes are written out as in "\\x1b", so that the
 * reader sees what a terminal would show. Holds no <, > or &: it may stand within a page's script.
 */
void text_json_shown(struct text *t, const char *s);
/* `s` as it is shown, as HTML or XML text; also between quotes. */
void text_html(struct text *t, const char *s);

#endif
