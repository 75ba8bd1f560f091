#include "compile/batch_split.h"

#include <inttypes.h>
#include <stdlib.h>

/* The number of slices that regions are compared by, or what divides the batch next to it. */
enum { SLICES_FIRST = 8 };

/* Rows of a batch: those of the first input that has any. */
static int64_t rows_of(const struct graph *g)
{
	for (int i = 0; i < g->ninput; i++)
		if (g->input[i]->rank)
			return g->input[i]->dim[0];
	return 0;
}

static bool divides(int64_t slices, int64_t rows)
{
	return slices >= 2 && slices <= SLICES_MAX && rows % slices == 0;
}

static int64_t first_slices(int64_t rows)
{
	int64_t best = 0;
	for (int64_t n = 2; n <= rows && n <= SLICES_MAX; n++)
		if (divides(n, rows) &&
			(!best || llabs(n - SLICES_FIRST) < llabs(best - SLICES_FIRST)))
			best = n;
	return best;
}

/* `whole` and a `slices`th of it, told apart; what the second import has to say is known. */
static enum status read_apart(
	struct pipeline *p, const struct graph *whole, int64_t slices, struct graph_apart *out)
{
	struct diag *quiet = ARENA_NEW(p->arena, struct diag);
	struct graph *part;
	if (!quiet)
		return diag_nomem(p->diag);
	*quiet = (struct diag){.put = NULL};
	TRY(pipeline_read(p, rows_of(whole) / slices, quiet, &part));
	struct lower_options *lower = ARENA_NEW(p->arena, struct lower_options);
	if (!lower)
		return diag_nomem(p->diag);
	*lower = pipeline_lowering(p->o);
	return graph_apart(whole, part, slices, lower, out);
}

enum status split_read(struct pipeline *p)
{
	return pipeline_read(p, p->o->import.batch / p->parts.shards, p->diag, &p->whole);
}

enum status split_graph(struct pipeline *p, struct graph **graph)
{
	struct graph_apart apart;
	if (!p->apart)
		TRY(read_apart(p, *graph, p->parts.region.slices, &apart));
	return graph_slice(p->apart ? p->apart : &apart, &p->parts.region, graph);
}

/* --- What there is to choose from --- */

struct regions {
	struct arena *arena; /* its own: a model's weights are large */
	struct diag quiet;
	struct graph_apart apart;
	int n;
	struct graph_region region[REGIONS_MAX];
};

static enum status find_regions(const struct pipeline *p, struct regions *out)
{
	struct pipeline reading = *p;
	const int64_t rows = rows_of(p->whole);
	const int64_t slices = p->o->split == SPLIT_AUTO ? first_slices(rows) : p->o->split;
	reading.arena = out->arena;
	if (!divides(slices, rows))
		return ST_OK;
	TRY(read_apart(&reading, p->whole, slices, &out->apart));
	if (!p->o->split_until)
		return graph_regions(&out->apart, out->region, &out->n);
	out->n = graph_region_until(&out->apart, p->o->split_until, out->region);
	return ST_OK;
}

static enum status no_split(struct pipeline *p)
{
	const struct where w = {.file = p->o->model};
	const int64_t rows = rows_of(p->whole);
	if (p->o->split == SPLIT_AUTO)
		return ST_OK;
	if (!divides(p->o->split, rows))
		return diag_fail(p->diag, ST_USAGE, &w,
			arena_printf(
				p->arena, "slices are of one size: 2 to %d of them", SLICES_MAX),
			"--split %" PRId64 " does not divide a batch of %" PRId64, p->o->split,
			rows);
	if (p->o->split_until)
		return diag_fail(p->diag, ST_USAGE, &w,
			"--split N chooses one; `stint show MODEL` lists the nodes",
			"--split: the nodes up to '%s' do not treat the samples of a batch apart",
			p->o->split_until);
	return diag_fail(p->diag, ST_USAGE, &w, "--micro-batch takes the whole model in parts",
		"--split: no part of the model treats the samples of a batch apart");
}

/* At least one, or, under SPLIT_AUTO, none. */
static enum status regions_begin(struct pipeline *p, struct regions *out)
{
	*out = (struct regions){.arena = arena_new()};
	if (!out->arena)
		return diag_nomem(p->diag);
	const enum status st = find_regions(p, out);
	return st != ST_OK || out->n == 0 ? no_split(p) : ST_OK;
}

static enum status parts_of(
	struct pipeline *p, const struct regions *regions, int i, struct parts *out)
{
	*out = (struct parts){p->parts.shards, regions->region[i],
		arena_strdup(p->arena, graph_region_end(&regions->apart, &regions->region[i]))};
	return out->until ? ST_OK : diag_nomem(p->diag);
}

enum status split_given(struct pipeline *p)
{
	struct regions regions;
	TRY(split_read(p));
	enum status st = regions_begin(p, &regions);
	if (st == ST_OK)
		st = parts_of(p, &regions, 0, &p->parts);
	arena_free(regions.arena);
	return st;
}

static enum status try_regions(struct choice *c, const struct regions *regions)
{
	for (int i = 0; i < regions->n; i++) {
		struct parts parts;
		TRY(parts_of(c->p, regions, i, &parts));
		TRY(trials_add(c, &parts, &regions->apart));
	}
	return ST_OK;
}

static enum status try_numbers(struct choice *c, const struct parts *parts)
{
	static const int64_t NUMBER[] = {2, 4, 16, 32};
	for (size_t i = 0; i < sizeof NUMBER / sizeof *NUMBER; i++) {
		struct parts other = *parts;
		other.region.slices = NUMBER[i];
		if (NUMBER[i] != parts->region.slices && divides(NUMBER[i], rows_of(c->p->whole)))
			TRY(trials_add(c, &other, NULL));
	}
	return ST_OK;
}

enum status split_try(struct choice *c)
{
	struct regions regions;
	enum status st = regions_begin(c->p, &regions);
	if (st == ST_OK)
		st = try_regions(c, &regions);
	arena_free(regions.arena);
	TRY(st);
	const struct trial *best = trials_end(c);
	const int ntrial = c->p->ntrial;
	for (int i = 0; i < ntrial && c->p->o->split == SPLIT_AUTO; i++) {
		const struct trial *x = &c->p->trial[i];
		if (x->parts.region.slices &&
			(c->visitor ? c->visitor->stands(c->visitor->user, x) : x == best))
			TRY(try_numbers(c, &x->parts));
	}
	return ST_OK;
}
