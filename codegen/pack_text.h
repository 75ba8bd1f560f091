/* Packs of neighbours in memory, as CUDA text (emit_packs). */
#ifndef STINT_CODEGEN_PACK_TEXT_H
#define STINT_CODEGEN_PACK_TEXT_H

/* clang-format off */
static const char packs_text[] =
"/* Before loops over a thread's numbers, which then are registers; and before long loops that only read, so that the\n"
" * loads of four turns are under way together. */\n"
"#ifdef STINT_SHIM\n"
"#define UNROLL\n"
"#define UNROLL_4\n"
"#else\n"
"#define UNROLL _Pragma(\"unroll\")\n"
"#define UNROLL_4 _Pragma(\"unroll 4\")\n"
"#endif\n"
"/* V neighbours at a multiple of their size: one access to memory up to 16 bytes, as few as there can be above. */\n"
"template <class T, int V> struct __align__(V * sizeof(T)) pack {\n"
"	T of[V];\n"
"};\n";
/* clang-format on */

#endif
