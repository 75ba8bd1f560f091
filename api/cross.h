/* Machines that are not this one: their compilers, and what was compiled for them. */
#ifndef STINT_API_CROSS_H
#define STINT_API_CROSS_H

#include "base/base.h"

/* Whether `prefix` can be one of a compiler's name, aarch64-linux-gnu: it goes into a Makefile. */
enum status cross_check(const char *prefix, struct diag *d);
/* Whether PREFIX-gcc is among the programs here. */
enum status cross_compiler(struct arena *a, const char *prefix, struct diag *d);
/* The machine that the file at `path` was compiled for, where that is another than stint's own; or
 * NULL, also where it cannot be told. */
const char *cross_machine(const char *path);

#endif
