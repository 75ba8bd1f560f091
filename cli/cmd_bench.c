/* stint bench DIR --steps N --json: time a compiled step on made-up data. */
#include <inttypes.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/args.h"
#include "cli/cli.h"
#include "cli/load.h"

struct bench {
	struct loaded l;
	int steps;
	double *step_ms; /* one per timed step */
	double *tick_ms; /* by step of the schedule, summed over the timed steps */
	int nticks;
	struct timespec last;
};

static double elapsed_ms(const struct timespec *from, const struct timespec *to)
{
	return (double)(to->tv_sec - from->tv_sec) * 1e3 +
	       (double)(to->tv_nsec - from->tv_nsec) / 1e6;
}

static void on_tick(void *user, int index)
{
	struct bench *b = user;
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	if (index >= 0 && index < b->nticks)
		b->tick_ms[index] += elapsed_ms(&b->last, &now);
	b->last = now;
}

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

static int one_step(struct bench *b, const struct stint_probe *probe)
{
	struct loaded *l = &b->l;
	return l->model->train ? l->train(l->step, 0, probe) : l->eval(l->step, 0, probe);
}

static int compare(const void *x, const void *y)
{
	double a = *(const double *)x, b = *(const double *)y;
	return (a > b) - (a < b);
}

static enum status measure(struct bench *b, struct diag *d)
{
	int rc = one_step(b, NULL); /* warm */
	for (int i = 0; i < b->steps && !rc; i++) {
		struct timespec from, to;
		clock_gettime(CLOCK_MONOTONIC, &from);
		rc = one_step(b, NULL);
		clock_gettime(CLOCK_MONOTONIC, &to);
		b->step_ms[i] = elapsed_ms(&from, &to);
	}
	const struct stint_probe probe = {.user = b, .tick = on_tick};
	for (int i = 0; i < b->steps && !rc; i++) {
		clock_gettime(CLOCK_MONOTONIC, &b->last);
		rc = one_step(b, &probe);
	}
	if (rc)
		return load_fail(&b->l, rc, "bench", d);
	qsort(b->step_ms, (size_t)b->steps, sizeof *b->step_ms, compare);
	return ST_OK;
}

struct kernel {
	const char *name, *op;
	int calls;
	double ms;
};

static int slowest_first(const void *x, const void *y)
{
	const struct kernel *a = x, *b = y;
	return a->ms != b->ms ? (a->ms < b->ms) - (a->ms > b->ms) : strcmp(a->name, b->name);
}

/* Sum the schedule's steps by kernel. */
static int by_kernel(const struct bench *b, struct kernel *k)
{
	const struct stint_model *m = b->l.model;
	const struct stint_step_info *info = m->train ? m->train_info : m->eval_info;
	int n = 0;
	for (int s = 0; s < b->nticks; s++) {
		int i = 0;
		while (i < n && strcmp(k[i].name, info[s].kernel) != 0)
			i++;
		if (i == n)
			k[n++] = (struct kernel){.name = info[s].kernel, .op = info[s].op};
		k[i].calls++;
		k[i].ms += b->tick_ms[s] / b->steps;
	}
	qsort(k, (size_t)n, sizeof *k, slowest_first);
	return n;
}

static void print_json(
	const struct bench *b, double median, int64_t outside, const struct kernel *k, int n)
{
	printf("{\"step_ms\":%.6g,\"steps\":%d,\"arena_bytes\":%zu,\"outside_bytes\":%" PRId64
	       ",\"threads\":%d,\"kernels\":[",
		median, b->steps, b->l.model->arena_bytes, outside, b->l.model->threads);
	for (int i = 0; i < n; i++)
		printf("%s{\"kernel\":\"%s\",\"op\":\"%s\",\"calls\":%d,\"ms\":%.6g}", i ? "," : "",
			k[i].name, k[i].op, k[i].calls, k[i].ms);
	printf("]}\n");
}

static void print_table(
	const struct bench *b, double median, int64_t outside, const struct kernel *k, int n)
{
	char x[24], y[24];
	double sum = 0;
	for (int i = 0; i < n; i++)
		sum += k[i].ms;
	printf("%s: %.4g ms a step (median of %d, %d thread%s); arena %s, outside %s\n",
		b->l.model->name, median, b->steps, b->l.model->threads,
		b->l.model->threads == 1 ? "" : "s",
		bytes_human((int64_t)b->l.model->arena_bytes, x), bytes_human(outside, y));
	printf("%-44s %6s %10s %7s\n", "kernel", "calls", "ms", "share");
	for (int i = 0; i < n; i++)
		printf("%-44s %6d %10.4f %6.1f%%\n", k[i].name, k[i].calls, k[i].ms,
			sum > 0 ? 100 * k[i].ms / sum : 0);
}

static enum status bench(struct arena *a, const char *dir, int steps, bool json, struct diag *d)
{
	struct bench b = {.steps = steps};
	if (steps < 1 || steps > 1000000)
		return diag_fail(d, ST_USAGE, NULL, NULL, "--steps wants 1 to 1000000");
	enum status st = load_open(a, dir, NULL, &b.l, d);
	if (st == ST_OK) {
		const struct stint_model *m = b.l.model;
		b.nticks = m->train ? m->ntrain_steps : m->neval_steps;
		b.step_ms = ARENA_ARRAY(a, double, steps);
		b.tick_ms = ARENA_ARRAY(a, double, b.nticks);
		struct kernel *k = ARENA_ARRAY(a, struct kernel, b.nticks);
		fill_inputs(&b.l);
		st = b.step_ms && b.tick_ms && k ? measure(&b, d) : diag_nomem(d);
		if (st == ST_OK) {
			int64_t outside = resident_bytes() - (int64_t)m->arena_bytes;
			int n = by_kernel(&b, k);
			(json ? print_json : print_table)(&b, b.step_ms[steps / 2], outside, k, n);
		}
	}
	load_close(&b.l);
	return st;
}

enum status cmd_bench(int argc, const char **argv, struct diag *d)
{
	int steps = 20, json = 0;
	struct poptOption table[] = {
		{"steps", 0, POPT_ARG_INT, &steps, 0, "steps to time (default 20)", "N"},
		{"json", 0, POPT_ARG_NONE, &json, 0, "print JSON", NULL}, POPT_TABLEEND};
	struct args args;
	struct arena *a = arena_new();
	if (!a)
		return diag_nomem(d);
	enum status st = args_parse(a, argc, argv, table, "DIR [OPTIONS]", 1, 1, NULL, &args, d);
	if (st == ST_OK && !args.help)
		st = bench(a, args.positional[0], steps, json != 0, d);
	arena_free(a);
	return st;
}
