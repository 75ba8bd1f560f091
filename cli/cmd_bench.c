/* stint bench DIR --steps N --json --costs-out FILE: time a compiled step on made-up data. */
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "cli/args.h"
#include "cli/cli.h"
#include "cli/machine.h"
#include "cli/safe.h"
#include "cli/timing.h"

struct bench {
	struct arena *arena;
	struct loaded l;
	struct timing t;
	int64_t outside;
	int nkernel;
	struct kernel *kernel;
};

struct kernel {
	const char *name, *op;
	int calls;
	double us, predicted_us;
};

/* Inputs in a fixed pattern: reals in [0, 1), integers 0 and 1 (valid as labels and indices). */
static void fill_inputs(const struct loaded *l)
{
	uint32_t x = 1;
	for (int i = 0; i < l->model->nresident; i++) {
		const struct stint_tensor *t = &l->model->resident[i];
		void *p = load_at(l, i);
		if (t->kind != STINT_INPUT)
			continue;
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
	}
}

/* Resident bytes of this process; -1 when the system does not say. */
static int64_t resident_bytes(void)
{
	FILE *f = fopen("/proc/self/statm", "r");
	long long total = 0, resident = -1;
	if (f && fscanf(f, "%lld %lld", &total, &resident) != 2)
		resident = -1;
	if (f)
		fclose(f);
	return resident < 0 ? -1 : resident * sysconf(_SC_PAGESIZE);
}

static int slowest_first(const void *x, const void *y)
{
	const struct kernel *a = x, *b = y;
	return a->us != b->us ? (a->us < b->us) - (a->us > b->us) : strcmp(a->name, b->name);
}

/* Sum the schedule's steps by kernel. */
static enum status by_kernel(struct bench *b, struct diag *d)
{
	const struct timing *t = &b->t;
	struct kernel *k = ARENA_ARRAY(b->arena, struct kernel, t->nop);
	if (!k)
		return diag_nomem(d);
	int n = 0;
	for (int s = 0; s < t->nop; s++) {
		int i = 0;
		while (i < n && strcmp(k[i].name, t->info[s].kernel) != 0)
			i++;
		if (i == n)
			k[n++] = (struct kernel){.name = t->info[s].kernel, .op = t->info[s].op};
		k[i].calls++;
		k[i].us += t->op_us[s];
		k[i].predicted_us += t->plan ? timing_predicted(t, s) : 0;
	}
	qsort(k, (size_t)n, sizeof *k, slowest_first);
	b->kernel = k;
	b->nkernel = n;
	return ST_OK;
}

/* --- Telling --- */

static void print_json(const struct bench *b)
{
	const struct stint_model *m = b->l.model;
	printf("{\"step_ms\":%.6g,\"steps\":%d,\"arena_bytes\":%zu,\"outside_bytes\":%" PRId64
	       ",\"threads\":%d,\"kernels_ms\":%.6g",
		b->t.step_us / 1e3, b->t.steps, m->arena_bytes, b->outside, m->threads,
		timing_ops_us(&b->t) / 1e3);
	if (b->t.plan)
		printf(",\"predicted_ms\":%.6g", b->t.plan->cost_total / 1e3);
	if (b->t.plan && b->t.problem->costs) {
		printf(",\"costs\":");
		safe_json(stdout, b->t.problem->costs);
	}
	printf(",\"kernels\":[");
	for (int i = 0; i < b->nkernel; i++) {
		const struct kernel *k = &b->kernel[i];
		printf("%s{\"kernel\":\"%s\",\"op\":\"%s\",\"calls\":%d,\"ms\":%.6g", i ? "," : "",
			k->name, k->op, k->calls, k->us / 1e3);
		if (b->t.plan)
			printf(",\"predicted_ms\":%.6g", k->predicted_us / 1e3);
		printf("}");
	}
	printf("]}\n");
}

