#include "cli/option_file.h"

#include <ctype.h>
#include <string.h>

struct words {
	struct arena *a;
	int n, cap;
	const char **word;
};

static bool add(struct words *w, const char *s)
{
	if (w->n == w->cap) {
		const int wider = w->cap ? 2 * w->cap : 32;
		const char **grown = ARENA_ARRAY(w->a, const char *, wider + 1);
		if (!grown)
			return false;
		if (w->n)
			memcpy(grown, w->word, (size_t)w->n * sizeof *grown);
		w->word = grown;
		w->cap = wider;
	}
	w->word[w->n++] = s;
	return s != NULL;
}

/* A value in quotes, in place; false where they do not end, or not at the end of the line. */
static bool unquote(char *s)
{
	char *to = s;
	for (s++; *s && *s != '"'; s++) {
		s += *s == '\\' && (s[1] == '"' || s[1] == '\\');
		*to++ = *s;
	}
	const bool closed = *s == '"';
	const char *rest = closed ? s + 1 + strspn(s + 1, " \t\r") : s;
	*to = '\0';
	return closed && (!*rest || *rest == '#');
}

/* Cuts a comment and blanks off the end. */
static void trim(char *s)
{
	for (char *p = s; *p; p++)
		if (*p == '#' && p > s && isblank((unsigned char)p[-1]))
			*p-- = '\0';
	for (size_t n = strlen(s); n && isspace((unsigned char)s[n - 1]); n--)
		s[n - 1] = '\0';
}

static enum status read_line(struct words *w, char *line, const struct where *at, struct diag *d)
{
	line += strspn(line, " \t\r");
	if (!*line || *line == '#')
		return ST_OK;
	if (*line != '-')
		return diag_fail(d, ST_USAGE, at, "one option a line: --batch 64",
			"'%.40s' is no option", line);
	char *value = line + strcspn(line, " \t=");
	if (!strncmp(line, "--options", 9) && value == line + 9)
		return diag_fail(
			d, ST_USAGE, at, NULL, "--options stands on the command line only");
	if (*value)
		*value++ = '\0';
	value += strspn(value, " \t");
	if (*value == '"' ? !unquote(value) : (trim(value), false))
		return diag_fail(
			d, ST_USAGE, at, NULL, "the quotes of %s do not end the line", line);
	trim(line);
	if (!*value || *value == '#')
		return add(w, line) ? ST_OK : diag_nomem(d);
	/* one word, so that a value may begin with a dash */
	const bool short_name = line[1] != '-';
	return add(w, short_name ? line : arena_printf(w->a, "%s=%s", line, value)) &&
			       (!short_name || add(w, value))
		       ? ST_OK
		       : diag_nomem(d);
}

static enum status read_options(struct words *w, const char *path, struct diag *d)
{
	char *text;
	size_t len;
	TRY(file_read(w->a, path, &text, &len, d));
	if (memchr(text, '\0', len))
		return diag_fail(
			d, ST_USAGE, &(struct where){.file = path}, NULL, "is no text of options");
	int number = 1;
	for (char *line = text; line; number++) {
		char *end = strchr(line, '\n');
		if (end)
			*end++ = '\0';
		const char *at = arena_printf(w->a, "%s:%d", path, number);
		if (!at)
			return diag_nomem(d);
		TRY(read_line(w, line, &(struct where){.file = at}, d));
		line = end;
	}
	return ST_OK;
}

enum status option_file_expand(
	struct arena *a, int argc, const char **argv, int *nout, const char ***out, struct diag *d)
{
	static const char name[] = "--options";
	struct words file = {.a = a}, own = {.a = a};
	*nout = argc;
	*out = argv;
	if (argc < 2)
		return ST_OK;
	if (!add(&file, argv[0]))
		return diag_nomem(d);
	for (int i = 1; i < argc; i++) {
		const size_t n = strlen(name);
		if (strncmp(argv[i], name, n) != 0 || (argv[i][n] && argv[i][n] != '=')) {
			if (!add(&own, argv[i]))
				return diag_nomem(d);
			continue;
		}
		if (!argv[i][n] && i + 1 == argc)
			return diag_fail(d, ST_USAGE, NULL, NULL, "--options: missing argument");
		const char *path = argv[i][n] ? argv[i] + n + 1 : argv[i + 1];
		TRY(read_options(&file, path, d));
		if (!add(&file, arena_printf(a, "%s=%s", name, path)))
			return diag_nomem(d);
		i += !argv[i][n];
	}
	if (own.n == argc - 1)
		return ST_OK;
	for (int i = 0; i < own.n; i++)
		if (!add(&file, own.word[i]))
			return diag_nomem(d);
	file.word[file.n] = NULL;
	*nout = file.n;
	*out = file.word;
	return ST_OK;
}
