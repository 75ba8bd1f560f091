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
#include "codegen/pack_text.h"
#include "ops/block_text.h"
#include "ops/channel_cuda_text.h"
#include "ops/norm_cuda_text.h"

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
	{"warp_sum|warp_max", warp_text},
	{"block_sum|block_sums|block_max|BLOCK_WARPS", block_sums_text},
	{"column_sums", column_sums_text},
	{"get_value|put_value", element_text},
	{"UNROLL|UNROLL_4|pack", packs_text},
	{"load_values|store_values|pack_sum", pack_text},
	{"MAX", "#define MAX(x, y) ((x) > (y) ? (x) : (y))\n"},
	{"MIN", "#define MIN(x, y) ((x) < (y) ? (x) : (y))\n"},
	{"norm_load|norm_sums", norm_rows_text},
	{"norm_forward", norm_forward_text},
	{"norm_load_slopes|norm_slopes|norm_store", norm_slopes_text},
	{"norm_gradient", norm_gradient_text},
	{"norm_all", norm_all_text},
	{"channel_count", channel_parts_text},
	{"channel_plane", channel_planes_text},
	{"channel_strip|channel_column", channel_strips_text},
	{"channel_sums", channel_sums_text},
	{"channel_store|CHANNEL_TOTALS", channel_totals_text},
	{"norm_scale_terms", norm_scale_text},
	{"batchnorm_moments", batchnorm_moments_text},
	{"batchnorm_products", batchnorm_products_text},
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
