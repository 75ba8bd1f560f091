/* What a plan makes of loops that are one node. */
#include <inttypes.h>

#include "api/report.h"
#include "api/safe_put.h"
#include "planner/problem/loop_facts.h"

static const char indent[] = "            ";

static void print_kept(FILE *f, const struct problem_loop *l)
{
	char b[24];
	bytes_human(l->kept_bytes, b);
	switch (l->keeps) {
	case KEEPS_INSIDE:
		fprintf(f, "%skept: values inside turns, %s; no turn runs again\n", indent, b);
		break;
	case KEEPS_CARRIES:
		fprintf(f, "%skept: carries after each turn, %s; a turn back begins with it\n",
			indent, b);
		break;
	case KEEPS_PLACES:
		fprintf(f,
			"%skept: carries in %" PRId64
			" place%s, %s; a turn back begins with it, and\n"
			"%s%" PRId64 " turns go forward again, the least for so many places "
			"(Revolve)\n",
			indent, l->places, l->places == 1 ? "" : "s", b, indent, l->again);
		break;
	default:
		fprintf(f, "%skept: nothing\n", indent);
	}
}

void report_loops(FILE *f, const struct problem *p, const struct plan_facts *x)
{
	bool any = false;
	char b[24];
	for (int o = 0; o < p->nop; o++) {
		const struct problem_loop *l = p->op[o].loop;
		if (!l || !x->runs[o])
			continue;
		if (!any)
			fputs("loops, one turn of each planned\n", f);
		any = true;
		fprintf(f, "  %-8s  ", phase_name[p->op[o].phase]);
		name_put(f, p->op[o].name, 30, false);
		fprintf(f, ": %s%" PRId64 " turns, %s for one", l->ends_early ? "at most " : "",
			l->turns, bytes_human(l->turn_bytes, b));
		if (x->runs[o] > 1)
			fprintf(f, "; run %d times", x->runs[o]);
		fputc('\n', f);
		if (p->op[o].phase == PHASE_BACKWARD)
			print_kept(f, l);
	}
}

enum status report_loops_json(
	FILE *f, const struct problem *p, const struct plan_facts *x, struct diag *d)
{
	struct text t = {0};
	int n = 0;
	for (int o = 0; o < p->nop; o++) {
		if (!p->op[o].loop)
			continue;
		fputs(n++ ? ",{\"name\":" : ",\"loops\":[{\"name\":", f);
		safe_json(f, p->op[o].name);
		text_add(&t, ",\"op\":%" PRId64 ",\"phase\":\"%s\",\"runs\":%d,", p->op[o].id,
			phase_name[p->op[o].phase], x->runs[o]);
		loop_print(p->op[o].loop, false, &t);
		fprintf(f, "%s}", t.failed ? "" : t.s);
		if (t.failed)
			break;
		t.len = 0;
	}
	fputs(n ? "]" : "", f);
	const bool failed = t.failed;
	text_free(&t);
	return failed ? diag_nomem(d) : ST_OK;
}
