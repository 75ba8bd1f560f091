/* What `stint train` goes by from epoch to epoch, and what of that a checkpoint notes: the learning
 * rate's schedule, the best epoch so far, the settings. */
#ifndef STINT_CLI_FOLLOW_H
#define STINT_CLI_FOLLOW_H

#include "cli/evaluate.h"
#include "train/improvement.h"
#include "train/learning_rate.h"

struct training;

struct follow {
	struct schedule schedule;
	struct improvement best;
	int64_t step;     /* behind which held-out data were evaluated last */
	const char *name; /* of the number that is followed: "loss", "loss/NAME", "f1" */
	int metric, loss; /* which metric it is, or loss on held-out data; both -1: the sum */
	struct text note;
};

/* Requires the evaluation's metrics, where there is one. Fails where --keep-best names none. */
enum status follow_start(struct training *t);
double follow_rate(const struct training *t);
/* Held-out data have been evaluated. *best: better than all before it. */
void follow_score(struct training *t, bool *best);
/* So they have behind an epoch, which is what the plateau looks at. */
void follow_epoch(struct training *t);
/* --early-stop: for as many evaluations there was none better. */
bool follow_is_over(const struct training *t);
/* The text of the note for a checkpoint, good until the next one; NULL: no memory. */
const char *follow_note(struct training *t);
/* Takes up what the checkpoint `path` noted, and tells which settings are others now. */
enum status follow_resume(struct training *t, const char *path);
void follow_end(struct follow *f);

#endif
