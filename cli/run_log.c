#include "cli/run_log.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { CURVES = 64, NAME = 128 };
#define HUGE 1e100

struct growing {
	char name[NAME];
	int n, cap;
	double *x, *y;
};

struct reader {
	struct arena *a;
	const char *path;
	struct diag *d;
	int n, columns;
	struct growing curve[CURVES];
	char column[CURVES][NAME]; /* CSV */
	double step, epoch, most;  /* the line's, the last known; the largest epoch */
	int64_t line;
};

struct field {
	char name[NAME];
	double value; /* NAN: null */
};

static bool ends_with(const char *s, const char *end)
{
	const size_t n = strlen(s), m = strlen(end);
	return n > m && !strcmp(s + n - m, end);
}

bool run_log_named(const char *path)
{
	return ends_with(path, ".jsonl") || ends_with(path, ".csv");
}

static enum status bad(const struct reader *r, const char *why)
{
	return diag_fail(r->d, ST_INVALID, &(struct where){.file = r->path},
		"a log is what `stint train --log` writes", "line %" PRId64 ": %s", r->line, why);
}

/* --- Curves --- */

static struct growing *curve_of(struct reader *r, const char *name)
{
	for (int i = 0; i < r->n; i++)
		if (!strcmp(r->curve[i].name, name))
			return &r->curve[i];
	if (r->n == CURVES)
		return NULL;
	struct growing *c = &r->curve[r->n++];
	*c = (struct growing){0};
	memcpy(c->name, name, strlen(name) + 1);
	return c;
}

static double *longer(struct arena *a, const double *have, int n, int cap)
{
	double *grown = ARENA_ARRAY(a, double, cap);
	if (grown && n)
		memcpy(grown, have, (size_t)n * sizeof *grown);
	return grown;
}

static enum status add_point(struct reader *r, const char *name, double x, double y)
{
	struct growing *c = curve_of(r, name);
	if (!c)
		return bad(r, "there are too many names");
	while (c->n && c->x[c->n - 1] >= x)
		c->n--;
	if (c->n == c->cap) {
		if (c->cap > INT32_MAX / 2)
			return bad(r, "there are too many lines");
		c->cap = c->cap ? 2 * c->cap : 64;
		c->x = longer(r->a, c->x, c->n, c->cap);
		c->y = longer(r->a, c->y, c->n, c->cap);
		if (!c->x || !c->y)
			return diag_nomem(r->d);
	}
	c->x[c->n] = x;
	c->y[c->n++] = y;
	return ST_OK;
}

/* A line's fields; where a CSV's line has nothing, there is no field. */
static enum status take(struct reader *r, const struct field *f, int n)
{
	for (int i = 0; i < n; i++)
		if (!strcmp(f[i].name, "step"))
			r->step = f[i].value;
		else if (!strcmp(f[i].name, "epoch"))
			r->epoch = f[i].value;
	const double most = 0x1p53; /* the largest of which each is a double */
	if (!(r->step >= 0 && r->step <= most && r->epoch >= 0 && r->epoch < most))
		return bad(r, "its step or epoch is no number");
	r->most = r->epoch > r->most ? r->epoch : r->most;
	for (int i = 0; i < n; i++)
		if (strcmp(f[i].name, "step") != 0 && strcmp(f[i].name, "epoch") != 0 &&
			strcmp(f[i].name, "eval_samples") != 0)
			TRY(add_point(r, f[i].name, r->step, f[i].value));
	return ST_OK;
}

/* --- JSON lines: flat objects of numbers --- */

static const char *blanks(const char *p)
{
	return p + strspn(p, " \t\r");
}

/* A name between quotes, without escapes; NULL: there is none. */
static const char *name_at(const char *p, char out[NAME])
{
	const size_t n = *p == '"' ? strcspn(p + 1, "\"\\") : 0;
	if (n == 0 || n >= NAME || p[n + 1] != '"')
		return NULL;
	memcpy(out, p + 1, n);
	out[n] = '\0';
	return p + n + 2;
}

/* A number or null. */
static const char *value_at(const char *p, double *out)
{
	char *end;
	*out = NAN;
	if (!strncmp(p, "null", 4))
		return p + 4;
	*out = strtod(p, &end);
	if (fabs(*out) > HUGE) /* what is drawn must not overflow */
		*out = INFINITY;
	return end == p ? NULL : end;
}

