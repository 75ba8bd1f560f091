#include "cli/feed.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/marked.h"
#include "cli/data_columns.h"
#include "cli/data_forms.h"
#include "cli/hold_out.h"
#include "cli/picture_source.h"

static enum status check_scalar(
	const struct stint_tensor *t, const struct dataset *data, struct diag *d)
{
	if (data->rank == 0 || (data->rank == 1 && data->dim[0] == 1))
		return ST_OK;
	char have[200];
	dims_text(data->rank, data->dim, have);
	return diag_fail(d, ST_INVALID, &(struct where){.file = data->path},
		"the file holds the one number that every step takes",
		"has shape %s; '%s' wants a scalar, [] or [1]", have, t->name);
}

/* A number a class where the loss reads the class's number: what else it could be compiled for. */
static const char *one_hot_hint(const struct feed *f, int i)
{
	const struct stint_tensor *t = feed_tensor(f, i);
	const struct dataset *data = &f->bound[i].data;
	int64_t row = f->bound[i].classes;
	for (int k = 1; k < t->rank; k++)
		row *= t->dim[k];
	if (!f->bound[i].classes || data->rank != t->rank + 1 || data->row != row)
		return NULL;
	return strcmp(f->bound[i].loss->kind, "cross-entropy") != 0
		       ? "it has a number for each class: give the number of each sample's class"
		       : "it has a number for each class: compile with --loss "
			 "cross-entropy:target=probabilities, or give the number of each sample's "
			 "class";
}

/* Axis 0 counts samples; the rest must have as many elements, and where the ranks agree the same
 * sizes. An image file of rank 3 fits a model's [N, 1, H, W]. */
static enum status check_shape(const struct feed *f, int bound, struct diag *d)
{
	const struct stint_tensor *t = feed_tensor(f, bound);
	const struct dataset *data = &f->bound[bound].data;
	const char *hint = one_hot_hint(f, bound);
	int64_t row = 1;
	if (t->rank == 0)
		return check_scalar(t, data, d);
	for (int i = 1; i < t->rank; i++)
		row *= t->dim[i];
	bool ok = data->rank >= 1 && data->row == row;
	for (int i = 1; ok && data->rank == t->rank && i < t->rank; i++)
		ok = data->dim[i] == t->dim[i];
	if (ok)
		return ST_OK;
	char have[200], want[200];
	dims_text(data->rank, data->dim, have);
	dims_text(t->rank, t->dim, want);
	return diag_fail(d, ST_INVALID, &(struct where){.file = data->path},
		hint ? hint : "the first axis counts samples; the others must be the model's",
		"has shape %s; '%s' wants %s", have, t->name, want);
}

int64_t feed_evaluated(const struct feed *f)
{
	return f->l->model->shards > 1 ? f->batch / f->l->model->shards : f->batch;
}

static bool is_whole(const struct dataset *data)
{
	return data->type >= DATASET_I8;
}

static enum status check_type(
	const struct stint_tensor *t, const struct dataset *data, struct diag *d)
{
	if ((t->dtype != STINT_I64 && t->dtype != STINT_BOOL) || is_whole(data))
		return ST_OK;
	return diag_fail(d, ST_INVALID, &(struct where){.file = data->path}, "convert it to int64",
		"holds floats; '%s' wants integers", t->name);
}

bool feed_has_labels(const struct stint_model *m, const struct stint_loss_term *loss)
{
	return loss->target >= 0 && m->resident[loss->target].dtype == STINT_I64 && loss->kind &&
	       (!strcmp(loss->kind, "cross-entropy") || !strcmp(loss->kind, "nll"));
}

double feed_loss_option(const struct stint_loss_term *loss, const char *name, double def)
{
	const struct stint_loss_option *o = load_loss_option(loss, name);
	return o ? o->number : def;
}

enum status feed_wants_outputs(const struct loaded *l, const char *what, struct diag *d)
{
	if (l->model->noutput)
		return ST_OK;
	return diag_fail(d, ST_USAGE, &(struct where){.file = l->model->name},
		"compile without --no-outputs; checkpoints fit both steps",
		"%s wants the model's outputs, and this step was compiled with --no-outputs: its "
		"evaluation computes the loss alone",
		what);
}

enum status feed_wants_samples(const struct feed *f, struct diag *d)
{
	const char *file = f->n ? f->bound[0].data.path : f->l->model->name;
	return f->n && f->samples ? ST_OK
				  : diag_fail(d, ST_INVALID, &(struct where){.file = file}, NULL,
					    "there are no samples");
}

