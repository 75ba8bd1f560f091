#include "cli/generate.h"

#include <string.h>

#include "api/options.h"

enum format { MAN, BASH, ZSH, FISH, FORMATS };
static const char *const format_name[FORMATS] = {"man", "bash", "zsh", "fish"};

/* How a command is told to print its options: `stint NAME --generate FORMAT`. */
static const char asked[] = "--generate";

static int format_of(const char *name)
{
	int i = 0;
	while (i < FORMATS && strcmp(format_name[i], name) != 0)
		i++;
	return i;
}

/* What a value may be, ended by NULL; NULL: anything. */
static const char *const *words_of(const char *name)
{
	const int i = option_find(COMMAND_LINE, name);
	return i >= 0 && option_at(i)->type == OPTION_WORD ? option_at(i)->word : NULL;
}

/* --- Each format's own marks --- */

/* The text with `before` in front of each of `marked`. */
static void put_marked(const char *s, const char *marked, const char *before)
{
	for (; *s; s++) {
		if (strchr(marked, *s))
			fputs(before, stdout);
		putchar(*s);
	}
}

static void put_man(const char *s)
{
	for (; *s; s++)
		fputs(*s == '\\'     ? "\\e"
			: *s == '-'  ? "\\-"
			: *s == '\'' ? "\\(aq"
			: *s == '~'  ? "\\(ti"
			: *s == '^'  ? "\\(ha"
			: *s == '`'  ? "\\(ga"
				     : (const char[]){*s, '\0'},
			stdout);
}

/* Within '...' of a shell. */
static void put_quoted(const char *s)
{
	for (; *s; s++)
		fputs(*s == '\'' ? "'\\''" : (const char[]){*s, '\0'}, stdout);
}

static void put_words(const char *const *word)
{
	for (int i = 0; word[i]; i++)
		printf("%s%s", i ? " " : "", word[i]);
}

/* --- An option --- */

/* Its value, where there is one, is in the same word. */
static bool may_have(const struct poptOption *o)
{
	return o->argInfo & POPT_ARGFLAG_OPTIONAL;
}

static void man_option(const struct poptOption *o)
{
	puts(".TP");
	if (o->shortName)
		printf("\\fB\\-%c\\fR, ", o->shortName);
	fputs("\\fB\\-\\-", stdout);
	put_man(o->longName);
	fputs("\\fR", stdout);
	if (o->argDescrip) {
		fputs(may_have(o) ? "[=\\fI" : "=\\fI", stdout);
		put_man(o->argDescrip);
		fputs(may_have(o) ? "\\fR]" : "\\fR", stdout);
	}
	fputs("\n\\&", stdout); /* no line of a text is a request */
	put_man(o->descrip);
	putchar('\n');
}

/* What follows an option that has a value. */
static void bash_option(const char *command, const struct poptOption *o)
{
	const char *const *word = words_of(o->longName);
	if (!o->argDescrip || may_have(o))
		return;
	printf("\t%s/--%s", command, o->longName);
	if (o->shortName)
		printf(" | %s/-%c", command, o->shortName);
	fputs(") ", stdout);
	if (word) {
		fputs("COMPREPLY=($(compgen -W \"", stdout);
		put_words(word);
		fputs("\" -- \"$cur\")); ", stdout);
	}
	puts("return ;;");
}

static void zsh_option(const struct poptOption *o)
{
	const char *const *word = words_of(o->longName);
	printf("\t\t\t'*--%s%s[", o->longName, !o->argDescrip ? "" : may_have(o) ? "=-" : "=");
	for (const char *s = o->descrip; *s; s++) {
		const char one[] = {*s, '\0'};
		put_marked(*s == '\'' ? "" : one, "[]\\:", "\\");
		if (*s == '\'')
			fputs("'\\''", stdout);
	}
	putchar(']');
	if (o->argDescrip) {
		fputs(may_have(o) ? "::" : ":", stdout);
		put_marked(o->argDescrip, "[]\\:", "\\");
		putchar(':');
		if (word) {
			putchar('(');
			put_words(word);
			putchar(')');
		} else {
			fputs("_files", stdout);
		}
	}
	puts("' \\");
}

