/* Running a model's variants and comparing what they give. */
#include <dlfcn.h>
#include <fenv.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/random/variant.h"

/* Single precision: how far a gradient may be off, relative to the largest of its tensor or to
 * SMALL of the largest of all: less is what cancellation leaves. On top comes what single precision
 * is not sure of itself: SPREADS times as far as its gradients move when all numbers change by
 * about their rounding, SHAKE, and as far as they move when all operations round up, or all down
 * (W. Kahan, "How Futile are Mindless Assessments of Roundoff in Floating-Point Computation?",
 * 2006: redirected rounding). Where that is UNSURE or more, or where double precision moves by
 * SINGLE_TOLERANCE, the model says nothing about single precision: its errors are those of the
 * problem, not of a kernel. */
static const double SINGLE_TOLERANCE = 2e-5, SMALL = 1e-2, SHAKE = 1e-7, SPREADS = 10,
		    UNSURE = 1e-2;
/* Finite differences along a direction in one parameter: relative to the gradient's length, plus
 * what rounding of the loss and of the gradient leaves. */
static const double FD_TOLERANCE = 1e-4, FD_FLOOR = 1e-8;
enum { SHAKES = 4 };

/* --- Running --- */

static struct generator numbers_of(const struct random_model *m, uint64_t what)
{
	return (struct generator){.state = (m->seed * 1000 + what) * UINT64_C(0x9fb21c651e98df25)};
}

/* What the caller gives: the same in every variant. */
static void fill(struct random_model *m, const struct graph *g, const struct tensor *t, void *data)
{
	int k = 0;
	while (k < m->g.nfeed && strcmp(m->g.feed[k].name, t->name) != 0)
		k++;
	struct generator r = numbers_of(m, (uint64_t)k);
	bool target = g->nterm && t == g->term->target;
	int64_t range = target ? g->output[0]->dim[1] : k < m->g.nfeed ? m->g.feed[k].range : 1;
	for (int64_t i = 0; i < t->numel; i++)
		if (!dtype_is_real(t->dtype))
			((int64_t *)data)[i] = draw_below(&r, range);
		else if (target && m->g.loss[0] == 'b')
			value_set(t->dtype, data, i, (double)(float)draw_uniform(&r));
		else
			value_set(t->dtype, data, i, (double)(float)draw_normal(&r));
	if (m->g.poison.input && !strcmp(m->g.poison.input, t->name))
		value_set(t->dtype, data, draw_below(&r, t->numel), m->g.poison.value);
}

/* Every resident at its initial value. */
static bool reset(struct random_model *m, struct random_variant *v)
{
	const struct graph_problem *gp = &v->train;
	for (int i = 0; i < v->step->model->nresident; i++) {
		const struct tensor *t = gp->tensor[i];
		unsigned char *at = v->step->arena + v->step->model->resident[i].offset;
		if (t->role == TR_CONTROL)
			continue;
		if (t->role == TR_INPUT)
			fill(m, gp->graph, t, at);
		else if (t->data)
			memcpy(at, t->data, (size_t)tensor_bytes(t));
		else
			memset(at, 0, (size_t)tensor_bytes(t));
	}
	v->step->count = 0;
	return true;
}

struct collector {
	struct arena *arena;
	struct numbers *to;
};

static struct bytes keep(struct arena *a, const void *data, size_t n)
{
	return (struct bytes){n, arena_memdup(a, data, n, 1)};
}

static void collect(void *user, int parameter, const void *data, size_t bytes)
{
	struct collector *c = user;
	c->to->grad[parameter] = keep(c->arena, data, bytes);
}

static bool train(struct random_model *m, struct random_variant *v, struct numbers *to)
{
	struct collector c = {m->t->arena, to};
	const struct stint_probe probe = {.user = &c, .gradient = collect};
	int n = v->step->model->nresident;
	to->grad = ARENA_ARRAY(m->t->arena, struct bytes, n);
	v->step->count = 0;
	if (stint_train_probed(v->step, 0, &probe) != STINT_OK) {
		random_error(m, "%s: training: %s", v->symbol, stint_message(v->step));
		return false;
	}
	to->loss = stint_loss(v->step);
	return true;
}

