#include "api/objects_text.h"

#include <stdio.h>
#include <string.h>

#include "runtime/stint_cache.h"

/* Behind the next `mark`; NULL: it is not there. */
static const char *behind(const char *at, const char *mark)
{
	at = at ? strstr(at, mark) : NULL;
	return at ? at + strlen(mark) : NULL;
}

/* The kernel whose text begins at `at`. */
static bool unit_at(const char *at, struct unit *u)
{
	u->from = at;
	at += strcspn(at, " ");                   /* KERNEL */
	at += *at ? 1 + strcspn(at + 1, " ") : 0; /* its type */
	u->name = at + (*at != '\0');
	u->name_len = strcspn(u->name, "(\n");
	u->base = strcspn(u->name, "_") + 1;
	u->open = strstr(u->name, "\n{\n");
	u->end = behind(u->open, "\n}\n");
	return u->end && u->name[u->name_len] == '(' && u->base < u->name_len;
}

bool objects_parts(struct arena *a, const char *step, struct step_text *out)
{
	static const char begin[] = "\nKERNEL ", comment[] = "\n\n/* ";
	struct step_text s = {.all = step};
	s.prelude = behind(step, "\n#include \"stint_step.h\"\n");
	s.prelude_end = s.prelude ? strstr(s.prelude, "\n/* --- The arena --- */\n") : NULL;
	s.helpers = behind(s.prelude_end, "\n/* --- Kernels --- */\n");
	const char *first = s.helpers ? strstr(s.helpers, begin) : NULL;
	if (!first)
		return false;
	for (const char *p = first; (p = strstr(p, begin)) != NULL; p++)
		s.n++;
	s.unit = ARENA_ARRAY(a, struct unit, s.n);
	if (!s.unit)
		return false;
	s.last = first;
	for (int i = 0; i < s.n; i++) {
		const char *next = strstr(i ? s.last - 1 : first, begin);
		if (!next || !unit_at(next + 1, &s.unit[i]))
			return false;
		s.last = s.unit[i].end;
	}
	s.first = first + 1;
	/* without the first kernel's comment */
	s.helpers_end = s.helpers;
	for (const char *p = s.helpers - 1; (p = strstr(p, comment)) != NULL && p < first; p++)
		s.helpers_end = p + 1;
	*out = s;
	return true;
}

/* A unit's text under the name `name`. */
static void print_unit(const struct unit *u, const char *name, const char *end, struct text *t)
{
	text_write(t, u->from, (size_t)(u->name - u->from));
	text_puts(t, name);
	text_write(t, u->name + u->name_len, (size_t)(end - u->name) - u->name_len);
}

void objects_name(struct step_text *s, const unsigned char with[STINT_SHA])
{
	char hex[2 * STINT_SHA + 1];
	for (int i = 0; i < s->n; i++) {
		struct unit *u = &s->unit[i];
		struct stint_sha sum;
		const char *rest = u->name + u->name_len;
		stint_sha_start(&sum);
		stint_cache_field(&sum, with, STINT_SHA);
		stint_cache_field(&sum, u->from, (size_t)(u->name - u->from));
		stint_cache_field(&sum, u->name + u->base, u->name_len - u->base);
		stint_cache_field(&sum, rest, (size_t)(u->end - rest));
		stint_sha_end(&sum, u->key);
		stint_sha_text(u->key, hex);
		snprintf(u->symbol, sizeof u->symbol, "stint_%.*s_%.32s",
			(int)(u->name_len - u->base < 40 ? u->name_len - u->base : 40),
			u->name + u->base, hex);
	}
}

/* One of the lines that include a kernel's source for its types. */
static bool includes_source(const char *line)
{
	static const char *const with[] = {
		"#include \"kernels/", "#define NAMED(", "#undef NAMED\n"};
	for (size_t i = 0; i < sizeof with / sizeof *with; i++)
		if (!strncmp(line, with[i], strlen(with[i])))
			return true;
	line += !strncmp(line, "#define ", 8) ? 8 : !strncmp(line, "#undef ", 7) ? 7 : 0;
	return strchr("XYZWV", *line) && strchr(" \n", line[1]);
}

void objects_print_common(const struct step_text *s, struct text *t)
{
	text_puts(t, "#include \"stint_rt.h\"\n");
	for (const char *p = s->prelude, *next; p < s->prelude_end; p = next) {
		next = p + strcspn(p, "\n") + 1;
		if (!includes_source(p))
			text_write(t, p, (size_t)(next - p));
	}
	text_write(t, s->helpers, (size_t)(s->helpers_end - s->helpers));
}

static void print_top(const struct step_text *s, struct text *t)
{
	text_puts(t, "#include \"stint_rt.h\"\n");
	text_write(t, s->prelude, (size_t)(s->prelude_end - s->prelude));
	text_write(t, s->helpers, (size_t)(s->helpers_end - s->helpers));
}

void objects_print_lot(const struct step_text *s, int lot, int nlot, struct text *t)
{
	print_top(s, t);
	/* two lots may have the same one: the linker takes any */
	text_puts(t, "\n#undef KERNEL\n"
		     "#define KERNEL __attribute__((weak, noinline, visibility(\"hidden\")))\n");
	for (int i = 0, k = 0; i < s->n; i++)
		if (!s->unit[i].kept && k++ % nlot == lot) {
			text_puts(t, "\n");
			print_unit(&s->unit[i], s->unit[i].symbol, s->unit[i].end, t);
		}
}

void objects_print_calls(const struct step_text *s, struct text *t)
{
	text_write(t, s->all, (size_t)(s->helpers_end - s->all));
	text_puts(t, "\n#undef KERNEL\n#define KERNEL __attribute__((visibility(\"hidden\")))\n");
	for (int i = 0; i < s->n; i++) {
		const struct unit *u = &s->unit[i];
		text_add(t, "#define %.*s %s\n", (int)u->name_len, u->name, u->symbol);
		text_write(t, u->from, (size_t)(u->open - u->from));
		text_puts(t, ";\n");
	}
	text_puts(t, s->last);
}
