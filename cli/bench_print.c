/* What `stint bench` says of one compiled directory. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "api/report.h"
#include "api/safe_put.h"
#include "api/terminal.h"
#include "cli/bench.h"
#include "cli/busy.h"

/* A kernel's name on what is no terminal, and the least of it; the columns beside it. */
enum { NAME_WIDTH = 50, NAME_LEAST = 20, NUMBERS = 58, PREDICTED = 10 };

/* What a table's lines are made of on this terminal. */
struct layout {
	int name;
	bool predicted;
};

static struct layout choose_layout(const struct bench *b)
{
	struct layout l = {NAME_WIDTH, b->t.plan != NULL};
	const int columns = terminal_columns(STDOUT_FILENO);
	if (!columns)
		return l;
	l.predicted &= columns - NUMBERS - PREDICTED >= NAME_LEAST;
	l.name = columns - NUMBERS - (l.predicted ? PREDICTED : 0);
	l.name = l.name < NAME_LEAST ? NAME_LEAST : l.name > NAME_WIDTH ? NAME_WIDTH : l.name;
	return l;
}

static double percent(double part, double whole)
{
	return whole > 0 ? 100 * part / whole : 0;
}

static double per_us(double work, double us)
{
	return us > 0 ? work / us : 0;
}

/* Of the whole step, what recomputation takes, as the kernels say. */
static double again_ms(const struct bench *b)
{
	return b->all.us > 0 ? b->t.step_us * b->all.again_us / b->all.us / 1e3 : 0;
}

/* What the plan expects of it; and of the rest. */
static double planned_again_us(const struct timing *t)
{
	double us = 0;
	for (int i = 0; t->plan && i < t->nop; i++)
		us += t->info[i].run > 0 ? timing_predicted(t, i) : 0;
	return us;
}

/* --- JSON --- */

static void json_kernel(const struct bench *b, const struct bench_kernel *k)
{
	printf("{\"kernel\":\"%s\",\"op\":", k->name);
	safe_json(stdout, k->op);
	if (k->key) {
		printf(",\"key\":");
		safe_json(stdout, k->key);
	}
	printf(",\"calls\":%d,\"ms\":%.6g,\"share\":%.6g,\"alone_ms\":%.6g", k->calls, k->us / 1e3,
		percent(k->us, b->all.us) / 100, k->alone_us / 1e3);
	printf(",\"flops\":%.9g,\"bytes\":%.9g,\"gflops\":%.6g,\"gb_s\":%.6g", k->flops, k->bytes,
		per_us(k->flops, k->us) / 1e3, per_us(k->bytes, k->us) / 1e3);
	printf(",\"roof_ms\":%.6g,\"roof_share\":%.6g,\"recomputed_calls\":%d,"
	       "\"recomputed_ms\":%.6g",
		k->roof_us / 1e3, percent(k->roof_us, k->us) / 100, k->again, k->again_us / 1e3);
	if (b->t.plan)
		printf(",\"predicted_ms\":%.6g", k->predicted_us / 1e3);
	printf("}");
}

static void json_memory(const struct bench *b)
{
	printf(",\"memory\":{\"arena_bytes\":%zu,\"arena_resident\":%" PRId64
	       ",\"outside_bytes\":%" PRId64 ",\"outside_planned\":%" PRId64
	       ",\"peak_bytes\":%" PRId64 ",\"grown_bytes\":%" PRId64 "}",
		b->l.model->arena_bytes, b->memory.arena_resident, b->memory.outside,
		REPORT_OUTSIDE_BYTES, b->memory.peak, b->memory.grown);
}

static void json_machine(const struct bench *b)
{
	const struct roof *r = &b->roof;
	printf(",\"machine\":{\"threads\":%d,\"gflops\":%.6g", r->threads, r->flops_us / 1e3);
	roof_bandwidths_json(r);
	busy_json(b->others);
	printf("}");
}

static void json_again(const struct bench *b)
{
	printf(",\"recomputation\":{\"calls\":%d,\"ms\":%.6g,\"step_without_ms\":%.6g",
		b->all.again, again_ms(b), b->t.step_us / 1e3 - again_ms(b));
	if (b->t.plan)
		printf(",\"predicted_ms\":%.6g", planned_again_us(&b->t) / 1e3);
	printf("}");
}

void bench_json(const struct bench *b)
{
	const struct stint_model *m = b->l.model;
	printf("{\"step_ms\":%.6g,\"steps\":%d,\"arena_bytes\":%zu,\"outside_bytes\":%" PRId64
	       ",\"threads\":%d,\"kernels_ms\":%.6g",
		b->t.step_us / 1e3, b->t.steps, m->arena_bytes, b->memory.outside, m->threads,
		b->all.us / 1e3);
	if (b->t.plan)
		printf(",\"predicted_ms\":%.6g", b->t.planned_us / 1e3);
	if (b->calibrated_us >= 0)
		printf(",\"calibrated_ms\":%.6g", b->calibrated_us / 1e3);
	if (b->t.plan && b->t.problem->costs) {
		printf(",\"costs\":");
		safe_json(stdout, b->t.problem->costs);
	}
	printf(",\"roof_ms\":%.6g", b->all.roof_us / 1e3);
	json_again(b);
	if (load_on_gpu(&b->l)) {
		bench_device_json(b);
	} else {
		json_memory(b);
		json_machine(b);
	}
	printf(",\"kernels\":[");
	for (int i = 0; i < b->nkernel; i++) {
		printf("%s", i ? "," : "");
		json_kernel(b, &b->kernel[i]);
	}
	printf("]}\n");
}

/* --- In words --- */

static const char *plural(int64_t n)
{
	return n == 1 ? "" : "s";
}

