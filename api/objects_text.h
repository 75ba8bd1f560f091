/* A step's text taken apart: what calls, and each kernel. */
#ifndef STINT_API_OBJECTS_TEXT_H
#define STINT_API_OBJECTS_TEXT_H

#include "base/base.h"
#include "runtime/stint_sha256.h"

struct unit {
	const char *name;        /* "k012_softmax" */
	size_t name_len, base;   /* where in it "softmax" begins */
	const char *from, *open; /* "KERNEL void k012_softmax(..."; its body's "{" */
	const char *end;         /* behind its "}" */
	unsigned char
		key[STINT_SHA]; /* objects_name: of its text and all that it is compiled with */
	char symbol[96];        /* what the linker calls it */
	bool kept;
};

struct step_text {
	const char *all, *prelude, *prelude_end, *helpers, *helpers_end; /* what kernels need */
	const char *first, *last; /* the kernels, from the first one's text to the last one's end */
	int n;
	struct unit *unit;
};

/* False: step.c has not the form that codegen gives it, or there was no memory. */
bool objects_parts(struct arena *a, const char *step, struct step_text *out);
/* Key and symbol of each unit; `with` is the digest of what all are compiled with. */
void objects_name(struct step_text *s, const unsigned char with[STINT_SHA]);

/* What kernels are compiled behind, without the kernels' sources: which of them a step includes,
 * and in which order, is nothing that a kernel of it depends on. */
void objects_print_common(const struct step_text *s, struct text *t);
/* Units number `lot`, `lot` + `nlot`, ... of those that are not kept. */
void objects_print_lot(const struct step_text *s, int lot, int nlot, struct text *t);
/* step.c with declarations in the place of kernels. */
void objects_print_calls(const struct step_text *s, struct text *t);

#endif
