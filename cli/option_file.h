/* --options FILE: a long command's options from a file, one a line. */
#ifndef STINT_CLI_OPTION_FILE_H
#define STINT_CLI_OPTION_FILE_H

#include "base/base.h"

/* argv with each `--options FILE` replaced by what the file says, all of it in front of the command
 * line's own options, which so have the last word. A line is an option as on the command line,
 * "--budget 70%", its value the rest of the line; "quotes" keep blanks and # in a value, with \"
 * and
 * \\ inside; from a # that begins a line or follows a blank on it is a comment. */
enum status option_file_expand(
	struct arena *a, int argc, const char **argv, int *nout, const char ***out, struct diag *d);

#endif
