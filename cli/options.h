/* What `compile`, `plan`, `frontier` and `show` take. */
#ifndef STINT_CLI_OPTIONS_H
#define STINT_CLI_OPTIONS_H

#include "cli/progress.h"
#include "compile/pipeline.h"

enum command_kind {
	COMMAND_COMPILE = 1,
	COMMAND_PLAN = 2,
	COMMAND_SHOW = 4,
	COMMAND_FRONTIER = 8,
	COMMAND_ALL = 15
};

struct options {
	struct compile_options compile;
	const char *gpu, *offload; /* --arch, --offload as given; NULL: not */
	enum stage dump_after;     /* STAGE_NONE: of none */
	const char *out, *dump_graph;
	const char *html, *trace, *onnx, *svg; /* what people look at, to write */
	struct activity at; /* on from before the command runs; ended before it prints */
	uint64_t given;     /* options_given */
	int points, compare, steps, no_build, json, force, help;
};

/* Parse argv into *out (strings in `a`). out->help: --help was answered. ST_USAGE on bad ones. */
enum status options_parse(struct arena *a, enum command_kind kind, int argc, const char **argv,
	struct options *out, struct diag *d);

/* Whether --NAME was given; and the first that was, of all but these (ended by NULL), or NULL. */
bool options_given(const struct options *o, const char *name);
const char *options_but(const struct options *o, const char *const *names);

/* What the four commands are: argv parsed, and `run` with a pipeline for what it asks. */
enum status options_command(enum command_kind kind, int argc, const char **argv, struct diag *d,
	enum status (*run)(struct pipeline *p, struct options *o));

#endif
