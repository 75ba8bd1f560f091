#include "cli/answer_masks.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { NUMBERS = 256 }; /* of a pixel */

/* Its last two axes are height and width, and it has no others that count. */
static bool is_flat(const struct answer *w)
{
	return w->rank >= 2 && w->places > 0 &&
	       w->places == w->dim[w->rank - 2] * w->dim[w->rank - 1];
}

/* It is not there, or an empty folder. */
static bool is_free(const char *path)
{
	const struct dirent *e;
	struct stat st;
	DIR *dir = opendir(path);
	bool is = dir || lstat(path, &st) != 0;
	while (dir && (e = readdir(dir)))
		is &= !strcmp(e->d_name, ".") || !strcmp(e->d_name, "..");
	if (dir)
		(void)closedir(dir);
	return is;
}

static enum status failed(const char *path, struct diag *d)
{
	return diag_fail(d, ST_IO, &(struct where){.file = path}, NULL,
		"cannot make the folder: %s", strerror(errno));
}

enum status masks_open(struct arena *a, const char *path, const struct answer *w,
	struct folder *out, struct diag *d)
{
	size_t n = strlen(path);
	while (n > 1 && path[n - 1] == '/')
		n--;
	*out = (struct folder){.arena = a, .dir = arena_strndup(a, path, n)};
	const bool whole = w->o->dtype == STINT_I64 || w->o->dtype == STINT_BOOL;
	if (!out->dir)
		return diag_nomem(d);
	if (!is_flat(w) || (w->classes ? w->n > NUMBERS : !whole && !w->yes_no))
		return diag_fail(d, ST_USAGE, NULL,
			"a mask is made of scores of up to 256 classes in each pixel, [N, C, H, "
			"W], "
			"of yes or no, or of whole numbers",
			"'%s' is no mask", w->o->name);
	if (!is_free(out->dir))
		return diag_fail(d, ST_USAGE, &(struct where){.file = out->dir},
			"name a folder that is not there, or is empty",
			"masks do not go there: something is");
	char *work = arena_printf(a, "%s.tmp%ld", out->dir, (long)getpid());
	if (!work)
		return diag_nomem(d);
	if (mkdir(work, 0777) != 0)
		return failed(path, d);
	out->work = work;
	return ST_OK;
}

/* The class of each pixel. */
static enum status fill(
	const struct answer *w, const void *y, unsigned char *number, struct diag *d)
{
	for (int64_t i = 0; i < w->places; i++) {
		int64_t best;
		if (w->classes) {
			answer_best(w, y, i, 1, &best);
		} else {
			const double v = answer_number(w, y, i);
			best = w->yes_no ? v > 0.5 : v >= 0 && v < NUMBERS ? (int64_t)v : NUMBERS;
		}
		if (best >= NUMBERS)
			return diag_fail(d, ST_INVALID, NULL, NULL,
				"'%s' holds a number that no mask has: they are 0 to 255",
				w->o->name);
		number[i] = (unsigned char)best;
	}
	return ST_OK;
}

/* "FOLDER/cat/1.png" for cat/1.jpg, with the folders before it; of a list the file's own name. */
static char *path_of(const struct folder *out, const struct dataset *files, int64_t sample)
{
	struct text t = {0};
	const char *name = files ? dataset_name(files, sample) : NULL;
	if (name && !*dataset_folder(files))
		name = strrchr(name, '/') ? strrchr(name, '/') + 1 : name;
	const char *dot = name ? strrchr(name, '.') : NULL;
	text_add(&t, "%s/", out->work);
	if (name)
		text_add(&t, "%.*s.png", (int)(dot ? dot - name : (int)strlen(name)), name);
	else
		text_add(&t, "%06" PRId64 ".png", sample);
	for (char *p = t.failed ? NULL : strchr(t.s + strlen(out->work) + 1, '/'); p;
		p = strchr(p + 1, '/')) {
		*p = '\0';
		(void)mkdir(t.s, 0777); /* where that fails, so does the file in it */
		*p = '/';
	}
	if (!t.failed)
		return t.s;
	text_free(&t);
	return NULL;
}

enum status masks_put(const struct folder *out, const struct answer *w, const struct dataset *files,
	int64_t sample, const void *y, struct diag *d)
{
	char message[256] = "";
	char *path = path_of(out, files, sample);
	unsigned char *number = malloc((size_t)w->places);
	enum status st = path && number ? fill(w, y, number, d) : diag_nomem(d);
	if (st == ST_OK &&
		dataset_write_mask(path, w->dim[w->rank - 1], w->dim[w->rank - 2], number, message))
		st = diag_fail(d, ST_IO, NULL,
			errno == EEXIST ? "two pictures of one name: take them apart" : NULL, "%s",
			message);
	free(number);
	free(path);
	return st;
}

enum status masks_end(struct folder *out, struct diag *d)
{
	if (rename(out->work, out->dir) != 0)
		return failed(out->dir, d);
	out->work = NULL;
	return ST_OK;
}
