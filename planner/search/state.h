/* A sequence under edit: runs of ops in slots, the lifetimes of what they make, and the live bytes
 * at every slot, kept up to date as runs come and go. Each edit costs about what it changes, and
 * can be taken back. It agrees with simulate() but for one thing: an update that the rules place
 * (see simulate.c) shares the slot of the op it follows, so that its workspace counts on top of
 * that op's. Private to planner/. */
#ifndef STINT_PLANNER_STATE_H
#define STINT_PLANNER_STATE_H

#include "planner/search/profile.h"
#include "planner/search/solver.h"

/* Keys order runs: twice the slot, and one more for updates that follow what runs there. */
struct run {
	int op; /* -1 for the end, which reads what is kept */
	int key;
	int next, prev; /* of the op's runs; -1 at the ends */
	int life, use;  /* the first of its outputs' lifetimes, of its reads; -1 when none */
	int64_t saved;  /* units that its in-place pairs save */
};

/* Lifetime t < m of tensor t is an empty one from before the start: reads of it find nothing. */
struct lifetime {
	int tensor, run; /* run -1: not in use, or the empty one */
	int key, end;    /* of the run that makes it, of its last read (or `key`) */
	int next, prev;  /* of the tensor's lifetimes, in order */
	int sibling;     /* the next output of the run */
	int use, nuse;   /* its first read */
};

struct use {
	int life, run;
	int next, prev; /* of the lifetime's reads, in no order */
	int sibling;    /* the next read of the run */
};

enum { STATE_GAP = 4 };    /* slots per run, when they are spread anew */
enum { STATE_LIST = 256 }; /* lists up to this length are short */

struct pool {
	int n, cap, free; /* used so far, room, first free one */
};

struct edit {
	enum { EDIT_PUT, EDIT_TAKE, EDIT_WAY } kind;
	int op, slot; /* EDIT_WAY: the way before */
	int after;    /* EDIT_TAKE: the run before it in the op's list */
};

struct state {
	const struct inst *in;
	int64_t target; /* bytes */
	int64_t unit;   /* bytes: the alignment, or more where sums would be too large */
	int64_t *size;  /* [m] of tensors, in units, rounded up */
	int *way;       /* [n] */
	int *count;     /* [n] runs of each op */
	int *first;     /* [n] one of each op's runs, -1 when none */
	int *last;      /* [m] each tensor's latest lifetime */
	int *at;        /* [nslot] the run there, or -1 */
	int nslot, cap_slot;
	struct run *run;
	struct lifetime *life;
	struct use *use;
	struct pool runs, lives, uses;
	int end;      /* the run that reads what is kept */
	int *updates; /* [n] the run of each placed update */
	int bad; /* reads that find nothing, ops that do not run or run too often, late reads */
	double cost;
	struct profile over; /* units above the target */
	struct edit *log;
	int nlog, cap_log;
	int *suspect, nsuspect, cap_suspect; /* runs that may have lost their last reader */
	int spreads;                         /* how often slots got new numbers */
	bool loading;
	bool nomem;   /* out of memory: edits do nothing until the next load */
	double *work; /* counts what is done, about 10 ns a unit */
	/* fixed tables */
	int *follow_at, *follow; /* placed updates that read what an op makes, or replace a resident
				    that it reads; listed order */
	int *guard_at, *guard;   /* residents with a killer that is not placed, by op concerned */
	int *reader_at, *reader; /* ops that read a resident, in some way */
	int *killer;             /* [m] the op that replaces a resident, or -1 */
	bool *late;              /* [m] read after it was replaced */
	bool *pairs;             /* [n] has in-place pairs in some way */
	/* scratch */
	int *heap, nheap; /* updates whose place is to be found anew */
	bool *pending;    /* [n] is among them */
	bool *paired;     /* [m] false between calls */
};

bool state_init(struct state *s, struct arena *a, const struct inst *in, double *work);
void state_free(struct state *s);

/* Start from a sequence; the log is empty then. False when out of memory or when the sequence
 * cannot run. */
bool state_load(struct state *s, const struct seq *q, const int *way, int64_t target);
bool state_store(const struct state *s, struct seq *q);
/* Another target: what is above it is counted anew. */
void state_aim(struct state *s, int64_t target);

/* --- For the files of the state only. --- */

/* What is above the target, counted anew from the lifetimes. */
bool state_measure(struct state *s);
/* A run without reads and outputs, -1 when out of memory; give it back. */
int state_new_run(struct state *s);
void state_free_run(struct state *s, int run);
/* Start the run's reads and outputs, end them; what its in-place pairs save. */
void state_link(struct state *s, int run);
void state_unlink(struct state *s, int run);
int64_t state_saved(struct state *s, int run);
void state_bind(struct state *s, int run, int tensor);
/* The slot of the op that a placed update follows. */
int state_place(const struct state *s, int update);
/* Place the updates anew that the op's runs decide. */
void state_settle(struct state *s, int op);
/* Where a resident without a placed update is read after it was replaced. */
void state_guard(struct state *s, int resident);

/* Bytes in units, rounded up. */
static inline int64_t state_units(const struct state *s, int64_t bytes)
{
	return bytes / s->unit + (bytes % s->unit != 0);
}

/* Work done on a list; a short one is part of what every edit counts. */
static inline void state_count(const struct state *s, int n)
{
	if (n > STATE_LIST)
		*s->work += 0.5 * n;
}

static inline bool state_fits(struct state *s)
{
	return s->bad == 0 && profile_over(&s->over) == 0;
}

static inline int slot_of(const struct state *s, int run)
{
	return s->run[run].key >> 1;
}

/* Put runs of the listed ops, in this order, between slot `after` (-1: the start) and the next run.
 * Makes room when needed, which moves slots but no numbers of runs. */
bool state_put(struct state *s, int after, const int *op, int n);
void state_take(struct state *s, int run);
void state_set_way(struct state *s, int op, int way);
/* Optional ops that the op needs and that do not run get a run where what they read is first there.
 */
bool state_complete(struct state *s, int op);
/* Delete runs of which nothing is read any more. */
void state_clean(struct state *s);

static inline int state_mark(const struct state *s)
{
	return s->nlog;
}
/* Take back all edits since the mark. Numbers of runs and lifetimes are as they were then. */
void state_undo(struct state *s, int mark);
/* Forget the log: what was done stays. */
void state_commit(struct state *s);

/* The latest lifetime of tensor t that starts before `key`; the empty one when none does. */
static inline int state_life(const struct state *s, int t, int key)
{
	int l = s->last[t];
	while (s->life[l].key >= key)
		l = s->life[l].prev;
	return l;
}

/* The occupied slot before `slot`, -1 when none. */
static inline int slot_before(const struct state *s, int slot)
{
	do
		slot--;
	while (slot >= 0 && s->at[slot] < 0);
	return slot;
}

#endif
