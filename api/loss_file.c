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

/* --- Weights of classes, of their labels: scikit-learn's compute_class_weight('balanced') --- */

struct counts {
	int64_t n,
		room; /* classes: up to the largest label that was met; those there is room for */
	int64_t *of;
};

static enum status count_label(
	struct arena *a, struct counts *c, const char *path, int64_t label, struct diag *d)
{
	if (label >= NUMBERS_MAX)
		return diag_fail(d, ST_INVALID, &(struct where){.file = path},
			"labels are classes' numbers, from 0",
			"label %" PRId64 " is no class's number", label);
	if (label >= c->room) {
		const int64_t room = label < 512 ? 1024 : 2 * label;
		int64_t *more = ARENA_ARRAY(a, int64_t, room);
		if (!more)
			return diag_nomem(d);
		for (int64_t i = 0; i < c->n; i++)
			more[i] = c->of[i];
		*c = (struct counts){c->n, room, more};
	}
	c->of[label]++;
	c->n = label >= c->n ? label + 1 : c->n;
	return ST_OK;
}

/* Labels below 0 count nowhere, nor does `ignore`. */
static enum status count_labels(struct arena *a, const struct dataset *data, int64_t ignore,
	struct counts *c, struct diag *d)
{
	enum { PART = 1 << 16 };
	char message[256];
	const int64_t samples = dataset_samples(data), row = data->row > 0 ? data->row : 1,
		      part = row < PART ? PART / row : 1;
	int64_t n = 0, done, *index = ARENA_ARRAY(a, int64_t, part);
	int64_t *label = size_mul(part, row, &n) ? ARENA_ARRAY(a, int64_t, n) : NULL;
	if (!index || !label)
		return diag_nomem(d);
	for (int64_t from = 0; from < samples; from += part) {
		const int64_t now = samples - from < part ? samples - from : part;
		for (int64_t i = 0; i < now; i++)
			index[i] = from + i;
		if (dataset_read(data, index, now, DATASET_AS_I64, NULL, label, &done, message))
			return diag_fail(d, ST_INVALID, NULL, NULL, "%s", message);
		for (int64_t i = 0; i < now * data->row; i++)
			if (label[i] >= 0 && label[i] != ignore)
				TRY(count_label(a, c, data->path, label[i], d));
	}
	return ST_OK;
}

/* Samples / (classes * the class's), of the classes that there are; 1 for those that have a name or
 * a number alone. */
static enum status add_balance(
	struct arena *a, struct text *t, const struct dataset *data, int64_t ignore, struct diag *d)
{
	struct counts c = {0};
	int64_t all = 0, met = 0, names = 0;
	TRY(count_labels(a, data, ignore, &c, d));
	for (const char *p = dataset_classes(data); p; p = dataset_class_next(p, NULL, NULL))
		names++;
	for (int64_t i = 0; i < c.n; i++) {
		all += c.of[i];
		met += c.of[i] > 0;
	}
	if (!all)
		return diag_fail(d, ST_INVALID, &(struct where){.file = data->path}, NULL,
			"holds no labels whose classes could be weighed");
	for (int64_t i = 0; i < c.n || i < names; i++) {
		const bool there = i < c.n && c.of[i];
		add_number(t, there ? (double)all / ((double)met * (double)c.of[i]) : 1, i == 0);
	}
	return ST_OK;
}

static enum status add_balanced(
	struct arena *a, struct text *t, const char *path, int64_t ignore, struct diag *d)
{
	char message[256];
	struct dataset data;
	if (dataset_open(&data, path, message) != 0)
		return diag_fail(d, ST_IO, NULL, NULL, "%s", message);
	const enum status st = add_balance(a, t, &data, ignore, d);
	dataset_close(&data);
	return st;
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

/* "KEY=VALUE"; `ignore`: the label that counts nowhere. */
static enum status add_option(
	struct arena *a, struct text *t, char *option, int64_t ignore, struct diag *d)
{
	static const char balanced[] = "weight=balanced";
	const size_t word = sizeof balanced - 1;
	const char *value = strchr(option, '=');
	const bool npy = ends_with(option, ".npy"), balance = !strncmp(option, balanced, word);
	if (balance && !option[word])
		return diag_fail(d, ST_USAGE, NULL,
			"weight=balanced:LABELS: a file or a folder, as training targets are",
			"weight=balanced: of which labels?");
	if (balance && option[word] == ':') {
		const char *labels = marked_name(a, option + word + 1, strlen(option + word + 1));
		text_puts(t, "weight=");
		return labels ? add_balanced(a, t, labels, ignore, d) : diag_nomem(d);
	}
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
	size_t n;
	const char *ignored = marked_option(loss, "ignore_index", &n);
	const int64_t ignore = ignored ? strtoll(ignored, NULL, 10) : -1;
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
		st = add_option(a, &t, p, ignore, d);
		text_puts(&t, mark);
	}
	if (st == ST_OK && (t.failed || !(*out = arena_strdup(a, t.s ? t.s : ""))))
		st = diag_nomem(d);
	text_free(&t);
	return st;
}
