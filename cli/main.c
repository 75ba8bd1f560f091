/* stint: the command table, messages on stderr, exit codes. */
#include "api/safe_put.h"
#include "base/nearest.h"
#include "cli/cli.h"
#include "cli/generate.h"
#include "cli/internal.h"
#include "cli/json_only.h"
#include "cli/option_file.h"
#include "cli/progress.h"

#include <ctype.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

static const struct command commands[] = {
	{"compile", "turn an ONNX model into C that trains it inside a budget", cmd_compile, false},
	{"plan", "make the plan only: from a model, or from a stint-graph-1 file", cmd_plan, false},
	{"frontier", "cost against budget, from keep-everything to the smallest budget",
		cmd_frontier, false},
	{"show", "show a model, a compiled directory or a plan", cmd_show, false},
	{"check", "check a plan with the independent checker", cmd_check, false},
	{"layout", "place buffers with given lifetimes (CSV)", cmd_layout, false},
	{"run", "one training step on given data; write loss, outputs and gradients", cmd_run,
		true},
	{"train", "train a compiled model on data", cmd_train, true},
	{"eval", "loss and metrics of a compiled model over data", cmd_eval, true},
	{"predict", "what a compiled model answers to data", cmd_predict, true},
	{"bench", "time a compiled step", cmd_bench, true},
	{"export", "write the trained ONNX model", cmd_export, false},
	{"doctor", "whether this machine can train: processor, GPU, libraries", cmd_doctor, true},
};
enum { NCOMMAND = sizeof commands / sizeof *commands };

static void usage(FILE *f)
{
	fprintf(f,
		"stint %s: train an ONNX model inside a memory budget\n\nusage: stint COMMAND "
		"[OPTIONS] ...\n\n",
		STINT_VERSION);
	for (int i = 0; i < NCOMMAND; i++)
		fprintf(f, "  %-8s %s\n", commands[i].name, commands[i].summary);
	fprintf(f, "\n`stint COMMAND --help` lists a command's options.\n");
}

struct messages {
	bool plain, json;          /* without colours; --json was asked for */
	struct json_errors errors; /* for it */
};

/* "stint: error: model.onnx: node 'conv1' (Conv): message", then the hint on a line of its own. */
static void report(void *user, enum diag_level level, const struct where *w, const char *message,
	const char *hint)
{
	static const char *const word[] = {"note", "warning", "error"};
	static const char *const colour[] = {"36", "33", "31"};
	struct messages *to = user;
	FILE *f = stderr;
	if (level == DIAG_ERROR)
		json_error_add(&to->errors, w, message, hint);
	fflush(stdout);
	progress_hold();
	if (to->plain)
		fprintf(f, "stint: %s: ", word[level]);
	else
		fprintf(f, "stint: \033[1;%sm%s:\033[0m ", colour[level], word[level]);
	if (w->file) {
		safe_put(f, w->file);
		fputs(": ", f);
	}
	/* operators are written with a capital or a dot; "tensor", "input" say what the name is of
	 */
	bool kind = w->op && islower((unsigned char)w->op[0]) && !strchr(w->op, '.');
	if (w->node) {
		fprintf(f, "%s '", kind ? w->op : "node");
		safe_put(f, w->node);
		fputc('\'', f);
		if (w->op && !kind) {
			fputs(" (", f);
			safe_put(f, w->op);
			fputc(')', f);
		}
		fputs(": ", f);
	}
	safe_put(f, message);
	fputc('\n', f);
	if (hint) {
		fputs("  hint: ", f);
		safe_put(f, hint);
		fputc('\n', f);
	}
	progress_go_on();
}

/* GNU's OpenMP lets threads that wait for others spin for long: on a machine that is busy with
 * other work a step then takes ten times as long and more, on an idle one it gains about 1 %. It
 * reads its settings before main runs, so set ours and start again, once; whoever has set them is
 * left alone. */
static void start_patiently(char **argv)
{
	if (getenv("GOMP_SPINCOUNT") || getenv("OMP_WAIT_POLICY"))
		return;
	if (setenv("GOMP_SPINCOUNT", "1000", 1) == 0)
		execv("/proc/self/exe", argv); /* where that fails, go on as we are */
}

static enum status run(const struct command *c, int argc, const char **argv, struct diag *d)
{
	struct arena *a = arena_new();
	if (!a)
		return diag_nomem(d);
	struct messages *to = d->user;
	enum status st = option_file_expand(a, argc, argv, &argc, &argv, d);
	if (st == ST_OK) {
		to->json |= json_asked(argc, argv);
		st = c->run(argc, argv, d);
	}
	arena_free(a);
	return st;
}

/* The command that may have been meant by `word`, as a hint. */
static const char *command_hint(const char *word, char buf[static 96])
{
	const char *meant = NULL;
	for (int i = 0; i < NCOMMAND; i++)
		meant = nearest(word, meant, commands[i].name);
	snprintf(buf, 96, "did you mean %s? `stint --help` lists the commands", meant ? meant : "");
	return meant ? buf : "`stint --help` lists the commands";
}

/* The words of a program that was given some. */
static enum status one_command(int argc, char **argv, struct diag *d)
{
	for (int i = 0; i < NCOMMAND; i++) {
		if (strcmp(argv[1], commands[i].name) != 0)
			continue;
		if (commands[i].steps)
			start_patiently(argv);
		char name[32], *own = argv[1]; /* what --help calls the command */
		snprintf(name, sizeof name, "stint %s", commands[i].name);
		argv[1] = name;
		enum status st = run(&commands[i], argc - 1, (const char **)(argv + 1), d);
		if ((fflush(stdout) != 0 || ferror(stdout)) && st == ST_OK)
			st = diag_fail(d, ST_IO, NULL, NULL, "cannot write to standard output");
		argv[1] = own;
		if (st == ST_INTERNAL)
			internal_tell(argc - 1, argv + 1, d);
		return st;
	}
	char hint[96];
	return diag_fail(
		d, ST_USAGE, NULL, command_hint(argv[1], hint), "unknown command '%s'", argv[1]);
}

int main(int argc, char **argv)
{
	const char *no_color = getenv("NO_COLOR");
	struct messages to = {.plain = (no_color && *no_color) || !isatty(STDERR_FILENO),
		.json = json_asked(argc, (const char *const *)argv)};
	struct diag d = {.put = report, .user = &to};
	signal(SIGXFSZ, SIG_IGN); /* a file over the shell's limit: a failure to be told */
	if (argc < 2) {
		usage(stderr);
		return ST_USAGE;
	}
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") || !strcmp(argv[1], "help")) {
		usage(stdout);
		return ST_OK;
	}
	if (!strcmp(argv[1], "--version")) {
		printf("stint %s\n", STINT_VERSION);
		return ST_OK;
	}
	if (!strcmp(argv[1], "--generate"))
		return (int)generate(argc, argv, commands, NCOMMAND, &d);
	const enum status st = one_command(argc, argv, &d);
	if (to.json && st != ST_OK)
		json_error_print(&to.errors, st);
	json_errors_free(&to.errors);
	return (int)st;
}
