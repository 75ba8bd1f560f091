/* test_onnx_nodes DATA FOLDER RUNTIME LEAST: ONNX's own operator tests (libonnx-testdata): every
 * model under DATA whose operators stint has is built for evaluation in single precision, compiled,
 * run on the inputs that come with it, and its outputs compared with those that come with it. What
 * is left out is said, with the reason; fewer than LEAST models run is a failure. */
#include <dirent.h>
#include <dlfcn.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/stint_lib.h"
#include "tests/ops/onnx_read.h"
#include "tests/ops/ops_test.h"

/* Which inputs are known at compile time: models of the tests give as inputs what real ones hold as
 * constants (shapes, axes, pads). The first way that builds is taken. */
enum ways { KNOWN_NONE, KNOWN_INTEGERS, KNOWN_ALL_BUT_FIRST, KNOWN_ALL, WAYS };

struct model {
	char name[200], symbol[32], why[600];
	struct arena *arena;
	struct onnx_model onnx;
	struct onnx_tensor *in, *want; /* the data of inputs and outputs */
	struct graph *graph;
	struct graph_problem problem;
	bool built;
};

/* A model's tensors by name. */
struct names {
	int n;
	const char *name[4096];
	struct tensor *tensor[4096];
};

static void put(void *user, enum diag_level level, const struct where *w, const char *message,
	const char *hint)
{
	struct model *m = user;
	(void)hint;
	if (level == DIAG_ERROR && !*m->why)
		snprintf(m->why, sizeof m->why, "%s%s%s", w && w->op ? w->op : "",
			w && w->op ? ": " : "", message);
}

static int64_t library_workspace(void *user, const struct lib_call *call)
{
	(void)user;
	return stint_lib_workspace(call->kind, call->p, 2);
}

static void *converted(struct arena *a, const struct onnx_tensor *t, enum dtype type)
{
	void *data = arena_alloc(a, (size_t)t->numel, (size_t)dtype_bytes(type));
	for (int64_t i = 0; data && i < t->numel; i++)
		if (type == DT_I64)
			((int64_t *)data)[i] = (int64_t)t->v[i];
		else
			value_set(type, data, i, t->v[i]);
	return data;
}

static struct tensor *add_tensor(struct graph *g, const char *name, const struct onnx_tensor *t)
{
	enum dtype type = t->type == DT_F64 ? g->real : t->type;
	return graph_constant(g, name, type, t->rank, t->dim, converted(g->arena, t, type));
}

static void add_name(struct names *names, const char *name, struct tensor *t)
{
	if (names->n < 4096) {
		names->name[names->n] = name;
		names->tensor[names->n++] = t;
	}
}

static struct tensor *find_name(const struct names *names, const char *name)
{
	for (int i = names->n - 1; i >= 0; i--)
		if (!strcmp(names->name[i], name))
			return names->tensor[i];
	return NULL;
}

static void add_inputs(struct model *m, struct graph *g, enum ways way, struct names *names)
{
	g->input = ARENA_ARRAY(m->arena, struct tensor *, m->onnx.nin);
	for (int i = 0; i < m->onnx.ninit; i++)
		add_name(names, m->onnx.init[i].name,
			add_tensor(g, m->onnx.init[i].name, &m->onnx.init[i]));
	for (int i = 0, k = 0; i < m->onnx.nin; i++) {
		if (find_name(names, m->onnx.in[i]))
			continue; /* an initializer's default */
		struct tensor *x = add_tensor(g, m->onnx.in[i], &m->in[k]);
		bool known = way == KNOWN_ALL || (way == KNOWN_ALL_BUT_FIRST && k > 0) ||
			     (way == KNOWN_INTEGERS && x && x->dtype == DT_I64);
		k++; /* data files count the inputs that are given */
		if (x && !known) {
			x->role = TR_INPUT;
			g->input[g->ninput++] = x;
		}
		add_name(names, m->onnx.in[i], x);
	}
}

static enum status add_node(
	struct model *m, struct graph *g, const struct onnx_node *n, struct names *names)
{
	struct tensor **in = ARENA_ARRAY(m->arena, struct tensor *, n->nin);
	struct node *made;
	for (int i = 0; i < n->nin; i++) {
		in[i] = *n->in[i] ? find_name(names, n->in[i]) : NULL;
		if (*n->in[i] && !in[i])
			return diag_fail(g->diag, ST_INVALID, NULL, NULL, "input not found");
	}
	for (int i = 0; i < n->nattr; i++)
		if (n->tensor[i])
			n->attr[i].t = add_tensor(g, "value", n->tensor[i]);
	const bool own = !*n->domain || !strcmp(n->domain, "ai.onnx");
	const char *op = own ? n->op : arena_printf(m->arena, "%s.%s", n->domain, n->op);
	g->opset = own ? m->onnx.opset : 1; /* of the others, version 1 is all there is */
	TRY(graph_node(g, op, n->op, n->nin, in, n->nout, n->nattr, n->attr, NULL, &made));
	g->opset = OPSET_LATEST;
	for (int k = 0; k < n->nout; k++)
		if (*n->out[k] && made->out[k]) {
			made->out[k]->name = n->out[k];
			add_name(names, n->out[k], made->out[k]);
		}
	return ST_OK;
}

