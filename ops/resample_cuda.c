/* stint.Resample on a GPU: a thread makes an element, whose neighbours in memory are made by its
 * neighbours. Sums are those of the C text: over the axes before the last, then along that. */
#include <inttypes.h>

#include "ops/resample_parts.h"
#include "ops/turns.h"

static bool has_terms(const struct part *p)
{
	return p->map && !p->one;
}

static void emit_terms(struct emit *e, const struct part *p, int k, int depth)
{
	emit_tabs(e, depth);
	if (p->each < 0)
		emit(e, "for (int t%d = from%d[i%d]; t%d < from%d[i%d + 1]; t%d++)", k, k, k, k, k,
			k, k);
	else
		emit(e,
			"for (int64_t t%d = i%d * %" PRId64 "; t%d < (i%d + 1) * %" PRId64
			"; t%d++)",
			k, k, p->each, k, k, p->each, k);
}

/* "by1[t1] * by2[t2] * ", over the axes [first, end). */
static const char *weights(struct emit *e, const struct parts *s, int first, int end)
{
	const char *text = "";
	for (int k = first; k < end; k++)
		if (has_terms(&s->part[k]) && s->part[k].map->weight)
			text = emit_text(e, "%sby%d[t%d] * ", text, k, k);
	return text;
}

static const char *element(struct emit *e, const struct parts *s)
{
	const char *at = "";
	for (int k = 0; k < s->count; k++)
		if (has_terms(&s->part[k]))
			at = emit_text(e, "%s%sat%d[t%d] * INT64_C(%" PRId64 ")", at,
				*at ? " + " : "", k, k, s->part[k].stride);
	return emit_value(e, s->type, emit_text(e, "x[%s]", *at ? at : "0"));
}

/* Adds to `name` the terms of the axes [first, end): `what`, weighted. */
static void emit_sum(struct emit *e, const struct parts *s, int first, int end, int depth,
	const char *name, const char *what)
{
	for (int k = first; k < end; k++)
		if (has_terms(&s->part[k])) {
			emit_terms(e, &s->part[k], k, depth++);
			emit(e, "\n");
		}
	emit_tabs(e, depth);
	const char *by = weights(e, s, first, end);
	emit(e, "%s += %s%s;\n", name, by, what);
}

/* Along the last axis, of sums over the others. */
static void emit_both(struct emit *e, const struct parts *s)
{
	const int m = s->count - 1;
	emit(e, "\t\treal sum = 0;\n");
	emit_terms(e, &s->part[m], m, 2);
	emit(e, " {\n\t\t\treal row = 0;\n");
	emit_sum(e, s, 0, m, 3, "row", element(e, s));
	emit(e, "\t\t\tsum += %srow;\n\t\t}\n", weights(e, s, m, m + 1));
}

/* "from1[i1] == from1[i1 + 1]": nothing is there to take. */
static const char *gap(struct emit *e, const struct parts *s)
{
	const char *text = "";
	for (int k = 0; k < s->count; k++)
		if (s->part[k].gaps)
			text = emit_text(e, "%s%sfrom%d[i%d] == from%d[i%d + 1]", text,
				*text ? " || " : "", k, k, k, k);
	return text;
}

enum status resample_cuda_emit(struct emit *e, const struct node *n)
{
	const struct resample *r = n->param;
	const struct parts s = resample_parts(n);
	const int m = s.count - 1;
	struct emit_loop loop[RANK_MAX];
	char literal[40];
	bool terms = false;
	for (int k = 0; k < s.count; k++) {
		loop[k] = (struct emit_loop){emit_text(e, "i%d", k), s.part[k].out, 1};
		terms |= has_terms(&s.part[k]);
	}
	resample_emit_tables(e, &s);
	turns_emit(e, s.count, loop);
	emit_tabs(e, 2);
	resample_emit_base(e, &s, s.count);
	if (!terms) {
		emit(e, "\t\ty0[turn] = x[0];\n\t}\n");
		return ST_OK;
	}
	if (s.adds && has_terms(&s.part[m])) {
		emit_both(e, &s);
	} else {
		emit(e, "\t\treal sum = 0;\n");
		emit_sum(e, &s, 0, s.count, 2, "sum", element(e, &s));
	}
	const char *outside = r->outside != 0 ? gap(e, &s) : "";
	if (*outside)
		emit(e, "\t\tsum = %s ? %s : sum;\n", outside, emit_real(e, r->outside, literal));
	emit(e, "\t\ty0[turn] = %s;\n\t}\n", emit_stored(e, s.type, "sum"));
	return ST_OK;
}
