/* What options with a name and numbers are read from: "step:size=30,gamma=0.1". */
#ifndef STINT_TRAIN_OPTION_TEXT_H
#define STINT_TRAIN_OPTION_TEXT_H

#include "base/base.h"

enum { SPEC_OPTIONS = 12 };

struct spec {
	const char *what, *text, *name; /* what: "--schedule", for messages */
	int n;
	struct {
		const char *key, *value;
		bool used;
	} option[SPEC_OPTIONS];
};

enum status spec_parse(
	struct arena *a, const char *what, const char *text, struct spec *out, struct diag *d);
/* The option's text; NULL: it is not given. */
const char *spec_word(struct spec *s, const char *key);
/* A number from `low` to `high` into *out, which keeps its value where the option is not given. */
enum status spec_number(
	struct spec *s, const char *key, double low, double high, double *out, struct diag *d);
/* The same, whole. */
enum status spec_whole(
	struct spec *s, const char *key, int64_t low, int64_t high, int64_t *out, struct diag *d);
/* One of `words` ("min max"), its place from 0 into *out. */
enum status spec_choice(
	struct spec *s, const char *key, const char *words, int *out, struct diag *d);
/* Fails where an option was given that nobody has asked for. */
enum status spec_end(const struct spec *s, struct diag *d);

#endif