void feed_tell_filled(const struct feed *f, const char *what, const char *why, struct diag *d)
{
	const int64_t left = f->samples % feed_evaluated(f);
	char hint[96];
	snprintf(hint, sizeof hint,
		"a step compiled with a --batch that divides %" PRId64 " has whole batches alone",
		f->samples);
	if (left && why)
		diag_warn(d, &(struct where){.file = f->l->model->name}, hint,
			"the last %" PRId64 " of %" PRId64 " samples are no whole batch of %" PRId64
			": it is filled up with the last one again, and %s may depend on that: %s",
			left, f->samples, feed_evaluated(f), what, why);
}

bool feed_sums_loss(const struct stint_loss_term *loss)
{
	const struct stint_loss_option *how = load_loss_option(loss, "reduction");
	return how && how->word && !strcmp(how->word, "sum");
}

const struct stint_output *feed_scored_output(
	const struct stint_model *m, const struct stint_loss_term *loss)
{
	const struct stint_output *o = loss->output < 0 ? NULL : &m->output[loss->output];
	return o && o->rank == m->resident[loss->target].rank + 1 ? o : NULL;
}

/* The classes: the sizes of the scored output that the target does not have. */
static int64_t classes_of(const struct stint_model *m, const struct stint_loss_term *loss)
{
	const struct stint_output *o = feed_scored_output(m, loss);
	const struct stint_tensor *t = &m->resident[loss->target];
	int64_t numel = m->shards > 1 ? m->shards : 1, rows = 1; /* of the whole batch */
	if (!o)
		return INT64_MAX;
	for (int i = 0; i < o->rank; i++)
		numel *= o->dim[i];
	for (int i = 0; i < t->rank; i++)
		rows *= t->dim[i];
	return rows && numel % rows == 0 ? numel / rows : INT64_MAX;
}

/* Of file i, a target: which loss compares with it, and what its labels are. Where several do,
 * labels are those of the one with the fewest classes. */
static void know_target(struct feed *f, int i)
{
	const struct stint_model *m = f->l->model;
	for (int k = 0; k < m->nloss; k++) {
		const struct stint_loss_term *loss = &m->loss[k];
		if (loss->target != f->bound[i].resident)
			continue;
		if (!f->bound[i].loss)
			f->bound[i].loss = loss;
		if (!feed_has_labels(m, loss))
			continue;
		const int64_t classes = classes_of(m, loss);
		if (f->bound[i].classes && f->bound[i].classes <= classes)
			continue;
		f->bound[i].classes = classes;
		f->bound[i].ignore = (int64_t)feed_loss_option(loss, "ignore_index", -100);
	}
}

/* Before the first step; each batch's are looked at again when they are read. */
static enum status check_labels(const struct feed *f, int i, struct diag *d)
{
	const struct dataset *data = &f->bound[i].data;
	const int64_t classes = f->bound[i].classes;
	int64_t at, value;
	char message[256];
	if (!classes || f->o->skip_bad || !data->cheap)
		return ST_OK;
	if (dataset_outside(data, 0, classes - 1, f->bound[i].ignore, &at, &value, message))
		return diag_fail(d, ST_INVALID, NULL, NULL, "%s", message);
	if (at < 0)
		return ST_OK;
	return diag_fail(d, ST_INVALID, &(struct where){.file = data->path},
		"--skip-bad takes another sample instead",
		"sample %" PRId64 " has label %" PRId64 ", out of range for %" PRId64 " classes",
		at, value, classes);
}

static bool is_file(const char *source)
{
	struct stat st;
	char path[4096];
	size_t n;
	const char *file = dataset_file(source, &n);
	if (n >= sizeof path)
		return false;
	memcpy(path, file, n);
	path[n] = '\0';
	return access(path, R_OK) == 0 && stat(path, &st) == 0 &&
	       (S_ISREG(st.st_mode) || dataset_is_prefixed(source));
}

/* The name that a message of data begins with is a field of its own. */
static enum status data_fail(
	struct diag *d, enum status st, const char *path, const char *hint, const char *message)
{
	const size_t n = strlen(path);
	const bool named = !strncmp(message, path, n) && !strncmp(message + n, ": ", 2);
	return diag_fail(d, st, &(struct where){.file = named ? path : NULL}, hint, "%s",
		named ? message + n + 2 : message);
}

static int open_source(
	const struct feed *f, const char *path, struct dataset *out, char message[256])
{
	const struct feed *with = f->o->with;
	for (int i = 0; with && i < with->n; i++)
		if (!strcmp(with->bound[i].data.path, path))
			return dataset_again(out, &with->bound[i].data, message);
	return dataset_open(out, path, message);
}

