/* Answers as text: a line a sample, or a place of it, in CSV; or an object a sample, in JSON. */
#ifndef STINT_CLI_ANSWER_ROWS_H
#define STINT_CLI_ANSWER_ROWS_H

#include "cli/answers.h"

struct answer_rows {
	const struct answer_options *options;
	struct answer *answer; /* [n] */
	int n;
	bool files;    /* samples are files, else numbers from 0 */
	bool why;      /* a last column tells what is wrong with a sample */
	int64_t *best; /* [top] */
};

/* A sample: its file (NULL: none) or number, what is wrong with it (NULL or "": nothing; its
 * numbers are none then), and where its elements of each answer begin. */
struct answered {
	const char *file, *why;
	int64_t sample;
	const void *const *y;
};

/* Whether CSV can say it: ST_USAGE. */
enum status answer_rows_check(const struct answer_rows *r, struct diag *d);
void answer_rows_head(const struct answer_rows *r, FILE *f);
void answer_rows_csv(const struct answer_rows *r, const struct answered *s, FILE *f);
/* Without a line's end. */
void answer_rows_json(const struct answer_rows *r, const struct answered *s, FILE *f);

#endif
