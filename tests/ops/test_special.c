/* test_special FOLDER RUNTIME [SCRIPT]: what records make of NaN and infinities, forward and
 * gradient, against PyTorch's numbers (special_torch.h, made by tests/oracle/special.py). All cases
 * are one model, which is built in several variants: double precision, gradients from the other
 * tensors that they can be had from, under a tight budget; single precision; library calls; bf16.
 * With SCRIPT (tests/gpu/ops.sh) instead: CUDA text, through the shim.
 *
 * Every record whose examples take real numbers must have a case, or stand in special_none.h with a
 * reason. */
#include <dlfcn.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "compile/graphs.h"
#include "tests/ops/ops_test.h"
#include "tests/ops/special_none.h"
#include "tests/ops/special_torch.h"

enum { CASES = sizeof torch_special / sizeof *torch_special, MOST_OUTPUTS = 2 * CASES };

/* Relative to the largest finite number: the header's four digits; bf16's eight bits, several times
 * rounded. */
static const double TOLERANCE = 1e-3, NARROW_TOLERANCE = 0.06;

static const struct way {
	enum variant_kind kind;
	const char *name;
	bool narrow, cuda, alternatives;
	double share; /* of the memory between the least and keep-everything (step_write_share) */
} ways[] = {
	{VAR_DOUBLE, "double", .share = 0.2, .alternatives = true},
	{VAR_SINGLE, "single", .share = 1},
	{VAR_LIBRARY, "library", .share = 1},
	{VAR_NARROW, "narrow", .share = 1, .narrow = true},
	{VAR_CUDA, "cuda", .share = 1, .cuda = true},
};

struct special_case {
	struct test_case c;
	struct op_example example;
	struct tensor *y[CASE_OUTPUTS];
	int output[CASE_OUTPUTS]; /* its place among the model's outputs; -1: not there */
};

struct test {
	struct special_case *one; /* CASES of them */
	struct arena *arena;
	struct diag diag;
	const char *folder, *runtime, *script;
	int failures;
};

static void report(void *user, enum diag_level level, const struct where *w, const char *message,
	const char *hint)
{
	struct test *t = user;
	(void)hint;
	if (level != DIAG_ERROR)
		return;
	t->failures++;
	printf("%s: %s\n", w && w->node ? w->node : "", message);
}

/* --- Cases --- */

static const struct op_def *find_record(const char *name)
{
	const struct op_table *t = ops_table();
	for (int k = 0; k < t->nfamily; k++)
		for (const struct op_def *op = t->family[k]; op->name; op++)
			if (!strcmp(op->name, name) && op->until == 0)
				return op;
	return NULL;
}

/* Numbers in a text, `n` of them. */
static bool read_numbers(const char *text, int64_t n, double *v)
{
	char *p = (char *)(uintptr_t)text, *end;
	for (int64_t i = 0; i < n; i++, p = end) {
		v[i] = strtod(p, &end);
		if (end == p)
			return false;
	}
	return strspn(p, " ") == strlen(p);
}

static bool parse_case(struct test *t, int i)
{
	const struct special *s = &torch_special[i];
	struct special_case *one = &t->one[i];
	one->example = (struct op_example){.in = s->in, .attr = s->attr};
	one->c = (struct test_case){.op = find_record(s->op), .example = &one->example};
	if (one->c.op && (s->nout > 1 || one->c.op->min_out > 1))
		one->example.nout = s->nout > one->c.op->min_out ? s->nout : one->c.op->min_out;
	bool ok = one->c.op && case_parse(&one->c);
	for (int k = 0; ok && k < one->c.nin; k++)
		if (s->x[k])
			ok = read_numbers(s->x[k], one->c.in[k].numel, one->c.in[k].v);
	if (!ok) {
		t->failures++;
		printf("case %d, %s (%s), cannot be read\n", i, s->op, s->in);
	}
	return ok;
}

/* --- Building --- */

