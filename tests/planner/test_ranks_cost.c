/* What ranks_cost predicts against a simulation of ranks and messages that shares no code with it:
 * ranks work, send one message after the other, take what arrives one after the other, and go on
 * when theirs is there. No rank knows of a maximum over all. Also the link's text. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "planner/problem/ranks_cost.h"

/* --- The tree, as docs/adr/0017 says it --- */

/* Nodes of [begin, end) that lie in [from, to) whole, and whose parents do not. */
static int64_t whole_nodes(int64_t begin, int64_t end, int64_t from, int64_t to)
{
	if (to <= begin || end <= from)
		return 0;
	if (from <= begin && end <= to)
		return 1;
	int64_t left = 1;
	while (2 * left < end - begin)
		left *= 2;
	return whole_nodes(begin, begin + left, from, to) +
	       whole_nodes(begin + left, end, from, to);
}

/* --- Events --- */

enum { PHASES = 64 };

struct simulated {
	double time; /* the next message has left then */
	int phase, to, each;
	int64_t shards, roots;
	double in_free;
	int wants[PHASES], got[PHASES];
	double last[PHASES]; /* arrival */
};

struct phase {
	enum { SUM, WHOLE, ROWS, STOP } kind;
	int64_t numbers, chunk, round, size, row;
};

struct world {
	const struct ranks_work *work;
	const struct ranks_link *link;
	int n, nphase, nheap;
	int64_t roots;
	struct phase phase[PHASES];
	struct simulated *rank;
	int *heap; /* ranks that send, the next to be done first */
	double end;
};

static bool before(const struct world *w, int a, int b)
{
	return w->rank[a].time < w->rank[b].time || (w->rank[a].time == w->rank[b].time && a < b);
}

static void sink(struct world *w, int at)
{
	const int who = w->heap[at];
	for (int child; (child = 2 * at + 1) < w->nheap; at = child) {
		if (child + 1 < w->nheap && before(w, w->heap[child + 1], w->heap[child]))
			child++;
		if (!before(w, w->heap[child], who))
			break;
		w->heap[at] = w->heap[child];
	}
	w->heap[at] = who;
}

static void push(struct world *w, int who)
{
	int at = w->nheap++;
	for (int up; at > 0 && before(w, who, w->heap[up = (at - 1) / 2]); at = up)
		w->heap[at] = w->heap[up];
	w->heap[at] = who;
}

/* Of owner's piece of the numbers, what this round has. */
static int64_t chunk_of(const struct world *w, const struct phase *p, int owner)
{
	const int64_t begin = p->numbers * owner / w->n + p->round * p->chunk,
		      left = p->numbers * (owner + 1) / w->n - begin;
	return left < 0 ? 0 : left < p->chunk ? left : p->chunk;
}

/* How many messages `from` has for `to`, and of how many bytes. */
static int messages(const struct world *w, const struct phase *p, int from, int to, double *bytes)
{
	switch (p->kind) {
	case SUM:
		*bytes = (double)(chunk_of(w, p, to) * p->size);
		return *bytes > 0 ? (int)w->rank[from].roots : 0;
	case WHOLE:
		*bytes = (double)(chunk_of(w, p, from) * p->size);
		return *bytes > 0;
	case ROWS:
		*bytes = (double)p->row;
		return (int)w->rank[from].shards;
	default:
		*bytes = 8;
		return 1;
	}
}

/* The rank's next message; false: it has none more in this phase. */
static bool next_message(const struct world *w, int who, double *bytes)
{
	struct simulated *r = &w->rank[who];
	while (r->to < w->n) {
		if (r->each < messages(w, &w->phase[r->phase], who, (who + r->to) % w->n, bytes)) {
			r->each++;
			return true;
		}
		r->to++;
		r->each = 0;
	}
	return false;
}

static double takes(const struct world *w, double bytes)
{
	return w->link->message + bytes / w->link->bytes;
}

