/* The top of step.c: what kernels and steps are written with. Only what they mention is printed. */
#include <string.h>

#include "codegen/math_text.h"
#include "codegen/math_wide_text.h"
#include "codegen/narrow_text.h"
#include "codegen/parts.h"

/* A piece of the prelude and the word that calls for it, in a kernel or in a later piece (its
 * comment included). The text in double precision, and where values are stored in fp16, if it is
 * another. */
struct piece {
	const char *word, *f32, *f64, *f16;
};
#define SAME NULL, NULL

static const struct piece pieces[] = {
	{"R", "#define R(x) ((real)(x))\n", SAME},
	{"bf16", bf16_text, SAME},
	{"fp16", fp16_text, SAME},
	{"WIDE", wide_text, NULL, wide_fp16_text},
	{"NARROW", narrow_text, NULL, narrow_fp16_text},
	{"EXP", exp_f32_text, "#define EXP exp\n", NULL},
	{"TANH", tanh_f32_text, "#define TANH tanh\n", NULL},
	{"ERF", erf_f32_text, "#define ERF erf\n", NULL},
	{"NORMAL_CDF", normal_cdf_f32_text,
		"#define NORMAL_CDF(x) (0.5 * erfc((x) * -0.70710678118654752))\n", NULL},
	{"log_parts", log_parts_text, SAME},
	{"LOG", log_f32_text, "#define LOG log\n", NULL},
	{"LOG1P", log1p_f32_text, "#define LOG1P log1p\n", NULL},
	{"log_wide", log_wide_text, SAME},
	{"exp_wide", exp_wide_text, SAME},
	{"POW", pow_f32_text, "#define POW pow\n", NULL},
	{"quarter_turns", quarter_turns_text, SAME},
	{"sine_part", sine_part_text, SAME},
	{"SIN", sin_f32_text, "#define SIN sin\n", NULL},
	{"COS", cos_f32_text, "#define COS cos\n", NULL},
	{"TAN", tan_f32_text, "#define TAN tan\n", NULL},
	{"SINH", sinh_f32_text, "#define SINH sinh\n", NULL},
	{"COSH", cosh_f32_text, "#define COSH cosh\n", NULL},
	{"asin_small", asin_small_text, SAME},
	{"ASIN", asin_f32_text, "#define ASIN asin\n", NULL},
	{"ACOS", acos_f32_text, "#define ACOS acos\n", NULL},
	{"ATAN", atan_f32_text, "#define ATAN atan\n", NULL},
	{"ASINH", asinh_f32_text, "#define ASINH asinh\n", NULL},
	{"ACOSH", acosh_f32_text, "#define ACOSH acosh\n", NULL},
	{"ATANH", atanh_f32_text, "#define ATANH atanh\n", NULL},
	/* exact, so the library's: but for FMOD one instruction of the machine */
	{"SQRT", "#define SQRT sqrtf\n", "#define SQRT sqrt\n", NULL},
	{"FABS", "#define FABS fabsf\n", "#define FABS fabs\n", NULL},
	{"FLOOR", "#define FLOOR floorf\n", "#define FLOOR floor\n", NULL},
	{"CEIL", "#define CEIL ceilf\n", "#define CEIL ceil\n", NULL},
	{"RINT", "#define RINT rintf\n", "#define RINT rint\n", NULL},
	{"TRUNC", "#define TRUNC truncf\n", "#define TRUNC trunc\n", NULL},
	{"FMOD", "#define FMOD fmodf\n", "#define FMOD fmod\n", NULL},
	{"MAX", "#define MAX(x, y) ((x) > (y) ? (x) : (y))\n", SAME},
	{"MIN", "#define MIN(x, y) ((x) < (y) ? (x) : (y))\n", SAME},
	{"int_power", int_power_text, SAME},
	{"philox_lanes", "#define philox_lanes stint_philox_lanes\n", SAME},
	{"PARALLEL_FOR",
		"\n/* A loop whose turns are shared among threads; the split never changes a sum. "
		"*/\n"
		"#ifdef _OPENMP\n"
		"#define PRAGMA(text) _Pragma(#text)\n"
		"#define PARALLEL_FOR(levels)                                                      "
		" "
		"\\\n"
		"\tPRAGMA(omp parallel for collapse(levels) schedule(static) "
		"num_threads(STINT_THREADS))\n"
		"#else\n"
		"#define PARALLEL_FOR(levels)\n"
		"#endif\n",
		SAME},
	/* clang warns of each loop that it cannot vectorise though it was told to */
	{"PARALLEL_EACH",
		"\n/* The same, and no turn reads what another writes. */\n"
		"#if defined(_OPENMP) && defined(__clang__)\n"
		"#define PARALLEL_EACH _Pragma(\"omp parallel for schedule(static) "
		"num_threads(STINT_THREADS)\")\n"
		"#elif defined(_OPENMP)\n"
		"#define PARALLEL_EACH _Pragma(\"omp parallel for simd schedule(static) "
		"num_threads(STINT_THREADS)\")\n"
		"#else\n"
		"#define PARALLEL_EACH\n"
		"#endif\n",
		SAME},
	{"EACH",
		"\n/* A loop in one that is shared among threads; no turn of it reads what another "
		"writes. */\n"
		"#if defined(_OPENMP) && !defined(__clang__)\n"
		"#define EACH _Pragma(\"omp simd\")\n"
		"#else\n"
		"#define EACH\n"
		"#endif\n",
		SAME},
	{"BAD_INDEX",
		"\n/* What a kernel returns that met an index out of range. */\n"
		"#define BAD_INDEX(value) (*bad = (value), 1)\n",
		SAME},
	{"sum_lanes",
		"\n/* The sum of n numbers in 16 lanes, which then meet in a fixed tree: the same "
		"bits "
		"at any width\n * of the machine's vectors. */\n"
		"static real sum_lanes(const real *x, int64_t n)\n"
		"{\n"
		"\treal lane[16] = {0};\n"
		"\tint64_t whole = n - n % 16;\n"
		"\tfor (int64_t i = 0; i < whole; i += 16)\n"
		"\t\tfor (int k = 0; k < 16; k++)\n"
		"\t\t\tlane[k] += x[i + k];\n"
		"\tfor (int64_t i = whole; i < n; i++)\n"
		"\t\tlane[i - whole] += x[i];\n"
		"\tfor (int half = 8; half > 0; half /= 2)\n"
		"\t\tfor (int k = 0; k < half; k++)\n"
		"\t\t\tlane[k] += lane[k + half];\n"
		"\treturn lane[0];\n"
		"}\n",
		SAME},
	{"sum_wide",
		"\n/* The sum of n numbers in 16 lanes of doubles: where a sum must come out as "
		"near zero as "
		"the numbers\n * allow. */\n"
		"static double sum_wide(const real *x, int64_t n)\n"
		"{\n"
		"\tdouble lane[16] = {0};\n"
		"\tint64_t whole = n - n % 16;\n"
		"\tfor (int64_t i = 0; i < whole; i += 16)\n"
		"\t\tfor (int k = 0; k < 16; k++)\n"
		"\t\t\tlane[k] += (double)x[i + k];\n"
		"\tfor (int64_t i = whole; i < n; i++)\n"
		"\t\tlane[i - whole] += (double)x[i];\n"
		"\tfor (int half = 8; half > 0; half /= 2)\n"
		"\t\tfor (int k = 0; k < half; k++)\n"
		"\t\t\tlane[k] += lane[k + half];\n"
		"\treturn lane[0];\n"
		"}\n",
		SAME},
	{"dot_lanes",
		"\n/* The inner product of n numbers, summed in 16 lanes too. */\n"
		"static real dot_lanes(const real *x, const real *y, int64_t n)\n"
		"{\n"
		"\treal lane[16] = {0};\n"
		"\tint64_t whole = n - n % 16;\n"
		"\tfor (int64_t i = 0; i < whole; i += 16)\n"
		"\t\tfor (int k = 0; k < 16; k++)\n"
		"\t\t\tlane[k] += x[i + k] * y[i + k];\n"
		"\tfor (int64_t i = whole; i < n; i++)\n"
		"\t\tlane[i - whole] += x[i] * y[i];\n"
		"\tfor (int half = 8; half > 0; half /= 2)\n"
		"\t\tfor (int k = 0; k < half; k++)\n"
		"\t\t\tlane[k] += lane[k + half];\n"
		"\treturn lane[0];\n"
		"}\n",
		SAME},
};

