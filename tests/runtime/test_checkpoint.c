/* Checkpoints: bit for bit, two kept, and broken ones passed over. */
#include "scratch.h"

#include <assert.h>
#include <dirent.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/checkpoint.h"
#include "runtime/safetensors.h"
#include "tiny_step.h"

#define FOLDER "points/inner"
#define FILE_OF(n) FOLDER "/step-0000000" #n ".safetensors"

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

/* A step that trains to the end of `steps` and saves after each. */
static stint_step *trained(int steps)
{
	char message[256];
	stint_step *s = start(&tiny_model);
	scratch_clear(FOLDER);
	set(s, "w", 0.3f), set(s, "x", 0.7f), set(s, "target", 2);
	stint_seed(s, -77);
	for (int i = 0; i < steps; i++) {
		assert_int_equal(stint_train(s, 0.1), STINT_OK);
		const struct checkpoint_place place = {
			.step = s->count, .epoch = 3, .batch = i, .seed = -77};
		assert_int_equal(checkpoint_save(FOLDER, s, &place, 2, message), 0);
	}
	return s;
}

/* How many of the folder's checkpoints are there. */
static int count(void)
{
	int n = 0;
	char path[64];
	for (int i = 1; i < 9; i++) {
		snprintf(path, sizeof path, FOLDER "/step-%08d.safetensors", i);
		n += access(path, F_OK) == 0;
	}
	return n;
}

static void as_many_are_kept_as_asked(void **state)
{
	(void)state;
	char message[256], used[512];
	int found;
	stint_step *s = trained(1);
	struct checkpoint_place place = {.seed = -77, .training = "lr 0.5\nbest 3\n"}, back;
	for (place.step = 2; place.step < 6; place.step++)
		assert_int_equal(checkpoint_save(FOLDER, s, &place, 0, message), 0);
	assert_int_equal(count(), 5);
	assert_int_equal(checkpoint_save(FOLDER, s, &place, 3, message), 0);
	assert_int_equal(count(), 3);
	assert_int_equal(checkpoint_save_as(FOLDER, "best", s, &place, message), 0);
	assert_int_equal(count(), 3);
	place.step = 7;
	assert_int_equal(checkpoint_save(FOLDER, s, &place, 1, message), 0);
	assert_int_equal(count(), 1);
	assert_int_equal(access(FOLDER "/best.safetensors", R_OK), 0);
	/* the note comes back, and is part of the sum */
	struct safetensors *f;
	assert_int_equal(safetensors_open(&f, FILE_OF(7), message), 0);
	assert_string_equal(safetensors_note(f, "training"), place.training);
	safetensors_close(f);
	assert_int_equal(checkpoint_load(FOLDER, s, &back, &found, used, message), 0);
	assert_true(found && back.step == 7 && !back.training);
	char text[2048] = {0};
	FILE *file = fopen(FILE_OF(7), "r+b");
	assert_non_null(file);
	assert_true(fread(text, 1, sizeof text - 1, file) > 0);
	for (size_t i = 0; i + 6 < sizeof text; i++)
		if (!memcmp(text + i, "best 3", 6)) {
			assert_int_equal(fseek(file, (long)i + 5, SEEK_SET), 0);
			fputc('4', file);
		}
	fclose(file);
	assert_int_equal(checkpoint_load(FOLDER, s, &back, &found, used, message), 1);
	assert_non_null(strstr(message, "its sum is another"));
	stint_free(s);
}