/* From `time` on, as far as it comes without another's message. */
static void go_on(struct world *w, int who, double time)
{
	struct simulated *r = &w->rank[who];
	double bytes;
	while (!next_message(w, who, &bytes)) {
		if (r->got[r->phase] < r->wants[r->phase]) {
			r->time = time; /* all is sent */
			r->to = w->n;
			return;
		}
		time = fmax(time, r->last[r->phase]);
		const struct phase *p = &w->phase[r->phase];
		if (p->kind == SUM) /* its own part is there in memory */
			time += (double)((w->roots - 1) * chunk_of(w, p, who) * p->size * 3) /
				w->work->bytes;
		r->phase++;
		r->to = 1;
		r->each = 0;
		if (r->phase == w->nphase) {
			w->end = fmax(w->end, time);
			return;
		}
	}
	r->time = time + takes(w, bytes);
	push(w, who);
}

static void arrive(struct world *w, int from, int to, int phase, double bytes)
{
	struct simulated *r = &w->rank[to];
	const double at = w->rank[from].time + w->link->latency, busy = takes(w, bytes);
	r->in_free = fmax(r->in_free + busy, at);
	r->last[phase] = fmax(r->last[phase], r->in_free);
	r->got[phase]++;
	/* it waited for this one */
	if (r->phase == phase && r->to == w->n && r->got[phase] == r->wants[phase])
		go_on(w, to, r->time);
}

static bool any_sends(const struct world *w, const struct phase *p)
{
	for (int r = 0; r < w->n; r++)
		if (chunk_of(w, p, r) > 0)
			return true;
	return false;
}

/* Others' parts of a piece come to its owner; pieces go to all. */
static void add_rounds(struct world *w, const struct ranks_job *j)
{
	const bool adds = j->kind != RANKS_GATHER, spreads = j->kind != RANKS_SCATTER;
	const int64_t chunk = adds ? j->scratch / j->size / w->roots : j->numbers;
	struct phase p = {SUM, j->numbers, chunk, 0, j->size, 0};
	for (; any_sends(w, &p); p.round++) {
		assert_true(w->nphase + 2 < PHASES);
		p.kind = SUM;
		if (adds)
			w->phase[w->nphase++] = p;
		p.kind = WHOLE;
		if (spreads)
			w->phase[w->nphase++] = p;
	}
}

static void add_phases(struct world *w)
{
	for (int i = 0; i < w->work->njob; i++) {
		const struct ranks_job *j = &w->work->job[i];
		if (j->kind == RANKS_JOIN)
			w->phase[w->nphase++] = (struct phase){ROWS, 0, 0, 0, 0, j->size};
		else
			add_rounds(w, j);
	}
	w->phase[w->nphase++] = (struct phase){STOP, 0, 0, 0, 0, 0};
}

/* How many messages each rank gets in each phase. */
static void count_wanted(struct world *w)
{
	for (int p = 0; p < w->nphase; p++) {
		double bytes;
		int all = 0; /* as many as it would get from itself, too */
		for (int k = 0; k < w->n; k++)
			all += messages(w, &w->phase[p], k, 0, &bytes);
		for (int r = 0; r < w->n; r++) {
			struct simulated *to = &w->rank[r];
			if (w->phase[p].kind == SUM)
				to->wants[p] = messages(w, &w->phase[p], r, r, &bytes)
						       ? (int)(w->roots - to->roots)
						       : 0;
			else
				to->wants[p] = all - messages(w, &w->phase[p], r, r, &bytes);
		}
	}
}

