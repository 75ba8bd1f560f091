/* See fake_streams.h.
 *
 * A program is a set of lanes, each a list of work done in order; a wait in one lane is for so many
 * turns of another. The device's streams are one program, whose work is dropped when it is done;
 * a graph is another, which is gone through in each replay. Two orders are tried: lanes beside the
 * main one as late as the waits allow, and, with fake.early, as early. */
#include "fake_streams.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "runtime/stint_gpu_api.h"

#define GPU_PROTOTYPE(type, name, parameters) type name parameters;
GPU_DRIVER(GPU_PROTOTYPE)

enum {
	LANES = 4 * GPU_STREAMS,
	UNJOINED = 904,
	ISOLATION = 905,
	CAPTURED = 907,
	NOT_READY = GPU_CU_NOT_READY
};

struct lane {
	struct fake_work *first, **end, *next; /* next: to be done */
	size_t given, ran;
};

struct program {
	struct lane lane[LANES];
	size_t nodes;
	int origin; /* of a graph: the lane that was recorded */
	int serial; /* of a recording; 0: the streams themselves */
};

struct stream {
	int lane;
	struct program *into; /* being recorded */
};

struct event {
	struct program *of; /* NULL: never recorded */
	int lane, serial;
	size_t ticket;
	struct timespec at; /* when its turn came, outside of a recording */
};

static struct program device;
static int taken[LANES], serial;

static void lane_add(struct lane *l, const struct fake_work *w)
{
	struct fake_work *copy = malloc(sizeof *copy);
	*copy = *w;
	copy->next = NULL;
	if (!l->first)
		l->end = &l->first;
	*l->end = copy;
	l->end = &copy->next;
	if (!l->next)
		l->next = copy;
	l->given++;
}

/* --- Running --- */

static void replay(struct program *graph);
static void run_to(struct program *p, int lane, size_t ticket);

static void run_one(struct program *p, int lane)
{
	struct lane *l = &p->lane[lane];
	struct fake_work *w = l->next;
	if (w->op == FAKE_WAIT)
		run_to(p, w->lane, w->ticket);
	else if (w->op == FAKE_GRAPH)
		replay(w->graph);
	else
		fake_run(w);
	l->next = w->next;
	l->ran++;
	if (p == &device) {
		l->first = w->next;
		free(w->kept);
		free(w);
	}
}

static void run_to(struct program *p, int lane, size_t ticket)
{
	while (p->lane[lane].ran < ticket && !fake.hung)
		run_one(p, lane);
}

static int is_main(const struct program *p, int lane)
{
	return p->serial ? lane == p->origin : lane % GPU_STREAMS == 0;
}

/* What nothing holds back, beside the main lane. */
static void run_early(struct program *p)
{
	for (int again = 1; fake.early && again;) {
		again = 0;
		for (int i = 0; i < LANES; i++)
			while (!fake.hung && !is_main(p, i) && p->lane[i].next) {
				const struct fake_work *w = p->lane[i].next;
				if (w->op == FAKE_WAIT && p->lane[w->lane].ran < w->ticket)
					break;
				run_one(p, i);
				again = 1;
			}
	}
}

static void replay(struct program *graph)
{
	for (int i = 0; i < LANES; i++) {
		graph->lane[i].next = graph->lane[i].first;
		graph->lane[i].ran = 0;
	}
	struct lane *l = &graph->lane[graph->origin];
	while (l->next && !fake.hung) {
		run_early(graph);
		if (!fake.hung)
			run_one(graph, graph->origin);
	}
}

int fake_give(void *stream, const struct fake_work *w)
{
	struct stream *s = stream;
	struct program *p = s->into ? s->into : &device;
	lane_add(&p->lane[s->lane], w);
	p->nodes += w->op != FAKE_WAIT;
	if (p == &device)
		run_early(p);
	return 0;
}

int fake_recording(void *stream)
{
	return ((struct stream *)stream)->into != NULL;
}

void fake_finish(void)
{
	for (int i = 0; i < LANES; i++)
		run_to(&device, i, device.lane[i].given);
}

void fake_finish_stream(void *stream)
{
	const int lane = ((struct stream *)stream)->lane;
	run_to(&device, lane, device.lane[lane].given);
}

