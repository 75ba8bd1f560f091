/* Offsets: apart where lifetimes meet, aligned, never far from the load. */
#include "problems.h"

#include "tests/bench/planner/layout_gen.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { N = 300 };

static int64_t load_of(const struct layout_buffer *b, int n, int64_t t)
{
	int64_t sum = 0;
	for (int i = 0; i < n; i++)
		sum += b[i].lower <= t && t < b[i].upper ? b[i].size : 0;
	return sum;
}

static void assert_apart(const struct layout_buffer *b, int n, int64_t alignment, int64_t height)
{
	int64_t top = 0;
	for (int i = 0; i < n; i++) {
		assert_true(b[i].offset >= 0 && b[i].offset % alignment == 0);
		if (b[i].offset + b[i].size > top)
			top = b[i].offset + b[i].size;
		for (int j = 0; j < i; j++)
			assert_false(b[i].size && b[j].size && b[i].lower < b[j].upper &&
				     b[j].lower < b[i].upper &&
				     b[i].offset < b[j].offset + b[j].size &&
				     b[j].offset < b[i].offset + b[i].size);
	}
	assert_true(top == height);
}

static void random_buffers(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 20; seed++) {
		struct dice dice = {seed * 7919};
		struct heard h;
		struct diag d = listen(&h);
		struct layout_buffer b[N];
		int64_t alignment = seed % 3 == 0 ? 1 : 64, height, most = 0;
		for (int i = 0; i < N; i++) {
			int64_t lower = roll(&dice, 1000);
			b[i] = (struct layout_buffer){.lower = lower - 500,
				.upper = lower - 500 + 1 + roll(&dice, roll(&dice, 4) ? 40 : 600),
				.size = alignment * roll(&dice, 50)};
		}
		assert_int_equal(layout_place(b, N, alignment, 0, &height, &d), ST_OK);
		assert_apart(b, N, alignment, height);
		for (int64_t t = -500; t < 1200; t++) {
			int64_t load = load_of(b, N, t);
			most = load > most ? load : most;
		}
		assert_true(height >= most);
		assert_true((double)height <= 1.25 * (double)most);
	}
}

/* What is kept longest is used last: a stack, which fits its load exactly. */
static void stack_fits(void **state)
{
	(void)state;
	struct heard h;
	struct diag d = listen(&h);
	struct layout_buffer b[100];
	int64_t height;
	for (int i = 0; i < 100; i++)
		b[i] = (struct layout_buffer){
			.lower = i, .upper = 200 - i, .size = 64 * (1 + i * 37 % 11)};
	assert_int_equal(layout_place(b, 100, 64, 0, &height, &d), ST_OK);
	assert_apart(b, 100, 64, height);
	assert_true(height == load_of(b, 100, 99));
}

/* Cut a box at random, always from one side to the other: pieces that fill it without a gap. */
static int cut_box(struct dice *dice, struct layout_buffer *b, int n, int64_t side)
{
	int made = 1;
	b[0] = (struct layout_buffer){.lower = 0, .upper = side, .size = side};
	for (int tries = 0; made < n && tries < 50 * n; tries++) {
		struct layout_buffer *x = &b[roll(dice, made)];
		int64_t length = roll(dice, 2) ? x->upper - x->lower : 0;
		if (length > 1) {
			b[made] = *x;
			x->upper = x->lower + 1 + roll(dice, (int)length - 1);
			b[made++].lower = x->upper;
		} else if (length == 0 && x->size > 1) {
			b[made] = *x;
			x->size = 1 + roll(dice, (int)x->size - 1);
			b[made++].size -= x->size;
		}
	}
	return made;
}

/* No byte is free at any time: orders alone do not find that, the exact search does. */
static void boxes_fill(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 30; seed++) {
		struct dice dice = {seed * 104729};
		struct heard h;
		struct diag d = listen(&h);
		struct layout_buffer b[N];
		int64_t height;
		int n = cut_box(&dice, b, 20 + 2 * (int)seed, 1000);
		assert_int_equal(layout_place(b, n, 1, 1000, &height, &d), ST_OK);
		assert_apart(b, n, 1, height);
		if (height != 1000)
			fail_msg("seed %d: %d buffers need %d", (int)seed, n, (int)height);
	}
}

