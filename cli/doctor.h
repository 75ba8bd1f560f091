/* `stint doctor`: what its files share. */
#ifndef STINT_CLI_DOCTOR_H
#define STINT_CLI_DOCTOR_H

#include <stdio.h>

#include "base/base.h"
#include "cli/bench.h"
#include "runtime/stint_gpu.h"

enum finding { FINDING_OK, FINDING_NOTE, FINDING_SLOW, FINDING_WRONG };

struct doctor {
	struct arena *arena;
	FILE *file;        /* the report besides standard output; NULL: none */
	bool json;         /* on standard output `found` in the place of the report */
	struct text found; /* the findings as JSON, one after the other */
	const char *title; /* of the section that they are in */
	const char *work;  /* a folder for steps, with nothing else in it */
	int count[4];      /* of each finding */
	int steps;         /* that were trained as they should be */
	/* Of a GPU: */
	stint_gpu *g;
	bool device; /* g has opened one */
	int arch;    /* of it, or of one on paper */
};

/* --- cmd_doctor.c --- */

/* One line of the report, and a line with what would help (NULL: none). The user's home and the
 * folder for steps are not spelled out. */
void doctor_say(struct doctor *x, enum finding f, const char *hint, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
void doctor_title(struct doctor *x, const char *title);
/* Milliseconds on a clock that only goes on. */
double doctor_ms(void);

/* --- doctor_step.c --- */

struct doctor_step {
	const char *name;      /* how findings call it */
	const char *target;    /* "c" or "cuda" */
	const char *precision; /* as --precision */
	bool portable;
	const char *batch; /* NULL: 8 */
	const char *dir;   /* set by doctor_compile */
};

/* Compiles the tiny model. false: it was said why not. */
bool doctor_compile(struct doctor *x, struct doctor_step *s);
/* Trains one step of b, which is opened where it is not yet, and of `reference` (NULL: there is
 * none), and holds loss and gradients to `most`. */
void doctor_compare(struct doctor *x, const struct doctor_step *s, struct bench *b,
	const struct doctor_step *reference, double most);
/* What `d` of doctor_hear has been told: the first error, and the notes before it. */
struct doctor_words {
	bool told;
	size_t used; /* of notes */
	char notes[1024], text[2048], hint[256];
};
struct diag doctor_hear(struct doctor_words *w);

/* --- doctor_calibrate.c --- */

/* false: it was said why nothing is kept. */
bool doctor_calibrate(struct doctor *x);

/* --- doctor_cuda.c --- */

/* In each precision, or in `only` (NULL: each). Returns how many steps should have been trained. */
int doctor_cuda(struct doctor *x, const char *only);

#endif
