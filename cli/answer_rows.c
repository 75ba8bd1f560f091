#include "cli/answer_rows.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "api/safe_put.h"

enum { COLUMNS = 4096 };

static int64_t top_of(const struct answer_rows *r)
{
	return r->options->top ? r->options->top : 1;
}

/* --- CSV --- */

enum status answer_rows_check(const struct answer_rows *r, struct diag *d)
{
	for (int i = 0; i < r->n; i++) {
		const struct answer *w = &r->answer[i];
		if (w->classes && w->rank && r->n > 1)
			return diag_fail(d, ST_USAGE, NULL, "-o NAME=FILE.csv writes one",
				"'%s' has a line for each place: no other output goes into the "
				"same table",
				w->o->name);
		if (!w->classes && w->elements > COLUMNS)
			return diag_fail(d, ST_USAGE, NULL,
				"OUT.npy, OUT.safetensors and OUT.jsonl take them",
				"'%s' has %" PRId64 " numbers a sample: too many columns",
				w->o->name, w->elements);
	}
	return ST_OK;
}

static void put_field(FILE *f, const char *s)
{
	if (!strpbrk(s, ",\"\r\n")) {
		fputs(s, f);
		return;
	}
	putc('"', f);
	for (; *s; s++) {
		if (*s == '"')
			putc('"', f);
		putc(*s, f);
	}
	putc('"', f);
}

static void put_class(const struct answer_rows *r, int64_t c, FILE *f)
{
	if (c < r->options->classes.n)
		put_field(f, r->options->classes.name[c]);
	else
		fprintf(f, "%" PRId64, c);
}

/* A column's name: "", or of several outputs "NAME.", then the rest. */
static void put_column(const struct answer_rows *r, const struct answer *w, const char *name,
	int64_t number, FILE *f)
{
	struct text t = {0};
	text_add(&t, r->n > 1 && w->classes ? "%s.%s" : "%.0s%s", w->o->name, name);
	if (number >= 0)
		text_add(&t, "_%" PRId64, number);
	putc(',', f);
	put_field(f, t.failed ? "" : t.s);
	text_free(&t);
}

static void head_of(const struct answer_rows *r, const struct answer *w, FILE *f)
{
	const int64_t top = top_of(r);
	if (!w->classes) {
		for (int64_t i = 0; i < w->elements; i++)
			put_column(r, w, w->o->name, w->elements > 1 ? i : -1, f);
		return;
	}
	if (w->rank == 2)
		fputs(",y,x", f);
	for (int k = 0; w->rank != 2 && k < w->rank; k++)
		put_column(r, w, "place", w->rank > 1 ? k : -1, f);
	for (int64_t k = 0; k < top; k++) {
		put_column(r, w, "class", top > 1 ? k + 1 : -1, f);
		put_column(r, w, "score", top > 1 ? k + 1 : -1, f);
	}
	for (int64_t c = 0; r->options->scores && c < w->n; c++) {
		putc(',', f);
		put_class(r, c, f);
	}
}

void answer_rows_head(const struct answer_rows *r, FILE *f)
{
	fputs(r->files ? "file" : "sample", f);
	for (int i = 0; i < r->n; i++)
		head_of(r, &r->answer[i], f);
	fputs(r->why ? ",error\n" : "\n", f);
}

/* As many digits as tell a number of this type from its neighbours. */
static void put_number(FILE *f, const struct answer *w, double v)
{
	if (isnan(v))
		fputs("nan", f);
	else
		fprintf(f, "%.*g", w->o->dtype == STINT_F32 ? 9 : 17, v);
}

static void json_number(FILE *f, const struct answer *w, double v)
{
	if (isfinite(v))
		put_number(f, w, v);
	else
		fputs("null", f);
}

/* A number of a sample; whole ones to the last digit. */
static void put_value(FILE *f, const struct answer *w, const void *y, int64_t i, bool json)
{
	if (y && w->o->dtype == STINT_I64)
		fprintf(f, "%" PRId64, ((const int64_t *)y)[i]);
	else
		(json ? json_number : put_number)(f, w, answer_number(w, y, i));
}

static void csv_place(
	const struct answer_rows *r, const struct answer *w, const void *y, int64_t place, FILE *f)
{
	const int64_t top = top_of(r);
	int64_t left = place, size = w->places;
	answer_best(w, y, place, top, r->best);
	for (int k = 0; k < w->rank; k++) {
		size /= w->dim[k];
		fprintf(f, ",%" PRId64, left / size);
		left %= size;
	}
	for (int64_t k = 0; k < top; k++) {
		putc(',', f);
		if (!isnan(w->score[r->best[k]]))
			put_class(r, r->best[k], f);
		putc(',', f);
		put_number(f, w, w->score[r->best[k]]);
	}
	for (int64_t c = 0; r->options->scores && c < w->n; c++) {
		putc(',', f);
		put_number(f, w, w->score[c]);
	}
}

