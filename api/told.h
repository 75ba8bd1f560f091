/* Diagnostics kept as data, for stint.h. */
#ifndef STINT_API_TOLD_H
#define STINT_API_TOLD_H

#include "api/stint.h"
#include "base/onlooker.h"
#include "graph/lowering.h"

struct told {
	struct arena *arena; /* of the messages; NULL: there was no memory */
	size_t n, cap;
	struct stint_diagnostic *item;
	struct diag diag; /* reports here */
};

/* False: no memory. */
bool told_begin(struct told *t);
void told_end(struct told *t);
/* Forgets all. */
bool told_anew(struct told *t);
/* NULL past the last. */
const struct stint_diagnostic *told_at(const struct told *t, size_t index);

/* The same onlooker inside, to be cast from one thread's call. */
struct onlooker told_onlooker(const struct stint_onlooker *from);

#endif
