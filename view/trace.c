/* A plan as a trace of events:
 * https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU
 * ("Trace Event Format"), in its object form. */
#include "base/safe.h"
#include "view/view.h"

#include <inttypes.h>
#include <stdlib.h>

/* Tracks, by their thread number in the trace. */
enum track { FORWARD = 1, BACKWARD, UPDATE, RECOMPUTE, COPY, TRACKS };

struct tracer {
	struct text *out;
	const struct problem *p;
	const struct plan *plan;
	bool copies;   /* it moves tensors to the host and back */
	double scale;  /* microseconds in a unit of cost */
	int *first;    /* by op: the step of its first run */
	int64_t *live; /* by step */
	int64_t *top;  /* by step: the end of the highest buffer */
	int *next;     /* by step: this or a later step whose top is not known yet */
};

/* The scale that makes a pass of unknown unit a second long. */
static double scale_of(const struct problem *p, const struct plan *plan)
{
	if (p->costs) /* microseconds */
		return 1;
	double pass = problem_one_pass(p);
	if (!(pass > 0))
		pass = plan->cost_total;
	return pass > 0 ? 1e6 / pass : 1;
}

struct end {
	int64_t bytes;
	int buffer;
};

static int highest_first(const void *x, const void *y)
{
	const struct end *a = x, *b = y;
	return a->bytes != b->bytes ? (a->bytes < b->bytes) - (a->bytes > b->bytes)
				    : (a->buffer > b->buffer) - (a->buffer < b->buffer);
}

/* The first step at or after s that no buffer has reached. */
static int unreached(int *next, int s)
{
	while (next[s] != s) {
		next[s] = next[next[s]];
		s = next[s];
	}
	return s;
}

/* From the highest buffer down, each gives its end to the steps of its life that have none. */
static enum status find_tops(struct tracer *r, struct arena *a, struct diag *d)
{
	const struct plan *plan = r->plan;
	struct end *end = ARENA_ARRAY(a, struct end, plan->nbuffer);
	r->top = ARENA_ARRAY(a, int64_t, plan->nstep + 1);
	r->next = ARENA_ARRAY(a, int, plan->nstep + 1);
	if (!end || !r->top || !r->next)
		return diag_nomem(d);
	for (int s = 0; s <= plan->nstep; s++)
		r->next[s] = s;
	for (int i = 0; i < plan->nbuffer; i++)
		end[i] = (struct end){plan->buffer[i].offset + plan->buffer[i].bytes, i};
	qsort(end, (size_t)plan->nbuffer, sizeof *end, highest_first);
	for (int i = 0; i < plan->nbuffer; i++) {
		const struct plan_buffer *b = &plan->buffer[end[i].buffer];
		for (int s = unreached(r->next, b->first_step); s <= b->last_step;
			s = unreached(r->next, s)) {
			r->top[s] = end[i].bytes;
			r->next[s] = s + 1;
		}
	}
	return ST_OK;
}

static void put_track(struct text *t, enum track track)
{
	static const char *const name[TRACKS] = {
		"", "forward", "backward", "update", "recompute", "copy"};
	text_add(t,
		",\n{\"ph\":\"M\",\"pid\":1,\"tid\":%d,\"name\":\"thread_name\",\"args\":{\"name\":"
		"\"%s\"}}",
		track, name[track]);
	text_add(t,
		",\n{\"ph\":\"M\",\"pid\":1,\"tid\":%d,\"name\":\"thread_sort_index\",\"args\":"
		"{\"sort_index\":%d}}",
		track, track);
}

static void put_head(struct tracer *r)
{
	struct text *t = r->out;
	text_puts(t, "{\"displayTimeUnit\":\"ms\",\n\"otherData\":{\"graph\":");
	text_json_shown(t, r->p->name);
	text_puts(t, ",\"time\":");
	if (r->p->costs) {
		text_puts(t, "\"predicted\",\"costs\":");
		text_json_shown(t, r->p->costs);
	} else {
		text_puts(t, "\"costs of unknown unit: one pass is shown as one second\"");
	}
	text_add(
		t, ",\"arena_bytes\":\"%" PRId64 "\"},\n\"traceEvents\":[\n", r->plan->arena_bytes);
	text_puts(t, "{\"ph\":\"M\",\"pid\":1,\"name\":\"process_name\",\"args\":{\"name\":");
	text_json_shown(t, r->p->name);
	text_puts(t, "}}");
	for (enum track k = FORWARD; k < TRACKS; k++)
		if (k != COPY || r->copies)
			put_track(t, k);
}

static void put_counter(struct text *t, const char *name, double at, int64_t bytes)
{
	text_add(t,
		",\n{\"ph\":\"C\",\"pid\":1,\"name\":\"%s\",\"ts\":%.17g,\"args\":{\"bytes\":"
		"%" PRId64 "}}",
		name, at, bytes);
}

static void put_step(struct tracer *r, int s, double at)
{
	static const enum track of_phase[] = {FORWARD, BACKWARD, UPDATE};
	const struct plan_step *st = &r->plan->step[s];
	const struct problem_op *op = &r->p->op[st->op];
	const struct problem_choice *w = &op->choice[st->choice];
	struct text *t = r->out;
	bool again = plan_step_again(r->p, st);
	text_add(t, ",\n{\"ph\":\"X\",\"pid\":1,\"tid\":%d,\"ts\":%.17g,\"dur\":%.17g,\"name\":",
		problem_op_transfers(op) ? COPY
		: again                  ? RECOMPUTE
					 : of_phase[op->phase],
		at, w->cost * r->scale);
	text_json_shown(t, op->name);
	text_add(t, ",\"cat\":\"%s\",\"args\":{\"step\":%d,\"op\":%" PRId64 ",\"cost\":%.17g",
		phase_name[op->phase], s, op->id, w->cost);
	if (w->kernel) {
		text_puts(t, ",\"kernel\":");
		text_json_shown(t, w->kernel);
	}
	if (again)
		text_add(t, ",\"recompute of step\":%d", r->first[plan_step_op(r->p, st)]);
	if (op->has_choices)
		text_add(t, ",\"choice\":%d", st->choice);
	if (op->when) {
		text_puts(t, ",\"when\":");
		text_json_shown(t, r->p->tensor[op->when - 1].name);
	}
	text_puts(t, "}}");
	put_counter(t, "live bytes", at, r->live[s]);
	put_counter(t, "arena top", at, r->top[s]);
}

enum status view_trace(struct text *out, struct arena *a, const struct problem *p,
	const struct plan *plan, struct diag *d)
{
	struct tracer r = {.out = out, .p = p, .plan = plan, .scale = scale_of(p, plan)};
	struct plan_facts facts;
	double at = 0;
	TRY(plan_facts_make(a, p, plan, &facts, d));
	TRY(find_tops(&r, a, d));
	r.live = facts.live;
	r.copies = facts.offloads > 0;
	r.first = ARENA_ARRAY(a, int, p->nop);
	if (!r.first)
		return diag_nomem(d);
	put_head(&r);
	for (int s = 0; s < plan->nstep; s++) {
		const struct plan_step *st = &plan->step[s];
		if (st->run == 0)
			r.first[st->op] = s;
		put_step(&r, s, at);
		at += p->op[st->op].choice[st->choice].cost * r.scale;
	}
	if (plan->nstep) { /* where the last step ends */
		put_counter(out, "live bytes", at, r.live[plan->nstep - 1]);
		put_counter(out, "arena top", at, r.top[plan->nstep - 1]);
	}
	text_puts(out, "\n]}\n");
	return out->failed ? diag_nomem(d) : ST_OK;
}
