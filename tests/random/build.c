/* From a seed to C sources: the model's bytes through the importer and the pipeline, once for each
 * variant. */
#include <stdio.h>
#include <string.h>

#include "compile/pipeline.h"
#include "tests/random/variant.h"

/* Of the planner's search: plans need be valid here, not good. */
static const double EFFORT = 0.002;

const struct variant_def variant_def[VARIANTS] = {
	[FULL] = {"double precision", DT_F64, true, false, 2, 1, FULL},
	[1] = {"double precision fused, at 70 %", DT_F64, true, true, 1, 0.7, FULL},
	[2] = {"double precision fused, at 40 %", DT_F64, true, true, 2, 0.4, FULL},
	[3] = {"double precision fused, at the smallest budget", DT_F64, true, true, 1, 0, FULL},
	[SINGLE] = {"single precision", DT_F32, true, false, 2, 1, SINGLE},
	[5] = {"single precision fused, at 20 %", DT_F32, true, true, 1, 0.2, SINGLE},
	[LIBRARY] = {"library", DT_F32, false, false, 2, 1, LIBRARY},
	[7] = {"library fused, at 40 %", DT_F32, false, true, 2, 0.4, LIBRARY},
	[MODULES] = {"as modules", DT_F64, true, false, 2, 1, MODULES},
};

bool variant_wanted(const struct random_model *m, int k)
{
	const uint64_t seed = m->seed;
	if (k == MODULES)
		return m->lost > 0 && !m->g.poison.input;
	return k <= SINGLE || (k >= LIBRARY) == (seed % 2 == 1);
}

void random_error(struct random_model *m, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	if (!*m->error)
		vsnprintf(m->error, sizeof m->error, fmt, ap);
	va_end(ap);
}

static void put(void *user, enum diag_level level, const struct where *w, const char *message,
	const char *hint)
{
	(void)hint;
	if (level == DIAG_ERROR)
		random_error(user, "%s%s%s", w && w->node ? w->node : "", w && w->node ? ": " : "",
			message);
}

/* `loss`: room for the list that they hold. */
static struct compile_options options_of(const struct random_model *m, int k, const char *loss[2])
{
	const struct variant_def *def = &variant_def[k];
	loss[0] = m->g.loss;
	loss[1] = NULL;
	struct compile_options o = {.model = k == MODULES ? m->modules_path : m->path,
		.import = m->t->options,
		.loss = loss,
		.optimizer = "sgd:lr=0.5",
		.budget = {.kind = def->share >= 1  ? BUDGET_NONE
				   : def->share > 0 ? BUDGET_PERCENT
						    : BUDGET_MIN,
			.percent = 100 * def->share},
		.precision = def->real == DT_F64 ? PRECISION_FP64 : PRECISION_FP32,
		.portable = def->portable,
		.threads = def->threads,
		.fuse = def->fused ? FUSE_ON : FUSE_OFF,
		.everywhere = true,
		.effort = EFFORT,
		.debug_arena = true};
	if (k == MODULES) /* the file says what is trained */
		o.import.train_pattern = NULL;
	return o;
}

/* Within the budget, or the smallest that is met. */
static enum status make_plans(struct pipeline *p, struct compile_options *o)
{
	struct diag quiet = {.put = NULL}, *loud = p->diag;
	p->diag = &quiet;
	enum status st = pipeline_plan(p);
	p->diag = loud;
	if (st != ST_BUDGET)
		return st;
	o->budget.kind = BUDGET_MIN;
	return pipeline_plan(p);
}

static enum status build_variant(struct random_model *m, struct diag *d, int k, const char *folder)
{
	struct random_variant *v = &m->variant[k];
	struct arena *a = m->t->arena;
	struct compile_options *o = ARENA_NEW(a, struct compile_options);
	struct pipeline *p = ARENA_NEW(a, struct pipeline);
	struct step_texts texts = {0};
	struct source_files files; /* found in the source tree */
	if (!o || !p)
		return diag_nomem(d);
	const char *loss[2];
	*o = options_of(m, k, loss);
	*p = (struct pipeline){.arena = a, .diag = d, .o = o};
	snprintf(v->symbol, sizeof v->symbol, "%s_%d", m->name, k);
	TRY(pipeline_import(p));
	p->name = v->symbol;
	TRY(pipeline_graphs(p));
	TRY(graph_verify(p->train));
	TRY(graph_verify(p->eval));
	TRY(pipeline_problems(p));
	TRY(make_plans(p, o));
	v->train = p->train_problem;
	v->eval = p->eval_problem;
	enum status st = pipeline_texts(p, &texts, &files);
	if (st == ST_OK)
		st = step_save(a, d, folder, v->symbol, &texts);
	step_texts_free(&texts);
	return st;
}

bool random_build(struct random_model *m, const char *folder)
{
	struct diag d = {.put = put, .user = m};
	size_t len;
	void *state;
	if (model_setup(&state) != 0) {
		random_error(m, "no memory or no folder");
		return false;
	}
	m->t = state;
	generate_model(&m->g, m->t, m->seed);
	snprintf(m->name, sizeof m->name, "m%llu", (unsigned long long)m->seed);
	snprintf(m->path, sizeof m->path, "%s/%s.onnx", folder, m->name);
	m->variant = ARENA_ARRAY(m->t->arena, struct random_variant, VARIANTS);
	const uint8_t *bytes = model_pack(m->t, &len);
	FILE *f = fopen(m->path, "wb");
	bool ok = f && fwrite(bytes, 1, len, f) == len;
	if (!f || fclose(f) != 0 || !ok)
		random_error(m, "cannot write %s", m->path);
	snprintf(m->modules_path, sizeof m->modules_path, "%s/%s_modules.onnx", folder, m->name);
	m->lost = random_as_modules(&m->g, m->modules_path);
	for (int k = 0; k < VARIANTS && !*m->error; k++)
		if (variant_wanted(m, k) && build_variant(m, &d, k, folder) != ST_OK)
			random_error(m, "%s: failed without a message", variant_def[k].what);
	return !*m->error;
}

void random_sources(const struct random_model *m, const char *folder, struct text *command)
{
	for (int k = 0; k < VARIANTS && !*m->error; k++)
		if (variant_wanted(m, k))
			text_add(command, " %s/%s/step.c", folder, m->variant[k].symbol);
}

void random_free(struct random_model *m)
{
	void *state = m->t;
	for (int k = 0; m->t && m->variant && k < VARIANTS; k++)
		stint_free(m->variant[k].step);
	if (m->t)
		model_teardown(&state);
	m->t = NULL;
}
