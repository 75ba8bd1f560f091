/* A folder's step in a program, for stint.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "api/finite_values.h"
#include "api/told.h"
#include "api/weights.h"
#include "runtime/checkpoint.h"

struct stint_trainer {
	struct told told; /* of the last call */
	struct arena *arena;
	const char *dir;
	struct loaded l;
	struct finite_values values;
};

void stint_trainer_free(struct stint_trainer *t)
{
	if (!t)
		return;
	load_close(&t->l);
	arena_free(t->arena);
	told_end(&t->told);
	free(t);
}

static enum status open_step(struct stint_trainer **out, const char *dir)
{
	struct stint_trainer *t = *out = calloc(1, sizeof *t);
	if (!t || !told_begin(&t->told) || !(t->arena = arena_new()) ||
		!(t->dir = arena_strdup(t->arena, dir))) {
		stint_trainer_free(t);
		*out = NULL;
		return ST_INTERNAL;
	}
	enum status st = load_open(t->arena, t->dir, NULL, &t->l, &t->told.diag);
	if (st == ST_OK)
		st = finite_begin(t->arena, &t->l, &t->values, &t->told.diag);
	if (st != ST_OK)
		load_close(&t->l);
	return st;
}

int stint_trainer_open(struct stint_trainer **out, const char *dir)
{
	return (int)open_step(out, dir);
}

const struct stint_diagnostic *stint_trainer_diagnostic(const struct stint_trainer *t, size_t index)
{
	return told_at(&t->told, index);
}

/* Before each call that returns a status. */
static enum status begin(struct stint_trainer *t)
{
	if (!told_anew(&t->told))
		return ST_INTERNAL;
	return t->l.step ? ST_OK
			 : diag_fail(&t->told.diag, ST_USAGE, &(struct where){.file = t->dir}, NULL,
				   "its step is not open");
}

static enum status result(struct stint_trainer *t, int rc, const char *what)
{
	return rc ? load_fail(&t->l, rc, what, &t->told.diag) : ST_OK;
}

/* --- What it holds --- */

/* What the runtime alone writes is nobody's. */
static bool shown(const struct stint_tensor *t)
{
	return t->kind != STINT_CONTROL && t->kind != STINT_SUMS;
}

static enum stint_kind kind_of(const struct stint_model *m, int resident)
{
	const struct stint_tensor *t = &m->resident[resident];
	switch (t->kind) {
	case STINT_INPUT:
		return load_is_target(m, resident) ? STINT_KIND_TARGET : STINT_KIND_INPUT;
	case STINT_PARAMETER:
		return t->trainable ? STINT_KIND_PARAMETER : STINT_KIND_FROZEN;
	case STINT_BUFFER:
		return STINT_KIND_BUFFER;
	case STINT_STATE:
		return STINT_KIND_STATE;
	default:
		return STINT_KIND_CONSTANT;
	}
}

_Static_assert((int)STINT_DTYPE_F32 == (int)STINT_F32 && (int)STINT_DTYPE_F64 == (int)STINT_F64 &&
		       (int)STINT_DTYPE_I64 == (int)STINT_I64 &&
		       (int)STINT_DTYPE_BOOL == (int)STINT_BOOL,
	"types of stint.h are the runtime's");

int stint_trainer_array(const struct stint_trainer *t, size_t index, struct stint_array *out)
{
	const struct stint_model *m = t->l.model;
	const struct stint_step *s = t->l.step;
	if (!s)
		return 0;
	for (int i = 0; i < m->nresident; i++) {
		const struct stint_tensor *x = &m->resident[i];
		if (!shown(x) || index-- > 0)
			continue;
		*out = (struct stint_array){x->name, kind_of(m, i), (enum stint_dtype)x->dtype,
			x->rank, x->dim, x->bytes, s->device->at(s, x->offset)};
		return 1;
	}
	if (index >= (size_t)m->noutput)
		return 0;
	const struct stint_output *x = &m->output[index];
	*out = (struct stint_array){x->name, STINT_KIND_OUTPUT, (enum stint_dtype)x->dtype, x->rank,
		x->dim, x->bytes, s->device->at(s, x->offset)};
	return 1;
}

