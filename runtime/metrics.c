#include "metrics.h"

/* A logit that is not a number is never the largest, unless it is the first: then it stays. */
#define CORRECT                                                                                    \
	int64_t right = 0;                                                                         \
	*counted = 0;                                                                              \
	for (int64_t r = 0; r < valid; r++)                                                        \
		for (int64_t i = 0; i < inner; i++) {                                              \
			int64_t want = label[r * inner + i], best = 0;                             \
			if (want == ignore)                                                        \
				continue;                                                          \
			++*counted;                                                                \
			for (int64_t c = 1; c < classes; c++)                                      \
				if (logits[(r * classes + c) * inner + i] >                        \
					logits[(r * classes + best) * inner + i])                  \
					best = c;                                                  \
			right += best == want;                                                     \
		}                                                                                  \
	return right

int64_t metrics_correct_f32(const float *logits, int64_t classes, int64_t inner,
	const int64_t *label, int64_t valid, int64_t ignore, int64_t *counted)
{
	CORRECT;
}

int64_t metrics_correct_f64(const double *logits, int64_t classes, int64_t inner,
	const int64_t *label, int64_t valid, int64_t ignore, int64_t *counted)
{
	CORRECT;
}
