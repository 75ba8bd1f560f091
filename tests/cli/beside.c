/* A program with the steps for two lengths: beside LONG.safetensors SHORT.safetensors. Trains on
 * rows of 4 tokens, by one step and the other in turn: both know what the other has learned, and
 * neither finds what the other has left in its memory. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "length-4/stint_step.h"
#include "stint_step.h"

enum { ROWS = 2, LONG = 8, SHORT = 4, WIDE = 8, IGNORED = -100 };

static void check(int rc, const stint_step *s)
{
	if (rc == STINT_OK)
		return;
	fprintf(stderr, "%s\n", s ? stint_message(s) : "out of memory");
	exit(1);
}

static void set(stint_step *s, int width)
{
	int64_t x[ROWS * LONG] = {0}, label[ROWS * LONG];
	float tone[ROWS * LONG * WIDE] = {0};
	for (int r = 0; r < ROWS; r++)
		for (int k = 0; k < width; k++) {
			x[r * width + k] = k < SHORT ? 1 + (r + k) % 5 : 0;
			label[r * width + k] = k < SHORT ? (r + 2 * k) % 6 : IGNORED;
			for (int c = 0; c < WIDE; c++)
				tone[(r * width + k) * WIDE + c] = k < SHORT ? 0.1F * (float)c : 0;
		}
	const size_t n = (size_t)(ROWS * width);
	check(stint_set(s, "x", x, n * sizeof *x), s);
	check(stint_set(s, "target", label, n * sizeof *label), s);
	check(stint_set(s, "tone", tone, n * WIDE * sizeof *tone), s);
}

static double train(stint_step *s, int width)
{
	set(s, width);
	check(stint_train(s, 0.1), s);
	return stint_loss(s);
}

int main(int argc, char **argv)
{
	stint_step *whole, *part;
	double alone[6];
	if (argc != 3)
		return 2;
	check(stint_init(&whole, &stint_model_m, NULL, 0), whole);
	check(stint_load(whole, argv[1]), whole);
	for (int i = 0; i < 6; i++)
		alone[i] = train(whole, LONG);
	stint_free(whole);
	check(stint_init(&whole, &stint_model_m, NULL, 0), whole);
	check(stint_load(whole, argv[1]), whole);
	check(stint_init_beside(&part, &stint_model_m_4, whole), part);
	check(stint_load(part, argv[2]), part);
	for (int i = 0; i < 6; i++) {
		const double loss = i % 3 == 1 ? train(whole, LONG) : train(part, SHORT);
		printf("%.9g %.9g\n", loss, alone[i]);
		if (!(fabs(loss - alone[i]) < 1e-6 * alone[i]))
			return 1;
	}
	stint_step *other;
	if (stint_init(&other, &stint_model_m_4, NULL, 0) != STINT_BAD_DATA)
		return 1;
	stint_free(other);
	stint_free(part);
	stint_free(whole);
	return 0;
}
