/* Metrics against torchmetrics' numbers (tests/oracle/metrics.py), and what these do not show. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "train/metrics.h"

struct torch_metric {
	const char *text;
	int nclass;
	double value[8]; /* of the whole, then per class */
};
struct torch_case {
	const char *name;
	enum metric_task_kind kind;
	int64_t rows, classes, inner, ignore;
	int logits;
	const float *scores;
	const void *target;
	const int64_t *confusion;
	const struct torch_metric *metric;
};
#include "metrics_torch.h"

static int ncase = sizeof torch_cases / sizeof *torch_cases;

static struct metric_task task_of(const struct torch_case *c)
{
	return (struct metric_task){.kind = c->kind,
		.classes = c->classes,
		.inner = c->inner,
		.ignore = c->ignore,
		.logits = c->logits,
		.rows = c->rows};
}

/* In batches of three rows. */
static void feed(struct metrics *m, const struct torch_case *c)
{
	const size_t width = c->kind == METRIC_CLASSES ? sizeof(int64_t) : sizeof(float);
	const int64_t each = c->inner * (c->kind == METRIC_CLASSES ? c->classes : 1);
	metrics_clear(m);
	for (int64_t r = 0; r < c->rows; r += 3) {
		const int64_t n = c->rows - r < 3 ? c->rows - r : 3;
		metrics_add(m, c->scores + r * each,
			(const char *)c->target + (size_t)(r * c->inner) * width, n);
	}
}

static void close_to(double have, double want, const char *name, const char *text)
{
	if (!(fabs(have - want) <= 2e-6 * fmax(1, fabs(want))))
		fail_msg("%s, %s: %.9g instead of %.9g", name, text, have, want);
}

static void one_metric(const struct torch_case *c, const struct torch_metric *want)
{
	struct arena *a = arena_new();
	struct diag d = {0};
	struct metrics m;
	const struct metric_task task = task_of(c);
	assert_int_equal(metrics_parse(a, &want->text, 1, &m, &d), ST_OK);
	assert_int_equal(metrics_start(a, &m, &task, &d), ST_OK);
	for (int pass = 0; pass < 2; pass++) { /* the second is the first again */
		feed(&m, c);
		close_to(metrics_value(&m, 0), want->value[0], c->name, want->text);
	}
	assert_true(!want->nclass || metrics_per_class(&m, 0));
	for (int k = 0; k < want->nclass; k++)
		close_to(metrics_class_value(&m, 0, k), want->value[1 + k], c->name, want->text);
	arena_free(a);
}

static void as_torchmetrics(void **state)
{
	(void)state;
	int n = 0;
	for (int i = 0; i < ncase; i++)
		for (const struct torch_metric *w = torch_cases[i].metric; w->text; w++, n++)
			one_metric(&torch_cases[i], w);
	assert_true(n > 80);
}

static void confusion(void **state)
{
	(void)state;
	const char *text = "confusion";
	for (int i = 0; i < ncase; i++) {
		const struct torch_case *c = &torch_cases[i];
		struct arena *a = arena_new();
		struct diag d = {0};
		struct metrics m;
		const struct metric_task task = task_of(c);
		assert_int_equal(metrics_parse(a, &text, 1, &m, &d), ST_OK);
		assert_int_equal(metrics_start(a, &m, &task, &d), c->confusion ? ST_OK : ST_USAGE);
		if (c->confusion) {
			feed(&m, c);
			assert_memory_equal(m.confusion, c->confusion,
				(size_t)(c->classes * c->classes) * sizeof *c->confusion);
		}
		arena_free(a);
	}
}

static double accuracy(const struct metric_task *t, const void *x, const int64_t *label,
	int64_t rows, int64_t *counted)
{
	const char *text = "accuracy";
	struct arena *a = arena_new();
	struct diag d = {0};
	struct metrics m;
	assert_int_equal(metrics_parse(a, &text, 1, &m, &d), ST_OK);
	assert_int_equal(metrics_start(a, &m, t, &d), ST_OK);
	metrics_clear(&m);
	metrics_add(&m, x, label, rows);
	*counted = m.counted;
	const double v = metrics_value(&m, 0);
	arena_free(a);
	return v;
}

