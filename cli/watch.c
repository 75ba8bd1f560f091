#include "cli/watch.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/checkpoint.h"
#include "runtime/finite.h"
#include "runtime/safetensors.h"

/* fairseq gives up at 1e-4 too: halved so often, a scale of 65,536 is not what makes gradients
 * infinite. */
#define LEAST_SCALE 0x1p-14

static int64_t both(const struct finite_count *c)
{
	return c->nan + c->inf;
}

static enum status count(const struct watch *w, int resident, struct finite_count *c)
{
	enum { PART = 1 << 20 };
	const struct stint_step *s = w->l->step;
	const struct stint_tensor *t = &w->l->model->resident[resident];
	*c = (struct finite_count){0};
	for (size_t at = 0; at < t->bytes; at += PART) {
		const size_t n = t->bytes - at < PART ? t->bytes - at : PART;
		void *part = s->device->hold(s, t->offset + at, n, 1);
		if (!part)
			return load_lost(w->l, t->name, w->diag);
		finite_count(t->dtype, part, n, c);
		s->device->let(s, part);
	}
	return ST_OK;
}

static int64_t numbers_of(const struct stint_tensor *t)
{
	return (int64_t)(t->bytes / (size_t)safetensors_width(t->dtype));
}

enum status watch_start(struct arena *a, const struct loaded *l, struct watch *out, struct diag *d)
{
	*out = (struct watch){.a = a, .l = l, .diag = d};
	out->begun = ARENA_ARRAY(a, struct finite_count, l->model->nresident);
	if (!out->begun)
		return diag_nomem(d);
	for (int i = 0; i < l->model->nresident; i++) {
		const struct stint_tensor *t = &l->model->resident[i];
		if (!checkpoint_holds(t))
			continue;
		TRY(count(out, i, &out->begun[i]));
		if (out->begun[i].nan)
			diag_warn(d, &(struct where){.node = t->name, .op = "tensor"}, NULL,
				"%" PRId64 " of its %" PRId64
				" values are NaN before the first step",
				out->begun[i].nan, numbers_of(t));
	}
	return ST_OK;
}

void watch_end(struct watch *w)
{
	free(w->kept);
	w->kept = NULL;
}

enum status watch_values(const struct watch *w, struct watch_lost *out)
{
	*out = (struct watch_lost){0};
	for (int i = 0; i < w->l->model->nresident; i++) {
		const struct stint_tensor *t = &w->l->model->resident[i];
		struct finite_count c;
		if (!checkpoint_holds(t))
			continue;
		TRY(count(w, i, &c));
		if (c.nan <= w->begun[i].nan && c.inf <= w->begun[i].inf)
			continue;
		if (!out->tensors++) {
			out->name = t->name;
			out->numbers = both(&c);
			out->of = numbers_of(t);
		}
	}
	return ST_OK;
}

const char *watch_text(const struct watch *w, const struct watch_lost *lost)
{
	if (!lost->name)
		return "values that another rank has are not finite";
	const char *text = arena_printf(w->a,
		"%" PRId64 " of %" PRId64 " values of '%s' are not finite", lost->numbers, lost->of,
		lost->name);
	if (text && lost->tensors > 1)
		text = arena_printf(
			w->a, "%s, and %d more tensors hold such", text, lost->tensors - 1);
	return text ? text : "values are not finite";
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
		const int64_t n = t->dtype <= STINT_F64 ? numbers_of(t) : 0,
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
	if (!both(&c))
		return;
	if (!s->bad++ || parameter < s->first)
		s->first = parameter;
}

static void on_output(void *user, int output, int dtype, const void *data, size_t bytes)
{
	struct seen *s = user;
	struct finite_count c = {0};
	finite_count(dtype, data, bytes, &c);
	if (both(&c))
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
