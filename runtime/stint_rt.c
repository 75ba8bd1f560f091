/* SPDX-License-Identifier: MIT-0 */
/* The runtime core: what is the same wherever the arena is. See stint_rt.h. */
#include "stint_rt.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "safetensors.h"
#include "stint_links.h"
#include "stint_mix.h"
#include "stint_schedule.h"

int stint_rt_fail(stint_step *s, int rc, const char *what, const char *name)
{
	snprintf(s->message, sizeof s->message, what, name);
	return rc;
}

int stint_rt_no_memory(stint_step *s)
{
	return stint_rt_fail(s, STINT_NO_MEMORY, "%s", "out of memory");
}

/* --- Init and free --- */

static int setup(stint_step *s, void *arena, size_t arena_bytes)
{
	const struct stint_model *m = s->model;
	if (m->version != STINT_RT_VERSION)
		return stint_rt_fail(s, STINT_BAD_MACHINE,
			"the step '%s' was generated for another runtime", m->name);
	if (m->machine_check) {
		int rc = m->machine_check(s);
		if (rc)
			return rc;
	}
	if (m->beside && !s->longest)
		return stint_rt_fail(s, STINT_BAD_DATA,
			"the step '%s' runs in the arena of the one for the longest inputs",
			m->name);
	if (arena && arena_bytes < m->arena_bytes)
		return stint_rt_fail(
			s, STINT_BAD_DATA, "the arena handed in is too small for '%s'", m->name);
	if (arena && (uintptr_t)arena % m->alignment)
		return stint_rt_fail(s, STINT_BAD_DATA,
			"the arena handed in is not aligned as '%s' wants it", m->name);
	return s->device->open(s, arena);
}

static stint_step *step_new(const struct stint_model *model)
{
	stint_step *s = calloc(1, sizeof *s);
	if (!s)
		return NULL;
	s->model = model;
#ifdef STINT_WITH_GPU
	s->device = &stint_rt_gpu;
#else
	s->device = &stint_rt_cpu;
#endif
	s->loss = NAN;
	return s;
}

int stint_init(stint_step **out, const struct stint_model *model, void *arena, size_t arena_bytes)
{
	*out = step_new(model);
	return *out ? setup(*out, arena, arena_bytes) : STINT_NO_MEMORY;
}

void stint_free(stint_step *s)
{
	if (!s)
		return;
	s->device->free(s);
	free(s->own);
	free(s);
}

/* --- Residents --- */

int stint_find(const stint_step *s, const char *name)
{
	for (int i = 0; i < s->model->nresident; i++)
		if (!strcmp(s->model->resident[i].name, name))
			return i;
	return -1;
}

void *stint_at(stint_step *s, const char *name)
{
	int i = stint_find(s, name);
	return i < 0 ? NULL : s->device->at(s, s->model->resident[i].offset);
}

static int inside(const stint_step *s, size_t offset, size_t bytes)
{
	const struct stint_model *m = s->model;
	const size_t all = m->arena_bytes + m->disk_bytes;
	return bytes <= all && offset <= all - bytes;
}

int stint_write(stint_step *s, size_t offset, const void *data, size_t bytes)
{
	if (!inside(s, offset, bytes))
		return stint_rt_fail(s, STINT_BAD_DATA, "%s", "outside of the arena");
	return s->device->put(s, offset, data, bytes);
}

int stint_read(const stint_step *s, size_t offset, void *data, size_t bytes)
{
	if (!inside(s, offset, bytes))
		return STINT_BAD_DATA;
	return s->device->get(s, offset, data, bytes);
}

int stint_set(stint_step *s, const char *name, const void *data, size_t bytes)
{
	int i = stint_find(s, name);
	if (i < 0)
		return stint_rt_fail(s, STINT_BAD_DATA, "the model has no tensor '%.100s'", name);
	if (s->model->resident[i].bytes != bytes)
		return stint_rt_fail(s, STINT_BAD_DATA, "'%.100s' has another size", name);
	return stint_write(s, s->model->resident[i].offset, data, bytes);
}

int stint_get(const stint_step *s, const char *name, void *data, size_t bytes)
{
	int i = stint_find(s, name);
	if (i < 0 || s->model->resident[i].bytes != bytes)
		return STINT_BAD_DATA;
	return stint_read(s, s->model->resident[i].offset, data, bytes);
}

static int is_weight(const struct stint_tensor *t)
{
	return t->kind == STINT_PARAMETER || t->kind == STINT_CONSTANT;
}

int stint_shares_parameters(const struct stint_model *m)
{
	for (int i = 0; i < m->npiece; i++)
		if (is_weight(&m->resident[m->piece[i].resident]))
			return 1;
	return 0;
}