/* The imported graph, with an output more: a model of views alone would have no step to run. */
static enum status import(struct model *m, enum ways way, struct diag *d,
	const struct target *target, struct graph **out)
{
	struct graph *g = graph_new(m->arena, d, m->name, ops_table(), target, DT_F32);
	struct names *names = ARENA_NEW(m->arena, struct names);
	if (!g || !names)
		return ST_INTERNAL;
	add_inputs(m, g, way, names);
	for (int i = 0; i < m->onnx.nnode; i++)
		TRY(add_node(m, g, &m->onnx.node[i], names));
	g->output = ARENA_ARRAY(m->arena, struct tensor *, m->onnx.nout + 1);
	for (int i = 0; i < m->onnx.nout; i++) {
		g->output[g->noutput++] = find_name(names, m->onnx.out[i]);
		if (!g->output[i])
			return diag_fail(d, ST_INVALID, NULL, NULL, "output not computed");
	}
	struct tensor *p = graph_tensor(g, "extra", g->real, 0, NULL);
	p->role = TR_PARAMETER;
	g->output[g->noutput++] = OP2(
		g, op_by_role(g->table, ROLE_MUL)->name, p, graph_scalar(g, 2));
	*out = g;
	return g->failed;
}

static enum status build(struct model *m, enum ways way, struct diag *d, const char *folder)
{
	struct target *target = ARENA_NEW(m->arena, struct target);
	struct graph *imported = NULL;
	const struct lower_options lower = {.mode = LOWER_EVAL};
	if (!target)
		return ST_INTERNAL;
	*target = (struct target){.threads = 2, .library_workspace = library_workspace};
	TRY(import(m, way, d, target, &imported));
	TRY(graph_lower(imported, &lower, &m->graph));
	TRY(graph_name_constants(m->graph));
	return step_write(m->arena, d, m->symbol, NULL, m->graph, false, folder, NULL, &m->problem);
}

/* What needs no attempt: "" or why not. */
static const char *unsuitable(const struct model *m)
{
	if (strstr(m->name, "training"))
		return "evaluation only";
	for (int i = 0; i < m->onnx.nnode; i++) {
		const struct onnx_node *n = &m->onnx.node[i];
		if (!strncmp(n->op, "Random", 6) || !strcmp(n->op, "Bernoulli"))
			return "random numbers";
		if (!n->supported)
			return "an attribute that is a graph or text";
	}
	for (int i = 0; i < m->onnx.ninit; i++)
		if (!m->onnx.init[i].supported)
			return "an element type";
	return "";
}

static bool read_data(struct model *m, const char *dir)
{
	int nin = m->onnx.nin;
	m->in = ARENA_ARRAY(m->arena, struct onnx_tensor, nin);
	m->want = ARENA_ARRAY(m->arena, struct onnx_tensor, m->onnx.nout);
	for (int i = 0; i < nin + m->onnx.nout; i++) {
		bool output = i >= nin;
		const char *path = arena_printf(m->arena, "%s/test_data_set_0/%s_%d.pb", dir,
			output ? "output" : "input", output ? i - nin : i);
		struct onnx_tensor *t = output ? &m->want[i - nin] : &m->in[i];
		if (!output && access(path, R_OK) != 0)
			continue; /* an initializer's default */
		if (!onnx_read_tensor(m->arena, path, t) || !t->supported)
			return false;
	}
	return true;
}

static void prepare(struct model *m, const char *dir, const char *folder)
{
	m->arena = arena_new();
	if (!onnx_read_model(m->arena, arena_printf(m->arena, "%s/model.onnx", dir), &m->onnx)) {
		snprintf(m->why, sizeof m->why, "cannot be read");
		return;
	}
	snprintf(m->why, sizeof m->why, "%s", unsuitable(m));
	if (*m->why)
		return;
	if (!read_data(m, dir)) {
		snprintf(m->why, sizeof m->why, "an element type or a sequence");
		return;
	}
	char first[600] = "";
	for (int way = 0; way < WAYS && !m->built; way++) {
		struct diag d = {.put = put, .user = m};
		*m->why = 0;
		m->built = build(m, (enum ways)way, &d, folder) == ST_OK;
		if (way == 0)
			snprintf(first, sizeof first, "%s", m->why);
	}
	snprintf(m->why, sizeof m->why, "%s", first);
}

/* --- Running --- */

