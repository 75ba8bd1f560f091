/* Names within what an option says: "mse:output=a\,b,reduction=sum". A backslash takes the
 * character behind it as it stands: so names may have the marks in them that part an option, and
 * backslashes. In patterns the same is fnmatch's rule. */
#ifndef STINT_BASE_MARKED_H
#define STINT_BASE_MARKED_H

#include "base/base.h"

/* The first of `marks` in `s`, and the last `mark`, before which no backslash stands; NULL: none.
 */
char *marked_first(const char *s, const char *marks);
char *marked_last(const char *s, char mark);
/* The first n bytes of `s` without the backslashes; NULL: no memory. */
char *marked_name(struct arena *a, const char *s, size_t n);
/* Such a name with the backslashes that it needs as an option's last value; NULL: no memory. */
char *marked_write(struct arena *a, const char *name);
/* The mark where the option at `s` ends, "a=1" in "a=1,b=2": at ',', or at ':' (which tensors'
 * names may have in them, too) where another one follows. NULL: it is the last. */
char *marked_option_end(const char *s);
/* Of "WORD:a=1,b=2" the option `key`, *n bytes; NULL: it is not given. */
const char *marked_option(const char *text, const char *key, size_t *n);
/* Whether these n bytes, without the backslashes, are `name`. */
bool marked_is(const char *s, size_t n, const char *name);

#endif
