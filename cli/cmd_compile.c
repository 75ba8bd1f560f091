/* stint compile MODEL.onnx --loss L --optimizer O [--budget SIZE] -o DIR */
#include "cli/cli.h"
#include "cli/folder.h"
#include "cli/load.h"
#include "cli/pipeline.h"
#include "cli/report.h"

/* Where a GPU is, its kernels are compiled and the libraries' algorithms chosen now, and kept
 * (STINT_CACHE), not when the first step begins. */
static void prepare_device(struct pipeline *p)
{
	struct diag quiet = {.put = NULL};
	struct loaded l;
	const struct where w = {.file = p->o->out};
	if (load_step(p->arena, p->o->out, &l, &quiet) == ST_OK)
		diag_note(p->diag, &w, NULL, "opened on this machine's GPU: ready to run");
	else if (l.code != STINT_NO_DEVICE)
		diag_warn(p->diag, &w, NULL, "does not open on this machine's GPU: %s",
			l.step   ? l.message(l.step)
			: l.code ? "out of memory"
				 : "its step.so cannot be loaded");
	load_close(&l);
}

static enum status compile(struct pipeline *p)
{
	const struct options *o = p->o;
	struct folder folder;
	if (!o->out || !*o->out)
		return diag_fail(
			p->diag, ST_USAGE, NULL, "for example -o build-dir", "no -o DIR given");
	/* what would be refused at the end is refused now */
	TRY(folder_check(p->arena, o->out, o->force, &folder, p->diag));
	if (o->model)
		TRY(import_copy_fits(o->model, p->diag));
	TRY(pipeline_run(p));
	TRY(output_write(p, o->out));
	if (p->target.cuda && !o->no_build)
		prepare_device(p);
	const struct graph_problem *gp = p->train ? &p->train_problem : &p->eval_problem;
	const struct plan *plan = p->train ? p->train_plan : p->eval_plan;
	if (o->json)
		return report_json(stdout, p->arena, gp->problem, plan, p->diag);
	TRY(report_plan(stdout, p->arena, gp->problem, plan, p->diag));
	report_needs(stdout, p->arena_bytes, p->target.cuda);
	return ST_OK;
}

enum status cmd_compile(int argc, const char **argv, struct diag *d)
{
	struct options o;
	bool help;
	struct pipeline p = {.arena = arena_new(), .diag = d, .o = &o};
	if (!p.arena)
		return diag_nomem(d);
	enum status st = options_parse(p.arena, COMMAND_COMPILE, argc, argv, &o, &help, d);
	if (st == ST_OK && !help)
		st = compile(&p);
	arena_free(p.arena);
	return st;
}
