/* SPDX-License-Identifier: MIT-0 */
/* Which body a run of a loop takes. C11; graph/, too, reads it. */
#ifndef STINT_KERNELS_WHICH_BODY_H
#define STINT_KERNELS_WHICH_BODY_H

#include <stdbool.h>
#include <stdint.h>

/* Run r, from 0: body r while r < lead, and then one of the `cycle` bodies behind these, in turn.
 * The last run's is body `last`, where that is not -1; where data say which run is the last one
 * (`any`), it is that behind `last` by which it would be else. */
static inline int which_body(bool is_last, int64_t r, int lead, int cycle, int last, bool any)
{
	const int body = r < lead ? (int)r : lead + (int)((r - lead) % cycle);
	return !is_last || last < 0 ? body : any ? last + body : last;
}

#endif