/* All families but the last, whose buffers leave no byte free. */
static void families_near_load(void **state)
{
	(void)state;
	static struct layout_buffer b[3000];
	for (int f = 0; f < LAYOUT_FAMILIES - 1; f++)
		for (int n = 200; n <= 3000; n += 1400)
			for (int64_t alignment = 1; alignment <= 64; alignment += 63) {
				struct heard h;
				struct diag d = listen(&h);
				int64_t height;
				layout_gen_make(f, n, (uint64_t)n, b);
				int64_t load = layout_gen_load(b, n, alignment);
				int64_t capacity = load + load / 200;
				assert_int_equal(
					layout_place(b, n, alignment, capacity, &height, &d),
					ST_OK);
				if (n < 1500)
					assert_apart(b, n, alignment, height);
				assert_true(layout_gen_apart(b, n));
				assert_true(height > load - alignment);
				if (height > capacity)
					fail_msg("%s: %d buffers need %.5f of the load",
						layout_gen_name(f), n,
						(double)height / (double)load);
			}
}

/* Some pinned where another placement had them: those stay, all else goes around them. */
static void families_around_fixed(void **state)
{
	(void)state;
	static struct layout_buffer b[1000], was[1000];
	for (int f = 0; f < LAYOUT_FAMILIES; f++) {
		struct dice dice = {(uint64_t)f + 1};
		struct heard h;
		struct diag d = listen(&h);
		int64_t height, again;
		layout_gen_make(f, 1000, 7, b);
		int64_t load = layout_gen_load(b, 1000, 1);
		assert_int_equal(layout_place(b, 1000, 1, 2 * load, &height, &d), ST_OK);
		for (int i = 0; i < 1000; i++) {
			b[i].fixed = roll(&dice, 20) == 0;
			was[i] = b[i];
		}
		assert_int_equal(layout_place(b, 1000, 1, 2 * load, &again, &d), ST_OK);
		assert_apart(b, 1000, 1, again);
		for (int i = 0; i < 1000; i++)
			assert_true(!b[i].fixed || b[i].offset == was[i].offset);
		assert_true(again <= 2 * load);
	}
}

/* The same buffers get the same offsets, whatever happened before. */
static void same_again(void **state)
{
	(void)state;
	static struct layout_buffer b[1500], c[1500];
	for (int f = 4; f < 9; f++) {
		struct heard h;
		struct diag d = listen(&h);
		int64_t height, again;
		layout_gen_make(f, 1500, 3, b);
		layout_gen_make(f, 1500, 3, c);
		int64_t load = layout_gen_load(b, 1500, 1), capacity = load + load / 300;
		assert_int_equal(layout_place(b, 1500, 1, capacity, &height, &d), ST_OK);
		assert_int_equal(layout_place(c, 1500, 1, capacity, &again, &d), ST_OK);
		assert_true(height == again);
		for (int i = 0; i < 1500; i++)
			assert_true(b[i].offset == c[i].offset);
	}
}

/* The least height over all orders of buffers not placed yet, each on top of those that it meets.
 */
static int64_t least_height(struct layout_buffer *b, int n, int placed, int64_t top)
{
	int64_t least = placed == n ? top : INT64_MAX;
	for (int i = placed; i < n; i++) {
		struct layout_buffer x = b[i];
		b[i] = b[placed];
		x.offset = 0;
		for (int j = 0; j < placed; j++)
			if (x.lower < b[j].upper && b[j].lower < x.upper &&
				b[j].offset + b[j].size > x.offset)
				x.offset = b[j].offset + b[j].size;
		b[placed] = x;
		int64_t h = x.offset + x.size > top ? x.offset + x.size : top;
		h = least_height(b, n, placed + 1, h);
		least = h < least ? h : least;
		b[placed] = b[i];
		b[i] = x;
	}
	return least;
}

/* As low as can be, also where that is more than the load. */
static void few_are_optimal(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 400; seed++) {
		struct dice dice = {seed * 15485863};
		struct heard h;
		struct diag d = listen(&h);
		struct layout_buffer b[7], copy[7];
		int64_t height;
		for (int i = 0; i < 7; i++) {
			int lower = roll(&dice, 6);
			b[i] = copy[i] = (struct layout_buffer){.lower = lower,
				.upper = lower + 1 + roll(&dice, 4),
				.size = 1 + roll(&dice, 4)};
		}
		assert_int_equal(layout_place(b, 7, 1, 0, &height, &d), ST_OK);
		assert_apart(b, 7, 1, height);
		int64_t least = least_height(copy, 7, 0, 0);
		if (height != least)
			fail_msg(
				"seed %d: %d where %d will do", (int)seed, (int)height, (int)least);
	}
	/* at most 6 at once, and 7 is the least */
	struct layout_buffer b[] = {
		{.lower = 3, .upper = 7, .size = 1},
		{.lower = 6, .upper = 7, .size = 3},
		{.lower = 4, .upper = 7, .size = 2},
		{.lower = 5, .upper = 6, .size = 2},
		{.lower = 2, .upper = 6, .size = 1},
		{.lower = 2, .upper = 4, .size = 3},
		{.lower = 2, .upper = 3, .size = 2},
		{.lower = 3, .upper = 5, .size = 1},
	};
	struct heard h;
	struct diag d = listen(&h);
	int64_t height;
	assert_true(load_of(b, 8, 4) <= 6 && least_height(b, 8, 0, 0) == 7);
	assert_int_equal(layout_place(b, 8, 1, 6, &height, &d), ST_OK);
	assert_apart(b, 8, 1, height);
	assert_true(height == 7);
}

