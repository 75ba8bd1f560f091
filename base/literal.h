/* Numbers as C writes them. */
#ifndef STINT_BASE_LITERAL_H
#define STINT_BASE_LITERAL_H

#include <stdbool.h>

enum { LITERAL_TEXT = 40 };
/* A literal of the fewest digits that read back as v, or as the same float: "0.1", "2.0", "1e-08";
 * "INFINITY", "-INFINITY", "NAN". Returns buf. */
const char *literal_text(double v, bool is_float, char buf[static LITERAL_TEXT]);

#endif