void fake_not_hung(const char *who)
{
	if (!fake.hung)
		return;
	fprintf(stderr, "stand-in for the driver: %s: a wait that never ends\n", who);
	abort();
}

static void works_free(struct fake_work *first)
{
	for (struct fake_work *w = first, *next; w; w = next) {
		next = w->next;
		free(w->kept);
		free(w);
	}
}

void fake_drop(void)
{
	for (int i = 0; i < LANES; i++) {
		struct lane *l = &device.lane[i];
		works_free(l->first);
		l->first = l->next = NULL;
		l->ran = l->given;
	}
	fake.hung = 0;
}

fake_call_function fake_call;

/* What other stand-ins put on a stream: they have failures of their own. */
int fake_call(void *stream, void (*work)(void *), const void *data, size_t bytes)
{
	struct fake_work w = {.op = FAKE_WORK, .call = work};
	if (bytes > FAKE_CALL)
		return FAKE_INVALID;
	memcpy(w.data, data, bytes);
	return fake_give(stream, &w);
}

/* --- Streams --- */

static void program_drop(struct program *p)
{
	for (int i = 0; i < LANES; i++)
		works_free(p->lane[i].first);
	fake_release(p);
}

static struct stream *streams[LANES];

/* Nobody records into p any more. */
static void leave(const struct program *p)
{
	for (int i = 0; i < LANES; i++)
		if (streams[i] && streams[i]->into == p)
			streams[i]->into = NULL;
}

int cuStreamCreate(void **out, unsigned flags)
{
	const int error = flags == GPU_CU_STREAM_ALONE ? fake_may_in_context() : FAKE_INVALID;
	int lane = 0;
	while (lane < LANES && taken[lane])
		lane++;
	if (error || lane == LANES)
		return error ? error : FAKE_INVALID;
	struct stream *s = *out = fake_object(sizeof *s);
	s->lane = lane;
	taken[lane] = 1;
	streams[lane] = s;
	return 0;
}

int cuStreamDestroy_v2(void *stream)
{
	struct stream *s = stream;
	struct program *p = s->into;
	if (p && p->origin == s->lane) { /* a recording that nobody ended */
		leave(p);
		program_drop(p);
	}
	s->into = NULL;
	fake_finish_stream(s);
	taken[s->lane] = 0;
	streams[s->lane] = NULL;
	return fake_release(stream);
}

int cuStreamSynchronize(void *stream)
{
	const int error = fake_recording(stream) ? FAKE_INVALID : fake_may_in_context();
	if (error)
		return error;
	fake_finish_stream(stream);
	fake_not_hung("cuStreamSynchronize");
	return 0;
}

int cuStreamQuery(void *stream)
{
	const int error = fake_recording(stream) ? FAKE_INVALID : fake_may_in_context();
	if (error)
		return error;
	fake_finish_stream(stream);
	return fake.hung ? NOT_READY : 0;
}

/* --- Events --- */

int cuEventCreate(void **out, unsigned flags)
{
	const int known = flags == GPU_CU_EVENT_PLAIN || flags == GPU_CU_EVENT_UNTIMED;
	const int error = known ? fake_may_in_context() : FAKE_INVALID;
	if (!error)
		*out = fake_object(sizeof(struct event));
	return error;
}

int cuEventDestroy_v2(void *event)
{
	return fake_release(event);
}

static void mark_time(void *data)
{
	struct event *e;
	memcpy(&e, data, sizeof e);
	clock_gettime(CLOCK_MONOTONIC, &e->at);
}

int cuEventRecord(void *event, void *stream)
{
	struct event *e = event;
	struct stream *s = stream;
	const int error = fake_may_in_context();
	if (error)
		return error;
	if (!s->into) {
		struct fake_work w = {.op = FAKE_WORK, .call = mark_time};
		memcpy(w.data, &e, sizeof e);
		fake_give(stream, &w);
	}
	e->of = s->into ? s->into : &device;
	e->lane = s->lane;
	e->serial = e->of->serial;
	e->ticket = e->of->lane[s->lane].given;
	return 0;
}

int cuEventSynchronize(void *event)
{
	struct event *e = event;
	const int error = e->serial ? CAPTURED : fake_may_in_context();
	if (error || !e->of)
		return error;
	run_to(&device, e->lane, e->ticket);
	fake_not_hung("cuEventSynchronize");
	return 0;
}

