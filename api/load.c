#include "api/load.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/cross.h"
#include "api/links.h"
#include "api/weights.h"

/* POSIX promises that a function's address fits a void pointer; C does not, so copy the bits. */
static bool symbol(const struct loaded *l, const char *name, void *function)
{
	void *p = dlsym(l->handle, name);
	memcpy(function, &p, sizeof p);
	return p != NULL;
}

static bool symbols(struct loaded *l)
{
	return symbol(l, "stint_init", &l->init) &&
	       symbol(l, "stint_init_beside", &l->init_beside) &&
	       symbol(l, "stint_free", &l->free) && symbol(l, "stint_load", &l->load) &&
	       symbol(l, "stint_seed", &l->seed) && symbol(l, "stint_train_probed", &l->train) &&
	       symbol(l, "stint_train_start", &l->train_start) &&
	       symbol(l, "stint_train_finish", &l->train_finish) &&
	       symbol(l, "stint_forward", &l->forward) &&
	       symbol(l, "stint_backward", &l->backward) &&
	       symbol(l, "stint_outside_value", &l->outside_value) &&
	       symbol(l, "stint_outside_gradient", &l->outside_gradient) &&
	       symbol(l, "stint_outside_rows", &l->outside_rows) &&
	       symbol(l, "stint_gradient", &l->gradient) && symbol(l, "stint_rows", &l->rows) &&
	       symbol(l, "stint_eval_probed", &l->eval) && symbol(l, "stint_loss", &l->loss) &&
	       symbol(l, "stint_loss_part", &l->loss_part) &&
	       symbol(l, "stint_message", &l->message);
}

enum status load_folder(struct arena *a, const char *dir, struct diag *d)
{
	static const char how[] = "`stint compile MODEL.onnx ... -o DIR` makes one";
	const char *plan = arena_printf(a, "%s/plan.json", dir);
	const struct where w = {.file = dir};
	struct stat st;
	if (!plan)
		return diag_nomem(d);
	if (stat(dir, &st) != 0)
		return diag_fail(d, ST_IO, &w, how, "there is no such folder: %s", strerror(errno));
	if (!S_ISDIR(st.st_mode))
		return diag_fail(d, ST_USAGE, &w, how,
			"is a file, where the folder of a compiled step is wanted");
	if (access(plan, F_OK) != 0)
		return diag_fail(d, ST_USAGE, &w, how,
			"is no folder that stint compiled: it has no plan.json");
	return ST_OK;
}

/* Why `dir` has no step to load. */
static enum status not_loaded(struct arena *a, const char *dir, const char *step, struct diag *d)
{
	const char *reason = dlerror();
	TRY(load_folder(a, dir, d));
	if (access(step, F_OK) != 0)
		return diag_fail(d, ST_USAGE, &(struct where){.file = dir},
			arena_printf(a, "`make -C %s step.so` builds it", dir),
			"is not built: it has no step.so");
	return diag_fail(
		d, ST_IO, NULL, "compile it again", "cannot load the compiled step: %s", reason);
}

enum status load_model(struct arena *a, const char *dir, struct loaded *l, struct diag *d)
{
	const struct where w = {.file = dir};
	*l = (struct loaded){0};
	/* a path with a slash, so that the library search path is not used */
	char *path = arena_printf(a, "%s%s/step.so", dir[0] == '/' ? "" : "./", dir);
	if (!path)
		return diag_nomem(d);
	l->handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	const char *machine = l->handle ? NULL : cross_machine(path);
	if (machine)
		return diag_fail(d, ST_IO, &w,
			"build a program around it (docs/howto/train-on-arm.md), or compile it "
			"here "
			"without --cross",
			"step.so was compiled for %s: it cannot run here", machine);
	const char *bare = arena_printf(a, "%s/stint_bare.c", dir);
	if (!l->handle && bare && access(bare, F_OK) == 0)
		return diag_fail(d, ST_USAGE, &w, "compile it again without --bare",
			"was compiled for a microcontroller and does not run here");
	if (!l->handle)
		return not_loaded(a, dir, path, d);
	const struct stint_model *(*get)(void);
	if (!symbol(l, "stint_model_get", &get) || !symbols(l))
		return diag_fail(
			d, ST_INVALID, &w, "compile it again", "step.so is no compiled step");
	l->model = get();
	if (l->model->version != STINT_RT_VERSION)
		return diag_fail(d, ST_INVALID, &w, "compile it again",
			"step.so has format %d, this stint reads %d", l->model->version,
			(int)STINT_RT_VERSION);
	return ST_OK;
}

enum status load_fail(const struct loaded *l, int rc, const char *what, struct diag *d)
{
	enum status st = rc == STINT_NO_MEMORY  ? ST_INTERNAL
			 : rc == STINT_BAD_DATA ? ST_INVALID
			 : rc == STINT_LOST     ? ST_LOST
						: ST_IO;
	d->out_of_memory |= rc == STINT_NO_MEMORY;
	return diag_fail(d, st, &(struct where){.file = what}, NULL, "%s",
		l->step ? l->message(l->step) : "out of memory");
}

