/* Two training steps and an evaluation of a generated step on made-up data: something for
 * ThreadSanitizer to watch. Prints the loss and a sum over the bits of all that stays. */
#include <inttypes.h>
#include <stdio.h>

#include "stint_rt_device.h"

const struct stint_model *stint_model_get(void);

/* Reals in [0, 1), integers 0 and 1: valid as labels and indices. */
static void fill(stint_step *s, const struct stint_tensor *t)
{
	unsigned char *p = s->arena + t->offset;
	uint32_t x = 1;
	size_t size = t->dtype == STINT_F32 ? 4 : t->dtype == STINT_BOOL ? 1 : 8;
	for (size_t i = 0; i < t->bytes / size; i++) {
		x = x * 1664525u + 1013904223u;
		if (t->dtype == STINT_F32)
			((float *)(void *)p)[i] = (float)(x >> 8) / 16777216.0f;
		else if (t->dtype == STINT_F64)
			((double *)(void *)p)[i] = (double)(x >> 8) / 16777216.0;
		else if (t->dtype == STINT_I64)
			((int64_t *)(void *)p)[i] = x >> 31;
		else
			p[i] = (unsigned char)(x >> 31);
	}
}

static int run(stint_step *s, const char *weights)
{
	int rc = stint_load(s, weights);
	for (int i = 0; i < s->model->nresident; i++)
		if (s->model->resident[i].kind == STINT_INPUT)
			fill(s, &s->model->resident[i]);
	for (int step = 0; step < 2 && !rc; step++)
		rc = stint_train(s, 1e-3);
	return rc ? rc : stint_eval(s, 0);
}

/* Of parameters, state and buffers: FNV-1a. */
static uint64_t bits(const stint_step *s)
{
	uint64_t sum = 0xcbf29ce484222325u;
	for (int i = 0; i < s->model->nresident; i++) {
		const struct stint_tensor *t = &s->model->resident[i];
		for (size_t k = 0; k < t->bytes && t->kind != STINT_CONTROL; k++)
			sum = (sum ^ s->arena[t->offset + k]) * 0x100000001b3u;
	}
	return sum;
}

int main(int argc, char **argv)
{
	stint_step *s;
	if (argc != 2)
		return 2;
	int rc = stint_init(&s, stint_model_get(), NULL, 0);
	if (!rc)
		rc = run(s, argv[1]);
	if (rc)
		fprintf(stderr, "%s\n", s ? stint_message(s) : "no memory");
	else
		printf("loss %g = %a, bits %016" PRIx64 "\n", stint_loss(s), stint_loss(s),
			bits(s));
	stint_free(s);
	return rc ? 1 : 0;
}
