/* Columns of tables, and words in them, as values were trained on them. */
#ifndef STINT_CLI_DATA_COLUMNS_H
#define STINT_CLI_DATA_COLUMNS_H

#include "cli/feed.h"

/* A line "columns.N TENSOR/LIST" of a training note for each tensor whose data have them
 * (dataset_columns). */
void columns_note(struct text *note, const struct feed *f);
/* What tensor `t` was trained on, *trained (NULL: not known, or no columns), and *path with these
 * columns where it is a table and leaves them open, which is told. */
enum status columns_source(struct arena *a, const struct data_options *o,
	const struct stint_tensor *t, const char **path, const char **trained, struct diag *d);
/* Words of what has been opened so have the numbers that they had in training; one that had none,
 * and words in the place of real numbers, are ST_INVALID. */
enum status columns_take(struct arena *a, const struct data_options *o,
	const struct stint_tensor *t, const char *trained, struct dataset *data, struct diag *d);

#endif
