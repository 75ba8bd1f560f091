/* Columns of numbers, or words, in text: "csv:FILE", or "csv:COLUMN,COLUMN:FILE". RFC 4180, plain
 * or gzip's; the first line names the columns, and where it has no comma but a semicolon or a tab,
 * those part cells. Read through once, into a temporary file of doubles.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "data/csv_words.h"
#include "data/stream.h"

enum { CELL_MAX = 4096, COLUMNS_MAX = 65536 };

struct csv {
	struct stream s;
	unsigned char buffer[1 << 15];
	size_t at, end;
	int64_t line;
	char cell[CELL_MAX];
	int comma;  /* what parts cells */
	int quoted; /* the cell was */
	int ncolumn, nwanted;
	char **name;
	struct csv_words *words; /* of each column */
	int *wanted;             /* columns, in the order asked for */
	FILE *out;
	int64_t rows;
	int whole; /* all numbers so far are whole ones below 2^53 */
};

/* The next byte, -1 at the end, -2 with a message. */
static int next(struct csv *c)
{
	if (c->at == c->end) {
		c->at = 0;
		if (stream_some(&c->s, c->buffer, sizeof c->buffer, &c->end))
			return -2;
		if (!c->end)
			return -1;
	}
	return c->buffer[c->at++];
}

static void back(struct csv *c, int byte)
{
	c->at -= byte >= 0;
}

enum cell_end { CELL_COMMA, CELL_LINE, CELL_END, CELL_BAD };

static enum cell_end bad(struct csv *c, const char *what)
{
	stream_bad(&c->s, "line %lld: %s", (long long)c->line, what);
	return CELL_BAD;
}

/* Into c->cell: up to a comma or what stands for it, a line's end or the file's. */
static enum cell_end read_cell(struct csv *c)
{
	size_t n = 0;
	int inside = 0, b = next(c);
	c->quoted = b == '"';
	inside = c->quoted;
	if (!inside)
		back(c, b);
	for (;;) {
		b = next(c);
		if (b == -2)
			return CELL_BAD;
		if (inside && b == '"') {
			b = next(c);
			inside = b == '"';
		}
		if (b < 0 || (!inside && (b == c->comma || b == '\n')))
			break;
		if (!inside && b == '\r') {
			b = next(c);
			if (b == '\n' || b == -1)
				break;
			return bad(c, "a carriage return without a new line");
		}
		if (c->quoted && !inside)
			return bad(c, "a quote within a cell; inside quotes it is written twice");
		if (n + 1 == CELL_MAX)
			return bad(c, "a cell is too long");
		c->line += b == '\n';
		c->cell[n++] = (char)b;
	}
	c->cell[n] = '\0';
	if (b == -2)
		return CELL_BAD;
	if (inside)
		return bad(c, "a quote does not end");
	return b == c->comma ? CELL_COMMA : b == -1 ? CELL_END : CELL_LINE;
}

static int out_of_memory(struct csv *c)
{
	return stream_bad(&c->s, "out of memory");
}

static int find(const struct csv *c, const char *name, size_t n)
{
	for (int i = 0; i < c->ncolumn; i++)
		if (strlen(c->name[i]) == n && !memcmp(c->name[i], name, n))
			return i;
	return -1;
}

/* The same of a name as it is spelled among columns: a backslash takes the character behind it. */
static int find_spelled(const struct csv *c, const char *text, size_t n)
{
	char *name = malloc(n + 1);
	size_t used = 0;
	for (size_t i = 0; name && i < n; i++) {
		i += text[i] == '\\' && i + 1 < n;
		name[used++] = text[i];
	}
	const int k = name ? find(c, name, used) : -1;
	free(name);
	return k;
}

/* Up to the first of these marks that no backslash stands before, or the end. */
static size_t spelled(const char *text, const char *end, const char *marks)
{
	const char *p = text;
	while (p < end && !strchr(marks, *p))
		p += *p == '\\' && p + 1 < end ? 2 : 1;
	return (size_t)(p - text);
}

const char *csv_columns_end(const char *text)
{
	const char *const end = text + strlen(text), *at = text + spelled(text, end, ":");
	return at < end ? at : NULL;
}

/* UTF-8's byte order mark, which some programs write first. */
static void skip_mark(struct csv *c)
{
	const int b = next(c);
	back(c, b);
	if (b == 0xef && c->end >= 3 && c->buffer[1] == 0xbb && c->buffer[2] == 0xbf)
		c->at = 3;
}