static void print_heading(const struct bench *b)
{
	const struct stint_model *m = b->l.model;
	char x[24], y[24];
	printf("%s: %.4g ms a step (median of %d, %d thread%s); arena %s, outside %s\n", m->name,
		b->t.step_us / 1e3, b->t.steps, m->threads, m->threads == 1 ? "" : "s",
		bytes_human((int64_t)m->arena_bytes, x), bytes_human(b->outside, y));
	if (!b->t.plan)
		return;
	printf("predicted: %.4g ms", b->t.plan->cost_total / 1e3);
	if (b->t.problem->costs) {
		printf(", costs from: ");
		safe_put(stdout, b->t.problem->costs);
	}
	printf("\n");
}

static void print_table(const struct bench *b)
{
	double sum = timing_ops_us(&b->t);
	print_heading(b);
	printf("%-44s %6s %10s %7s%s\n", "kernel", "calls", "ms", "share",
		b->t.plan ? "  predicted" : "");
	for (int i = 0; i < b->nkernel; i++) {
		const struct kernel *k = &b->kernel[i];
		printf("%-44s %6d %10.4f %6.1f%%", k->name, k->calls, k->us / 1e3,
			sum > 0 ? 100 * k->us / sum : 0);
		if (b->t.plan)
			printf(" %10.4f", k->predicted_us / 1e3);
		printf("\n");
	}
	printf("%-44s %6d %10.4f %6.1f%%", "all", b->t.nop, sum / 1e3, 100.0);
	if (b->t.plan)
		printf(" %10.4f", b->t.plan->cost_total / 1e3);
	printf("\n");
}

static enum status write_costs(const struct bench *b, const char *path, struct diag *d)
{
	struct costs c = {.name = path, .threads = b->l.model->threads};
	TRY(machine_describe(b->arena, b->l.model->nlib > 0, &c, d));
	TRY(timing_costs(b->arena, &b->t, &c, d));
	struct text t = {0};
	costs_print(&c, &t);
	enum status st = text_save(&t, path, d);
	text_free(&t);
	return st;
}

struct wishes {
	int steps, json;
	char *costs_out;
};

static enum status bench(struct bench *b, const char *dir, const struct wishes *w, struct diag *d)
{
	if (w->steps < 1 || w->steps > 1000000)
		return diag_fail(d, ST_USAGE, NULL, NULL, "--steps wants 1 to 1000000");
	TRY(load_open(b->arena, dir, NULL, &b->l, d));
	fill_inputs(&b->l);
	TRY(timing_make(b->arena, &b->l, w->steps, &b->t, d));
	b->outside = resident_bytes() - (int64_t)b->l.model->arena_bytes;
	TRY(timing_plan(b->arena, dir, &b->t, d));
	TRY(by_kernel(b, d));
	if (w->costs_out)
		TRY(write_costs(b, w->costs_out, d));
	(w->json ? print_json : print_table)(b);
	return ST_OK;
}

enum status cmd_bench(int argc, const char **argv, struct diag *d)
{
	struct wishes w = {.steps = 20};
	struct poptOption table[] = {
		{"steps", 0, POPT_ARG_INT, &w.steps, 0, "steps to time (default 20)", "N"},
		{"costs-out", 0, POPT_ARG_STRING, &w.costs_out, 0,
			"write each kernel's time, for `--costs`", "FILE"},
		{"json", 0, POPT_ARG_NONE, &w.json, 0, "print JSON", NULL}, POPT_TABLEEND};
	struct args args;
	struct bench b = {.arena = arena_new()};
	if (!b.arena)
		return diag_nomem(d);
	enum status st = args_parse(
		b.arena, argc, argv, table, "DIR [OPTIONS]", 1, 1, NULL, &args, d);
	if (st == ST_OK && !args.help) {
		st = bench(&b, args.positional[0], &w, d);
		load_close(&b.l);
	}
	free(w.costs_out);
	arena_free(b.arena);
	return st;
}
