/* SPDX-License-Identifier: MIT-0 */
/* A product that keeps learning: it embeds a step made by stint and needs nothing else of stint
 * (README.md beside this file). It learns in which tenth of a picture a bright bar is. */
#include <stdio.h>
#include <stdlib.h>

#include "stint_step.h"

enum { BATCH = 32, PIXELS = 28 * 28, CLASSES = 10, STEPS = 200 };

/* All the memory that training takes; its size is known when this file is compiled. */
static _Alignas(STINT_MLP_ARENA_ALIGNMENT) unsigned char arena[STINT_MLP_ARENA_BYTES];

static int feed(stint_step *s)
{
	static float image[BATCH][PIXELS];
	static int64_t target[BATCH];
	for (int b = 0; b < BATCH; b++) {
		target[b] = rand() % CLASSES;
		for (int i = 0; i < PIXELS; i++)
			image[b][i] = i * CLASSES / PIXELS == target[b] ? 1.0f : 0.0f;
	}
	int rc = stint_set(s, "image", image, sizeof image);
	return rc ? rc : stint_set(s, "target", target, sizeof target);
}

int main(int argc, char **argv)
{
	stint_step *s;
	int rc = stint_init(&s, &stint_model_mlp, arena, sizeof arena);
	if (!rc && argc > 1)
		rc = stint_load(s, argv[1]);
	for (int i = 0; i < STEPS && !rc; i++) {
		rc = feed(s);
		if (!rc)
			rc = stint_train(s, 0.05);
		if (!rc && i % 50 == 0)
			printf("step %3d  loss %.4f\n", i, stint_loss(s));
	}
	if (!rc)
		rc = feed(s);
	if (!rc)
		rc = stint_eval(s, 0); /* the scores are at stint_model_mlp.output[0].offset */
	if (rc)
		fprintf(stderr, "%s\n", s ? stint_message(s) : "out of memory");
	else
		printf("on new pictures: loss %.4f\n", stint_loss(s));
	stint_free(s);
	return rc;
}