/* Every case's node, side by side. */
static enum status forward_graph(
	struct test *t, const struct way *w, const struct target *target, struct graph **out)
{
	const enum dtype real = w->kind == VAR_DOUBLE ? DT_F64 : DT_F32;
	struct graph *g = graph_new(t->arena, &t->diag, "special", ops_table(), target, real);
	struct tensor **inputs = ARENA_ARRAY(t->arena, struct tensor *, CASES * CASE_INPUTS);
	if (!g || !inputs)
		return ST_INTERNAL;
	g->output = ARENA_ARRAY(t->arena, struct tensor *, MOST_OUTPUTS);
	for (int i = 0; i < CASES; i++) {
		struct special_case *one = &t->one[i];
		struct node *n;
		TRY(case_node(&one->c, g, arena_printf(t->arena, "s%d.", i), false, inputs, &n));
		for (int k = 0; k < CASE_OUTPUTS; k++) {
			one->output[k] = -1;
			if (k >= torch_special[i].nout || k >= n->nout || !n->out[k])
				continue;
			one->output[k] = g->noutput;
			g->output[g->noutput++] = n->out[k];
		}
	}
	*out = g;
	return ST_OK;
}

/* The loss: all cases' real outputs, each element with a weight of its own. */
static enum status attach_loss(void *user, struct graph *g)
{
	struct test *t = user;
	for (int i = 0; i < CASES; i++)
		for (int k = 0; k < torch_special[i].nout; k++) {
			const int o = t->one[i].output[k];
			struct tensor *y = o >= 0 ? g->output[o] : NULL;
			if (!y || !dtype_is_real(y->dtype) || y->role != TR_VALUE)
				continue;
			y = case_weighted_sum(&t->one[i].c, g, y, k);
			g->loss = g->loss ? OP2(g, op_by_role(g->table, ROLE_ADD)->name, g->loss, y)
					  : y;
		}
	return g->failed;
}

/* Each node reads the last of the lists that it may read. */
static int take_alternatives(struct graph *g)
{
	int taken = 0;
	for (int i = 0; i < g->nnode; i++) {
		struct node *n = g->node[i];
		if (n->nalt == 0)
			continue;
		n->in = n->alt[n->nalt - 1];
		n->nalt = 0;
		taken++;
	}
	return taken;
}

/* As test_ops has layouts and types (build.c), but for library calls: the ways that are taken by
 * default. */
static enum status build(struct test *t, const struct way *w, struct graph_problem *train,
	struct graph_problem *eval)
{
	struct target *target = ARENA_NEW(t->arena, struct target);
	struct graph *forward, *with, *without;
	struct optimizer_spec sgd;
	const struct graph_options o = {.optimizer = &sgd,
		.everywhere = true,
		.narrow = w->narrow ? DT_BF16 : DT_F32,
		.narrow_flags = NARROW_EVERYWHERE,
		.attach = attach_loss,
		.user = t};
	if (!target)
		return ST_INTERNAL;
	case_target(NULL, w->kind, target);
	target->math = MATH_FIXED;
	TRY(forward_graph(t, w, target, &forward));
	TRY(optimizer_parse(t->arena, ops_table(), "sgd:lr=0.5", &sgd, &t->diag));
	TRY(graphs_train(forward, &o, &with));
	TRY(graphs_forward(forward, &o, LOWER_EVAL, &without));
	if (w->alternatives && take_alternatives(with) == 0)
		return diag_fail(
			&t->diag, ST_INTERNAL, NULL, NULL, "no gradient has an alternative");
	return step_write_share(
		t->arena, &t->diag, w->name, with, without, w->share, 0.01, t->folder, train, eval);
}

/* --- Comparing --- */

static const char *class_of(double v)
{
	return isnan(v) ? "NaN" : isinf(v) ? (v > 0 ? "+inf" : "-inf") : "a number";
}

static void compare(struct test *t, const char *way, int i, const char *what, int k,
	const double *got, const char *text, int64_t n, double tolerance)
{
	double *want = ARENA_ARRAY(t->arena, double, n), scale = 1;
	if (!read_numbers(text, n, want)) {
		t->failures++;
		printf("case %d: %s %d has another size than %lld\n", i, what, k, (long long)n);
		return;
	}
	for (int64_t e = 0; e < n; e++)
		scale = isfinite(want[e]) && fabs(want[e]) > scale ? fabs(want[e]) : scale;
	for (int64_t e = 0; e < n; e++) {
		const double v = got ? got[e] : 0; /* no gradient: zero */
		const bool same = !strcmp(class_of(v), class_of(want[e]));
		if (same && (!isfinite(v) || fabs(v - want[e]) <= tolerance * scale))
			continue;
		t->failures++;
		printf("%s: case %d, %s, %s %d, element %lld: %g, PyTorch has %g\n", way, i,
			t->one[i].c.name, what, k, (long long)e, v, want[e]);
		return;
	}
}

