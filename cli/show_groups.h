/* Which trained parameters have which of the optimizer's options. */
#ifndef STINT_CLI_SHOW_GROUPS_H
#define STINT_CLI_SHOW_GROUPS_H

#include <stdio.h>

#include "graph/pass.h"

/* Of an imported model. Reports a group that no trained parameter is in. */
enum status show_groups(FILE *f, struct graph *g, const struct optimizer_spec *spec);

#endif
