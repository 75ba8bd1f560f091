/* A log of `stint train`, JSON lines or CSV (docs/reference/formats.md), read back as curves. */
#ifndef STINT_CLI_RUN_LOG_H
#define STINT_CLI_RUN_LOG_H

#include "base/base.h"
#include "view/view.h"

/* Whether a file of this name is one. */
bool run_log_named(const char *path);

/* Curves in the order in which the log first names them, each by ascending step; where a run was
 * resumed and took steps again, the later ones hold. A last line that was cut is left out. All is
 * in the arena. ST_INVALID names the line that is no part of a log. */
enum status run_log_read(struct arena *a, const char *path, struct view_run *out, struct diag *d);
/* The same of its text, `len` bytes and a NUL, which changes. */
enum status run_log_parse(struct arena *a, const char *path, char *text, size_t len,
	struct view_run *out, struct diag *d);

#endif
