/* Progress of long work: one line on a terminal, drawn over itself and never wider than that is; a
 * plain line each 10 seconds elsewhere. On stderr. STINT_PROGRESS=SECONDS: other ones, or 0: none.
 */
#ifndef STINT_CLI_PROGRESS_H
#define STINT_CLI_PROGRESS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

/* Work of known length: a bar. */
struct progress {
	const char *label; /* "epoch 1/3" */
	int64_t total, done;
	double apart; /* seconds from one line to the next where there is no terminal */
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

/* Work of unknown length, in a call that says little before it is done: what it is, for how long
 * it has been going on and how far it is, told by a thread. */
struct activity {
	bool on; /* false: nothing is drawn, and the rest is not set */
	bool over, terminal;
	double apart; /* seconds */
	const char *what;
	char how[96];                 /* how far it is, or "" */
	double done;                  /* of this part at most, or negative */
	struct timespec start, began; /* of all, and of this part */
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
};

/* `what`: "planning", a constant. */
void activity_start(struct activity *x, const char *what);
/* From now on it is `what`; x may be NULL. */
void activity_now(struct activity *x, const char *what);
/* How far that is: "7 of 12 files", and the share of what it may take at most, or less than 0. */
void activity_far(struct activity *x, const char *how, double done);
/* Clears the line: before anything is printed to standard output. */
void activity_end(struct activity *x);

/* Takes a line that is being drawn off the terminal, and keeps others from drawing until
 * progress_go_on: for messages. */
void progress_hold(void);
void progress_go_on(void);

#endif
