/* How data are read: options that train and run share. */
#ifndef STINT_CLI_DATA_OPTIONS_H
#define STINT_CLI_DATA_OPTIONS_H

#include <popt.h>

#include "base/base.h"
#include "data/dataset.h"

struct data_options {
	char *scale, *shift; /* as given; NULL: not */
	int skip_bad;
	const char *classes; /* what labels count, as dataset_classes; NULL: what is there */
};

/* What they are in a popt table. */
/* clang-format off */
#define DATA_OPTIONS(o)                                                                            \
	{"scale", 0, POPT_ARG_STRING, &(o).scale, 0,                                               \
		"real inputs are value * A + B; several: by channel", "A[,A...]"},                 \
	{"shift", 0, POPT_ARG_STRING, &(o).shift, 0, "see --scale", "B[,B...]"},                   \
	{"skip-bad", 0, POPT_ARG_NONE, &(o).skip_bad, 0,                                           \
		"a sample that cannot be read is replaced by the next one, and counted", NULL}
/* clang-format on */

/* Frees what popt has allocated. */
void data_options_free(struct data_options *o);

/* That numbers are numbers, whatever they will be for. */
enum status data_options_check(const struct data_options *o, struct diag *d);

/* Scale and shift of a real input of this shape; its axis 1 counts channels. */
enum status data_options_map(const struct data_options *o, const char *name, int rank,
	const int64_t *dim, struct dataset_map *out, struct diag *d);

#endif
