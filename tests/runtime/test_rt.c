/* The runtime core, on a step written by hand. */
#include "scratch.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#ifdef _OPENMP
#include <omp.h>
#endif

#include "runtime/safetensors.h"
#include "tiny_step.h"

static stint_step *start(const struct stint_model *m)
{
	stint_step *s;
	assert_int_equal(stint_init(&s, m, NULL, 0), STINT_OK);
	return s;
}

static void set(stint_step *s, const char *name, float v)
{
	assert_int_equal(stint_set(s, name, &v, sizeof v), STINT_OK);
}

static float get(const stint_step *s, const char *name)
{
	float v;
	assert_int_equal(stint_get(s, name, &v, sizeof v), STINT_OK);
	return v;
}

static void starts_with_zeros_and_no_loss(void **state)
{
	(void)state;
	stint_step *s = start(&tiny_model);
	assert_int_equal((uintptr_t)s->arena % 64, 0);
	for (size_t i = 0; i < tiny_model.arena_bytes; i++)
		assert_int_equal(s->arena[i], 0);
	assert_true(isnan(stint_loss(s)));
	stint_free(s);
	stint_free(NULL);
}

static void takes_the_callers_arena(void **state)
{
	(void)state;
	_Alignas(64) static unsigned char room[640];
	stint_step *s;
	memset(room, 7, sizeof room);
	assert_int_equal(stint_init(&s, &tiny_model, room, 576), STINT_OK);
	assert_ptr_equal(s->arena, room);
	assert_int_equal(room[575], 0);
	assert_int_equal(room[576], 7);
	stint_free(s);
	assert_int_equal(stint_init(&s, &tiny_model, room, 575), STINT_BAD_DATA);
	assert_non_null(strstr(stint_message(s), "too small"));
	stint_free(s);
	assert_int_equal(stint_init(&s, &tiny_model, room + 4, 600), STINT_BAD_DATA);
	assert_non_null(strstr(stint_message(s), "aligned"));
	stint_free(s);
}

static void large_arenas_start_on_a_large_page(void **state)
{
	(void)state;
	struct stint_model m = tiny_model;
	m.arena_bytes = ((size_t)5 << 20) + 64;
	stint_step *s = start(&m);
	assert_int_equal((uintptr_t)s->arena % (2 << 20), 0);
	assert_int_equal(s->arena[m.arena_bytes - 1], 0);
	stint_free(s);
}

static void refuses_what_it_was_not_made_for(void **state)
{
	(void)state;
	struct stint_model m = tiny_model;
	stint_step *s;
	m.version = STINT_RT_VERSION + 1;
	assert_int_equal(stint_init(&s, &m, NULL, 0), STINT_BAD_MACHINE);
	assert_non_null(strstr(stint_message(s), "tiny"));
	stint_free(s);
	assert_int_equal(stint_init(&s, &tiny_model_elsewhere, NULL, 0), STINT_BAD_MACHINE);
	assert_string_equal(stint_message(s), "planned for another machine");
	stint_free(s);
}

static void reports_memory_that_is_not_there(void **state)
{
	(void)state;
	struct stint_model m = tiny_model;
	stint_step *s;
	m.arena_bytes = SIZE_MAX - 100;
	assert_int_equal(stint_init(&s, &m, NULL, 0), STINT_NO_MEMORY);
	assert_non_null(strstr(stint_message(s), "memory"));
	stint_free(s);
}

static void names_and_sizes_are_checked(void **state)
{
	(void)state;
	stint_step *s = start(&tiny_model);
	float v = 3, back[2];
	assert_int_equal(stint_find(s, "w"), 2);
	assert_int_equal(stint_find(s, "W"), -1);
	assert_null(stint_at(s, "no"));
	assert_int_equal(stint_set(s, "no", &v, 4), STINT_BAD_DATA);
	assert_non_null(strstr(stint_message(s), "'no'"));
	assert_int_equal(stint_set(s, "w", &v, 3), STINT_BAD_DATA);
	assert_non_null(strstr(stint_message(s), "'w'"));
	assert_int_equal(stint_get(s, "w", back, 8), STINT_BAD_DATA);
	set(s, "w", 3);
	memcpy(&v, stint_at(s, "w"), 4);
	assert_true(v == 3 && get(s, "w") == 3);
	stint_free(s);
}

static void a_step_trains_and_counts(void **state)
{
	(void)state;
	int64_t seen[5];
	stint_step *s = start(&tiny_model);
	set(s, "w", 2), set(s, "x", 3), set(s, "target", 5);
	stint_seed(s, -9);
	assert_int_equal(stint_train(s, 0.125), STINT_OK);
	assert_true(stint_loss(s) == 0.5);
	assert_true(get(s, "w") == 2 - 0.125f * 3);
	assert_int_equal(stint_train(s, 0), STINT_OK);
	memcpy(seen, s->arena + TINY_SEEN, sizeof seen);
	assert_true(seen[0] == -9 && seen[1] == 1 && seen[2] == INT64_MAX && seen[3] == 0);
	assert_int_equal(stint_eval(s, 7), STINT_OK);
	memcpy(seen, s->arena + TINY_SEEN, sizeof seen);
	assert_true(seen[1] == 2 && seen[2] == 7);
	assert_int_equal(stint_eval(s, 0), STINT_OK);
	memcpy(seen, s->arena + TINY_SEEN, sizeof seen);
	assert_true(seen[1] == 2 && seen[2] == INT64_MAX);
	stint_free(s);
}

