/* Batches: samples out of a feed's files, read ahead where that was asked for, into the step. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/clock.h"
#include "cli/feed_pad.h"
#include "cli/hold_out.h"
#include "runtime/stint_tree.h"

static enum dataset_as number_of(int dtype)
{
	return dtype == STINT_F32   ? DATASET_AS_F32
	       : dtype == STINT_F64 ? DATASET_AS_F64
	       : dtype == STINT_I64 ? DATASET_AS_I64
				    : DATASET_AS_BOOL;
}

enum { BAD_LABEL = 2 }; /* what reading gives, besides 1 and 0 */

/* Rows of file i, *done of them. Labels are looked at: the file may have changed since. */
static int read_rows(const struct feed *f, int i, const int64_t *index, int64_t n, void *out,
	int64_t *done, char message[256])
{
	const struct dataset *data = &f->bound[i].data;
	const int rc = dataset_read(data, index, n, number_of(feed_tensor(f, i)->dtype),
		f->bound[i].mapped ? &f->bound[i].map : NULL, out, done, message);
	const int64_t classes = f->bound[i].classes;
	if (!classes)
		return rc;
	const int64_t *label = out;
	for (int64_t k = 0; k < *done * data->row; k++) {
		if ((label[k] >= 0 && label[k] < classes) || label[k] == f->bound[i].ignore)
			continue;
		*done = k / data->row;
		snprintf(message, 256,
			"%.120s: sample %" PRId64 " has label %" PRId64
			", out of range for %" PRId64 " classes",
			data->path, index[*done], label[k], classes);
		return BAD_LABEL;
	}
	return rc;
}

/* File i's part of samples index[0..n), *done of them. */
static int read_part(const struct feed *f, int i, const int64_t *index, int64_t n,
	unsigned char *at, int64_t *done, char message[256])
{
	const struct stint_tensor *t = feed_tensor(f, i);
	int rc;
	if (feed_is_scalar(f, i) || f->whole) {
		const int64_t rows = feed_is_scalar(f, i) ? 1 : t->dim[0];
		for (int64_t r = 0; r < rows; r++)
			f->index[r] = feed_is_scalar(f, i) ? 0
							   : hold_out_row(f, index[0]) * rows + r;
		rc = read_rows(f, i, f->index, rows, at, done, message);
		*done = rc ? 0 : n;
		return rc;
	}
	for (int64_t r = 0; r < n; r++)
		f->index[r] = hold_out_row(f, index[r]);
	return read_rows(f, i, f->index, n, at, done, message);
}

/* --- Bad samples --- */

/* What of a message follows this path; NULL: it is about another. (dataset_bad cuts long ones.) */
static const char *behind(const char *message, const char *path)
{
	const size_t n = strnlen(path, 120);
	return !strncmp(message, path, n) && !strncmp(message + n, ": ", 2) ? message + n + 2
									    : NULL;
}

/* Why a sample of file i is bad, without which one it is; and what that one is called. */
static void reason_of(const struct feed *f, int i, int64_t sample, int rc, const char *message,
	char reason[BAD_TEXT], char name[BAD_TEXT])
{
	const struct dataset *data = &f->bound[i].data;
	char number[48], path[4096];
	const bool file = dataset_sample_file(data, sample, path, sizeof path) > 0;
	if (file)
		snprintf(name, BAD_TEXT, "%.*s", BAD_TEXT - 1, path);
	else
		snprintf(name, BAD_TEXT, "sample %" PRId64, sample);
	if (rc == BAD_LABEL) {
		snprintf(reason, BAD_TEXT, "a label out of range for %" PRId64 " classes",
			f->bound[i].classes);
		return;
	}
	const char *text = behind(message, data->path);
	text = !text && file ? behind(message, path) : text;
	text = text ? text : message;
	size_t n = (size_t)snprintf(number, sizeof number, "sample %" PRId64 " ", sample);
	text += strncmp(text, number, n) ? 0 : n;
	n = (size_t)snprintf(number, sizeof number, " (sample %" PRId64 ")", sample);
	const size_t len = strlen(text), cut = len > n && !strcmp(text + len - n, number) ? n : 0;
	snprintf(reason, BAD_TEXT, "%.*s", (int)(len - cut), text);
	if (!*reason)
		snprintf(reason, BAD_TEXT, "cannot be read");
}

