#include "cli/swa.h"

#include <string.h>

#include "cli/interrupt.h"
#include "cli/training.h"
#include "runtime/checkpoint.h"
#include "runtime/safetensors.h"

static size_t width_of(int dtype)
{
	return dtype == STINT_F32 ? sizeof(float) : sizeof(double);
}

static bool is_real(const struct stint_tensor *t)
{
	return t->dtype == STINT_F32 || t->dtype == STINT_F64;
}

static const struct stint_tensor *tensor_of(const struct training *t, int i)
{
	return &t->l.model->resident[t->swa.resident[i]];
}

/* The residents of a kind, behind what is there. */
static enum status add_kind(struct training *t, int kind)
{
	struct swa *s = &t->swa;
	for (int i = 0; i < t->l.model->nresident; i++) {
		const struct stint_tensor *x = &t->l.model->resident[i];
		if ((int)x->kind != kind || !is_real(x))
			continue;
		struct safetensors_entry *e = &s->mean[s->n];
		*e = (struct safetensors_entry){
			.name = arena_printf(t->arena, "%s%s", CHECKPOINT_BESIDE, x->name),
			.dtype = x->dtype,
			.rank = x->rank,
			.dim = x->dim,
			.data = arena_alloc(t->arena, x->bytes, 1),
			.bytes = x->bytes};
		if (!e->name || !e->data)
			return diag_nomem(t->diag);
		s->resident[s->n++] = i;
	}
	return ST_OK;
}

enum status swa_begin(struct training *t)
{
	struct swa *s = &t->swa;
	*s = (struct swa){.start = t->o->swa_start};
	TRY(swa_rate_parse(t->arena, t->o->swa_lr, &s->rate, t->diag));
	if (!s->start)
		return ST_OK;
	t->ranks.agreed = true; /* all find this */
	if (stint_shares_parameters(t->l.model))
		return diag_fail(t->diag, ST_USAGE, NULL,
			"compile it with --ema DECAY, whose averages are in pieces as the "
			"parameters are; or without --shard parameters",
			"--swa-start averages parameters that each rank has whole");
	t->ranks.agreed = false;
	s->mean = ARENA_ARRAY(t->arena, struct safetensors_entry, t->l.model->nresident);
	s->resident = ARENA_ARRAY(t->arena, int, t->l.model->nresident);
	if (!s->mean || !s->resident)
		return diag_nomem(t->diag);
	TRY(add_kind(t, STINT_PARAMETER));
	s->parameters = s->n;
	return add_kind(t, STINT_BUFFER);
}

/* The mean's memory, to write. */
static unsigned char *memory_of(const struct swa *s, int i)
{
	return (unsigned char *)(uintptr_t)s->mean[i].data;
}

/* By parts, so that a device's step takes no second copy of the model here. */
static enum status add_parameter(struct training *t, int i)
{
	enum { PART = 1 << 15 };
	double part[PART / sizeof(double)];
	const struct stint_tensor *x = tensor_of(t, i);
	unsigned char *mean = memory_of(&t->swa, i);
	for (size_t at = 0; at < x->bytes; at += PART) {
		const size_t bytes = x->bytes - at < PART ? x->bytes - at : PART;
		const int rc = stint_read(t->l.step, x->offset + at, part, bytes);
		if (rc)
			return load_fail(&t->l, rc, x->name, t->diag);
		if (x->dtype == STINT_F32)
			swa_add_floats((float *)(void *)(mean + at), (const float *)(void *)part,
				bytes / sizeof(float), t->swa.epochs);
		else
			swa_add_doubles((double *)(void *)(mean + at), part, bytes / sizeof(double),
				t->swa.epochs);
	}
	return ST_OK;
}

enum status swa_epoch(struct training *t)
{
	struct swa *s = &t->swa;
	struct finite_lost lost;
	if (!s->start || t->place.epoch + 1 < s->start)
		return ST_OK;
	TRY(finite_lost(&t->watch.values, &lost, t->diag));
	if (lost.tensors)
		return ST_OK;
	for (int i = 0; i < s->parameters; i++)
		TRY(add_parameter(t, i));
	s->epochs++;
	s->statistics = false;
	return ST_OK;
}