static const char *fact_recomputation(const struct bench *b)
{
	if (b->all.again == 0)
		return "recomputation: none";
	const char *planned = "";
	if (b->t.plan)
		planned = arena_printf(b->arena, "; predicted %.1f %%",
			percent(planned_again_us(&b->t), b->t.plan->cost_total));
	return arena_printf(b->arena,
		"recomputation: %.4g ms, %.1f %% of the step, in %d of %d calls; without: %.4g "
		"ms%s",
		again_ms(b), percent(b->all.again_us, b->all.us), b->all.again, b->t.nop,
		b->t.step_us / 1e3 - again_ms(b), planned ? planned : "");
}

static const char *fact_memory(const struct bench *b)
{
	const struct bench_memory *m = &b->memory;
	if (load_on_gpu(&b->l))
		return bench_device_fact_memory(b);
	char v[24], w[24], x[24], y[24], z[24], peak[24];
	return arena_printf(b->arena,
		"memory: arena %s planned, %s resident; outside %s, about %s expected; peak %s; "
		"grown by %s while stepping",
		bytes_human((int64_t)b->l.model->arena_bytes, v), bytes_human(m->arena_resident, w),
		bytes_human(m->outside, x), bytes_human(REPORT_OUTSIDE_BYTES, y),
		bytes_human(m->peak, peak), bytes_human(m->grown, z));
}

static const char *fact_machine(const struct bench *b)
{
	const struct roof *r = &b->roof;
	struct text t = {0};
	if (load_on_gpu(&b->l))
		return bench_device_fact_machine(b);
	text_add(&t, "machine, measured with %d thread%s: %.4g GFLOP/s", r->threads,
		plural(r->threads), r->flops_us / 1e3);
	roof_bandwidths(r, &t);
	char words[160];
	if (*busy_words(b->others, words))
		text_add(&t, "; %s", words);
	const char *s = t.failed ? NULL : arena_strdup(b->arena, t.s);
	text_free(&t);
	return s;
}

enum status bench_facts(const struct bench *b, const char *fact[BENCH_FACTS], struct diag *d)
{
	const struct stint_model *m = b->l.model;
	const char *costs = b->t.plan ? b->t.problem->costs : NULL;
	char x[24], y[24], here[64] = "";
	if (b->calibrated_us >= 0)
		snprintf(here, sizeof here, "; calibrated for this machine: %.4g ms",
			b->calibrated_us / 1e3);
	const char *threads = load_on_gpu(&b->l) ? "a graph's replay"
						 : arena_printf(b->arena, "%d thread%s", m->threads,
							   plural(m->threads));
	if (!threads)
		return diag_nomem(d);
	fact[0] = arena_printf(b->arena,
		"%s: %.4g ms a step (median of %d, %s); arena %s, outside %s", m->name,
		b->t.step_us / 1e3, b->t.steps, threads, bytes_human((int64_t)m->arena_bytes, x),
		bytes_human(b->memory.outside, y));
	fact[1] = b->t.plan ? arena_printf(b->arena, "predicted: %.4g ms%s%s%s",
				      b->t.planned_us / 1e3, costs ? ", costs from: " : "",
				      costs ? costs : "", here)
			    : "predicted: the folder has no plan";
	fact[2] = fact_recomputation(b);
	fact[3] = fact_memory(b);
	fact[4] = fact_machine(b);
	for (int i = 0; i < BENCH_FACTS; i++)
		if (!fact[i])
			return diag_nomem(d);
	return ST_OK;
}

/* --- Table --- */

static void print_row(const struct bench *b, const struct bench_kernel *k, const struct layout *l)
{
	char name[128];
	const double flops = load_on_gpu(&b->l) ? 1e6 : 1e3; /* TFLOP/s or GFLOP/s */
	bench_brief(k, l->name, name);
	printf("%s %5d %9.4f %5.1f%% %9.4f %8.2f %7.2f %5.0f%%", name, k->calls, k->us / 1e3,
		percent(k->us, b->all.us), k->alone_us / 1e3, per_us(k->flops, k->us) / flops,
		per_us(k->bytes, k->us) / 1e3, percent(k->roof_us, k->us));
	if (l->predicted)
		printf(" %9.4f", k->predicted_us / 1e3);
	printf("\n");
}

/* On a terminal a long line is broken after "; " or ", ". */
static void put_folded(const char *s)
{
	const int columns = terminal_columns(STDOUT_FILENO);
	int at = 0;
	while (*s) {
		const char *end = s;
		do
			end += strcspn(end, " ") + 1;
		while (end[-1] && end[-2] != ';' && end[-2] != ',' && end[-2] != ':');
		const int n = (int)(end - s) - !end[-1];
		char part[8192];
		snprintf(part, sizeof part, "%.*s", n, s);
		if (columns && at > 0 && at + n > columns) {
			printf("\n  ");
			at = 2;
		}
		safe_put(stdout, part);
		at += n;
		s += n;
	}
	printf("\n");
}

enum status bench_table(const struct bench *b, struct diag *d)
{
	const char *fact[BENCH_FACTS];
	const struct layout l = choose_layout(b);
	TRY(bench_facts(b, fact, d));
	for (int i = 0; i < BENCH_FACTS; i++) {
		put_folded(fact[i]);
	}
	printf("%-*s %5s %9s %6s %9s %8s %7s %6s%s\n", l.name, "kernel", "calls", "ms", "share",
		"alone", load_on_gpu(&b->l) ? "TFLOP/s" : "GFLOP/s", "GB/s", "roof",
		l.predicted ? " predicted" : "");
	for (int i = 0; i < b->nkernel; i++)
		print_row(b, &b->kernel[i], &l);
	print_row(b, &b->all, &l);
	return ST_OK;
}