static void fish_option(const char *command, const struct poptOption *o)
{
	const char *const *word = words_of(o->longName);
	printf("complete -c stint -n '__fish_seen_subcommand_from %s' -l %s", command, o->longName);
	if (o->shortName)
		printf(" -s %c", o->shortName);
	if (o->argDescrip && !may_have(o))
		fputs(word ? " -x" : " -r", stdout);
	if (word) {
		fputs(" -a '", stdout);
		put_words(word);
		putchar('\'');
	}
	fputs(" -d '", stdout);
	put_quoted(o->descrip);
	puts("'");
}

/* The table's options, those of a table in it under its title. */
static void each_option(const struct poptOption *table, enum format format, const char *command)
{
	for (const struct poptOption *o = table; o->longName || o->arg; o++) {
		if (o->argInfo == POPT_ARG_INCLUDE_TABLE) {
			if (format == MAN) {
				fputs(".SS ", stdout);
				put_man(o->descrip);
				putchar('\n');
			}
			each_option(o->arg, format, command);
			continue;
		}
		switch (format) {
		case MAN:
			man_option(o);
			break;
		case BASH:
			bash_option(command, o);
			break;
		case ZSH:
			zsh_option(o);
			break;
		default:
			fish_option(command, o);
		}
	}
}

static void bash_names(const struct poptOption *table)
{
	for (const struct poptOption *o = table; o->longName || o->arg; o++)
		if (o->argInfo == POPT_ARG_INCLUDE_TABLE)
			bash_names(o->arg);
		else
			printf(" --%s", o->longName);
}

bool generate_options(
	int argc, const char **argv, const char *synopsis, const struct poptOption *table)
{
	if (argc != 3 || strcmp(argv[1], asked) != 0)
		return false;
	const enum format format = (enum format)format_of(argv[2]);
	const char *command = strchr(argv[0], ' ') + 1; /* behind "stint" */
	if (format == MAN) {
		printf(".SH SYNOPSIS\n.B stint %s\n", command);
		put_man(synopsis);
		puts("\n.SH OPTIONS");
	} else if (format == ZSH) {
		printf("\t\t%s) _arguments -s \\\n", command);
	}
	each_option(table, format, command);
	if (format == BASH) {
		printf("\t%s/*) names=\"", command);
		bash_names(table);
		puts("\" ;;");
	} else if (format == ZSH) {
		puts("\t\t\t'*:file:_files' ;;");
	}
	return true;
}

/* --- All of them --- */

static const struct {
	enum status status;
	const char *meaning;
} exits[] = {{ST_OK, "done"}, {ST_INTERNAL, "an error of stint's own, or no memory"},
	{ST_USAGE, "wrong use; also what stint does not do yet"},
	{ST_INVALID, "an invalid or unsupported model or data"},
	{ST_BUDGET, "no plan within the budget"},
	{ST_IO, "files, devices, the system's C compiler"},
	{ST_DIVERGED, "training met values that are not finite"},
	{ST_INTERRUPTED, "interrupted, after saving"}};

static void man_end(const char *self, const struct command *commands, int n)
{
	puts(".SH EXIT STATUS");
	for (size_t i = 0; i < sizeof exits / sizeof *exits; i++) {
		printf(".TP\n.B %d\n", (int)exits[i].status);
		put_man(exits[i].meaning);
		putchar('\n');
	}
	puts(".SH SEE ALSO");
	if (self)
		puts(".BR stint (1),");
	for (int i = 0, left = n - (self != NULL); i < n; i++)
		if (!self || strcmp(self, commands[i].name) != 0)
			printf(".BR stint\\-%s (1)%s\n", commands[i].name, --left ? "," : "");
}

static void man_begin(const char *title, const char *name, const char *summary)
{
	printf(".TH %s 1 \"\" \"stint %s\" \"User Commands\"\n.SH NAME\n", title, STINT_VERSION);
	printf("%s \\- ", name);
	put_man(summary);
	putchar('\n');
}

static void man_all(const struct command *commands, int n)
{
	man_begin("STINT", "stint", "train an ONNX model inside a memory budget");
	puts(".SH SYNOPSIS\n.B stint\n\\fICOMMAND\\fR [\\fIOPTIONS\\fR] ...\n.SH DESCRIPTION\n"
	     "stint turns a neural network (an ONNX file) into a C program that trains it inside a "
	     "memory budget given in bytes.\nEach command has a page of its own.\n.SH COMMANDS");
	for (int i = 0; i < n; i++) {
		printf(".TP\n.BR stint\\-%s (1)\n", commands[i].name);
		put_man(commands[i].summary);
		putchar('\n');
	}
	man_end(NULL, commands, n);
}

