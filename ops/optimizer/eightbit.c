/* AdamW whose moments are stored in 8 bits (Dettmers, Lewis, Shleifer, Zettlemoyer, "8-bit
 * Optimizers via Block-wise Quantization", 2021): block by block of 256 elements, relative to each
 * block's largest, by a map that is fine near zero. As bitsandbytes does it, and with its defaults:
 * what is smaller than 4096 elements goes to AdamW. */
#include <math.h>

#include "ops/optimizer/update_op.h"

enum { LEAST = 4096 };

static enum status adam8_emit(struct emit *e, const struct node *n)
{
	return update_adam(e, n,
		(struct update_kernel){.file = "adam8.h",
			.function = "adam8",
			.decoupled = true,
			.block = OP_STATE_BLOCK});
}

static enum status adam8_build(struct graph *g, const struct op_def *op, const struct update_of *u)
{
	struct node *n;
	return u->read[0]->numel < LEAST ? update_as_adamw(g, op, u, "eps")
					 : graph_update(g, op, u, &n);
}

const struct op_def ops_eightbit[] = {
	WHOLE_UPDATE("stint.AdamW8bitUpdate", "adamw8bit", update_infer,
		STATES({.name = "exp_avg", .shape = STATE_CODES},
			{.name = "exp_avg_sq", .shape = STATE_CODES},
			{.name = "exp_avg_absmax", .shape = STATE_SCALES},
			{.name = "exp_avg_sq_absmax", .shape = STATE_SCALES}),
		adam8_build, adam8_emit,
		OPTIONS(OPT_LR(1e-3), OPT_BETA("beta1", 0.9), OPT_BETA("beta2", 0.999),
			OPT_POSITIVE("eps", 1e-8), OPT_POSITIVE("weight_decay", 0.01)),
		.work = 150),
	{0},
};
