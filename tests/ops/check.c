/* Running an example's variants and comparing what they give. */
#include <dlfcn.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/ops/ops_test.h"

/* Finite differences in double precision: h, and how far they may be off, relative to the largest
 * gradient. Single precision: the same for its rounding. */
static const double FD_STEP = 1e-5, FD_TOLERANCE = 1e-6, SINGLE_TOLERANCE = 1e-4;
/* A gradient whose terms cancel (a mask's, added to a whole row of scores) is as exact as its
 * terms: so many units of the largest gradient's last place. */
static const double CANCELLED = 8 * FLT_EPSILON;
/* Two roundings to bf16 of what differs by single precision's; or twice what rounding itself does
 * to the result, where much cancels. */
static const double NARROW_TOLERANCE = 1.0 / 64;
/* Elements of an input that are differenced one by one, evenly spread. */
enum { FD_ELEMENTS = 48 };

struct check {
	struct test_case *c;
	char *why;
	size_t size;
	bool failed;
};

static void fail(struct check *k, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void fail(struct check *k, const char *fmt, ...)
{
	va_list ap;
	if (!k->failed) {
		va_start(ap, fmt);
		vsnprintf(k->why, k->size, fmt, ap);
		va_end(ap);
	}
	k->failed = true;
}

/* --- Running --- */

struct collector {
	struct test_case *c;
	struct variant *v;
};

/* "x3" → 3; -1 for another name. */
static int input_number(const char *name)
{
	return name[0] == 'x' && name[1] >= '0' && name[1] <= '9' ? atoi(name + 1) : -1;
}

static void collect_gradient(void *user, int parameter, const void *data, size_t bytes)
{
	struct collector *col = user;
	const struct stint_tensor *t = &col->v->step->model->resident[parameter];
	int k = input_number(t->name);
	if (k < 0)
		return;
	int64_t n = (int64_t)(bytes / (t->dtype == STINT_F32 ? 4 : 8));
	col->v->result.grad[k] = case_doubles(col->c->arena, t->dtype, data, n);
}

/* Every resident at its initial value; bytes that hold nothing are NaNs. */
static bool reset(struct check *k, struct variant *v)
{
	const struct graph_problem *gp = &v->train;
	for (int i = 0; i < v->step->model->nresident; i++) {
		const struct tensor *t = gp->tensor[i];
		if (t->role == TR_CONTROL)
			continue;
		void *zeros = t->data ? NULL : arena_alloc(k->c->arena, (size_t)tensor_bytes(t), 1);
		if (stint_set(v->step, gp->problem->tensor[i].name, t->data ? t->data : zeros,
			    (size_t)tensor_bytes(t)) != STINT_OK) {
			fail(k, "cannot set resident '%s': %s", gp->problem->tensor[i].name,
				stint_message(v->step));
			return false;
		}
	}
	v->step->count = 0;
	return true;
}

static bool train_once(struct check *k, struct variant *v, bool probed, double *loss)
{
	struct collector col = {k->c, v};
	struct stint_probe probe = {.user = &col, .gradient = collect_gradient};
	v->step->count = 0;
	if (stint_train_probed(v->step, 0, probed ? &probe : NULL) != STINT_OK) {
		fail(k, "training step: %s", stint_message(v->step));
		return false;
	}
	*loss = stint_loss(v->step);
	return true;
}

static bool evaluate(struct check *k, struct variant *v)
{
	const struct stint_model *m = v->step->model;
	if (stint_eval(v->step, 0) != STINT_OK) {
		fail(k, "evaluation: %s", stint_message(v->step));
		return false;
	}
	for (int o = 0; o < m->noutput; o++) {
		int64_t n = 1;
		for (int i = 0; i < m->output[o].rank; i++)
			n *= m->output[o].dim[i];
		v->result.output[o] = case_doubles(
			k->c->arena, m->output[o].dtype, v->step->arena + m->output[o].offset, n);
	}
	return true;
}

static bool run_variant(struct check *k, struct variant *v, void *object, const char *folder)
{
	char symbol[128], path[4096];
	if (variant_is_cuda((int)(v - k->c->variant))) {
		snprintf(path, sizeof path, "%s/%s/step.so", folder, v->symbol);
		v->object = object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	}
	snprintf(symbol, sizeof symbol, "stint_model_%s", v->symbol);
	const struct stint_model *m = object ? dlsym(object, symbol) : NULL;
	if (!m) {
		fail(k, "no %s in the shared object", symbol);
		return false;
	}
	if (stint_init(&v->step, m, NULL, 0) != STINT_OK) {
		fail(k, "init: %s", v->step ? stint_message(v->step) : "no memory");
		return false;
	}
	return reset(k, v) && evaluate(k, v) && reset(k, v) &&
	       train_once(k, v, true, &v->result.loss);
}

/* --- Comparing --- */

static int64_t output_count(const struct variant *v, int o)
{
	const struct stint_output *y = &v->step->model->output[o];
	int64_t n = 1;
	for (int i = 0; i < y->rank; i++)
		n *= y->dim[i];
	return n;
}

static double largest(const double *v, int64_t n)
{
	double m = 0;
	for (int64_t i = 0; i < n; i++)
		m = fabs(v[i]) > m ? fabs(v[i]) : m;
	return m;
}

static double furthest(const double *a, const double *b, int64_t n)
{
	double m = 0;
	for (int64_t i = 0; a && b && i < n; i++)
		m = fabs(a[i] - b[i]) > m ? fabs(a[i] - b[i]) : m;
	return isfinite(m) ? m : 0;
}

/* tolerance 0: bit for bit. Infinities must be equal; NaN equals nothing. */
static void compare(struct check *k, const char *what, int index, const double *a, const double *b,
	int64_t n, double tolerance)
{
	double scale = largest(b, n);
	if (!isfinite(scale) || scale < 1e-3)
		scale = isfinite(scale) ? 1e-3 : 1;
	for (int64_t i = 0; i < n; i++)
		if (!(a[i] == b[i] || fabs(a[i] - b[i]) <= tolerance * scale)) {
			fail(k, "%s %d, element %lld of %lld: %.17g, should be %.17g", what, index,
				(long long)i, (long long)n, a[i], b[i]);
			return;
		}
}

static double largest_gradient(const struct check *k, const struct variant *v)
{
	double m = 0;
	for (int i = 0; i < k->c->nin; i++)
		if (v->result.grad[i])
			m = fmax(m, largest(v->result.grad[i], k->c->in[i].numel));
	return isfinite(m) ? m : 0;
}

static void compare_results(struct check *k, const struct variant *v, const struct variant *with,
	const char *name, double tolerance)
{
	char what[80];
	const double cancelled = tolerance > 0 ? CANCELLED * largest_gradient(k, with) : 0;
	for (int o = 0; o < v->step->model->noutput; o++) {
		snprintf(what, sizeof what, "%s: output", name);
		compare(k, what, o, v->result.output[o], with->result.output[o], output_count(v, o),
			tolerance);
	}
	for (int i = 0; i < k->c->nin; i++) {
		const double *a = v->result.grad[i], *b = with->result.grad[i];
		snprintf(what, sizeof what, "%s: gradient of input", name);
		if (!a != !b)
			fail(k, "%s %d is there in one only", what, i);
		else if (a) {
			const int64_t n = k->c->in[i].numel;
			const double own = cancelled / fmax(largest(b, n), 1e-3);
			compare(k, what, i, a, b, n, fmax(tolerance, isfinite(own) ? own : 0));
		}
	}
}

/* Kernels that know bf16 against the same values rounded: the same bits, but where `bits` is not
 * promised: for products and a GPU's sums, whose own error is known. */
static void compare_narrow(
	struct check *k, const struct variant *v, const struct variant *full, bool bits)
{
	const struct variant *with = &k->c->variant[VAR_ROUNDED];
	for (int o = 0; o < v->step->model->noutput; o++) {
		const int64_t n = output_count(v, o);
		const double own = 2 * furthest(with->result.output[o], full->result.output[o], n);
		const double scale = fmax(largest(with->result.output[o], n), 1e-3);
		compare(k, "bf16: output", o, v->result.output[o], with->result.output[o], n,
			bits ? 0 : fmax(NARROW_TOLERANCE, own / scale));
	}
	for (int i = 0; i < k->c->nin; i++) {
		const double *a = v->result.grad[i], *b = with->result.grad[i];
		const int64_t n = k->c->in[i].numel;
		if (!a != !b)
			fail(k, "bf16: gradient of input %d is there in one only", i);
		if (!a || !b)
			continue;
		const double own = 2 * furthest(b, full->result.grad[i], n);
		compare(k, "bf16: gradient of input", i, a, b, n,
			bits ? 0 : fmax(NARROW_TOLERANCE, own / fmax(largest(b, n), 1e-3)));
	}
}

static void check_reference(struct check *k, const struct variant *v)
{
	for (int o = 0; o < v->step->model->noutput; o++)
		if (k->c->reference[o])
			compare(k, "output against the host's", o, v->result.output[o],
				k->c->reference[o], output_count(v, o), 1e-9);
}

/* The loss with `delta` added to element e of parameter x. */
static double moved_loss(struct check *k, struct variant *v, double *x, int64_t e, double delta)
{
	double loss = NAN, old = x[e];
	x[e] = old + delta;
	train_once(k, v, false, &loss);
	x[e] = old;
	return loss;
}

static double difference(struct check *k, struct variant *v, double *x, int64_t e)
{
	double h = FD_STEP * fmax(1, fabs(x[e]));
	return (moved_loss(k, v, x, e, h) - moved_loss(k, v, x, e, -h)) / (2 * h);
}

static void check_gradient(struct check *k, struct variant *v, int input)
{
	char name[16];
	const struct test_case *c = k->c;
	const double *grad = v->result.grad[input];
	int64_t n = c->in[input].numel, stride = n / FD_ELEMENTS + 1;
	snprintf(name, sizeof name, "x%d", input);
	double *x = stint_at(v->step, name);
	if (!x) { /* nothing reads it: its gradient is zero */
		if (grad && largest(grad, n) > 0)
			fail(k, "input %d is not read but has a gradient", input);
		return;
	}
	double scale = fmax(grad ? largest(grad, n) : 0, 1e-2);
	double tolerance = c->example->tolerance > 0 ? c->example->tolerance : FD_TOLERANCE;
	for (int64_t e = 0; e < n && !k->failed; e += stride) {
		double want = difference(k, v, x, e), got = grad ? grad[e] : 0;
		if (!(fabs(got - want) <= tolerance * scale))
			fail(k,
				"gradient of input %d, element %lld of %lld: %.12g, finite "
				"differences give %.12g",
				input, (long long)e, (long long)n, got, want);
	}
}

/* Running statistics: what a step leaves in them, bit for bit the same under any plan. */
static void compare_buffers(struct check *k, const struct variant *v, const struct variant *with)
{
	const struct stint_model *m = v->step->model;
	for (int i = 0; i < m->nresident && !k->failed; i++) {
		const struct stint_tensor *t = &m->resident[i];
		const void *other = stint_at(with->step, t->name);
		if (t->kind == STINT_BUFFER &&
			(!other || memcmp(v->step->arena + t->offset, other, t->bytes) != 0))
			fail(k, "'%s' differs after a step under the tightest plan", t->name);
	}
}

/* A step for a GPU leaves a mark, which its own runtime reads. */
static bool refuses(struct variant *v, int rc)
{
	const struct stint_model *m = v->step->model;
	if (!m->gpu)
		return rc == STINT_BAD_DATA;
	int64_t *control = (int64_t *)(v->step->arena + m->resident[m->control].offset);
	const bool marked = control[3] != 0;
	control[3] = 0;
	return rc == STINT_OK && marked;
}

/* An operator of ONNX's that checks its indices (inputs from 1 on) refuses one out of range. */
static void check_bad_index(struct check *k, struct variant *v)
{
	static const int64_t bad = INT64_C(1) << 40;
	const struct test_case *c = k->c;
	if (!(c->op->traits & OP_CHECKED) || c->op->since == 0)
		return;
	for (int i = 1; i < c->nin && !k->failed; i++) {
		char name[16];
		snprintf(name, sizeof name, "x%d", i);
		int64_t *x = c->in[i].kind == VALUE_INT ? stint_at(v->step, name) : NULL;
		if (!x || c->in[i].numel == 0)
			continue;
		int64_t old = x[c->in[i].numel - 1];
		x[c->in[i].numel - 1] = bad;
		if (!refuses(v, stint_eval(v->step, 0)) || !refuses(v, stint_train(v->step, 0)))
			fail(k, "index %lld of input %d is not refused", (long long)bad, i);
		x[c->in[i].numel - 1] = old;
	}
}

/* For a GPU, against the C target's. */
static void check_cuda(struct check *k, const struct variant *full)
{
	const struct variant *cuda = &k->c->variant[VAR_CUDA];
	const struct variant *narrow = &k->c->variant[VAR_CUDA_NARROW];
	compare_results(k, cuda, full, "CUDA", SINGLE_TOLERANCE);
	if (narrow->built && k->c->variant[VAR_ROUNDED].built)
		compare_narrow(k, narrow, full, false);
}

bool case_check(struct test_case *c, void *object, const char *folder, char *why, size_t size)
{
	struct check k = {c, why, size, false};
	struct variant *full = &c->variant[VAR_DOUBLE];
	for (int v = 0; v < VAR_COUNT && !k.failed; v++)
		if (c->variant[v].built)
			run_variant(&k, &c->variant[v], object, folder);
	if (k.failed)
		return false;
	check_reference(&k, full);
	if (c->variant[VAR_CUDA].built) {
		check_cuda(&k, full);
		check_bad_index(&k, &c->variant[VAR_CUDA]);
		return !k.failed;
	}
	compare_results(&k, &c->variant[VAR_TIGHT], full, "tightest plan", 0);
	compare_buffers(&k, full, &c->variant[VAR_TIGHT]);
	compare_results(&k, &c->variant[VAR_SINGLE], full, "single precision", SINGLE_TOLERANCE);
	if (c->variant[VAR_LIBRARY].built)
		compare_results(&k, &c->variant[VAR_LIBRARY], full, "library", SINGLE_TOLERANCE);
	if (c->variant[VAR_NARROW].built)
		compare_narrow(&k, &c->variant[VAR_NARROW], full, c->variant[VAR_NARROW].same_sums);
	for (int i = 0; i < c->nin && !k.failed; i++)
		if (c->in[i].kind == VALUE_REAL && !c->in[i].data && !(c->op->loss && i > 0))
			check_gradient(&k, full, i);
	check_bad_index(&k, full);
	return !k.failed;
}