struct stint_filed stint_filed_by(const stint_step *s, int resident, int rank)
{
	const struct stint_model *m = s->model;
	const struct stint_tensor *t = &m->resident[resident];
	const size_t size = (size_t)safetensors_width(t->dtype);
	const struct stint_piece *p = m->piece, *end = m->piece + m->npiece;
	while (p != end && p->resident != resident)
		p++;
	if (p == end)
		return (struct stint_filed){t->rank, t->dim, t->bytes, 0, t->bytes, 0};
	int64_t n = 1;
	for (int k = 0; k < p->rank; k++)
		n *= p->dim[k];
	struct stint_filed f = {p->rank, p->dim, (size_t)n * size, 0, 0, 1};
	if (rank >= 0) {
		f.from = (size_t)stint_tree_first(n, m->ranks, rank) * size;
		f.here = (size_t)stint_tree_first(n, m->ranks, rank + 1) * size - f.from;
	}
	return f;
}

struct stint_filed stint_filed(const stint_step *s, int resident)
{
	return stint_filed_by(s, resident, s->ranks ? s->ranks->rank : -1);
}

/* --- Several lengths --- */

/* The one of `longest` that has t's name and place; NULL: none has. */
static const struct stint_tensor *shared(const stint_step *longest, const struct stint_tensor *t)
{
	const int i = stint_find(longest, t->name);
	const struct stint_tensor *x = i < 0 ? NULL : &longest->model->resident[i];
	return x && x->kind == t->kind && x->offset == t->offset && x->bytes == t->bytes ? x : NULL;
}

/* A constant that the longest one has not: others compute where it lies. */
static int is_own(const stint_step *s, const struct stint_tensor *t)
{
	return s->longest && t->kind == STINT_CONSTANT && !shared(s->longest, t);
}

static int check_beside(stint_step *s)
{
	const struct stint_model *m = s->model, *of = s->longest->model;
	int fits = m->beside && m->arena_bytes <= of->arena_bytes &&
		   m->alignment <= of->alignment && !of->gpu && !of->disk && !s->longest->ranks;
	for (int i = 0; i < m->nresident && fits; i++) {
		const int kind = m->resident[i].kind;
		fits = kind == STINT_INPUT || kind == STINT_CONSTANT || kind == STINT_ELSEWHERE ||
		       shared(s->longest, &m->resident[i]);
	}
	return fits ? STINT_OK
		    : stint_rt_fail(s, STINT_BAD_DATA,
			      "'%s' was not compiled together with the step that it is to run "
			      "beside",
			      m->name);
}

static int make_own(stint_step *s)
{
	size_t bytes = 0;
	for (int i = 0; i < s->model->nresident; i++)
		bytes += is_own(s, &s->model->resident[i]) ? s->model->resident[i].bytes : 0;
	s->own = calloc(bytes + 1, 1);
	return s->own ? STINT_OK : stint_rt_no_memory(s);
}

int stint_init_beside(stint_step **out, const struct stint_model *model, stint_step *longest)
{
	stint_step *s = *out = step_new(model);
	if (!s)
		return STINT_NO_MEMORY;
	s->longest = longest;
	int rc = check_beside(s);
	if (!rc)
		rc = make_own(s);
	return rc ? rc : setup(s, longest->arena, longest->model->arena_bytes);
}

/* Between the arena and what is kept of it. */
static void move_own(stint_step *s, int put)
{
	unsigned char *at = s->own;
	for (int i = 0; i < s->model->nresident; i++) {
		const struct stint_tensor *t = &s->model->resident[i];
		if (!is_own(s, t))
			continue;
		memcpy(put ? s->arena + t->offset : at, put ? at : s->arena + t->offset, t->bytes);
		at += t->bytes;
	}
}

/* The arena is this step's now. */
static void take_turn(stint_step *s)
{
	stint_step *owner = s->longest ? s->longest : s;
	if (s->longest && owner->ran != s)
		move_own(s, 1);
	owner->ran = s;
}

/* Who counts the steps of all lengths. */
static stint_step *counter(stint_step *s)
{
	return s->longest ? s->longest : s;
}

/* --- Files --- */

/* Whether resident t is what a file holds; the rest is set before each step, or another step's. */
static int stored(const stint_step *s, const struct stint_tensor *t)
{
	return t->kind != STINT_INPUT && t->kind != STINT_CONTROL && t->kind != STINT_SUMS &&
	       t->kind != STINT_ELSEWHERE && (!s->longest || is_own(s, t));
}

