/* Learning rates over a training, by the formulas of PyTorch's lr_scheduler; all but the plateau's
 * are made from where training stands alone. */
#ifndef STINT_TRAIN_LEARNING_RATE_H
#define STINT_TRAIN_LEARNING_RATE_H

#include "base/base.h"

enum schedule_which {
	SCHEDULE_CONSTANT,
	SCHEDULE_LINEAR,
	SCHEDULE_COSINE,
	SCHEDULE_STEP,
	SCHEDULE_MULTISTEP,
	SCHEDULE_EXPONENTIAL,
	SCHEDULE_RESTARTS,
	SCHEDULE_ONE_CYCLE,
	SCHEDULE_PLATEAU
};

enum { SCHEDULE_MILESTONES = 32 };

struct schedule {
	enum schedule_which which;
	bool per_epoch; /* what it counts */
	double gamma, least, end_factor;
	int64_t size, mult; /* of a step; of the first cycle, and by how much each is longer */
	int nmilestone;
	int64_t milestone[SCHEDULE_MILESTONES];
	double rise, div_factor, final_div_factor; /* one-cycle; rise: share of the steps */
	bool straight, three_phase;
	double threshold, eps; /* plateau */
	int64_t patience, cooldown;
	bool absolute;
	/* The plateau's state. */
	double factor; /* what the rate has come to, in times of the first; 1 at the start */
	double best;   /* NAN: none yet */
	int64_t bad, cooling;
};

/* Where training stands: `step` and `epoch` are done. */
struct schedule_at {
	int64_t step, epoch;
	int64_t steps, epochs; /* of the whole training */
	int64_t warmup;        /* steps over which the rate rises first */
};

enum status schedule_parse(struct arena *a, const char *text, struct schedule *out, struct diag *d);
/* The rate of the next step, `lr` being the first. */
double schedule_rate(const struct schedule *s, double lr, const struct schedule_at *at);
/* Whether rates depend on how long training will be. */
bool schedule_has_end(const struct schedule *s);
/* After each epoch: what the plateau looks at; `falls`: less is better. */
void schedule_told(struct schedule *s, double lr, double value, bool falls);

#endif