static enum status bind(
	struct arena *a, struct feed *f, int resident, const char *text, struct diag *d)
{
	const struct stint_model *m = f->l->model;
	const struct stint_tensor *t = &m->resident[resident];
	const char *path, *trained;
	char message[256];
	if (f->n == FEED_MAX)
		return diag_fail(d, ST_USAGE, NULL, NULL, "too many inputs");
	for (int i = 0; i < f->n; i++)
		if (f->bound[i].resident == resident)
			return diag_fail(d, ST_USAGE, NULL, NULL, "'%s' is given twice", t->name);
	const bool target = load_is_target(m, resident);
	TRY(picture_source(a, f->o, t, target, load_target(m, 0) < 0, text, &path, d));
	TRY(columns_source(a, f->o, t, &path, &trained, d));
	const int bound = f->n;
	struct dataset *data = &f->bound[bound].data;
	if (open_source(f, path, data, message)) {
		return data_fail(d, is_file(path) ? ST_INVALID : ST_IO, path,
			data_form_hint(a, path), message);
	}
	bool is_real = t->dtype == STINT_F32 || t->dtype == STINT_F64;
	f->bound[bound].resident = resident;
	f->bound[bound].mapped = is_real && !target;
	f->n++;
	know_target(f, bound);
	if (resident == load_target(m, 0) && f->o->classes &&
		dataset_take_classes(data, f->o->classes, message))
		return diag_fail(d, ST_INVALID, NULL,
			dataset_folder(data)
				? "each class is a folder, of the name that it had in training"
				: "a class is called as it was in training",
			"%s", message);
	TRY(columns_take(a, f->o, t, trained, data, d));
	if (f->bound[bound].mapped)
		TRY(data_options_map(f->o, t->name, t->rank, t->dim, &f->bound[bound].map, d));
	TRY(check_shape(f, bound, d));
	TRY(check_type(t, data, d));
	return target ? check_labels(f, bound, d) : ST_OK;
}

/* The k-th model input that is no target. */
static int nth_input(const struct stint_model *m, int k)
{
	for (int i = 0; i < m->nresident; i++)
		if (m->resident[i].kind == STINT_INPUT && !load_is_target(m, i) && k-- == 0)
			return i;
	return -1;
}

/* A hint; NULL: no memory for it. */
static const char *known_targets(struct arena *a, const struct stint_model *m)
{
	const char *all = "there are";
	for (int k = 0; all && load_target(m, k) >= 0; k++)
		all = arena_printf(
			a, "%s%s '%s'", all, k ? "," : "", m->resident[load_target(m, k)].name);
	return all;
}

/* "[NAME=]FILE", of an input or of a target: *position counts those without a name. */
static enum status bind_given(struct arena *a, struct feed *f, bool target, const char *text,
	int *position, struct diag *d)
{
	const struct stint_model *m = f->l->model;
	const char *eq = dataset_is_prefixed(text) ? NULL : marked_first(text, "=");
	const char *name = eq ? marked_name(a, text, (size_t)(eq - text)) : NULL;
	int resident = name ? load_find(f->l, name, STINT_INPUT) : -1;
	if (eq && !name)
		return diag_nomem(d);
	if (resident >= 0 && load_is_target(m, resident) != target)
		resident = -1;
	if (eq && resident < 0 && !is_file(text))
		return target ? diag_fail(d, ST_USAGE, NULL, known_targets(a, m),
					"no loss has a target '%s'", name)
			      : diag_fail(d, ST_USAGE, NULL,
					"`stint show MODEL.onnx` lists the inputs",
					"the model has no input '%s'", name);
	if (resident >= 0)
		text = eq + 1;
	else if ((resident = target ? load_target(m, (*position)++) : nth_input(m, (*position)++)) <
		 0)
		return target ? diag_fail(d, ST_USAGE, NULL, NULL,
					"'%s': the losses have no more targets", text)
			      : diag_fail(d, ST_USAGE, NULL, NULL,
					"'%s': the model has no more inputs", text);
	return bind(a, f, resident, text, d);
}

static enum status bind_targets(
	struct arena *a, struct feed *f, const struct arg_list *targets, struct diag *d)
{
	const struct stint_model *m = f->l->model;
	int position = 0;
	if (targets->n && load_target(m, 0) < 0)
		return diag_fail(d, ST_USAGE, NULL, NULL, "the model takes no target");
	for (int i = 0; i < targets->n; i++)
		TRY(bind_given(a, f, true, targets->value[i], &position, d));
	for (int i = 0; i < f->n; i++)
		if (f->bound[i].resident == load_target(m, 0))
			f->target = i;
	return ST_OK;
}