static void rows_of_classes(void **state)
{
	(void)state;
	const float x[] = {1, 3, 2, /**/ 5, 5, 1, /**/ -3, -2, -1, /**/ 0, 0, 9};
	const int64_t label[] = {1, 1, 2, 0};
	struct metric_task t = {
		.kind = METRIC_CLASSES, .classes = 3, .inner = 1, .ignore = -100, .rows = 4};
	int64_t n;
	/* the second row's largest stands twice: the first one counts, so it is wrong */
	assert_true(accuracy(&t, x, label, 4, &n) == 0.5 && n == 4);
	assert_true(accuracy(&t, x, label, 1, &n) == 1 && n == 1);
	assert_true(accuracy(&t, x, label, 0, &n) == 0 && n == 0);
	t.ignore = 2;
	assert_true(accuracy(&t, x, label, 4, &n) == 1.0 / 3 && n == 3);
}

static void doubles_and_an_axis_in_the_middle(void **state)
{
	(void)state;
	const double x[] = {1, 9, 2, 8, /**/ 4, 0, 3, 1}; /* [2, 2 classes, 2] */
	const int64_t label[] = {1, 0, 0, 1};
	const struct metric_task t = {.kind = METRIC_CLASSES,
		.classes = 2,
		.inner = 2,
		.ignore = -100,
		.wide = true,
		.rows = 2};
	int64_t n;
	assert_true(accuracy(&t, x, label, 2, &n) == 1 && n == 4);
	assert_true(accuracy(&t, x, label, 1, &n) == 1 && n == 2);
}

static void what_is_no_number_is_not_the_largest(void **state)
{
	(void)state;
	const float x[] = {1, NAN, 2};
	const int64_t label[] = {2};
	const struct metric_task t = {
		.kind = METRIC_CLASSES, .classes = 3, .inner = 1, .ignore = -100, .rows = 1};
	int64_t n;
	assert_true(accuracy(&t, x, label, 1, &n) == 1 && n == 1);
}

static void refused(void **state)
{
	(void)state;
	static const char *const bad[] = {"", "acuracy", "accuracy:", "accuracy:k=3", "top-k:k=0",
		"top-k:k=x", "f1:average=mean", "auc:average=micro", "auc:thresholds=1",
		"mae:average=macro"};
	struct arena *a = arena_new();
	struct metrics m;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct diag d = {0};
		assert_int_equal(metrics_parse(a, &bad[i], 1, &m, &d), ST_USAGE);
		assert_int_equal(d.errors, 1);
	}
	static const char *const twice[] = {"top-k", "top-k:k=5"};
	struct diag d = {0};
	assert_int_equal(metrics_parse(a, twice, 2, &m, &d), ST_USAGE);
	/* numbers are no classes, classes no numbers */
	static const char *const f1 = "f1", *const mae = "mae";
	const struct metric_task numbers = {.kind = METRIC_VALUES, .classes = 1, .inner = 1},
				 classes = {.kind = METRIC_CLASSES, .classes = 2, .inner = 1};
	assert_int_equal(metrics_parse(a, &f1, 1, &m, &d), ST_OK);
	assert_int_equal(metrics_start(a, &m, &numbers, &d), ST_USAGE);
	assert_int_equal(metrics_parse(a, &mae, 1, &m, &d), ST_OK);
	assert_int_equal(metrics_start(a, &m, &classes, &d), ST_USAGE);
	arena_free(a);
}

static void too_many_scores_are_counted_between_thresholds(void **state)
{
	(void)state;
	const char *text = "auc";
	struct arena *a = arena_new();
	struct diag d = {0};
	struct metrics m;
	const struct metric_task t = {
		.kind = METRIC_BINARY, .inner = 1, .logits = true, .rows = (int64_t)1 << 40};
	const float x[] = {-2, -1, 1, 2}, y[] = {0, 1, 0, 1};
	assert_int_equal(metrics_parse(a, &text, 1, &m, &d), ST_OK);
	assert_int_equal(metrics_start(a, &m, &t, &d), ST_OK);
	metrics_clear(&m);
	metrics_add(&m, x, y, 4);
	assert_true(metrics_value(&m, 0) == 0.75);
	arena_free(a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(as_torchmetrics),
		cmocka_unit_test(confusion),
		cmocka_unit_test(rows_of_classes),
		cmocka_unit_test(doubles_and_an_axis_in_the_middle),
		cmocka_unit_test(what_is_no_number_is_not_the_largest),
		cmocka_unit_test(refused),
		cmocka_unit_test(too_many_scores_are_counted_between_thresholds),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
