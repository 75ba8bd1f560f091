/* kernels MODEL.onnx OPTIONS... -o DIR: a step for a GPU, as `stint compile --target cuda` will
 * write it: kernels.cu, and step.c, which launches them. The options are those of compile. Library
 * calls are planned as oneDNN's, which stands in for the GPU's libraries. */
#include <stdio.h>

#include "cli/pipeline.h"
#include "runtime/stint_lib.h"

static void put(void *user, enum diag_level level, const struct where *w, const char *message,
	const char *hint)
{
	(void)user, (void)hint;
	if (level == DIAG_ERROR)
		fprintf(stderr, "%s: %s\n", w && w->node ? w->node : "", message);
}

static int64_t workspace(void *user, const struct lib_call *call)
{
	const struct target *t = user;
	return stint_lib_workspace(call->kind, call->p, t->threads);
}

static enum status save(struct pipeline *p, const char *name, const struct text *t)
{
	const char *path = arena_printf(p->arena, "%s/%s", p->o->out, name);
	return path ? text_save(t, path, p->diag) : diag_nomem(p->diag);
}

static enum status write_step(struct pipeline *p)
{
	struct text kernels = {0};
	char identity[96];
	TRY(pipeline_import(p));
	p->target.cuda = true;
	p->target.portable = false;
	p->target.library_workspace = workspace;
	p->target.user = &p->target;
	TRY(pipeline_graphs(p));
	TRY(pipeline_problems(p));
	TRY(pipeline_plan(p));
	TRY(output_write(p, p->o->out));
	const struct codegen_input in = {.name = p->name,
		.model_file = p->name,
		.train = p->train_problem,
		.eval = p->eval_problem,
		.train_plan = p->train_plan,
		.eval_plan = p->eval_plan,
		.loss_name = p->loss.op ? p->loss.op->loss : NULL,
		.loss_options = p->o->loss,
		.library_identity = stint_lib_identity(p->target.threads, identity),
		.isa_flags = "",
		.lr = p->optimizer.lr};
	enum status st = codegen_kernels(&in, &kernels, p->diag);
	if (st == ST_OK)
		st = save(p, "kernels.cu", &kernels);
	text_free(&kernels);
	return st;
}

int main(int argc, char **argv)
{
	struct diag d = {.put = put};
	struct options o;
	bool help;
	struct pipeline p = {.arena = arena_new(), .diag = &d, .o = &o};
	if (!p.arena)
		return 2;
	enum status st = options_parse(
		p.arena, COMMAND_COMPILE, argc, (const char **)argv, &o, &help, &d);
	if (st == ST_OK && !o.out)
		st = ST_USAGE;
	if (st == ST_OK)
		st = write_step(&p);
	arena_free(p.arena);
	return st == ST_OK ? 0 : 1;
}
