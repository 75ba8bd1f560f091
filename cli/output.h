/* The folder that `compile` writes. */
#ifndef STINT_CLI_OUTPUT_H
#define STINT_CLI_OUTPUT_H

#include "cli/options.h"

/* Write o->out and build it unless --no-build: all of it or nothing (folder.h). Requires what
 * pipeline_run makes. */
enum status output_write(struct pipeline *p, const struct options *o);

#endif
