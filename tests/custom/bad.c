/* Shared objects that are refused: BAD says what is wrong with the record, VERSION which version it
 * claims. */
#include "stint_op.h"

__attribute__((unused)) static int body(struct stint_call *c)
{
	return stint_failed(c);
}

/* not in every one */
__attribute__((unused)) static int gradient(
	struct stint_call *c, const stint_value *dy, const bool *want, stint_value *dx)
{
	(void)dy, (void)want, (void)dx;
	return stint_failed(c);
}

#ifndef NO_RECORDS
const struct stint_op stint_ops[] = {
#ifndef EMPTY
	{.name = "test.bad.Good", .min_in = 1, .max_in = 1, .gradient = gradient, .body = body},
#ifdef BAD
	{BAD},
#endif
#endif
	{.name = NULL},
};
#endif
#ifdef VERSION
const int stint_ops_version = VERSION;
#endif