/* What says that a tensor lies in another file; NULL. */
static const char *link_of(
	const stint_step *s, const struct safetensors *f, const struct stint_tensor *t)
{
	char key[sizeof STINT_LINK + 100];
	snprintf(key, sizeof key, STINT_LINK "%.99s", t->name);
	return stored(s, t) ? safetensors_note(f, key) : NULL;
}

/* Checks all tensors before the first is replaced: a file that does not fit changes nothing. */
static int check_file(stint_step *s, const struct safetensors *f, const char *path)
{
	int found = 0, wanted = 0;
	for (int i = 0; i < s->model->nresident; i++) {
		const struct stint_tensor *t = &s->model->resident[i];
		const struct safetensors_entry *e = stored(s, t) ? safetensors_find(f, t->name)
								 : NULL;
		wanted += stored(s, t);
		const struct stint_filed filed = stint_filed(s, i);
		if (e && (e->dtype != t->dtype || e->bytes != filed.bytes))
			return stint_rt_fail(s, STINT_BAD_FILE,
				"'%.100s' has another type or shape in the weights file", t->name);
		if (e && filed.piece && !s->ranks)
			return stint_rt_fail(s, STINT_BAD_DATA,
				"'%.100s' is shared by processes: call stint_init_ranks first",
				t->name);
		found += e || link_of(s, f, t);
	}
	if (wanted && !found)
		return stint_rt_fail(
			s, STINT_BAD_FILE, "%.150s holds no tensor of this model", path);
	return STINT_OK;
}

int stint_read_shared(
	stint_step *s, int resident, const struct safetensors *f, const struct safetensors_entry *e)
{
	enum { PART = 1 << 16 };
	unsigned char part[PART];
	int rc = 0;
	if (!is_weight(&s->model->resident[resident]) || !stint_filed(s, resident).piece)
		return 0;
	for (size_t at = 0; at < e->bytes && !rc; at += PART) {
		const size_t n = e->bytes - at < PART ? e->bytes - at : PART;
		rc = safetensors_read(f, e, at, n, part);
		if (!rc)
			s->shared = stint_mix(s->shared, part, n);
	}
	return rc;
}

/* Into the arena, by parts: a device's go through memory of the host's. What a step reads from a
 * file it may as well read from this one. */
static int read_entry(stint_step *s, struct safetensors *f, const struct safetensors_entry *e,
	int resident, const char *path)
{
	enum { PART = 16 << 20 };
	const struct stint_filed filed = stint_filed(s, resident);
	const size_t offset = s->model->resident[resident].offset;
	int rc = stint_read_shared(s, resident, f, e)
			 ? stint_rt_fail(s, STINT_BAD_FILE, "cannot read %.150s", path)
			 : 0;
	if (stint_rt_lendable(s->model, &s->model->resident[resident])) {
		uint64_t from;
		const int fd = safetensors_place(f, e, &from);
		return s->model->disk->lend(s, resident, fd, from);
	}
	for (size_t at = 0; at < filed.here && !rc; at += PART) {
		const size_t n = filed.here - at < PART ? filed.here - at : PART;
		void *part = s->device->hold(s, offset + at, n, 0);
		if (!part)
			return stint_rt_no_memory(s);
		rc = safetensors_read(f, e, filed.from + at, n, part)
			     ? stint_rt_fail(s, STINT_BAD_FILE, "cannot read %.150s", path)
			     : stint_write(s, offset + at, part, n);
		s->device->let(s, part);
	}
	return rc;
}

/* The same of a linked one. Its sum is known behind its last byte: where it is another, the step is
 * of no use. */
static int read_link(stint_step *s, const char *note, int resident)
{
	enum { PART = 16 << 20 };
	const struct stint_tensor *t = &s->model->resident[resident];
	const int lent = stint_rt_lendable(s->model, t);
	struct stint_link l;
	struct stint_sha sum;
	if (stint_link_parse(note, &l) || l.bytes != t->bytes)
		return stint_rt_fail(
			s, STINT_BAD_FILE, "the link of '%.100s' does not fit", t->name);
	const int fd = stint_link_open(&l, s->message);
	int rc = fd < 0 ? STINT_BAD_FILE : 0;
	stint_sha_start(&sum);
	for (size_t at = 0; at < l.bytes && !rc; at += PART) {
		const size_t n = l.bytes - at < PART ? l.bytes - at : PART;
		void *part = s->device->hold(s, t->offset + at, n, 0);
		if (!part)
			rc = stint_rt_no_memory(s);
		else if (safetensors_read_at(fd, part, n, l.offset + at))
			rc = stint_rt_fail(s, STINT_BAD_FILE, "cannot read %.150s", l.path);
		else if (!lent)
			rc = stint_write(s, t->offset + at, part, n);
		if (!rc)
			stint_sha_add(&sum, part, n);
		if (part)
			s->device->let(s, part);
	}
	if (!rc && stint_link_check(&l, &sum, s->message))
		rc = STINT_BAD_FILE;
	if (!rc && lent)
		rc = s->model->disk->lend(s, resident, fd, l.offset);
	if (fd >= 0)
		close(fd);
	return rc;
}

