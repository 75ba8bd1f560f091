#include "base/literal.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *literal_text(double v, bool is_float, char buf[static LITERAL_TEXT])
{
	if (isnan(v))
		return strcpy(buf, "NAN");
	if (isinf(v))
		return strcpy(buf, v < 0 ? "-INFINITY" : "INFINITY");
	for (int digits = 1; digits <= 17; digits++) {
		snprintf(buf, LITERAL_TEXT, "%.*g", digits, v);
		if (is_float ? strtof(buf, NULL) == (float)v : strtod(buf, NULL) == v)
			break;
	}
	for (char *p = buf; *p; p++)
		if (*p == ',') /* a caller's locale must not reach the text */
			*p = '.';
	if (!strpbrk(buf, ".e"))
		snprintf(buf + strlen(buf), LITERAL_TEXT - strlen(buf), ".0");
	return buf;
}
