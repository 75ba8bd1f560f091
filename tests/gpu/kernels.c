/* kernels MODEL.onnx OPTIONS... -o DIR: a step for a GPU, as `stint compile --target cuda` will
 * write it: kernels.cu, and step.c, which launches them. The options are those of compile. All
 * products and convolutions are library calls: library.c stands in for the GPU's. */
#include <stdio.h>

#include "api/output.h"
#include "cli/command_options.h"
#include "graph/cost.h"

static void put(void *user, enum diag_level level, const struct where *w, const char *message,
	const char *hint)
{
	(void)user, (void)hint;
	if (level == DIAG_ERROR)
		fprintf(stderr, "%s: %s\n", w && w->node ? w->node : "", message);
}

static int64_t workspace(void *user, const struct lib_call *call)
{
	(void)user, (void)call;
	return 256;
}

static enum status write_step(struct pipeline *p, const struct options *o)
{
	TRY(pipeline_import(p));
	p->target.cuda = true;
	p->target.portable = false;
	p->target.library_workspace = workspace;
	p->target.block = BLOCK_ALL;
	TRY(pipeline_graphs(p));
	TRY(pipeline_problems(p));
	TRY(pipeline_plan(p));
	return output_write(p, o->out, o->force, !o->no_build);
}

int main(int argc, char **argv)
{
	struct diag d = {.put = put};
	struct options o;
	struct pipeline p = {.arena = arena_new(), .diag = &d, .o = &o.compile};
	if (!p.arena)
		return 2;
	enum status st = options_parse(p.arena, COMMAND_COMPILE, argc, (const char **)argv, &o, &d);
	if (st == ST_OK && !o.out)
		st = ST_USAGE;
	if (st == ST_OK)
		st = write_step(&p, &o);
	arena_free(p.arena);
	return st == ST_OK ? 0 : 1;
}
