/* The command line: what main.c and the cmd_*.c files share. */
#ifndef STINT_CLI_CLI_H
#define STINT_CLI_CLI_H

#include <stdio.h>
#include <stdlib.h>

#include "base/base.h"

struct command {
	const char *name, *summary;
	enum status (*run)(int argc, const char **argv, struct diag *d);
	bool steps; /* runs a compiled step */
};

/* One per cmd_*.c; argv[0] is the command's name. */
enum status cmd_compile(int argc, const char **argv, struct diag *d);
enum status cmd_plan(int argc, const char **argv, struct diag *d);
enum status cmd_frontier(int argc, const char **argv, struct diag *d);
enum status cmd_show(int argc, const char **argv, struct diag *d);
enum status cmd_check(int argc, const char **argv, struct diag *d);
enum status cmd_layout(int argc, const char **argv, struct diag *d);
enum status cmd_run(int argc, const char **argv, struct diag *d);
enum status cmd_train(int argc, const char **argv, struct diag *d);
enum status cmd_eval(int argc, const char **argv, struct diag *d);
enum status cmd_predict(int argc, const char **argv, struct diag *d);
enum status cmd_bench(int argc, const char **argv, struct diag *d);
enum status cmd_doctor(int argc, const char **argv, struct diag *d);
enum status cmd_export(int argc, const char **argv, struct diag *d);

#endif