struct run {
	struct test *t;
	const struct way *way;
	const stint_step *step;
	const double *grad[CASES][CASE_INPUTS];
};

static void take_gradient(void *user, int parameter, const void *data, size_t bytes)
{
	struct run *r = user;
	const struct stint_tensor *p = &r->step->model->resident[parameter];
	int i, k;
	if (sscanf(p->name, "s%d.x%d", &i, &k) == 2 && i < CASES && k < CASE_INPUTS)
		r->grad[i][k] = case_doubles(r->t->arena, p->dtype, data,
			(int64_t)(bytes / (p->dtype == STINT_F32 ? 4 : 8)));
}

static void compare_outputs(struct run *r)
{
	const struct stint_model *m = r->step->model;
	for (int i = 0; i < CASES; i++)
		for (int k = 0; k < torch_special[i].nout; k++) {
			const int o = r->t->one[i].output[k];
			if (o < 0)
				continue;
			int64_t n = 1;
			for (int a = 0; a < m->output[o].rank; a++)
				n *= m->output[o].dim[a];
			const double *y = case_doubles(r->t->arena, m->output[o].dtype,
				r->step->arena + m->output[o].offset, n);
			compare(r->t, r->way->name, i, "output", k, y, torch_special[i].y[k], n,
				r->way->narrow ? NARROW_TOLERANCE : TOLERANCE);
		}
}

static void compare_gradients(struct run *r)
{
	for (int i = 0; i < CASES; i++)
		for (int k = 0; k < r->t->one[i].c.nin; k++)
			if (torch_special[i].dx[k])
				compare(r->t, r->way->name, i, "gradient of input", k,
					r->grad[i][k], torch_special[i].dx[k],
					r->t->one[i].c.in[k].numel,
					r->way->narrow ? NARROW_TOLERANCE : TOLERANCE);
}

/* Every resident at its initial value. */
static bool reset(struct test *t, stint_step *s, const struct graph_problem *gp)
{
	for (int i = 0; i < s->model->nresident; i++) {
		const struct tensor *x = gp->tensor[i];
		if (x->data && x->role != TR_CONTROL &&
			stint_set(s, gp->problem->tensor[i].name, x->data,
				(size_t)tensor_bytes(x)) != STINT_OK) {
			printf("cannot set '%s': %s\n", gp->problem->tensor[i].name,
				stint_message(s));
			t->failures++;
			return false;
		}
	}
	return true;
}

static void run(
	struct test *t, const struct way *w, const struct graph_problem *train, void *object)
{
	char symbol[64];
	stint_step *s = NULL;
	struct run *r = ARENA_NEW(t->arena, struct run);
	struct stint_probe probe = {.user = r, .gradient = take_gradient};
	snprintf(symbol, sizeof symbol, "stint_model_%s", w->name);
	const struct stint_model *m = object ? dlsym(object, symbol) : NULL;
	bool ok = r && m && stint_init(&s, m, NULL, 0) == STINT_OK && reset(t, s, train);
	if (ok) {
		*r = (struct run){.t = t, .way = w, .step = s};
		ok = stint_eval(s, 0) == STINT_OK;
		if (ok)
			compare_outputs(r);
		ok = ok && reset(t, s, train) && stint_train_probed(s, 0, &probe) == STINT_OK;
		if (ok)
			compare_gradients(r);
	}
	if (!ok) {
		printf("%s: the step does not run: %s\n", w->name, s ? stint_message(s) : "");
		t->failures++;
	}
	stint_free(s);
}

