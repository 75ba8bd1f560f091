#include "base/onlooker.h"

#include <time.h>

static const double APART = 0.02; /* seconds from one question to the next */

void onlooker_now(const struct onlooker *w, const char *what)
{
	if (w && w->now)
		w->now(w->user, what);
}

bool onlooker_stops(struct onlooker *w)
{
	struct timespec t;
	if (!w || !w->stop || w->stopped)
		return w && w->stopped;
	clock_gettime(CLOCK_MONOTONIC, &t);
	const double now = (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
	if (now - w->asked < APART)
		return false;
	w->asked = now;
	w->stopped = w->stop(w->user);
	return w->stopped;
}

enum status onlooker_check(struct onlooker *w, struct diag *d)
{
	return onlooker_stops(w) ? diag_fail(d, ST_INTERRUPTED, NULL, NULL, "interrupted") : ST_OK;
}