void swa_saved(const struct swa *s, const struct safetensors_entry **entry, int *n)
{
	*entry = s->mean;
	*n = !s->epochs ? 0 : s->statistics ? s->n : s->parameters;
}

enum status swa_resume(struct training *t, const struct safetensors *file, int64_t epochs)
{
	struct swa *s = &t->swa;
	int found = 0;
	if (!s->start || epochs < 1)
		return ST_OK;
	for (int i = 0; i < s->n; i++) {
		const struct safetensors_entry *e = safetensors_find(file, s->mean[i].name);
		if (!e || e->dtype != s->mean[i].dtype || e->bytes != s->mean[i].bytes)
			break;
		if (safetensors_read(file, e, 0, e->bytes, memory_of(s, i)))
			return diag_fail(
				t->diag, ST_IO, NULL, NULL, "cannot read '%s' again", e->name);
		found++;
	}
	if (found < s->parameters)
		return diag_fail(t->diag, ST_INVALID, NULL, NULL,
			"the checkpoint tells of an average that it does not hold whole");
	s->epochs = epochs;
	s->statistics = found == s->n && s->n > s->parameters;
	return ST_OK;
}

/* --- Running statistics --- */

bool swa_is_due(const struct swa *s)
{
	return s->epochs > 0 && !s->statistics;
}

/* Those of one kind, over the batches. */
struct statistic {
	const struct stint_tensor *tensor;
	size_t n;
	double take; /* a batch's part in the running value */
	double *sum;
	unsigned char *now; /* the tensor's bytes */
};

static double number_at(const struct statistic *x, size_t i)
{
	return x->tensor->dtype == STINT_F32 ? (double)((const float *)(const void *)x->now)[i]
					     : ((const double *)(const void *)x->now)[i];
}

static void put_number(const struct statistic *x, size_t i, double v)
{
	if (x->tensor->dtype == STINT_F32)
		((float *)(void *)x->now)[i] = (float)v;
	else
		((double *)(void *)x->now)[i] = v;
}

static enum status write_back(struct training *t, const struct statistic *x)
{
	const int rc = stint_write(t->l.step, x->tensor->offset, x->now, x->tensor->bytes);
	return rc ? load_fail(&t->l, rc, x->tensor->name, t->diag) : ST_OK;
}

static enum status fill(struct training *t, const struct statistic *x, double v)
{
	for (size_t i = 0; i < x->n; i++)
		put_number(x, i, v);
	return write_back(t, x);
}

static enum status look(struct training *t, const struct statistic *x)
{
	const int rc = stint_read(t->l.step, x->tensor->offset, x->now, x->tensor->bytes);
	return rc ? load_fail(&t->l, rc, x->tensor->name, t->diag) : ST_OK;
}

static void leave_alone(void *user, int parameter, const void *data, size_t bytes)
{
	(void)user, (void)parameter, (void)data, (void)bytes;
}

/* A step of training whose updates are left out: running statistics take the batch's. */
static enum status pass(struct training *t, int64_t batch)
{
	const struct stint_probe probe = {.gradient = leave_alone};
	TRY(training_feed(t, batch));
	TRY(training_rows(t, &t->l, batch));
	const int rc = t->l.train(t->l.step, 0, &probe);
	return rc ? load_fail(&t->l, rc, "running statistics", t->diag) : ST_OK;
}

static enum status put_parameters(struct training *t)
{
	for (int i = 0; i < t->swa.parameters; i++) {
		const struct stint_tensor *x = tensor_of(t, i);
		const int rc = stint_write(t->l.step, x->offset, memory_of(&t->swa, i), x->bytes);
		if (rc)
			return load_fail(&t->l, rc, x->name, t->diag);
	}
	return ST_OK;
}

