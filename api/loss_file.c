#include "api/loss_file.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/marked.h"
#include "data/dataset.h"

/* More would be no list of classes. */
enum { NUMBERS_MAX = 1 << 20 };

/* With as few digits as read back the same. */
static void add_number(struct text *t, double v, bool first)
{
	char digits[40];
	int n = 6;
	do
		snprintf(digits, sizeof digits, "%.*g", n, v);
	while (strtod(digits, NULL) != v && n++ < 17);
	text_add(t, "%s%s", first ? "" : ";", digits);
}

static enum status not_finite(const char *path, int64_t at, struct diag *d)
{
	return diag_fail(d, ST_INVALID, &(struct where){.file = path}, NULL,
		"number %" PRId64 " is not finite", at);
}

static enum status add_values(
	struct arena *a, struct text *t, const struct dataset *data, struct diag *d)
{
	char message[256];
	const int64_t samples = dataset_samples(data);
	int64_t n = 0, done, *index = NULL;
	const bool fits = size_mul(samples, data->row, &n);
	if (!fits || n < 1 || n > NUMBERS_MAX)
		return diag_fail(d, ST_INVALID, &(struct where){.file = data->path}, NULL,
			"holds %s numbers for a loss's option", fits && n == 0 ? "no" : "too many");
	index = ARENA_ARRAY(a, int64_t, samples);
	double *v = ARENA_ARRAY(a, double, n);
	if (!index || !v)
		return diag_nomem(d);
	for (int64_t i = 0; i < samples; i++)
		index[i] = i;
	if (dataset_read(data, index, samples, DATASET_AS_F64, NULL, v, &done, message) != 0)
		return diag_fail(d, ST_IO, NULL, NULL, "%s", message);
	for (int64_t i = 0; i < n; i++) {
		if (!isfinite(v[i]))
			return not_finite(data->path, i, d);
		add_number(t, v[i], i == 0);
	}
	return ST_OK;
}

static enum status add_npy(struct arena *a, struct text *t, const char *path, struct diag *d)
{
	char message[256];
	struct dataset data;
	if (dataset_open(&data, path, message) != 0)
		return diag_fail(
			d, access(path, R_OK) == 0 ? ST_INVALID : ST_IO, NULL, NULL, "%s", message);
	const enum status st = add_values(a, t, &data, d);
	dataset_close(&data);
	return st;
}

static enum status add_txt(struct arena *a, struct text *t, const char *path, struct diag *d)
{
	static const char between[] = " \t\r\n,;";
	const struct where at = {.file = path};
	char *p;
	size_t len;
	int64_t n = 0;
	TRY(file_read(a, path, &p, &len, d));
	if (memchr(p, '\0', len))
		return diag_fail(d, ST_INVALID, &at, NULL, "is no text of numbers");
	for (p += strspn(p, between); *p; p += strspn(p, between), n++) {
		const size_t word = strcspn(p, between);
		char *end;
		const double v = strtod(p, &end);
		if (end != p + word)
			return diag_fail(d, ST_INVALID, &at, "numbers between blanks or commas",
				"'%.*s' is no number", (int)(word < 40 ? word : 40), p);
		if (!isfinite(v))
			return not_finite(path, n, d);
		if (n == NUMBERS_MAX)
			break;
		add_number(t, v, n == 0);
		p = end;
	}
	if (n == 0 || n == NUMBERS_MAX)
		return diag_fail(d, ST_INVALID, &at, NULL, "holds %s numbers for a loss's option",
			n ? "too many" : "no");
	return ST_OK;
}

static bool ends_with(const char *text, const char *end)
{
	const size_t n = strlen(text), m = strlen(end);
	return n > m && !strcmp(text + n - m, end);
}

/* Options that name tensors and losses. */
static bool is_name(const char *option)
{
	static const char *const key[] = {"output=", "name=", "target=", "against=", "parameter="};
	for (size_t i = 0; i < sizeof key / sizeof *key; i++)
		if (!strncmp(option, key[i], strlen(key[i])))
			return true;
	return false;
}

/* "KEY=VALUE" */
static enum status add_option(struct arena *a, struct text *t, char *option, struct diag *d)
{
	char *value = strchr(option, '=');
	const bool npy = ends_with(option, ".npy");
	if (!value || is_name(option) || !(npy || ends_with(option, ".txt"))) {
		text_puts(t, option);
		return ST_OK;
	}
	text_add(t, "%.*s=", (int)(value - option), option);
	const char *path = marked_name(a, value + 1, strlen(value + 1));
	return !path ? diag_nomem(d) : npy ? add_npy(a, t, path, d) : add_txt(a, t, path, d);
}

enum status loss_files_read(struct arena *a, const char *loss, const char **out, struct diag *d)
{
	struct text t = {0};
	enum status st = ST_OK;
	char *p = arena_strdup(a, loss), *next;
	*out = p;
	if (!p)
		return diag_nomem(d);
	const char *weighed = loss + strcspn(loss, "*:");
	const char *kind = *weighed == '*' ? weighed + 1 : loss;
	if (!strncmp(kind, "output:", 7))
		return ST_OK;
	for (; p && st == ST_OK; p = next) {
		char mark[2] = "";
		next = marked_option_end(p);
		if (next) {
			mark[0] = *next;
			*next++ = '\0';
		}
		st = add_option(a, &t, p, d);
		text_puts(&t, mark);
	}
	if (st == ST_OK && (t.failed || !(*out = arena_strdup(a, t.s ? t.s : ""))))
		st = diag_nomem(d);
	text_free(&t);
	return st;
}
