/* stint show DIR | PLAN.json | MODEL.onnx | LOG ... */
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/length_folders.h"
#include "api/plan_page.h"
#include "api/report.h"
#include "api/safe_put.h"
#include "api/shown.h"
#include "cli/args.h"
#include "cli/calibration.h"
#include "cli/cli.h"
#include "cli/command_options.h"
#include "cli/show_groups.h"
#include "cli/show_log.h"
#include "cli/show_onnx.h"
#include "runtime/safetensors.h"
#include "view/view.h"

enum { STEPS_SHOWN = 200 }; /* a longer schedule is shown when asked for */

/* Weights that DIR has in fewer bytes. */
static enum status print_stored(struct arena *a, const char *plan_path, struct diag *d)
{
	enum { SHOWN = 20 };
	const size_t prefix = strlen(REPORT_STORED);
	const char *path = shown_beside(a, plan_path, "weights.safetensors"), *key, *value;
	char message[SAFETENSORS_MESSAGE];
	struct safetensors *f;
	int n = 0;
	if (!path)
		return diag_nomem(d);
	if (access(path, R_OK) != 0 || safetensors_open_header(&f, path, message) != 0)
		return ST_OK; /* a plan without a step */
	for (int i = 0; safetensors_note_at(f, i, &key, &value); i++) {
		const char *called = strchr(value, ' ');
		if (strncmp(key, REPORT_STORED, prefix) != 0 || !called)
			continue;
		if (n++ == 0)
			printf("weights that are stored small\n");
		if (n <= SHOWN) {
			fputs("  ", stdout);
			name_put(stdout, called + 1, 53, true);
			printf(" %.*s\n", called - value < 8 ? (int)(called - value) : 8, value);
		}
	}
	if (n > SHOWN)
		printf("  and %d more\n", n - SHOWN);
	safetensors_close(f);
	return ST_OK;
}

static enum status print_plan(struct arena *a, const struct problem *p, const struct plan *plan,
	bool all_steps, enum report_place place, struct diag *d)
{
	if (all_steps || plan->nstep <= STEPS_SHOWN)
		TRY(report_schedule(stdout, a, p, plan, d));
	else
		printf("%d steps: --steps lists them\n", plan->nstep);
	TRY(report_plan(stdout, a, p, plan, d));
	TRY(report_details(stdout, a, p, plan, d));
	TRY(report_kinds(stdout, a, p, plan, d));
	report_needs(stdout, plan->arena_bytes, place);
	return ST_OK;
}

/* What was made, unless that failed. */
static enum status save(struct text *t, const char *path, enum status st, struct diag *d)
{
	if (st == ST_OK)
		st = text_save(t, path, d);
	text_free(t);
	return st;
}

static enum status write_page(const char *path, struct arena *a, const struct problem *p,
	const struct plan *plan, struct onlooker *onlooker, struct diag *d)
{
	struct text t = {0};
	return save(&t, path, plan_page(&t, a, p, plan, onlooker, d), d);
}

static enum status write_trace(const char *path, struct arena *a, const struct problem *p,
	const struct plan *plan, struct diag *d)
{
	struct text t = {0};
	return save(&t, path, view_trace(&t, a, p, plan, d), d);
}

static enum status write_onnx(const char *to, struct arena *a, const char *plan_path,
	const struct shown *s, struct diag *d)
{
	const char *model = shown_beside(a, plan_path, "model.onnx");
	return model ? show_onnx(to, model, a, s->problem, s->plan, d) : diag_nomem(d);
}

/* What would be ignored is refused: of a plan all but what shows it, of a model what shows a plan
 * or writes. Compile's options for a model may be given with it: some change what is shown. */
static enum status check_given(const struct options *o, bool model, struct diag *d)
{
	static const char *const of_plan[] = {
		"html", "trace", "onnx", "steps", "json", "graph", NULL};
	static const char *const not_of_model[] = {"html", "trace", "onnx", "steps", "graph",
		"output", "dump-graph", "no-build", NULL};
	const char *bad = model ? NULL : options_but(o, of_plan);
	for (int i = 0; model && !bad && not_of_model[i]; i++)
		bad = options_given(o, not_of_model[i]) ? not_of_model[i] : NULL;
	if (!bad)
		return ST_OK;
	return diag_fail(d, ST_USAGE, &(struct where){.file = o->compile.model},
		model ? "name a plan or a compiled folder" : "`stint plan` and `compile` take it",
		"--%s does nothing for %s", bad, model ? "a model" : "a plan");
}

