/* Elementary functions of single precision as C text. The C library's do not vectorise, and their
 * bits change with its version; these are additions, products and choices only, so that loops over
 * them vectorise and every machine and compiler gives the same bits. Polynomials: minimax fits,
 * tools/math_fit.py makes those of the logarithm and of math_wide_text.h. The errors stated are
 * the largest over all floats (tests/codegen/math_table.c). */
#ifndef STINT_CODEGEN_MATH_TEXT_H
#define STINT_CODEGEN_MATH_TEXT_H

/* clang-format off */
static const char exp_f32_text[] =
"\n"
"/* e^x to 1 unit in the last place: 2^n e^r with n the whole number nearest x / ln 2 (a bit trick\n"
" * rounds), ln 2 in two parts, and a polynomial fitted to e^r. Of a limit that were a constant, a compiler\n"
" * would make a branch, which does not vectorise. */\n"
"static inline float exp_f32(float x)\n"
"{\n"
"\tconst float c = copysignf(fabsf(x) > 104 ? 104 : fabsf(x), x);\n"
"\tunion {\n"
"\t\tfloat f;\n"
"\t\tint32_t i;\n"
"\t} t = {.f = c * 1.44269504f + 12582912.0f}, low, high;\n"
"\tconst float n = t.f - 12582912.0f;\n"
"\tconst float r = (c - n * 0.693145752f) - n * 1.42860677e-6f;\n"
"\tfloat p = 0.0013814467f;\n"
"\tp = p * r + 0.008368781f;\n"
"\tp = p * r + 0.041668393f;\n"
"\tp = p * r + 0.1666652f;\n"
"\tp = p * r + 0.49999994f;\n"
"\tp = p * r * r + r + 1;\n"
"\tt.i -= 0x4B400000;\n"
"\tlow.i = ((t.i >> 1) + 127) << 23;\n"
"\thigh.i = (t.i - (t.i >> 1) + 127) << 23;\n"
"\treturn p * low.f * high.f;\n"
"}\n"
"#define EXP exp_f32\n"
"\n";

static const char tanh_f32_text[] =
"\n"
"/* tanh x to 1.6 units in the last place: a polynomial near 0, (1 - t) / (1 + t) elsewhere. */\n"
"static inline float tanh_f32(float x)\n"
"{\n"
"\tconst float a = fabsf(x), s = x * x;\n"
"\tfloat p = -0.006282473f;\n"
"\tp = p * s + 0.021077758f;\n"
"\tp = p * s - 0.05385386f;\n"
"\tp = p * s + 0.13332602f;\n"
"\tp = p * s - 0.3333332f;\n"
"\tp = x * s * p + x;\n"
"\tconst float t = EXP(-2 * a), q = (1 - t) / (1 + t);\n"
"\treturn copysignf(a < 0.55f ? p : q, x);\n"
"}\n"
"#define TANH tanh_f32\n"
"\n";

static const char erf_f32_text[] =
"\n"
"/* erf x to 1.6 units in the last place: a polynomial near 0, 1 - e^q elsewhere, where q is fitted\n"
" * to log erfc. */\n"
"static inline float erf_f32(float x)\n"
"{\n"
"\tconst float a = fabsf(x), s = x * x, z = a > 4 ? 4 : a;\n"
"\tfloat p = 7.889123e-05f;\n"
"\tp = p * s - 0.0008020842f;\n"
"\tp = p * s + 0.0051895357f;\n"
"\tp = p * s - 0.026854444f;\n"
"\tp = p * s + 0.112836f;\n"
"\tp = p * s - 0.37612626f;\n"
"\tp = p * s + 0.12837917f;\n"
"\tp = p * x + x;\n"
"\tfloat q = -2.1686763e-05f;\n"
"\tq = q * z + 0.0004413353f;\n"
"\tq = q * z - 0.0042045563f;\n"
"\tq = q * z + 0.02520824f;\n"
"\tq = q * z - 0.108418554f;\n"
"\tq = q * z - 0.6332199f;\n"
"\tq = q * z - 1.1295784f;\n"
"\tq = q * z + 0.00018803705f;\n"
"\treturn a < 1 ? p : copysignf(1 - EXP(q), x);\n"
"}\n"
"#define ERF erf_f32\n"
"\n";

