/* stint bench DIR --steps N --json --html FILE --costs-out FILE, bench --compare A B: time compiled
 * steps on made-up data. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/safe_put.h"
#include "cli/args.h"
#include "cli/bench.h"
#include "cli/busy.h"
#include "cli/calibration.h"
#include "cli/cli.h"
#include "cli/disk_rate.h"
#include "cli/machine.h"
#include "cli/memory.h"
#include "cli/progress.h"
#include "cli/ranks.h"

/* Inputs in a fixed pattern: reals in [0, 1), integers 0 and 1 (valid as labels and indices). */
static enum status fill_inputs(const struct loaded *l, struct diag *d)
{
	uint32_t x = 1;
	for (int i = 0; i < l->model->nresident; i++) {
		const struct stint_tensor *t = &l->model->resident[i];
		if (t->kind != STINT_INPUT)
			continue;
		void *p = load_at(l, i);
		if (!p)
			return load_lost(l, t->name, d);
		size_t n = t->bytes / (t->dtype == STINT_F32 ? 4 : t->dtype == STINT_BOOL ? 1 : 8);
		for (size_t k = 0; k < n; k++) {
			x = x * 1664525u + 1013904223u;
			if (t->dtype == STINT_F32)
				((float *)p)[k] = (float)(x >> 8) / 16777216.0f;
			else if (t->dtype == STINT_F64)
				((double *)p)[k] = (double)(x >> 8) / 16777216.0;
			else if (t->dtype == STINT_I64)
				((int64_t *)p)[k] = x >> 31;
			else
				((unsigned char *)p)[k] = (unsigned char)(x >> 31);
		}
		TRY(load_send(l, i, d));
	}
	return ST_OK;
}

static enum status write_costs(const struct bench *b, const char *path, struct diag *d)
{
	struct costs c = {.name = path, .threads = b->l.model->threads};
	if (load_on_gpu(&b->l))
		c.cpu = b->roof.device;
	else
		TRY(machine_describe(b->arena, b->l.model->nlib > 0, &c, d));
	TRY(timing_costs(b->arena, &b->t, &c, d));
	struct text t = {0};
	costs_print(&c, &t);
	enum status st = text_save(&t, path, d);
	text_free(&t);
	return st;
}

struct wishes {
	int steps, json, compare, disk;
	long long ranks;
	char *costs_out, *html, *against;
};

enum status bench_open(struct bench *b, struct diag *d)
{
	TRY(load_open(b->arena, b->dir, NULL, &b->l, d));
	return fill_inputs(&b->l, d);
}

static enum status measure_memory(struct bench *b, struct diag *d)
{
	const struct loaded *l = &b->l;
	if (load_on_gpu(l))
		return bench_device_memory(b, d);
	b->memory.outside = memory_resident() - (int64_t)l->model->arena_bytes;
	b->memory.arena_resident = memory_resident_of(l->step->arena, l->model->arena_bytes);
	b->memory.peak = memory_peak();
	b->memory.grown = b->t.grown;
	return ST_OK;
}

/* Memory before the machine is measured, which takes some; ops alone at the end, since the arena's
 * values are spoilt then. */
enum status bench_measure(struct bench *b, int steps, struct diag *d)
{
	const struct loaded *l = &b->l;
	bool *wanted;
	struct busy busy;
	busy_begin(&busy);
	TRY(timing_make(b->arena, &l, 1, steps, &b->t, d));
	b->others = busy_others(&busy);
	TRY(measure_memory(b, d));
	TRY(timing_plan(b->arena, b->dir, &b->t, d));
	b->calibrated_us = -1;
	/* may call the library, even where none of its nodes does */
	const char *library = arena_printf(b->arena, "%s/stint_rt_library.c", b->dir);
	if (!library)
		return diag_nomem(d);
	if (b->t.plan && access(library, R_OK) == 0)
		TRY(calibration_us(b->arena, b->t.problem, b->t.plan, l->model->threads,
			&b->calibrated_us, d));
	TRY(bench_wanted(b, &wanted, d));
	TRY(timing_alone(b->arena, &b->t, wanted, d));
	TRY(bench_kernels(b, d));
	progress_say("measuring the machine");
	const enum status st = load_on_gpu(l)
				       ? roof_device(l, &b->roof, d)
				       : roof_measure(l->model->threads,
						 l->model->loss_dtype == STINT_F64, &b->roof, d);
	progress_clear();
	TRY(st);
	bench_roof(b);
	return ST_OK;
}

static enum status bench(struct bench *b, const struct wishes *w, struct diag *d)
{
	TRY(bench_open(b, d));
	TRY(bench_measure(b, w->steps, d));
	if (w->costs_out)
		TRY(write_costs(b, w->costs_out, d));
	if (w->html)
		TRY(bench_html(b, w->html, d));
	if (w->json)
		bench_json(b);
	else if (!w->html)
		TRY(bench_table(b, d));
	return ST_OK;
}

