/* The steps for shorter lengths, beside the longest one's. */
#include <inttypes.h>

#include "api/report.h"
#include "api/safe_put.h"

/* Where one of them has its own inputs beside what the longest one wants. */
static void report_room(FILE *f, const struct pipeline *p)
{
	char b[24];
	const struct plan *own = pipeline_plan_shown(p), *eval = p->plans.eval_plan;
	const int64_t bytes = p->plans.arena_bytes;
	if (bytes > own->arena_bytes && bytes > eval->arena_bytes)
		fprintf(f, "  %-18s %12s  = %" PRId64 " bytes, with room for all inputs\n", "arena",
			bytes_human(bytes, b), bytes);
}

void report_lengths(FILE *f, const struct pipeline *p)
{
	char b[24];
	if (!p->nlength)
		return;
	fputs("in the same arena, by '", f);
	safe_put(f, p->o->lengths.dim);
	fputs("'       peak   predicted\n", f);
	for (int i = 0; i < p->nlength; i++) {
		const struct length_planned *x = &p->length[i];
		fprintf(f, "%24" PRId64 "  %11s  %7.4g ms, %.3f x one pass\n", x->length,
			bytes_human(x->peak_bytes, b), x->cost / 1e3,
			x->once > 0 ? x->cost / x->once : 1.0);
	}
	report_room(f, p);
}

void report_lengths_json(FILE *f, const struct pipeline *p)
{
	if (!p->nlength)
		return;
	fputs(",\"dim\":", f);
	safe_json(f, p->o->lengths.dim);
	fprintf(f, ",\"lengths_arena_bytes\":%" PRId64 ",\"lengths\":[", p->plans.arena_bytes);
	for (int i = 0; i < p->nlength; i++) {
		const struct length_planned *x = &p->length[i];
		fprintf(f,
			"%s{\"length\":%" PRId64 ",\"peak_bytes\":%" PRId64
			",\"cost\":{\"once\":%.17g,\"total\":%.17g}}",
			i ? "," : "", x->length, x->peak_bytes, x->once, x->cost);
	}
	fputc(']', f);
}
