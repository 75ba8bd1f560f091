#include "cli/progress.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/terminal.h"

enum { BAR_MOST = 30, BAR_LEAST = 8, PIECE = 96 };

static double seconds_since(const struct timespec *t)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)(now.tv_sec - t->tv_sec) + (double)(now.tv_nsec - t->tv_nsec) / 1e9;
}

static const double APART_TERMINAL = 1, APART = 10;

/* Seconds from one line to the next; 0: none. */
static double asked_apart(bool terminal)
{
	const char *asked = getenv("STINT_PROGRESS");
	char *end;
	const double v = asked && *asked ? strtod(asked, &end) : -1;
	const bool given = v >= 0 && v < 1e6 && !*end;
	return !given ? (terminal ? APART_TERMINAL : APART) : v > 0 && v < 0.01 ? 0.01 : v;
}

/* --- One line of the terminal --- */

/* Spaces erase on every terminal, and where escapes are not wanted. The last column stays free:
 * some terminals go to the next line when it is written. */
static void put_line(const char *line, int columns)
{
	fprintf(stderr, "\r%-*.*s", columns - 1, columns - 1, line);
}

void progress_hold(void)
{
	const int columns = terminal_columns(STDERR_FILENO);
	flockfile(stderr);
	if (columns) {
		put_line("", columns);
		fputc('\r', stderr);
	}
}

void progress_go_on(void)
{
	fflush(stderr);
	funlockfile(stderr);
}

static void draw(const char *line, int columns)
{
	flockfile(stderr);
	put_line(line, columns);
	progress_go_on();
}

void progress_clear(void)
{
	if (!isatty(STDERR_FILENO))
		return;
	progress_hold();
	progress_go_on();
}

/* --- A bar --- */

void progress_start(struct progress *p, const char *label, int64_t total)
{
	*p = (struct progress){.label = label, .total = total, .apart = asked_apart(false)};
	clock_gettime(CLOCK_MONOTONIC, &p->start);
	p->shown = p->start;
}

double progress_seconds(const struct progress *p)
{
	return seconds_since(&p->start);
}

/* "40 s", "12 min", "3.5 h" */
static void put_time(char buf[static 32], double seconds)
{
	if (seconds < 100)
		snprintf(buf, 32, "%.0f s", seconds);
	else if (seconds < 6000)
		snprintf(buf, 32, "%.0f min", seconds / 60);
	else
		snprintf(buf, 32, "%.1f h", seconds / 3600);
}

/* "epoch 1/3 [####....] 12/937  loss 2.3026  4.2 ms/step  40 s left": what fits, the bar last. */
static void show_bar(const struct progress *p, const double *loss, int columns)
{
	enum { LABEL, COUNT, LOSS, RATE, LEFT, PIECES };
	static const int by_worth[] = {COUNT, LOSS, LEFT, RATE};
	char piece[PIECES][PIECE] = {{0}}, time[32], line[PIECES * PIECE + BAR_MOST + 8] = "";
	bool shown[PIECES] = {[LABEL] = true};
	const double spent = seconds_since(&p->start), each = spent / (double)p->done;
	put_time(time, each * (double)(p->total - p->done));
	snprintf(piece[LABEL], PIECE, "%.*s", columns - 1 < PIECE ? columns - 1 : PIECE - 1,
		p->label);
	snprintf(piece[COUNT], PIECE, "%" PRId64 "/%" PRId64, p->done, p->total);
	if (loss)
		snprintf(piece[LOSS], PIECE, "loss %.4g", *loss);
	snprintf(piece[RATE], PIECE, "%.1f ms/step", 1e3 * each);
	snprintf(piece[LEFT], PIECE, "%s left", time);
	int room = columns - 1 - (int)strlen(piece[LABEL]);
	for (size_t i = 0; i < sizeof by_worth / sizeof *by_worth; i++) {
		const int k = by_worth[i], needs = (int)strlen(piece[k]) + 2;
		shown[k] = *piece[k] && needs <= room;
		room -= shown[k] ? needs : 0;
	}
	const int bar = room - 2 < BAR_MOST ? room - 2 : BAR_MOST;
	char *end = line + sprintf(line, "%s", piece[LABEL]);
	if (bar >= BAR_LEAST && shown[COUNT]) {
		const int full = (int)(p->done * bar / p->total);
		end += sprintf(end, " [");
		for (int i = 0; i < bar; i++)
			*end++ = i < full ? '#' : '.';
		end += sprintf(end, "] %s", piece[COUNT]);
		shown[COUNT] = false;
	}
	for (int k = COUNT; k < PIECES; k++)
		if (shown[k])
			end += sprintf(end, "  %s", piece[k]);
	draw(line, columns);
}

