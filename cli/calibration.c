#include "cli/calibration.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/machine.h"
#include "planner/problem/moves.h"
#include "runtime/stint_cache.h"

static void add_field(struct stint_sha *s, const char *text)
{
	stint_cache_field(s, text ? text : "", text ? strlen(text) : 0);
}

static void key_of(const struct costs *c, unsigned char key[STINT_SHA])
{
	struct stint_sha s;
	stint_sha_start(&s);
	add_field(&s, "stint-calibration-1");
	add_field(&s, c->cpu);
	add_field(&s, c->isa);
	add_field(&s, c->library);
	stint_cache_field(&s, &c->threads, sizeof c->threads);
	stint_sha_end(&s, key);
}

static enum status keep(const struct costs *c, const char *text, size_t len, struct diag *d)
{
	unsigned char key[STINT_SHA];
	char folder[2048];
	size_t bytes;
	stint_cache_folder(folder, sizeof folder);
	key_of(c, key);
	stint_cache_write(folder, key, text, len);
	void *kept = stint_cache_read(folder, key, &bytes);
	const bool whole = kept && bytes == len && !memcmp(kept, text, len);
	free(kept);
	return whole ? ST_OK
		     : diag_fail(d, ST_IO, &(struct where){.file = *folder ? folder : NULL},
			       "set STINT_CACHE or XDG_CACHE_HOME to a folder that can be written",
			       "what is measured cannot be kept there");
}

enum status calibration_try(struct diag *d)
{
	const struct costs nobody = {.cpu = "none"};
	return keep(&nobody, "", 0, d);
}

enum status calibration_keep(struct arena *a, struct costs *c, struct diag *d)
{
	struct text t = {0};
	TRY(machine_describe(a, true, c, d));
	costs_print(c, &t);
	const enum status st = t.failed ? diag_nomem(d) : keep(c, t.s, t.len, d);
	text_free(&t);
	return st;
}

/* *out NULL: nothing was measured. */
static enum status read_kept(struct arena *a, int threads, struct costs **out, struct diag *d)
{
	unsigned char key[STINT_SHA];
	char folder[2048];
	size_t bytes;
	struct costs here = {.threads = threads};
	struct diag quiet = {.put = NULL};
	*out = NULL;
	if (machine_describe(a, true, &here, &quiet) != ST_OK)
		return ST_OK;
	stint_cache_folder(folder, sizeof folder);
	key_of(&here, key);
	char *kept = stint_cache_read(folder, key, &bytes);
	if (!kept)
		return ST_OK;
	const char *text = arena_strndup(a, kept, bytes);
	free(kept);
	return text ? costs_parse(a, text, bytes, "the calibration", out, d) : diag_nomem(d);
}

enum status calibration_us(struct arena *a, const struct problem *p, const struct plan *plan,
	int threads, double *us, struct diag *d)
{
	struct costs *c;
	struct costs_use use;
	struct problem here = *p;
	*us = -1;
	if (!plan || !plan->feasible || !p->costs || strcmp(p->costs, "roofline") != 0)
		return ST_OK;
	TRY(read_kept(a, threads, &c, d));
	if (!c)
		return ST_OK;
	here.op = arena_memdup(a, p->op, (size_t)p->nop, sizeof *p->op);
	if (!here.op)
		return diag_nomem(d);
	TRY(costs_apply(a, &here, c, &use, d));
	return plan_beside(a, &here, plan, us, d);
}

enum status calibration_tell(struct arena *a, const struct problem *p, const struct plan *plan,
	int threads, struct diag *d)
{
	double us;
	TRY(calibration_us(a, p, plan, threads, &us, d));
	if (us >= 0)
		printf("on this machine: %.4g ms a step, by what `stint doctor --calibrate` "
		       "measured\n",
			us / 1e3);
	return ST_OK;
}
