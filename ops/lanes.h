/* Sums that norms share, as C text: fixed trees of 16 lanes, like sum_lanes. Texts with @ are for
 * emit_helper_on. */
#ifndef STINT_OPS_LANES_H
#define STINT_OPS_LANES_H

#include "ops/family.h"

#define LANES_BODY(type, term)                                                                     \
	"\t" type " lane[16] = {0};\n"                                                             \
	"\tint64_t whole = n - n % 16;\n"                                                          \
	"\tfor (int64_t i = 0; i < whole; i += 16)\n"                                              \
	"\t\tfor (int k = 0; k < 16; k++)\n"                                                       \
	"\t\t\tlane[k] += " term(                                                                  \
		"i + k") ";\n"                                                                     \
			 "\tfor (int64_t i = whole; i < n; i++)\n"                                 \
			 "\t\tlane[i - whole] += " term(                                           \
				 "i") ";\n"                                                        \
				      "\tfor (int half = 8; half > 0; half /= 2)\n"                \
				      "\t\tfor (int k = 0; k < half; k++)\n"                       \
				      "\t\t\tlane[k] += lane[k + half];\n"                         \
				      "\treturn lane[0];\n"

#define EXP_TERM(i) "EXP(@value0(x[" i "]) - top)"
#define VALUE_TERM(i) "@value0(x[" i "])"
#define SELF_TERM(i) "(double)@value0(x[" i "])"
#define SQUARE_TERM(i) "(@value0(x[" i "]) - mean) * (@value0(x[" i "]) - mean)"
#define CENTRED_TERM(i) "(double)@value0(dy[" i "]) * ((double)@value1(x[" i "]) - mean)"

/* Σ x, of whatever type; of reals, sum_wide is this. */
static const char sum_lanes_of[] =
	"/* The sum of n numbers, in a fixed tree of 16 lanes of doubles. */\n"
	"static double @name(const @0 *x, int64_t n)\n{\n" LANES_BODY("double", SELF_TERM) "}\n";

/* The function that sums elements of t in doubles. */
static inline const char *wide_sum(struct emit *e, const struct tensor *t)
{
	return dtype_is_narrow(t->dtype) ? emit_helper_on(e, "sum_lanes_of", sum_lanes_of, 1, &t)
					 : "sum_wide";
}

static const char sum_reals_of[] = "/* The sum of n numbers, in a fixed tree of 16 lanes. */\n"
				   "static real @name(const @0 *x, int64_t n)\n{\n" LANES_BODY(
					   "real", VALUE_TERM) "}\n";

/* The function that sums elements of t in the real type: of reals, sum_lanes, with the same bits.
 */
static inline const char *real_sum(struct emit *e, const struct tensor *t)
{
	return dtype_is_narrow(t->dtype) ? emit_helper_on(e, "sum_reals_of", sum_reals_of, 1, &t)
					 : "sum_lanes";
}

/* Σ (x − mean)² */
static const char squares_lanes[] =
	"/* The sum of (x - mean)^2, in a fixed tree of 16 lanes. */\n"
	"static real @name(const @0 *x, real mean, int64_t n)\n{\n" LANES_BODY(
		"real", SQUARE_TERM) "}\n";

/* Σ dy (x − mean) */
static const char centred_lanes[] =
	"/* The sum of dy * (x - mean), in a fixed tree of 16 lanes of doubles. */\n"
	"static double @name(const @0 *dy, const @1 *x, double mean, int64_t "
	"n)\n{\n" LANES_BODY("double", CENTRED_TERM) "}\n";

/* Σ exp(x − top) */
static const char exp_lanes[] =
	"/* The sum of exp(x - top), in a fixed tree of 16 lanes. */\n"
	"static real @name(const @0 *x, real top, int64_t n)\n{\n" LANES_BODY(
		"real", EXP_TERM) "}\n";

/* max x; NaNs are passed over. */
static const char max_lanes[] = "/* The largest of n numbers. */\n"
				"static real @name(const @0 *x, int64_t n)\n"
				"{\n"
				"\treal lane[16];\n"
				"\tint64_t whole = n - n % 16;\n"
				"\tfor (int k = 0; k < 16; k++)\n"
				"\t\tlane[k] = @value0(x[0]);\n"
				"\tfor (int64_t i = 0; i < whole; i += 16)\n"
				"\t\tfor (int k = 0; k < 16; k++)\n"
				"\t\t\tlane[k] = MAX(@value0(x[i + k]), lane[k]);\n"
				"\tfor (int64_t i = whole; i < n; i++)\n"
				"\t\tlane[0] = MAX(@value0(x[i]), lane[0]);\n"
				"\tfor (int k = 1; k < 16; k++)\n"
				"\t\tlane[0] = MAX(lane[k], lane[0]);\n"
				"\treturn lane[0];\n"
				"}\n";

#endif
