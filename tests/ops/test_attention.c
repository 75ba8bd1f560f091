/* test_attention FOLDER RUNTIME: attention, rotary embeddings and rolled windows in the forms that
 * exporters and people write are recognised, and what only looks like them is not; and a graph in
 * which they were recognised gives the outputs and gradients of the same graph in which they were
 * not, in double precision.
 *
 * A program is a list of "Op result operand operand name=value"; "param x 2,3" and "input c
 * 2,3:bool" declare; operands are results, numbers, lists "[2,3]" or one of the constants below.
 * The last result is the model's output. */
#include <ctype.h>
#include <dlfcn.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "compile/graphs.h"
#include "tests/ops/attention_forms.h"
#include "tests/ops/ops_test.h"

enum { RESULTS = 40, VALUES = 4096 };

enum { FORMS = 128 };

/* --- Programs --- */

struct machine {
	struct arena *arena;
	struct graph *g;
	int n, ninput;
	const char *name[RESULTS];
	struct tensor *value[RESULTS], *input[RESULTS];
};

static void define(struct machine *m, const char *name, struct tensor *t)
{
	assert_non_null(t);
	assert_in_range(m->n, 0, RESULTS - 1);
	m->name[m->n] = name;
	m->value[m->n++] = t;
}

/* "2,-3" into v. */
static int read_list(const char *s, int64_t *v)
{
	int n = 0;
	while (isdigit((unsigned char)*s) || *s == '-') {
		char *end;
		v[n++] = strtoll(s, &end, 10);
		s = end + (*end == ',');
	}
	return n;
}

static void declare(struct machine *m, bool parameter, const char *name, const char *shape)
{
	int64_t dim[RANK_MAX];
	const bool boolean = strchr(shape, ':') != NULL;
	const enum dtype t = boolean ? DT_BOOL : m->g->real;
	struct tensor *x = graph_tensor(m->g, name, t, read_list(shape, dim), dim);
	char *data = arena_alloc(m->arena, (size_t)x->numel, 8);
	for (int64_t i = 0; i < x->numel; i++) {
		const double v = case_draw((uint64_t)m->n + 1, (uint64_t)i);
		value_set(t, data, i, boolean ? v < 0.6 : 2 * v - 1);
	}
	x->data = data;
	x->role = parameter ? TR_PARAMETER : TR_INPUT;
	if (!parameter)
		m->input[m->ninput++] = x;
	define(m, name, x);
}

/* 5 by 5: what query i sees of key j. */
static bool cell(const char *name, int i, int j)
{
	return !strcmp(name, "band")    ? j - i <= 1 && j - i >= -2
	       : !strcmp(name, "holes") ? i != 2 && j != 1
	       : !strcmp(name, "triu")  ? j > i
					: j <= i;
}

static struct tensor *constant(struct machine *m, const char *name)
{
	static const int64_t dim[2] = {5, 5};
	static const unsigned char yes = 1;
	if (!strcmp(name, "yes"))
		return graph_constant(m->g, name, DT_BOOL, 0, NULL, &yes);
	const bool boolean = !strcmp(name, "tril") || !strcmp(name, "triu") ||
			     !strcmp(name, "holes");
	const double low = !strcmp(name, "lowest") ? -3.4028234663852886e38 : -INFINITY;
	const enum dtype t = boolean ? DT_BOOL : m->g->real;
	char *data = arena_alloc(m->arena, 25, 8);
	for (int i = 0; i < 25; i++) {
		const bool sees = cell(name, i / 5, i % 5);
		value_set(t, data, i, boolean ? sees : sees ? 0 : low);
	}
	return graph_constant(m->g, name, t, 2, dim, data);
}

static struct tensor *operand(struct machine *m, const char *word)
{
	for (int i = m->n - 1; i >= 0; i--)
		if (!strcmp(m->name[i], word))
			return m->value[i];
	int64_t v[RANK_MAX];
	if (*word == '[') {
		const int n = read_list(word + 1, v);
		return graph_ints(m->g, n, v);
	}
	char *end;
	const double number = strtod(word, &end);
	return *end ? constant(m, word) : graph_scalar(m->g, number);
}

