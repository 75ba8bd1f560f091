#include "planner/problem/json_text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

void json_text_double(struct text *t, double v)
{
	char buf[40];
	if (!isfinite(v)) {
		text_puts(t, "null");
		return;
	}
	for (int digits = 15; digits <= 17; digits++) {
		snprintf(buf, sizeof buf, "%.*g", digits, v);
		if (strtod(buf, NULL) == v)
			break;
	}
	text_puts(t, buf);
}

/* Length of the valid UTF-8 sequence at `s`, 0 where it is none (RFC 3629). */
static int utf8_length(const unsigned char *s)
{
	unsigned char c = s[0];
	if (c < 0x80)
		return 1;
	int n = c >= 0xc2 && c <= 0xdf   ? 2
		: c >= 0xe0 && c <= 0xef ? 3
		: c >= 0xf0 && c <= 0xf4 ? 4
					 : 0;
	if (n == 0)
		return 0;
	unsigned char lo = c == 0xe0 ? 0xa0 : c == 0xf0 ? 0x90 : 0x80;
	unsigned char hi = c == 0xed ? 0x9f : c == 0xf4 ? 0x8f : 0xbf;
	if (s[1] < lo || s[1] > hi)
		return 0;
	for (int i = 2; i < n; i++)
		if (s[i] < 0x80 || s[i] > 0xbf)
			return 0;
	return n;
}

void json_text_string(struct text *t, const char *s)
{
	const unsigned char *u = (const unsigned char *)s;
	text_puts(t, "\"");
	while (*u) {
		int n = utf8_length(u);
		if (n == 0) {
			text_add(t, "\\u%04x", *u);
			n = 1;
		} else if (*u == '"' || *u == '\\') {
			text_add(t, "\\%c", *u);
		} else if (*u < 0x20 || *u == 0x7f) {
			text_add(t, "\\u%04x", *u);
		} else {
			text_write(t, (const char *)u, (size_t)n);
		}
		u += n;
	}
	text_puts(t, "\"");
}