static double simulate(const struct ranks_work *work, const struct ranks_link *link, int n)
{
	struct world w = {.work = work,
		.link = link,
		.n = n,
		.rank = calloc((size_t)n, sizeof *w.rank),
		.heap = calloc((size_t)n, sizeof *w.heap)};
	assert_true(w.rank && w.heap);
	for (int r = 0; r < n; r++) {
		const int64_t from = work->shards * r / n, to = work->shards * (r + 1) / n;
		w.rank[r].shards = to - from;
		w.rank[r].roots = whole_nodes(0, work->shards, from, to);
		w.roots += w.rank[r].roots;
	}
	if (n > 1)
		add_phases(&w);
	count_wanted(&w);
	for (int r = 0; r < n; r++) {
		const double busy = (double)w.rank[r].shards * work->each + work->last;
		w.rank[r].to = 1;
		if (w.nphase)
			go_on(&w, r, busy);
		else
			w.end = fmax(w.end, busy);
	}
	while (w.nheap > 0) {
		const int who = w.heap[0];
		struct simulated *r = &w.rank[who];
		const int to = (who + r->to) % n, phase = r->phase;
		double bytes;
		messages(&w, &w.phase[phase], who, to, &bytes);
		w.heap[0] = w.heap[--w.nheap];
		if (w.nheap)
			sink(&w, 0);
		arrive(&w, who, to, phase, bytes);
		go_on(&w, who, r->time);
	}
	for (int r = 0; r < n; r++)
		assert_int_equal(w.rank[r].phase, w.nphase);
	free(w.rank);
	free(w.heap);
	return w.end;
}

/* --- What is compared --- */

static double worst;

/* The prediction is within this share of what the simulation took. */
static const double BOUND = 0.07;

static void compare(const struct ranks_work *work, const struct ranks_link *link, int n)
{
	struct ranks_cost c;
	ranks_cost(work, link, n, &c);
	const double sim = simulate(work, link, n), said = c.compute + c.communication;
	const double off = fabs(said - sim) / sim;
	worst = fmax(worst, off);
	if (off > BOUND)
		fail_msg("%d ranks, %lld shards: %g us predicted, %g us simulated (%.1f %%)", n,
			(long long)work->shards, said, sim, 100 * off);
}

static const struct ranks_link fast = {25e3, 2, 0.3}, slow = {125, 50, 5}, plain = {1e3, 2, 2};

/* Sums of one round and of several, of fewer numbers than ranks, in floats and doubles; of some the
 * pieces alone, and those of what is made of them; rows. */
static void few_ranks(void **state)
{
	(void)state;
	struct ranks_job job[] = {{RANKS_SUM, 100000, 4, 1 << 18}, {RANKS_SCATTER, 7, 4, 4096},
		{RANKS_SUM, 30000, 8, 1 << 17}, {RANKS_JOIN, 0, 5000, 0},
		{RANKS_SCATTER, 50000, 4, 1 << 17}, {RANKS_SUM, 1, 8, 4096},
		{RANKS_GATHER, 50000, 4, 0}, {RANKS_JOIN, 0, 64, 0}, {RANKS_GATHER, 7, 4, 0}};
	const struct ranks_link *link[] = {&fast, &slow, &plain};
	for (int l = 0; l < 3; l++)
		for (int n = 1; n <= 16; n++)
			for (int64_t shards = n; shards <= 4 * n; shards += n > 4 ? n / 2 - 1 : 1)
				for (int busy = 0; busy < 2; busy++) {
					const struct ranks_work work = {.shards = shards,
						.each = 700.0 * busy,
						.last = 300.0 * busy,
						.bytes = 40e3,
						.njob = sizeof job / sizeof *job,
						.job = job};
					compare(&work, link[l], n);
				}
}

static void many_ranks(void **state)
{
	(void)state;
	struct ranks_job job[] = {{RANKS_SUM, 50000, 4, 1 << 20},
		{RANKS_SCATTER, 30000, 4, 1 << 20}, {RANKS_GATHER, 30000, 4, 0}};
	static const int ranks[] = {100, 255, 256, 512};
	for (int i = 0; i < 4; i++)
		for (int64_t shards = ranks[i]; shards <= 2 * ranks[i];
			shards += ranks[i] / 2 + 1) {
			const struct ranks_work work = {.shards = shards,
				.each = 100,
				.last = 50,
				.bytes = 40e3,
				.njob = 3,
				.job = job};
			compare(&work, &fast, ranks[i]);
		}
}