/* Row r of a batch, its sample `sample`, is bad by file i. 1: there are too many. */
static int count_bad(
	const struct feed *f, int i, int64_t sample, int64_t r, int rc, char message[256])
{
	char reason[BAD_TEXT], name[BAD_TEXT], last[256];
	struct bad_samples *b = &f->tally->bad;
	reason_of(f, i, hold_out_row(f, sample), rc, message, reason, name);
	if (bad_add(b, sample, f->samples, reason, name)) {
		snprintf(message, 256, "out of memory");
		return 1;
	}
	if (f->why && !*f->why[r])
		memcpy(f->why[r], reason, BAD_TEXT);
	if (b->n <= f->bad)
		return 0;
	memcpy(last, message, sizeof last);
	snprintf(message, 256,
		"%" PRId64 " of %" PRId64 " samples are bad, more than --skip-bad allows: %.140s",
		b->n, f->samples, last);
	return 1;
}

/* --skip-bad: sample r of the batch becomes the next in the files, in all of them. */
static int replace(const struct feed *f, int upto, int64_t *index, int64_t r, unsigned char **at,
	char message[256])
{
	for (int64_t tried = 1; tried < f->samples; tried++) {
		int bad = 0;
		index[r] = (index[r] + 1) % f->samples;
		for (int i = 0; i <= upto && !bad; i++) {
			int64_t done;
			bad = read_part(f, i, index + r, 1,
				at[i] + (size_t)r * (feed_tensor(f, i)->bytes / (size_t)f->batch),
				&done, message);
		}
		if (!bad)
			return 0;
	}
	return 1;
}

/* The rows of file i that are wanted. */
static void wanted(const struct feed *f, int i, int64_t *from, int64_t *to)
{
	const bool part = f->end && feed_tensor(f, i)->by_shards;
	*from = part ? f->first : 0;
	*to = part ? f->end : f->batch;
}

static size_t row_bytes(const struct feed *f, int i)
{
	const struct stint_tensor *t = feed_tensor(f, i);
	return t->rank ? t->bytes / (size_t)f->batch : t->bytes;
}

/* File i's part of a batch of n samples. */
static int read_file(const struct feed *f, int i, int64_t *index, int64_t n, unsigned char **at,
	char message[256])
{
	const size_t row = row_bytes(f, i);
	int64_t from, to, done;
	wanted(f, i, &from, &to);
	int64_t r = from;
	if (from >= n) { /* none of them has a sample: the last one stands there */
		if (read_part(f, i, index + n - 1, 1, at[i] + (size_t)r * row, &done, message))
			return 1;
		r++;
	}
	while (r < n && r < to) {
		const int64_t left = (n < to ? n : to) - r;
		const int bad = read_part(
			f, i, index + r, left, at[i] + (size_t)r * row, &done, message);
		r += done;
		if (!bad)
			break;
		if (!f->o->skip_bad || feed_is_scalar(f, i))
			return 1;
		if (count_bad(f, i, index[r], r, bad, message))
			return 1;
		if (f->why)
			memset(at[i] + (size_t)r * row, 0, row);
		else if (replace(f, i, index, r, at, message))
			return 1;
		r++;
	}
	/* missing rows repeat the last one */
	const bool rows = feed_tensor(f, i)->rank && !f->whole;
	for (; rows && r < to; r++)
		memcpy(at[i] + (size_t)r * row, at[i] + (size_t)(r - 1) * row, row);
	return 0;
}

/* A batch to at[0..f->n). */
static int read_batch(
	const struct feed *f, int64_t *index, int64_t n, unsigned char **at, char message[256])
{
	for (int i = 0; i < f->n; i++)
		if (read_file(f, i, index, n, at, message))
			return 1;
	return 0;
}

static int read_staged(void *user, int64_t *index, int64_t n, char message[256])
{
	const struct feed *f = user;
	return read_batch(f, index, n, f->tally->staged, message);
}

/* --- Feeding --- */

/* What the thread has read, or else read here and now; then to the step. */
static enum status take(const struct feed *f, const int64_t *index, int64_t n, struct diag *d)
{
	char message[256];
	unsigned char *at[FEED_MAX];
	int rc = 0;
	const bool staged = f->tally->ahead && ahead_take(f->tally->ahead, index, n, &rc, message);
	for (int i = 0; i < f->n; i++)
		if (!(at[i] = load_at(f->l, f->bound[i].resident)))
			return diag_nomem(d);
	if (!staged) {
		memcpy(f->swapped, index, (size_t)n * sizeof *index);
		rc = read_batch(f, f->swapped, n, at, message);
	}
	if (rc)
		return diag_fail(d, ST_INVALID, NULL,
			f->o->skip_bad ? "--skip-bad=N allows so many, --skip-bad=P% a share of all"
			: f->why       ? "--skip-bad answers the others"
				       : "--skip-bad takes another sample instead",
			"%s", message);
	for (int i = 0; i < f->n; i++) {
		int64_t from, to;
		wanted(f, i, &from, &to);
		const size_t row = row_bytes(f, i), begin = (size_t)from * row;
		if (staged && feed_tensor(f, i)->rank)
			memcpy(at[i] + begin, f->tally->staged[i] + begin,
				(size_t)(to - from) * row);
		else if (staged)
			memcpy(at[i], f->tally->staged[i], row);
	}
	f->tally->longest = feed_pad_mask(f, at);
	for (int i = 0; i < f->n; i++)
		TRY(load_send(f->l, f->bound[i].resident, d));
	return ST_OK;
}

