#include "cli/train_lengths.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "api/safe_put.h"
#include "base/marked.h"

/* --- Opening --- */

/* The k-th input of rows of tokens. */
static int token_input(const struct stint_model *m, int k)
{
	for (int i = 0; i < m->nresident; i++) {
		const struct stint_tensor *t = &m->resident[i];
		if (t->kind == STINT_INPUT && !load_is_target(m, i) && t->dtype == STINT_I64 &&
			t->rank == 2 && k-- == 0)
			return i;
	}
	return -1;
}

/* The shorter step's input that is the longest one's `t`. */
static const struct stint_tensor *input_of(const struct loaded *l, const struct stint_tensor *t)
{
	const int i = load_find(l, t->name, STINT_INPUT);
	return i < 0 ? NULL : &l->model->resident[i];
}

static bool gets_shorter(const struct lengths *x, const struct stint_tensor *t)
{
	const struct stint_tensor *shorter = input_of(&x->item[0].l, t);
	return shorter && shorter->rank == t->rank && shorter->dim[1] < t->dim[1];
}

/* "[NAME=]TOKEN" */
static enum status parse_pad(struct arena *a, const struct lengths *x, const char *text,
	int *resident, int64_t *token, struct diag *d)
{
	const struct stint_model *m = x->longest->model;
	const char *eq = marked_last(text, '='), *number = eq ? eq + 1 : text;
	const char *name = eq ? marked_name(a, text, (size_t)(eq - text)) : NULL;
	char *end;
	*token = strtoll(number, &end, 10);
	if (eq && !name)
		return diag_nomem(d);
	if (end == number || *end)
		return diag_fail(d, ST_USAGE, NULL, "--pad 0, or --pad ids=0",
			"--pad wants the number of a token, not '%s'", number);
	for (int k = 0; (*resident = token_input(m, k)) >= 0; k++) {
		const struct stint_tensor *t = &m->resident[*resident];
		if (name ? !strcmp(name, t->name) : gets_shorter(x, t))
			break;
	}
	if (*resident >= 0 && gets_shorter(x, &m->resident[*resident]))
		return ST_OK;
	return diag_fail(d, ST_USAGE, NULL, NULL,
		"--pad: the model has no input%s%s of rows of tokens that '%s' makes shorter",
		name ? " " : "", name ? name : "", x->dim);
}

static void pad(struct feed *f, int resident, int64_t token)
{
	for (int i = 0; i < f->n; i++)
		if (f->bound[i].resident == resident)
			feed_pad(f, i, token);
}

static enum status open_steps(struct arena *a, const char *dir,
	const struct length_folders *folders, struct lengths *x, struct diag *d)
{
	x->item = ARENA_ARRAY(a, struct length_step, folders->n + 1);
	if (!x->item)
		return diag_nomem(d);
	x->dim = folders->dim;
	while (x->n < folders->n) {
		struct length_step *s = &x->item[x->n++];
		s->length = folders->length[x->n - 1];
		const char *folder = length_folder(a, dir, s->length);
		if (!folder)
			return diag_nomem(d);
		TRY(load_beside(a, folder, x->longest, &s->l, d));
	}
	x->item[x->n++].length = folders->longest;
	return ST_OK;
}

enum status lengths_open(struct arena *a, const char *dir, const char *text,
	const struct loaded *longest, struct feed *feed, struct feed *held_out, struct lengths *out,
	struct diag *d)
{
	struct length_folders folders;
	int resident = -1;
	int64_t token = 0;
	const struct where w = {.file = dir};
	*out = (struct lengths){.longest = longest};
	TRY(length_folders_read(a, dir, &folders, d));
	if (text && !folders.n)
		return diag_fail(d, ST_USAGE, &w, "compile with --dim NAME=64,128,256",
			"--pad: was compiled for one length");
	if (!folders.n)
		return ST_OK;
	if (!text) {
		diag_note(d, &w, "--pad TOKEN says with what the ends of samples are filled",
			"every step takes the longest '%s'", folders.dim);
		return ST_OK;
	}
	TRY(open_steps(a, dir, &folders, out, d));
	TRY(parse_pad(a, out, text, &resident, &token, d));
	const struct stint_tensor *t = &longest->model->resident[resident];
	for (int i = 0; i < out->n - 1; i++)
		out->item[i].holds = input_of(&out->item[i].l, t)->dim[1];
	out->item[out->n - 1].holds = t->dim[1];
	pad(feed, resident, token);
	pad(held_out, resident, token);
	return ST_OK;
}

/* --- A batch --- */

