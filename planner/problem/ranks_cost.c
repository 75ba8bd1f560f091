#include "planner/problem/ranks_cost.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/stint_tree.h"

/* --- The link's text --- */

struct unit {
	const char *name;
	double of;
};

/* "25GB/s" and its like: the number times its unit, and *end behind it. */
static bool take_number(const char *text, const struct unit *unit, char **end, double *out)
{
	const double v = strtod(text, end);
	for (; *end > text && unit->name; unit++) {
		const size_t n = strlen(unit->name);
		if (strncmp(*end, unit->name, n) != 0 || ((*end)[n] && (*end)[n] != ','))
			continue;
		*end += n;
		*out = v * unit->of;
		return isfinite(*out) && *out >= 0;
	}
	return false;
}

enum status ranks_link_parse(const char *text, struct ranks_link *out, struct diag *d)
{
	static const struct unit rate[] = {{"GB/s", 1e3}, {"MB/s", 1}, {"KB/s", 1e-3},
		{"GiB/s", 0x1p30 / 1e6}, {"MiB/s", 0x1p20 / 1e6}, {"Gbit/s", 125},
		{"Mbit/s", 0.125}, {0}};
	static const struct unit time[] = {{"us", 1}, {"ns", 1e-3}, {"ms", 1e3}, {0}};
	char *end;
	bool good = take_number(text, rate, &end, &out->bytes) && out->bytes > 0 && *end == ',' &&
		    take_number(end + 1, time, &end, &out->latency);
	out->message = out->latency;
	if (good && *end == ',')
		good = take_number(end + 1, time, &end, &out->message);
	if (good && !*end)
		return ST_OK;
	return diag_fail(d, ST_USAGE, NULL,
		"25GB/s,2us: bytes a second, and how long a message is on its way; a third number, "
		"0.5us, is what a message takes of who sends or gets it",
		"--link '%s' is no bandwidth and latency", text);
}

/* --- Messages --- */

struct ranks {
	const struct ranks_link *link;
	double n;
	double roots, most,
		least; /* sums that all ranks' shards leave; one's, at most and at least */
	double most_shards, least_shards;
	struct ranks_cost *out;
};

static void count_ranks(const struct ranks_work *w, struct ranks *r)
{
	const int64_t n = (int64_t)r->n;
	r->most_shards = ceil((double)w->shards / r->n);
	r->least_shards = floor((double)w->shards / r->n);
	r->roots = r->most = 0;
	r->least = INFINITY;
	for (int64_t k = 0; k < n; k++) {
		const double own = stint_tree_roots(w->shards, n, k, NULL);
		r->roots += own;
		r->most = fmax(r->most, own);
		r->least = fmin(r->least, own);
	}
}

/* All ranks send, and wait for what they get: the busiest says how long. */
static void exchange(struct ranks *r, double sends, double takes, double bytes)
{
	const struct ranks_link *l = r->link;
	r->out->communication += l->latency + fmax(sends, takes) * (l->message + bytes / l->bytes);
	r->out->messages += sends;
	r->out->bytes += sends * bytes;
}

/* A round of a sum: to each of `owners` ranks what others have left of `bytes` of its piece. */
static void bring_together(const struct ranks_work *w, struct ranks *r, double owners, double bytes)
{
	enum { PASSES = 3 }; /* of memory: two are read, one is written */
	const double others = owners < r->n ? owners : r->n - 1;
	exchange(r, r->most * others, r->roots - r->least, bytes);
	r->out->compute += (r->roots - 1) * bytes * PASSES / w->bytes;
}

/* Of the pieces that `owners` ranks have, `bytes` of each to all. */
static void hand_out(struct ranks *r, double owners, double bytes)
{
	exchange(r, r->n - 1, owners < r->n ? owners : r->n - 1, bytes);
}

static void in_rounds(const struct ranks_work *w, struct ranks *r, const struct ranks_job *j)
{
	enum { GATHERED = 1 << 26 }; /* numbers of a piece in a message */
	const int64_t n = (int64_t)r->n;
	const int64_t chunk = j->kind == RANKS_GATHER ? GATHERED
						      : j->scratch / j->size / (int64_t)r->roots;
	const int64_t piece = (j->numbers + n - 1) / n; /* the largest */
	const int64_t rounds = chunk > 0 ? (piece + chunk - 1) / chunk : 0;
	for (int64_t k = 0; k < rounds; k++) {
		const int64_t left = piece - k * chunk;
		/* of one more number some ranks have none */
		const double owners = left == 1 && j->numbers % n ? (double)(j->numbers % n) : r->n;
		const double bytes = (double)((left < chunk ? left : chunk) * j->size);
		if (j->kind != RANKS_GATHER)
			bring_together(w, r, owners, bytes);
		if (j->kind != RANKS_SCATTER)
			hand_out(r, owners, bytes);
	}
}

static void send(const struct ranks_work *w, struct ranks *r, int of)
{
	const struct ranks_job *j = &w->job[of];
	if (j->kind != RANKS_JOIN)
		in_rounds(w, r, j);
	else
		exchange(r, r->most_shards * (r->n - 1), (double)w->shards - r->least_shards,
			(double)j->size);
}

struct following {
	double waited, free_at[2];
};

static void follow_event(const struct ranks_work *w, struct ranks *r, const struct ranks_event *e,
	double at, struct following *f)
{
	const double now = at + f->waited, before = r->out->communication;
	if (!e->waits) {
		double *free = &f->free_at[w->job[e->of].kind == RANKS_JOIN];
		send(w, r, e->of);
		*free = fmax(*free, now) + r->out->communication - before;
		w->done[e->of] = *free;
	} else if (w->done[e->of] > now) {
		f->waited += w->done[e->of] - now;
	}
}

/* Sums one behind the other, each as soon as it has begun, and so are rows, which pass sums; time
 * stands still for what is not there. */
static void follow(const struct ranks_work *w, struct ranks *r)
{
	struct following f = {0};
	for (int64_t k = 1; k <= (int64_t)r->most_shards; k++) {
		const bool last = k == (int64_t)r->most_shards;
		const double before = (double)(k - 1) * w->each;
		for (int i = 0; i < w->nevent; i++) {
			const struct ranks_event *e = &w->event[i];
			if (last || e->each)
				follow_event(w, r, e, before + (last ? e->at : e->at_each), &f);
		}
	}
	r->out->exposed = f.waited;
}

void ranks_cost(const struct ranks_work *work, const struct ranks_link *link, int ranks,
	struct ranks_cost *out)
{
	struct ranks r = {.link = link, .n = ranks, .out = out};
	*out = (struct ranks_cost){.ranks = ranks};
	count_ranks(work, &r);
	out->shards = (int64_t)r.most_shards;
	out->compute = r.most_shards * work->each + work->last;
	if (ranks == 1)
		return;
	follow(work, &r);
	for (int i = 0; i < work->njob && !work->nevent; i++)
		send(work, &r, i);
	const double hidden = work->nevent ? out->communication - out->exposed : 0;
	exchange(&r, r.n - 1, r.n - 1, sizeof(int64_t)); /* whether to stop */
	out->exposed = out->communication - hidden;
}