static enum status take_json(struct reader *r, const char *p)
{
	struct field f[CURVES];
	int n = 0;
	p = blanks(p);
	if (*p++ != '{')
		return bad(r, "it is no JSON object");
	for (;; p++) {
		if (n == CURVES)
			return bad(r, "it has too many names");
		p = name_at(blanks(p), f[n].name);
		p = p ? blanks(p) : NULL;
		p = p && *p == ':' ? value_at(blanks(p + 1), &f[n].value) : NULL;
		if (!p)
			return bad(r, "it is no JSON object of numbers");
		n++;
		p = blanks(p);
		if (*p != ',')
			break;
	}
	if (*p != '}' || *blanks(p + 1))
		return bad(r, "it is no JSON object of numbers");
	return take(r, f, n);
}

/* --- CSV --- */

/* A column's name, perhaps in quotes; the end of it, or NULL. */
static const char *column_at(const char *p, char out[NAME])
{
	if (*p == '"')
		return name_at(p, out);
	const size_t n = strcspn(p, ",\r");
	if (n == 0 || n >= NAME)
		return NULL;
	memcpy(out, p, n);
	out[n] = '\0';
	return p + n;
}

static enum status take_columns(struct reader *r, const char *p)
{
	for (;; p++) {
		if (r->columns == CURVES || !(p = column_at(p, r->column[r->columns])))
			return bad(r, "it names no columns");
		r->columns++;
		if (*p != ',')
			break;
	}
	return *blanks(p) ? bad(r, "it names no columns") : ST_OK;
}

static enum status take_csv(struct reader *r, const char *p)
{
	struct field f[CURVES];
	int n = 0;
	for (int i = 0; i < r->columns; i++) {
		if (*p && !strchr(",\r", *p)) {
			memcpy(f[n].name, r->column[i], NAME);
			p = value_at(p, &f[n++].value);
		}
		if (!p || (i + 1 < r->columns ? *p != ',' : *blanks(p) != '\0'))
			return bad(r, "it does not have a number or nothing for each column");
		p += i + 1 < r->columns;
	}
	return take(r, f, n);
}

/* --- The file --- */

static enum status take_lines(struct reader *r, char *text, size_t len)
{
	const bool csv = ends_with(r->path, ".csv");
	char *end;
	if (memchr(text, '\0', len))
		return bad(r, "the file is no text");
	for (char *p = text; (end = strchr(p, '\n')); p = end + 1) {
		*end = '\0';
		r->line++;
		if (csv && !r->columns)
			TRY(take_columns(r, p));
		else if (*blanks(p))
			TRY(csv ? take_csv(r, p) : take_json(r, p));
	}
	return ST_OK;
}

enum status run_log_parse(struct arena *a, const char *path, char *text, size_t len,
	struct view_run *out, struct diag *d)
{
	struct reader *r = ARENA_NEW(a, struct reader);
	if (!r)
		return diag_nomem(d);
	*r = (struct reader){.a = a, .path = path, .d = d, .most = -1};
	TRY(take_lines(r, text, len));
	struct view_curve *curve = ARENA_ARRAY(a, struct view_curve, r->n);
	if (!curve)
		return diag_nomem(d);
	int points = 0;
	for (int i = 0; i < r->n; i++) {
		const struct growing *c = &r->curve[i];
		curve[i] = (struct view_curve){c->name, c->n, c->x, c->y};
		points += c->n > 0;
	}
	if (!points)
		return diag_fail(d, ST_INVALID, &(struct where){.file = path},
			"train with --log first", "the log is empty");
	*out = (struct view_run){.name = path,
		.steps = (int64_t)fmax(r->step, 0),
		.epochs = (int64_t)r->most + 1,
		.ncurve = r->n,
		.curve = curve};
	return ST_OK;
}

enum status run_log_read(struct arena *a, const char *path, struct view_run *out, struct diag *d)
{
	char *text;
	size_t len;
	TRY(file_read(a, path, &text, &len, d));
	return run_log_parse(a, path, text, len, out, d);
}
