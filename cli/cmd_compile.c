/* stint compile MODEL.onnx --loss L --optimizer O [--budget SIZE] -o DIR */
#include "cli/cli.h"
#include "cli/cross.h"
#include "cli/folder.h"
#include "cli/load.h"
#include "cli/output.h"
#include "cli/report.h"

/* Where a GPU is, its kernels are compiled and the libraries' algorithms chosen now, and kept
 * (STINT_CACHE), not when the first step begins. */
static void prepare_device(struct pipeline *p, const char *dir)
{
	struct diag quiet = {.put = NULL};
	struct loaded l;
	const struct where w = {.file = dir};
	if (load_step(p->arena, dir, &l, &quiet) == ST_OK)
		diag_note(p->diag, &w, NULL, "opened on this machine's GPU: ready to run");
	else if (l.code != STINT_NO_DEVICE)
		diag_warn(p->diag, &w, NULL, "does not open on this machine's GPU: %s",
			l.step   ? l.message(l.step)
			: l.code ? "out of memory"
				 : "its step.so cannot be loaded");
	load_close(&l);
}

static enum status compile(struct pipeline *p, struct options *o)
{
	struct folder folder;
	if (!o->out || !*o->out)
		return diag_fail(
			p->diag, ST_USAGE, NULL, "for example -o build-dir", "no -o DIR given");
	/* what would be refused at the end is refused now */
	TRY(folder_check(p->arena, o->out, o->force, &folder, p->diag));
	if (p->o->cross && !o->no_build)
		TRY(cross_compiler(p->arena, p->o->cross, p->diag));
	if (p->o->model)
		TRY(import_copy_fits(p->o->model, p->diag));
	TRY(pipeline_run(p));
	activity_now(&o->at, o->no_build ? "writing" : "writing, and compiling with make");
	TRY(output_write(p, o));
	activity_now(&o->at, "opening on the GPU");
	if (p->target.cuda && !o->no_build)
		prepare_device(p, o->out);
	activity_end(&o->at);
	const struct problem *problem = pipeline_problem_shown(p)->problem;
	const struct plan *plan = pipeline_plan_shown(p);
	if (o->json)
		return report_json(stdout, p->arena, problem, plan, p, p->diag);
	TRY(report_plan(stdout, p->arena, problem, plan, p->diag));
	report_trials(stdout, p);
	report_needs(stdout, p->plans.arena_bytes,
		p->target.cuda       ? REPORT_GPU
		: p->target.portable ? REPORT_PORTABLE
				     : REPORT_LIBRARY);
	return ST_OK;
}

enum status cmd_compile(int argc, const char **argv, struct diag *d)
{
	return options_command(COMMAND_COMPILE, argc, argv, d, compile);
}
