/* SPDX-License-Identifier: MIT-0 */
/* The runtime of a step for a microcontroller. See stint_bare.h. */
#include "stint_bare.h"

#include <string.h>

static int same_name(const char *a, const char *b)
{
	for (; *a && *a == *b; a++)
		b++;
	return *a == *b;
}

static const struct stint_tensor *find(const stint_step *s, const char *name)
{
	const struct stint_model *m = s->model;
	for (int i = 0; i < m->nresident; i++)
		if (same_name(m->resident[i].name, name))
			return &m->resident[i];
	return NULL;
}

int stint_init(stint_step *s, const struct stint_model *model, void *arena, size_t arena_bytes)
{
	memset(s, 0, sizeof *s);
	s->model = model;
	s->arena = arena;
	if (arena_bytes < model->arena_bytes || (uintptr_t)arena % model->alignment)
		return STINT_BAD_DATA;
	memset(arena, 0, model->arena_bytes);
	for (int i = 0; i < model->nresident; i++) {
		const struct stint_tensor *t = &model->resident[i];
		if (t->value && t->offset != STINT_IN_VALUE)
			memcpy(s->arena + t->offset, t->value, t->bytes);
	}
	return STINT_OK;
}

void *stint_at(stint_step *s, const char *name)
{
	const struct stint_tensor *t = find(s, name);
	return t && t->offset != STINT_IN_VALUE ? s->arena + t->offset : NULL;
}

int stint_set(stint_step *s, const char *name, const void *data, size_t bytes)
{
	const struct stint_tensor *t = find(s, name);
	if (!t || t->bytes != bytes || t->offset == STINT_IN_VALUE)
		return STINT_BAD_DATA;
	memcpy(s->arena + t->offset, data, bytes);
	return STINT_OK;
}

int stint_get(const stint_step *s, const char *name, void *data, size_t bytes)
{
	const struct stint_tensor *t = find(s, name);
	if (!t || t->bytes != bytes)
		return STINT_BAD_DATA;
	memcpy(data, t->offset == STINT_IN_VALUE ? t->value : s->arena + t->offset, bytes);
	return STINT_OK;
}

const void *stint_output(const stint_step *s, const char *name)
{
	for (int i = 0; i < s->model->noutput; i++)
		if (same_name(s->model->output[i].name, name))
			return s->arena + s->model->output[i].offset;
	return NULL;
}

void stint_seed(stint_step *s, int32_t seed)
{
	s->seed = seed;
}

/* The memory at a place; of a value, which nothing writes, it is read-only. */
static void *memory_at(const struct stint_schedule *x, unsigned char *base, size_t place)
{
	return place < STINT_VALUE ? base + place
				   : (void *)(uintptr_t)x->value[place - STINT_VALUE];
}

/* A row whose kernel takes n places; other than 0: *bad was out of range. */
static int call(const struct stint_schedule *x, unsigned char *base, const struct stint_callee *k,
	const size_t *place, int32_t *bad)
{
	void *at[k->places];
	struct stint_frame f = {.at = at};
	for (int i = 0; i < k->places; i++)
		at[i] = memory_at(x, base, place[i]);
	const int rc = k->call(&f);
	*bad = f.bad;
	return rc;
}

int stint_run(stint_step *s, const struct stint_schedule *x, unsigned char *base)
{
	const size_t *row = x->row;
	for (int step = 0; step < x->rows; step++) {
		const struct stint_callee *k = &x->callee[*row >> STINT_WHEN_BITS];
		const size_t when = *row++;
		const int taken = !(when & STINT_BRANCH) || base[*row++];
		if (taken && (s->last || !(when & STINT_LAST)) &&
			call(x, base, k, row, &s->bad_index)) {
			s->bad_step = step + 1;
			return STINT_BAD_DATA;
		}
		row += k->places;
	}
	return STINT_OK;
}

static int run(stint_step *s, int train, int32_t valid, float lr)
{
	const struct stint_model *m = s->model;
	const int32_t part = train ? s->part : 0;
	/* gradients are added one after another: one sum waits, behind the first part */
	const int32_t control[9] = {
		s->seed, s->count, valid, 0, part, part > 0, part > 0, s->last, valid};
	const uint32_t loss = train ? m->loss_offset_train : m->loss_offset_eval;
	if (m->control >= 0)
		memcpy(s->arena + m->resident[m->control].offset, control,
			m->resident[m->control].bytes);
	if (m->lr >= 0)
		memcpy(s->arena + m->resident[m->lr].offset, &lr, sizeof lr);
	s->loss = __builtin_nanf("");
	const int rc = train ? m->train(s) : m->eval(s);
	if (!rc && loss != STINT_IN_VALUE)
		memcpy(&s->loss, s->arena + loss, sizeof s->loss);
	return rc;
}

int stint_train(stint_step *s, float lr)
{
	const int shards = s->model->shards > 1 ? s->model->shards : 1;
	if (!s->model->train)
		return STINT_BAD_DATA;
	s->last = s->part == shards - 1;
	const int rc = run(s, 1, INT32_MAX, lr);
	s->part = rc || s->last ? 0 : s->part + 1;
	s->count += s->last && !rc;
	return rc;
}

int stint_eval(stint_step *s, int32_t valid)
{
	return run(s, 0, valid > 0 ? valid : INT32_MAX, 0);
}

float stint_loss(const stint_step *s)
{
	return s->loss;
}