/* The first elements of each axis of `from`, as many as `to` has; both begin at axis k. */
static void crop(unsigned char *to, const struct stint_tensor *t, const unsigned char *from,
	const struct stint_tensor *f, int k, size_t to_bytes, size_t from_bytes)
{
	if (k == t->rank || to_bytes == from_bytes) {
		memcpy(to, from, to_bytes);
		return;
	}
	const size_t part = to_bytes / (size_t)t->dim[k], whole = from_bytes / (size_t)f->dim[k];
	for (int64_t i = 0; i < t->dim[k]; i++)
		crop(to + (size_t)i * part, t, from + (size_t)i * whole, f, k + 1, part, whole);
}

static enum status set_inputs(const struct lengths *x, const struct loaded *l, struct diag *d)
{
	for (int i = 0; i < l->model->nresident; i++) {
		const struct stint_tensor *t = &l->model->resident[i];
		const int from = t->kind == STINT_INPUT ? load_find(x->longest, t->name, t->kind)
							: -1;
		if (from < 0)
			continue;
		void *to = load_at(l, i);
		const void *all = load_at(x->longest, from);
		const struct stint_tensor *f = &x->longest->model->resident[from];
		if (!to || !all)
			return diag_nomem(d);
		if (to != all)
			crop(to, t, all, f, 0, t->bytes, f->bytes);
		TRY(load_send(l, i, d));
	}
	return ST_OK;
}

/* The shortest that holds what `f` has fed last. */
static struct length_step *step_for(const struct lengths *x, const struct feed *f)
{
	struct length_step *s = x->item;
	while (s->holds < f->tally->longest)
		s++;
	return s;
}

static enum status take(
	const struct lengths *x, struct length_step *s, const struct loaded **step, struct diag *d)
{
	*step = x->longest;
	if (s == &x->item[x->n - 1])
		return ST_OK;
	*step = &s->l;
	return set_inputs(x, &s->l, d);
}

enum status lengths_take(
	struct lengths *x, const struct feed *f, const struct loaded **step, struct diag *d)
{
	*step = x->longest;
	if (!x->n)
		return ST_OK;
	struct length_step *s = step_for(x, f);
	s->runs++;
	return take(x, s, step, d);
}

static bool same_shape(int rank, const int64_t *dim, int other_rank, const int64_t *other)
{
	return rank == other_rank && !memcmp(dim, other, (size_t)rank * sizeof *dim);
}

/* All lengths' outputs and losses are the model's, in its order. */
static bool scored_alike(const struct lengths *x, const struct stint_model *m, const int *output)
{
	const struct stint_model *longest = x->longest->model;
	for (int k = 0; k < m->nloss; k++) {
		if (m->loss[k].target < 0)
			continue;
		const struct stint_tensor *t = &m->resident[m->loss[k].target];
		const struct stint_tensor *of = &longest->resident[longest->loss[k].target];
		if (!same_shape(t->rank, t->dim, of->rank, of->dim))
			return false;
		const int o = output[k];
		if (o >= 0 && !same_shape(m->output[o].rank, m->output[o].dim,
				      longest->output[o].rank, longest->output[o].dim))
			return false;
	}
	return true;
}

enum status lengths_evaluate(const struct lengths *x, const struct feed *f, const int *output,
	const struct loaded **step, struct diag *d)
{
	*step = x->longest;
	if (!x->n || load_target(x->longest->model, 0) < 0)
		return ST_OK;
	struct length_step *s = step_for(x, f);
	const bool alike = s == &x->item[x->n - 1] || scored_alike(x, s->l.model, output);
	return alike ? take(x, s, step, d) : ST_OK;
}

/* --- Told --- */

void lengths_print(const struct lengths *x)
{
	if (!x->n)
		return;
	printf("steps by ");
	safe_put(stdout, x->dim);
	for (int i = 0; i < x->n; i++)
		printf("%s %" PRId64 ": %" PRId64, i ? "," : "", x->item[i].length,
			x->item[i].runs);
	printf("\n");
}

void lengths_json(const struct lengths *x)
{
	if (!x->n)
		return;
	printf(",\"steps_by_length\":{");
	for (int i = 0; i < x->n; i++)
		printf("%s\"%" PRId64 "\":%" PRId64, i ? "," : "", x->item[i].length,
			x->item[i].runs);
	printf("}");
}

void lengths_close(struct lengths *x)
{
	for (int i = 0; i < x->n; i++)
		load_close(&x->item[i].l); /* the longest one's is empty */
	x->n = 0;
}
