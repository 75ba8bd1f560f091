/* --lora: adapters beside an imported model's weights. */
#ifndef STINT_COMPILE_ADAPTERS_H
#define STINT_COMPILE_ADAPTERS_H

#include "compile/pipeline.h"

/* Of an imported graph the one with what p->o->lora says, if it says anything. Sets p->adapter. */
enum status adapters_add(struct pipeline *p, struct diag *d, struct graph **g);

#endif
