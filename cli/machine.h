/* The machine that times are measured on. */
#ifndef STINT_CLI_MACHINE_H
#define STINT_CLI_MACHINE_H

#include "planner/problem/costs.h"

/* Set c's cpu, isa and (where `library`) library for this machine; reads c->threads. */
enum status machine_describe(struct arena *a, bool library, struct costs *c, struct diag *d);

#endif
