/* Rows of tokens whose ends are filled with one that says nothing. */
#ifndef STINT_CLI_FEED_PAD_H
#define STINT_CLI_FEED_PAD_H

#include "cli/feed.h"

/* Of a batch of `f` whose parts lie at at[0..f->n): the tokens of the longest row, and labels
 * behind a row's end become such as the loss does not count. INT64_MAX: nothing is padded. */
int64_t feed_pad_mask(const struct feed *f, unsigned char *const *at);

#endif