static void run_line(struct machine *m, char *line)
{
	char *rest = line, *op = strtok_r(rest, " ", &rest), *result = strtok_r(rest, " ", &rest);
	struct tensor *in[6];
	struct attr attr[2];
	int nin = 0, nattr = 0;
	if (!strcmp(op, "param") || !strcmp(op, "input")) {
		declare(m, *op == 'p', result, strtok_r(rest, " ", &rest));
		return;
	}
	for (char *w; (w = strtok_r(rest, " ", &rest));) {
		char *value = strchr(w, '=');
		if (!value) {
			in[nin++] = operand(m, w);
			continue;
		}
		*value++ = 0;
		int64_t *v = ARENA_ARRAY(m->arena, int64_t, RANK_MAX);
		const int len = read_list(value, v);
		attr[nattr++] = strcmp(w, "perm") != 0 ? ATTR_I(w, v[0]) : ATTR_IS(w, len, v);
	}
	struct node *n;
	const int nout = strchr(result, ',') ? 2 : 0;
	assert_int_equal(graph_node(m->g, op, result, nin, in, nout, nattr, attr, NULL, &n), ST_OK);
	for (int k = 0; k < (nout ? nout : 1); k++)
		define(m, strtok_r(result, ",", &result), n->out[k]);
}

/* --- Two graphs of one program --- */

struct variant_of {
	struct graph_problem train, eval;
	char symbol[32];
	stint_step *step;
	int noutput;
	int64_t numel;
	double output[VALUES];
	int ngrad;
	char *grad_name[RESULTS];
	int64_t grad_numel[RESULTS];
	double *grad[RESULTS];
};

struct trial {
	const struct form *form;
	const struct section *section;
	struct arena *arena;
	bool recognised;
	struct variant_of v[2]; /* recognised, spelled out */
	char error[400];
	void **object;
};

static void put(void *user, enum diag_level level, const struct where *w, const char *message,
	const char *hint)
{
	struct trial *t = user;
	(void)w, (void)hint;
	if (level == DIAG_ERROR && !*t->error)
		snprintf(t->error, sizeof t->error, "%s", message);
}

/* All operators; without `match`, nothing is recognised. */
static const struct op_table *table_of(struct arena *a, bool match)
{
	const struct op_table *all = ops_table();
	struct op_table *t = ARENA_NEW(a, struct op_table);
	const struct op_def **family = ARENA_ARRAY(a, const struct op_def *, all->nfamily);
	if (match)
		return all;
	for (int f = 0; f < all->nfamily; f++) {
		int n = 0;
		while (all->family[f][n].name)
			n++;
		struct op_def *copy = arena_memdup(
			a, all->family[f], (size_t)n + 1, sizeof(struct op_def));
		for (int i = 0; i < n; i++)
			copy[i].match = NULL;
		family[f] = copy;
	}
	*t = (struct op_table){all->nfamily, family};
	return t;
}

static struct graph *read_program(struct trial *t, struct diag *d, const struct op_table *table)
{
	static const struct target target = {.portable = true, .threads = 2};
	struct machine m = {.arena = t->arena,
		.g = graph_new(t->arena, d, "attention", table, &target, DT_F64)};
	char *rest = arena_strdup(t->arena, t->form->text);
	for (char *line; (line = strtok_r(rest, ";", &rest));)
		run_line(&m, line);
	m.g->input = arena_memdup(t->arena, m.input, RESULTS, sizeof *m.input);
	m.g->ninput = m.ninput;
	m.g->output = arena_memdup(t->arena, &m.value[m.n - 1], 1, sizeof *m.value);
	m.g->noutput = 1;
	return m.g;
}

