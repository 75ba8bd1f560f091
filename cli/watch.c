#include "cli/watch.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/checkpoint.h"
#include "runtime/safetensors.h"

/* fairseq gives up at 1e-4 too: halved so often, a scale of 65,536 is not what makes gradients
 * infinite. */
#define LEAST_SCALE 0x1p-14

enum status watch_start(struct arena *a, const struct loaded *l, struct watch *out, struct diag *d)
{
	*out = (struct watch){.a = a, .l = l, .diag = d};
	return finite_begin(a, l, &out->values, d);
}

void watch_end(struct watch *w)
{
	free(w->kept);
	w->kept = NULL;
}

/* --- The loss's scale --- */

/* [scale, updates since it changed, steps skipped] */
static bool scale_state(const struct watch *w, float state[3])
{
	const int i = load_find(w->l, "state/loss_scale", STINT_STATE);
	return i >= 0 &&
	       !stint_read(w->l->step, w->l->model->resident[i].offset, state, 3 * sizeof *state);
}

bool watch_skipped(const struct watch *w)
{
	float state[3];
	return scale_state(w, state) && state[1] == 0 && state[2] > 0;
}

bool watch_scale_gone(const struct watch *w, double *scale)
{
	float state[3];
	if (!scale_state(w, state) || state[2] == 0)
		return false;
	*scale = (double)state[0];
	return *scale < LEAST_SCALE;
}

/* --- A step done twice --- */

/* Every tensor that a checkpoint holds, one after the other, to `kept` or back. */
static enum status move(const struct watch *w, bool back)
{
	const struct loaded *l = w->l;
	size_t at = 0;
	for (int i = 0; i < l->model->nresident; i++) {
		const struct stint_tensor *t = &l->model->resident[i];
		if (!checkpoint_holds(t))
			continue;
		const int rc = back ? stint_write(l->step, t->offset, w->kept + at, t->bytes)
				    : stint_read(l->step, t->offset, w->kept + at, t->bytes);
		if (rc)
			return load_fail(l, rc, t->name, w->diag);
		at += t->bytes;
	}
	return ST_OK;
}

enum status watch_keep(struct watch *w)
{
	size_t bytes = 1;
	for (int i = 0; i < w->l->model->nresident && !w->kept; i++)
		if (checkpoint_holds(&w->l->model->resident[i]))
			bytes += w->l->model->resident[i].bytes;
	if (!w->kept)
		w->kept = malloc(bytes);
	return w->kept ? move(w, false) : diag_nomem(w->diag);
}

enum status watch_bring_back(const struct watch *w)
{
	return move(w, true);
}

/* --- Where it began --- */

/* The first number of n that is not finite, or -1. */
static int64_t first_odd(int dtype, const void *data, int64_t n)
{
	for (int64_t i = 0; i < n && dtype <= STINT_F64; i++)
		if (!isfinite(dtype == STINT_F32 ? (double)((const float *)data)[i]
						 : ((const double *)data)[i]))
			return i;
	return -1;
}

const char *watch_data(const struct watch *w, const struct feed *f, const int64_t *sample)
{
	for (int i = 0; i < f->n; i++) {
		const struct stint_tensor *t = &w->l->model->resident[f->bound[i].resident];
		const void *data = load_values(w->l, f->bound[i].resident);
		const int64_t n = t->dtype <= STINT_F64 ? finite_numbers(t) : 0,
			      at = data ? first_odd(t->dtype, data, n) : -1;
		if (at < 0)
			continue;
		if (!t->rank)
			return arena_printf(w->a, "the number in %s", f->bound[i].data.path);
		return arena_printf(w->a, "sample %" PRId64 " of %s",
			sample[f->whole ? 0 : at / (n / t->dim[0])], f->bound[i].data.path);
	}
	return NULL;
}

struct seen {
	const struct stint_model *model;
	const char *output;  /* the first that was not finite */
	int first, bad, all; /* gradients; the first in the model's order */
	bool failed;
};

static void on_gradient(void *user, int parameter, const void *data, size_t bytes)
{
	struct seen *s = user;
	struct finite_count c = {0};
	s->failed |= !data;
	if (!data)
		return;
	finite_count(s->model->resident[parameter].dtype, data, bytes, &c);
	s->all++;
	if (!c.nan + c.inf)
		return;
	if (!s->bad++ || parameter < s->first)
		s->first = parameter;
}

static void on_output(void *user, int output, int dtype, const void *data, size_t bytes)
{
	struct seen *s = user;
	struct finite_count c = {0};
	finite_count(dtype, data, bytes, &c);
	if (c.nan + c.inf)
		s->output = s->output ? s->output : s->model->output[output].name;
}

const char *watch_step(
	const struct watch *w, const struct feed *f, const int64_t *sample, double lr)
{
	const struct loaded *l = w->l;
	struct seen s = {.model = l->model};
	const struct stint_probe probe = {.user = &s, .gradient = on_gradient, .output = on_output};
	const char *data = watch_data(w, f, sample);
	if (data)
		return data;
	const int rc = l->train(l->step, lr, &probe);
	if (rc || s.failed)
		return rc ? (load_fail(l, rc, "training", w->diag), NULL)
			  : (diag_nomem(w->diag), NULL);
	if (s.output)
		return arena_printf(w->a, "output '%s' of the model, from finite data", s.output);
	if (!isfinite(l->loss(l->step)))
		return "the loss itself, from finite outputs";
	if (s.bad)
		return arena_printf(w->a, "the gradient of '%s', and %d of %d gradients in all",
			l->model->resident[s.first].name, s.bad, s.all);
	return arena_printf(
		w->a, "the updates with a learning rate of %g, from finite gradients", lr);
}