/* The command prints its part. */
static enum status ask(const struct command *c, enum format format, struct diag *d)
{
	char name[64];
	snprintf(name, sizeof name, "stint %s", c->name);
	const char *argv[] = {name, asked, format_name[format], NULL};
	return c->run(3, argv, d);
}

static enum status man_of(const char *name, const struct command *commands, int n, struct diag *d)
{
	for (int i = 0; i < n; i++) {
		char title[64];
		if (strcmp(commands[i].name, name) != 0)
			continue;
		snprintf(title, sizeof title, "STINT\\-%s", name);
		for (char *p = title; *p; p++)
			if (*p >= 'a' && *p <= 'z')
				*p = (char)(*p - 'a' + 'A');
		char page[64];
		snprintf(page, sizeof page, "stint\\-%s", name);
		man_begin(title, page, commands[i].summary);
		TRY(ask(&commands[i], MAN, d));
		man_end(name, commands, n);
		return ST_OK;
	}
	return diag_fail(d, ST_USAGE, NULL, NULL, "there is no command '%s'", name);
}

static void begin(enum format format, const struct command *commands, int n)
{
	if (format == FISH) {
		for (int i = 0; i < n; i++) {
			printf("complete -c stint -n __fish_use_subcommand -f -a %s -d '",
				commands[i].name);
			put_quoted(commands[i].summary);
			puts("'");
		}
		return;
	}
	if (format == ZSH) {
		puts("#compdef stint\n\n_stint()\n{\n\tlocal context state state_descr line\n"
		     "\ttypeset -A opt_args\n\tlocal -a commands=(");
		for (int i = 0; i < n; i++) {
			printf("\t\t'%s:", commands[i].name);
			put_quoted(commands[i].summary);
			puts("'");
		}
		puts("\t)\n\t_arguments -C '1:command:->command' '*::argument:->argument'\n"
		     "\tcase $state in\n\tcommand) _describe command commands ;;\n\targument)\n"
		     "\t\tcase $words[1] in");
		return;
	}
	fputs("# bash completion for stint\n_stint()\n{\n"
	      "\tlocal cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} names=\n"
	      "\tif ((COMP_CWORD == 1)); then\n\t\tCOMPREPLY=($(compgen -W \"",
		stdout);
	for (int i = 0; i < n; i++)
		printf("%s ", commands[i].name);
	puts("--help --version\" -- \"$cur\"))\n\t\treturn\n\tfi\n"
	     "\t# --name=value comes as three words\n"
	     "\tif [[ $cur == = ]]; then\n\t\tcur=\n"
	     "\telif [[ $prev == = ]]; then\n\t\tprev=${COMP_WORDS[COMP_CWORD - 2]}\n\tfi\n"
	     "\tcase ${COMP_WORDS[1]}/$prev in");
}

static void end(enum format format)
{
	if (format == ZSH)
		puts("\t\t*) _files ;;\n\t\tesac ;;\n\tesac\n}\n\n_stint \"$@\"");
	else if (format == BASH)
		puts("\tesac\n\t[[ $cur != -* ]] || COMPREPLY=($(compgen -W \"$names\" -- "
		     "\"$cur\"))\n"
		     "}\ncomplete -o default -F _stint stint");
}

enum status generate(
	int argc, char **argv, const struct command *commands, int ncommand, struct diag *d)
{
	const int format = argc > 2 ? format_of(argv[2]) : FORMATS;
	if (format == FORMATS || argc > 3 + (format == MAN))
		return diag_fail(
			d, ST_USAGE, NULL, NULL, "--generate man [COMMAND], or bash, zsh, fish");
	if (format == MAN && argc == 4)
		return man_of(argv[3], commands, ncommand, d);
	if (format == MAN) {
		man_all(commands, ncommand);
		return ST_OK;
	}
	begin((enum format)format, commands, ncommand);
	for (int i = 0; i < ncommand; i++)
		TRY(ask(&commands[i], (enum format)format, d));
	end((enum format)format);
	return ST_OK;
}
