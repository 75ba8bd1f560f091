/* What `compile`, `plan`, `frontier` and `show` take, as data: the one table of options, for the
 * command line (cli/command_options.c) and for programs (stint.h). */
#ifndef STINT_API_OPTIONS_H
#define STINT_API_OPTIONS_H

#include <limits.h>

#include "compile/pipeline.h"

/* Who takes an option. */
enum command_kind {
	COMMAND_COMPILE = 1,
	COMMAND_PLAN = 2,
	COMMAND_SHOW = 4,
	COMMAND_FRONTIER = 8,
	COMMAND_LINE = 15, /* each of these: what is printed or written */
	PROGRAM = 16,      /* stint.h */
	COMMAND_ALL = 31
};

enum {
	OPTIONS_MAX = 96,
	OPTION_WORDS = 8,
	OPTION_NOT_GIVEN = INT_MIN /* of a number that has no other such value */
};

struct options {
	struct compile_options compile;
	const char *gpu, *offload; /* --arch, --offload as given; NULL: not */
	enum stage dump_after;     /* STAGE_NONE: of none */
	const char *out, *dump_graph;
	const char *html, *trace, *onnx, *svg; /* what people look at, to write */
	const char *given[OPTIONS_MAX]; /* an option's text, the last; NULL: it was not given */
	bool replaceable[OPTIONS_MAX];  /* options_replaceable */
	const char *link;               /* between ranks, as given; NULL: not */
	int points, compare, steps, no_build, json, force, help;
};

struct option {
	const char *name;
	char letter; /* 0: it has none */
	enum option_type {
		OPTION_FLAG,    /* int, 1 when given */
		OPTION_COUNT,   /* int */
		OPTION_REAL,    /* double */
		OPTION_TEXT,    /* const char * */
		OPTION_LIST,    /* const char *const *, ended by NULL: one more each time */
		OPTION_SIZE,    /* int64_t, 1 or more */
		OPTION_BUDGET,  /* struct plan_budget */
		OPTION_WORD,    /* an enum: the word's place in `word` */
		OPTION_SPECIAL, /* whatever `take` does */
	} type;
	size_t at;         /* in struct options */
	unsigned commands; /* enum command_kind: who takes it */
	const char *arg, *help;
	const char *word[OPTION_WORDS + 1]; /* ended by NULL */
	enum status (*take)(struct arena *a, const char *text, struct options *o, struct diag *d);
	bool repeats; /* may be given several times; of a flag that says no more than once */
};

const struct option *option_at(int i); /* from 0; NULL: there are no more */
/* Of this name, that such a command takes: its index, or -1. */
int option_find(enum command_kind kind, const char *name);

/* Nothing given. */
void options_begin(struct options *o);
/* Option `option` is given with `text`, which lives as long as `a`; a flag's is "". One that does
 * not repeat is refused the second time. */
enum status options_set(
	struct arena *a, struct options *o, int option, const char *text, struct diag *d);
/* What was given so far is a file's, and may be given again, once. */
void options_replaceable(struct options *o);
/* When all are set: what goes together, and what is settled by the machine. */
enum status options_check(struct options *o, struct diag *d);

/* Whether --NAME was given; and the first that was, of all but these (ended by NULL), or NULL. */
bool options_given(const struct options *o, const char *name);
const char *options_but(const struct options *o, const char *const *names);

#endif
