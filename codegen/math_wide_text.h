/* More elementary functions of single precision as C text (math_text.h), evaluated in double: half
 * the lanes, but no tricks, and all but correctly rounded: within 0.51 units in the last place,
 * for the sine and cosine, whose polynomials are in single precision, 1.6
 * (tests/codegen/math_table.c; all floats for those two, each 23rd for the others). */
#ifndef STINT_CODEGEN_MATH_WIDE_TEXT_H
#define STINT_CODEGEN_MATH_WIDE_TEXT_H

/* clang-format off */
static const char log_wide_text[] =
"\n"
"/* The logarithm of a number >= 0 that is not denormal, in double, to 2^-44 of its size: v = 2^e m with\n"
" * m from sqrt(1/2) to sqrt(2), log m = log((1 + s) / (1 - s)). */\n"
"static inline double log_wide(double v)\n"
"{\n"
"\tunion {\n"
"\t\tdouble f;\n"
"\t\tuint64_t i;\n"
"\t} u = {.f = v}, e, m;\n"
"\tu.i += 0x3FF0000000000000 - 0x3FE6A09E667F3BCD;\n"
"\te.i = u.i >> 52 | 0x4330000000000000; /* 2^52 + 1023 + e */\n"
"\tm.i = (u.i & 0xFFFFFFFFFFFFF) + 0x3FE6A09E667F3BCD;\n"
"\tconst double s = (m.f - 1) / (m.f + 1), t = s * s;\n"
"\tdouble p = 0.19584055799575745;\n"
"\tp = p * t + 0.22176194294456125;\n"
"\tp = p * t + 0.2857210905260582;\n"
"\tp = p * t + 0.3999999562252806;\n"
"\tp = p * t + 0.6666666667579999;\n"
"\tp = p * t * s + 2 * s + (e.f - 4503599627371519) * 0.6931471805599453;\n"
"\treturn v == 0 ? -INFINITY : v < INFINITY ? p : v;\n"
"}\n";

static const char exp_wide_text[] =
"\n"
"/* e^z in double, to 2^-34 of its size; beyond +-200, where a float is infinite or 0, that of +-200. */\n"
"static inline double exp_wide(double z)\n"
"{\n"
"\tconst double c = copysign(fabs(z) > 200 ? 200 : fabs(z), z);\n"
"\tunion {\n"
"\t\tdouble f;\n"
"\t\tuint64_t i;\n"
"\t} t = {.f = c * 1.4426950408889634 + 6755399441055744}, scale;\n"
"\tconst double r = c - (t.f - 6755399441055744) * 0.6931471805599453;\n"
"\tdouble p = 0.0001979034433120937;\n"
"\tp = p * r + 0.0013944648865798586;\n"
"\tp = p * r + 0.008333497024283423;\n"
"\tp = p * r + 0.041666295089200764;\n"
"\tp = p * r + 0.16666665869343872;\n"
"\tp = p * r + 0.5000000067644176;\n"
"\tp = p * r * r + r + 1;\n"
"\tscale.i = (t.i + 1023) << 52;\n"
"\treturn p * scale.f;\n"
"}\n";

static const char pow_f32_text[] =
"\n"
"/* x^y = e^(y log |x|); negative where x is and y an odd whole number. */\n"
"static inline float pow_f32(float x, float y)\n"
"{\n"
"\tconst double v = (double)y, big = 6755399441055744; /* added and taken off: rounds */\n"
"\tconst int whole = v + big - big == v, even = v / 2 + big - big == v / 2;\n"
"\tconst float a = fabsf(x);\n"
"\tconst int odd = whole & !even, unit = (a == 1) & (y == y), one = (x == 1) | (y == 0);\n"
"\tconst int outside = (x < 0) & (a < INFINITY) & !whole;\n"
"\tconst double z = unit ? 0 : v; /* 1 to an infinite power */\n"
"\tconst float p = copysignf((float)exp_wide(z * log_wide((double)a)), odd ? x : 1);\n"
"\treturn one ? 1 : outside ? NAN : p;\n"
"}\n"
"#define POW pow_f32\n";

