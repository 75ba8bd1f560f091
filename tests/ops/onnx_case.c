#include "tests/ops/onnx_case.h"

#include <dlfcn.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "import/import.h"
#include "runtime/stint_lib.h"

/* The first error is why. */
static void put(void *user, enum diag_level level, const struct where *w, const char *message,
	const char *hint)
{
	struct onnx_case *c = user;
	(void)hint;
	if (level == DIAG_ERROR && !*c->why)
		snprintf(c->why, sizeof c->why, "%s%s%s", w && w->op ? w->op : "",
			w && w->op ? ": " : "", message);
}

static int64_t library_workspace(void *user, const struct lib_call *call)
{
	(void)user;
	return stint_lib_workspace(&call->call, 2);
}

static bool is_training(const struct onnx_case *c)
{
	return strstr(c->name, "training") != NULL;
}

/* --- Reading --- */

static bool is_initializer(const struct onnx_model *m, const char *name)
{
	for (int i = 0; i < m->ninitializer; i++)
		if (!strcmp(m->initializer[i], name))
			return true;
	return false;
}

static const char *data_path(struct onnx_case *c, const char *kind, int i)
{
	return arena_printf(c->arena, "%s/test_data_set_0/%s_%d.pb", c->dir, kind, i);
}

/* Data files count the inputs that are no initializers. */
static void read_data(struct onnx_case *c)
{
	const struct onnx_model *m = &c->model;
	c->in = ARENA_ARRAY(c->arena, struct onnx_tensor, m->nin);
	c->want = ARENA_ARRAY(c->arena, struct onnx_tensor, m->nout);
	for (int i = 0, k = 0; i < m->nin; i++)
		if (!is_initializer(m, m->in[i]) &&
			!onnx_read_tensor(
				c->arena, data_path(c, "input", k++), m->in_type[i], &c->in[i]))
			c->in[i].type = NULL;
	for (int i = 0; i < m->nout; i++)
		if (!onnx_read_tensor(
			    c->arena, data_path(c, "output", i), m->out_type[i], &c->want[i]))
			c->want[i].type = NULL;
}

static enum dtype graph_type(const struct onnx_tensor *t)
{
	return t->dtype == DT_F64 ? DT_F32 : t->dtype;
}

static void *graph_values(struct arena *a, const struct onnx_tensor *t)
{
	enum dtype type = graph_type(t);
	void *data = arena_alloc(a, (size_t)t->numel, (size_t)dtype_bytes(type));
	for (int64_t i = 0; data && i < t->numel; i++)
		if (type == DT_I64)
			((int64_t *)data)[i] = t->whole[i];
		else
			value_set(type, data, i,
				t->dtype == DT_F64 ? t->real[i] : (double)t->whole[i]);
	return data;
}

/* --- Building --- */

static bool is_known(const struct onnx_case *c, int i, enum onnx_ways way)
{
	return way == KNOWN_ALL || (way == KNOWN_ALL_BUT_FIRST && i > 0) ||
	       (way == KNOWN_WHOLE && c->in[i].dtype == DT_I64);
}

/* How many inputs the way makes known; what would be the same as an earlier way is not tried. */
static int fixes(struct onnx_case *c, enum onnx_ways way, struct import_fix **out)
{
	const struct onnx_model *m = &c->model;
	int n = 0;
	struct import_fix *fix = *out = ARENA_ARRAY(c->arena, struct import_fix, m->nin);
	for (int i = 0; i < m->nin; i++) {
		const struct onnx_tensor *t = &c->in[i];
		if (!t->type || way == KNOWN_NONE || !is_known(c, i, way))
			continue;
		struct import_data *data = ARENA_NEW(c->arena, struct import_data);
		*data = (struct import_data){
			.type = graph_type(t), .rank = t->rank, .v = graph_values(c->arena, t)};
		memcpy(data->dim, t->dim, sizeof data->dim);
		fix[n++] = (struct import_fix){.name = m->in[i], .data = data};
	}
	return n;
}

