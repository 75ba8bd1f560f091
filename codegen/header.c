/* stint_step.h, and the comment at the top of step.c. */
#include <inttypes.h>

#include "codegen/parts.h"

static int recomputed(const struct schedule *s)
{
	int n = 0;
	for (int i = 0; i < s->plan->nstep; i++)
		n += s->call[i].run > 0;
	return n;
}

static void print_bytes(const char *what, int64_t bytes, struct text *t)
{
	char human[24];
	text_add(t, " *\t%-12s%14" PRId64 " bytes  %s\n", what, bytes, bytes_human(bytes, human));
}

static void print_plan(const struct schedule *s, struct text *t)
{
	int again = recomputed(s);
	text_add(t, " * %s: %d steps", s->title, s->plan->nstep);
	if (again > 0)
		text_add(t, ", of which %d compute%s again what was not kept", again,
			again == 1 ? "s" : "");
	text_puts(t, "\n");
	if (s->plan->budget_bytes != INT64_MAX)
		print_bytes("budget", s->plan->budget_bytes, t);
	print_bytes("arena", s->plan->arena_bytes, t);
	print_bytes("peak", s->plan->peak_bytes, t);
	text_puts(t, " *\n");
}

void print_title(const struct schedule *train, const struct schedule *eval,
	const struct codegen_input *in, struct text *t)
{
	text_puts(t, "/* ");
	text_comment(t, in->model_file);
	const bool cuda = eval->gp->graph->target->cuda;
	text_add(t, " as C%s%s, written by stint.\n *\n", train ? " that trains" : "",
		cuda ? " on a GPU" : "");
	if (train)
		print_plan(train, t);
	print_plan(eval, t);
	if (eval->gp->graph->target->tf32)
		text_puts(t, " * Matrix products and convolutions may round their operands to "
			     "tf32.\n *\n");
	text_puts(
		t, cuda ? " * Below: a map of the arena, the launches of kernels.cu, the schedule "
			  "with one call a step, and\n * tables for the runtime. */\n"
			: " * Below: a map of the arena, the kernels, the schedule with one call a "
			  "step, and tables for the\n * runtime. Nothing here allocates. */\n");
}

/* "x  float32 [8, 4]" */
static void print_tensor(const char *name, const struct tensor *x, bool bare, struct text *t)
{
	static const char *const type[] = {[DT_F32] = "float",
		[DT_F64] = "double",
		[DT_I64] = "int64_t",
		[DT_BOOL] = "unsigned char"};
	char shape[200];
	text_add(t, " *\t%-13s %-14s ", bare && x->dtype == DT_I64 ? "int32_t" : type[x->dtype],
		tensor_shape_text(x, shape));
	text_comment(t, name);
	text_puts(t, "\n");
}

static void print_interface(const struct schedule *s, const struct graph *g, struct text *t)
{
	text_puts(t, " *\n * Set before each step, by name:\n");
	for (int i = 0; i < s->nresident; i++)
		if (s->gp->tensor[i]->role == TR_INPUT)
			print_tensor(s->gp->problem->tensor[i].name, s->gp->tensor[i],
				g->target->bare, t);
	text_puts(t, " * Outputs of an evaluation:\n");
	for (int i = 0; i < g->noutput; i++)
		print_tensor(g->output[i]->name, g->output[i], g->target->bare, t);
}

void print_header(const struct schedule *train, const struct schedule *eval,
	const struct codegen_input *in, struct text *t)
{
	const bool bare = eval->gp->graph->target->bare;
	text_puts(t, "/* The step made from ");
	text_comment(t, in->model_file);
	text_puts(t, bare ? ". How to use it: stint_bare.h.\n" : ". How to use it: stint_rt.h.\n");
	print_interface(train ? train : eval, eval->gp->graph, t);
	text_puts(t, " */\n#ifndef ");
	text_macro(t, in->name, "STEP_H");
	text_puts(t, "\n#define ");
	text_macro(t, in->name, "STEP_H");
	text_puts(t, bare ? "\n\n#include \"stint_bare.h\"\n" : "\n\n#include \"stint_rt.h\"\n");
	text_puts(t, "\n"
		     "/* What stint_init wants, should the caller bring the memory. */\n#define ");
	text_macro(t, in->name, "ARENA_BYTES");
	text_add(t, " %" PRId64 "\n#define ", in->arena_bytes);
	text_macro(t, in->name, "ARENA_ALIGNMENT");
	text_add(t, " %d\n", eval->gp->graph->target->cuda ? 256 : 64);
	text_puts(t, "\n#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n");
	text_add(t, "extern const struct stint_model stint_model_%s;\n", in->name);
	text_puts(t, "\n#ifdef __cplusplus\n}\n#endif\n#endif\n");
}