static const char quarter_turns_text[] =
"\n"
"/* What x, >= 0, is above a whole number n of quarter turns, from -pi/4 to pi/4, and n modulo 2^32. 2 / pi\n"
" * is taken as a sum of three numbers, so short that x times the first two is not rounded; for large x\n"
" * 2^-27k x is taken times 2^27k 2 / pi modulo 4. */\n"
"static inline uint32_t quarter_turns(float x, double *rest)\n"
"{\n"
"\tconst double whole = 6755399441055744; /* added and taken off: rounds */\n"
"\tconst int k1 = x >= 0x1p50f, k2 = x >= 0x1p77f, k3 = x >= 0x1p104f;\n"
"\tconst double c0 = k3 ? -0x1.505c15ap+0 : k2 ? 0x1.4a7f09ep+0 : k1 ? -0x1.1b1bbecp-1 : 0x1.45f306cp-1;\n"
"\tconst double c1 = k3 ? 0x1.377036ep-29 : k2 ? -0x1.4170566p-29 : k1 ? 0x1.29fc276p-29 : 0x1.c9c882ap-29;\n"
"\tconst double c2 = k3 ? -0x1.d6a66c3bc6fbep-59 : k2 ? 0x1.bb81b6c52b328p-59 : k1 ? -0x1.05c1596447e49p-58\n"
"\t\t\t\t\t\t\t\t\t   : 0x1.4fe13abe8fa9ap-59;\n"
"\tconst double a = (double)(k3 ? x * 0x1p-81f : k2 ? x * 0x1p-54f : k1 ? x * 0x1p-27f : x);\n"
"\tunion {\n"
"\t\tdouble f;\n"
"\t\tuint64_t i;\n"
"\t} n0 = {.f = a * c0 + whole}, n1 = {.f = a * c1 + whole}, n2;\n"
"\tconst double s0 = a * c0 - (n0.f - whole), s1 = a * c1 - (n1.f - whole);\n"
"\tn2.f = s0 + s1 + whole;\n"
"\t*rest = (s0 - (n2.f - whole) + s1 + a * c2) * 1.5707963267948966;\n"
"\treturn (uint32_t)n0.i + (uint32_t)n1.i + (uint32_t)n2.i;\n"
"}\n";

static const char sine_part_text[] =
"\n"
"/* sin r, or the cosine if n is odd, for r from -pi/4 to pi/4; negative if n has the bit 2. */\n"
"static inline float sine_part(uint32_t n, float r)\n"
"{\n"
"\tconst float s = r * r;\n"
"\tfloat p = -0.000195152694f, q = 2.44331568e-05f;\n"
"\tp = p * s + 0.0083321603f;\n"
"\tp = p * s - 0.166666552f;\n"
"\tp = p * s * r + r;\n"
"\tq = q * s - 0.00138873165f;\n"
"\tq = q * s + 0.0416666456f;\n"
"\tq = q * s * s - 0.5f * s + 1;\n"
"\tconst float v = n & 1 ? q : p;\n"
"\treturn n & 2 ? -v : v;\n"
"}\n";

static const char sin_f32_text[] =
"\n"
"/* sin x, for any x, to 1.6 units in the last place. */\n"
"static inline float sin_f32(float x)\n"
"{\n"
"\tdouble r;\n"
"\tconst uint32_t n = quarter_turns(fabsf(x), &r);\n"
"\treturn sine_part(n, (float)r) * copysignf(1, x);\n"
"}\n"
"#define SIN sin_f32\n";

static const char cos_f32_text[] =
"\n"
"/* cos x, for any x, to 1.6 units in the last place. */\n"
"static inline float cos_f32(float x)\n"
"{\n"
"\tdouble r;\n"
"\tconst uint32_t n = quarter_turns(fabsf(x), &r);\n"
"\treturn sine_part(n + 1, (float)r);\n"
"}\n"
"#define COS cos_f32\n";

static const char tan_f32_text[] =
"\n"
"/* tan x, for any x. */\n"
"static inline float tan_f32(float x)\n"
"{\n"
"\tdouble r;\n"
"\tconst uint32_t n = quarter_turns(fabsf(x), &r);\n"
"\tconst double t = r * r;\n"
"\tdouble p = 2.7181216714839885e-06, q = 2.4383566624609114e-05;\n"
"\tp = p * t - 0.00019839312274764722;\n"
"\tp = p * t + 0.008333329304862233;\n"
"\tp = p * t - 0.16666666640797287;\n"
"\tp = p * t * r + r;\n"
"\tq = q * t - 0.0013886681639675668;\n"
"\tq = q * t + 0.04166662035682289;\n"
"\tq = q * t - 0.49999999694472597;\n"
"\tq = q * t + 1;\n"
"\treturn (float)(n & 1 ? -q / p : p / q) * copysignf(1, x);\n"
"}\n"
"#define TAN tan_f32\n";

static const char sinh_f32_text[] =
"\n"
"/* sinh x: a polynomial near 0, (e^x - e^-x) / 2 elsewhere. */\n"
"static inline float sinh_f32(float x)\n"
"{\n"
"\tconst double a = (double)fabsf(x), t = a * a, e = exp_wide(a);\n"
"\tdouble p = 2.816953779495753e-06;\n"
"\tp = p * t + 0.00019836159301669085;\n"
"\tp = p * t + 0.008333350060740964;\n"
"\tp = p * t + 0.16666666497527666;\n"
"\tp = p * t * a + a;\n"
"\treturn copysignf((float)(a < 1 ? p : (e - 1 / e) / 2), x);\n"
"}\n"
"#define SINH sinh_f32\n";