static const char normal_cdf_f32_text[] =
"\n"
"/* The normal distribution at x: to 1.6e-7, and x times it to 2.1e-7, as gelu wants. e^(-x^2 / 2) times a\n"
" * polynomial in |x| (for the Mills ratio), whose error is bounded as weighted so. */\n"
"static inline float normal_cdf_f32(float x)\n"
"{\n"
"\tconst float a = fabsf(x), t = a < 15 ? a : 15;\n"
"\tfloat p = -2.46752535e-07f;\n"
"\tp = p * t + 6.32497859e-06f;\n"
"\tp = p * t - 7.29420353e-05f;\n"
"\tp = p * t + 0.000507415913f;\n"
"\tp = p * t - 0.00242665573f;\n"
"\tp = p * t + 0.00870329048f;\n"
"\tp = p * t - 0.0251217782f;\n"
"\tp = p * t + 0.0616728589f;\n"
"\tp = p * t - 0.13270168f;\n"
"\tp = p * t + 0.249950528f;\n"
"\tp = p * t - 0.398938775f;\n"
"\tp = p * t + 0.49999997f;\n"
"\tp *= EXP(-0.5f * x * x);\n"
"\treturn x < 0 ? p : 1 - p;\n"
"}\n"
"#define NORMAL_CDF normal_cdf_f32\n"
"\n";

static const char log_parts_text[] =
"\n"
"/* log(2^e (1 + f)) with 1 + f from sqrt(1/2) to sqrt(2): log(1 + f) = f - f^2 / 2 + a polynomial, log 2\n"
" * in two parts. */\n"
"static inline float log_parts(float e, float f)\n"
"{\n"
"\tconst float s = f * f;\n"
"\tfloat p = 0.0674665868f;\n"
"\tp = p * f - 0.116756648f;\n"
"\tp = p * f + 0.118881606f;\n"
"\tp = p * f - 0.124055862f;\n"
"\tp = p * f + 0.142195523f;\n"
"\tp = p * f - 0.166679963f;\n"
"\tp = p * f + 0.200021192f;\n"
"\tp = p * f - 0.250000089f;\n"
"\tp = p * f + 0.333333135f;\n"
"\tp = p * f * s - e * 2.12194440e-4f;\n"
"\treturn p - 0.5f * s + f + e * 0.693359375f;\n"
"}\n";

static const char log_f32_text[] =
"\n"
"/* log x to 0.9 units in the last place. */\n"
"static inline float log_f32(float x)\n"
"{\n"
"\tconst int denormal = x < 1.17549435e-38f;\n"
"\tunion {\n"
"\t\tfloat f;\n"
"\t\tuint32_t i;\n"
"\t} u = {.f = denormal ? x * 8388608 : x}, m;\n"
"\tu.i += 0x3F800000 - 0x3F3504F3;\n"
"\tm.i = (u.i & 0x7FFFFF) + 0x3F3504F3;\n"
"\tconst float e = (float)((int32_t)(u.i >> 23) - (denormal ? 150 : 127));\n"
"\tconst float p = log_parts(e, m.f - 1), q = x < INFINITY ? p : x;\n"
"\treturn x > 0 ? q : x == 0 ? -INFINITY : NAN;\n"
"}\n"
"#define LOG log_f32\n";

static const char log1p_f32_text[] =
"\n"
"/* log(1 + x) to 1.4 units in the last place, with what 1 + x loses to rounding. */\n"
"static inline float log1p_f32(float x)\n"
"{\n"
"\tunion {\n"
"\t\tfloat f;\n"
"\t\tuint32_t i;\n"
"\t} u = {.f = 1 + x}, m, scale;\n"
"\tconst float lost = x < 1 ? x - (u.f - 1) : 1 - (u.f - x);\n"
"\tu.i += 0x3F800000 - 0x3F3504F3;\n"
"\tm.i = (u.i & 0x7FFFFF) + 0x3F3504F3;\n"
"\tscale.i = 0x7F800000 - (u.i & 0x7F800000); /* 2^(1 - e) */\n"
"\tconst float e = (float)((int32_t)(u.i >> 23) - 127);\n"
"\tconst float p = log_parts(e, m.f - 1 + lost * scale.f * 0.5f), q = x < INFINITY && x != 0 ? p : x;\n"
"\treturn x > -1 ? q : x == -1 ? -INFINITY : NAN;\n"
"}\n"
"#define LOG1P log1p_f32\n";

static const char int_power_text[] =
"\n"
"/* x to the power of n, modulo 2^64; 1 / x^-n without its fraction when n < 0. */\n"
"static inline int64_t int_power(int64_t x, int64_t n)\n"
"{\n"
"\tuint64_t p = 1, s = (uint64_t)x;\n"
"\tif (n < 0)\n"
"\t\treturn x == 1 ? 1 : x == -1 ? 1 - 2 * (n & 1) : 0;\n"
"\tfor (; n > 0; n >>= 1, s *= s)\n"
"\t\tif (n & 1)\n"
"\t\t\tp *= s;\n"
"\treturn (int64_t)p;\n"
"}\n";

/* clang-format on */

#endif