/* Where an array of this name, and of so many bytes, is. Outputs may be read only. */
static enum status find(
	struct stint_trainer *t, const char *name, size_t bytes, bool read, size_t *offset)
{
	const struct stint_model *m = t->l.model;
	const struct where w = {.file = t->dir, .node = name, .op = "array"};
	size_t has = SIZE_MAX;
	for (int i = 0; i < m->nresident && has == SIZE_MAX; i++)
		if (shown(&m->resident[i]) && !strcmp(m->resident[i].name, name)) {
			has = m->resident[i].bytes;
			*offset = m->resident[i].offset;
		}
	for (int i = 0; i < m->noutput && has == SIZE_MAX && read; i++)
		if (!strcmp(m->output[i].name, name)) {
			has = m->output[i].bytes;
			*offset = m->output[i].offset;
		}
	if (has == SIZE_MAX)
		return diag_fail(&t->told.diag, ST_INVALID, &w, NULL, "the step has no such %s",
			read ? "array" : "array to be set");
	if (has != bytes)
		return diag_fail(
			&t->told.diag, ST_INVALID, &w, NULL, "has %zu bytes, not %zu", has, bytes);
	return ST_OK;
}

static enum status set(struct stint_trainer *t, const char *name, const void *data, size_t bytes)
{
	size_t offset;
	TRY(begin(t));
	TRY(find(t, name, bytes, false, &offset));
	return result(t, stint_write(t->l.step, offset, data, bytes), name);
}

int stint_trainer_set(struct stint_trainer *t, const char *name, const void *data, size_t bytes)
{
	return (int)set(t, name, data, bytes);
}

static enum status get(struct stint_trainer *t, const char *name, void *data, size_t bytes)
{
	size_t offset;
	TRY(begin(t));
	TRY(find(t, name, bytes, true, &offset));
	return result(t, stint_read(t->l.step, offset, data, bytes), name);
}

int stint_trainer_get(struct stint_trainer *t, const char *name, void *data, size_t bytes)
{
	return (int)get(t, name, data, bytes);
}

/* --- Steps --- */

double stint_trainer_rate(const struct stint_trainer *t)
{
	return t->l.model ? t->l.model->lr_default : NAN;
}

int64_t stint_trainer_steps(const struct stint_trainer *t)
{
	return t->l.step ? t->l.step->count : 0;
}

void stint_trainer_seed(struct stint_trainer *t, int64_t seed)
{
	if (t->l.step)
		t->l.seed(t->l.step, seed);
}

int stint_trainer_parts(const struct stint_trainer *t)
{
	return t->l.model ? t->l.model->shards : 1;
}

static enum status check_rate(struct stint_trainer *t, double rate)
{
	return rate >= 0 && !isinf(rate)
		       ? ST_OK
		       : diag_fail(&t->told.diag, ST_USAGE, &(struct where){.file = t->dir},
				 "stint_trainer_rate is the optimizer's own",
				 "the learning rate %g is no finite number from 0", rate);
}

static enum status train(struct stint_trainer *t, double rate, double *loss)
{
	TRY(begin(t));
	TRY(check_rate(t, rate));
	TRY(result(t, t->l.train(t->l.step, rate, NULL), t->dir));
	if (loss)
		*loss = t->l.loss(t->l.step);
	return ST_OK;
}

int stint_trainer_train(struct stint_trainer *t, double rate, double *loss)
{
	return (int)train(t, rate, loss);
}

static enum status take_rows(struct stint_trainer *t, int64_t rows)
{
	TRY(begin(t));
	return result(t, t->l.rows(t->l.step, rows), t->dir);
}

int stint_trainer_rows(struct stint_trainer *t, int64_t rows)
{
	return (int)take_rows(t, rows);
}

static enum status forward(struct stint_trainer *t)
{
	TRY(begin(t));
	return result(t, t->l.forward(t->l.step), t->dir);
}

int stint_trainer_forward(struct stint_trainer *t)
{
	return (int)forward(t);
}

static enum status backward(struct stint_trainer *t, double rate, double loss)
{
	TRY(begin(t));
	TRY(check_rate(t, rate));
	return result(t, t->l.backward(t->l.step, rate, loss), t->dir);
}

int stint_trainer_backward(struct stint_trainer *t, double rate, double loss)
{
	return (int)backward(t, rate, loss);
}