/* Of so few numbers that a gradient is at few ranks: else it would be 50 million messages. */
static void most_ranks(void **state)
{
	(void)state;
	struct ranks_job job[] = {{RANKS_SUM, 64, 4, 4096 * 4096},
		{RANKS_SCATTER, 16, 4, 4096 * 4096}, {RANKS_GATHER, 16, 4, 0}};
	const struct ranks_work work = {
		.shards = 4096, .each = 1000, .last = 50, .bytes = 40e3, .njob = 3, .job = job};
	compare(&work, &fast, 4096);
	compare(&work, &plain, 1024);
	print_message("largest difference: %.2f %%\n", 100 * worst);
}

/* 1,000 numbers each way take 1 + 4,000 us twice: what begins while another is on its way follows
 * it, and who waits adds what is left. Work is 10,000 us. */
static const struct ranks_link unhurried = {1, 1, 0};
static const double way = 1 + 4000, stop = 1 + 8;

static void hidden(void **state)
{
	(void)state;
	struct ranks_job job[] = {{RANKS_SUM, 2000, 4, 1 << 14}, {RANKS_SUM, 2000, 4, 1 << 14}};
	double done[2];
	struct ranks_event event[] = {{.at = 1000, .of = 0}, {.at = 3000, .of = 1},
		{.at = 7000, .of = 0, .waits = true}, {.at = 10000, .of = 1, .waits = true}};
	struct ranks_work work = {.shards = 2,
		.each = 10000,
		.bytes = 1e9,
		.njob = 2,
		.job = job,
		.nevent = 4,
		.event = event,
		.done = done};
	struct ranks_cost c, plain_cost;
	ranks_cost(&work, &unhurried, 2, &c);
	assert_true(fabs(c.communication - 4 * way - stop) < 1e-6);
	/* the first is there at 9,002: 2,002 are waited for; the second at 17,004, when 12,002 is
	 */
	assert_true(fabs(c.exposed - 2002 - (17004 - 12002) - stop) < 1e-6);
	work.nevent = 0;
	ranks_cost(&work, &unhurried, 2, &plain_cost);
	assert_true(fabs(plain_cost.exposed - c.communication) < 1e-6);
	assert_true(plain_cost.messages == c.messages && plain_cost.bytes == c.bytes);
}

/* Of pieces one way is the sum, and the other begins when they are updated and may go on until the
 * step's end. As many messages and bytes as of sums for all. */
static void hidden_pieces(void **state)
{
	(void)state;
	struct ranks_job job[] = {{RANKS_SCATTER, 2000, 4, 1 << 14}, {RANKS_GATHER, 2000, 4, 0}};
	double done[2];
	struct ranks_event event[] = {{.at = 1000, .of = 0}, {.at = 4500, .of = 0, .waits = true},
		{.at = 5000, .of = 1}, {.at = 10000, .of = 1, .waits = true}};
	struct ranks_work work = {.shards = 2,
		.each = 10000,
		.bytes = 1e9,
		.njob = 2,
		.job = job,
		.nevent = 4,
		.event = event,
		.done = done};
	struct ranks_cost c, whole;
	ranks_cost(&work, &unhurried, 2, &c);
	assert_true(fabs(c.communication - 2 * way - stop) < 1e-6);
	/* the piece is there at 5,001: 501 are waited for; the whole at 9,502, when 10,501 is */
	assert_true(fabs(c.exposed - 501 - stop) < 1e-6);
	job[0].kind = RANKS_SUM;
	work.njob = 1;
	work.nevent = 0;
	ranks_cost(&work, &unhurried, 2, &whole);
	assert_true(whole.messages == c.messages && whole.bytes == c.bytes);
}

/* Pieces of a parameter that each shard fetches, from 1,000 on, and reads at 3,000: they take 1 +
 * 4,000, of which 2,001 are waited for, three times. */
