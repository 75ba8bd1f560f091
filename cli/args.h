/* Reading a small command's own options with popt. */
#ifndef STINT_CLI_ARGS_H
#define STINT_CLI_ARGS_H

#include <popt.h>

#include "base/base.h"

enum { ARGS_MAX = 64 };

struct args {
	int n;
	const char *positional[ARGS_MAX]; /* in the arena */
	bool help;                        /* --help was answered, or generate.h */
};

/* What popt gives for `--options` (see ARGS_OPTION_FILE), and from where on for a small command's
 * options that may be given once. */
enum { ARGS_FILE_END = 1 << 20, ARGS_ONCE };

/* A repeated option: table entries whose `val` is i + 1 append to list[i]; with ARGS_ANEW beside
 * it, what a file gave gives way to what is given behind it. */
enum { ARGS_LISTS = 16, ARGS_ANEW = 1 << 10 };
struct arg_list {
	int n;
	const char *value[ARGS_MAX];
};

/* Takes all options that popt does not store by itself: `take` gets an entry's `val` and its text,
 * in the arena. */
typedef enum status args_take(
	struct arena *a, int option, const char *text, void *user, struct diag *d);
/* `table`, or tables that it includes, is what ctx was made of: for what may have been meant. */
enum status args_options(struct arena *a, poptContext ctx, const struct poptOption *table,
	args_take *take, void *user, struct diag *d);
/* A line in every command's table, for --help. In the place of each, main.c has put the file's
 * options, with this one behind them: what they gave once may be given again. */
#define ARGS_OPTION_FILE                                                                           \
	{                                                                                          \
		"options", 0, POPT_ARG_STRING, NULL, ARGS_FILE_END,                                \
			"more options, one a line of FILE", "FILE"                                 \
	}

/* Parses argv by `table` (which should end with POPT_AUTOHELP-free POPT_TABLEEND; --help is added
 * here). Options without a `val` are given once, if they have a value: they get one here.
 * Positional arguments: min to max of them. `synopsis` follows the command's name in the help text.
 */
enum status args_parse(struct arena *a, int argc, const char **argv, struct poptOption *table,
	const char *synopsis, int min, int max, struct arg_list *list, struct args *out,
	struct diag *d);

#endif