bool kernels_mention(const struct kernels *ks, const char *word)
{
	for (const struct helper *h = ks->helpers.first; h; h = h->next)
		if (text_mentions(h->text, word))
			return true;
	for (int i = 0; i < ks->n; i++)
		if (text_mentions(ks->kernel[i].body, word) ||
			text_mentions(ks->kernel[i].params, word))
			return true;
	return false;
}

static void print_includes(const struct kernels *ks, struct text *t)
{
	text_puts(t, "\n#include \"stint_step.h\"\n\n#include <float.h>\n#include "
		     "<math.h>\n#include <stdio.h>\n");
	if (ks->products)
		text_puts(t, "#include <stdlib.h>\n");
	if (kernels_mention(ks, "memcpy") || kernels_mention(ks, "memset") ||
		kernels_mention(ks, "memmove") || ks->nlib)
		text_puts(t, "#include <string.h>\n");
	text_puts(t, "\n");
	if (ks->nlib)
		text_puts(t, "#include \"stint_lib.h\"\n");
	if (kernels_mention(ks, "philox_lanes"))
		text_puts(t, "#include \"stint_philox.h\"\n");
	text_puts(t, "#include \"stint_rt.h\"\n");
}

static void print_debug(const struct codegen_input *in, struct text *t)
{
	if (!in->debug_arena)
		return;
	text_puts(t,
		"\n/* --debug-arena: bytes that hold nothing are NaNs, and poisoned under "
		"AddressSanitizer. */\n"
		"#include <string.h>\n\n"
		"#ifdef __has_feature\n"
		"#if __has_feature(address_sanitizer)\n"
		"#define ARENA_SANITIZED 1\n"
		"#endif\n"
		"#endif\n"
		"#if defined(__SANITIZE_ADDRESS__) || defined(ARENA_SANITIZED)\n"
		"#include <sanitizer/asan_interface.h>\n"
		"#define POISON(p, bytes) ASAN_POISON_MEMORY_REGION(p, bytes)\n"
		"#define UNPOISON(p, bytes) ASAN_UNPOISON_MEMORY_REGION(p, bytes)\n"
		"#else\n"
		"#define POISON(p, bytes) ((void)0)\n"
		"#define UNPOISON(p, bytes) ((void)0)\n"
		"#endif\n"
		"#define BORN(place, bytes)                                                        "
		" "
		"\\\n"
		"\t(UNPOISON(arena + (place), bytes), (void)memset(arena + (place), 0xff, bytes))\n"
		"#define DEAD(place, bytes)                                                        "
		" "
		"\\\n"
		"\t((void)memset(arena + (place), 0xff, bytes), POISON(arena + (place), bytes))\n");
}

