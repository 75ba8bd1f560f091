/* Budgets as people say them: "2GiB", "1.5GB", "1500000", "70%", "min". */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "planner/plan.h"

static enum status bad(const char *text, struct diag *d)
{
	return diag_fail(d, ST_USAGE, NULL, "write it as 2GiB, 2GB, 1500000, 70% or min",
		"'%s' is no budget", text);
}

static double unit(const char *s)
{
	static const struct {
		const char *name;
		double bytes;
	} units[] = {{"", 1}, {"B", 1}, {"kB", 1e3}, {"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9},
		{"TB", 1e12}, {"KiB", 0x1p10}, {"MiB", 0x1p20}, {"GiB", 0x1p30}, {"TiB", 0x1p40},
		{"K", 0x1p10}, {"M", 0x1p20}, {"G", 0x1p30}, {"T", 0x1p40}};
	for (size_t i = 0; i < sizeof units / sizeof *units; i++)
		if (!strcasecmp(s, units[i].name))
			return units[i].bytes;
	return 0;
}

enum status plan_budget_parse(const char *text, struct plan_budget *out, struct diag *d)
{
	*out = (struct plan_budget){BUDGET_NONE, INT64_MAX, 0};
	if (!text)
		return ST_OK;
	if (!strcmp(text, "min")) {
		out->kind = BUDGET_MIN;
		return ST_OK;
	}
	char *end;
	errno = 0;
	double v = strtod(text, &end);
	if (end == text || errno || !isfinite(v) || v < 0)
		return bad(text, d);
	if (!strcmp(end, "%")) {
		out->kind = BUDGET_PERCENT;
		out->percent = v;
		return v <= 1000 ? ST_OK : bad(text, d);
	}
	while (*end == ' ')
		end++;
	double bytes = v * unit(end);
	if (unit(end) == 0 || bytes >= 0x1p62)
		return bad(text, d);
	if (v > 0 && (bytes < 1 || (*end == '\0' && v != floor(v)))) {
		char hint[96];
		snprintf(hint, sizeof hint, "a share is written %g%%, a size with its unit: %gGiB",
			100 * v, v);
		return diag_fail(d, ST_USAGE, NULL, v <= 10 ? hint : NULL,
			"'%s' is no whole number of bytes, as a budget is", text);
	}
	out->kind = BUDGET_BYTES;
	/* whole bytes are read as such: a double holds 53 bits only */
	char *whole;
	errno = 0;
	long long exact = strtoll(text, &whole, 10);
	out->bytes = *whole == '\0' && !errno ? exact : (int64_t)bytes;
	return ST_OK;
}

enum status plan_budget_bytes(struct arena *a, const struct problem *p,
	const struct plan_options *o, const struct plan_budget *budget, int64_t *bytes,
	struct diag *d)
{
	int64_t resident, keep_all, proven;
	*bytes = budget->bytes;
	switch (budget->kind) {
	case BUDGET_NONE:
		*bytes = INT64_MAX;
		break;
	case BUDGET_BYTES:
		break;
	case BUDGET_PERCENT:
		TRY(plan_range(a, p, o, &resident, &keep_all, d));
		/* rounded up: 100% is always met */
		*bytes = resident +
			 (int64_t)ceil((double)(keep_all - resident) * (budget->percent / 100));
		break;
	case BUDGET_MIN:
		TRY(plan_minimum(a, p, o, bytes, &proven, d));
		break;
	}
	return ST_OK;
}