enum status load_step(struct arena *a, const char *dir, struct loaded *out, struct diag *d)
{
	TRY(load_model(a, dir, out, d));
	const int rc = out->code = out->init(&out->step, out->model, NULL, 0);
	return rc ? load_fail(out, rc, dir, d) : ST_OK;
}

/* Of a step that is set up. */
static enum status load_own(struct arena *a, const char *dir, struct loaded *out, struct diag *d)
{
	const size_t n = (size_t)out->model->nresident + (size_t)out->model->noutput + 1;
	out->held = calloc(n, sizeof *out->held);
	if (!out->held)
		return diag_nomem(d);
	char *own = arena_printf(a, "%s/weights.safetensors", dir);
	if (!own)
		return diag_nomem(d);
	struct linked_values none;
	TRY(links_read(a, own, false, &none, d)); /* each that is missing is told */
	const int rc = out->load(out->step, own);
	return rc ? load_fail(out, rc, own, d) : ST_OK;
}

enum status load_weights(
	struct arena *a, const char *dir, const struct weights *w, struct loaded *l, struct diag *d)
{
	TRY(load_own(a, dir, l, d));
	return w ? weights_load(a, l, w, d) : ST_OK;
}

enum status load_alone(const char *dir, const struct loaded *l, struct diag *d)
{
	return !stint_shares_parameters(l->model)
		       ? ST_OK
		       : diag_fail(d, ST_USAGE, &(struct where){.file = dir},
				 "train and eval have --ranks; for one process compile it without "
				 "--shard parameters: its checkpoints fit",
				 "was compiled for %d ranks, each with a piece of its parameters: "
				 "none can run it alone",
				 l->model->ranks);
}

enum status load_open(struct arena *a, const char *dir, const struct weights *w, struct loaded *out,
	struct diag *d)
{
	TRY(load_step(a, dir, out, d));
	TRY(load_alone(dir, out, d));
	return load_weights(a, dir, w, out, d);
}

enum status load_beside(struct arena *a, const char *dir, const struct loaded *longest,
	struct loaded *out, struct diag *d)
{
	TRY(load_model(a, dir, out, d));
	const int rc = out->init_beside(&out->step, out->model, longest->step);
	return rc ? load_fail(out, rc, dir, d) : load_own(a, dir, out, d);
}

void load_close(struct loaded *l)
{
	for (int i = 0; l->held && i < l->model->nresident + l->model->noutput; i++)
		if (l->held[i])
			l->step->device->let(l->step, l->held[i]);
	free(l->held);
	if (l->step)
		l->free(l->step);
	if (l->handle)
		dlclose(l->handle);
	*l = (struct loaded){0};
}

bool load_on_gpu(const struct loaded *l)
{
	return !l->step->device->at(l->step, 0);
}

/* Zeros at first, as the arena is. */
static void *hold(const struct loaded *l, int i, size_t offset, size_t bytes)
{
	if (!l->held[i])
		l->held[i] = l->step->device->hold(l->step, offset, bytes, 0);
	return l->held[i];
}

void *load_at(const struct loaded *l, int resident)
{
	const struct stint_tensor *t = &l->model->resident[resident];
	return hold(l, resident, t->offset, t->bytes);
}

enum status load_send(const struct loaded *l, int resident, struct diag *d)
{
	const struct stint_tensor *t = &l->model->resident[resident];
	const int rc = stint_write(l->step, t->offset, l->held[resident], t->bytes);
	return rc ? load_fail(l, rc, t->name, d) : ST_OK;
}

static const void *fetch(const struct loaded *l, int i, size_t offset, size_t bytes)
{
	void *p = hold(l, i, offset, bytes);
	return p && !stint_read(l->step, offset, p, bytes) ? p : NULL;
}

const void *load_values(const struct loaded *l, int resident)
{
	const struct stint_tensor *t = &l->model->resident[resident];
	return fetch(l, resident, t->offset, t->bytes);
}

const void *load_output(const struct loaded *l, int output)
{
	const struct stint_output *o = &l->model->output[output];
	return fetch(l, l->model->nresident + output, o->offset, o->bytes);
}

enum status load_lost(const struct loaded *l, const char *what, struct diag *d)
{
	return *l->message(l->step) ? load_fail(l, STINT_BAD_MACHINE, what, d) : diag_nomem(d);
}

int load_find(const struct loaded *l, const char *name, int kind)
{
	for (int i = 0; i < l->model->nresident; i++)
		if (l->model->resident[i].kind == kind && !strcmp(l->model->resident[i].name, name))
			return i;
	return -1;
}

/* --- Losses --- */

int load_target(const struct stint_model *m, int k)
{
	for (int i = 0; i < m->nloss; i++) {
		bool first = m->loss[i].target >= 0;
		for (int j = 0; j < i; j++)
			first &= m->loss[j].target != m->loss[i].target;
		if (first && k-- == 0)
			return m->loss[i].target;
	}
	return -1;
}

bool load_is_target(const struct stint_model *m, int resident)
{
	for (int i = 0; i < m->nloss; i++)
		if (m->loss[i].target == resident)
			return true;
	return false;
}

const struct stint_loss_option *load_loss_option(
	const struct stint_loss_term *loss, const char *name)
{
	for (const struct stint_loss_option *o = loss->option; o && o->name; o++)
		if (!strcmp(o->name, name))
			return o;
	return NULL;
}