static bool evaluate(struct random_model *m, struct random_variant *v)
{
	const struct stint_model *model = v->step->model;
	v->got.output = ARENA_ARRAY(m->t->arena, struct bytes, model->noutput);
	if (stint_eval(v->step, 0) != STINT_OK) {
		random_error(m, "%s: evaluation: %s", v->symbol, stint_message(v->step));
		return false;
	}
	for (int o = 0; o < model->noutput; o++)
		v->got.output[o] = keep(m->t->arena, v->step->arena + model->output[o].offset,
			model->output[o].bytes);
	return true;
}

static bool run_variant(struct random_model *m, struct random_variant *v, void *object)
{
	char symbol[128];
	snprintf(symbol, sizeof symbol, "stint_model_%s", v->symbol);
	const struct stint_model *model = dlsym(object, symbol);
	if (!model || stint_init(&v->step, model, NULL, 0) != STINT_OK) {
		random_error(m, "%s: %s", v->symbol,
			!model    ? "not in the shared object"
			: v->step ? stint_message(v->step)
				  : "no memory");
		return false;
	}
	if (!reset(m, v) || !evaluate(m, v) || !reset(m, v) || !train(m, v, &v->got))
		return false;
	v->got.buffer = ARENA_ARRAY(m->t->arena, struct bytes, model->nresident);
	for (int i = 0; i < model->nresident; i++)
		if (model->resident[i].kind == STINT_BUFFER)
			v->got.buffer[i] = keep(m->t->arena,
				v->step->arena + model->resident[i].offset,
				model->resident[i].bytes);
	return true;
}

/* --- Comparing --- */

static double at(const struct bytes *b, enum dtype t, int64_t i)
{
	return t == DT_F32 ? (double)((const float *)b->data)[i] : ((const double *)b->data)[i];
}

/* Which NaN it is may differ: a compiler may turn the operands of a sum round. */
static bool same_bits(enum dtype t, const struct bytes *a, const struct bytes *b)
{
	const size_t width = t == DT_F32 ? sizeof(float) : sizeof(double);
	if (a->n != b->n || !a->data != !b->data)
		return false;
	if (!a->n || memcmp(a->data, b->data, a->n) == 0)
		return true;
	for (size_t i = 0; i < a->n / width; i++)
		if (!(isnan(at(a, t, (int64_t)i)) && isnan(at(b, t, (int64_t)i))) &&
			memcmp((const char *)a->data + i * width, (const char *)b->data + i * width,
				width) != 0)
			return false;
	return true;
}

static void same_bytes(struct random_model *m, int k, const char *what, const char *name,
	const struct bytes *a, const struct bytes *b)
{
	if (!same_bits(variant_def[k].real, a, b))
		random_error(m, "%s: %s '%s' has other bits than with everything kept",
			variant_def[k].what, what, name);
}

static void compare_bits(struct random_model *m, int k)
{
	const struct random_variant *v = &m->variant[k], *w = &m->variant[variant_def[k].same];
	const struct stint_model *model = v->step->model;
	const char *what = variant_def[k].what;
	if (memcmp(&v->got.loss, &w->got.loss, sizeof v->got.loss) != 0 &&
		!(isnan(v->got.loss) && isnan(w->got.loss)))
		random_error(m, "%s: loss %.17g, with everything kept %.17g", what, v->got.loss,
			w->got.loss);
	for (int o = 0; o < model->noutput; o++)
		same_bytes(m, k, "output", model->output[o].name, &v->got.output[o],
			&w->got.output[o]);
	for (int i = 0; i < model->nresident; i++) {
		int j = stint_find(w->step, model->resident[i].name);
		if (j < 0) {
			random_error(m, "%s: no '%s' elsewhere", what, model->resident[i].name);
			return;
		}
		same_bytes(m, k, "gradient of", model->resident[i].name, &v->got.grad[i],
			&w->got.grad[j]);
		same_bytes(m, k, "buffer", model->resident[i].name, &v->got.buffer[i],
			&w->got.buffer[j]);
	}
}

static double largest(const struct bytes *b)
{
	double most = 0;
	for (int64_t i = 0; b->data && i < (int64_t)(b->n / sizeof(double)); i++) {
		double x = fabs(at(b, DT_F64, i));
		most = x > most || isnan(x) ? x : most;
	}
	return most;
}