/* The sum of the outputs, each with a weight of its own. */
static enum status attach_loss(void *user, struct graph *g)
{
	struct trial *t = user;
	struct tensor *y = g->output[0];
	double *w = ARENA_ARRAY(t->arena, double, y->numel);
	int64_t *axes = ARENA_ARRAY(t->arena, int64_t, RANK_MAX);
	for (int i = 0; i < RANK_MAX; i++)
		axes[i] = i;
	for (int64_t i = 0; i < y->numel; i++)
		w[i] = 0.25 + case_draw(99, (uint64_t)i);
	const struct attr attr[] = {ATTR_IS("axes", y->rank, axes), ATTR_I("keepdims", 0)};
	y = OP2(g, op_by_role(g->table, ROLE_MUL)->name, y,
		graph_constant(g, "weights", DT_F64, y->rank, y->dim, w));
	g->loss = graph_op(g, op_by_role(g->table, ROLE_REDUCE_SUM)->name, 1, &y, 2, attr);
	return g->failed;
}

static bool has_op(const struct graph *g, const char *op)
{
	for (int i = 0; i < g->nnode; i++)
		if (!strcmp(g->node[i]->op->name, op))
			return true;
	return false;
}

static enum status build(struct trial *t, struct diag *d, int k, const char *folder)
{
	const struct graph *imported = read_program(t, d, table_of(t->arena, k == 0));
	struct graph *train, *eval;
	struct optimizer_spec sgd;
	const struct graph_options o = {.optimizer = &sgd, .attach = attach_loss, .user = t};
	TRY(optimizer_parse(t->arena, ops_table(), "sgd:lr=0.5", &sgd, d));
	TRY(graphs_train(imported, &o, &train));
	TRY(graphs_forward(imported, &o, LOWER_EVAL, &eval));
	if (k == 0)
		t->recognised = has_op(train, t->section->op) && has_op(eval, t->section->op) &&
				(!t->section->gradient || has_op(train, t->section->gradient));
	return step_write(t->arena, d, t->v[k].symbol, train, eval, false, folder, &t->v[k].train,
		&t->v[k].eval);
}

/* --- Running --- */

static void collect(void *user, int parameter, const void *data, size_t bytes)
{
	struct variant_of *v = user;
	v->grad_name[v->ngrad] = strdup(v->step->model->resident[parameter].name);
	v->grad_numel[v->ngrad] = (int64_t)(bytes / 8);
	v->grad[v->ngrad] = malloc(bytes);
	memcpy(v->grad[v->ngrad++], data, bytes);
}

static void reset(struct variant_of *v)
{
	for (int i = 0; i < v->step->model->nresident; i++) {
		const struct tensor *x = v->train.tensor[i];
		if (x->data)
			assert_int_equal(stint_set(v->step, v->train.problem->tensor[i].name,
						 x->data, (size_t)tensor_bytes(x)),
				STINT_OK);
	}
	v->step->count = 0;
}

static void run(struct trial *t, int k)
{
	struct variant_of *v = &t->v[k];
	char name[64];
	snprintf(name, sizeof name, "stint_model_%s", v->symbol);
	const struct stint_model *m = *t->object ? dlsym(*t->object, name) : NULL;
	assert_non_null(m);
	assert_int_equal(stint_init(&v->step, m, NULL, 0), STINT_OK);
	reset(v);
	assert_int_equal(stint_eval(v->step, 0), STINT_OK);
	v->numel = 1;
	for (int i = 0; i < m->output[0].rank; i++)
		v->numel *= m->output[0].dim[i];
	assert_in_range(v->numel, 1, VALUES);
	memcpy(v->output, v->step->arena + m->output[0].offset, (size_t)v->numel * 8);
	reset(v);
	struct stint_probe probe = {.user = v, .gradient = collect};
	assert_int_equal(stint_train_probed(v->step, 0, &probe), STINT_OK);
}

