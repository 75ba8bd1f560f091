/* cuda_assemble OUT IN...: the texts one behind the other, behind the pieces that they mention, as
 * the emitter does. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "codegen/cuda_text.h"
#include "codegen/math_text.h"
#include "codegen/math_wide_text.h"
#include "codegen/narrow_text.h"

static const struct cuda_piece of_c[] = {
	{"real", "typedef float real;\n"},
	{"bf16|WIDE|NARROW", bf16_text},
	{"WIDE", wide_text},
	{"NARROW", narrow_text},
	{"EXP|exp_f32", exp_f32_text},
	{"TANH", tanh_f32_text},
	{"ERF", erf_f32_text},
	{"NORMAL_CDF", normal_cdf_f32_text},
	{"log_parts", log_parts_text},
	{"LOG", log_f32_text},
	{"LOG1P", log1p_f32_text},
	{"log_wide", log_wide_text},
	{"exp_wide", exp_wide_text},
	{"POW", pow_f32_text},
	{"quarter_turns", quarter_turns_text},
	{"sine_part", sine_part_text},
	{"SIN", sin_f32_text},
	{"COS", cos_f32_text},
	{"TAN", tan_f32_text},
	{"SINH", sinh_f32_text},
	{"COSH", cosh_f32_text},
	{"asin_small", asin_small_text},
	{"ASIN", asin_f32_text},
	{"ACOS", acos_f32_text},
	{"ATAN", atan_f32_text},
	{"ASINH", asinh_f32_text},
	{"ACOSH", acosh_f32_text},
	{"ATANH", atanh_f32_text},
};
enum {
	CUDA = sizeof cuda_pieces / sizeof *cuda_pieces,
	ALL = CUDA + sizeof of_c / sizeof *of_c,
};

static const struct cuda_piece *piece(int i)
{
	return i < CUDA ? &cuda_pieces[i] : &of_c[i - CUDA];
}

static bool mentions(const char *text, const char *words)
{
	char word[64];
	for (size_t n; *words; words += n + (words[n] == '|')) {
		n = strcspn(words, "|");
		snprintf(word, sizeof word, "%.*s", (int)n, words);
		if (text_mentions(text, word))
			return true;
	}
	return false;
}

static void print(const char *body, struct text *out)
{
	bool need[ALL] = {false};
	for (int i = ALL - 1; i >= 0; i--) {
		need[i] = mentions(body, piece(i)->words);
		for (int k = i + 1; k < ALL && !need[i]; k++)
			need[i] = need[k] && mentions(piece(k)->text, piece(i)->words);
	}
	for (int i = 0; i < ALL; i++)
		if (need[i])
			text_puts(out, piece(i)->text);
	text_puts(out, body);
}

int main(int argc, char **argv)
{
	struct arena *a = arena_new();
	struct diag d = {.put = NULL};
	struct text body = {.s = NULL}, out = {.s = NULL};
	enum status st = a && argc > 2 ? ST_OK : ST_USAGE;
	for (int i = 2; i < argc && st == ST_OK; i++) {
		char *text;
		size_t size;
		st = file_read(a, argv[i], &text, &size, &d);
		if (st == ST_OK)
			text_puts(&body, text);
	}
	if (st == ST_OK && body.s) {
		print(body.s, &out);
		st = text_save(&out, argv[1], &d);
	}
	if (st != ST_OK)
		fprintf(stderr, "cuda_assemble OUT IN...: failed\n");
	text_free(&body);
	text_free(&out);
	arena_free(a);
	return (int)st;
}