enum status feed_batch(const struct feed *f, const int64_t *index, int64_t n, struct diag *d)
{
	const double began = clock_seconds();
	const enum status st = take(f, index, n, d);
	f->tally->waited += clock_seconds() - began;
	return st;
}

/* The thread and the memory that it reads to. Without them batches are read when they are wanted.
 */
static void start_ahead(struct feed *f)
{
	for (int i = 0; i < f->n; i++)
		if (!f->tally->staged[i] &&
			!(f->tally->staged[i] = malloc(feed_tensor(f, i)->bytes + 1)))
			return;
	f->tally->ahead = ahead_new(read_staged, f, f->batch);
}

void feed_ahead(struct feed *f, const int64_t *index, int64_t n)
{
	if (!f->tally->ahead)
		start_ahead(f);
	if (f->tally->ahead)
		ahead_begin(f->tally->ahead, index, n);
}

/* Waits for the thread, and forgets what it has read. */
static void forget(const struct feed *f)
{
	char message[256];
	int rc;
	if (f->tally && f->tally->ahead)
		(void)ahead_take(f->tally->ahead, f->place, 0, &rc, message);
}

void feed_share(struct feed *f, int rank, int n)
{
	const int64_t shards = f->l->model->shards;
	forget(f);
	f->first = f->end = 0;
	if (n < 2 || shards < n || f->whole || f->o->skip_bad)
		return;
	f->first = f->batch / shards * stint_tree_first(shards, n, rank);
	f->end = f->batch / shards * stint_tree_first(shards, n, rank + 1);
}

enum status feed_epoch(struct feed *f, int64_t seed, int64_t epoch, struct diag *d)
{
	if (!f->order.side && shuffle_open(&f->order, f->samples))
		return diag_nomem(d);
	shuffle_begin(&f->order, seed, epoch);
	for (int i = 0; i < f->n; i++) {
		f->bound[i].data.seed = seed;
		f->bound[i].data.epoch = epoch;
	}
	return ST_OK;
}

const int64_t *feed_place(const struct feed *f, int64_t batch)
{
	const int64_t n = feed_size(f, batch);
	for (int64_t i = 0; i < n; i++)
		f->place[i] = shuffle_at(&f->order, batch * f->batch + i);
	return f->place;
}

int64_t feed_size(const struct feed *f, int64_t batch)
{
	const int64_t left = f->samples - batch * f->batch;
	return left < f->batch ? left : f->batch;
}

double feed_waited(const struct feed *f)
{
	const double waited = f->tally->waited;
	f->tally->waited = 0;
	return waited;
}

void feed_tell_skipped(const struct feed *f, struct diag *d)
{
	static const char *const replaced[] = {
		"another takes its place", "others take their places"};
	static const char *const kept[] = {
		"its row is not a number", "their rows are not a number"};
	forget(f);
	if (f->tally)
		bad_tell(&f->tally->bad, f->samples, f->why ? kept : replaced, d);
}

enum status feed_join_skipped(struct arena *a, const struct feed *f, struct ranks *r,
	const struct loaded *l, struct diag *d)
{
	if (!f->o->skip_bad || r->n == 1)
		return ST_OK;
	TRY(bad_join(a, &f->tally->bad, r, l, d));
	if (f->tally->bad.n <= f->bad)
		return ST_OK;
	r->agreed = true;
	return diag_fail(d, ST_INVALID, NULL, "--skip-bad=N allows so many, --skip-bad=P% a share",
		"%" PRId64 " of %" PRId64 " samples are bad, more than --skip-bad allows",
		f->tally->bad.n, f->samples);
}

void feed_close(struct feed *f)
{
	for (int i = 0; f->tally && i < f->n; i++) {
		if (!i)
			ahead_free(f->tally->ahead);
		free(f->tally->staged[i]);
	}
	shuffle_close(&f->order);
	shuffle_close(&f->drawn);
	for (int i = 0; i < f->n; i++)
		dataset_close(&f->bound[i].data);
	if (f->tally)
		bad_free(&f->tally->bad);
	f->n = 0;
	f->tally = NULL;
}
