/* What one record of training looks like in each format of log (docs/reference/formats.md). */
#ifndef STINT_CLI_LOG_TEXT_H
#define STINT_CLI_LOG_TEXT_H

#include "cli/evaluate.h"
#include "runtime/checkpoint.h"

struct log_record {
	enum { LOG_STEP, LOG_SCORE, LOG_EPOCH } what; /* LOG_EPOCH follows a score, if any */
	bool within;                                  /* LOG_SCORE: an epoch, none follows */
	const struct checkpoint_place *at;            /* counts the step already */
	const struct stint_model *m;                  /* whose losses are told */
	double lr, loss;                              /* LOG_STEP */
	const double *part;           /* LOG_STEP, where there are several losses: each one */
	const struct evaluation *e;   /* not LOG_STEP; NULL: nothing is held out */
	double seconds, data_seconds; /* LOG_EPOCH */
	double time;                  /* now, since 1970 */
};

void log_json(struct text *out, const struct log_record *r);
/* The first line names the columns: of the metrics, those of `e`, which may be NULL. */
void log_csv_columns(struct text *out, const struct stint_model *m, const struct evaluation *e);
void log_csv(struct text *out, const struct log_record *r);
void log_events(struct text *out, const struct log_record *r);

#endif