static void training_goes_on_bit_for_bit(void **state)
{
	(void)state;
	char used[512], message[256];
	int found;
	struct checkpoint_place place;
	stint_step *s = trained(3), *t = start(&tiny_model);
	assert_int_equal(checkpoint_load(FOLDER, t, &place, &found, used, message), 0);
	assert_true(found);
	assert_string_equal(used, FILE_OF(3));
	assert_true(place.step == 3 && place.epoch == 3 && place.batch == 2 && place.seed == -77);
	assert_true(t->count == 3 && t->seed == -77);
	set(t, "x", 0.7f), set(t, "target", 2);
	assert_int_equal(stint_train(s, 0.1), STINT_OK);
	assert_int_equal(stint_train(t, 0.1), STINT_OK);
	assert_memory_equal(s->arena, t->arena, tiny_model.arena_bytes);
	stint_free(s);
	stint_free(t);
}

static void inputs_and_constants_are_not_saved(void **state)
{
	(void)state;
	char message[256];
	struct safetensors *f;
	stint_free(trained(1));
	assert_int_equal(safetensors_open(&f, FILE_OF(1), message), 0);
	assert_int_equal(safetensors_count(f), 2);
	assert_non_null(safetensors_find(f, "w"));
	assert_non_null(safetensors_find(f, "state/count/w"));
	assert_string_equal(safetensors_note(f, "format"), "stint-checkpoint-1");
	safetensors_close(f);
}

static void two_are_kept(void **state)
{
	(void)state;
	char message[256];
	stint_step *s = trained(4);
	assert_false(scratch_exists(FILE_OF(1)) || scratch_exists(FILE_OF(2)));
	assert_true(scratch_exists(FILE_OF(3)) && scratch_exists(FILE_OF(4)));
	/* what is not ours stays; what an interrupted save left goes */
	scratch_write(FOLDER "/notes.txt", "x", 1);
	scratch_write(FILE_OF(9) ".tmp123", "x", 1);
	const struct checkpoint_place back = {.step = 2};
	assert_int_equal(checkpoint_save(FOLDER, s, &back, 2, message), 0);
	assert_true(scratch_exists(FILE_OF(2)));
	assert_false(scratch_exists(FILE_OF(3)) || scratch_exists(FILE_OF(4)));
	assert_false(scratch_exists(FILE_OF(9) ".tmp123"));
	assert_true(scratch_exists(FOLDER "/notes.txt"));
	stint_free(s);
}

/* The newest one cut at every length, or with any byte changed, gives way to the one before it. */
static void a_broken_newest_is_passed_over(void **state)
{
	(void)state;
	char used[512], message[256];
	int found;
	size_t n;
	struct checkpoint_place place;
	stint_free(trained(2));
	stint_step *t = start(&tiny_model);
	unsigned char *p = scratch_read(FILE_OF(2), &n);
	for (size_t cut = 0; cut < n; cut++) {
		scratch_write(FILE_OF(2), p, cut);
		assert_int_equal(checkpoint_load(FOLDER, t, &place, &found, used, message), 0);
		assert_true(found && place.step == 1 && t->count == 1);
		assert_string_equal(used, FILE_OF(1));
	}
	for (size_t i = n - 12; i < n; i++) { /* the tensors' bytes */
		p[i] ^= 16;
		scratch_write(FILE_OF(2), p, n);
		assert_int_equal(checkpoint_newest(FOLDER, used, message), 0);
		assert_string_equal(used, FILE_OF(1));
		p[i] ^= 16;
	}
	scratch_write(FILE_OF(2), p, n);
	assert_int_equal(checkpoint_newest(FOLDER, used, message), 0);
	assert_string_equal(used, FILE_OF(2));
	free(p);
	stint_free(t);
}

/* No changed bit, be it in the notes, may go unseen: what is loaded is the newest one as it was
 * saved, or the one before it. */
