/* From a seed to C sources: the model's bytes through the importer and the pipeline, once for each
 * variant. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "runtime/stint_lib.h"
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

static int64_t library_workspace(void *user, const struct lib_call *call)
{
	const struct target *t = user;
	return stint_lib_workspace(&call->call, t->threads);
}

/* The pipeline's last stage: layouts, fusion, ways. Layouts come where the library is, and wherever
 * a record knows how. */
static enum status kernels_of(bool fused, struct graph **g)
{
	const struct target *target = (*g)->target;
	if (!target->portable)
		TRY(graph_layout(*g, stint_lib_block(), true, g));
	if (fused)
		TRY(graph_fuse(*g));
	graph_choose(*g, MATH_FIXED);
	TRY(graph_name_constants(*g));
	return graph_verify(*g);
}

static enum status train_graph(struct random_model *m, struct diag *d, const struct graph *in,
	bool fused, struct graph **out)
{
	const struct lower_options lower = {.mode = LOWER_TRAIN};
	struct loss_spec loss;
	struct optimizer_spec sgd;
	int nparam;
	struct tensor **param, **grad;
	TRY(loss_parse(m->t->arena, ops_table(), m->g.loss, &loss, d));
	TRY(optimizer_parse(m->t->arena, ops_table(), "sgd:lr=0.5", &sgd, d));
	TRY(graph_lower(in, &lower, out));
	TRY(graph_attach_loss(*out, &loss));
	TRY(graph_autodiff(*out, &nparam, &param, &grad));
	TRY(graph_attach_updates(*out, &sgd, nparam, param, grad));
	return kernels_of(fused, out);
}

static enum status eval_graph(struct random_model *m, struct diag *d, const struct graph *in,
	bool fused, struct graph **out)
{
	const struct lower_options lower = {.mode = LOWER_EVAL};
	struct loss_spec loss;
	TRY(loss_parse(m->t->arena, ops_table(), m->g.loss, &loss, d));
	TRY(graph_lower(in, &lower, out));
	TRY(graph_attach_loss(*out, &loss));
	TRY(graph_prune(*out));
	return kernels_of(fused, out);
}

static enum status build_variant(struct random_model *m, struct diag *d, int k, const char *folder)
{
	const struct variant_def *def = &variant_def[k];
	struct random_variant *v = &m->variant[k];
	struct target *target = ARENA_NEW(m->t->arena, struct target);
	struct graph *imported, *train, *eval;
	if (!target)
		return diag_nomem(d);
	*target = (struct target){.portable = def->portable,
		.threads = def->threads,
		.library_workspace = def->portable ? NULL : library_workspace,
		.user = target};
	snprintf(v->symbol, sizeof v->symbol, "%s_%d", m->name, k);
	struct import_options options = m->t->options;
	const char *path = m->path;
	if (k == MODULES) { /* the file says what is trained */
		path = m->modules_path;
		options.train_pattern = NULL;
	}
	TRY(import_onnx(m->t->arena, path, &options, ops_table(), target, def->real, d, &imported));
	TRY(train_graph(m, d, imported, def->fused, &train));
	TRY(eval_graph(m, d, imported, def->fused, &eval));
	return step_write_share(m->t->arena, d, v->symbol, train, eval, def->share, EFFORT, folder,
		&v->train, &v->eval);
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
