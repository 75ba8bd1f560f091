/* check_gradient DIR: the gradients of a compiled double-precision step against central differences
 * of its loss, every parameter, every element. Prints the largest difference. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/load.h"

struct kept {
	const struct loaded *l;
	double **gradient; /* by resident */
};

static void put(void *user, enum diag_level level, const struct where *w, const char *message,
	const char *hint)
{
	(void)user, (void)level, (void)hint;
	fprintf(stderr, "%s: %s\n", w->file ? w->file : "", message);
}

static void keep(void *user, int parameter, const void *data, size_t bytes)
{
	struct kept *k = user;
	k->gradient[parameter] = malloc(bytes);
	if (k->gradient[parameter])
		memcpy(k->gradient[parameter], data, bytes);
}

static int64_t count(const struct loaded *l, int r)
{
	return (int64_t)(l->model->resident[r].bytes / sizeof(double));
}

/* Inputs and targets: reals from [-1, 1). */
static void fill(const struct loaded *l)
{
	uint32_t x = 5;
	for (int r = 0; r < l->model->nresident; r++) {
		double *v = load_at(l, r);
		if (l->model->resident[r].kind != STINT_INPUT)
			continue;
		for (int64_t i = 0; i < count(l, r); i++) {
			x = x * 1664525u + 1013904223u; /* Numerical Recipes' generator */
			v[i] = (double)(x >> 8) / 8388608.0 - 1;
		}
	}
}

static double loss_at(const struct loaded *l, double *at, double v)
{
	double before = *at;
	*at = v;
	int bad = l->eval(l->step, 0, NULL);
	*at = before;
	return bad ? NAN : l->loss(l->step);
}

/* The largest difference over a parameter, relative where the gradient is above 1. */
static double check(const struct loaded *l, int r, const double *gradient)
{
	const double h = 1e-5;
	double worst = 0, *v = load_at(l, r);
	for (int64_t i = 0; i < count(l, r); i++) {
		double numeric = (loss_at(l, &v[i], v[i] + h) - loss_at(l, &v[i], v[i] - h)) /
				 (2 * h);
		double off = fabs(numeric - gradient[i]) / fmax(1, fabs(gradient[i]));
		worst = off <= worst ? worst : off; /* a NaN stays */
		if (isnan(off))
			return INFINITY;
	}
	return worst;
}

int main(int argc, char **argv)
{
	struct diag d = {.put = put};
	struct arena *a = arena_new();
	struct loaded l;
	if (argc < 2 || !a || load_open(a, argv[1], NULL, &l, &d) != ST_OK)
		return 1;
	struct kept k = {&l, ARENA_ARRAY(a, double *, l.model->nresident)};
	const struct stint_probe probe = {.user = &k, .gradient = keep};
	fill(&l);
	double worst = 0;
	int checked = 0;
	/* a finished gradient that is looked at is not applied: the weights stay */
	int bad = l.train(l.step, 0, &probe);
	for (int r = 0; r < l.model->nresident && !bad; r++) {
		if (!k.gradient[r])
			continue;
		double off = check(&l, r, k.gradient[r]);
		printf("%s: %lld elements, off by %.2g\n", l.model->resident[r].name,
			(long long)count(&l, r), off);
		worst = fmax(worst, off);
		checked++;
		free(k.gradient[r]);
	}
	load_close(&l);
	arena_free(a);
	return bad || checked == 0 || !(worst < 1e-8);
}