static enum status show_plan(struct arena *a, const char *graph, const char *path,
	const struct options *o, struct activity *at, struct diag *d)
{
	struct shown s;
	bool json = o->json != 0;
	TRY(shown_read(a, graph, path, &s, d));
	if (!s.plan->feasible && o->html)
		return diag_fail(d, ST_BUDGET, &(struct where){.file = path}, NULL,
			"--html: there is no plan in it to draw");
	if (!s.plan->feasible) {
		activity_end(at);
		if (json)
			printf("{\"feasible\":false,\"min_bytes_known\":%lld,"
			       "\"min_bytes_proven\":%lld}\n",
				(long long)s.plan->min_bytes_known,
				(long long)s.plan->min_bytes_proven);
		else
			printf("no plan within the budget; smallest budget met: %lld bytes; proven "
			       "lower "
			       "bound: %lld bytes\n",
				(long long)s.plan->min_bytes_known,
				(long long)s.plan->min_bytes_proven);
		return ST_OK;
	}
	activity_now(at, "planning for other budgets");
	if (o->html)
		TRY(write_page(o->html, a, s.problem, s.plan, o->compile.onlooker, d));
	if (o->trace)
		TRY(write_trace(o->trace, a, s.problem, s.plan, d));
	if (o->onnx)
		TRY(write_onnx(o->onnx, a, path, &s, d));
	activity_end(at);
	if (json)
		return report_json(stdout, a, s.problem, s.plan, NULL, d);
	if (o->html || o->trace || o->onnx)
		return ST_OK;
	TRY(print_stored(a, path, d));
	TRY(print_plan(a, s.problem, s.plan, o->steps != 0, s.place, d));
	/* a folder's step that may call the library */
	const char *library = shown_beside(a, path, "stint_rt_library.c");
	if (!library)
		return diag_nomem(d);
	return access(library, R_OK) == 0
		       ? calibration_tell(a, s.problem, s.plan, o->compile.threads, d)
		       : ST_OK;
}

static bool ends_with(const char *s, const char *end)
{
	size_t n = strlen(s), m = strlen(end);
	return n >= m && !strcmp(s + n - m, end);
}

/* Where the steps for other lengths are. */
static enum status tell_lengths(struct arena *a, const char *dir, struct diag *d)
{
	struct length_folders x;
	TRY(length_folders_read(a, dir, &x, d));
	for (int i = 0; i < x.n; i++) {
		const char *folder = length_folder(a, dir, x.length[i]);
		if (!folder)
			return diag_nomem(d);
		printf("in the same arena, for '");
		safe_put(stdout, x.dim);
		printf("' of %" PRId64 ": ", x.length[i]);
		safe_put(stdout, folder);
		printf("\n");
	}
	return ST_OK;
}

static enum status show(struct pipeline *p, struct options *o, struct activity *at)
{
	struct compile_options *c = &o->compile;
	struct stat st;
	if (!c->model)
		return diag_fail(p->diag, ST_USAGE, NULL,
			"`stint show DIR`, PLAN.json, MODEL.onnx or LOG.jsonl", "nothing to show");
	const bool folder = stat(c->model, &st) == 0 && S_ISDIR(st.st_mode);
	TRY(check_given(o, !folder && !ends_with(c->model, ".json"), p->diag));
	if (folder) {
		char *graph = arena_printf(p->arena, "%s/graph.json", c->model);
		char *plan = arena_printf(p->arena, "%s/plan.json", c->model);
		if (!graph || !plan)
			return diag_nomem(p->diag);
		TRY(show_plan(p->arena, graph, plan, o, at, p->diag));
		return o->json ? ST_OK : tell_lengths(p->arena, c->model, p->diag);
	}
	if (ends_with(c->model, ".json")) {
		const char *graph = c->graph ? c->graph
					     : shown_beside(p->arena, c->model, "graph.json");
		return graph ? show_plan(p->arena, graph, c->model, o, at, p->diag)
			     : diag_nomem(p->diag);
	}
	c->import.read = IMPORT_READ_ANY;
	c->import.unbound = 1; /* to look at a model nobody has to say the batch */
	c->guess = 1;
	TRY(pipeline_import(p));
	const bool groups = !o->json && (c->group || c->no_decay_1d);
	if (groups)
		TRY(pipeline_optimizer(p));
	activity_end(at);
	TRY((o->json ? report_model_json : report_model)(stdout, p->imported));
	return groups ? show_groups(stdout, p->imported, &p->optimizer) : ST_OK;
}

enum status cmd_show(int argc, const char **argv, struct diag *d)
{
	if (show_log_meant(argc, argv))
		return show_log(argc, argv, d);
	return options_command(COMMAND_SHOW, argc, argv, d, show);
}
