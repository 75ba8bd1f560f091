/* --skip-bad: the samples that could not be read, counted by what was wrong with them. */
#ifndef STINT_CLI_BAD_SAMPLES_H
#define STINT_CLI_BAD_SAMPLES_H

#include "cli/ranks.h"

enum { BAD_REASONS = 16, BAD_NAMED = 3, BAD_TEXT = 160 };

struct bad_samples {
	int64_t n;           /* samples, each counted once however often it is met */
	unsigned char *seen; /* a bit for each sample, malloc's; NULL: none was bad */
	/* The last one is of all that are more. */
	struct bad_reason {
		int64_t n;
		char text[BAD_TEXT], named[BAD_NAMED][BAD_TEXT];
	} reason[BAD_REASONS];
};

/* Sample `sample` of `samples`, called `name`, is bad for this reason. 1: out of memory. */
int bad_add(struct bad_samples *b, int64_t sample, int64_t samples, const char *reason,
	const char *name);
/* By all ranks at once, of which each has met other samples: then all have those of all. */
enum status bad_join(struct arena *a, struct bad_samples *b, const struct ranks *r,
	const struct loaded *l, struct diag *d);
/* A warning for each reason: how many, and the first. `what`: what became of one, of several. */
void bad_tell(
	const struct bad_samples *b, int64_t samples, const char *const what[2], struct diag *d);
/* A list of the same in JSON: "reason", "samples", "first". */
void bad_json(const struct bad_samples *b, FILE *f);
void bad_free(struct bad_samples *b);

#endif
