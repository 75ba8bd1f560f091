/* Folders of pictures, against PIL's and torchvision's numbers. */
#include "scratch.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "data/dataset.h"
#include "data/picture.h"
#include "pictures_pil.h"

enum { PICTURES = sizeof pictures / sizeof *pictures };

static void in_folder(const char *folder, const char *name, const void *data, size_t n)
{
	char path[300];
	snprintf(path, sizeof path, "%s/%s", folder, name);
	for (char *p = strchr(path, '/'); p; p = strchr(p + 1, '/')) {
		*p = '\0';
		(void)mkdir(path, 0777);
		*p = '/';
	}
	scratch_write(path, data, n);
}

static int make_all(void **state)
{
	(void)state;
	for (int i = 0; i < PICTURES; i++)
		in_folder("all", pictures[i].name, pictures[i].data, pictures[i].n);
	in_folder("all", "b/notes.txt", "no picture", 10);
	in_folder("all", ".hidden/x.png", "no picture", 10);
	return 0;
}

/* All samples' bytes, newly allocated. */
static float *read_all(const char *text, int64_t seed, int64_t epoch, size_t *n)
{
	char message[256] = "";
	struct dataset d;
	int64_t done, index[16];
	if (dataset_open(&d, text, message))
		fail_msg("%s", message);
	d.seed = seed;
	d.epoch = epoch;
	const int64_t samples = dataset_samples(&d);
	*n = (size_t)(samples * d.row);
	float *v = malloc(*n * sizeof *v);
	assert_true(v && samples <= 16);
	for (int64_t i = 0; i < samples; i++)
		index[i] = i;
	if (dataset_read(&d, index, samples, DATASET_AS_F32, NULL, v, &done, message))
		fail_msg("%s", message);
	dataset_close(&d);
	return v;
}

static void refused(const char *text, const char *why)
{
	char message[256] = "";
	struct dataset d;
	assert_int_equal(dataset_open(&d, text, message), 1);
	if (!strstr(message, why))
		fail_msg("'%s' does not say '%s'", message, why);
}

static void pictures_are_pils(void **state)
{
	(void)state;
	for (size_t s = 0; s < sizeof settings / sizeof *settings; s++) {
		char text[64];
		size_t n;
		snprintf(text, sizeof text, "images:%s:all", settings[s].text);
		float *v = read_all(text, 0, 0, &n);
		assert_int_equal(n, settings[s].n);
		for (size_t i = 0; i < n; i++)
			if ((int)v[i] != settings[s].made[i])
				fail_msg("%s: byte %zu is %d, PIL's %d", text, i, (int)v[i],
					settings[s].made[i]);
		free(v);
	}
}

/* What is drawn, by torchvision's transforms and Philox's numbers. */
static void chances_are_torchvisions(void **state)
{
	(void)state;
	for (size_t s = 0; s < sizeof chances / sizeof *chances; s++) {
		char text[128];
		size_t n;
		snprintf(text, sizeof text, "images:%s:all", chances[s].text);
		float *v = read_all(text, 7, chances[s].epoch, &n);
		assert_int_equal(n, chances[s].n);
		for (size_t i = 0; i < n; i++)
			if ((int)v[i] != chances[s].made[i])
				fail_msg("%s: byte %zu is %d, torchvision's %d", text, i, (int)v[i],
					chances[s].made[i]);
		free(v);
	}
}

static void folders_are_classes(void **state)
{
	(void)state;
	static const int want[] = {0, 1, 1, 1, 2, 2};
	size_t n;
	float *v = read_all("labels:all", 0, 0, &n);
	assert_int_equal(n, PICTURES);
	for (int i = 0; i < PICTURES; i++)
		assert_int_equal((int)v[i], i < 6 ? want[i] : 3);
	free(v);
	v = read_all("labels:all/b", 0, 0, &n);
	assert_true(n == 3 && (int)v[0] == 0 && (int)v[2] == 0);
	free(v);
}

static bool same(const float *a, const float *b, size_t n)
{
	return memcmp(a, b, n * sizeof *a) == 0;
}

static void chance_repeats(void **state)
{
	(void)state;
	static const char *const text[] = {
		"images:6,resize=10,random:all", "images:6,zoom,flip:all", "images:9,flip:all"};
	size_t n, m;
	for (int i = 0; i < 3; i++) {
		float *a = read_all(text[i], 7, 3, &n), *b = read_all(text[i], 7, 3, &m);
		assert_true(n == m && same(a, b, n));
		free(b);
		/* other epochs and seeds draw anew: of so many pictures some differ */
		b = read_all(text[i], 7, 4, &m);
		assert_false(same(a, b, n));
		free(b);
		b = read_all(text[i], 8, 3, &m);
		assert_false(same(a, b, n));
		free(b);
		free(a);
	}
}

