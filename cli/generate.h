/* Manual pages and shells' completions, from the tables that --help shows. */
#ifndef STINT_CLI_GENERATE_H
#define STINT_CLI_GENERATE_H

#include <popt.h>

#include "cli/cli.h"

/* stint --generate man [COMMAND] | bash | zsh | fish, to standard output; the build runs it. */
enum status generate(
	int argc, char **argv, const struct command *commands, int ncommand, struct diag *d);

/* For whoever parses a command's options, before: whether they are asked for in the place of being
 * parsed, and then printed. */
bool generate_options(
	int argc, const char **argv, const char *synopsis, const struct poptOption *table);

#endif
