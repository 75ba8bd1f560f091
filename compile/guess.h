/* What a model's step is planned for where nobody says: a loss that fits its outputs, and AdamW.
 * Bytes and times depend little on either. */
#ifndef STINT_COMPILE_GUESS_H
#define STINT_COMPILE_GUESS_H

#include "compile/pipeline.h"

/* Requires p->imported. Where o->loss is NULL: with o->guess sets p->losses, and tells; else says
 * that it is missing, and which one would fit. */
enum status guess_loss(struct pipeline *p);
/* With o->guess, what o->optimizer is taken for where it is NULL, and tells; else o->optimizer. */
const char *guess_optimizer(const struct pipeline *p);

#endif