static void a_changed_bit_is_never_believed(void **state)
{
	(void)state;
	char used[512], message[256];
	int found, passed_over = 0;
	size_t n;
	float w, want;
	struct checkpoint_place place;
	stint_step *s = trained(2), *t = start(&tiny_model);
	want = *(float *)stint_at(s, "w");
	unsigned char *p = scratch_read(FILE_OF(2), &n);
	for (size_t i = 0; i < 8 * n; i++) {
		p[i / 8] ^= (unsigned char)(1 << i % 8);
		scratch_write(FILE_OF(2), p, n);
		p[i / 8] ^= (unsigned char)(1 << i % 8);
		assert_int_equal(checkpoint_load(FOLDER, t, &place, &found, used, message), 0);
		assert_true(found && place.epoch == 3 && place.seed == -77);
		assert_int_equal(place.batch, place.step - 1);
		assert_int_equal(stint_get(t, "w", &w, sizeof w), STINT_OK);
		if (place.step == 1)
			passed_over++;
		else
			assert_true(place.step == 2 && memcmp(&w, &want, sizeof w) == 0);
	}
	assert_true(passed_over > (int)n);
	free(p);
	stint_free(s);
	stint_free(t);
}

static void none_is_no_error_but_only_broken_ones_are(void **state)
{
	(void)state;
	char used[512], message[256] = "";
	int found = 1;
	struct checkpoint_place place;
	stint_step *t = start(&tiny_model);
	scratch_clear(FOLDER);
	assert_int_equal(checkpoint_load(FOLDER, t, &place, &found, used, message), 0);
	assert_false(found);
	assert_int_equal(checkpoint_newest(FOLDER, used, message), 0);
	assert_string_equal(used, "");
	mkdir(FOLDER, 0777);
	scratch_write(FILE_OF(1), "{}", 2);
	scratch_write(FILE_OF(2), "{}", 2);
	set(t, "w", 5);
	assert_int_equal(checkpoint_load(FOLDER, t, &place, &found, used, message), 1);
	assert_false(found);
	assert_non_null(strstr(message, FILE_OF(2))); /* the newest one's trouble is told */
	float w;
	assert_int_equal(stint_get(t, "w", &w, sizeof w), STINT_OK);
	assert_true(w == 5 && t->count == 0);
	stint_free(t);
}

static void another_models_checkpoint_is_refused(void **state)
{
	(void)state;
	char used[512], message[256];
	int found;
	struct checkpoint_place place;
	stint_free(trained(2));
	stint_step *t = start(&tiny_model_double);
	assert_int_equal(checkpoint_load(FOLDER, t, &place, &found, used, message), 1);
	assert_non_null(strstr(message, "another model"));
	assert_non_null(strstr(message, "'w' has another type or shape"));
	assert_int_equal(t->count, 0);
	stint_free(t);
	/* the model without its parameters' states, and with a parameter more */
	struct stint_tensor resident[16];
	assert_in_range(tiny_model.nresident, 1, 15);
	memcpy(resident, tiny_model.resident, sizeof *resident * (size_t)tiny_model.nresident);
	struct stint_model m = tiny_model;
	m.resident = resident;
	for (int i = 0; i < m.nresident; i++)
		if (resident[i].kind == STINT_STATE)
			resident[i].kind = STINT_CONSTANT;
	t = start(&m);
	assert_int_equal(checkpoint_load(FOLDER, t, &place, &found, used, message), 1);
	assert_non_null(strstr(message, "'state/count/w' is not in the model"));
	stint_free(t);
	memcpy(resident, tiny_model.resident, sizeof *resident * (size_t)tiny_model.nresident);
	resident[m.nresident] = *resident;
	resident[m.nresident].kind = STINT_PARAMETER;
	resident[m.nresident++].name = "bias";
	t = start(&m);
	assert_int_equal(checkpoint_load(FOLDER, t, &place, &found, used, message), 1);
	assert_non_null(strstr(message, "'bias' is missing"));
	stint_free(t);
}