static void one_more(struct progress *p, const double *loss)
{
	const int columns = terminal_columns(STDERR_FILENO);
	p->done++;
	if (columns) {
		if (seconds_since(&p->shown) < 0.1 && p->done < p->total)
			return;
		clock_gettime(CLOCK_MONOTONIC, &p->shown);
		show_bar(p, loss, columns);
	} else if (loss && p->apart > 0 && seconds_since(&p->shown) >= p->apart) {
		clock_gettime(CLOCK_MONOTONIC, &p->shown);
		fprintf(stderr, "%s  step %" PRId64 "/%" PRId64 "  loss %.4f  %.1f ms/step\n",
			p->label, p->done, p->total, *loss,
			1e3 * seconds_since(&p->start) / (double)p->done);
	}
}

void progress_step(struct progress *p, double loss)
{
	one_more(p, &loss);
}

void progress_say(const char *what)
{
	const int columns = terminal_columns(STDERR_FILENO);
	if (columns)
		draw(what, columns);
}

void progress_tick(struct progress *p)
{
	one_more(p, NULL);
}

void progress_end(struct progress *p)
{
	(void)p;
	progress_clear();
}

/* --- Elapsed time --- */

/* How long this part may go on for at most; negative: not known. */
static double seconds_left(const struct activity *x)
{
	return x->done > 0.01 && x->done <= 1 ? seconds_since(&x->began) * (1 - x->done) / x->done
					      : -1;
}

/* "planning  8 s  1.018 x one pass, gap at most 0.2 %, at most 12 s left": what fits. */
static void show_elapsed(const struct activity *x)
{
	char line[3 * PIECE], time[32], left[PIECE] = "";
	const int columns = x->terminal ? terminal_columns(STDERR_FILENO) : 0;
	const double more = seconds_left(x);
	put_time(time, more);
	if (more >= 0)
		snprintf(left, sizeof left, ", at most %s left", time);
	put_time(time, seconds_since(&x->start));
	int n = snprintf(line, sizeof line, "%s  %s", x->what, time);
	if (*x->how && (!columns || n + 2 + (int)strlen(x->how) < columns))
		n += sprintf(line + n, "  %s", x->how);
	if (*left && (!columns || n + (int)strlen(left) < columns))
		sprintf(line + n, "%s", left);
	if (columns)
		draw(line, columns);
	else if (!x->terminal)
		fprintf(stderr, "stint: %s\n", line);
}

static struct timespec later(struct timespec t, double seconds)
{
	const double nsec = (double)t.tv_nsec + 1e9 * (seconds - floor(seconds));
	t.tv_sec += (time_t)floor(seconds) + (nsec >= 1e9);
	t.tv_nsec = (long)(nsec >= 1e9 ? nsec - 1e9 : nsec);
	return t;
}

/* What is quick is not shown at all. */
static void *keep_drawing(void *user)
{
	struct activity *x = user;
	pthread_mutex_lock(&x->lock);
	struct timespec next = x->start;
	while (!x->over) {
		next = later(next, x->apart);
		while (!x->over &&
			pthread_cond_timedwait(&x->changed, &x->lock, &next) != ETIMEDOUT)
			;
		if (!x->over)
			show_elapsed(x);
	}
	pthread_mutex_unlock(&x->lock);
	return NULL;
}

static void begin(struct activity *x, const char *what)
{
	x->what = what;
	x->how[0] = '\0';
	x->done = -1;
	clock_gettime(CLOCK_MONOTONIC, &x->began);
}

void activity_start(struct activity *x, const char *what)
{
	pthread_condattr_t steady;
	sigset_t all, before;
	*x = (struct activity){.terminal = isatty(STDERR_FILENO)};
	x->apart = asked_apart(x->terminal);
	if (x->apart <= 0)
		return;
	begin(x, what);
	x->start = x->began;
	pthread_mutex_init(&x->lock, NULL);
	pthread_condattr_init(&steady);
	pthread_condattr_setclock(&steady, CLOCK_MONOTONIC);
	pthread_cond_init(&x->changed, &steady);
	pthread_condattr_destroy(&steady);
	/* signals are for who works */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	x->on = pthread_create(&x->thread, NULL, keep_drawing, x) == 0;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void activity_now(struct activity *x, const char *what)
{
	if (!x || !x->on)
		return;
	pthread_mutex_lock(&x->lock);
	if (x->what != what)
		begin(x, what);
	pthread_mutex_unlock(&x->lock);
}

void activity_far(struct activity *x, const char *how, double done)
{
	if (!x || !x->on)
		return;
	pthread_mutex_lock(&x->lock);
	if (done < x->done) /* another part that is called the same */
		begin(x, x->what);
	snprintf(x->how, sizeof x->how, "%s", how);
	x->done = done;
	pthread_mutex_unlock(&x->lock);
}

void activity_end(struct activity *x)
{
	if (!x->on)
		return;
	pthread_mutex_lock(&x->lock);
	x->over = true;
	pthread_cond_signal(&x->changed);
	pthread_mutex_unlock(&x->lock);
	pthread_join(x->thread, NULL);
	pthread_cond_destroy(&x->changed);
	pthread_mutex_destroy(&x->lock);
	x->on = false;
	progress_clear();
}
