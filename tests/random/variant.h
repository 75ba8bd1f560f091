/* Shared by build.c and run.c. */
#ifndef STINT_TESTS_RANDOM_VARIANT_H
#define STINT_TESTS_RANDOM_VARIANT_H

#include "tests/ops/ops_test.h"
#include "tests/random/random.h"

enum { FULL = 0, SINGLE = 4, LIBRARY = 6, MODULES = 8 };

struct variant_def {
	const char *what;
	enum dtype real;
	bool portable, fused;
	int threads;
	double share; /* of the memory between the least and keep-everything: the budget; 0: the
			 least */
	int same;     /* the variant whose bits it must have */
};
extern const struct variant_def variant_def[VARIANTS];
/* Compiling takes the time: a model goes either through the library or through single precision's
 * second budget; some also as modules, where that changes something. */
bool variant_wanted(const struct random_model *m, int k);

struct bytes {
	size_t n;
	void *data; /* NULL: not there */
};

/* What a variant computed: by resident, by output. */
struct numbers {
	double loss;
	struct bytes *grad, *buffer, *output;
};

struct random_variant {
	char symbol[64]; /* "": not built */
	struct graph_problem train, eval;
	stint_step *step;
	struct numbers got;
};

void random_error(struct random_model *m, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

#endif
