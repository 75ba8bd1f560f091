#include "base/onlooker.h"

#include <stdarg.h>
#include <stdio.h>
#include <time.h>

static const double APART = 0.02; /* seconds from one question to the next */

void onlooker_now(const struct onlooker *w, const char *what)
{
	if (w && w->now)
		w->now(w->user, what);
}

void onlooker_far(const struct onlooker *w, double done, const char *format, ...)
{
	char how[96];
	va_list args;
	if (!w || !w->far)
		return;
	va_start(args, format);
	vsnprintf(how, sizeof how, format, args);
	va_end(args);
	w->far(w->user, how, done);
}

void onlooker_keep(struct onlooker *w)
{
	if (!w || !w->keeps)
		return;
	w->keeping = true;
	w->keeps(w->user, true);
}

void onlooker_take(struct onlooker *w)
{
	if (!w || !w->keeping)
		return;
	w->taken |= w->stopped;
	w->stopped = w->keeping = false;
	w->keeps(w->user, false);
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
	return onlooker_stops(w) && !w->keeping
		       ? diag_fail(d, ST_INTERRUPTED, NULL, NULL, "interrupted")
		       : ST_OK;
}
