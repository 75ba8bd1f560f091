/* Somebody who looks on at long work, and may end it. */
#ifndef STINT_BASE_ONLOOKER_H
#define STINT_BASE_ONLOOKER_H

#include "base/base.h"

/* Zero-initialise, then set the functions and `user`; any may be NULL. */
struct onlooker {
	/* What is being done now: "planning for the smallest budget". Lasts until the next call, or
	 * the end of the work. */
	void (*now)(void *user, const char *what);
	/* How far that is, in words that last for the call: "1.018 x one pass, gap at most 0.2 %".
	 * `done`: of the work that it may take at most, 0 to 1; negative: not known. */
	void (*far)(void *user, const char *how, double done);
	/* From now on (or no longer) ending the work early leaves something to go on with: where
	 * this is set, who stops it then gets that and not ST_INTERRUPTED. */
	void (*keeps)(void *user, bool has);
	/* Whether to stop. Asked from the thread that works, at most some fifty times a second;
	 * once it has said so, it is not asked again. */
	bool (*stop)(void *user);
	void *user;
	bool stopped;
	bool keeping, taken; /* inside keeps; something was taken as it was when it was stopped */
	double asked;        /* when, in seconds */
};

/* `w` may be NULL: nobody looks on. */
void onlooker_now(const struct onlooker *w, const char *what);
void onlooker_far(const struct onlooker *w, double done, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* Around work that leaves something when it is stopped. The end forgets that it was. */
void onlooker_keep(struct onlooker *w);
void onlooker_take(struct onlooker *w);
/* Whether to stop. Cheap. Work that stops early leaves something whole, if poor: nobody uses it,
 * as onlooker_check says that it is of no use. */
bool onlooker_stops(struct onlooker *w);
/* ST_INTERRUPTED, with a message, once it was asked for and nothing is kept; else ST_OK. */
enum status onlooker_check(struct onlooker *w, struct diag *d);

#endif
