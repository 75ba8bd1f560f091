#include "base/safe.h"

#include <stdio.h>
#include <string.h>

/* Length of the sequence at s and its code point; 0 when it is broken, overlong or a surrogate. */
static size_t decode(const unsigned char *s, uint32_t *code)
{
	static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
	size_t n = s[0] < 0x80       ? 1
		   : s[0] >> 5 == 6  ? 2
		   : s[0] >> 4 == 14 ? 3
		   : s[0] >> 3 == 30 ? 4
				     : 0;
	*code = n == 1 ? s[0] : n ? s[0] & (0x7fu >> n) : 0;
	for (size_t i = 1; i < n; i++) {
		if (s[i] >> 6 != 2)
			return 0;
		*code = *code << 6 | (s[i] & 0x3f);
	}
	if (!n || *code < least[n] || *code > 0x10ffff || (*code >= 0xd800 && *code < 0xe000))
		return 0;
	return n;
}

/* Control characters, and those that turn the direction of writing or break lines. */
static int is_plain(uint32_t c)
{
	return c >= 0x20 && !(c >= 0x7f && c < 0xa0) && !(c >= 0x2028 && c <= 0x202e) &&
	       !(c >= 0x2066 && c <= 0x2069) && c != 0x200e && c != 0x200f;
}

size_t safe_char(const char *s, char out[static SAFE_MAX], int *columns)
{
	uint32_t code;
	size_t n = decode((const unsigned char *)s, &code);
	if (n && is_plain(code)) {
		memcpy(out, s, n);
		out[n] = '\0';
		*columns = 1;
		return n;
	}
	*columns = *s == '\n' ? snprintf(out, SAFE_MAX, "\\n")
			      : snprintf(out, SAFE_MAX, "\\x%02x", (unsigned char)*s);
	return 1;
}

void text_json_shown(struct text *t, const char *s)
{
	char shown[SAFE_MAX];
	int columns;
	text_puts(t, "\"");
	while (*s) {
		size_t n = safe_char(s, shown, &columns);
		if (columns > 1)
			text_add(t, "\\%s", shown);
		else if (strchr("\"\\<>&", *s))
			text_add(t, "\\u%04x", (unsigned char)*s);
		else
			text_puts(t, shown);
		s += n;
	}
	text_puts(t, "\"");
}

void text_html(struct text *t, const char *s)
{
	char shown[SAFE_MAX];
	int columns;
	while (*s) {
		size_t n = safe_char(s, shown, &columns);
		if (strchr("\"'<>&", *s))
			text_add(t, "&#%d;", *s);
		else
			text_puts(t, shown);
		s += n;
	}
}
