/* Recognising a spelled-out cross-entropy: for the record (crossentropy.c) only. */
#ifndef STINT_OPS_CROSSENTROPY_H
#define STINT_OPS_CROSSENTROPY_H

#include "ops/family.h"

enum status crossentropy_match(struct graph *g, const struct node *n, struct tensor **replace);

#endif