static void plain_weights_are_no_checkpoint(void **state)
{
	(void)state;
	const float w = 1;
	const int64_t one = 1;
	char used[512], message[256];
	const struct safetensors_entry e = {
		.name = "w", .dtype = STINT_F32, .rank = 1, .dim = &one, .data = &w};
	const struct safetensors_note broken[] = {
		{"format", "stint-checkpoint-1"}, {"step", "1x"}, {"epoch", "0"}};
	stint_free(trained(1));
	assert_int_equal(safetensors_write(FILE_OF(1), &e, 1, NULL, 0, message), 0);
	assert_int_equal(checkpoint_newest(FOLDER, used, message), 1);
	assert_non_null(strstr(message, "format"));
	assert_int_equal(safetensors_write(FILE_OF(1), &e, 1, broken, 3, message), 0);
	assert_int_equal(checkpoint_newest(FOLDER, used, message), 1);
	assert_non_null(strstr(message, "stood"));
}

/* --- Several processes, here threads --- */

enum { PIECES_MOST = 3, NUMBERS = 5, STATE = 3, MERGES = 4 };

/* Their steps; what they tell each other; and who is gone, from which of its merges on. */
static struct together {
	int n, gone, gone_at;
	int64_t piece;
	struct stint_tensor resident[16];
	struct stint_piece whole;
	struct stint_model model;
	struct stint_ranks face[PIECES_MOST];
	stint_step *step[PIECES_MOST];
	/* of a save: */
	pthread_mutex_t lock;
	pthread_cond_t changed;
	unsigned char merged[4096];
	int here, round, merges, lent[PIECES_MOST], lost;
	const char *folder[PIECES_MOST]; /* NULL: FOLDER */
	int64_t number;
	int rc[PIECES_MOST];
	char message[PIECES_MOST][256];
} now;

static int is_gone(stint_step *s)
{
	if (now.lost)
		snprintf(s->message, sizeof s->message, "rank %d is gone", now.gone);
	return now.lost ? STINT_LOST : STINT_OK;
}

/* All leave before one comes again: the last one clears what they told. */
static void leave(void)
{
	if (--now.here == -now.n) {
		now.here = 0;
		memset(now.merged, 0, sizeof now.merged);
		pthread_cond_broadcast(&now.changed);
	}
	while (now.here < 0)
		pthread_cond_wait(&now.changed, &now.lock);
}

static int meet(int rank, unsigned char *own, size_t bytes)
{
	const int round = now.round;
	if (rank == now.gone && ++now.merges == now.gone_at)
		now.lost = 1;
	for (size_t i = 0; i < bytes; i++)
		now.merged[i] |= own[i];
	if (!now.lost && ++now.here == now.n) {
		now.round++;
		now.here = 0;
	}
	pthread_cond_broadcast(&now.changed);
	while (!now.lost && now.round == round)
		pthread_cond_wait(&now.changed, &now.lock);
	if (now.round == round)
		return STINT_LOST;
	memcpy(own, now.merged, bytes);
	leave();
	return STINT_OK;
}

static int merge(const stint_step *s, void *data, size_t bytes)
{
	assert(bytes <= sizeof now.merged);
	pthread_mutex_lock(&now.lock);
	const int rc = meet(s->ranks->rank, data, bytes);
	pthread_mutex_unlock(&now.lock);
	return rc ? is_gone((stint_step *)(uintptr_t)s) : rc;
}

static int lend(const stint_step *s)
{
	pthread_mutex_lock(&now.lock);
	while (!now.lost && !now.lent[s->ranks->rank])
		pthread_cond_wait(&now.changed, &now.lock);
	now.lent[s->ranks->rank] = 0;
	pthread_mutex_unlock(&now.lock);
	return is_gone((stint_step *)(uintptr_t)s);
}

static int borrow(const stint_step *s, int rank, size_t offset, void *data, size_t bytes)
{
	if (bytes)
		return stint_read(now.step[rank], offset, data, bytes);
	pthread_mutex_lock(&now.lock);
	now.lent[rank] = 1;
	pthread_cond_broadcast(&now.changed);
	pthread_mutex_unlock(&now.lock);
	return is_gone((stint_step *)(uintptr_t)s);
}

