#include "api/weights.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "graph/op.h"
#include "graph/op_optimizer.h"
#include "runtime/checkpoint.h"
#include "runtime/safetensors.h"

enum { NAMES = 5, TOLD = 8 }; /* names listed in a message; messages of a kind */

struct fitting {
	struct arena *a;
	const struct loaded *l;
	const struct weights *w;
	struct diag *d;
	struct safetensors *f;
	const struct safetensors_entry **take; /* of each resident; NULL: it keeps its value */
	int wanted, loaded, skipped;
	int nmissing, nunused;
	const char **missing, **unused;
};

/* --- Averages --- */

static const struct kind_of_average {
	const char *prefix, *option, *hint;
} averages[] = {
	[WEIGHTS_EMA] = {"state/" OP_AVERAGE "/", "ema", "compile with --ema DECAY, and train"},
	[WEIGHTS_SWA] = {CHECKPOINT_BESIDE, "swa", "train with --swa-start EPOCH"},
};

const char *weights_averaged(const char *entry, int average)
{
	const char *prefix = averages[average].prefix;
	const size_t n = prefix ? strlen(prefix) : 0;
	return n && !strncmp(entry, prefix, n) ? entry + n : NULL;
}

const struct safetensors_entry *weights_find(
	struct arena *a, const struct safetensors *file, const char *name, int average, bool *nomem)
{
	const struct safetensors_entry *e = NULL;
	if (average) {
		const char *of = arena_printf(a, "%s%s", averages[average].prefix, name);
		*nomem |= !of;
		e = of ? safetensors_find(file, of) : NULL;
	}
	return e ? e : safetensors_find(file, name);
}

enum status weights_check_average(
	const struct safetensors *file, const char *path, int average, struct diag *d)
{
	bool any = average == WEIGHTS_TRAINED;
	for (int i = 0; i < safetensors_count(file) && !any; i++)
		any = weights_averaged(safetensors_at(file, i)->name, average) != NULL;
	return any ? ST_OK
		   : diag_fail(d, ST_INVALID, &(struct where){.file = path}, averages[average].hint,
			     "--%s: holds no averages of parameters", averages[average].option);
}

/* --- What a file holds of the model --- */

/* What a file of weights may hold of the model. */
static bool stored(const struct stint_tensor *t)
{
	return t->kind != STINT_INPUT && t->kind != STINT_CONTROL && t->kind != STINT_SUMS;
}

/* What it should. */
static bool wanted(const struct stint_tensor *t)
{
	return t->kind == STINT_PARAMETER || t->kind == STINT_BUFFER;
}

/* In a file and not in the model, and rightly so: constants that some plan of stint's made,
 * averages over epochs, PyTorch's counts of batches, which normalize nothing, and an optimizer's
 * states where nothing is trained. */
static bool beside(const struct stint_model *m, const char *name)
{
	static const char count[] = "num_batches_tracked";
	const size_t n = strlen(name), tail = sizeof count - 1;
	return !strncmp(name, "constant/", 9) || weights_averaged(name, WEIGHTS_SWA) ||
	       (!m->train && !strncmp(name, "state/", 6)) ||
	       (n >= tail && !strcmp(name + n - tail, count));
}

/* The same but for axes of one element, whose values lie alike: a slope per channel is [C] to one
 * framework, [C, 1, 1] to another. */
static bool same_shape(const struct stint_filed *t, const struct safetensors_entry *e)
{
	int i = 0, k = 0;
	for (;; i++, k++) {
		while (i < t->rank && t->dim[i] == 1)
			i++;
		while (k < e->rank && e->dim[k] == 1)
			k++;
		if (i >= t->rank || k >= e->rank)
			return i >= t->rank && k >= e->rank;
		if (t->dim[i] != e->dim[k])
			return false;
	}
}

static const char *names(struct arena *a, const char *const *name, int n)
{
	const char *all = "";
	for (int i = 0; i < n && i < NAMES && all; i++)
		all = arena_printf(a, "%s%s'%s'", all, i ? ", " : "", name[i]);
	return all && n > NAMES ? arena_printf(a, "%s and %d more", all, n - NAMES) : all;
}

static enum status of_another_type(
	const struct fitting *m, const struct stint_tensor *t, const struct safetensors_entry *e)
{
	const struct where at = {.file = m->w->path, .node = t->name, .op = "tensor"};
	return diag_fail(m->d, ST_INVALID, &at, "convert the file",
		"is %s in the file, %s in the model", e->type, safetensors_type(t->dtype));
}