static double largest_of_all(const struct numbers *n, int nresident)
{
	double most = 0;
	for (int i = 0; i < nresident; i++) {
		double x = largest(&n->grad[i]);
		most = x > most || isnan(x) ? x : most;
	}
	return most;
}

/* How far gradients `a` of variant v are from `b` of variant w: the worst parameter's, relative to
 * FULL's size. */
static double distance(struct random_model *m, int v, const struct numbers *a, int w,
	const struct numbers *b, const char **name)
{
	const struct random_variant *full = &m->variant[FULL];
	const struct stint_model *model = full->step->model;
	double worst = 0, floor = SMALL * largest_of_all(&full->got, model->nresident);
	for (int i = 0; i < model->nresident; i++) {
		const struct bytes *g = &full->got.grad[i];
		int j = stint_find(m->variant[v].step, model->resident[i].name);
		int k = stint_find(m->variant[w].step, model->resident[i].name);
		double scale = fmax(largest(g), floor);
		if (!g->data || scale == 0)
			continue;
		if (j < 0 || k < 0 || !a->grad[j].data || !b->grad[k].data) {
			*name = model->resident[i].name;
			return INFINITY;
		}
		for (int64_t e = 0; e < (int64_t)(g->n / sizeof(double)); e++) {
			double off = fabs(at(&a->grad[j], variant_def[v].real, e) -
					     at(&b->grad[k], variant_def[w].real, e)) /
				     scale;
			if (!(off <= worst)) {
				worst = isnan(off) ? INFINITY : off;
				*name = model->resident[i].name;
			}
		}
	}
	return worst;
}

static void shake(struct random_variant *v, struct generator *r)
{
	for (int i = 0; i < v->step->model->nresident; i++) {
		const struct stint_tensor *t = &v->step->model->resident[i];
		float *x = (float *)(void *)(v->step->arena + t->offset);
		if (t->dtype == STINT_F32 && t->kind != STINT_CONTROL)
			for (size_t e = 0; e < t->bytes / sizeof *x; e++)
				x[e] *= 1 + (float)(SHAKE * (2 * draw_uniform(r) - 1));
	}
}

/* How far variant k's gradients move when every operation rounds in `direction` of fenv.h. */
static double moved_by(struct random_model *m, int k, int direction)
{
	struct random_variant *v = &m->variant[k];
	struct numbers moved = {0};
	const char *name;
	fesetround(direction);
	bool trained = train(m, v, &moved);
	fesetround(FE_TONEAREST);
	return trained ? distance(m, k, &moved, k, &v->got, &name) : INFINITY;
}

/* How far rounding the numbers given moves single precision's gradients. */
static double spread(struct random_model *m)
{
	struct random_variant *v = &m->variant[SINGLE];
	double worst = 0;
	for (int k = 0; k < SHAKES && !*m->error; k++) {
		struct generator r = numbers_of(m, (uint64_t)(100 + k));
		reset(m, v);
		shake(v, &r);
		worst = fmax(worst, moved_by(m, SINGLE, FE_TONEAREST));
	}
	reset(m, v);
	return worst;
}

/* How far rounding between operations moves variant k's gradients. */
static double drift(struct random_model *m, int k)
{
	static const int direction[] = {FE_UPWARD, FE_DOWNWARD};
	struct random_variant *v = &m->variant[k];
	double worst = 0;
	for (int i = 0; i < 2 && !*m->error; i++) {
		reset(m, v);
		worst = fmax(worst, moved_by(m, k, direction[i]));
	}
	reset(m, v);
	return worst;
}

static void check_single(struct random_model *m)
{
	const char *name = "";
	double shaken = spread(m), drifted = drift(m, SINGLE), unsure = fmax(shaken, drifted);
	double allowed = SINGLE_TOLERANCE + SPREADS * shaken + drifted;
	m->ill = unsure >= UNSURE || drift(m, FULL) >= SINGLE_TOLERANCE;
	for (int k = SINGLE; k <= LIBRARY && !*m->error && !m->ill; k += LIBRARY - SINGLE) {
		if (!variant_wanted(m, k))
			break;
		double off = distance(m, k, &m->variant[k].got, FULL, &m->variant[FULL].got, &name);
		if (!(off <= allowed))
			random_error(m, "%s: gradient of '%s' is off by %.3g, rounding gives %.3g",
				variant_def[k].what, name, off, unsure);
	}
}

