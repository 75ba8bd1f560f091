/* The narrow types as C text: bf16, the upper half of a float, and fp16, IEEE 754's binary16;
 * rounded to nearest, ties to even. Whole numbers, sums and choices only, so that loops over them
 * vectorise and the bits are the same on every machine. */
#ifndef STINT_CODEGEN_NARROW_TEXT_H
#define STINT_CODEGEN_NARROW_TEXT_H

/* clang-format off */
static const char bf16_text[] =
"\n"
"/* The upper half of a float: how values are stored. */\n"
"typedef uint16_t bf16;\n"
"#define BF16(place) ((bf16 *)(arena + (place)))\n";

static const char wide_text[] =
"static inline float WIDE(bf16 x)\n"
"{\n"
"\tunion {\n"
"\t\tuint32_t i;\n"
"\t\tfloat f;\n"
"\t} t = {.i = (uint32_t)x << 16};\n"
"\treturn t.f;\n"
"}\n";

static const char narrow_text[] =
"/* To the nearest, ties to even; a NaN stays one. */\n"
"static inline bf16 NARROW(float x)\n"
"{\n"
"\tunion {\n"
"\t\tfloat f;\n"
"\t\tuint32_t i;\n"
"\t} t = {.f = x};\n"
"\tconst uint32_t near = (t.i + 0x7FFF + (t.i >> 16 & 1)) >> 16, nan = t.i >> 16 | 0x40;\n"
"\treturn (bf16)(x != x ? nan : near);\n"
"}\n";
static const char fp16_text[] =
"\n"
"/* 1 bit of sign, 5 of exponent, 10 of fraction: how values are stored. */\n"
"typedef uint16_t fp16;\n"
"#define FP16(place) ((fp16 *)(arena + (place)))\n";

static const char wide_fp16_text[] =
"static inline float WIDE(fp16 x)\n"
"{\n"
"\tunion {\n"
"\t\tuint32_t i;\n"
"\t\tfloat f;\n"
"\t} t, tiny;\n"
"\tconst uint32_t bits = (uint32_t)(x & 0x7FFF) << 13, top = bits & 0x0F800000;\n"
"\tt.i = bits + (top == 0x0F800000 ? 0x70000000 : 0x38000000); /* infinity, NaN : normal */\n"
"\ttiny.i = bits + 0x38800000;\n"
"\ttiny.f -= 0x1p-14f; /* below the normal numbers */\n"
"\tt.i = (top == 0 ? tiny.i : t.i) | (uint32_t)(x & 0x8000) << 16;\n"
"\treturn t.f;\n"
"}\n";

static const char narrow_fp16_text[] =
"/* To the nearest, ties to even; infinite from 65520 on; a NaN stays one. */\n"
"static inline fp16 NARROW(float x)\n"
"{\n"
"\tunion {\n"
"\t\tfloat f;\n"
"\t\tuint32_t i;\n"
"\t} t = {.f = x}, tiny;\n"
"\tconst uint32_t a = t.i & 0x7FFFFFFF;\n"
"\ttiny.i = a;\n"
"\ttiny.f += 0.5f; /* rounds to a multiple of 2^-24, the least number */\n"
"\tuint32_t near = (a + 0xC8000FFF + (a >> 13 & 1)) >> 13;\n"
"\tnear = a < 0x38800000 ? tiny.i - 0x3F000000 : near;\n"
"\tnear = a >= 0x47800000 ? 0x7C00 : near;\n"
"\tnear = a > 0x7F800000 ? 0x7E00 : near;\n"
"\treturn (fp16)(near | (t.i >> 16 & 0x8000));\n"
"}\n";
/* clang-format on */

#endif