int stint_trainer_outside(
	const struct stint_trainer *t, size_t index, struct stint_array *value, void **gradient)
{
	const struct stint_model *m = t->l.model;
	if (!t->l.step || index >= (size_t)m->noutside ||
		!t->l.outside_value(t->l.step, (int)index))
		return 0;
	const struct stint_outside *x = &m->outside[index];
	*value = (struct stint_array){x->name, STINT_KIND_OUTPUT, (enum stint_dtype)x->dtype,
		x->rank, x->dim, x->bytes, (void *)t->l.outside_value(t->l.step, (int)index)};
	*gradient = t->l.outside_gradient(t->l.step, (int)index);
	return 1;
}

int64_t stint_trainer_outside_rows(const struct stint_trainer *t)
{
	return t->l.step ? t->l.outside_rows(t->l.step) : 0;
}

int stint_trainer_gradient(const struct stint_trainer *t, size_t index, struct stint_array *out)
{
	const struct stint_model *m = t->l.model;
	if (!t->l.step || index >= (size_t)m->nkept)
		return 0;
	const int of = m->kept[index].resident;
	const struct stint_tensor *x = &m->resident[of];
	*out = (struct stint_array){x->name, kind_of(m, of), (enum stint_dtype)x->dtype, x->rank,
		x->dim, x->bytes, (void *)t->l.gradient(t->l.step, x->name)};
	return 1;
}

static enum status evaluate(struct stint_trainer *t, int64_t rows, double *loss)
{
	TRY(begin(t));
	TRY(result(t, t->l.eval(t->l.step, rows, NULL), t->dir));
	if (loss)
		*loss = t->l.loss(t->l.step);
	return ST_OK;
}

int stint_trainer_eval(struct stint_trainer *t, int64_t rows, double *loss)
{
	return (int)evaluate(t, rows, loss);
}

int stint_trainer_loss(const struct stint_trainer *t, size_t index, struct stint_loss *out)
{
	const struct stint_model *m = t->l.model;
	if (!t->l.step || index >= (size_t)m->nloss)
		return 0;
	const struct stint_loss_term *x = &m->loss[index];
	*out = (struct stint_loss){
		x->name, x->text, x->weight, t->l.loss_part(t->l.step, (int)index)};
	return 1;
}

/* --- Files --- */

static enum status file_fail(struct stint_trainer *t, const char *message)
{
	return diag_fail(&t->told.diag, ST_IO, NULL, NULL, "%s", message);
}

/* Values that are not finite are never saved. */
static enum status check_finite(struct stint_trainer *t)
{
	struct finite_lost lost;
	TRY(finite_lost(&t->values, &lost, &t->told.diag));
	return lost.tensors ? diag_fail(&t->told.diag, ST_DIVERGED, &(struct where){.file = t->dir},
				      "load what was saved before, and train with a smaller rate",
				      "training diverged: %s; nothing is saved",
				      finite_text(t->arena, &lost))
			    : ST_OK;
}

static enum status save(struct stint_trainer *t, const char *path)
{
	char message[256];
	TRY(begin(t));
	TRY(check_finite(t));
	const struct checkpoint_place place = {.step = t->l.step->count, .seed = t->l.step->seed};
	return checkpoint_write(path, t->l.step, &place, message) ? file_fail(t, message) : ST_OK;
}

int stint_trainer_save(struct stint_trainer *t, const char *path)
{
	return (int)save(t, path);
}

static enum status load(struct stint_trainer *t, const char *path, int strict)
{
	char message[256];
	struct checkpoint_place place;
	const struct weights w = {.path = path, .strict = strict};
	int is;
	TRY(begin(t));
	if (checkpoint_read_place(path, &place, &is, message))
		return file_fail(t, message);
	struct arena *a = arena_new();
	const enum status st = a ? weights_load(a, &t->l, &w, &t->told.diag)
				 : diag_nomem(&t->told.diag);
	arena_free(a);
	if (st == ST_OK && is) {
		t->l.step->count = place.step;
		t->l.step->seed = place.seed;
	}
	return st;
}

int stint_trainer_load(struct stint_trainer *t, const char *path, int strict)
{
	return (int)load(t, path, strict);
}
