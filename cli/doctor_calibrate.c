/* `stint doctor --calibrate`: how long kernels take here, kept for the times that are told. */
#include <omp.h>
#include <string.h>

#include "cli/busy.h"
#include "cli/calibration.h"
#include "cli/doctor.h"

/* Small tensors that stay in the first caches, and some that do not. */
static const char *const batches[] = {"8", "64", "256"};
enum { STEPS = 30 };

/* Those of `more` that are not there yet. */
static enum status merge(
	struct arena *a, struct costs *all, const struct costs *more, struct diag *d)
{
	const char *twice;
	const struct costs before = *all;
	struct costs_kernel *kernel = ARENA_ARRAY(a, struct costs_kernel, all->n + more->n);
	if (!kernel)
		return diag_nomem(d);
	for (int i = 0; i < before.n; i++)
		kernel[i] = before.kernel[i];
	for (int i = 0; i < more->n; i++)
		if (!more->kernel[i].estimated && !costs_find(&before, more->kernel[i].key))
			kernel[all->n++] = more->kernel[i];
	all->kernel = kernel;
	costs_sort(all, &twice);
	return ST_OK;
}

static enum status measure(struct doctor *x, const char *dir, struct costs *all, struct diag *d)
{
	struct bench b = {.arena = x->arena, .dir = dir};
	struct costs some = {.threads = all->threads};
	enum status st = bench_open(&b, d);
	const struct loaded *l = &b.l;
	if (st == ST_OK)
		st = timing_make(x->arena, &l, 1, STEPS, &b.t, d);
	if (st == ST_OK)
		st = timing_plan(x->arena, dir, &b.t, d);
	if (st == ST_OK)
		st = timing_costs(x->arena, &b.t, &some, d);
	if (st == ST_OK)
		st = merge(x->arena, all, &some, d);
	load_close(&b.l);
	return st;
}

bool doctor_calibrate(struct doctor *x)
{
	static const double quiet = 0.2; /* processors */
	struct doctor_words words;
	struct diag d = doctor_hear(&words);
	struct costs all = {.name = "calibration", .threads = omp_get_max_threads()};
	struct busy busy;
	char how[160];
	enum status st = calibration_try(&d);
	const double from = doctor_ms();
	doctor_title(x, "Calibration");
	busy_begin(&busy);
	for (size_t i = 0; i < sizeof batches / sizeof *batches && st == ST_OK; i++) {
		struct doctor_step s = {.name = arena_printf(x->arena, "batch %s", batches[i]),
			.target = "c",
			.precision = "fp32",
			.batch = batches[i]};
		if (!s.name || !doctor_compile(x, &s))
			return false;
		st = measure(x, s.dir, &all, &d);
	}
	const double others = busy_others(&busy);
	if (st == ST_OK)
		st = calibration_keep(x->arena, &all, &d);
	if (st != ST_OK) {
		doctor_say(x, FINDING_WRONG, words.hint[0] ? words.hint : NULL,
			"not calibrated: %s", words.text);
		return false;
	}
	doctor_say(x, FINDING_OK, NULL,
		"%d kernels measured with %d threads, in %.1f s: `plan`, `compile`, `show` and "
		"`bench` tell this machine's times",
		all.n, all.threads, (doctor_ms() - from) / 1e3);
	if (others > quiet)
		doctor_say(x, FINDING_SLOW, "calibrate again when the machine is idle", "%s",
			busy_words(others, how));
	return true;
}
