/* Buffers to place as comma-separated values. */
#include "planner/plan.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum column { C_ID, C_LOWER, C_UPPER, C_SIZE, C_OFFSET, COLUMNS };
static const char *const column_name[COLUMNS] = {"id", "lower", "upper", "size", "offset"};

enum { FIELDS_MAX = 64 };

struct reader {
	struct arena *a;
	const char *file;
	struct diag *d;
	int column[COLUMNS]; /* where each column stands, -1 where it does not */
	int faults;
	bool nomem;
};

static void fault(struct reader *r, int line, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

static void fault(struct reader *r, int line, const char *fmt, ...)
{
	char why[512];
	const int n = snprintf(why, sizeof why, "line %d: ", line);
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(why + n, sizeof why - (size_t)n, fmt, ap);
	va_end(ap);
	diag_fail(r->d, ST_INVALID, &(struct where){.file = r->file}, NULL, "%s", why);
	r->faults++;
}

/* Cut a line at its commas, in place. */
static int split(char *line, char **field)
{
	int n = 0;
	for (char *s = line; s && n < FIELDS_MAX;) {
		char *comma = strchr(s, ',');
		if (comma)
			*comma++ = '\0';
		field[n++] = s;
		s = comma;
	}
	return n;
}

static void read_header(struct reader *r, char *line)
{
	char *field[FIELDS_MAX];
	int n = split(line, field);
	for (int c = 0; c < COLUMNS; c++) {
		r->column[c] = -1;
		for (int i = 0; i < n; i++)
			if (strcmp(field[i], column_name[c]) == 0) {
				if (r->column[c] >= 0)
					fault(r, 1, "the header has \"%s\" twice", column_name[c]);
				r->column[c] = i;
			}
		if (r->column[c] < 0 && c != C_OFFSET)
			fault(r, 1, "the header has no column \"%s\"", column_name[c]);
	}
}

static int64_t number(struct reader *r, int line, const char *s, enum column c)
{
	char *end;
	errno = 0;
	long long v = strtoll(s, &end, 10);
	if (end == s || *end || errno)
		fault(r, line, "%s \"%s\" is not a whole number", column_name[c], s);
	return v;
}

static void read_line(struct reader *r, char *text, int line, struct layout_table *t)
{
	char *field[FIELDS_MAX];
	int n = split(text, field);
	for (int c = 0; c < COLUMNS; c++)
		if (r->column[c] >= n) {
			fault(r, line, "has %d fields", n);
			return;
		}
	struct layout_buffer *b = &t->b[t->n];
	const int before = r->faults;
	b->lower = number(r, line, field[r->column[C_LOWER]], C_LOWER);
	b->upper = number(r, line, field[r->column[C_UPPER]], C_UPPER);
	b->size = number(r, line, field[r->column[C_SIZE]], C_SIZE);
	b->fixed = r->column[C_OFFSET] >= 0 && field[r->column[C_OFFSET]][0];
	if (b->fixed)
		b->offset = number(r, line, field[r->column[C_OFFSET]], C_OFFSET);
	if (r->faults > before)
		return;
	if (b->upper <= b->lower || b->lower < INT64_MIN / 4 || b->upper > INT64_MAX / 4)
		fault(r, line, "lifetime [%" PRId64 ", %" PRId64 ") is empty", b->lower, b->upper);
	if (b->size < 0 || b->offset < 0)
		fault(r, line, "size and offset are zero or more");
	t->id[t->n] = arena_strdup(r->a, field[r->column[C_ID]]);
	r->nomem = r->nomem || !t->id[t->n];
	t->n++;
}

static void check_total(struct reader *r, const struct layout_table *t, const int *line)
{
	int64_t sum = 0;
	for (int i = 0; i < t->n; i++)
		if (!size_add(sum, t->b[i].size, &sum) || !size_add(sum, t->b[i].offset, &sum) ||
			sum > INT64_MAX / 8) {
			fault(r, line[i], "the sizes add up to more than can be counted");
			return;
		}
}

struct named {
	const char *id;
	int i;
};

static int named_cmp(const void *a, const void *b)
{
	const struct named *x = a, *y = b;
	int c = strcmp(x->id, y->id);
	return c ? c : (x->i > y->i) - (x->i < y->i);
}

/* line[i] is where buffer i stands. */
static void check_ids(struct reader *r, const struct layout_table *t, const int *line)
{
	struct named *v = malloc(((size_t)t->n + 1) * sizeof *v);
	r->nomem = r->nomem || !v;
	for (int i = 0; i < t->n && v; i++)
		v[i] = (struct named){t->id[i], i};
	if (v)
		qsort(v, (size_t)t->n, sizeof *v, named_cmp);
	for (int k = 1; k < t->n && v; k++)
		if (strcmp(v[k - 1].id, v[k].id) == 0)
			fault(r, line[v[k].i], "id \"%s\" stands on line %d already", v[k].id,
				line[v[k - 1].i]);
	free(v);
}

enum status layout_csv_parse(struct arena *a, const char *text, size_t len, const char *file,
	struct layout_table *out, struct diag *d)
{
	struct reader r = {.a = a, .file = file, .d = d};
	char *copy = arena_strndup(a, text, len);
	size_t lines = 1;
	for (size_t i = 0; i < len; i++)
		lines += text[i] == '\n';
	*out = (struct layout_table){.id = arena_alloc(a, lines, sizeof *out->id),
		.b = arena_alloc(a, lines, sizeof *out->b)};
	int *line_of = arena_alloc(a, lines, sizeof *line_of);
	if (!copy || !out->id || !out->b || !line_of || lines > INT32_MAX / 4)
		return diag_nomem(d);
	int line = 0;
	for (char *s = copy; s && !r.nomem; line++) {
		char *end = strchr(s, '\n');
		if (end)
			*end++ = '\0';
		size_t n = strlen(s);
		if (n && s[n - 1] == '\r')
			s[n - 1] = '\0';
		if (line == 0)
			read_header(&r, s);
		line_of[out->n] = line + 1;
		if (line > 0 && *s)
			read_line(&r, s, line + 1, out);
		if (line == 0 && r.faults)
			break;
		s = end;
	}
	if (!r.faults && !r.nomem)
		check_ids(&r, out, line_of);
	if (r.nomem)
		return diag_nomem(d);
	if (!r.faults)
		check_total(&r, out, line_of);
	return r.faults ? ST_INVALID : ST_OK;
}

enum status layout_csv_read(
	struct arena *a, const char *path, struct layout_table *out, struct diag *d)
{
	char *text;
	size_t len;
	TRY(file_read(a, path, &text, &len, d));
	return layout_csv_parse(a, text, len, path, out, d);
}

void layout_csv_print(const struct layout_table *t, struct text *out)
{
	text_puts(out, "id,lower,upper,size,offset\n");
	for (int i = 0; i < t->n; i++) {
		const struct layout_buffer *b = &t->b[i];
		text_puts(out, t->id[i]);
		text_add(out, ",%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64 "\n", b->lower,
			b->upper, b->size, b->offset);
	}
}
