/* --pad: rows of tokens whose ends are filled. */
#include "cli/feed_pad.h"

void feed_pad(struct feed *f, int bound, int64_t token)
{
	f->padded = bound + 1;
	f->token = token;
}

static int64_t length_of(const int64_t *row, int64_t n, int64_t token)
{
	while (n > 0 && row[n - 1] == token)
		n--;
	return n;
}

/* File i has labels of one token each. */
static bool has_tokens(const struct feed *f, int i, int64_t width)
{
	const struct stint_tensor *t = feed_tensor(f, i);
	return f->bound[i].classes && t->rank == 2 && t->dim[1] == width;
}

int64_t feed_pad_mask(const struct feed *f, unsigned char *const *at)
{
	if (!f->padded || f->whole)
		return INT64_MAX;
	const struct stint_tensor *t = feed_tensor(f, f->padded - 1);
	const int64_t width = t->dim[1];
	const int64_t *token = (const int64_t *)(const void *)at[f->padded - 1];
	int64_t longest = 0;
	for (int64_t r = 0; r < f->batch; r++) {
		const int64_t n = length_of(token + r * width, width, f->token);
		longest = n > longest ? n : longest;
		for (int i = 0; i < f->n; i++) {
			int64_t *label = (int64_t *)(void *)at[i];
			for (int64_t k = n; has_tokens(f, i, width) && k < width; k++)
				label[r * width + k] = f->bound[i].ignore;
		}
	}
	return longest;
}
