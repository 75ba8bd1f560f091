#include "cli/bad_samples.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "api/safe_put.h"

/* The entry of a reason, made where there is none. */
static struct bad_reason *find(struct bad_samples *b, const char *text)
{
	int i = 0;
	while (i < BAD_REASONS - 1 && b->reason[i].n && strcmp(b->reason[i].text, text) != 0)
		i++;
	struct bad_reason *r = &b->reason[i];
	if (!r->n)
		snprintf(r->text, BAD_TEXT, "%s", i < BAD_REASONS - 1 ? text : "other reasons");
	return r;
}

int bad_add(struct bad_samples *b, int64_t sample, int64_t samples, const char *reason,
	const char *name)
{
	char text[BAD_TEXT];
	if (!b->seen && !(b->seen = calloc((size_t)samples / 8 + 1, 1)))
		return 1;
	unsigned char *const seen = &b->seen[sample / 8];
	if (*seen >> sample % 8 & 1)
		return 0;
	*seen |= (unsigned char)(1 << sample % 8);
	snprintf(text, sizeof text, "%s", reason);
	struct bad_reason *r = find(b, text);
	if (r->n < BAD_NAMED)
		snprintf(r->named[r->n], BAD_TEXT, "%s", name);
	r->n++;
	b->n++;
	return 0;
}

enum status bad_join(struct arena *a, struct bad_samples *b, const struct ranks *r,
	const struct loaded *l, struct diag *d)
{
	const int64_t n = (int64_t)r->n * BAD_REASONS;
	if (r->n == 1)
		return ST_OK;
	struct bad_reason *all = ARENA_ARRAY(a, struct bad_reason, n);
	if (!all)
		return diag_nomem(d);
	memcpy(all + (ptrdiff_t)r->rank * BAD_REASONS, b->reason, sizeof b->reason);
	TRY(ranks_merge(r, l, all, n * (int64_t)sizeof *all, d));
	memset(b->reason, 0, sizeof b->reason);
	b->n = 0;
	for (int64_t i = 0; i < n; i++) {
		if (!all[i].n)
			continue;
		struct bad_reason *to = find(b, all[i].text);
		for (int64_t k = 0; k < all[i].n && k < BAD_NAMED && to->n + k < BAD_NAMED; k++)
			memcpy(to->named[to->n + k], all[i].named[k], BAD_TEXT);
		to->n += all[i].n;
		b->n += all[i].n;
	}
	return ST_OK;
}

void bad_tell(
	const struct bad_samples *b, int64_t samples, const char *const what[2], struct diag *d)
{
	for (int i = 0; i < BAD_REASONS && b->reason[i].n; i++) {
		const struct bad_reason *r = &b->reason[i];
		struct text named = {0};
		for (int k = 0; k < BAD_NAMED && k < r->n; k++)
			text_add(&named, "%s%s", k ? ", " : "", r->named[k]);
		if (r->n > BAD_NAMED)
			text_add(&named, " and %" PRId64 " more", r->n - BAD_NAMED);
		diag_warn(d, NULL, NULL,
			"%" PRId64 " of %" PRId64 " samples %s bad, and %s: %s: %s", r->n, samples,
			r->n == 1 ? "is" : "are", what[r->n > 1], r->text,
			named.failed ? "" : named.s);
		text_free(&named);
	}
}

void bad_json(const struct bad_samples *b, FILE *f)
{
	putc('[', f);
	for (int i = 0; i < BAD_REASONS && b->reason[i].n; i++) {
		const struct bad_reason *r = &b->reason[i];
		fputs(i ? ",{\"reason\":" : "{\"reason\":", f);
		safe_json(f, r->text);
		fprintf(f, ",\"samples\":%" PRId64 ",\"first\":[", r->n);
		for (int k = 0; k < BAD_NAMED && k < r->n; k++) {
			fputs(k ? "," : "", f);
			safe_json(f, r->named[k]);
		}
		fputs("]}", f);
	}
	putc(']', f);
}

void bad_free(struct bad_samples *b)
{
	free(b->seen);
	*b = (struct bad_samples){0};
}
