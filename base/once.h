/* What may be given once: options, and the KEY=VALUE pairs in one. */
#ifndef STINT_BASE_ONCE_H
#define STINT_BASE_ONCE_H

#include "base/base.h"

enum { ONCE_MAX = 64 };

struct once {
	int n;
	const char *key[ONCE_MAX], *value[ONCE_MAX]; /* as given; whoever fills it keeps them */
};

/* Fails where `key` was given before, naming both values. `what`: what is read, "'sgd:lr=1,lr=2':
 * ", or "--" before an option's own name. */
enum status once_add(
	struct once *o, const char *what, const char *key, const char *value, struct diag *d);
/* The same failure, for whoever keeps the first by itself. */
enum status once_fail(
	const char *what, const char *key, const char *first, const char *second, struct diag *d);

#endif
