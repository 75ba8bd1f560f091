#include "train/auc.h"

#include <math.h>
#include <stdlib.h>

struct scored {
	float score;
	bool is;
};

struct metric_curve {
	int64_t classes, most, n;
	int64_t thresholds;
	float *score;          /* exact: [most][classes] */
	int64_t *label;        /* plus 1; 0: no element is here */
	struct scored *sorted; /* [most] of the class that is looked at */
	float *threshold;      /* else: [thresholds], rising */
	int64_t *bin; /* [classes][thresholds + 1][is]: by how many thresholds are reached */
};

/* As torch.linspace(0, 1, n) has them. */
static void set_thresholds(float *t, int64_t n)
{
	const float step = 1.0f / (float)(n - 1);
	for (int64_t i = 0; i < n; i++)
		t[i] = i < n / 2 ? step * (float)i : 1.0f - step * (float)(n - 1 - i);
}

struct metric_curve *auc_new(struct arena *a, int64_t classes, int64_t most, int64_t thresholds)
{
	struct metric_curve *c = ARENA_NEW(a, struct metric_curve);
	int64_t n;
	if (!c)
		return NULL;
	*c = (struct metric_curve){.classes = classes, .most = most, .thresholds = thresholds};
	if (thresholds) {
		if (!size_mul(classes, 2 * (thresholds + 1), &n))
			return NULL;
		c->bin = ARENA_ARRAY(a, int64_t, n);
		c->threshold = ARENA_ARRAY(a, float, thresholds);
		if (c->threshold)
			set_thresholds(c->threshold, thresholds);
		return c->bin && c->threshold ? c : NULL;
	}
	if (!size_mul(classes, most, &n))
		return NULL;
	c->score = ARENA_ARRAY(a, float, n);
	c->label = ARENA_ARRAY(a, int64_t, most);
	c->sorted = ARENA_ARRAY(a, struct scored, most);
	return c->score && c->label && c->sorted ? c : NULL;
}

void auc_clear(struct metric_curve *c)
{
	c->n = 0;
	for (int64_t i = 0; c->label && i < c->most; i++)
		c->label[i] = 0;
	for (int64_t i = 0; c->score && i < c->most * c->classes; i++)
		c->score[i] = 0;
	for (int64_t i = 0; c->bin && i < c->classes * 2 * (c->thresholds + 1); i++)
		c->bin[i] = 0;
}

/* How many thresholds the score reaches. */
static int64_t reached(const struct metric_curve *c, float score)
{
	int64_t low = 0, high = c->thresholds;
	while (low < high) {
		const int64_t mid = low + (high - low) / 2;
		if (c->threshold[mid] <= score)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

static bool is_class(const struct metric_curve *c, int64_t label, int64_t which)
{
	return c->classes == 1 ? label == 1 : label == which;
}

void auc_add(struct metric_curve *c, const double *score, int64_t label)
{
	for (int64_t k = 0; k < c->classes; k++) {
		const float s = (float)score[k];
		if (c->bin)
			c->bin[(k * (c->thresholds + 1) + reached(c, s)) * 2 +
				is_class(c, label, k)]++;
		else
			c->score[c->n * c->classes + k] = s;
	}
	if (c->label)
		c->label[c->n] = label + 1;
	c->n++;
}

void auc_pass_over(struct metric_curve *c, int64_t elements)
{
	c->n += elements;
}

/* Elements that do not count have left places free. */
static void close_gaps(struct metric_curve *c)
{
	int64_t n = 0;
	for (int64_t i = 0; i < c->most; i++) {
		if (!c->label[i])
			continue;
		for (int64_t k = 0; k < c->classes && n < i; k++)
			c->score[n * c->classes + k] = c->score[i * c->classes + k];
		c->label[n++] = c->label[i];
	}
	c->n = n;
}

enum status auc_join(struct metric_curve *c, const struct metric_join *join, struct diag *d)
{
	const int64_t n = c->classes * 2 * (c->thresholds + 1);
	if (c->bin)
		return join->counts(join->user, c->bin, n, d);
	TRY(join->places(join->user, c->label, c->most * (int64_t)sizeof *c->label, d));
	TRY(join->places(
		join->user, c->score, c->most * c->classes * (int64_t)sizeof *c->score, d));
	close_gaps(c);
	return ST_OK;
}

/* What is not a number stands last. */
static int highest_first(const void *a, const void *b)
{
	const float x = ((const struct scored *)a)->score, y = ((const struct scored *)b)->score;
	if (isnan(x) || isnan(y))
		return isnan(x) - isnan(y);
	return (x < y) - (x > y);
}

/* A curve from (0, 0) to the right, in counts: twice the area under it. */
struct area {
	int64_t is, other; /* so far */
	double twice;
};

static void go_on(struct area *a, int64_t is, int64_t other)
{
	a->twice += (double)other * (double)(2 * a->is + is);
	a->is += is;
	a->other += other;
}

double auc_value(const struct metric_curve *c, int64_t which)
{
	struct area area = {0};
	if (c->bin) {
		const int64_t *bin = c->bin + which * (c->thresholds + 1) * 2;
		/* the curve begins at the highest threshold, not at (0, 0) */
		area.is = bin[c->thresholds * 2 + 1];
		area.other = bin[c->thresholds * 2];
		for (int64_t t = c->thresholds - 1; t > 0; t--)
			go_on(&area, bin[t * 2 + 1], bin[t * 2]);
	} else {
		for (int64_t i = 0; i < c->n; i++)
			c->sorted[i] = (struct scored){c->score[i * c->classes + which],
				is_class(c, c->label[i] - 1, which)};
		qsort(c->sorted, (size_t)c->n, sizeof *c->sorted, highest_first);
		for (int64_t i = 0, next; i < c->n; i = next) {
			int64_t is = 0;
			for (next = i;
				next < c->n && !highest_first(&c->sorted[i], &c->sorted[next]);
				next++)
				is += c->sorted[next].is;
			go_on(&area, is, next - i - is);
		}
	}
	const double all = 2 * (double)area.is * (double)area.other;
	return all > 0 ? area.twice / all : 0;
}