/* n processes whose step's state of five numbers is shared, or one that has all of it. */
static void begin(int n)
{
	static const int64_t all = NUMBERS;
	now = (struct together){.n = n, .gone = -1, .piece = (NUMBERS + n - 1) / n};
	pthread_mutex_init(&now.lock, NULL);
	pthread_cond_init(&now.changed, NULL);
	now.whole = (struct stint_piece){STATE, 1, &all};
	now.model = tiny_model;
	now.model.resident = now.resident;
	memcpy(now.resident, tiny_model.resident,
		sizeof *now.resident * (size_t)tiny_model.nresident);
	struct stint_tensor *t = &now.resident[STATE];
	assert_int_equal(t->kind, STINT_STATE);
	t->dtype = STINT_F32;
	t->dim = &now.piece;
	t->bytes = (size_t)now.piece * sizeof(float);
	if (n > 1) {
		now.model.ranks = n;
		now.model.npiece = 1;
		now.model.piece = &now.whole;
	}
	for (int k = 0; k < n; k++) {
		now.step[k] = start(&now.model);
		now.face[k] = (struct stint_ranks){
			.rank = k, .n = n, .merge = merge, .lend = lend, .borrow = borrow};
		now.step[k]->ranks = n > 1 ? &now.face[k] : NULL;
	}
}

static void end(void)
{
	for (int k = 0; k < now.n; k++)
		stint_free(now.step[k]);
}

static void *save_one(void *user)
{
	const int k = *(const int *)user;
	/* what the first one alone is asked for */
	const struct checkpoint_place place = {
		.step = now.number, .training = k ? NULL : "lr 0.5\n"};
	now.rc[k] = checkpoint_save(
		now.folder[k] ? now.folder[k] : FOLDER, now.step[k], &place, 2, now.message[k]);
	return NULL;
}

/* What all of them come to, if it is the same. */
static int save_all(int64_t number)
{
	pthread_t thread[PIECES_MOST];
	int rank[PIECES_MOST];
	now.number = number;
	for (int k = 0; k < now.n; k++) {
		rank[k] = k;
		assert_int_equal(pthread_create(&thread[k], NULL, save_one, &rank[k]), 0);
	}
	for (int k = 0; k < now.n; k++)
		assert_int_equal(pthread_join(thread[k], NULL), 0);
	for (int k = 1; k < now.n; k++) {
		assert_int_equal(now.rc[k], now.rc[0]);
		if (now.rc[0])
			assert_string_equal(now.message[k], now.message[0]);
	}
	return now.rc[0];
}

/* Number i of the state is i + 1, whoever has it; zeros behind. */
static void fill_or_check(int check)
{
	for (int k = 0; k < now.n; k++) {
		const int64_t from = stint_tree_first(NUMBERS, now.n, k),
			      n = stint_tree_first(NUMBERS, now.n, k + 1) - from;
		float want[NUMBERS] = {0}, have[NUMBERS];
		const char *name = now.resident[STATE].name;
		const size_t bytes = now.resident[STATE].bytes;
		for (int64_t i = 0; i < n; i++)
			want[i] = (float)(from + i + 1);
		if (!check)
			assert_int_equal(stint_set(now.step[k], name, want, bytes), STINT_OK);
		assert_int_equal(stint_get(now.step[k], name, have, bytes), STINT_OK);
		assert_memory_equal(have, want, bytes);
	}
}

static size_t read_file(const char *path, unsigned char out[8192])
{
	FILE *f = fopen(path, "rb");
	assert_non_null(f);
	const size_t n = fread(out, 1, 8192, f);
	fclose(f);
	assert_true(n < 8192);
	return n;
}

/* Files, drafts included, that begin like a checkpoint's. */
static int files_in(const char *folder)
{
	int n = 0;
	struct dirent *entry;
	DIR *dir = opendir(folder);
	assert_non_null(dir);
	while ((entry = readdir(dir)))
		n += !strncmp(entry->d_name, "step-", 5);
	closedir(dir);
	return n;
}

