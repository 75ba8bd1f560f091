/* stint compile MODEL.onnx --loss L --optimizer O [--budget SIZE] -o DIR */
#include "api/output.h"
#include "api/report.h"
#include "cli/calibration.h"
#include "cli/cli.h"
#include "cli/command_options.h"
#include "cli/interrupt.h"

static bool asked(void *user)
{
	(void)user;
	return interrupt_asked();
}

/* A signal ends it with nothing half-written. */
static enum status write_folder(struct pipeline *p, const struct options *o)
{
	interrupt_hold();
	p->o->onlooker->stop = asked;
	const enum status st = output_write(p, o->out, o->force, !o->no_build);
	p->o->onlooker->stop = NULL;
	interrupt_release();
	return st;
}

static enum status compile(struct pipeline *p, struct options *o, struct activity *at)
{
	TRY(compile_folder(p, o, write_folder));
	activity_end(at);
	if (o->json)
		return report_json(stdout, p->arena, pipeline_problem_shown(p)->problem,
			pipeline_plan_shown(p), p, p->diag);
	TRY(report_compiled(stdout, p));
	return p->o->portable ? ST_OK
			      : calibration_tell(p->arena, pipeline_problem_shown(p)->problem,
					pipeline_plan_shown(p), p->o->threads, p->diag);
}

enum status cmd_compile(int argc, const char **argv, struct diag *d)
{
	return options_command(COMMAND_COMPILE, argc, argv, d, compile);
}
