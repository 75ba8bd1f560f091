/* What a constant's values say of where they come from (by_value.c): some function of a parameter's
 * values, found without the names. */
#ifndef STINT_IMPORT_BY_VALUE_H
#define STINT_IMPORT_BY_VALUE_H

#include "import/import_parts.h"

/* Values as floats, and how exact they are: the distance from 1 to the next number of their type.
 */
struct values {
	const char *name;
	const float *v;
	int rank;
	int64_t numel, dim[RANK_MAX];
	double epsilon;
	struct values *next; /* of as many elements */
};

/* scale * u + shift, with u = op(of), op(-of) where `negated`, of * of where `squared`, or (op
 * NULL) of; in the constant's shape, along whose other axes it is repeated. */
struct form {
	const struct values *of;
	const struct op_def *op;
	bool negated, squared;
	double scale, shift;
	bool sure; /* enough values, far enough from each other, to be nothing else */
};

/* Rows of one value's first axis, in a constant whose rows are such parts one behind the other. */
enum { PARTS_MAX = 16 };
struct part {
	const struct values *of;
	int64_t first, count;
};

struct by_value {
	struct importer *im;
	struct names sources; /* by number of elements → struct values */
	struct names keys;    /* of forms → struct entry; which are there */
	struct names rows;    /* by length and hash → struct row_at */
	int nop;
	const struct op_def **op; /* functions of one number that the table has */
};

/* A place where parameters are looked for. Requires im->index and top.opset. */
enum status by_value_begin(struct by_value *b, struct importer *im);
enum status by_value_source(struct by_value *b, struct values *v);
/* The form that c has of one of the sources; form->of NULL: of none. c without axes along which it
 * is repeated. */
enum status by_value_form(struct by_value *b, const struct values *c, struct form *form);
/* The parts that c is; *n 0: it is not made so. */
enum status by_value_parts(
	struct by_value *b, const struct values *c, struct part part[PARTS_MAX], int *n);
/* c without what is repeated along axes, which become 1: c itself where nothing is. NULL: no
 * memory. */
const struct values *by_value_once(struct arena *a, const struct values *c);
/* Says nothing: few values, or those that a person or a formula writes down (whole numbers, equal
 * steps or ratios). */
bool by_value_plain(const struct values *c);

#endif
