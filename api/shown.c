#include "api/shown.h"

#include <string.h>
#include <unistd.h>

char *shown_beside(struct arena *a, const char *path, const char *name)
{
	const char *slash = strrchr(path, '/');
	return slash ? arena_printf(a, "%.*s/%s", (int)(slash - path), path, name)
		     : arena_strdup(a, name);
}

static enum status place_of(
	struct arena *a, const char *plan, enum report_place *place, struct diag *d)
{
	const char *kernels = shown_beside(a, plan, "kernels.cu"),
		   *step = shown_beside(a, plan, "step.c"),
		   *library = shown_beside(a, plan, "stint_lib.h");
	if (!kernels || !step || !library)
		return diag_nomem(d);
	*place = access(kernels, F_OK) == 0                              ? REPORT_GPU
		 : access(step, F_OK) == 0 && access(library, F_OK) != 0 ? REPORT_PORTABLE
									 : REPORT_LIBRARY;
	return ST_OK;
}

enum status shown_read(
	struct arena *a, const char *graph, const char *plan, struct shown *out, struct diag *d)
{
	char *text;
	size_t len;
	TRY(place_of(a, plan, &out->place, d));
	TRY(problem_read(a, graph, &out->problem, d));
	TRY(file_read(a, plan, &text, &len, d));
	TRY(plan_parse(a, out->problem, text, len, plan, &out->plan, d));
	return out->plan->feasible ? plan_check(out->problem, out->plan,
					     out->place == REPORT_GPU ? 256 : 64, plan, d)
				   : ST_OK;
}