/* What parts the cells of the first line, as far as it is read. */
static int comma_of(const struct csv *c)
{
	int other = ',', inside = 0;
	for (size_t i = c->at; i < c->end && (inside || c->buffer[i] != '\n'); i++) {
		const int b = c->buffer[i];
		inside ^= b == '"';
		if (!inside && b == ',')
			return b;
		if (!inside && other == ',' && (b == ';' || b == '\t'))
			other = b;
	}
	return other;
}

static int read_names(struct csv *c)
{
	enum cell_end end;
	c->line = 1;
	skip_mark(c);
	c->comma = comma_of(c);
	do {
		end = read_cell(c);
		if (end == CELL_BAD)
			return 1;
		if (c->ncolumn == COLUMNS_MAX)
			return stream_bad(&c->s, "more than %d columns", COLUMNS_MAX);
		char **name = realloc(c->name, ((size_t)c->ncolumn + 1) * sizeof *name);
		if (name)
			c->name = name;
		if (find(c, c->cell, strlen(c->cell)) >= 0)
			return stream_bad(&c->s, "has two columns '%.60s'", c->cell);
		if (!name || !(name[c->ncolumn] = strdup(c->cell)))
			return out_of_memory(c);
		c->ncolumn++;
	} while (end == CELL_COMMA);
	return end == CELL_END && c->ncolumn == 1 && !*c->name[0]
		       ? stream_bad(&c->s, "is empty; its first line names columns")
		       : 0;
}

/* The names between commas; NULL: all columns. */
static int choose(struct csv *c, const char *list, size_t length)
{
	const char *const end = list ? list + length : NULL;
	c->wanted = malloc(((size_t)c->ncolumn + (list ? length : 0) + 1) * sizeof *c->wanted);
	if (!c->wanted)
		return out_of_memory(c);
	for (int i = 0; !list && i < c->ncolumn; i++)
		c->wanted[c->nwanted++] = i;
	while (list && list <= end) {
		const size_t n = spelled(list, end, ",");
		const int k = find_spelled(c, list, n);
		if (k < 0)
			return stream_bad(&c->s, "has no column '%.*s'; its first is '%.40s'",
				n < 60 ? (int)n : 60, list, c->name[0]);
		c->wanted[c->nwanted++] = k;
		list += n + 1;
	}
	return 0;
}

static int bad_cell(struct csv *c, int column, const char *what)
{
	return stream_bad(&c->s, "line %lld, column '%.40s': '%.40s' %s", (long long)c->line,
		c->name[column], c->cell, what);
}

/* In a column of words, which begins with one. */
static int word(struct csv *c, int column, double *out)
{
	const int k = csv_word_number(&c->words[column], c->cell);
	*out = k;
	return k == -1   ? out_of_memory(c)
	       : k == -2 ? bad_cell(c, column, "is one word more than 4096: no kinds of samples")
			 : 0;
}

static int number(struct csv *c, int column, double *out)
{
	char *end;
	*out = strtod(c->cell, &end);
	end += strspn(end, " \t");
	const int is = *c->cell && !*end, words = c->words[column].n > 0;
	if (words && (is || !*c->cell))
		return bad_cell(c, column, is ? "is a number among words" : "is no word");
	if (words || (!is && !c->rows && csv_is_word(c->cell)))
		return word(c, column, out);
	if (!is)
		return bad_cell(c, column, "is no number");
	c->whole &= *out >= -0x1p53 && *out <= 0x1p53 && (double)(int64_t)*out >= *out &&
		    (double)(int64_t)*out <= *out;
	return 0;
}

/* One line; *more: another may follow. `value` has room for all columns. */
static int read_row(struct csv *c, double *value, int *more)
{
	int n = 0;
	enum cell_end end;
	c->line++;
	const int64_t line = c->line;
	unsigned char *wants = (unsigned char *)(value + c->ncolumn);
	do {
		end = read_cell(c);
		if (end == CELL_BAD)
			return 1;
		*more = end != CELL_END;
		if (n == 0 && end != CELL_COMMA && !*c->cell && !c->quoted)
			return 0; /* an empty line */
		if (n < c->ncolumn && wants[n] && number(c, n, &value[n]))
			return 1;
		n++;
	} while (end == CELL_COMMA);
	if (n != c->ncolumn)
		return stream_bad(&c->s, "line %lld has %d cells for %d columns", (long long)line,
			n, c->ncolumn);
	for (int i = 0; i < c->nwanted; i++)
		if (fwrite(&value[c->wanted[i]], sizeof *value, 1, c->out) < 1)
			return 0; /* told when the file is closed */
	c->rows++;
	return 0;
}