static enum status check(const struct wishes *w, const struct args *args, struct diag *d)
{
	if (w->steps < 1 || w->steps > 1000000)
		return diag_fail(d, ST_USAGE, NULL, NULL, "--steps wants 1 to 1000000");
	if (w->compare && args->n != 2)
		return diag_fail(d, ST_USAGE, NULL, NULL, "--compare wants two folders");
	if (!w->compare && args->n != 1)
		return diag_fail(d, ST_USAGE, NULL, "`--compare A B` takes two",
			"one folder is timed at a time");
	if (w->against && strcmp(w->against, "torch") != 0 &&
		strcmp(w->against, "torch-channels-last") != 0 &&
		strcmp(w->against, "torch-compile") != 0)
		return diag_fail(d, ST_USAGE, NULL, NULL,
			"--against wants torch, torch-channels-last or torch-compile, not '%s'",
			w->against);
	if (w->ranks < 0 || w->ranks == 1 || w->ranks > 1 << 20)
		return diag_fail(d, ST_USAGE, NULL, NULL, "--ranks wants 2 or more");
	if (w->disk && (w->compare || w->against || w->costs_out || w->html || w->ranks))
		return diag_fail(d, ST_USAGE, NULL, NULL,
			"--disk measures a disk, and no step: only --json goes with it");
	if (w->ranks && (w->compare || w->against || w->costs_out || w->html))
		return diag_fail(d, ST_USAGE, NULL, NULL,
			"--ranks measures what is between processes, and no step: only --json goes "
			"with it");
	if (w->compare && w->against)
		return diag_fail(d, ST_USAGE, NULL, NULL, "--against does not go with --compare");
	if ((w->compare || w->against) && (w->costs_out || w->html))
		return diag_fail(d, ST_USAGE, NULL, NULL, "--%s does not go with --%s",
			w->html ? "html" : "costs-out", w->compare ? "compare" : "against");
	return ST_OK;
}

/* --ranks: what is between processes, as `plan --link` takes it. */
static enum status between_ranks(struct ranks *r, bool json, struct diag *d)
{
	double link[3]; /* as struct ranks_link has them */
	if (r->n == 1)
		return diag_fail(d, ST_USAGE, NULL, NULL, "one rank has nobody to talk to");
	TRY(ranks_measure(r, link, d));
	if (r->rank)
		return ST_OK;
	if (json)
		printf("{\"ranks\":%d,\"link_bytes_us\":%.6g,\"latency_us\":%.6g,\"message_us\":%."
		       "6g}"
		       "\n",
			r->n, link[0], link[1], link[2]);
	else
		printf("%d ranks: --link %.4gGB/s,%.4gus,%.4gus\n", r->n, link[0] / 1e3, link[1],
			link[2]);
	return ST_OK;
}

static enum status bench_ranks(
	struct arena *a, const char *dir, const struct wishes *w, struct diag *d)
{
	bool asked;
	struct ranks r;
	const struct loaded none = {0};
	TRY(ranks_asked(&asked, d));
	if (!asked && !ranks_started())
		return ranks_launch(a, w->ranks, true, 0, d);
	TRY(ranks_start(a, dir, &r, d));
	const enum status st = between_ranks(&r, w->json, d);
	ranks_end(&r, &none, st, d);
	return st;
}

/* --disk: what a folder's disk gives and takes, as `--offload` takes it. */
static enum status bench_disk(const char *folder, bool json, struct diag *d)
{
	struct disk_rate r;
	TRY(disk_rate_measure(folder, &r, d));
	const double reads = r.reads < 1e6 ? 1e6 : r.reads,
		     writes = r.writes < 1e6 ? 1e6 : r.writes;
	if (json)
		printf("{\"read_bytes_s\":%.6g,\"write_bytes_s\":%.6g}\n", r.reads, r.writes);
	else {
		printf("%.4g MB/s read, %.4g MB/s written: --offload disk:", r.reads / 1e6,
			r.writes / 1e6);
		safe_put(stdout, folder);
		printf(":%.0fMB/%.0fMB\n", reads / 1e6, writes / 1e6);
	}
	return ST_OK;
}

enum status cmd_bench(int argc, const char **argv, struct diag *d)
{
	struct wishes w = {.steps = 20};
	struct poptOption table[] = {
		{"steps", 0, POPT_ARG_INT, &w.steps, 0, "steps to time (default 20)", "N"},
		{"compare", 0, POPT_ARG_NONE, &w.compare, 0,
			"time two folders in turn: --compare A B", NULL},
		{"against", 0, POPT_ARG_STRING, &w.against, 0,
			"time PyTorch's step in turn with ours: torch, torch-channels-last, "
			"torch-compile",
			"NAME"},
		{"costs-out", 0, POPT_ARG_STRING, &w.costs_out, 0,
			"write each kernel's time, for `--costs`", "FILE"},
		{"html", 0, POPT_ARG_STRING, &w.html, 0,
			"write a page with the kernels under the roofline", "FILE"},
		{"ranks", 0, POPT_ARG_LONGLONG, &w.ranks, 0,
			"measure messages between so many processes, for `plan --link`", "N"},
		{"disk", 0, POPT_ARG_NONE, &w.disk, 0,
			"measure the disk of a folder, for `--offload`: --disk FOLDER", NULL},
		{"json", 0, POPT_ARG_NONE, &w.json, 0, "print JSON", NULL}, POPT_TABLEEND};
	struct args args;
	struct arena *a = arena_new();
	if (!a)
		return diag_nomem(d);
	enum status st = args_parse(a, argc, argv, table, "DIR [OPTIONS]", 1, 2, NULL, &args, d);
	if (st == ST_OK && !args.help)
		st = check(&w, &args, d);
	if (st == ST_OK && !args.help) {
		struct bench b[2] = {{.arena = a, .dir = args.positional[0]},
			{.arena = a, .dir = args.positional[1]}};
		st = w.disk      ? bench_disk(b[0].dir, w.json, d)
		     : w.ranks   ? bench_ranks(a, b[0].dir, &w, d)
		     : w.compare ? bench_compare(b, w.steps, w.json, d)
		     : w.against ? bench_torch(b, w.against, w.steps, w.json, d)
				 : bench(&b[0], &w, d);
		load_close(&b[1].l);
		load_close(&b[0].l);
	}
	free(w.costs_out);
	free(w.html);
	free(w.against);
	arena_free(a);
	return st;
}
