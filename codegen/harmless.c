/* Text of the model's made harmless: for comments and for string literals. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "codegen/parts.h"

/* --- UTF-8 --- */

static uint32_t code_point(const unsigned char *p, int len)
{
	static const unsigned char mask[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
	uint32_t c = p[0] & mask[len];
	for (int i = 1; i < len; i++)
		c = c << 6 | (p[i] & 0x3fu);
	return c;
}

/* Bytes of the well-formed sequence at p, not the shortest-form-breaking ones; 0: none. */
static int sequence_length(const unsigned char *p)
{
	static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
	int len = p[0] < 0x80       ? 1
		  : p[0] >> 5 == 6  ? 2
		  : p[0] >> 4 == 14 ? 3
		  : p[0] >> 3 == 30 ? 4
				    : 0;
	for (int i = 1; i < len; i++)
		if (p[i] >> 6 != 2) /* a NUL ends the loop too */
			return 0;
	if (len < 2)
		return len;
	uint32_t c = code_point(p, len);
	bool surrogate = c >= 0xd800 && c <= 0xdfff;
	return c < least[len] || c > 0x10ffff || surrogate ? 0 : len;
}

/* Control characters, and those that reorder or hide what stands beside them (Unicode's
 * Bidi_Control and line separators): a comment must read as it is. */
static bool deceives(uint32_t c)
{
	return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0xad || c == 0x61c || c == 0xfeff ||
	       (c >= 0x200b && c <= 0x200f) || (c >= 0x2028 && c <= 0x202e) ||
	       (c >= 0x2060 && c <= 0x206f) || c >= 0xe0000;
}

void text_comment(struct text *t, const char *s)
{
	enum { LONGEST = 100 };
	const unsigned char *p = (const unsigned char *)(s ? s : "");
	for (int shown = 0; *p; shown++) {
		if (shown == LONGEST) {
			text_puts(t, "...");
			return;
		}
		int len = sequence_length(p);
		unsigned char next = p[1];
		if (len == 0 || deceives(code_point(p, len))) {
			for (int i = 0; i < (len ? len : 1); i++)
				text_add(t, "\\x%02X", p[i]);
		} else if (*p == '\\') {
			text_puts(t, "\\\\");
		} else if ((*p == '*' && next == '/') || (*p == '/' && (next == '*' || !next)) ||
			   (*p == '?' && next == '?')) {
			/* A '*' may also come before: no slash is left to end with. */
			text_add(t, "%c\\", *p);
		} else {
			text_write(t, (const char *)p, (size_t)len);
		}
		p += len ? len : 1;
	}
}

void text_literal(struct text *t, const char *s)
{
	if (!s) {
		text_puts(t, "NULL");
		return;
	}
	text_puts(t, "\"");
	for (const unsigned char *p = (const unsigned char *)s; *p; p++) {
		/* Three octal digits never swallow the character after them, as \x would. */
		if (*p == '"' || *p == '\\' || *p == '?')
			text_add(t, "\\%c", *p);
		else if (*p < 0x20 || *p >= 0x7f)
			text_add(t, "\\%03o", *p);
		else
			text_write(t, (const char *)p, 1);
	}
	text_puts(t, "\"");
}

void text_macro(struct text *t, const char *model, const char *suffix)
{
	text_puts(t, "STINT_");
	for (; *model; model++)
		text_add(t, "%c", toupper((unsigned char)*model));
	text_add(t, "_%s", suffix);
}
