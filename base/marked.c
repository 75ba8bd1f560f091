#include "base/marked.h"

#include <string.h>

char *marked_first(const char *s, const char *marks)
{
	for (; *s; s++)
		if (strchr(marks, *s))
			return (char *)s;
		else if (*s == '\\' && s[1])
			s++;
	return NULL;
}

char *marked_last(const char *s, char mark)
{
	char *last = NULL;
	for (char *p; (p = marked_first(s, (char[]){mark, '\0'})); s = p + 1)
		last = p;
	return last;
}

char *marked_name(struct arena *a, const char *s, size_t n)
{
	char *name = arena_strndup(a, s, n), *to = name;
	for (const char *p = name; p && *p; *to++ = *p++)
		p += *p == '\\' && p[1];
	if (name)
		*to = '\0';
	return name;
}

char *marked_write(struct arena *a, const char *name)
{
	char *s = arena_alloc(a, 2 * strlen(name) + 1, 1), *to = s;
	for (; s && *name; *to++ = *name++)
		if (strchr("\\,;=", *name))
			*to++ = '\\';
	return s;
}

char *marked_option_end(const char *s)
{
	char *p;
	for (; (p = marked_first(s, ",:")) && *p == ':'; s = p + 1) {
		const char *key = marked_first(p + 1, "=,:");
		if (key && *key == '=')
			break;
	}
	return p;
}

const char *marked_option(const char *text, const char *key, size_t *n)
{
	const size_t length = strlen(key);
	for (const char *at = strchr(text, ':'); at; at = marked_option_end(at + 1)) {
		if (strncmp(at + 1, key, length) != 0 || at[1 + length] != '=')
			continue;
		const char *value = at + 2 + length, *end = marked_option_end(value);
		*n = end ? (size_t)(end - value) : strlen(value);
		return value;
	}
	return NULL;
}

bool marked_is(const char *s, size_t n, const char *name)
{
	for (const char *end = s + n; s < end; s++, name++) {
		s += *s == '\\' && s + 1 < end;
		if (*s != *name)
			return false;
	}
	return !*name;
}
