/* Random numbers against Random123, and the orders made from them. */
#include "scratch.h"

#include <Random123/philox.h>
#include <stdlib.h>
#include <string.h>

#include "data/shuffle.h"
#include "kernels/philox.h"

static void blocks_are_random123s(void **state)
{
	(void)state;
	uint32_t c[4] = {0, 0, 0, 0}, k[2] = {0, 0}, out[4];
	for (int round = 0; round < 1000; round++) {
		philox4x32_ctr_t counter = {{c[0], c[1], c[2], c[3]}};
		philox4x32_key_t key = {{k[0], k[1]}};
		philox4x32_ctr_t want = philox4x32(counter, key);
		stint_philox_block(c, k, out);
		for (int i = 0; i < 4; i++)
			assert_int_equal(out[i], want.v[i]);
		memcpy(c, out, sizeof c); /* the next input is as random as it gets */
		k[0] = out[1] ^ 0x1234567u, k[1] = out[2];
		if (round == 1)
			memset(c, 255, sizeof c), memset(k, 255, sizeof k);
	}
}

/* Random123's own known answers (its kat_vectors file) for all zeros and all ones. */
static void known_answers(void **state)
{
	(void)state;
	static const uint32_t zeros[4] = {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8};
	static const uint32_t ones[4] = {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd};
	uint32_t in[4] = {0}, out[4];
	stint_philox_block(in, in, out);
	assert_memory_equal(out, zeros, sizeof out);
	memset(in, 255, sizeof in);
	stint_philox_block(in, in, out);
	assert_memory_equal(out, ones, sizeof out);
}

static void elements_count_in_fours(void **state)
{
	(void)state;
	uint32_t word[4];
	for (int64_t i = 0; i < 64; i++) {
		stint_philox_at(-5, 7, 3, i / 4 * 4, word);
		float u = stint_philox_uniform(-5, 7, 3, i);
		assert_true(u == (float)(word[i % 4] >> 8) / 16777216.0f);
		assert_true(u >= 0 && u < 1);
	}
}

/* Side by side or one by one: the same words, also where the counter carries. */
static void lanes_are_blocks(void **state)
{
	(void)state;
	static const int64_t from[] = {0, 128, ((int64_t)1 << 34) - 64};
	uint32_t lanes[128], word[4];
	for (int f = 0; f < 3; f++) {
		stint_philox_lanes(-5, ((int64_t)7 << 32) + 9, 3, from[f], lanes);
		for (int i = 0; i < 128; i += 4) {
			stint_philox_at(-5, ((int64_t)7 << 32) + 9, 3, from[f] + i, word);
			assert_memory_equal(lanes + i, word, sizeof word);
		}
	}
}

static void every_part_of_the_key_counts(void **state)
{
	(void)state;
	static const int64_t at[][4] = {{1, 2, 3, 4}, {2, 2, 3, 4}, {1, 3, 3, 4}, {1, 2, 4, 4},
		{1, 2, 3, 8}, {1 + ((int64_t)1 << 32), 2, 3, 4}, {1, 2 + ((int64_t)1 << 32), 3, 4},
		{1, 2, 3, 4 + ((int64_t)1 << 34)}};
	enum { N = sizeof at / sizeof *at };
	uint32_t word[N][4];
	for (int i = 0; i < N; i++) {
		stint_philox_at(at[i][0], at[i][1], at[i][2], at[i][3], word[i]);
		for (int j = 0; j < i; j++)
			if (!(i == N - 1 && j == N - 2)) /* these two share a word of the counter */
				assert_true(memcmp(word[i], word[j], sizeof word[i]) != 0);
	}
}

static void the_mean_is_a_half(void **state)
{
	(void)state;
	double sum = 0;
	for (int64_t i = 0; i < 100000; i++)
		sum += (double)stint_philox_uniform(42, 0, 0, i);
	assert_true(sum / 100000 > 0.495 && sum / 100000 < 0.505); /* 5 deviations */
}

static void orders_are_permutations(void **state)
{
	(void)state;
	enum { N = 1000 };
	int64_t order[N], again[N], other[N];
	unsigned char seen[N] = {0};
	shuffle_list(order, N, 1, 2);
	for (int i = 0; i < N; i++) {
		assert_in_range(order[i], 0, N - 1);
		assert_int_equal(seen[order[i]]++, 0);
	}
	shuffle_list(again, N, 1, 2);
	assert_memory_equal(order, again, sizeof order);
	shuffle_list(other, N, 1, 3);
	assert_true(memcmp(order, other, sizeof order) != 0);
	shuffle_list(other, N, 2, 2);
	assert_true(memcmp(order, other, sizeof order) != 0);
	shuffle_list(order, 1, 1, 2);
	assert_int_equal(order[0], 0);
	shuffle_list(NULL, 0, 1, 2);
}

/* Each of the six orders of three is about as frequent. */
static void orders_are_even(void **state)
{
	(void)state;
	int count[27] = {0};
	for (int64_t epoch = 0; epoch < 6000; epoch++) {
		int64_t o[3];
		shuffle_list(o, 3, 9, epoch);
		count[o[0] * 9 + o[1] * 3 + o[2]]++;
	}
	static const int places[] = {5, 7, 11, 15, 19, 21};
	for (int i = 0; i < 6; i++)
		assert_in_range(count[places[i]], 850, 1150); /* 5 deviations */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(blocks_are_random123s),
		cmocka_unit_test(known_answers),
		cmocka_unit_test(elements_count_in_fours),
		cmocka_unit_test(lanes_are_blocks),
		cmocka_unit_test(every_part_of_the_key_counts),
		cmocka_unit_test(the_mean_is_a_half),
		cmocka_unit_test(orders_are_permutations),
		cmocka_unit_test(orders_are_even),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
