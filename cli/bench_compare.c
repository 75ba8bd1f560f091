/* stint bench --compare A B: two compiled directories, round by round in turn. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/safe_put.h"
#include "api/terminal.h"
#include "cli/bench.h"
#include "cli/busy.h"

enum { NAME_WIDTH = 50, NAME_LEAST = 20, NUMBERS = 56 };

/* Functions of both that do the same work, by their words. */
struct pair {
	const struct bench_kernel *shown;
	int calls[2];
	double us[2];
};

struct comparison {
	const struct bench *side; /* [2] */
	int n;
	struct pair *pair;
	double ratio, low, high; /* B / A of a round: the median and the quartiles */
};

static const char *identity(const struct bench_kernel *k)
{
	return k->key ? k->key : k->name;
}

static double larger(const struct pair *p)
{
	return fmax(p->us[0], p->us[1]);
}

static int slowest_first(const void *x, const void *y)
{
	const struct pair *a = x, *b = y;
	double p = larger(a), q = larger(b);
	return p != q ? (p < q) - (p > q) : strcmp(identity(a->shown), identity(b->shown));
}

static enum status pair_kernels(struct arena *a, struct comparison *c, struct diag *d)
{
	c->pair = ARENA_ARRAY(a, struct pair, c->side[0].nkernel + c->side[1].nkernel);
	if (!c->pair)
		return diag_nomem(d);
	for (int s = 0; s < 2; s++)
		for (int k = 0; k < c->side[s].nkernel; k++) {
			const struct bench_kernel *x = &c->side[s].kernel[k];
			int i = 0;
			while (i < c->n && strcmp(identity(c->pair[i].shown), identity(x)) != 0)
				i++;
			if (i == c->n)
				c->pair[c->n++].shown = x;
			c->pair[i].calls[s] += x->calls;
			c->pair[i].us[s] += x->us;
		}
	qsort(c->pair, (size_t)c->n, sizeof *c->pair, slowest_first);
	return ST_OK;
}

static int rising(const void *x, const void *y)
{
	double a = *(const double *)x, b = *(const double *)y;
	return (a > b) - (a < b);
}

/* Each round's two steps ran one after the other: what disturbs one tends to disturb both. */
static enum status ratios(struct arena *a, struct comparison *c, struct diag *d)
{
	const struct timing *x = &c->side[0].t, *y = &c->side[1].t;
	double *r = ARENA_ARRAY(a, double, x->steps);
	if (!r)
		return diag_nomem(d);
	for (int i = 0; i < x->steps; i++)
		r[i] = y->round_us[i] / fmax(x->round_us[i], 1e-3);
	qsort(r, (size_t)x->steps, sizeof *r, rising);
	c->low = r[x->steps / 4];
	c->high = r[x->steps - 1 - x->steps / 4];
	c->ratio = costs_median(r, x->steps);
	return ST_OK;
}

/* Of a call; 0 where one of them has none. */
static double ratio_of(const struct pair *p)
{
	if (!p->calls[0] || !p->calls[1] || !(p->us[0] > 0))
		return 0;
	return p->us[1] / p->calls[1] / (p->us[0] / p->calls[0]);
}

static void print_json(const struct comparison *c)
{
	printf("{\"steps\":%d,\"ratio\":%.6g,\"ratio_low\":%.6g,\"ratio_high\":%.6g",
		c->side[0].t.steps, c->ratio, c->low, c->high);
	for (int s = 0; s < 2; s++) {
		const struct bench *b = &c->side[s];
		printf(",\"%c\":{\"dir\":", 'a' + s);
		safe_json(stdout, b->dir);
		printf(",\"threads\":%d,\"step_ms\":%.6g,\"kernels_ms\":%.6g,\"arena_bytes\":%zu,"
		       "\"recomputed_ms\":%.6g}",
			b->l.model->threads, b->t.step_us / 1e3, b->all.us / 1e3,
			b->l.model->arena_bytes, b->all.again_us / 1e3);
	}
	printf(",\"kernels\":[");
	for (int i = 0; i < c->n; i++) {
		const struct pair *p = &c->pair[i];
		printf("%s{\"key\":", i ? "," : "");
		safe_json(stdout, identity(p->shown));
		for (int s = 0; s < 2; s++)
			printf(",\"%c\":{\"calls\":%d,\"ms\":%.6g}", 'a' + s, p->calls[s],
				p->us[s] / 1e3);
		if (ratio_of(p) > 0)
			printf(",\"ratio\":%.6g", ratio_of(p));
		printf("}");
	}
	printf("]");
	busy_json(c->side[0].others);
	printf("}\n");
}

