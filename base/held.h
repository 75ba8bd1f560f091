/* Messages that are held back until it is known whether they are to be told. */
#ifndef STINT_BASE_HELD_H
#define STINT_BASE_HELD_H

#include "base/base.h"

struct held_message;

struct held {
	struct diag diag; /* what reports go to */
	struct arena *a;
	struct held_message *first, **end;
};

/* `h` stays where it is while h->diag is in use. The messages are kept in `a`. */
void held_begin(struct held *h, struct arena *a);
/* All of them, in order, with their counts. */
void held_tell(const struct held *h, struct diag *d);

#endif
