#include "train/option_text.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/once.h"

enum status spec_parse(
	struct arena *a, const char *what, const char *text, struct spec *out, struct diag *d)
{
	*out = (struct spec){.what = what, .text = text};
	char *s = arena_strdup(a, text);
	if (!s)
		return diag_nomem(d);
	out->name = s;
	char *colon = strchr(s, ':');
	if (!colon)
		return ST_OK;
	*colon = '\0';
	for (char *at = colon + 1; at;) {
		char *key = at, *comma = strchr(at, ',');
		at = comma ? comma + 1 : NULL;
		if (comma)
			*comma = '\0';
		char *eq = strchr(key, '=');
		if (!eq || eq == key || !eq[1])
			return diag_fail(d, ST_USAGE, NULL, NULL, "%s %s: '%s' is no NAME=VALUE",
				what, text, key);
		if (out->n == SPEC_OPTIONS)
			return diag_fail(
				d, ST_USAGE, NULL, NULL, "%s %s: too many options", what, text);
		*eq = '\0';
		for (int i = 0; i < out->n; i++)
			if (!strcmp(out->option[i].key, key))
				return once_fail(arena_printf(a, "%s %s: ", what, text), key,
					out->option[i].value, eq + 1, d);
		out->option[out->n].key = key;
		out->option[out->n++].value = eq + 1;
	}
	return ST_OK;
}

const char *spec_word(struct spec *s, const char *key)
{
	const char *found = NULL;
	for (int i = 0; i < s->n; i++)
		if (!strcmp(s->option[i].key, key)) {
			s->option[i].used = true;
			found = s->option[i].value;
		}
	return found;
}

enum status spec_number(
	struct spec *s, const char *key, double low, double high, double *out, struct diag *d)
{
	const char *text = spec_word(s, key);
	char *end;
	if (!text)
		return ST_OK;
	const double v = strtod(text, &end);
	if (*end || !isfinite(v) || v < low || v > high)
		return diag_fail(d, ST_USAGE, NULL, NULL, "%s %s: %s wants a number from %g to %g",
			s->what, s->text, key, low, high);
	*out = v;
	return ST_OK;
}

enum status spec_whole(
	struct spec *s, const char *key, int64_t low, int64_t high, int64_t *out, struct diag *d)
{
	const char *text = spec_word(s, key);
	char *end;
	if (!text)
		return ST_OK;
	errno = 0;
	const long long v = strtoll(text, &end, 10);
	if (errno || *end || v < low || v > high)
		return diag_fail(d, ST_USAGE, NULL, NULL,
			"%s %s: %s wants a whole number from %lld to %lld", s->what, s->text, key,
			(long long)low, (long long)high);
	*out = v;
	return ST_OK;
}

enum status spec_choice(
	struct spec *s, const char *key, const char *words, int *out, struct diag *d)
{
	const char *text = spec_word(s, key);
	const size_t n = text ? strlen(text) : 0;
	int at = 0;
	if (!text)
		return ST_OK;
	for (const char *w = words; *w; at++) {
		const size_t len = strcspn(w, " ");
		if (len == n && !memcmp(w, text, n)) {
			*out = at;
			return ST_OK;
		}
		w += len + (w[len] == ' ');
	}
	return diag_fail(
		d, ST_USAGE, NULL, NULL, "%s %s: %s is one of: %s", s->what, s->text, key, words);
}

enum status spec_end(const struct spec *s, struct diag *d)
{
	for (int i = 0; i < s->n; i++)
		if (!s->option[i].used)
			return diag_fail(d, ST_USAGE, NULL, NULL, "%s %s: no option '%s'", s->what,
				s->text, s->option[i].key);
	return ST_OK;
}