int stint_load(stint_step *s, const char *path)
{
	struct safetensors *f;
	if (safetensors_open_header(&f, path, s->message))
		return STINT_BAD_FILE;
	int rc = check_file(s, f, path);
	for (int i = 0; i < s->model->nresident && !rc; i++) {
		const struct stint_tensor *t = &s->model->resident[i];
		const struct safetensors_entry *e = stored(s, t) ? safetensors_find(f, t->name)
								 : NULL;
		const char *link = e ? NULL : link_of(s, f, t);
		if (e)
			rc = read_entry(s, f, e, i, path);
		else if (link)
			rc = read_link(s, link, i);
	}
	safetensors_close(f);
	if (!rc && s->longest) {
		move_own(s, 0);
		s->longest->ran = s;
	}
	return rc;
}

/* --- Steps --- */

void stint_seed(stint_step *s, int64_t seed)
{
	counter(s)->seed = seed;
}

int64_t stint_batch_rows(const struct stint_model *m)
{
	for (int i = 0; i < m->nresident; i++)
		if (m->resident[i].kind == STINT_INPUT && m->resident[i].rank > 0)
			return m->resident[i].dim[0];
	return 0;
}

int64_t stint_rows_left(const struct stint_model *m, int64_t valid, int64_t k)
{
	const int64_t before = m->shards > 1 ? stint_batch_rows(m) / m->shards * k : 0;
	return valid == INT64_MAX ? valid : valid > before ? valid - before : 0;
}

void stint_own_shards(const stint_step *s, int train, int64_t *begin, int64_t *end)
{
	const struct stint_ranks *r = s->ranks;
	const int64_t shards = train && s->model->shards > 1 ? s->model->shards : 1;
	*begin = r && train ? stint_tree_first(shards, r->n, r->rank) : 0;
	*end = r && train ? stint_tree_first(shards, r->n, r->rank + 1) : shards;
}

int stint_run_shard(
	stint_step *s, int train, int64_t valid, double lr, const struct stint_probe *probe)
{
	const struct stint_model *m = s->model;
	const struct stint_ranks *r = s->ranks;
	const stint_step *c = counter(s);
	const int64_t shards = train && m->shards > 1 ? m->shards : 1, k = s->shard;
	int64_t begin, end;
	stint_own_shards(s, train, &begin, &end);
	s->last = k == end - 1;
	const int64_t control[STINT_CONTROLS] = {c->seed, c->count, stint_rows_left(m, valid, k), 0,
		k, stint_tree_nodes(begin, k, NULL), stint_tree_joins(begin, k, shards), s->last,
		valid};
	int rc = s->device->start(s, train, control, lr, probe);
	if (!rc && !s->last)
		rc = s->device->finish(s, train);
	if (!rc && !s->last && r)
		rc = r->finish(s, 0); /* what it has fetched */
	return rc;
}

int stint_begin_step(stint_step *s)
{
	if (s->running)
		return stint_rt_fail(
			s, STINT_BAD_DATA, "a step of '%s' is running", s->model->name);
	s->loss = NAN; /* a step that fails has none */
	s->told = STINT_TOLD_NOTHING;
	take_turn(s);
	return STINT_OK;
}

static int start(
	stint_step *s, int train, int64_t valid, double lr, const struct stint_probe *probe)
{
	int64_t begin, end;
	int rc = stint_begin_step(s);
	if (rc)
		return rc;
	stint_own_shards(s, train, &begin, &end);
	for (int64_t k = begin; k < end && !rc; k++) {
		s->shard = k;
		rc = stint_run_shard(s, train, valid, lr, probe);
	}
	return s->ranks ? s->ranks->finish(s, rc) : rc;
}

/* Where there is none that has the rest. */
static int alone(stint_step *s)
{
	snprintf(s->message, sizeof s->message,
		"'%s' was compiled for %d processes, each with a share of it: mpirun -n %d, and "
		"stint_init_ranks",
		s->model->name, s->model->ranks, s->model->ranks);
	return STINT_BAD_DATA;
}

