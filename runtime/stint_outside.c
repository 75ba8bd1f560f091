/* SPDX-License-Identifier: MIT-0 */
/* A training step in two parts, between which its caller computes the loss: see stint_rt.h. */
#include <string.h>

#include "stint_rt_device.h"

static const uint64_t NOT_GIVEN = 0x7ff80000f0001234; /* a NaN that nothing computes */

/* Marks a gradient as not given yet, or looks whether it still is. */
static int is_given(stint_step *s, const struct stint_outside *o, int mark)
{
	void *p = o->gradient == SIZE_MAX ? NULL : s->device->at(s, o->gradient);
	const uint32_t single = 0x7fc01234;
	const void *nan = o->dtype == STINT_F64 ? (const void *)&NOT_GIVEN : (const void *)&single;
	const size_t bytes = o->dtype == STINT_F64 ? sizeof NOT_GIVEN : sizeof single;
	if (!p || o->bytes < bytes)
		return 1;
	if (mark)
		memcpy(p, nan, bytes);
	return memcmp(p, nan, bytes) != 0;
}

static int64_t valid(const stint_step *s)
{
	return s->rows > 0 ? s->rows : INT64_MAX;
}

/* Rows with which an incomplete batch is filled up have no gradient: their zeros are the step's
 * own, so that a caller writes only those that count. */
static void fill_gradient(stint_step *s, const struct stint_outside *o, int64_t rows)
{
	unsigned char *p = o->gradient == SIZE_MAX ? NULL : s->device->at(s, o->gradient);
	if (!p || o->rank < 1 || rows >= o->dim[0])
		return;
	const size_t from = o->bytes / (size_t)o->dim[0] * (size_t)rows;
	memset(p + from, 0, o->bytes - from);
}

int stint_forward(stint_step *s)
{
	const struct stint_model *m = s->model;
	int64_t begin, end;
	if (!m->noutside)
		return stint_rt_fail(s, STINT_BAD_DATA,
			"'%s' computes its loss itself: stint_train does the whole step", m->name);
	if (s->pause.waits)
		return stint_rt_fail(s, STINT_BAD_DATA,
			"a forward pass of '%s' waits for stint_backward", m->name);
	stint_own_shards(s, 1, &begin, &end);
	int rc = s->running ? STINT_OK : stint_begin_step(s);
	if (rc)
		return rc;
	s->shard = s->running ? s->shard + 1 : begin;
	rc = stint_run_shard(s, 1, valid(s), 0, NULL);
	s->running = rc == STINT_PAUSED;
	s->kept = 1;
	for (int i = 0; s->running && i < m->noutside; i++)
		(void)is_given(s, &m->outside[i], 1);
	if (!s->running)
		s->rows = 0;
	return s->running ? STINT_OK : rc;
}

/* The loss where the step would have it. */
static void put_loss(stint_step *s, double loss)
{
	void *p = s->device->at(s, s->model->outside_loss);
	const float single = (float)loss;
	if (p && s->model->loss_dtype == STINT_F64)
		memcpy(p, &loss, sizeof loss);
	else if (p)
		memcpy(p, &single, sizeof single);
}

int stint_backward(stint_step *s, double lr, double loss)
{
	const struct stint_model *m = s->model;
	if (!s->pause.waits)
		return stint_rt_fail(s, STINT_BAD_DATA, "no forward pass of '%s' waits", m->name);
	const int64_t rows = stint_outside_rows(s);
	for (int i = 0; i < m->noutside; i++)
		fill_gradient(s, &m->outside[i], rows);
	for (int i = 0; i < m->noutside; i++)
		if (!is_given(s, &m->outside[i], 0))
			return stint_rt_fail(s, STINT_BAD_DATA,
				"the gradient of output '%s' was not written", m->outside[i].name);
	put_loss(s, loss);
	int rc = stint_run_shard(s, 1, valid(s), lr, NULL);
	if (!rc && !s->last)
		return STINT_OK;
	if (s->ranks)
		rc = s->ranks->finish(s, rc);
	s->rows = 0;
	return rc ? (s->running = 0, rc) : stint_train_finish(s);
}

int64_t stint_outside_rows(const stint_step *s)
{
	const struct stint_model *m = s->model;
	const int64_t all = stint_batch_rows(m) / (m->shards > 1 ? m->shards : 1);
	const int64_t left = stint_rows_left(m, valid(s), s->shard);
	return !s->pause.waits ? 0 : left < all ? left : all;
}

const void *stint_outside_value(const stint_step *s, int i)
{
	const int there = s->pause.waits && i >= 0 && i < s->model->noutside;
	return there ? s->device->at(s, s->model->outside[i].value) : NULL;
}

void *stint_outside_gradient(stint_step *s, int i)
{
	const int there = s->pause.waits && i >= 0 && i < s->model->noutside;
	const size_t at = there ? s->model->outside[i].gradient : SIZE_MAX;
	return at == SIZE_MAX ? NULL : s->device->at(s, at);
}