/* --- Finite differences --- */

static double moved_loss(struct random_model *m, struct random_variant *v, double *x,
	const double *old, const double *along, int64_t n, double h)
{
	for (int64_t i = 0; i < n; i++)
		x[i] = old[i] + h * along[i];
	v->step->count = 0;
	if (stint_train(v->step, 0) != STINT_OK)
		random_error(m, "training: %s", stint_message(v->step));
	memcpy(x, old, (size_t)n * sizeof *x);
	return stint_loss(v->step);
}

/* Whether the loss has a slope here: where values tie (rows that Tile repeats, under TopK) there is
 * a kink at the very point, and the sides' slopes differ however short the step. */
static bool is_smooth(struct random_model *m, struct random_variant *v, double *x,
	const double *old, const double *along, int64_t n, double allowed)
{
	const double h = 1e-7, here = moved_loss(m, v, x, old, along, n, 0);
	const double left = (here - moved_loss(m, v, x, old, along, n, -h)) / h;
	const double right = (moved_loss(m, v, x, old, along, n, h) - here) / h;
	return fabs(right - left) <= 1e-3 * (fabs(left) + fabs(right)) + allowed;
}

/* The loss's slope along a random direction in one parameter. Of several steps the best counts: a
 * long one crosses kinks, a short one drowns in rounding. */
static void check_slope(struct random_model *m, int resident, double all)
{
	static const double steps[] = {1e-5, 1e-6, 1e-7, 1e-4};
	struct random_variant *v = &m->variant[FULL];
	const struct stint_tensor *t = &v->step->model->resident[resident];
	const struct bytes *g = &v->got.grad[resident];
	int64_t n = (int64_t)(t->bytes / sizeof(double));
	struct generator r = numbers_of(m, (uint64_t)(200 + resident));
	double *x = (double *)(void *)(v->step->arena + t->offset), want = 0, length = 0;
	double *old = arena_memdup(m->t->arena, x, (size_t)n, sizeof *x), best = INFINITY;
	double *along = ARENA_ARRAY(m->t->arena, double, n), got = 0;
	for (int64_t i = 0; i < n; i++) {
		along[i] = draw_normal(&r);
		want += g->data ? along[i] * at(g, DT_F64, i) : 0;
		length += g->data ? at(g, DT_F64, i) * at(g, DT_F64, i) : 0;
	}
	double allowed = FD_TOLERANCE * sqrt(length) + FD_FLOOR * (all + fabs(v->got.loss));
	for (int k = 0; k < 4 && !(best <= allowed) && !*m->error; k++) {
		double slope = (moved_loss(m, v, x, old, along, n, steps[k]) -
				       moved_loss(m, v, x, old, along, n, -steps[k])) /
			       (2 * steps[k]);
		if (fabs(slope - want) < best) {
			best = fabs(slope - want);
			got = slope;
		}
	}
	if (!(best <= allowed) && is_smooth(m, v, x, old, along, n, allowed))
		random_error(m, "slope along '%s': by its gradient %.12g, by differences %.12g",
			t->name, want, got);
}

static void check_slopes(struct random_model *m)
{
	struct random_variant *v = &m->variant[FULL];
	const struct stint_model *model = v->step->model;
	double all = largest_of_all(&v->got, model->nresident);
	if (!isfinite(v->got.loss) || !isfinite(all)) {
		random_error(m, "loss %g, largest gradient %g", v->got.loss, all);
		return;
	}
	reset(m, v);
	for (int i = 0; i < model->nresident && !*m->error; i++)
		if (model->resident[i].kind == STINT_PARAMETER && model->resident[i].trainable)
			check_slope(m, i, all);
	reset(m, v);
}

/* Library calls repeat for a given number of threads; so does everything else. */
static void check_repeats(struct random_model *m, int k)
{
	struct random_variant *v = &m->variant[k];
	struct numbers again = {0};
	reset(m, v);
	if (!train(m, v, &again))
		return;
	for (int i = 0; i < v->step->model->nresident; i++)
		same_bytes(m, k, "again, gradient of", v->step->model->resident[i].name,
			&again.grad[i], &v->got.grad[i]);
}

/* --- As modules --- */

