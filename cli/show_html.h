/* stint show --html FILE */
#ifndef STINT_CLI_SHOW_HTML_H
#define STINT_CLI_SHOW_HTML_H

#include "planner/plan.h"

/* Write the page about `plan` to `path`, with keep-everything and a coarse frontier beside it. */
enum status show_html(const char *path, struct arena *a, const struct problem *p,
	const struct plan *plan, struct diag *d);

#endif