static int train_start(stint_step *s, double lr, const struct stint_probe *probe)
{
	if (!s->model->train)
		return stint_rt_fail(s, STINT_BAD_DATA,
			"'%s' was compiled with --loss none: it has no training step",
			s->model->name);
	if (s->model->noutside)
		return stint_rt_fail(s, STINT_BAD_DATA,
			"the loss of '%s' is computed by who calls stint_forward and "
			"stint_backward",
			s->model->name);
	if (s->model->ranks > 1 && !s->ranks)
		return alone(s);
	int rc = start(s, 1, s->rows > 0 ? s->rows : INT64_MAX, lr, probe);
	s->kept = !(probe && probe->gradient);
	if (!rc)
		s->running = 1;
	s->rows = 0;
	return rc;
}

int stint_rows(stint_step *s, int64_t rows)
{
	const int64_t all = stint_batch_rows(s->model);
	if (s->pause.waits)
		return stint_rt_fail(s, STINT_BAD_DATA,
			"a forward pass of '%s' waits for stint_backward", s->model->name);
	if (rows < 1 || rows > all)
		return stint_rt_fail(
			s, STINT_BAD_DATA, "'%s' has no batch of so many rows", s->model->name);
	if (rows < all && s->model->whole_batch)
		return stint_rt_fail(s, STINT_BAD_DATA, "a step takes a whole batch: %.200s",
			s->model->whole_batch);
	s->rows = rows < all ? rows : 0;
	return STINT_OK;
}

int stint_train_start(stint_step *s, double lr)
{
	return train_start(s, lr, NULL);
}

int stint_train_finish(stint_step *s)
{
	if (!s->running)
		return stint_rt_fail(
			s, STINT_BAD_DATA, "no step of '%s' is running", s->model->name);
	s->running = 0;
	int rc = s->device->finish(s, 1);
	s->told = rc ? STINT_TOLD_NOTHING : STINT_TOLD_TRAINING;
	counter(s)->count += !rc;
	return rc;
}

int stint_train_probed(stint_step *s, double lr, const struct stint_probe *probe)
{
	int rc = train_start(s, lr, probe);
	return rc ? rc : stint_train_finish(s);
}

int stint_train(stint_step *s, double lr)
{
	return stint_train_probed(s, lr, NULL);
}

int stint_eval_probed(stint_step *s, int64_t valid, const struct stint_probe *probe)
{
	if (!s->ranks && stint_shares_parameters(s->model))
		return alone(s);
	int rc = start(s, 0, valid > 0 ? valid : INT64_MAX, 0, probe);
	if (!rc)
		rc = s->device->finish(s, 0);
	s->told = rc ? STINT_TOLD_NOTHING : STINT_TOLD_EVALUATION;
	return rc;
}

int stint_eval(stint_step *s, int64_t valid)
{
	return stint_eval_probed(s, valid, NULL);
}

const void *stint_gradient(const stint_step *s, const char *name)
{
	const struct stint_model *m = s->model;
	const int of = stint_find(s, name);
	int i = 0;
	while (i < m->nkept && m->kept[i].resident != of)
		i++;
	return i < m->nkept && s->kept && s->told == STINT_TOLD_TRAINING
		       ? s->device->at(s, m->kept[i].offset)
		       : NULL;
}

double stint_loss(const stint_step *s)
{
	return s->loss;
}

double stint_loss_part(const stint_step *s, int k)
{
	const struct stint_model *m = s->model;
	double wide = NAN;
	float single;
	if (k < 0 || k >= m->nloss || s->told == STINT_TOLD_NOTHING)
		return NAN;
	const size_t offset = s->told == STINT_TOLD_TRAINING ? m->loss[k].offset_train
							     : m->loss[k].offset_eval;
	if (m->loss_dtype == STINT_F64)
		return s->device->get(s, offset, &wide, sizeof wide) ? NAN : wide;
	return s->device->get(s, offset, &single, sizeof single) ? NAN : (double)single;
}

const char *stint_message(const stint_step *s)
{
	return s->message;
}

int stint_bad_call(stint_step *s, int step, int code, const struct stint_step_info *info)
{
	snprintf(s->message, sizeof s->message, "step %d (%.40s %.80s): the library returned %d",
		step + 1, info->op, info->node, code);
	return STINT_BAD_MACHINE;
}

int stint_bad_index(stint_step *s, int step, int64_t value, const struct stint_step_info *info)
{
	snprintf(s->message, sizeof s->message,
		"step %d, node '%.80s' (%.40s): index or label %lld is out of range", step + 1,
		info->node, info->op, (long long)value);
	return STINT_BAD_DATA;
}
