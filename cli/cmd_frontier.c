/* stint frontier MODEL.onnx ... | --graph G.json [--points N] [--json] [-o FILE.json] [--svg FILE]
 */
#include <inttypes.h>
#include <string.h>

#include "api/frontier_parts.h"
#include "api/report.h"
#include "api/safe_put.h"
#include "cli/cli.h"
#include "cli/command_options.h"

static void print_row(const struct frontier *f, int i)
{
	const struct problem *p = f->problem;
	const struct view_point *x = &f->view.point[i];
	double once = f->view.once;
	char b[24];
	int ops, runs;
	printf("%6.1f%% %12" PRId64, frontier_percent(&f->view, x->budget), x->budget);
	if (!x->feasible) {
		printf(" %10s\n", "not met");
		return;
	}
	printf(" %10s", bytes_human(x->arena, b));
	if (p->costs)
		printf(" %9.4g", x->cost / 1e3);
	printf(" %8.4f", once > 0 ? x->cost / once : 1);
	if (x->bound >= 0)
		printf(" %8.4f %6.2f%%", once > 0 ? x->bound / once : 1,
			x->cost > 0 ? 100 * (x->cost - x->bound) / x->cost : 0);
	else
		printf(" %8s %7s", "none", "");
	frontier_again(f->way[i]->problem, f->plan[i], &ops, &runs);
	printf(" %5d %5d%s%s\n", ops, runs, f->loops ? "  " : "", f->loops ? f->way[i]->keeps : "");
}

static void print_table(const struct frontier *f)
{
	const struct problem *p = f->problem;
	char a[24];
	report_budgets(stdout, f->view.known_bytes, f->view.proven_bytes, f->view.keep_all);
	printf("%7s %12s %10s", "share", "budget", "arena");
	if (p->costs)
		printf(" %9s", "ms");
	printf(" %8s %8s %7s %5s %5s%s\n", "x one", "bound", "gap", "ops", "extra",
		f->loops ? "  loops" : "");
	printf("%7s %12s %10s", "", "bytes", "");
	if (p->costs)
		printf(" %9s", "predicted");
	printf(" %8s %8s %7s %5s %5s%s\n", "pass", "x", "at most", "again", "runs",
		f->loops ? "  keep" : "");
	for (int i = 0; i < f->view.npoint; i++)
		print_row(f, i);
	printf("100%% keeps everything; 0%% would be what is resident: %s\n",
		bytes_human(f->view.resident, a));
}

static void print_part(const struct problem *p, const struct frontier *f, int i)
{
	const struct view_point *x = &f->view.part[i];
	const struct frontier_part *part = &f->part[i];
	const double once = f->view.once;
	char b[24];
	printf("%6.1f%% %12" PRId64 " %10s", frontier_percent(&f->view, x->budget), x->budget,
		bytes_human(x->arena, b));
	if (p->costs)
		printf(" %9.4g", x->cost / 1e3);
	printf(" %8.4f", once > 0 ? x->cost / once : 1);
	if (part->alone >= 0)
		printf(" %8.4f", once > 0 ? part->alone / once : 1);
	else
		printf(" %8s", "not met");
	printf(" %7" PRId64 " %6" PRId64 "\n", part->parts.shards,
		part->parts.region.slices ? part->parts.region.slices : 1);
}

/* How to ask for the regions of the table, each once. */
static void print_regions(const struct frontier *f)
{
	for (int i = 0; i < f->view.npart; i++) {
		const struct parts *x = &f->part[i].parts;
		bool told = !x->region.slices;
		for (int k = 0; k < i && !told; k++)
			told = f->part[k].parts.region.slices == x->region.slices &&
			       !strcmp(f->part[k].parts.until, x->until);
		if (told)
			continue;
		printf("%" PRId64 " slices: --split '%" PRId64 ":", x->region.slices,
			x->region.slices);
		safe_put(stdout, x->until);
		puts("'");
	}
}

static void print_parts(const struct problem *p, const struct frontier *f)
{
	const int last = f->view.npart - 1;
	char b[24];
	if (!f->view.npart)
		return;
	printf("\nwith the batch in parts\n%7s %12s %10s", "share", "budget", "arena");
	if (p->costs)
		printf(" %9s", "ms");
	printf(" %8s %8s %7s %6s\n%7s %12s %10s", "x one", "whole", "micro-", "slices", "", "bytes",
		"");
	if (p->costs)
		printf(" %9s", "predicted");
	printf(" %8s %8s %7s\n", "pass", "batch", "batches");
	for (int i = 0; i <= last; i++)
		print_part(p, f, i);
	printf("smallest budget met: %" PRId64 " bytes (%s)\n", f->view.part[last].budget,
		bytes_human(f->view.part[last].budget, b));
	print_regions(f);
}

static enum status tell(struct pipeline *p, const struct options *o, struct frontier *f)
{
	struct text json = {0}, svg = {0};
	frontier_json(f, &json);
	if (json.failed)
		return diag_nomem(p->diag);
	if (!o->json) {
		print_table(f);
		print_parts(f->problem, f);
	}
	enum status st = o->out ? text_save(&json, o->out, p->diag) : ST_OK;
	if (st == ST_OK && o->svg) {
		st = view_frontier_svg(&svg, &f->view, p->diag);
		if (st == ST_OK)
			st = text_save(&svg, o->svg, p->diag);
	}
	if (st == ST_OK && o->json)
		fwrite(json.s, 1, json.len, stdout);
	text_free(&json);
	text_free(&svg);
	return st;
}

/* The whole batch: what p->o lets a budget choose from is left away. */
static enum status whole_batch(struct pipeline *p, struct problem **out)
{
	struct compile_options *o = ARENA_NEW(p->arena, struct compile_options);
	struct pipeline *whole = ARENA_NEW(p->arena, struct pipeline);
	if (!o || !whole)
		return diag_nomem(p->diag);
	*o = *p->o;
	*whole = *p;
	whole->o = o;
	if (o->micro_batch == MICRO_BATCH_AUTO)
		o->micro_batch = 0;
	o->split = 0;
	o->split_until = NULL;
	return pipeline_problem(whole, out);
}

static enum status frontier(struct pipeline *p, struct options *o, struct activity *at)
{
	struct problem *problem;
	struct loop_ways ways;
	struct frontier f;
	o->compile.guess = 1;
	const bool training = p->o->model && !(p->o->loss && !strcmp(p->o->loss[0], "none"));
	const bool parts = training && !p->o->split_until &&
			   (p->o->split ||
				   (p->o->micro_batch == MICRO_BATCH_AUTO && p->o->import.batch));
	TRY(frontier_options_check(o, p->diag));
	TRY(parts ? whole_batch(p, &problem) : pipeline_problem(p, &problem));
	struct plan_options options = pipeline_options(p->o);
	TRY(loop_ways_make(p, problem, &ways));
	TRY(frontier_make(p->arena, &ways, &options, o->points, &f, p->diag));
	if (parts)
		TRY(frontier_parts(p, o->points, &f));
	activity_end(at);
	return tell(p, o, &f);
}

enum status cmd_frontier(int argc, const char **argv, struct diag *d)
{
	return options_command(COMMAND_FRONTIER, argc, argv, d, frontier);
}