static enum status check_complete(const struct feed *f, struct diag *d)
{
	const struct stint_model *m = f->l->model;
	for (int i = 0; i < m->nresident; i++) {
		bool bound = m->resident[i].kind != STINT_INPUT;
		for (int k = 0; k < f->n; k++)
			bound |= f->bound[k].resident == i;
		if (!bound)
			return diag_fail(d, ST_USAGE, NULL,
				load_target(m, 1) >= 0 && load_is_target(m, i)
					? "--target NAME=FILE.npy"
				: load_is_target(m, i) ? "--target FILE.npy"
						       : "--input [NAME=]FILE.npy",
				"no data for '%s'", m->resident[i].name);
	}
	return ST_OK;
}

/* How many samples file i has; all must have as many as the first. */
static enum status count_file(struct feed *f, int i, int first, struct diag *d)
{
	const struct dataset *data = &f->bound[i].data;
	const struct where w = {.file = data->path};
	int64_t unit = f->whole && feed_tensor(f, i)->dim[0] ? feed_tensor(f, i)->dim[0] : 1,
		samples = data->dim[0] / unit;
	if (data->dim[0] % unit)
		return diag_fail(d, ST_INVALID, &w,
			"the model's inputs differ in their first axis; a file holds all "
			"that a step takes, or that several do",
			"has %" PRId64 " rows, no multiple of %" PRId64, data->dim[0], unit);
	f->samples = i == first ? samples : f->samples;
	if (samples != f->samples)
		return diag_fail(d, ST_INVALID, &w, NULL,
			"has %" PRId64 " samples; %s has %" PRId64, samples,
			f->bound[first].data.path, f->samples);
	return ST_OK;
}

static int64_t most_of(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

/* What a sample is, and how many there are. */
static enum status count_samples(struct arena *a, struct feed *f, struct diag *d)
{
	int64_t most = 1;
	int first = 0;
	while (first < f->n && feed_is_scalar(f, first))
		first++;
	f->batch = first < f->n ? feed_tensor(f, first)->dim[0] : 1;
	f->rows = 1;
	f->samples = first < f->n ? 0 : 1;
	for (int i = first; i < f->n; i++) {
		int64_t rows = feed_is_scalar(f, i) ? f->batch : feed_tensor(f, i)->dim[0];
		f->whole |= rows != f->batch;
		most = most_of(most, rows);
	}
	if (f->whole) {
		int64_t counted = 0;
		for (int i = first; i < f->n; i++)
			if (f->bound[i].loss && !feed_is_scalar(f, i))
				counted = most_of(counted, feed_tensor(f, i)->dim[0]);
		f->batch = 1;
		f->rows = counted ? counted : most;
	}
	f->index = ARENA_ARRAY(a, int64_t, most);
	if (!f->index)
		return diag_nomem(d);
	for (int i = first; i < f->n; i++)
		if (!feed_is_scalar(f, i))
			TRY(count_file(f, i, first, d));
	return ST_OK;
}

/* Pictures of one folder and labels or masks of another must be of the same names. */
static enum status check_names(const struct feed *f, struct diag *d)
{
	for (int i = 1; i < f->n; i++) {
		const struct dataset *a = &f->bound[0].data, *b = &f->bound[i].data;
		const int64_t at = dataset_misnamed(a, b);
		if (at >= 0)
			return diag_fail(d, ST_INVALID, &(struct where){.file = b->path},
				"pictures, labels and masks go together by the names of their "
				"files",
				"sample %" PRId64 " is '%s', where %s has '%s'", at,
				dataset_name(b, at), a->path, dataset_name(a, at));
	}
	return ST_OK;
}

static enum status open_batches(struct arena *a, struct feed *f, struct diag *d)
{
	f->tally = ARENA_ARRAY(a, struct feed_tally, 1);
	f->swapped = ARENA_ARRAY(a, int64_t, f->batch);
	f->place = ARENA_ARRAY(a, int64_t, f->batch);
	if (!f->tally || !f->swapped || !f->place)
		return diag_nomem(d);
	return data_options_bad(f->o, f->samples, f->samples / 20, &f->bad, d);
}

enum status feed_open(struct arena *a, const struct loaded *l, const struct arg_list *inputs,
	const struct arg_list *targets, const struct data_options *o, struct feed *out,
	struct diag *d)
{
	int position = 0;
	*out = (struct feed){.l = l, .o = o, .target = -1};
	for (int i = 0; i < inputs->n; i++)
		TRY(bind_given(a, out, false, inputs->value[i], &position, d));
	TRY(bind_targets(a, out, targets, d));
	TRY(check_complete(out, d));
	TRY(count_samples(a, out, d));
	TRY(check_names(out, d));
	TRY(hold_out_take(out, d));
	return open_batches(a, out, d);
}