static const char cosh_f32_text[] =
"\n"
"/* cosh x = (e^x + e^-x) / 2. */\n"
"static inline float cosh_f32(float x)\n"
"{\n"
"\tconst double e = exp_wide((double)x);\n"
"\treturn (float)((e + 1 / e) / 2);\n"
"}\n"
"#define COSH cosh_f32\n";

static const char asin_small_text[] =
"\n"
"/* asin r, |r| at most 1/2; s is r^2. */\n"
"static inline double asin_small(double r, double s)\n"
"{\n"
"\tdouble p = 0.03464640049136353;\n"
"\tp = p * s + 0.007509415171317025;\n"
"\tp = p * s + 0.024604730036211886;\n"
"\tp = p * s + 0.030112522729500935;\n"
"\tp = p * s + 0.044659972350071936;\n"
"\tp = p * s + 0.07499948897064608;\n"
"\tp = p * s + 0.16666667180261155;\n"
"\treturn p * s * r + r;\n"
"}\n";

static const char asin_f32_text[] =
"\n"
"/* asin x; beyond 1/2 it is pi/2 - 2 asin sqrt((1 - x) / 2). */\n"
"static inline float asin_f32(float x)\n"
"{\n"
"\tconst double a = (double)fabsf(x), s = a > 0.5 ? (1 - a) / 2 : a * a;\n"
"\tconst double p = asin_small(a > 0.5 ? sqrt(s) : a, s);\n"
"\treturn copysignf((float)(a > 0.5 ? 1.5707963267948966 - 2 * p : p), x);\n"
"}\n"
"#define ASIN asin_f32\n";

static const char acos_f32_text[] =
"\n"
"/* acos x = pi/2 - asin x; beyond 1/2 it is 2 asin sqrt((1 - x) / 2). */\n"
"static inline float acos_f32(float x)\n"
"{\n"
"\tconst double v = (double)x, a = fabs(v), s = a > 0.5 ? (1 - a) / 2 : a * a;\n"
"\tconst double p = asin_small(a > 0.5 ? sqrt(s) : v, s);\n"
"\treturn (float)(v > 0.5 ? 2 * p : v < -0.5 ? 3.141592653589793 - 2 * p : 1.5707963267948966 - p);\n"
"}\n"
"#define ACOS acos_f32\n";

static const char atan_f32_text[] =
"\n"
"/* atan x = pi/4 + atan((x - 1) / (x + 1)) = pi/2 - atan(1 / x), so that a polynomial's argument stays\n"
" * below tan(pi/8). */\n"
"static inline float atan_f32(float x)\n"
"{\n"
"\tconst double a = (double)fabsf(x);\n"
"\tconst int middle = a > 0.41421356237309503, far = a > 2.414213562373095;\n"
"\tconst double v = (far ? -1 : middle ? a - 1 : a) / (far ? a : middle ? a + 1 : 1), t = v * v;\n"
"\tdouble p = 0.0474405366729127;\n"
"\tp = p * t - 0.08476271392173515;\n"
"\tp = p * t + 0.11044691940332259;\n"
"\tp = p * t - 0.14282007778701092;\n"
"\tp = p * t + 0.19999903908545094;\n"
"\tp = p * t - 0.33333332499130963;\n"
"\tp = p * t * v + v + (far ? 1.5707963267948966 : middle ? 0.7853981633974483 : 0);\n"
"\treturn copysignf((float)p, x);\n"
"}\n"
"#define ATAN atan_f32\n";

static const char asinh_f32_text[] =
"\n"
"/* asinh x = log(x + sqrt(x^2 + 1)); x - x^3 / 6 near 0. */\n"
"static inline float asinh_f32(float x)\n"
"{\n"
"\tconst double a = (double)fabsf(x), s = a * a, l = log_wide(a + sqrt(s + 1));\n"
"\treturn copysignf((float)(a < 0x1p-12 ? a - s * a / 6 : l), x);\n"
"}\n"
"#define ASINH asinh_f32\n";

static const char acosh_f32_text[] =
"\n"
"/* acosh x = log(x + sqrt(x^2 - 1)). */\n"
"static inline float acosh_f32(float x)\n"
"{\n"
"\tconst double v = (double)x;\n"
"\treturn x < 1 ? NAN : (float)log_wide(v + sqrt(v * v - 1));\n"
"}\n"
"#define ACOSH acosh_f32\n";

static const char atanh_f32_text[] =
"\n"
"/* atanh x = log((1 + x) / (1 - x)) / 2; x + x^3 / 3 near 0. */\n"
"static inline float atanh_f32(float x)\n"
"{\n"
"\tconst double a = (double)fabsf(x), l = log_wide((1 + a) / (1 - a)) / 2;\n"
"\treturn a > 1 ? NAN : copysignf((float)(a < 0x1p-12 ? a + a * a * a / 3 : l), x);\n"
"}\n"
"#define ATANH atanh_f32\n";

/* clang-format on */

#endif