static void fetched_in_each(void **state)
{
	(void)state;
	struct ranks_job job[] = {{RANKS_GATHER, 2000, 4, 0}};
	double done[1];
	struct ranks_event event[] = {{.at = 1000, .at_each = 1000, .each = true},
		{.at = 3000, .at_each = 3000, .each = true, .waits = true}};
	struct ranks_work work = {.shards = 6,
		.each = 10000,
		.bytes = 1e9,
		.njob = 1,
		.job = job,
		.nevent = 2,
		.event = event,
		.done = done};
	struct ranks_cost c;
	ranks_cost(&work, &unhurried, 2, &c);
	assert_true(fabs(c.communication - 3 * way - stop) < 1e-6);
	assert_true(fabs(c.exposed - 3 * 2001 - stop) < 1e-6);
	assert_true(fabs(c.compute - 30000) < 1e-6);
}

/* Rows of 8 bytes that begin at 2,000 take 1 + 8 us beside the sum that is on its way from 1,000
 * on, and is there, in 4,002 us, when it is waited for. */
static void rows_pass(void **state)
{
	(void)state;
	const struct ranks_link link = {.bytes = 1, .latency = 1, .message = 0};
	struct ranks_job job[] = {{RANKS_SUM, 1000, 4, 8000}, {.kind = RANKS_JOIN, .size = 8}};
	double done[2];
	struct ranks_event event[4] = {{.at = 1000, .of = 0}, {.at = 2000, .of = 1},
		{.at = 2000, .of = 1, .waits = true}, {.at = 10000, .of = 0, .waits = true}};
	struct ranks_work work = {.shards = 2,
		.each = 10000,
		.bytes = 1e9,
		.njob = 2,
		.job = job,
		.nevent = 4,
		.event = event,
		.done = done};
	struct ranks_cost c;
	ranks_cost(&work, &link, 2, &c);
	const double each = 2 * (1 + 2000), vote = 1 + 8;
	assert_true(fabs(c.communication - each - 9 - vote) < 1e-6);
	assert_true(fabs(c.exposed - 9 - vote) < 1e-6);
}

static void links(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		double bytes, latency, message; /* bytes 0: refused */
	} link[] = {{"25GB/s,2us", 25e3, 2, 2}, {"100Gbit/s,1500ns,0.5us", 12.5e3, 1.5, 0.5},
		{"1MiB/s,1ms", 1.048576, 1000, 1000}, {"25GB/s", 0, 0, 0}, {"25,2us", 0, 0, 0},
		{"25GB/s,2", 0, 0, 0}, {"0GB/s,2us", 0, 0, 0}, {"-1GB/s,2us", 0, 0, 0},
		{"25GB/s,-2us", 0, 0, 0}, {"nanGB/s,2us", 0, 0, 0}, {"infGB/s,2us", 0, 0, 0},
		{"25GB/s,2us,", 0, 0, 0}, {"25GB/s,2us,1us,1us", 0, 0, 0}, {"", 0, 0, 0},
		{"GB/s,us", 0, 0, 0}, {"25GB/sx,2us", 0, 0, 0}};
	for (size_t i = 0; i < sizeof link / sizeof *link; i++) {
		struct ranks_link got;
		struct diag d = {0};
		const enum status st = ranks_link_parse(link[i].text, &got, &d);
		assert_int_equal(st, link[i].bytes > 0 ? ST_OK : ST_USAGE);
		if (st == ST_OK) {
			assert_true(fabs(got.bytes / link[i].bytes - 1) < 1e-12);
			assert_true(fabs(got.latency / link[i].latency - 1) < 1e-12);
			assert_true(fabs(got.message / link[i].message - 1) < 1e-12);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(links), cmocka_unit_test(hidden),
		cmocka_unit_test(hidden_pieces), cmocka_unit_test(fetched_in_each),
		cmocka_unit_test(rows_pass), cmocka_unit_test(few_ranks),
		cmocka_unit_test(many_ranks), cmocka_unit_test(most_ranks)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
