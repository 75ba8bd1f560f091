#include "base/once.h"

#include <string.h>

enum status once_fail(
	const char *what, const char *key, const char *first, const char *second, struct diag *d)
{
	return diag_fail(d, ST_USAGE, NULL, NULL, "%s%s is given twice: '%s' and '%s'", what, key,
		first, second);
}

enum status once_add(
	struct once *o, const char *what, const char *key, const char *value, struct diag *d)
{
	for (int i = 0; i < o->n; i++)
		if (!strcmp(o->key[i], key))
			return once_fail(what, key, o->value[i], value, d);
	if (o->n == ONCE_MAX)
		return diag_fail(d, ST_USAGE, NULL, NULL, "%s%s: too many options", what, key);
	o->key[o->n] = key;
	o->value[o->n++] = value;
	return ST_OK;
}
