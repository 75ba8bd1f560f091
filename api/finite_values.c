#include "api/finite_values.h"

#include <inttypes.h>

#include "runtime/checkpoint.h"
#include "runtime/safetensors.h"

static enum status count(
	const struct loaded *l, int resident, struct finite_count *c, struct diag *d)
{
	enum { PART = 1 << 20 };
	const struct stint_step *s = l->step;
	const struct stint_tensor *t = &l->model->resident[resident];
	*c = (struct finite_count){0};
	for (size_t at = 0; at < t->bytes; at += PART) {
		const size_t n = t->bytes - at < PART ? t->bytes - at : PART;
		void *part = s->device->hold(s, t->offset + at, n, 1);
		if (!part)
			return load_lost(l, t->name, d);
		finite_count(t->dtype, part, n, c);
		s->device->let(s, part);
	}
	return ST_OK;
}

int64_t finite_numbers(const struct stint_tensor *t)
{
	return (int64_t)(t->bytes / (size_t)safetensors_width(t->dtype));
}

enum status finite_begin(
	struct arena *a, const struct loaded *l, struct finite_values *out, struct diag *d)
{
	*out = (struct finite_values){.a = a, .l = l};
	out->begun = ARENA_ARRAY(a, struct finite_count, l->model->nresident);
	if (!out->begun)
		return diag_nomem(d);
	for (int i = 0; i < l->model->nresident; i++) {
		const struct stint_tensor *t = &l->model->resident[i];
		if (!checkpoint_holds(t))
			continue;
		TRY(count(l, i, &out->begun[i], d));
		if (out->begun[i].nan)
			diag_warn(d, &(struct where){.node = t->name, .op = "tensor"}, NULL,
				"%" PRId64 " of its %" PRId64
				" values are NaN before the first step",
				out->begun[i].nan, finite_numbers(t));
	}
	return ST_OK;
}

enum status finite_lost(const struct finite_values *v, struct finite_lost *out, struct diag *d)
{
	*out = (struct finite_lost){0};
	for (int i = 0; i < v->l->model->nresident; i++) {
		const struct stint_tensor *t = &v->l->model->resident[i];
		struct finite_count c;
		if (!checkpoint_holds(t))
			continue;
		TRY(count(v->l, i, &c, d));
		if (c.nan <= v->begun[i].nan && c.inf <= v->begun[i].inf)
			continue;
		if (!out->tensors++) {
			out->name = t->name;
			out->numbers = c.nan + c.inf;
			out->of = finite_numbers(t);
		}
	}
	return ST_OK;
}

const char *finite_text(struct arena *a, const struct finite_lost *lost)
{
	if (!lost->name)
		return "values that another rank has are not finite";
	const char *text = arena_printf(a,
		"%" PRId64 " of %" PRId64 " values of '%s' are not finite", lost->numbers, lost->of,
		lost->name);
	if (text && lost->tensors > 1)
		text = arena_printf(
			a, "%s, and %d more tensors hold such", text, lost->tensors - 1);
	return text ? text : "values are not finite";
}