static void fixed_stay(void **state)
{
	(void)state;
	struct heard h;
	struct diag d = listen(&h);
	struct layout_buffer b[] = {
		{.lower = 0, .upper = 10, .size = 100, .offset = 64, .fixed = true},
		{.lower = 5, .upper = 15, .size = 64},
		{.lower = 5, .upper = 15, .size = 65},
	};
	int64_t height;
	assert_int_equal(layout_place(b, 3, 64, 0, &height, &d), ST_OK);
	assert_apart(b, 3, 64, height);
	assert_true(b[0].offset == 64 && b[1].offset == 0);
}

static void csv_round_trip(void **state)
{
	(void)state;
	struct heard h;
	struct diag d = listen(&h);
	struct arena *a = arena_new();
	struct layout_table t, u;
	const char *text = "id,lower,upper,size\nfirst one,0,3,4\r\n7,3,9,4\nx,2,4,4\n";
	int64_t height;
	assert_int_equal(layout_csv_parse(a, text, strlen(text), "b.csv", &t, &d), ST_OK);
	assert_int_equal(t.n, 3);
	assert_string_equal(t.id[0], "first one");
	assert_int_equal(layout_place(t.b, t.n, 1, 8, &height, &d), ST_OK);
	assert_true(height == 8);
	struct text out = {0}, again = {0};
	layout_csv_print(&t, &out);
	assert_int_equal(layout_csv_parse(a, out.s, out.len, "b.csv", &u, &d), ST_OK);
	assert_true(u.b[2].fixed && u.b[2].offset == t.b[2].offset);
	layout_csv_print(&u, &again);
	assert_string_equal(out.s, again.s);
	text_free(&out);
	text_free(&again);
	arena_free(a);
}

static void csv_faults(void **state)
{
	(void)state;
	static const struct {
		const char *text, *said;
	} bad[] = {
		{"", "line 1: the header has no column \"size\""},
		{"id,lower,upper\n1,2,3\n", "line 1: the header has no column \"size\""},
		{"id,lower,upper,size\n1,2,3\n", "line 2: has 3 fields"},
		{"id,lower,upper,size\n1,3,3,4\n", "line 2: lifetime [3, 3) is empty"},
		{"id,lower,upper,size\n1,2,3,-4\n", "line 2: size and offset are zero or more"},
		{"id,lower,upper,size\n1,2,x,4\n", "line 2: upper \"x\" is not a whole number"},
		{"id,lower,upper,size\n1,2,3,99999999999999999999\n",
			"line 2: size \"99999999999999999999\" is not a whole number"},
		{"id,lower,upper,size\n1,5,3,4\n", "line 2: lifetime [5, 3) is empty"},
		{"id,lower,upper,size\n1,2,3,\n", "line 2: size \"\" is not a whole number"},
		{"id,lower,upper,size\n1,2,3,4\n1,2,3,4\n",
			"line 3: id \"1\" stands on line 2 already"},
		{"id,lower,upper,size,size\n1,2,3,4,4\n", "line 1: the header has \"size\" twice"},
		{"id,lower,upper,size,offset\n1,2,3,4,-1\n",
			"line 2: size and offset are zero or more"},
		{"lower,upper,size\n1,2,3\n", "line 1: the header has no column \"id\""},
		{"id,lower,upper,size\n1,2,3,4611686018427387904\n2,2,3,4611686018427387904\n",
			"line 2: the sizes add up to more than can be counted"},
	};
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct heard h;
		struct diag d = listen(&h);
		struct arena *a = arena_new();
		struct layout_table t;
		const char *text = bad[i].text;
		assert_int_equal(
			layout_csv_parse(a, text, strlen(text), "b.csv", &t, &d), ST_INVALID);
		if (!strstr(h.last, bad[i].said))
			fail_msg("'%s' instead of '%s'", h.last, bad[i].said);
		arena_free(a);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_buffers),
		cmocka_unit_test(stack_fits),
		cmocka_unit_test(boxes_fill),
		cmocka_unit_test(families_near_load),
		cmocka_unit_test(families_around_fixed),
		cmocka_unit_test(same_again),
		cmocka_unit_test(few_are_optimal),
		cmocka_unit_test(fixed_stay),
		cmocka_unit_test(csv_round_trip),
		cmocka_unit_test(csv_faults),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