int cuStreamWaitEvent(void *stream, void *event, unsigned flags)
{
	struct stream *s = stream;
	const struct event *e = event;
	const struct fake_work w = {.op = FAKE_WAIT, .lane = e->lane, .ticket = e->ticket};
	int error = flags || !e->of ? FAKE_INVALID : fake_may_in_context();
	if (!error && s->into && s->into->serial != e->serial)
		error = ISOLATION; /* a recording waits for nothing outside of it */
	if (!error && e->serial && !s->into) {
		if (e->serial != serial) /* of a recording that has ended */
			return CAPTURED;
		s->into = e->of;
	}
	return error ? error : fake_give(stream, &w);
}

int cuEventElapsedTime(float *ms, void *from, void *to)
{
	const struct event *a = from, *b = to;
	const int error = a->serial || b->serial ? FAKE_INVALID : fake_may_in_context();
	*ms = (float)((double)(b->at.tv_sec - a->at.tv_sec) * 1e3 +
		      (double)(b->at.tv_nsec - a->at.tv_nsec) / 1e6);
	if (!error &&
		(device.lane[a->lane].ran < a->ticket || device.lane[b->lane].ran < b->ticket))
		return NOT_READY;
	return error;
}

/* --- Graphs --- */

int cuStreamBeginCapture_v2(void *stream, int mode)
{
	struct stream *s = stream;
	const int error = s->into || mode != GPU_CU_CAPTURE_RELAXED ? FAKE_INVALID
								    : fake_may_in_context();
	if (error)
		return error;
	s->into = fake_object(sizeof *s->into);
	s->into->origin = s->lane;
	s->into->serial = ++serial;
	return 0;
}

/* How far each lane is waited for, from the end of `lane` backwards. */
static void reach(const struct program *p, int lane, size_t ticket, size_t reached[LANES])
{
	size_t n = 0;
	if (reached[lane] >= ticket)
		return;
	reached[lane] = ticket;
	for (const struct fake_work *w = p->lane[lane].first; w && n < ticket; w = w->next, n++)
		if (w->op == FAKE_WAIT)
			reach(p, w->lane, w->ticket, reached);
}

static int joined(const struct program *p)
{
	size_t reached[LANES] = {0};
	reach(p, p->origin, p->lane[p->origin].given, reached);
	for (int i = 0; i < LANES; i++)
		if (reached[i] < p->lane[i].given)
			return 0;
	return 1;
}

int cuStreamEndCapture(void *stream, void **graph)
{
	struct stream *s = stream;
	struct program *p = s->into;
	int error = p && p->origin == s->lane ? fake_may_in_context() : FAKE_INVALID;
	*graph = NULL;
	if (!p)
		return error;
	leave(p);
	serial++; /* events of this recording mean nothing any more */
	if (!error && !joined(p))
		error = UNJOINED;
	if (error)
		program_drop(p);
	else
		*graph = p;
	return error;
}

int cuGraphGetNodes(void *graph, void **nodes, size_t *count)
{
	*count = ((struct program *)graph)->nodes;
	return nodes ? FAKE_INVALID : fake_may_in_context();
}

int cuGraphInstantiateWithFlags(void **out, void *graph, unsigned long long flags)
{
	const int error = flags ? FAKE_INVALID : fake_may_in_context();
	const struct program *from = graph;
	if (error)
		return error;
	struct program *p = *out = fake_object(sizeof *p);
	p->origin = from->origin;
	p->serial = from->serial;
	for (int i = 0; i < LANES; i++)
		for (const struct fake_work *w = from->lane[i].first; w; w = w->next)
			lane_add(&p->lane[i], w);
	fake.used += fake.unit;
	return 0;
}

int cuGraphUpload(void *exec, void *stream)
{
	(void)exec, (void)stream;
	return fake_may_in_context();
}

int cuGraphLaunch(void *exec, void *stream)
{
	const struct fake_work w = {.op = FAKE_GRAPH, .graph = exec};
	const int error = fake_recording(stream) ? FAKE_INVALID : fake_may_in_context();
	return error ? error : fake_give(stream, &w);
}

int cuGraphExecDestroy(void *exec)
{
	fake_finish();
	fake.used -= fake.unit;
	program_drop(exec);
	return 0;
}

int cuGraphDestroy(void *graph)
{
	program_drop(graph);
	return 0;
}