static void compare(const char *what, const double *a, const double *b, int64_t n)
{
	for (int64_t i = 0; i < n; i++)
		if (!(fabs(a[i] - b[i]) <= 1e-12 || (isnan(a[i]) && isnan(b[i]))))
			fail_msg("%s, element %lld: %.17g, spelled out %.17g", what, (long long)i,
				a[i], b[i]);
}

static void release(struct variant_of *v)
{
	for (int i = 0; i < v->ngrad; i++) {
		free(v->grad_name[i]);
		free(v->grad[i]);
	}
	stint_free(v->step);
}

static void test_form(void **state)
{
	struct trial *t = *state;
	if (*t->error)
		fail_msg("%s", t->error);
	assert_int_equal(t->recognised, t->section->found);
	if (!t->section->found)
		return;
	run(t, 0);
	run(t, 1);
	assert_int_equal(t->v[0].numel, t->v[1].numel);
	compare("output", t->v[0].output, t->v[1].output, t->v[0].numel);
	assert_int_equal(t->v[0].ngrad, t->v[1].ngrad);
	for (int i = 0; i < t->v[0].ngrad; i++) {
		int j = 0;
		while (j < t->v[1].ngrad && strcmp(t->v[0].grad_name[i], t->v[1].grad_name[j]) != 0)
			j++;
		assert_in_range(j, 0, t->v[1].ngrad - 1);
		assert_int_equal(t->v[0].grad_numel[i], t->v[1].grad_numel[j]);
		if (t->section->gradients)
			compare(t->v[0].grad_name[i], t->v[0].grad[i], t->v[1].grad[j],
				t->v[0].grad_numel[i]);
	}
	release(&t->v[0]);
	release(&t->v[1]);
}

static void *compile_all(struct trial *trial, int n, const char *folder, const char *runtime)
{
	struct text command = {0};
	char path[4096];
	text_add(&command, VALUES_CC " %s -I%s -shared -o %s/all.so", STEP_CFLAGS, runtime, folder);
	for (int i = 0; i < n; i++)
		for (int k = 0; k < 2; k++)
			if (!*trial[i].error && trial[i].section->found)
				text_add(&command, " %s/%s/step.c", folder, trial[i].v[k].symbol);
	text_puts(&command, " -lm");
	const int rc = system(command.s);
	text_free(&command);
	snprintf(path, sizeof path, "%s/all.so", folder);
	return rc == 0 ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
}

static void set_up(struct trial *t, int number, const char *folder)
{
	struct diag d = {.put = put, .user = t};
	t->arena = arena_new();
	for (int k = 0; k < 2; k++) {
		snprintf(t->v[k].symbol, sizeof t->v[k].symbol, "form%d_%d", number, k);
		if (build(t, &d, k, folder) != ST_OK && !*t->error)
			snprintf(t->error, sizeof t->error, "failed without a message");
	}
}

int main(int argc, char **argv)
{
	if (argc != 3) {
		fprintf(stderr, "usage: test_attention FOLDER RUNTIME\n");
		return 2;
	}
	struct CMUnitTest tests[FORMS];
	struct trial *trial = calloc(FORMS, sizeof *trial);
	void *object;
	mkdir(argv[1], 0777);
	int n = 0;
	for (size_t k = 0; k < sizeof sections / sizeof *sections; k++)
		for (int i = 0; trial && i < sections[k].n; i++, n++) {
			trial[n].form = &sections[k].form[i];
			trial[n].section = &sections[k];
			trial[n].object = &object;
			set_up(&trial[n], n, argv[1]);
			tests[n] = (struct CMUnitTest){
				trial[n].form->name, test_form, NULL, NULL, &trial[n]};
		}
	object = compile_all(trial, n, argv[1], argv[2]);
	const int failed = _cmocka_run_group_tests("attention", tests, (size_t)n, NULL, NULL);
	for (int i = 0; i < n; i++)
		arena_free(trial[i].arena);
	free(trial);
	if (object)
		dlclose(object);
	return failed != 0;
}
