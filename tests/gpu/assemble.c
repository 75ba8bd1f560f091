/* cuda_assemble OUT IN...: the texts one behind the other, behind the pieces that they mention, as
 * the emitter does. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "codegen/sources.h"
#include "ops/channel_cuda_text.h"
#include "ops/norm_cuda_text.h"

struct cuda_piece {
	const char *words, *text;
};
static const struct cuda_piece of_c[] = {
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
enum { ALL = sizeof of_c / sizeof *of_c };

static const struct cuda_piece *piece(int i)
{
	return &of_c[i];
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

/* The kernels' files that the texts call. */
static bool print_files(struct arena *a, struct text *out)
{
	struct sources s = {.arena = a};
	if (!sources_add(&s, "primitives.cuh", 0, NULL) || !sources_add(&s, "math.h", 0, NULL) ||
		!sources_add(&s, "block.cuh", 0, NULL) || !sources_add(&s, "elements.cuh", 0, NULL))
		return false;
	print_sources_whole(&s, out);
	return true;
}

static bool print(struct arena *a, const char *body, struct text *out)
{
	bool need[ALL] = {false};
	for (int i = ALL - 1; i >= 0; i--) {
		need[i] = mentions(body, piece(i)->words);
		for (int k = i + 1; k < ALL && !need[i]; k++)
			need[i] = need[k] && mentions(piece(k)->text, piece(i)->words);
	}
	const bool done = print_files(a, out);
	for (int i = 0; i < ALL; i++)
		if (need[i])
			text_puts(out, piece(i)->text);
	text_puts(out, body);
	return done;
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
		st = print(a, body.s, &out) ? text_save(&out, argv[1], &d) : ST_INTERNAL;
	}
	if (st != ST_OK)
		fprintf(stderr, "cuda_assemble OUT IN...: failed\n");
	text_free(&body);
	text_free(&out);
	arena_free(a);
	return (int)st;
}