enum { PIECES = sizeof pieces / sizeof *pieces };

/* What decides between the texts of a piece. */
struct types {
	bool f64, f16;
};

static const char *piece_text(int i, struct types types)
{
	const struct piece *p = &pieces[i];
	return types.f64 && p->f64 ? p->f64 : types.f16 && p->f16 ? p->f16 : p->f32;
}

static bool piece_needed(const struct kernels *ks, int i, struct types types)
{
	bool yes = kernels_mention(ks, pieces[i].word);
	for (int k = i + 1; k < PIECES && !yes; k++)
		yes = text_mentions(piece_text(k, types), pieces[i].word) &&
		      piece_needed(ks, k, types);
	return yes;
}

void print_pieces(const struct kernels *ks, struct text *t)
{
	const struct types types = {ks->graph->real == DT_F64, kernels_mention(ks, "fp16")};
	for (int i = 0; i < PIECES; i++)
		if (piece_needed(ks, i, types))
			text_puts(t, piece_text(i, types));
}

void print_prelude(const struct kernels *ks, const struct codegen_input *in, struct text *t)
{
	print_includes(ks, t);
	text_add(t, "\ntypedef %s real;\n\n", ks->graph->real == DT_F64 ? "double" : "float");
	text_add(t, "enum { STINT_THREADS = %d };\n\n", ks->graph->target->threads);
	text_puts(t, "#ifdef __FAST_MATH__\n"
		     "#error \"-ffast-math would change the results with the compiler\"\n"
		     "#endif\n\n");
	text_puts(t,
		"/* 16 is of half precision: float and double are computed as what they are. */\n"
		"#if FLT_EVAL_METHOD != 0 && FLT_EVAL_METHOD != 16\n"
		"#error \"numbers are computed with more bits than they have, as the x87 does, "
		"and results would differ: compile with -msse2 -mfpmath=sse\"\n"
		"#endif\n\n");
	text_puts(t,
		"#define KERNEL static __attribute__((noinline))\n"
		"/* The schedule is calls only: compilers take more time to optimize it than all "
		"kernels, and gain\n * nothing. */\n"
		"#ifdef __clang__\n"
		"#define SCHEDULE static __attribute__((noinline, optnone))\n"
		"#else\n"
		"#define SCHEDULE static __attribute__((noinline, optimize(\"O0\")))\n"
		"#endif\n");
	if (!ks->graph->target->cuda)
		print_pieces(ks, t);
	else if (kernels_mention(ks, "bf16"))
		text_puts(t, bf16_text);
	else if (kernels_mention(ks, "fp16"))
		text_puts(t, fp16_text);
	print_debug(in, t);
}