static void print_side(const struct bench *b, char letter)
{
	char arena[24];
	printf("%c: ", letter);
	safe_put(stdout, b->dir);
	printf(": %.4g ms a step, recomputation %.1f %%; arena %s, %d thread%s\n",
		b->t.step_us / 1e3, b->all.us > 0 ? 100 * b->all.again_us / b->all.us : 0,
		bytes_human((int64_t)b->l.model->arena_bytes, arena), b->l.model->threads,
		b->l.model->threads == 1 ? "" : "s");
}

static void print_pair(const struct pair *p, const char *name)
{
	printf("%s", name);
	for (int s = 0; s < 2; s++)
		if (p->calls[s])
			printf(" %7d %9.4f", p->calls[s], p->us[s] / 1e3);
		else
			printf(" %7s %9s", "-", "-");
	printf(" %+9.4f", (p->us[1] - p->us[0]) / 1e3);
	if (ratio_of(p) > 0)
		printf(" %8.3f\n", ratio_of(p));
	else
		printf(" %8s\n", "-");
}

static void print_table(const struct comparison *c)
{
	const int columns = terminal_columns(STDOUT_FILENO);
	const int left = columns ? columns - NUMBERS : NAME_WIDTH;
	const int width = left < NAME_LEAST ? NAME_LEAST : left > NAME_WIDTH ? NAME_WIDTH : left;
	char name[160];
	struct pair all = {.shown = &c->side[0].all};
	print_side(&c->side[0], 'A');
	print_side(&c->side[1], 'B');
	printf("B takes %.3f times as long as A (half of %d rounds: %.3f to %.3f)\n", c->ratio,
		c->side[0].t.steps, c->low, c->high);
	if (*busy_words(c->side[0].others, name))
		printf("%s\n", name);
	printf("%-*s %7s %9s %7s %9s %9s %8s\n", width, "kernel", "calls A", "ms A", "calls B",
		"ms B", "B - A", "a call");
	for (int i = 0; i < c->n; i++)
		print_pair(&c->pair[i], bench_brief(c->pair[i].shown, width, name));
	for (int s = 0; s < 2; s++) {
		all.calls[s] = c->side[s].t.nop;
		all.us[s] = c->side[s].all.us;
	}
	print_pair(&all, bench_brief(all.shown, width, name));
}

enum status bench_compare(struct bench side[2], int steps, bool json, struct diag *d)
{
	struct arena *a = side[0].arena;
	struct comparison c = {.side = side};
	const struct loaded *l[2];
	struct timing t[2];
	for (int s = 0; s < 2; s++) {
		TRY(bench_open(&side[s], d));
		l[s] = &side[s].l;
	}
	struct busy busy;
	busy_begin(&busy);
	TRY(timing_make(a, l, 2, steps, t, d));
	side[0].others = busy_others(&busy);
	for (int s = 0; s < 2; s++) {
		side[s].t = t[s];
		TRY(timing_plan(a, side[s].dir, &side[s].t, d));
		TRY(bench_kernels(&side[s], d));
	}
	TRY(pair_kernels(a, &c, d));
	TRY(ratios(a, &c, d));
	(json ? print_json : print_table)(&c);
	return ST_OK;
}
