/* stint frontier MODEL.onnx ... | --graph G.json [--points N] [--json] [-o FILE.json] [--svg FILE]
 */
#include <inttypes.h>

#include "api/frontier_points.h"
#include "cli/cli.h"
#include "cli/command_options.h"

static void print_row(const struct problem *p, const struct frontier *f, int i)
{
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
	frontier_again(p, f->plan[i], &ops, &runs);
	printf(" %5d %5d\n", ops, runs);
}

static void print_table(const struct problem *p, const struct frontier *f)
{
	char a[24], b[24];
	printf("%7s %12s %10s", "share", "budget", "arena");
	if (p->costs)
		printf(" %9s", "ms");
	printf(" %8s %8s %7s %5s %5s\n", "x one", "bound", "gap", "ops", "extra");
	printf("%7s %12s %10s", "", "bytes", "");
	if (p->costs)
		printf(" %9s", "predicted");
	printf(" %8s %8s %7s %5s %5s\n", "pass", "x", "at most", "again", "runs");
	for (int i = 0; i < f->view.npoint; i++)
		print_row(p, f, i);
	printf("100%% keeps everything: %s; 0%% would be what is resident: %s\n",
		bytes_human(f->view.keep_all, a), bytes_human(f->view.resident, b));
	printf("smallest budget met: %" PRId64 " bytes (%s); no plan needs less than %" PRId64
	       " bytes (%s)\n",
		f->view.known_bytes, bytes_human(f->view.known_bytes, a), f->view.proven_bytes,
		bytes_human(f->view.proven_bytes, b));
}

static enum status save(struct text *t, const char *path, struct diag *d)
{
	enum status st = path ? text_save(t, path, d) : ST_OK;
	text_free(t);
	return st;
}

static enum status tell(struct pipeline *p, const struct options *o, const struct problem *problem,
	struct frontier *f)
{
	struct text json = {0}, svg = {0};
	frontier_json(problem, f, &json);
	if (json.failed)
		return diag_nomem(p->diag);
	if (o->json)
		fwrite(json.s, 1, json.len, stdout);
	else
		print_table(problem, f);
	TRY(save(&json, o->out, p->diag));
	if (!o->svg)
		return ST_OK;
	TRY(view_frontier_svg(&svg, &f->view, p->diag));
	return save(&svg, o->svg, p->diag);
}

static enum status frontier(struct pipeline *p, struct options *o, struct activity *at)
{
	struct problem *problem;
	struct frontier f;
	TRY(frontier_options_check(o, p->diag));
	TRY(pipeline_problem(p, &problem));
	struct plan_options options = pipeline_options(p->o);
	TRY(frontier_make(p->arena, problem, &options, o->points, &f, p->diag));
	activity_end(at);
	return tell(p, o, problem, &f);
}

enum status cmd_frontier(int argc, const char **argv, struct diag *d)
{
	return options_command(COMMAND_FRONTIER, argc, argv, d, frontier);
}
