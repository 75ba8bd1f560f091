#include "cli/pace.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static double seconds_of(char unit)
{
	return unit == 's' ? 1 : unit == 'm' ? 60 : unit == 'h' ? 3600 : unit == 'd' ? 86400 : NAN;
}

enum status pace_parse(const char *option, const char *text, struct pace *out, struct diag *d)
{
	char *end;
	*out = (struct pace){.seconds = INFINITY};
	if (!text || !strcmp(text, "0"))
		return ST_OK;
	const double v = strtod(text, &end);
	const double unit = *end && !end[1] ? seconds_of(*end) : NAN;
	const bool steps = end > text && !*end && v >= 1 && v <= 0x1p53 && v == floor(v);
	const bool time = end > text && v > 0 && isfinite(v * unit);
	if (!steps && !time)
		return diag_fail(d, ST_USAGE, NULL, "500 are steps; 90s, 15m, 8h or 2d are time",
			"%s: '%s' is neither steps nor time", option, text);
	if (steps)
		out->steps = (int64_t)v;
	else
		out->seconds = v * unit;
	return ST_OK;
}
