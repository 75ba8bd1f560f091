/* AdamW whose moments are stored in 8 bits (Dettmers, Lewis, Shleifer, Zettlemoyer, "8-bit
 * Optimizers via Block-wise Quantization", 2021): block by block of 256 elements, relative to each
 * block's largest, by a map that is fine near zero. As bitsandbytes does it, and with its defaults:
 * what is smaller than 4096 elements goes to AdamW. */
#include <math.h>

#include "ops/optimizer/update_op.h"

enum { LEAST = 4096 };

static enum status adam8_build(struct graph *g, const struct op_def *op, const struct update_of *u)
{
	struct node *n;
	return u->read[0]->numel < LEAST ? update_as_adamw(g, op, u, "eps")
					 : graph_update(g, op, u, &n);
}

/* clang-format off */
const struct op_def ops_eightbit[] = {
	RULE("stint.AdamW8bitUpdate", 0, update_infer, update_emit, "adamw8bit", 150,
		OPTIONS(RATE(1e-3), BETAS(0.9, 0.999), EPS(1e-8), DECAY(0.01)),
		STATES({.name = "exp_avg", .shape = STATE_CODES}, {.name = "exp_avg_sq", .shape = STATE_CODES, .positive = true},
			{.name = "exp_avg_absmax", .shape = STATE_SCALES}, {.name = "exp_avg_sq_absmax", .shape = STATE_SCALES}),
		ONCE(MOMENT_BIAS),
		EACH(MOMENT_LINES, {"p", "p - rate * exp_avg / (SQRT(exp_avg_sq) / root + eps)"}),
		.decoupled = true, .build = adam8_build),
	{0},
};
/* clang-format on */
