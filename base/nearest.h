/* What somebody may have meant. */
#ifndef STINT_BASE_NEAREST_H
#define STINT_BASE_NEAREST_H

#include <stddef.h>

struct arena;

/* Letters to put in, take out, replace or swap with their neighbours to make one of the other,
 * words cut at 63 letters. */
int edit_distance(const char *a, const char *b);
/* Of two candidates the nearer to `word`, or `best` (NULL: none so far); NULL where both are so far
 * off that nobody means them. Fold a list with it. */
const char *nearest(const char *word, const char *best, const char *candidate);
/* "did you mean X?", a hint, X being the nearest of n; NULL: none is near, or there is no memory.
 */
const char *did_you_mean(struct arena *a, const char *word, const char *const *known, int n);
/* "'a', 'b', 'c'": of n names the three nearest to a pattern, by text_distance; "" of none, NULL:
 * no memory. */
const char *nearest_names(struct arena *a, const char *pattern, const char *const *name, int n);

#endif