/* How a running value is made of the one before, r, and a batch's, b: (1 - take) r + take b; r so
 * large that b is lost beside it tells take, exactly. 0: it is not updated at all. */
static enum status find_shares(struct training *t, struct statistic *x, int n)
{
	const double large = 0x1p60;
	for (int i = 0; i < n; i++)
		TRY(fill(t, &x[i], large));
	TRY(pass(t, 0));
	for (int i = 0; i < n; i++) {
		TRY(look(t, &x[i]));
		x[i].take = x[i].n ? 1 - number_at(&x[i], 0) / large : 0;
		if (!(x[i].take > 1e-12))
			x[i].take = 0;
	}
	TRY(watch_bring_back(&t->watch));
	return put_parameters(t);
}

static enum status sum_batches(
	struct training *t, struct statistic *x, int n, int64_t *counted, bool *stopped)
{
	struct progress bar;
	enum status st = ST_OK;
	progress_start(&bar, "statistics of the average", t->batches);
	for (int64_t b = 0; b < t->batches && st == ST_OK && !*stopped; b++) {
		for (int i = 0; i < n && st == ST_OK; i++)
			st = x[i].take > 0 ? fill(t, &x[i], 0) : ST_OK;
		if (st == ST_OK)
			st = pass(t, b);
		const bool counts = st == ST_OK && !watch_skipped(&t->watch);
		*counted += counts;
		for (int i = 0; i < n && counts && st == ST_OK; i++) {
			st = look(t, &x[i]);
			for (size_t k = 0; k < x[i].n; k++)
				x[i].sum[k] += number_at(&x[i], k);
		}
		int64_t asked = interrupt_asked();
		if (st == ST_OK)
			st = ranks_most(&t->ranks, &t->l, &asked, t->diag);
		*stopped = asked != 0;
		progress_tick(&bar);
	}
	progress_end(&bar);
	return st;
}

/* The running statistics of the model with the averaged parameters in it. */
static enum status make_statistics(struct training *t, bool *stopped)
{
	const struct swa *s = &t->swa;
	const int n = s->n - s->parameters;
	int64_t counted = 0;
	struct statistic *x = ARENA_ARRAY(t->arena, struct statistic, n);
	if (!x)
		return diag_nomem(t->diag);
	for (int i = 0; i < n; i++) {
		x[i].tensor = tensor_of(t, s->parameters + i);
		x[i].n = x[i].tensor->bytes / width_of(x[i].tensor->dtype);
		x[i].sum = ARENA_ARRAY(t->arena, double, x[i].n);
		x[i].now = memory_of(s, s->parameters + i);
		if (!x[i].sum)
			return diag_nomem(t->diag);
	}
	TRY(feed_epoch(&t->train, t->o->seed, t->place.epoch, t->diag));
	TRY(find_shares(t, x, n));
	TRY(sum_batches(t, x, n, &counted, stopped));
	for (int i = 0; i < n && !*stopped; i++) {
		if (x[i].take == 0 || !counted)
			continue;
		for (size_t k = 0; k < x[i].n; k++)
			put_number(&x[i], k, x[i].sum[k] / (double)counted / x[i].take);
		TRY(write_back(t, &x[i]));
	}
	return ST_OK;
}

enum status swa_put(struct training *t, bool *stopped)
{
	*stopped = false;
	TRY(watch_keep(&t->watch));
	TRY(put_parameters(t));
	return t->swa.n > t->swa.parameters ? make_statistics(t, stopped) : ST_OK;
}

enum status swa_take_back(struct training *t, bool done)
{
	struct swa *s = &t->swa;
	for (int i = s->parameters; i < s->n && done; i++) {
		const struct stint_tensor *x = tensor_of(t, i);
		const int rc = stint_read(t->l.step, x->offset, memory_of(s, i), x->bytes);
		if (rc)
			return load_fail(&t->l, rc, x->name, t->diag);
	}
	s->statistics = done;
	TRY(watch_bring_back(&t->watch));
	t->l.step->count = t->place.step;
	return ST_OK;
}
