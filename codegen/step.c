/* From graph and plan to C text: resolves both plans, then prints step.c from top to bottom. */
#include "codegen/step.h"

#include <ctype.h>
#include <stddef.h>

#include "codegen/parts.h"

/* May stand behind "stint_model_": a digit may be its first. */
static bool ends_identifier(const char *s)
{
	size_t n = 0;
	while (s && (isalnum((unsigned char)s[n]) || s[n] == '_'))
		n++;
	return n && !s[n];
}

static enum status broken(struct diag *d, const char *what)
{
	return diag_fail(d, ST_INTERNAL, NULL, NULL, "the plans cannot be printed: %s", what);
}

/* Both plans work in one arena: what lives over steps must be the same, in the same places. */
static enum status same_residents(
	const struct schedule *train, const struct schedule *eval, struct diag *d)
{
	if (train->nresident != eval->nresident)
		return broken(d, "training and evaluation have different residents");
	for (int i = 0; i < train->nresident; i++) {
		if (train->head[i] < 0 || eval->head[i] < 0)
			return broken(d, "a resident without a place");
		const struct plan_buffer *x = &train->plan->buffer[train->head[i]];
		const struct plan_buffer *y = &eval->plan->buffer[eval->head[i]];
		if (x->offset != y->offset || x->bytes != y->bytes)
			return broken(d, "a resident with two places");
	}
	return ST_OK;
}

static enum status resolve(const struct codegen_input *in, struct kernels *ks,
	struct schedule *train, struct schedule *eval)
{
	if (!kernels_begin(ks))
		return diag_nomem(ks->diag);
	if (!ends_identifier(in->name))
		return broken(ks->diag, "the model's name is no end of a C identifier");
	if (in->train.graph)
		TRY(schedule_make(ks, &in->train, in->train_plan, true, in->debug_arena, train));
	TRY(schedule_make(ks, &in->eval, in->eval_plan, false, in->debug_arena, eval));
	TRY(kernels_share(ks));
	TRY(kernels_name(ks));
	if (ks->graph->target->bare) {
		TRY(bare_fits(in->train.graph ? train : eval, ks->diag));
		TRY(bare_fits(eval, ks->diag));
	}
	if (ks->graph->target->cuda)
		TRY(few_threads_warn(ks, in->train.graph ? train : NULL, eval));
	if (in->train.graph && ks->graph->target->cuda)
		TRY(kernels_group(ks, train));
	return in->train.graph ? same_residents(train, eval, ks->diag) : ST_OK;
}

static void print_arena(const struct schedule *train, const struct schedule *eval, struct text *t)
{
	text_puts(t,
		"/* Where everything lies in the arena: offsets in bytes. A part of step.c. */\n");
	text_puts(t, "\n/* Over all steps. */\n");
	print_places(train ? train : eval, true, t);
	if (train) {
		text_puts(t, "\n/* In training. */\n");
		print_places(train, false, t);
	}
	text_puts(t, "\n/* In evaluation. */\n");
	print_places(eval, false, t);
}

/* The kernels and the schedule. */
static void print_code(const struct schedule *train, const struct schedule *eval,
	const struct kernels *ks, const struct codegen_input *in, struct text *t)
{
	text_puts(t, "\n/* --- Kernels --- */\n");
	if (ks->graph->target->cuda)
		print_launches(ks, t);
	else
		print_helpers(ks, t);
	print_kernels(ks, t);
	print_callers(train, eval, ks, in, t);
	print_schedules(train, eval, ks, t);
}

static void print_step(const struct schedule *train, const struct schedule *eval,
	const struct kernels *ks, const struct codegen_input *in, struct text *t)
{
	print_title(train, eval, in, t);
	print_prelude(ks, in, t);
	text_puts(t, "\n/* --- The arena --- */\n");
	if (train)
		print_arena_map(train, t);
	print_arena_map(eval, t);
	text_puts(t, "\n#include \"step_arena.h\"\n");
	const size_t code = t->len;
	print_code(train, eval, ks, in, t);
	if (ks->graph->target->bare)
		text_bare_words(t, code);
	text_puts(t, "\n/* --- What the runtime knows of the model --- */\n\n"
		     "#include \"step_tables.h\"\n");
}

const struct step_file step_files[] = {{"step.c", offsetof(struct step_texts, step)},
	{"step_arena.h", offsetof(struct step_texts, arena)},
	{"step_train.h", offsetof(struct step_texts, train)},
	{"step_eval.h", offsetof(struct step_texts, eval)},
	{"step_tables.h", offsetof(struct step_texts, tables)},
	{"stint_step.h", offsetof(struct step_texts, header)},
	{"Makefile", offsetof(struct step_texts, makefile)},
	{"weights.h", offsetof(struct step_texts, weights_h)},
	{"weights.c", offsetof(struct step_texts, weights_c)},
	{"kernels.cu", offsetof(struct step_texts, kernels_cu)},
	{"kernels.c", offsetof(struct step_texts, kernels_c)}, {NULL, 0}};

struct text *step_text(struct step_texts *t, const struct step_file *f)
{
	return (struct text *)(void *)((char *)t + f->at);
}

void step_texts_free(struct step_texts *t)
{
	for (const struct step_file *f = step_files; f->name; f++)
		text_free(step_text(t, f));
}

/* Each file that a product gets says what may be done with it. (The words are in two parts for
 * programs that look for them, which would take this file's licence for that one.) */
static struct text *licensed(struct text *t, const char *begin, const char *end)
{
	text_add(t, "%sSPDX-License-%s: MIT-0%s\n", begin, "Identifier", end);
	return t;
}

static struct text *licensed_c(struct text *t)
{
	return licensed(t, "/* ", " */");
}

enum status codegen_step(const struct codegen_input *in, struct step_texts *out,
	struct source_files *kernels, struct diag *d)
{
	struct arena *a = arena_new();
	if (!a)
		return diag_nomem(d);
	struct kernels ks = {
		.arena = a, .graph = in->eval.graph, .diag = d, .helpers = {.arena = a}};
	struct schedule train = {0}, eval = {0};
	enum status st = resolve(in, &ks, &train, &eval);
	if (st == ST_OK) {
		const struct schedule *t = in->train.graph ? &train : NULL;
		print_step(t, &eval, &ks, in, licensed_c(&out->step));
		print_arena(t, &eval, licensed_c(&out->arena));
		if (t)
			print_rows(t, &ks, licensed_c(&out->train));
		print_rows(&eval, &ks, licensed_c(&out->eval));
		print_tables(t, &eval, &ks, in, licensed_c(&out->tables));
		print_header(t, &eval, in, licensed_c(&out->header));
		print_makefile(&ks, in, licensed(&out->makefile, "# ", ""));
		if (ks.graph->target->bare)
			print_bare_weights(t ? t : &eval, in, licensed_c(&out->weights_h),
				licensed_c(&out->weights_c));
		if (ks.graph->target->cuda) {
			print_cuda_kernels(&ks, licensed_c(&out->kernels_cu));
			print_cuda_string(in->name, &out->kernels_cu, licensed_c(&out->kernels_c));
		}
		sources_files(&ks.helpers.sources, kernels);
		for (const struct step_file *f = step_files; f->name; f++)
			if (step_text(out, f)->failed)
				st = diag_nomem(d);
	}
	arena_free(a);
	return st;
}