/* A gray picture as an image and as its own mask: the same part of it, mirrored or not. */
static void masks_go_with_images(void **state)
{
	(void)state;
	in_folder("pair", "gray.png", pictures[1].data, pictures[1].n);
	for (int64_t epoch = 0; epoch < 20; epoch++) {
		size_t n, m;
		float *image = read_all("images:5,resize=9,random,flip,gray:pair", 1, epoch, &n);
		float *mask = read_all("masks:5,resize=9,random,flip:pair", 1, epoch, &m);
		assert_true(n == 25 && m == 25 && same(image, mask, n));
		free(image);
		free(mask);
	}
	in_folder("classes", "palette.png", pictures[2].data, pictures[2].n);
	size_t n;
	float *mask = read_all("masks:11:classes", 0, 0, &n);
	for (size_t i = 0; i < n; i++)
		assert_true(mask[i] < 16);
	free(mask);
}

/* EXIF that leads out of itself, or is cut: as it is stored. */
static void damaged_exif(void **state)
{
	(void)state;
	static const unsigned char whole[] = "II*\0\x08\0\0\0\x02\0"
					     "\x0f\x01\x02\0\x01\0\0\0\0\0\0\0"
					     "\x12\x01\x03\0\x01\0\0\0\x06\0\0\0";
	enum { N = sizeof whole - 1 };
	assert_int_equal(exif_orientation(whole, N), 6);
	for (size_t n = 0; n < N; n++) {
		unsigned char *cut = malloc(n + 1);
		assert_non_null(cut);
		memcpy(cut, whole, n);
		assert_int_equal(exif_orientation(cut, n), 1);
		free(cut);
	}
	for (size_t k = 0; k < 256 * N; k++) {
		unsigned char odd[N];
		memcpy(odd, whole, N);
		odd[k / 256] = (unsigned char)k;
		const int got = exif_orientation(odd, N);
		assert_true(got >= 1 && got <= 8);
	}
}

static void what_is_wrong_is_told(void **state)
{
	(void)state;
	static const char *const bad[] = {"images:all", "images:0:all", "images::all",
		"images:8:", "images:8,wild:all", "images:8,resize=7:all",
		"images:8,random,zoom:all", "images:resize=8:all", "images:99999999999:all",
		"masks:8,gray:all", "images:8,,flip:all"};
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		refused(bad[i], ":SIZE[,resize=N]");
	refused("images:8:none", "cannot read the folder");
	refused("labels:all/a/colours.png", "cannot read the folder");
	(void)mkdir("empty", 0777);
	refused("images:8:empty", "holds no pictures");
	struct dataset d;
	char message[256];
	int64_t done;
	float v[8 * 8 * 3];
	in_folder("bad", "0.png", "not a picture", 13);
	in_folder("bad", "1.png", pictures[0].data, pictures[0].n);
	assert_int_equal(dataset_open(&d, "images:8:bad", message), 0);
	assert_int_equal(
		dataset_read(&d, (int64_t[]){0}, 1, DATASET_AS_F32, NULL, v, &done, message), 1);
	assert_non_null(strstr(message, "bad/0.png: neither PNG nor JPEG"));
	assert_int_equal(
		dataset_read(&d, (int64_t[]){1}, 1, DATASET_AS_F32, NULL, v, &done, message), 0);
	dataset_close(&d);
	assert_int_equal(dataset_open(&d, "masks:8:all", message), 0);
	assert_int_equal(
		dataset_read(&d, (int64_t[]){0}, 1, DATASET_AS_F32, NULL, v, &done, message), 1);
	assert_non_null(strstr(message, "is no mask"));
	dataset_close(&d);
	assert_int_equal(dataset_write_mask("m.png", 0, 4, NULL, message), 1);
	assert_string_equal(message, "m.png: no PNG has 0 x 4 pixels");
}

/* Cut anywhere, or with any byte changed: a picture or a message. */
static void damaged_pictures(void **state)
{
	(void)state;
	for (int i = 0; i < PICTURES; i++) {
		unsigned char copy[8192];
		const size_t n = pictures[i].n;
		if (strstr(pictures[i].name, "turned") && !strstr(pictures[i].name, "d6") &&
			!strstr(pictures[i].name, "d9"))
			continue;
		assert_true(n <= sizeof copy);
		memcpy(copy, pictures[i].data, n);
		for (size_t k = 0; k < 2 * n; k++) {
			char message[256];
			struct dataset d;
			int64_t done;
			float v[4 * 4 * 3];
			copy[k % n] ^= k < n ? 0x41 : 0;
			in_folder("damaged", "x.png", copy, k < n ? n : k - n);
			copy[k % n] ^= k < n ? 0x41 : 0;
			assert_int_equal(dataset_open(&d, "images:4:damaged", message), 0);
			(void)dataset_read(
				&d, (int64_t[]){0}, 1, DATASET_AS_F32, NULL, v, &done, message);
			dataset_close(&d);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pictures_are_pils),
		cmocka_unit_test(chances_are_torchvisions),
		cmocka_unit_test(folders_are_classes),
		cmocka_unit_test(chance_repeats),
		cmocka_unit_test(masks_go_with_images),
		cmocka_unit_test(what_is_wrong_is_told),
		cmocka_unit_test(damaged_pictures),
		cmocka_unit_test(damaged_exif),
	};
	return cmocka_run_group_tests(tests, make_all, NULL);
}