/* An output more: a model of views alone, or one that folds, would have no step to run. */
static enum status add_step(struct graph *g)
{
	struct tensor **out = ARENA_ARRAY(g->arena, struct tensor *, g->noutput + 1);
	struct tensor *p = graph_tensor(g, "extra", g->real, 0, NULL);
	if (!out || !p)
		return diag_nomem(g->diag);
	memcpy(out, g->output, (size_t)g->noutput * sizeof *out);
	p->role = TR_PARAMETER;
	out[g->noutput++] = OP2(g, op_by_role(g->table, ROLE_MUL)->name, p, graph_scalar(g, 2));
	g->output = out;
	return g->failed;
}

static enum status build_variant(struct onnx_case *c, struct onnx_variant *v,
	const struct import_options *o, bool portable, struct diag *d, const char *folder)
{
	const struct lower_options lower = {
		.mode = is_training(c) ? LOWER_TRAIN : LOWER_EVAL, .bn_population = true};
	const char *path = arena_printf(c->arena, "%s/model.onnx", c->dir);
	struct target *target = ARENA_NEW(c->arena, struct target);
	struct graph *imported;
	if (!target || !path)
		return ST_INTERNAL;
	*target = (struct target){.threads = 2,
		.portable = portable,
		.library_workspace = portable ? NULL : library_workspace};
	TRY(import_onnx(c->arena, path, o, ops_table(), target, DT_F32, d, &imported));
	TRY(add_step(imported));
	TRY(graph_lower(imported, &lower, &v->graph));
	TRY(graph_name_constants(v->graph));
	return step_write(c->arena, d, v->symbol, NULL, v->graph, false, folder, NULL, &v->problem);
}

static bool calls_library(const struct graph *g)
{
	for (int i = 0; i < g->nnode; i++) {
		struct lib_call call;
		int64_t workspace;
		if (node_uses_library(g, g->node[i], &call, &workspace))
			return true;
	}
	return false;
}

static bool build_targets(
	struct onnx_case *c, const struct import_options *o, struct diag *d, const char *folder)
{
	struct onnx_variant *v = c->variant;
	v[0].built = build_variant(c, &v[0], o, false, d, folder) == ST_OK;
	if (!v[0].built)
		return false;
	v[1].same = !calls_library(v[0].graph);
	v[1].built = v[1].same || build_variant(c, &v[1], o, true, d, folder) == ST_OK;
	return true;
}

/* Nothing is left to run. */
static bool folds(const struct graph *g, int nout)
{
	for (int i = 0; i < nout; i++)
		if (tensor_storage(g->output[i])->role != TR_CONSTANT)
			return false;
	return true;
}

static void build_known(struct onnx_case *c, const char *folder)
{
	int before = -1;
	for (int way = 0; way < KNOWN_WAYS && !c->variant[0].built; way++) {
		struct diag d = {.put = put, .user = c};
		struct import_fix *fix;
		struct import_options o = {
			.nfix = fixes(c, (enum onnx_ways)way, &fix), .fix = fix, .opset_min = 1};
		if (o.nfix == before)
			continue;
		before = o.nfix;
		*c->why = 0;
		build_targets(c, &o, &d, folder);
	}
	c->folded = c->variant[0].built && folds(c->variant[0].graph, c->model.nout);
}

void onnx_case_build(struct onnx_case *c, int index, const char *dir, const char *folder)
{
	c->arena = arena_new();
	if (!c->arena)
		return;
	c->dir = arena_strdup(c->arena, dir);
	snprintf(c->variant[0].symbol, sizeof c->variant[0].symbol, "model%d", index);
	snprintf(c->variant[1].symbol, sizeof c->variant[1].symbol, "portable%d", index);
	if (!onnx_read_model(c->arena, arena_printf(c->arena, "%s/model.onnx", dir), &c->model)) {
		snprintf(c->why, sizeof c->why, "cannot be read");
		return;
	}
	read_data(c);
	build_known(c, folder);
}

