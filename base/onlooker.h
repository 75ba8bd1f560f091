/* Somebody who looks on at long work, and may end it. */
#ifndef STINT_BASE_ONLOOKER_H
#define STINT_BASE_ONLOOKER_H

#include "base/base.h"

/* Zero-initialise, then set the first three; any may be NULL. */
struct onlooker {
	/* What is being done now: "planning for the smallest budget". Lasts until the next call, or
	 * the end of the work. */
	void (*now)(void *user, const char *what);
	/* Whether to stop. Asked from the thread that works, at most some fifty times a second;
	 * once it has said so, it is not asked again. */
	bool (*stop)(void *user);
	void *user;
	bool stopped;
	double asked; /* when, in seconds */
};

/* `w` may be NULL: nobody looks on. */
void onlooker_now(const struct onlooker *w, const char *what);
/* Whether to stop. Cheap. Work that stops early leaves something whole, if poor: nobody uses it,
 * as onlooker_check says that it is of no use. */
bool onlooker_stops(struct onlooker *w);
/* ST_INTERRUPTED, with a message, once it was asked for; else ST_OK. */
enum status onlooker_check(struct onlooker *w, struct diag *d);

#endif
