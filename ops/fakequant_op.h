/* Whole numbers that are made while a model runs. */
#ifndef STINT_OPS_FAKEQUANT_OP_H
#define STINT_OPS_FAKEQUANT_OP_H

#include "ops/data.h"

/* Of a QuantizeLinear or DequantizeLinear its scales and zero points, in a shape that x's goes
 * with. */
enum status quantiser_of(struct graph *g, const struct node *n, struct tensor *of[2]);
/* What a DequantizeLinear makes of whole numbers that some stint.Quantize made, or what moved
 * those. NULL: failed. */
struct tensor *dequantized(struct graph *g, const struct node *n);

#endif