static void double_precision_has_a_double_rate(void **state)
{
	(void)state;
	const double w = 2, x = 3, target = 5, rate = 0.1;
	double back;
	stint_step *s = start(&tiny_model_double);
	stint_set(s, "w", &w, 8), stint_set(s, "x", &x, 8), stint_set(s, "target", &target, 8);
	assert_int_equal(stint_train(s, rate), STINT_OK);
	assert_int_equal(stint_get(s, "w", &back, 8), STINT_OK);
	assert_true(back == 2 - 0.1 * 3);
	stint_free(s);
}

static void threads_are_the_models_during_a_step_only(void **state)
{
	(void)state;
	int64_t seen[5], want = 1;
	stint_step *s = start(&tiny_model);
#ifdef _OPENMP
	want = 2;
	omp_set_num_threads(3);
#endif
	assert_int_equal(stint_train(s, 0), STINT_OK);
	memcpy(seen, s->arena + TINY_SEEN, sizeof seen);
	assert_int_equal(seen[4], want);
#ifdef _OPENMP
	assert_int_equal(omp_get_max_threads(), 3);
#endif
	stint_free(s);
}

static void a_bad_index_is_named(void **state)
{
	(void)state;
	stint_step *s = start(&tiny_model);
	set(s, "x", 2000);
	assert_int_equal(stint_train(s, 0.1), STINT_BAD_DATA);
	assert_non_null(strstr(stint_message(s), "2000"));
	assert_non_null(strstr(stint_message(s), "layer/mul"));
	assert_int_equal(s->count, 0);
	assert_true(isnan(stint_loss(s)));
	stint_free(s);
}

static void forward_only_models_do_not_train(void **state)
{
	(void)state;
	stint_step *s = start(&tiny_model_forward);
	assert_int_equal(stint_train(s, 0.1), STINT_BAD_DATA);
	assert_non_null(strstr(stint_message(s), "--loss none"));
	stint_free(s);
}

static void keep(void *user, int index, int dtype, const void *data, size_t bytes)
{
	assert_int_equal(index, 0);
	assert_int_equal(dtype, STINT_F32);
	assert_int_equal(bytes, 4);
	memcpy(user, data, bytes);
}

static void the_probe_reaches_the_step(void **state)
{
	(void)state;
	float y = 0;
	const struct stint_probe probe = {.user = &y, .output = keep};
	stint_step *s = start(&tiny_model);
	set(s, "w", 2), set(s, "x", 3);
	assert_int_equal(stint_eval_probed(s, 0, &probe), STINT_OK);
	assert_true(y == 6);
	stint_free(s);
}

static void weights_load_by_name(void **state)
{
	(void)state;
	const float w = 4, other[2] = {1, 2};
	const int64_t count = 11, one = 1, two = 2;
	char message[256];
	int64_t back;
	const struct safetensors_entry entry[] = {{.name = "state/count/w",
							  .dtype = STINT_I64,
							  .rank = 1,
							  .dim = &one,
							  .data = &count},
		{.name = "w", .dtype = STINT_F32, .rank = 1, .dim = &one, .data = &w},
		{.name = "x", .dtype = STINT_F32, .rank = 1, .dim = &two, .data = other}};
	assert_int_equal(safetensors_write("w.safetensors", entry, 3, NULL, 0, message), 0);
	stint_step *s = start(&tiny_model);
	set(s, "scale", 9);
	/* "x" is an input: what the file says of it does not matter */
	assert_int_equal(stint_load(s, "w.safetensors"), STINT_OK);
	assert_true(get(s, "w") == 4 && get(s, "scale") == 9);
	assert_int_equal(stint_get(s, "state/count/w", &back, 8), STINT_OK);
	assert_int_equal(back, 11);
	stint_free(s);
}

static void a_file_that_does_not_fit_changes_nothing(void **state)
{
	(void)state;
	const float w = 4, scale[2] = {1, 2};
	const int64_t one = 1, two = 2;
	char message[256];
	const struct safetensors_entry entry[] = {
		{.name = "w", .dtype = STINT_F32, .rank = 1, .dim = &one, .data = &w},
		{.name = "scale", .dtype = STINT_F32, .rank = 1, .dim = &two, .data = scale}};
	stint_step *s = start(&tiny_model);
	set(s, "w", 1);
	assert_int_equal(safetensors_write("bad.safetensors", entry, 2, NULL, 0, message), 0);
	assert_int_equal(stint_load(s, "bad.safetensors"), STINT_BAD_FILE);
	assert_non_null(strstr(stint_message(s), "scale"));
	assert_true(get(s, "w") == 1);
	assert_int_equal(stint_load(s, "none.safetensors"), STINT_BAD_FILE);
	assert_int_equal(safetensors_write("empty.safetensors", NULL, 0, NULL, 0, message), 0);
	assert_int_equal(stint_load(s, "empty.safetensors"), STINT_BAD_FILE);
	assert_non_null(strstr(stint_message(s), "no tensor of this model"));
	stint_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(starts_with_zeros_and_no_loss),
		cmocka_unit_test(takes_the_callers_arena),
		cmocka_unit_test(large_arenas_start_on_a_large_page),
		cmocka_unit_test(refuses_what_it_was_not_made_for),
		cmocka_unit_test(reports_memory_that_is_not_there),
		cmocka_unit_test(names_and_sizes_are_checked),
		cmocka_unit_test(a_step_trains_and_counts),
		cmocka_unit_test(double_precision_has_a_double_rate),
		cmocka_unit_test(threads_are_the_models_during_a_step_only),
		cmocka_unit_test(a_bad_index_is_named),
		cmocka_unit_test(forward_only_models_do_not_train),
		cmocka_unit_test(the_probe_reaches_the_step),
		cmocka_unit_test(weights_load_by_name),
		cmocka_unit_test(a_file_that_does_not_fit_changes_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