static void csv_line(const struct answer_rows *r, const struct answered *s, int64_t place, FILE *f)
{
	if (s->file)
		put_field(f, s->file);
	else
		fprintf(f, "%" PRId64, s->sample);
	for (int i = 0; i < r->n; i++) {
		const struct answer *w = &r->answer[i];
		const void *y = s->why && *s->why ? NULL : s->y[i];
		if (w->classes)
			csv_place(r, w, y, place, f);
		for (int64_t k = 0; !w->classes && k < w->elements; k++) {
			putc(',', f);
			put_value(f, w, y, k, false);
		}
	}
	if (r->why) {
		putc(',', f);
		put_field(f, s->why);
	}
	putc('\n', f);
}

void answer_rows_csv(const struct answer_rows *r, const struct answered *s, FILE *f)
{
	const int64_t places = r->n == 1 && r->answer->classes ? r->answer->places : 1;
	for (int64_t k = 0; k < places; k++)
		csv_line(r, s, k, f);
}

/* --- JSON --- */

static void json_class(const struct answer_rows *r, const struct answer *w, int64_t c, FILE *f)
{
	if (isnan(w->score[c]))
		fputs("null", f);
	else if (c < r->options->classes.n)
		safe_json(f, r->options->classes.name[c]);
	else
		fprintf(f, "%" PRId64, c);
}

/* By their names, where they have some. */
static void json_scores(const struct answer_rows *r, const struct answer *w, FILE *f)
{
	const bool named = r->options->classes.n >= w->n;
	for (int64_t c = 0; c < w->n; c++) {
		putc(c ? ',' : named ? '{' : '[', f);
		if (named) {
			safe_json(f, r->options->classes.name[c]);
			putc(':', f);
		}
		json_number(f, w, w->score[c]);
	}
	putc(named ? '}' : ']', f);
}

enum leaf { LEAF_NUMBER, LEAF_CLASS, LEAF_SCORE, LEAF_TOP, LEAF_SCORES };

static void json_leaf(const struct answer_rows *r, const struct answer *w, const void *y,
	int64_t place, enum leaf leaf, FILE *f)
{
	if (leaf == LEAF_NUMBER) {
		put_value(f, w, y, place, true);
		return;
	}
	answer_best(w, y, place, leaf == LEAF_TOP ? top_of(r) : 1, r->best);
	if (leaf == LEAF_CLASS)
		json_class(r, w, *r->best, f);
	else if (leaf == LEAF_SCORE)
		json_number(f, w, w->score[*r->best]);
	else if (leaf == LEAF_SCORES)
		json_scores(r, w, f);
	for (int64_t k = 0; leaf == LEAF_TOP && k < top_of(r); k++) {
		fputs(k ? ",{\"class\":" : "[{\"class\":", f);
		json_class(r, w, r->best[k], f);
		fputs(",\"score\":", f);
		json_number(f, w, w->score[r->best[k]]);
		fputs(k + 1 < top_of(r) ? "}" : "}]", f);
	}
}

/* Lists in lists, as the axes from `axis` on; elements from `from`, `size` of them. */
static void json_nest(const struct answer_rows *r, const struct answer *w, const void *y, int axis,
	int64_t from, int64_t size, enum leaf leaf, FILE *f)
{
	if (axis == w->rank || (leaf == LEAF_NUMBER && w->elements == 1)) {
		json_leaf(r, w, y, from, leaf, f);
		return;
	}
	putc('[', f);
	const int64_t part = w->dim[axis] ? size / w->dim[axis] : 0;
	for (int64_t i = 0; i < w->dim[axis]; i++) {
		fputs(i ? "," : "", f);
		json_nest(r, w, y, axis + 1, from + i * part, part, leaf, f);
	}
	putc(']', f);
}

static void json_classes(
	const struct answer_rows *r, const struct answer *w, const void *y, FILE *f)
{
	fputs("\"class\":", f);
	json_nest(r, w, y, 0, 0, w->places, LEAF_CLASS, f);
	fputs(",\"score\":", f);
	json_nest(r, w, y, 0, 0, w->places, LEAF_SCORE, f);
	if (top_of(r) > 1) {
		fputs(",\"top\":", f);
		json_nest(r, w, y, 0, 0, w->places, LEAF_TOP, f);
	}
	if (r->options->scores) {
		fputs(",\"scores\":", f);
		json_nest(r, w, y, 0, 0, w->places, LEAF_SCORES, f);
	}
}

void answer_rows_json(const struct answer_rows *r, const struct answered *s, FILE *f)
{
	const bool bad = s->why && *s->why;
	fputs(s->file ? "{\"file\":" : "{\"sample\":", f);
	if (s->file)
		safe_json(f, s->file);
	else
		fprintf(f, "%" PRId64, s->sample);
	for (int i = 0; i < r->n; i++) {
		const struct answer *w = &r->answer[i];
		const void *y = bad ? NULL : s->y[i];
		putc(',', f);
		if (r->n > 1 || !w->classes) {
			safe_json(f, w->o->name);
			fputs(w->classes ? ":{" : ":", f);
		}
		if (w->classes)
			json_classes(r, w, y, f);
		else
			json_nest(r, w, y, 0, 0, w->elements, LEAF_NUMBER, f);
		fputs(r->n > 1 && w->classes ? "}" : "", f);
	}
	if (bad) {
		fputs(",\"error\":", f);
		safe_json(f, s->why);
	}
	putc('}', f);
}
