/* How data are read: options that train and run share. */
#ifndef STINT_CLI_DATA_OPTIONS_H
#define STINT_CLI_DATA_OPTIONS_H

#include <popt.h>

#include "base/base.h"
#include "data/dataset.h"

struct feed;

struct data_options {
	char *scale, *shift; /* as given; NULL: not */
	char *skip_bad;      /* what --skip-bad says, "" for nothing; NULL: not given */
	int resize, crop;    /* of pictures; 0: not given */
	char *augment;       /* words of pictures' settings that stand for chance; NULL: none */
	char *hold_out;      /* so many samples, or a share of them (cli/hold_out.h); NULL: none */
	bool held;           /* read these, and not all others */
	/* A feed that has opened the same files, which are not opened again; NULL: none. */
	const struct feed *with;
	/* The same as values were trained, of this file; NULL: not known. */
	const char *trained;
	int trained_resize, trained_crop;
	const char *note;    /* of how they were trained (cli/training_note.h); NULL: not known */
	const char *classes; /* what labels count, as dataset_classes; NULL: what is there */
};

#define AUGMENT_WORDS                                                                              \
	"random[,pad=N] or zoom[=LEAST], flip, vflip, brightness=X, contrast=X, saturation=X, "    \
	"hue=X"

/* What they are in a popt table. */
/* clang-format off */
#define HOLD_OUT_OPTION(o, help)                                                                   \
	{"hold-out", 0, POPT_ARG_STRING, &(o).hold_out, 0, help, "N|P%"}
#define DATA_OPTIONS(o)                                                                            \
	{"scale", 0, POPT_ARG_STRING, &(o).scale, 0,                                               \
		"real inputs are value * A + B; several: by channel", "A[,A...]"},                 \
	{"shift", 0, POPT_ARG_STRING, &(o).shift, 0, "see --scale", "B[,B...]"},                   \
	{"resize", 0, POPT_ARG_INT, &(o).resize, 0,                                                \
		"the shorter side of pictures becomes so long", "N"},                              \
	{"crop", 0, POPT_ARG_INT, &(o).crop, 0,                                                    \
		"the middle of pictures is cut out, so wide and high", "N"},                       \
	{"skip-bad", 0, POPT_ARG_STRING | POPT_ARGFLAG_OPTIONAL, &(o).skip_bad, 0,                 \
		"samples that cannot be read are replaced (predict: not a number), and counted "   \
		"(more than 5% are an error)",                                                     \
		"N|P%"}
/* clang-format on */

/* Frees what popt has allocated. */
void data_options_free(struct data_options *o);

/* That numbers are numbers, whatever they will be for. */
enum status data_options_check(const struct data_options *o, struct diag *d);

/* `text`, of this option, is a number of samples ("20") or a share of all ("0.5%"), rounded down.
 */
enum status data_options_count(const char *option, const char *text, int64_t samples,
	const char *hint, int64_t *out, struct diag *d);

/* --skip-bad: so many of `samples` may be bad; `usual` of them where it does not say. */
enum status data_options_bad(const struct data_options *o, int64_t samples, int64_t usual,
	int64_t *most, struct diag *d);

/* Scale and shift of a real input of this shape; its axis 1 counts channels. */
enum status data_options_map(const struct data_options *o, const char *name, int rank,
	const int64_t *dim, struct dataset_map *out, struct diag *d);

#endif
