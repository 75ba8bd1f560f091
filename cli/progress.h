/* Progress of long work: one line on a terminal, drawn over itself and never wider than that is; a
 * plain line now and then elsewhere. On stderr. */
#ifndef STINT_CLI_PROGRESS_H
#define STINT_CLI_PROGRESS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

/* Work of known length: a bar. */
struct progress {
	const char *label; /* "epoch 1/3" */
	int64_t total, done, reported;
	struct timespec start, shown;
};

void progress_start(struct progress *p, const char *label, int64_t total);
/* One more done; `loss` is shown beside it. */
void progress_step(struct progress *p, double loss);
/* One more of what has no loss; elsewhere than on a terminal nothing is said. */
void progress_tick(struct progress *p);
/* Clears the bar. */
void progress_end(struct progress *p);
/* What is being done, drawn once: where a thread that draws would be in the way of what is timed.
 */
void progress_say(const char *what);
void progress_clear(void);
double progress_seconds(const struct progress *p);

/* Work of unknown length, in a call that says nothing before it is done: what it is and for how
 * long it has been going on, drawn by a thread. Nothing elsewhere than on a terminal. */
struct activity {
	bool on; /* false: nothing is drawn, and the rest is not set */
	bool over;
	const char *what;
	struct timespec start;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
};

/* `what`: "planning", a constant. */
void activity_start(struct activity *x, const char *what);
/* From now on it is `what`; x may be NULL. */
void activity_now(struct activity *x, const char *what);
/* Clears the line: before anything is printed to standard output. */
void activity_end(struct activity *x);

/* Takes a line that is being drawn off the terminal, and keeps others from drawing until
 * progress_go_on: for messages. */
void progress_hold(void);
void progress_go_on(void);

#endif
