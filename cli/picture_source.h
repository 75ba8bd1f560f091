/* Pictures as they are named on the command line. */
#ifndef STINT_CLI_PICTURE_SOURCE_H
#define STINT_CLI_PICTURE_SOURCE_H

#include "cli/data_options.h"
#include "runtime/stint_rt.h"

/* *out: `text`, of a folder, a picture, a list of paths (.txt) or "-" as "images:", "masks:" or
 * "labels:" of it, whichever tensor `t` (a target or not) takes, and with what "images:" and
 * "masks:" leave open: sizes that it does not say are --resize's and --crop's, or else those that
 * were trained, or the tensor's; what is drawn is --augment's, too. `alone`: nothing is compared
 * with the pictures, and all below a folder are meant. Any other text stays. */
enum status picture_source(struct arena *a, const struct data_options *o,
	const struct stint_tensor *t, bool target, bool alone, const char *text, const char **out,
	struct diag *d);

#endif
