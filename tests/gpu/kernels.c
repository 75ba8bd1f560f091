/* kernels OUT.cu MODEL.onnx OPTIONS...: the CUDA text of a model's kernels, as `stint compile
 * --target cuda` will write it. The options are those of compile. */
#include <stdio.h>

#include "cli/pipeline.h"

static void put(void *user, enum diag_level level, const struct where *w, const char *message,
	const char *hint)
{
	(void)user, (void)hint;
	if (level == DIAG_ERROR)
		fprintf(stderr, "%s: %s\n", w && w->node ? w->node : "", message);
}

/* All products and convolutions are the libraries'. */
static int64_t workspace(void *user, const struct lib_call *call)
{
	(void)user, (void)call;
	return 0;
}

static enum status write_kernels(struct pipeline *p, const char *path)
{
	struct text t = {0};
	TRY(pipeline_import(p));
	p->target.cuda = true;
	p->target.portable = false;
	p->target.library_workspace = workspace;
	p->target.block = 0;
	TRY(pipeline_graphs(p));
	TRY(pipeline_problems(p));
	TRY(pipeline_plan(p));
	const struct codegen_input in = {.name = p->name,
		.model_file = p->name,
		.train = p->train_problem,
		.eval = p->eval_problem,
		.train_plan = p->train_plan,
		.eval_plan = p->eval_plan,
		.isa_flags = ""};
	enum status st = codegen_kernels(&in, &t, p->diag);
	if (st == ST_OK)
		st = text_save(&t, path, p->diag);
	text_free(&t);
	return st;
}

int main(int argc, char **argv)
{
	struct diag d = {.put = put};
	struct options o;
	bool help;
	struct pipeline p = {.arena = arena_new(), .diag = &d, .o = &o};
	if (argc < 3 || !p.arena)
		return 2;
	const char *path = argv[1];
	argv[1] = argv[0];
	enum status st = options_parse(
		p.arena, COMMAND_COMPILE, argc - 1, (const char **)argv + 1, &o, &help, &d);
	if (st == ST_OK)
		st = write_kernels(&p, path);
	arena_free(p.arena);
	return st == ST_OK ? 0 : 1;
}
