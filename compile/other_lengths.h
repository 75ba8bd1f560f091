/* --dim NAME=64,128,256: a step for each length. The longest is compiled as any; the others run in
 * its arena, and what lasts over steps has the same place in all. */
#ifndef STINT_COMPILE_OTHER_LENGTHS_H
#define STINT_COMPILE_OTHER_LENGTHS_H

#include "compile/pipeline.h"

/* What is done with the step for a shorter length, which is planned; it is gone afterwards. */
struct length_visitor {
	enum status (*visit)(void *user, struct pipeline *p, int64_t length);
	void *user;
};

/* Plans each shorter length's step in turn, the shortest first, within the arena of `longest`,
 * which is planned and keeps what they came to; plans.arena_bytes grows to what all of them want
 * where one's own inputs have no room in it. Then calls `v` (NULL: nobody). Notes and warnings,
 * which `longest` has given, are not repeated. */
enum status lengths_each(struct pipeline *longest, const struct length_visitor *v);
/* Of a shorter length's step: whether what lasts over steps is what the longest one's has. Requires
 * the problems. */
enum status lengths_agree(const struct pipeline *p);

#endif