/* By any number of processes, who see the folder or do not: the bytes that one writes. */
static void several_write_what_one_does(void **state)
{
	(void)state;
	unsigned char one[8192], more[8192];
	size_t bytes = 0;
	static const char not_there[] = "not/there", other[] = "other";
	for (int n = 1; n <= PIECES_MOST; n++)
		for (int blind = 0; blind < 1 << (n - 1); blind++) {
			char twin[64];
			scratch_clear(FOLDER);
			begin(n);
			fill_or_check(0);
			for (int k = 1; k < n; k++) /* odd ones have a file of that name */
				if (blind >> (k - 1) & 1)
					now.folder[k] = k % 2 ? other : not_there;
			snprintf(twin, sizeof twin, "%s/step-00000001.safetensors.tmp%ld", other,
				(long)getpid());
			mkdir(other, 0777);
			scratch_write(twin, "another machine's", 17);
			assert_int_equal(save_all(1), 0);
			assert_int_equal(read_file(twin, more), 17);
			assert_memory_equal(more, "another machine's", 17);
			assert_int_equal(files_in(FOLDER), 1);
			const size_t have = read_file(FILE_OF(1), n == 1 ? one : more);
			bytes = n == 1 ? have : bytes;
			assert_int_equal(have, bytes);
			assert_memory_equal(n == 1 ? one : more, one, bytes);
			end();
		}
}

/* Saved by so many, it is read by any other number, and by one that has all of it. */
static void pieces_are_whole_in_a_file(void **state)
{
	(void)state;
	char used[512], message[256];
	struct checkpoint_place back;
	for (int n = 1; n <= PIECES_MOST; n++) {
		scratch_clear(FOLDER);
		begin(n);
		fill_or_check(0);
		assert_int_equal(save_all(1), 0);
		end();
		for (int m = 1; m <= PIECES_MOST; m++) {
			int found;
			begin(m);
			for (int k = 0; k < m; k++) {
				assert_int_equal(checkpoint_load(FOLDER, now.step[k], &back, &found,
							 used, message),
					0);
				assert_true(found);
			}
			fill_or_check(1);
			for (int k = 0; k < m; k++) {
				float none[NUMBERS] = {0};
				assert_int_equal(stint_set(now.step[k], now.resident[STATE].name,
							 none, now.resident[STATE].bytes),
					STINT_OK);
				assert_int_equal(stint_load(now.step[k], FILE_OF(1)), STINT_OK);
			}
			fill_or_check(1);
			end();
		}
	}
}

/* A process that goes, at each moment at which another waits for it: the old file stays whole, and
 * nothing beside it. Behind the last of these the new one is there. */
static void one_that_goes_is_told(void **state)
{
	(void)state;
	unsigned char old[8192], still[8192];
	for (int gone = 0; gone < PIECES_MOST; gone++)
		for (int at = 1; at <= MERGES; at++) {
			scratch_clear(FOLDER);
			begin(PIECES_MOST);
			now.folder[2] = "not/there";
			fill_or_check(0);
			assert_int_equal(save_all(1), 0);
			const size_t n = read_file(FILE_OF(1), old);
			now.merges = 0;
			now.gone = gone;
			now.gone_at = at;
			assert_int_equal(save_all(2), STINT_LOST);
			assert_non_null(strstr(now.message[0], "is gone"));
			assert_int_equal(read_file(FILE_OF(1), still), n);
			assert_memory_equal(old, still, n);
			assert_int_equal(files_in(FOLDER), at < MERGES ? 1 : 2);
			end();
		}
}

