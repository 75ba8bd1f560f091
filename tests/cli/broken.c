/* stint with a planner that errs, as BROKEN says: `peak`, `place`, `order` or `memory`. */
#include <stdlib.h>
#include <string.h>

#include "planner/plan.h"

enum status __real_plan_make(struct arena *a, const struct problem *p, const struct plan_options *o,
	struct plan **out, struct diag *d);
enum status __wrap_plan_make(struct arena *a, const struct problem *p, const struct plan_options *o,
	struct plan **out, struct diag *d);

enum status __wrap_plan_make(struct arena *a, const struct problem *p, const struct plan_options *o,
	struct plan **out, struct diag *d)
{
	const char *how = getenv("BROKEN");
	enum status st = __real_plan_make(a, p, o, out, d);
	if (st != ST_OK || !how)
		return st;
	if (!strcmp(how, "peak"))
		(*out)->peak_bytes--;
	if (!strcmp(how, "place"))
		(*out)->buffer[(*out)->nbuffer - 1].offset = 0;
	if (!strcmp(how, "order"))
		return diag_fail(
			d, ST_INTERNAL, NULL, NULL, "the planner made a sequence that cannot run");
	return !strcmp(how, "memory") ? diag_nomem(d) : ST_OK;
}