/* What folding makes of the same inputs, in double precision. */
static void check_folding(struct test *t, int i)
{
	struct target *target = ARENA_NEW(t->arena, struct target);
	case_target(NULL, VAR_DOUBLE, target);
	struct test_case *c = &t->one[i].c;
	if (case_reference(c, &t->diag, target) != ST_OK)
		return;
	int at = 0;
	for (int k = 0; k < torch_special[i].nout; k++, at++)
		if (c->reference[at]) {
			int64_t n = 1;
			for (const char *p = torch_special[i].y[k]; *p; p++)
				n += *p == ' ';
			compare(t, "folded", i, "output", k, c->reference[at],
				torch_special[i].y[k], n, TOLERANCE);
		}
}

static void check_way(struct test *t, const struct way *w)
{
	struct graph_problem train, eval;
	struct text command = {0};
	char path[4096];
	t->arena = arena_new();
	const int before = t->failures;
	if (build(t, w, &train, &eval) != ST_OK) {
		t->failures += t->failures == before;
		printf("%s: cannot be built\n", w->name);
	} else {
		snprintf(path, sizeof path, "%s/%s/step.so", t->folder, w->name);
		if (w->cuda)
			text_add(&command, "sh %s %s/%s", t->script, t->folder, w->name);
		else
			text_add(&command, VALUES_CC " %s %s -I%s -shared -o %s %s/%s/step.c -lm",
				STEP_CFLAGS, w->kind == VAR_SINGLE ? "" : "-O0", t->runtime, path,
				t->folder, w->name);
		void *object = !command.failed && system(command.s) == 0
				       ? dlopen(path, RTLD_NOW | RTLD_LOCAL)
				       : NULL;
		run(t, w, &train, object);
		if (object)
			dlclose(object);
	}
	text_free(&command);
	arena_free(t->arena);
}

/* --- Every record --- */

/* Whether an example takes real numbers that are not known when compiling. */
static bool takes_reals(const struct op_def *op)
{
	bool any = false;
	for (const struct op_example *ex = op->example; ex && ex->in && !any; ex++) {
		struct test_case c = {.op = op, .example = ex};
		if (case_parse(&c))
			for (int k = 0; k < c.nin; k++)
				any |= c.in[k].kind == VALUE_REAL;
		arena_free(c.arena);
	}
	return any;
}

static bool is_covered(const char *name)
{
	for (int i = 0; i < CASES; i++)
		if (!strcmp(torch_special[i].op, name))
			return true;
	return false;
}

static const char *reason_for(const char *name)
{
	for (size_t i = 0; i < sizeof special_none / sizeof *special_none; i++)
		if (!strcmp(special_none[i].op, name))
			return special_none[i].why;
	return NULL;
}

static void check_coverage(struct test *t)
{
	const struct op_table *table = ops_table();
	for (int k = 0; k < table->nfamily; k++)
		for (const struct op_def *op = table->family[k]; op->name; op++) {
			const bool covered = is_covered(op->name),
				   excused = reason_for(op->name) != NULL,
				   others = op->expand && !op->infer; /* which have cases */
			if (others || op->until || covered != excused || !takes_reals(op))
				continue;
			t->failures++;
			printf("%s: %s\n", op->name,
				covered ? "has a case, and a reason for none"
					: "has neither a case in tests/oracle/special.py nor a "
					  "reason for none");
		}
}

int main(int argc, char **argv)
{
	struct test t = {.diag = {.put = report}};
	t.diag.user = &t;
	if (argc != 3 && argc != 4) {
		fprintf(stderr, "usage: test_special FOLDER RUNTIME [SCRIPT]\n");
		return 2;
	}
	t.folder = argv[1];
	t.runtime = argv[2];
	t.script = argc == 4 ? argv[3] : NULL;
	t.one = calloc(CASES, sizeof *t.one);
	mkdir(t.folder, 0777);
	for (int i = 0; t.one && i < CASES; i++)
		parse_case(&t, i);
	if (!t.one || t.failures)
		return 1;
	check_coverage(&t);
	t.arena = arena_new();
	for (int i = 0; i < CASES; i++)
		check_folding(&t, i);
	arena_free(t.arena);
	for (size_t k = 0; k < sizeof ways / sizeof *ways; k++)
		if (ways[k].cuda == (t.script != NULL))
			check_way(&t, &ways[k]);
	for (int i = 0; i < CASES; i++)
		case_free(&t.one[i].c);
	free(t.one);
	return t.failures != 0;
}
