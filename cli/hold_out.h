/* --hold-out: a share of the data that is evaluated and not trained on. Which samples these are
 * depends on how many there are alone: runs of any --seed hold out the same, and `eval` finds
 * them again. */
#ifndef STINT_CLI_HOLD_OUT_H
#define STINT_CLI_HOLD_OUT_H

#include "cli/feed.h"

/* What it says is a number of samples or a share of them. */
enum status hold_out_check(const char *text, struct diag *d);
/* The feed has these alone from now on (data_options.held), or all others. Both must be some. */
enum status hold_out_take(struct feed *f, struct diag *d);
/* Where sample `k` of the feed stands in its files. */
static inline int64_t hold_out_row(const struct feed *f, int64_t k)
{
	return f->drawn.side ? shuffle_at(&f->drawn, f->from + k) : k;
}

#endif