static double value_at(int dtype, const void *data, int64_t i)
{
	return dtype == STINT_F32   ? (double)((const float *)data)[i]
	       : dtype == STINT_I64 ? (double)((const int64_t *)data)[i]
				    : (double)((const unsigned char *)data)[i];
}

static bool same_output(struct model *m, int k, const struct stint_step *s)
{
	const struct onnx_tensor *want = &m->want[k];
	const struct tensor *y = m->graph->output[k];
	const struct stint_output *o = &s->model->output[k];
	bool shape = y->rank == want->rank;
	for (int i = 0; shape && i < y->rank; i++)
		shape = y->dim[i] == want->dim[i];
	if (!shape) {
		snprintf(m->why, sizeof m->why, "output %d has another shape", k);
		return false;
	}
	for (int64_t i = 0; i < want->numel; i++) {
		double got = value_at(o->dtype, s->arena + o->offset, i), w = want->v[i];
		bool same = got == w || (isnan(got) && isnan(w)) ||
			    fabs(got - w) <= 1e-6 + 1e-3 * fabs(w);
		if (!same) {
			snprintf(m->why, sizeof m->why,
				"output %d, element %lld of %lld: %g, should be %g", k,
				(long long)i, (long long)want->numel, got, w);
			return false;
		}
	}
	return true;
}

static bool run(struct model *m, void *object)
{
	char symbol[64];
	stint_step *s = NULL;
	snprintf(symbol, sizeof symbol, "stint_model_%s", m->symbol);
	const struct stint_model *model = dlsym(object, symbol);
	bool ok = model && stint_init(&s, model, NULL, 0) == STINT_OK;
	for (int i = 0; ok && i < model->nresident; i++) {
		const struct tensor *t = m->problem.tensor[i];
		if (t->data)
			ok = stint_set(s, m->problem.problem->tensor[i].name, t->data,
				     (size_t)tensor_bytes(t)) == STINT_OK;
	}
	ok = ok && stint_eval(s, 0) == STINT_OK;
	if (!ok)
		snprintf(m->why, sizeof m->why, "does not run: %s",
			s ? stint_message(s) : "no such model");
	for (int k = 0; ok && k < m->onnx.nout; k++)
		ok = same_output(m, k, s);
	stint_free(s);
	return ok;
}

static bool compile(struct model *model, int n, const char *folder, const char *runtime)
{
	struct text command = {0};
	text_add(&command, "cc %s -I%s -shared -o %s/all.so", STEP_CFLAGS, runtime, folder);
	for (int i = 0; i < n; i++)
		if (model[i].built)
			text_add(&command, " %s/%s/step.c", folder, model[i].symbol);
	text_puts(&command, " -lm");
	bool ok = !command.failed && system(command.s) == 0;
	text_free(&command);
	return ok;
}

static int wanted(const struct dirent *e)
{
	return e->d_name[0] != '.';
}

int main(int argc, char **argv)
{
	struct dirent **entry;
	int n = argc == 5 ? scandir(argv[1], &entry, wanted, alphasort) : -1;
	if (n <= 0) {
		fprintf(stderr,
			"usage: test_onnx_nodes DATA FOLDER RUNTIME LEAST\n"
			"DATA comes with Debian's libonnx-testdata: tools/setup.sh tests\n");
		return 2;
	}
	struct model *model = calloc((size_t)n, sizeof *model);
	char path[4600];
	int ran = 0, failed = 0;
	mkdir(argv[2], 0777);
	for (int i = 0; model && i < n; i++) {
		snprintf(model[i].name, sizeof model[i].name, "%.150s", entry[i]->d_name);
		snprintf(model[i].symbol, sizeof model[i].symbol, "model%d", i);
		snprintf(path, sizeof path, "%s/%s", argv[1], entry[i]->d_name);
		prepare(&model[i], path, argv[2]);
		if (!model[i].built)
			printf("skipped %s: %s\n", model[i].name, model[i].why);
	}
	snprintf(path, sizeof path, "%s/all.so", argv[2]);
	void *object = model && compile(model, n, argv[2], argv[3])
			       ? dlopen(path, RTLD_NOW | RTLD_LOCAL)
			       : NULL;
	for (int i = 0; object && i < n; i++) {
		if (!model[i].built)
			continue;
		bool ok = run(&model[i], object);
		printf("%s %s%s%s\n", ok ? "ok" : "FAILED", model[i].name, ok ? "" : ": ",
			ok ? "" : model[i].why);
		ran++;
		failed += !ok;
	}
	printf("%d models: %d ran (at least %s must), %d failed, %d skipped\n", n, ran, argv[4],
		failed, n - ran);
	for (int i = 0; i < n; i++) {
		arena_free(model[i].arena);
		free(entry[i]);
	}
	free(entry);
	free(model);
	return !object || failed > 0 || ran < atoi(argv[4]);
}
