/* Orders to place items in. Private to the folder. */
#ifndef STINT_PLANNER_PLACE_ORDERS_H
#define STINT_PLANNER_PLACE_ORDERS_H

#include "planner/placement/packing.h"

enum { ORDERS = 6 };

/* Largest first, by rule 0 .. ORDERS - 1. False when out of memory. */
bool order_sort(const struct packing *p, int rule, int *order);
/* As a skyline grows: always the item that can lie lowest on top of what is there, of several the
 * largest by the rule. Quadratic. */
bool order_skyline(const struct packing *p, int rule, int *order);

#endif