/* --- Running --- */

/* How far a real may be off, relative: half precision and less round what they hold. */
static double tolerance(const char *type)
{
	return !strcmp(type, "bfloat16") ? 1e-2 : !strcmp(type, "float16") ? 2e-3 : 1e-3;
}

static bool same_value(const struct onnx_tensor *want, int64_t i, int dtype, const void *data,
	double *got, double *expected)
{
	if (want->dtype != DT_F64) {
		int64_t g = dtype == STINT_I64 ? ((const int64_t *)data)[i]
					       : ((const unsigned char *)data)[i];
		*got = (double)g;
		*expected = (double)want->whole[i];
		return g == want->whole[i];
	}
	double g = *got = (double)((const float *)data)[i], w = *expected = want->real[i];
	return g == w || (isnan(g) && isnan(w)) ||
	       fabs(g - w) <= 1e-6 + tolerance(want->type) * fabs(w) || (float)w == (float)g;
}

static bool same_output(struct onnx_case *c, int k, const struct graph *g, const stint_step *s)
{
	const struct onnx_tensor *want = &c->want[k];
	const struct tensor *y = g->output[k];
	const struct stint_output *o = &s->model->output[k];
	if (!want->type) {
		snprintf(c->why, sizeof c->why, "output %d: nothing says what it should be", k);
		return false;
	}
	bool shape = y->rank == want->rank;
	for (int i = 0; shape && i < y->rank; i++)
		shape = y->dim[i] == want->dim[i];
	if (!shape || y->dtype != graph_type(want)) {
		snprintf(c->why, sizeof c->why, "output %d has another %s", k,
			shape ? "type" : "shape");
		return false;
	}
	for (int64_t i = 0; i < want->numel; i++) {
		double got, expected;
		if (same_value(want, i, o->dtype, s->arena + o->offset, &got, &expected))
			continue;
		snprintf(c->why, sizeof c->why, "output %d, element %lld of %lld: %g, should be %g",
			k, (long long)i, (long long)want->numel, got, expected);
		return false;
	}
	return true;
}

/* The bytes of a resident before the step; NULL: zeros. */
static const void *initial(struct onnx_case *c, const struct tensor *t)
{
	for (int i = 0; t->role == TR_INPUT && i < c->model.nin; i++)
		if (c->in[i].type && !strcmp(c->model.in[i], t->name))
			return graph_values(c->arena, &c->in[i]);
	return t->data;
}

static bool set_residents(struct onnx_case *c, const struct onnx_variant *v, stint_step *s)
{
	for (int i = 0; i < s->model->nresident; i++) {
		const struct tensor *t = v->problem.tensor[i];
		const void *data = initial(c, t);
		if (data && stint_set(s, v->problem.problem->tensor[i].name, data,
				    (size_t)tensor_bytes(t)) != STINT_OK)
			return false;
	}
	return true;
}

void onnx_case_run(struct onnx_case *c, enum onnx_target target, void *object)
{
	struct onnx_variant *v = &c->variant[target];
	char symbol[64];
	stint_step *s = NULL;
	snprintf(symbol, sizeof symbol, "stint_model_%s", v->symbol);
	const struct stint_model *model = dlsym(object, symbol);
	bool ok = model && stint_init(&s, model, NULL, 0) == STINT_OK && set_residents(c, v, s) &&
		  stint_eval(s, 0) == STINT_OK;
	if (!ok)
		snprintf(c->why, sizeof c->why, "does not run: %s",
			s ? stint_message(s) : "no such model");
	for (int k = 0; ok && k < c->model.nout; k++)
		ok = same_output(c, k, v->graph, s);
	stint_free(s);
	v->passed = ok;
}

void onnx_case_free(struct onnx_case *c)
{
	arena_free(c->arena);
}