static enum status of_another_shape(struct fitting *m, const struct stint_tensor *t,
	const struct stint_filed *filed, const struct safetensors_entry *e)
{
	char have[200], want[200];
	const struct where at = {.file = m->w->path, .node = t->name, .op = "tensor"};
	dims_text(e->rank, e->dim, have);
	dims_text(filed->rank, filed->dim, want);
	if (!m->w->skip)
		return diag_fail(m->d, ST_INVALID, &at,
			"--skip-mismatched passes over such tensors",
			"is %s in the file, %s in the model", have, want);
	if (m->skipped++ < TOLD)
		diag_note(m->d, &at, NULL, "skipped: it is %s in the file, %s in the model", have,
			want);
	return ST_OK;
}

/* What each tensor of the model finds in the file. */
static enum status fit(struct fitting *m)
{
	enum status st = ST_OK;
	const struct stint_model *model = m->l->model;
	for (int i = 0; i < model->nresident; i++) {
		const struct stint_tensor *t = &model->resident[i];
		if (!stored(t))
			continue;
		bool nomem = false;
		const struct stint_filed filed = stint_filed(m->l->step, i);
		const struct safetensors_entry *e = weights_find(
			m->a, m->f, t->name, wanted(t) ? m->w->average : WEIGHTS_TRAINED, &nomem);
		if (nomem)
			return diag_nomem(m->d);
		m->wanted += wanted(t);
		if (!e && wanted(t))
			m->missing[m->nmissing++] = t->name;
		else if (e && e->dtype != t->dtype)
			st = of_another_type(m, t, e);
		else if (e && (!same_shape(&filed, e) || e->bytes != filed.bytes))
			st = of_another_shape(m, t, &filed, e) == ST_OK ? st : ST_INVALID;
		else if (e && (!filed.piece || m->l->step->ranks)) /* else: only evaluated */
			m->take[i] = e;
		m->loaded += m->take[i] != NULL && wanted(t);
	}
	if (m->skipped > TOLD)
		diag_note(m->d, &(struct where){.file = m->w->path}, NULL,
			"skipped: %d more of another shape", m->skipped - TOLD);
	return st;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The file's names that the model does not know. */
static enum status find_unused(struct fitting *m)
{
	const struct stint_model *model = m->l->model;
	const char **known = ARENA_ARRAY(m->a, const char *, model->nresident);
	size_t n = 0;
	if (!known)
		return diag_nomem(m->d);
	for (int i = 0; i < model->nresident; i++)
		if (stored(&model->resident[i]))
			known[n++] = model->resident[i].name;
	if (n)
		qsort(known, n, sizeof *known, by_name);
	for (int k = 0; k < safetensors_count(m->f); k++) {
		const char *name = safetensors_at(m->f, k)->name;
		if (!beside(m->l->model, name) &&
			!(n && bsearch(&name, known, n, sizeof *known, by_name)))
			m->unused[m->nunused++] = name;
	}
	return ST_OK;
}

static enum status tell(struct fitting *m)
{
	const struct where at = {.file = m->w->path};
	const char *missing = names(m->a, m->missing, m->nmissing),
		   *unused = names(m->a, m->unused, m->nunused);
	if (!missing || !unused)
		return diag_nomem(m->d);
	if (m->wanted && !m->loaded)
		return diag_fail(m->d, ST_INVALID, &at, "`stint show MODEL.onnx` lists the model's",
			"none of the model's %d tensors is loaded; the model's: %s; the file's: %s",
			m->wanted, *missing ? missing : "all of another shape",
			*unused ? unused : "no others");
	if (!m->w->strict) {
		static const char hint[] = "--weights-strict makes an error of this";
		if (m->nmissing)
			diag_warn(m->d, &at, hint,
				"%d of the model's %d tensors loaded; missing: %s", m->loaded,
				m->wanted, missing);
		if (m->nunused)
			diag_warn(m->d, &at, hint, "%d of the file's names unused: %s", m->nunused,
				unused);
		return ST_OK;
	}
	if (m->nmissing)
		diag_fail(m->d, ST_INVALID, &at, NULL,
			"--weights-strict: %d of the model's %d tensors missing: %s", m->nmissing,
			m->wanted, missing);
	if (m->nunused)
		diag_fail(m->d, ST_INVALID, &at, NULL,
			"--weights-strict: %d of the file's names unused: %s", m->nunused, unused);
	return m->nmissing || m->nunused ? ST_INVALID : ST_OK;
}

/* By parts, so that a device's step takes no second copy of the model here. */
static enum status bring(const struct fitting *m, int resident, const struct safetensors_entry *e)
{
	enum { PART = 1 << 24 };
	const struct stint_tensor *t = &m->l->model->resident[resident];
	const struct stint_filed filed = stint_filed(m->l->step, resident);
	const size_t step = filed.here < PART ? filed.here + 1 : PART;
	unsigned char *part = malloc(step);
	if (!part)
		return diag_nomem(m->d);
	int rc = 0;
	bool read = !stint_read_shared(m->l->step, resident, m->f, e);
	for (size_t at = 0; at < filed.here && !rc && read; at += step) {
		const size_t n = filed.here - at < step ? filed.here - at : step;
		read = !safetensors_read(m->f, e, filed.from + at, n, part);
		if (read)
			rc = stint_write(m->l->step, t->offset + at, part, n);
	}
	free(part);
	if (!read)
		return diag_fail(
			m->d, ST_IO, &(struct where){.file = m->w->path}, NULL, "cannot read it");
	return rc ? load_fail(m->l, rc, t->name, m->d) : ST_OK;
}

static enum status load(struct fitting *m)
{
	const struct stint_model *model = m->l->model;
	const int count = safetensors_count(m->f);
	m->take = ARENA_ARRAY(m->a, const struct safetensors_entry *, model->nresident);
	m->missing = ARENA_ARRAY(m->a, const char *, model->nresident);
	m->unused = ARENA_ARRAY(m->a, const char *, count);
	if (!m->take || !m->missing || !m->unused)
		return diag_nomem(m->d);
	TRY(weights_check_average(m->f, m->w->path, m->w->average, m->d));
	TRY(find_unused(m));
	const enum status fits = fit(m);
	if (fits == ST_OK || m->loaded)
		TRY(tell(m));
	TRY(fits);
	for (int i = 0; i < model->nresident; i++)
		if (m->take[i])
			TRY(bring(m, i, m->take[i]));
	return ST_OK;
}

enum status weights_load(
	struct arena *a, const struct loaded *l, const struct weights *w, struct diag *d)
{
	struct fitting m = {.a = a, .l = l, .w = w, .d = d};
	char message[SAFETENSORS_MESSAGE];
	if (!w->path && (w->strict || w->skip))
		return diag_fail(d, ST_USAGE, NULL, NULL, "--%s needs --weights FILE",
			w->strict ? "weights-strict" : "skip-mismatched");
	if (!w->path && w->average)
		return diag_fail(d, ST_USAGE, NULL, NULL,
			"--%s wants a checkpoint: averages are made in training",
			averages[w->average].option);
	if (!w->path)
		return ST_OK;
	if (safetensors_open_header(&m.f, w->path, message))
		return diag_fail(d, ST_IO, NULL, NULL, "%s", message);
	const enum status st = load(&m);
	safetensors_close(m.f);
	return st;
}

enum status weights_of_checkpoint(
	struct arena *a, const char *checkpoint, const char **path, struct diag *d)
{
	char newest[512] = "", message[256];
	struct stat st;
	*path = checkpoint;
	if (stat(checkpoint, &st) == 0 && S_ISREG(st.st_mode))
		return ST_OK;
	if (checkpoint_newest(checkpoint, newest, message))
		return diag_fail(d, ST_IO, NULL, NULL, "%s", message);
	if (!*newest)
		return diag_fail(d, ST_IO, &(struct where){.file = checkpoint},
			"train first: `stint train DIR ... --checkpoint FOLDER`",
			"holds no checkpoint");
	*path = arena_strdup(a, newest);
	return *path ? ST_OK : diag_nomem(d);
}

const char *weights_folder(struct arena *a, const char *dir)
{
	return arena_printf(a, "%s/checkpoints", dir);
}

enum status weights_trained(struct arena *a, const char *dir, const char **path, struct diag *d)
{
	char newest[512] = "", message[256];
	const char *folder = weights_folder(a, dir);
	*path = NULL;
	if (!folder)
		return diag_nomem(d);
	TRY(load_folder(a, dir, d));
	if (checkpoint_newest(folder, newest, message))
		return diag_fail(d, ST_IO, NULL, NULL, "%s", message);
	if (!*newest) {
		diag_note(d, &(struct where){.file = dir},
			"--checkpoint FOLDER, where the training was saved elsewhere",
			"nothing has been trained here: its values are the model's");
		return ST_OK;
	}
	*path = arena_strdup(a, newest);
	return *path ? ST_OK : diag_nomem(d);
}

/* Says which values are taken, and how to have the model's own. */
static enum status choose_trained(
	struct arena *a, const char *dir, struct weights *w, struct diag *d)
{
	const char *own = arena_printf(
		a, "--weights %s/weights.safetensors takes the model's as it was compiled", dir);
	if (!own)
		return diag_nomem(d);
	TRY(weights_trained(a, dir, &w->path, d));
	if (w->path)
		diag_note(d, &(struct where){.file = w->path}, own, "its values are taken");
	return ST_OK;
}

enum status weights_choose(struct arena *a, const char *dir, const char *file,
	const char *checkpoint, struct weights *w, struct diag *d)
{
	w->path = file;
	if (file && checkpoint)
		return diag_fail(d, ST_USAGE, NULL, NULL,
			"--weights and --checkpoint name other values: choose one");
	if (checkpoint)
		return weights_of_checkpoint(a, checkpoint, &w->path, d);
	return file ? ST_OK : choose_trained(a, dir, w, d);
}
