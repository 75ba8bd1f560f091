/* The order of an epoch: permutations, as even as chance, and not the same twice. */
#include "scratch.h"

#include <stdlib.h>
#include <string.h>

#include "data/shuffle.h"

static void a_list_is_kept_while_it_is_small(void **state)
{
	(void)state;
	struct shuffle o;
	int64_t want[1000];
	assert_int_equal(shuffle_open(&o, 1000), 0);
	shuffle_begin(&o, 3, 4);
	shuffle_list(want, 1000, 3, 4);
	for (int64_t i = 0; i < 1000; i++)
		assert_int_equal(shuffle_at(&o, i), want[i]);
	shuffle_close(&o);
	assert_int_equal(shuffle_open(&o, 0), 0);
	shuffle_begin(&o, 3, 4);
	shuffle_close(&o);
}

/* A computed order of n, which a list could hold. */
static struct shuffle computed(int64_t n, int64_t seed, int64_t epoch)
{
	struct shuffle o = {.n = n, .seed = seed, .epoch = epoch, .side = 1};
	while ((int64_t)(o.side * o.side) < n)
		o.side++;
	return o;
}

static void computed_orders_are_permutations(void **state)
{
	(void)state;
	for (int64_t n = 1; n < 5000; n = n < 40 ? n + 1 : n * 3 + 1) {
		unsigned char *seen = calloc((size_t)n, 1);
		const struct shuffle o = computed(n, 5, 6);
		assert_non_null(seen);
		for (int64_t i = 0; i < n; i++) {
			const int64_t at = shuffle_compute(&o, i);
			assert_in_range(at, 0, n - 1);
			assert_int_equal(seen[at]++, 0);
		}
		free(seen);
	}
}

/* Over epochs every sample comes to every place as often: Pearson's statistic of N * N cells has
 * (N - 1)^2 degrees of freedom; the bounds are 5 deviations of it. */
static void places_are_even(void **state)
{
	(void)state;
	enum { N = 50, EPOCHS = 20000 };
	static int count[N][N];
	double sum = 0;
	const double expected = (double)EPOCHS / N, free_ = (N - 1) * (N - 1);
	for (int64_t epoch = 0; epoch < EPOCHS; epoch++) {
		const struct shuffle o = computed(N, 7, epoch);
		for (int64_t i = 0; i < N; i++)
			count[i][shuffle_compute(&o, i)]++;
	}
	for (int i = 0; i < N; i++)
		for (int k = 0; k < N; k++)
			sum += (count[i][k] - expected) * (count[i][k] - expected) / expected;
	assert_true(sum > free_ - 5 * 69.3 && sum < free_ + 5 * 69.3); /* sqrt(2 * 49^2) */
}

/* And so does every ordered pair of samples to two neighbouring places. */
static void neighbours_are_even(void **state)
{
	(void)state;
	enum { N = 20, EPOCHS = 40000 };
	static int count[N][N];
	double sum = 0;
	const double expected = (double)EPOCHS / (N * (N - 1)), free_ = N * (N - 1) - 1;
	for (int64_t epoch = 0; epoch < EPOCHS; epoch++) {
		const struct shuffle o = computed(N, 8, epoch);
		count[shuffle_compute(&o, 3)][shuffle_compute(&o, 4)]++;
	}
	for (int i = 0; i < N; i++)
		for (int k = 0; k < N; k++)
			if (i != k)
				sum += (count[i][k] - expected) * (count[i][k] - expected) /
				       expected;
			else
				assert_int_equal(count[i][k], 0);
	assert_true(sum > free_ - 5 * 27.5 && sum < free_ + 5 * 27.5);
}

/* More than are listed: no list, and still a permutation. */
static void many_samples_need_no_list(void **state)
{
	(void)state;
	const int64_t n = (int64_t)SHUFFLE_LISTED + 12345;
	struct shuffle o;
	int64_t differ = 0;
	assert_int_equal(shuffle_open(&o, n), 0);
	assert_null(o.list);
	unsigned char *seen = calloc((size_t)n / 8 + 1, 1);
	assert_non_null(seen);
	shuffle_begin(&o, 1, 2);
	for (int64_t i = 0; i < n; i++) {
		const int64_t at = shuffle_at(&o, i);
		if (at < 0 || at >= n || seen[at / 8] >> at % 8 & 1)
			fail_msg("place %lld", (long long)i);
		seen[at / 8] |= (unsigned char)(1 << at % 8);
	}
	shuffle_begin(&o, 1, 3);
	for (int64_t i = 0; i < 100; i++) {
		const struct shuffle before = {.n = n, .seed = 1, .epoch = 2, .side = o.side};
		differ += shuffle_at(&o, i) != shuffle_at(&before, i);
	}
	assert_true(differ > 95);
	free(seen);
	shuffle_close(&o);
	assert_int_equal(shuffle_open(&o, INT64_MAX), 0);
	shuffle_begin(&o, 1, 2);
	assert_in_range(shuffle_at(&o, INT64_MAX - 1), 0, INT64_MAX - 1);
	shuffle_close(&o);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_list_is_kept_while_it_is_small),
		cmocka_unit_test(computed_orders_are_permutations),
		cmocka_unit_test(places_are_even),
		cmocka_unit_test(neighbours_are_even),
		cmocka_unit_test(many_samples_need_no_list),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