/* Something stands where the file is to be. */
static void all_come_to_the_same_failure(void **state)
{
	(void)state;
	scratch_clear(FOLDER);
	begin(2);
	fill_or_check(0);
	assert_int_equal(save_all(1), 0);
	char draft[64];
	snprintf(draft, sizeof draft, FILE_OF(3) ".tmp%ld", (long)getpid());
	assert_int_equal(mkdir(draft, 0777), 0);
	assert_int_equal(save_all(3), CHECKPOINT_REFUSED);
	assert_non_null(strstr(now.message[0], "directory"));
	assert_int_equal(count(), 1);
	assert_int_equal(rmdir(draft), 0);
	end();
}

/* A step that is nobody's. */
static void pieces_that_are_missing_are_told(void **state)
{
	(void)state;
	char message[256];
	scratch_clear(FOLDER);
	begin(3);
	fill_or_check(0);
	assert_int_equal(save_all(1), 0);
	const struct checkpoint_place next = {.step = 2};
	now.step[0]->ranks = NULL;
	assert_int_equal(checkpoint_save(FOLDER, now.step[0], &next, 2, message), 1);
	assert_non_null(strstr(message, "for 3 processes"));
	assert_int_equal(count(), 1);
	assert_int_equal(stint_load(now.step[0], FILE_OF(1)), STINT_BAD_DATA);
	assert_non_null(strstr(stint_message(now.step[0]), "stint_init_ranks"));
	assert_int_equal(stint_train(now.step[0], 0.1), STINT_BAD_DATA);
	assert_non_null(strstr(stint_message(now.step[0]), "mpirun -n 3"));
	end();
}

/* The try makes the folder, and leaves nothing in it. */
static void a_try_leaves_nothing(void **state)
{
	(void)state;
	char message[256];
	stint_free(trained(2));
	assert_int_equal(checkpoint_try(FOLDER "/deeper", message), 0);
	assert_true(scratch_exists(FOLDER "/deeper"));
	assert_int_equal(rmdir(FOLDER "/deeper"), 0);
	scratch_write("plain", "x", 1);
	message[0] = '\0';
	assert_int_equal(checkpoint_try("plain", message), 1);
	assert_non_null(strstr(message, "plain"));
	assert_int_equal(checkpoint_try("/proc/self", message), 1);
	assert_non_null(strstr(message, "/proc/self"));
}

static void a_folder_that_cannot_be_made_is_told(void **state)
{
	(void)state;
	char message[256] = "", used[512], deep[700];
	const struct checkpoint_place place = {.step = 1};
	stint_step *s = start(&tiny_model);
	scratch_write("file", "x", 1);
	assert_int_equal(checkpoint_save("file/x", s, &place, 2, message), 1);
	assert_non_null(strstr(message, "file"));
	assert_int_equal(checkpoint_newest("file", used, message), 1);
	memset(deep, 'a', sizeof deep);
	deep[699] = '\0';
	assert_int_equal(checkpoint_save(deep, s, &place, 2, message), 1);
	stint_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(as_many_are_kept_as_asked),
		cmocka_unit_test(several_write_what_one_does),
		cmocka_unit_test(pieces_are_whole_in_a_file),
		cmocka_unit_test(one_that_goes_is_told),
		cmocka_unit_test(all_come_to_the_same_failure),
		cmocka_unit_test(pieces_that_are_missing_are_told),
		cmocka_unit_test(training_goes_on_bit_for_bit),
		cmocka_unit_test(inputs_and_constants_are_not_saved),
		cmocka_unit_test(two_are_kept),
		cmocka_unit_test(a_broken_newest_is_passed_over),
		cmocka_unit_test(a_changed_bit_is_never_believed),
		cmocka_unit_test(none_is_no_error_but_only_broken_ones_are),
		cmocka_unit_test(another_models_checkpoint_is_refused),
		cmocka_unit_test(plain_weights_are_no_checkpoint),
		cmocka_unit_test(a_try_leaves_nothing),
		cmocka_unit_test(a_folder_that_cannot_be_made_is_told),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
