#include "codegen/sources.h"

#include <string.h>

static const struct embedded_file *find(const char *name, size_t len)
{
	for (const struct embedded_file *f = kernel_files(); f->name; f++)
		if (strlen(f->name) == len && !strncmp(f->name, name, len))
			return f;
	return NULL;
}

/* The next line `#include "name"` from *at on: the file, *at behind the line, *line where it
 * begins. */
static const struct embedded_file *next_include(const char **at, const char **line)
{
	static const char word[] = "#include \"";
	for (const char *p = *at; *p; p += strcspn(p, "\n"), p += *p != '\0') {
		if (strncmp(p, word, sizeof word - 1) != 0)
			continue;
		const char *name = p + sizeof word - 1;
		const struct embedded_file *f = find(name, strcspn(name, "\""));
		if (!f)
			continue;
		*line = p;
		*at = p + strcspn(p, "\n");
		*at += **at != '\0';
		return f;
	}
	return NULL;
}

static bool same_types(const struct source_use *u, int ntype, const char *const *type)
{
	bool same = u->ntype == ntype;
	for (int i = 0; same && i < ntype; i++)
		same = !strcmp(u->type[i], type[i]);
	return same;
}

bool sources_add(struct sources *s, const char *file, int ntype, const char *const *type)
{
	struct source_use **end = &s->first;
	for (; *end; end = &(*end)->next)
		if (!strcmp((*end)->file, file) && same_types(*end, ntype, type))
			return true;
	struct source_use *u = ARENA_NEW(s->arena, struct source_use);
	if (!u || ntype > SOURCE_TYPES)
		return false;
	*u = (struct source_use){.file = file, .ntype = ntype};
	for (int i = 0; i < ntype; i++)
		u->type[i] = type[i];
	*end = u;
	return true;
}

bool sources_have(const struct sources *s, const char *file)
{
	for (const struct source_use *u = s->first; u; u = u->next)
		if (!strcmp(u->file, file))
			return true;
	return false;
}

void print_types_suffix(int ntype, const char *const *type, struct text *t)
{
	bool plain = true;
	for (int i = 0; i < ntype; i++)
		plain = plain && !strcmp(type[i], "real");
	for (int i = 0; i < ntype && !plain; i++)
		text_add(t, "_%.*s", (int)strcspn(type[i], " "), type[i]); /* "_unsigned" */
}

static void define_types(const struct source_use *u, struct text *t)
{
	static const char letter[] = "XYZWV";
	for (int i = 0; i < u->ntype; i++)
		text_add(t, "#define %c %s\n", letter[i], u->type[i]);
	if (u->ntype == 0)
		return;
	struct text suffix = {0};
	print_types_suffix(u->ntype, u->type, &suffix);
	text_add(t, "#define NAMED(f) f%s%s\n", suffix.len ? "##" : "", suffix.len ? suffix.s : "");
	text_free(&suffix);
}

static void forget_types(const struct source_use *u, struct text *t)
{
	static const char letter[] = "XYZWV";
	for (int i = 0; i < u->ntype; i++)
		text_add(t, "#undef %c\n", letter[i]);
	if (u->ntype > 0)
		text_puts(t, "#undef NAMED\n");
}

void print_sources(const struct sources *s, struct text *t)
{
	for (const struct source_use *u = s->first; u; u = u->next) {
		if (u->ntype > 0)
			text_puts(t, "\n");
		define_types(u, t);
		text_add(t, "#include \"kernels/%s\"\n", u->file);
		forget_types(u, t);
	}
}

static bool is_guarded(const struct embedded_file *f)
{
	return strstr(f->text, "\n#ifndef STINT_KERNELS_") != NULL;
}

/* `done` by number of the file. */
static void print_whole(const struct embedded_file *f, bool *done, struct text *t)
{
	const size_t number = (size_t)(f - kernel_files());
	if (number >= SOURCE_FILES || (done[number] && is_guarded(f)))
		return;
	done[number] = true;
	text_add(t, "\n/* --- kernels/%s --- */\n", f->name);
	const char *p = f->text, *line;
	for (const char *at = p;; p = at) {
		const struct embedded_file *inner = next_include(&at, &line);
		if (!inner)
			break;
		text_write(t, p, (size_t)(line - p));
		print_whole(inner, done, t);
	}
	text_puts(t, p);
}

void print_sources_whole(const struct sources *s, struct text *t)
{
	bool done[SOURCE_FILES] = {false};
	for (const struct source_use *u = s->first; u; u = u->next) {
		const struct embedded_file *f = find(u->file, strlen(u->file));
		define_types(u, t);
		if (f)
			print_whole(f, done, t);
		forget_types(u, t);
	}
}

static void collect(const struct embedded_file *f, struct source_files *out)
{
	for (int i = 0; i < out->n; i++)
		if (out->file[i] == f)
			return;
	if (out->n == SOURCE_FILES)
		return;
	out->file[out->n++] = f;
	const char *at = f->text, *line;
	for (const struct embedded_file *inner; (inner = next_include(&at, &line)) != NULL;)
		collect(inner, out);
}

void sources_files(const struct sources *s, struct source_files *out)
{
	out->n = 0;
	for (const struct source_use *u = s->first; u; u = u->next) {
		const struct embedded_file *f = find(u->file, strlen(u->file));
		if (f)
			collect(f, out);
	}
}