static int by_value(const void *a, const void *b)
{
	const struct bytes *x = a, *y = b;
	if (x->n != y->n)
		return x->n < y->n ? -1 : 1;
	return memcmp(x->data, y->data, x->n);
}

/* The gradients that there are, in an order that names do not matter to. */
static int gradients(struct random_model *m, const struct random_variant *v, struct bytes **out)
{
	int n = 0, nresident = v->step->model->nresident;
	*out = ARENA_ARRAY(m->t->arena, struct bytes, nresident + 1);
	for (int i = 0; i < nresident; i++)
		if (v->got.grad[i].data)
			(*out)[n++] = v->got.grad[i];
	qsort(*out, (size_t)n, sizeof **out, by_value);
	return n;
}

static void check_modules(struct random_model *m)
{
	struct bytes *a, *b;
	int n = gradients(m, &m->variant[FULL], &a), k = gradients(m, &m->variant[MODULES], &b);
	bool same = n == k;
	for (int i = 0; same && i < n; i++)
		same = by_value(&a[i], &b[i]) == 0;
	if (!same)
		random_error(m, "as modules, %d merged: other gradients, %d for %d", m->lost, k, n);
}

/* --- What is not finite --- */

/* Where FULL's gradients are NaN, and nowhere else, those of variant k must be. */
static void compare_classes(struct random_model *m, int k)
{
	const struct random_variant *full = &m->variant[FULL], *v = &m->variant[k];
	if (isnan(full->got.loss) != isnan(v->got.loss))
		random_error(m, "%s: loss %g, in double precision %g", variant_def[k].what,
			v->got.loss, full->got.loss);
	for (int i = 0; i < full->step->model->nresident && !*m->error; i++) {
		const struct bytes *g = &full->got.grad[i];
		const char *name = full->step->model->resident[i].name;
		int j = stint_find(v->step, name);
		bool same = !g->data || (j >= 0 && v->got.grad[j].data);
		for (int64_t e = 0; same && g->data && e < (int64_t)(g->n / sizeof(double)); e++)
			same = isnan(at(g, DT_F64, e)) ==
			       isnan(at(&v->got.grad[j], variant_def[k].real, e));
		if (!same)
			random_error(m,
				"%s: gradient of '%s' is NaN elsewhere than in double precision",
				variant_def[k].what, name);
	}
}

static void check_station(struct random_model *m, const char *name)
{
	const struct random_variant *v = &m->variant[FULL];
	const struct stint_model *model = v->step->model;
	for (int o = 0; o < model->noutput; o++) {
		const struct bytes *b = &v->got.output[o];
		bool any = strcmp(model->output[o].name, name) != 0;
		for (int64_t e = 0; !any && e < (int64_t)(b->n / sizeof(double)); e++)
			any = isnan(at(b, DT_F64, e));
		if (!any)
			random_error(m, "a NaN in '%s' is not in '%s'", m->g.poison.input, name);
	}
}

/* An infinity may become a NaN in one precision and overflow in the other: that is left alone. */
static void check_poisoned(struct random_model *m)
{
	const struct poison *p = &m->g.poison;
	if (p->arrives && !isnan(m->variant[FULL].got.loss))
		random_error(m, "a NaN in '%s' does not get to the loss: %g", p->input,
			m->variant[FULL].got.loss);
	for (int k = 0; k < p->nstation; k++)
		check_station(m, p->station[k]);
	for (int k = SINGLE; k <= LIBRARY && isnan(p->value) && !*m->error; k += LIBRARY - SINGLE)
		if (variant_wanted(m, k))
			compare_classes(m, k);
}

bool random_check(struct random_model *m, void *object)
{
	for (int k = 0; k < VARIANTS && !*m->error; k++)
		if (variant_wanted(m, k))
			run_variant(m, &m->variant[k], object);
	for (int k = 0; k < VARIANTS && !*m->error; k++)
		if (variant_wanted(m, k))
			compare_bits(m, k);
	if (!*m->error)
		check_repeats(m, variant_wanted(m, LIBRARY) ? LIBRARY : SINGLE);
	if (!*m->error && variant_wanted(m, MODULES))
		check_modules(m);
	if (!*m->error && m->g.poison.input) {
		check_poisoned(m);
		return !*m->error;
	}
	if (!*m->error)
		check_slopes(m);
	if (!*m->error)
		check_single(m);
	return !*m->error;
}