static int read_rows(struct csv *c)
{
	int more = 1, rc = 0;
	double *value = calloc((size_t)c->ncolumn, sizeof *value + 1);
	if (!value)
		return out_of_memory(c);
	for (int i = 0; i < c->nwanted; i++)
		((unsigned char *)(value + c->ncolumn))[c->wanted[i]] = 1;
	c->whole = 1;
	while (more && !rc)
		rc = read_row(c, value, &more);
	free(value);
	return rc;
}

static int spool(struct csv *c, struct dataset *d, const char *list, size_t length)
{
	struct csv_table *t = d->state;
	if (read_names(c) || choose(c, list, length))
		return 1;
	c->words = calloc((size_t)c->ncolumn, sizeof *c->words);
	if (!c->words)
		return out_of_memory(c);
	c->out = spool_open(d->path, c->s.message);
	if (!c->out || spool_close(c->out, read_rows(c), d->path, &t->e.fd, c->s.message) ||
		csv_sort_words(
			d, t, c->rows, c->nwanted, c->wanted, c->name, c->words, c->s.message))
		return 1;
	int64_t bytes;
	d->type = c->whole ? DATASET_I64 : DATASET_F64;
	d->dim[d->rank++] = c->rows;
	if (c->nwanted > 1 || !list)
		d->dim[d->rank++] = c->nwanted;
	return dataset_count(d, &bytes) ? stream_bad(&c->s, "is too large") : 0;
}

static void csv_free(struct csv *c)
{
	for (int i = 0; i < c->ncolumn; i++) {
		free(c->name[i]);
		if (c->words)
			csv_words_free(&c->words[i]);
	}
	free(c->name);
	free(c->words);
	free(c->wanted);
	stream_close(&c->s);
}

static int csv_open(struct dataset *d, const char *text, char message[256])
{
	const char *const colon = csv_columns_end(text), *const file = colon ? colon + 1 : text;
	struct csv_table *t = calloc(1, sizeof *t);
	struct csv *c = calloc(1, sizeof *c);
	d->state = t;
	d->cheap = 1;
	if (t)
		t->e.fd = -1;
	int rc = t && c ? stream_open(&c->s, file, message)
			: dataset_bad(message, d->path, "out of memory");
	rc = rc || spool(c, d, colon ? text : NULL, colon ? (size_t)(colon - text) : 0);
	if (c)
		csv_free(c);
	free(c);
	return rc;
}

/* Whole numbers stand as doubles, too. */
static int csv_read(const struct dataset *d, int64_t first, int64_t n, void *out, char message[256])
{
	if (elements_all(d, first, n, out, message))
		return 1;
	for (int64_t i = 0; d->type == DATASET_I64 && i < n * d->row; i++) {
		double v;
		memcpy(&v, (char *)out + 8 * i, 8);
		((int64_t *)out)[i] = (int64_t)v;
	}
	return 0;
}

static const char *csv_columns(const struct dataset *d)
{
	const struct csv_table *t = d->state;
	return t->columns.text;
}

static const char *csv_classes(const struct dataset *d)
{
	const struct csv_table *t = d->state;
	return t->classes;
}

const struct dataset_kind csv_kind = {.open = csv_open,
	.read = csv_read,
	.close = csv_table_free,
	.classes = csv_classes,
	.take_classes = csv_take_classes,
	.columns = csv_columns,
	.take_columns = csv_take_columns};

/* A column's name as it is spelled before the file; where it ends, NULL: out of memory. */
static char *spell(const char *columns, char *at)
{
	char *column = name_list_at(columns, 0), *name = column ? name_list_at(column, 0) : NULL;
	for (const char *p = name; p && *p; p++) {
		if (strchr(",:\\", *p))
			*at++ = '\\';
		*at++ = *p;
	}
	if (!name)
		at = NULL;
	free(name);
	free(column);
	return at;
}

char *dataset_with_columns(const char *path, const char *columns)
{
	const char *text;
	const struct dataset_kind *kind = dataset_kind_of(path, &text);
	char mark = ':';
	if (kind != &csv_kind || csv_columns_end(text))
		return NULL;
	char *all = malloc(sizeof "csv::" + 2 * strlen(columns) + strlen(text)), *at = all;
	if (at)
		at += sprintf(at, "csv");
	for (const char *rest = columns; rest && at; rest = dataset_class_next(rest, NULL, NULL)) {
		*at++ = mark;
		mark = ',';
		at = spell(rest, at);
	}
	if (at)
		sprintf(at, ":%s", text);
	else
		free(all);
	return at ? all : NULL;
}
