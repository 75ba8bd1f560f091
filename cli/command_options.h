/* What `compile`, `plan`, `frontier` and `show` are. */
#ifndef STINT_CLI_COMMAND_OPTIONS_H
#define STINT_CLI_COMMAND_OPTIONS_H

#include "api/options.h"
#include "cli/progress.h"

/* Parse argv into *out (strings in `a`). out->help: --help was answered. ST_USAGE on bad ones. */
enum status options_parse(struct arena *a, enum command_kind kind, int argc, const char **argv,
	struct options *out, struct diag *d);

/* `at` is on from before the command runs, and is ended before it prints. */
typedef enum status command_run(struct pipeline *p, struct options *o, struct activity *at);
/* argv parsed, and `run` with a pipeline for what it asks. */
enum status options_command(
	enum command_kind kind, int argc, const char **argv, struct diag *d, command_run *run);

#endif
