#include "cli/internal.h"

#include <string.h>

/* Ways past much of what makes plans and kernels; frontier has its own budgets, a GPU's step is
 * never portable. */
static const struct {
	const char *option, *value;
	bool frontier, cuda;
} ways[] = {{"--fuse", "off", true, true}, {"--keep-all", NULL, false, true},
	{"--effort", "0.1", true, true}, {"--math", "strict", true, true},
	{"--portable", NULL, true, false}, {"--budget", "SIZE", false, true}};

static bool has(int narg, char *const *arg, const char *option)
{
	const size_t n = strlen(option);
	for (int i = 1; i < narg; i++)
		if (!strncmp(arg[i], option, n) && (!arg[i][n] || arg[i][n] == '='))
			return true;
	return false;
}

/* "cuda" is a word of its own or stands behind "--target=". */
static bool for_gpu(int narg, char *const *arg)
{
	for (int i = 1; i < narg; i++)
		if (!strcmp(arg[i], "cuda") || !strcmp(arg[i], "--target=cuda"))
			return true;
	return false;
}

/* Those that the command takes and the line has not; another budget is always one. */
static void add_ways(int narg, char *const *arg, struct text *t)
{
	const bool frontier = !strcmp(arg[0], "frontier"), gpu = for_gpu(narg, arg);
	const char *before = "until it is mended, one of these may pass it by: ";
	for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
		const bool given = has(narg, arg, ways[i].option);
		if ((frontier && !ways[i].frontier) || (gpu && !ways[i].cuda) ||
			(given && strcmp(ways[i].option, "--budget") != 0))
			continue;
		text_add(t, "%s%s%s%s%s", before, given ? "another " : "", ways[i].option,
			ways[i].value ? " " : "", ways[i].value ? ways[i].value : "");
		before = ", ";
	}
}

/* As a shell reads it. */
static void add_word(struct text *t, const char *word)
{
	static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				    "0123456789_./:=,%+@-";
	if (*word && strspn(word, plain) == strlen(word)) {
		text_puts(t, word);
		return;
	}
	text_puts(t, "'");
	for (; *word; word++)
		text_write(t, *word == '\'' ? "'\\''" : word, *word == '\'' ? 4 : 1);
	text_puts(t, "'");
}

void internal_tell(int narg, char *const *arg, struct diag *d)
{
	struct text help = {0}, line = {0};
	const bool plans = !strcmp(arg[0], "compile") || !strcmp(arg[0], "plan") ||
			   !strcmp(arg[0], "frontier");
	if (d->out_of_memory) {
		diag_note(d, NULL,
			plans ? "let it have more (`ulimit -v` tells a limit); a smaller --batch "
				"takes less"
			      : "let it have more (`ulimit -v` tells a limit); a step compiled "
				"with a smaller --batch, --budget or --threads takes less",
			"this machine, or the limit set for the process, has no more memory");
		return;
	}
	if (plans)
		add_ways(narg, arg, &help);
	else
		text_puts(&help, "until it is mended, a folder compiled anew with --portable or "
				 "--fuse off may pass it by");
	diag_note(d, NULL, help.failed ? NULL : help.s,
		"this is an error of stint's own, not of your model or command line");
	text_add(&line, "stint %s: stint", STINT_VERSION);
	for (int i = 0; i < narg; i++) {
		text_puts(&line, " ");
		add_word(&line, arg[i]);
	}
	diag_note(d, NULL, line.failed ? NULL : line.s,
		"report it where you have stint from: the messages above, the line below "
		"and "
		"the model%s",
		plans ? "; or, of a model that you may not give away, what the command prints with "
			"--dump-after fuse (lower, if that prints nothing), which holds no weights"
		      : "");
	text_free(&help);
	text_free(&line);
}
