/* The folder that `compile` writes. */
#ifndef STINT_API_OUTPUT_H
#define STINT_API_OUTPUT_H

#include "api/options.h"

/* Write `dir`, and build the step in it where `build` says so: all of it or nothing (folder.h, also
 * for `force`). Requires what pipeline_run makes. p->o->onlooker may end it. */
enum status output_write(struct pipeline *p, const char *dir, bool force, bool build);

/* `stint compile`: from a model to o->out. `write` is output_write with what has to stand around
 * it; NULL: nothing has. */
enum status compile_folder(struct pipeline *p, const struct options *o,
	enum status (*write)(struct pipeline *p, const struct options *o));

#endif
