/* What a model's outputs say of a sample, for people: classes with scores, or numbers. */
#ifndef STINT_CLI_ANSWERS_H
#define STINT_CLI_ANSWERS_H

#include "cli/class_names.h"
#include "cli/feed.h"
#include "runtime/safetensors.h"

struct answer_options {
	int64_t top; /* of classes, the best; 0: not said, 1 */
	bool scores; /* of all classes, too */
	bool raw;    /* the outputs' own numbers: no probabilities are made of them */
	struct class_names classes;
};

/* One output's part in what is said of a sample. */
struct answer {
	const struct stint_output *o;
	int output;
	bool classes, yes_no; /* scores of classes, in each place; of yes or no; or else: numbers */
	enum { ANSWER_AS_IS, ANSWER_SOFTMAX, ANSWER_EXP, ANSWER_SIGMOID } make;
	int64_t elements; /* of a sample */
	int64_t n, inner; /* classes; elements behind the axis that counts them */
	/* The axes of a sample; of classes those of its places, without the classes' own. */
	int rank;
	int64_t dim[SAFETENSORS_RANK], places;
	double *score; /* [n] */
};

/* Output `output` of the step as it was compiled, `whole` as in a feed. */
enum status answer_of(struct arena *a, const struct loaded *l, bool whole, int output,
	const struct answer_options *o, struct answer *out, struct diag *d);
/* A number of a sample whose elements begin at y (NULL: not a number), a probability where one is
 * made of it. */
double answer_number(const struct answer *w, const void *y, int64_t i);
/* The scores of all classes in a place, which are in w->score then; *best: the classes of the
 * `top` highest, the first of equal ones. */
void answer_best(const struct answer *w, const void *y, int64_t place, int64_t top, int64_t *best);

#endif
