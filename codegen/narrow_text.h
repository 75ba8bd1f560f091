/* bf16 as C text: the upper half of a float, rounded to nearest, ties to even. Whole numbers and
 * choices only, so that loops over them vectorise and the bits are the same on every machine. */
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
/* clang-format on */

#endif
