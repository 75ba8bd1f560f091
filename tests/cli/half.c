/* A step compiled with --precision fp16 and AdamW, its loss scale looked at: linked by
 * test_half.sh. */
#include <stdio.h>
#include <string.h>

#include "stint_rt_device.h" /* looks into a step */
#include "stint_step.h"

#define CHECK(x)                                                                                   \
	do {                                                                                       \
		if (!(x)) {                                                                        \
			fprintf(stderr, "line %d: %s; message: %s\n", __LINE__, #x,                \
				s ? stint_message(s) : "");                                        \
			return 1;                                                                  \
		}                                                                                  \
	} while (0)

enum { ROOM = 1 << 16 };

/* The parameters and the optimizer's state, one after another; how many bytes. */
static size_t trained(const stint_step *s, unsigned char *out)
{
	size_t n = 0;
	for (int i = 0; i < s->model->nresident; i++) {
		const struct stint_tensor *t = &s->model->resident[i];
		if ((t->kind != STINT_PARAMETER && t->kind != STINT_STATE) ||
			!strcmp(t->name, "state/loss_scale") || t->bytes > ROOM - n)
			continue;
		memcpy(out + n, s->arena + t->offset, t->bytes);
		n += t->bytes;
	}
	return n;
}

/* Data, the same start, and a loss scale. */
static int start(stint_step **s, float scale, float good, float skipped)
{
	if (stint_init(s, &stint_model_m, NULL, 0) != STINT_OK ||
		stint_load(*s, "weights.safetensors") != STINT_OK)
		return 0;
	for (int i = 0; i < (*s)->model->nresident; i++) {
		const struct stint_tensor *t = &(*s)->model->resident[i];
		float *x = (void *)((*s)->arena + t->offset);
		for (size_t k = 0;
			t->kind == STINT_INPUT && t->dtype == STINT_F32 && k < t->bytes / 4; k++)
			x[k] = (float)(k * 7 % 11) / 4 - 1;
	}
	const float state[3] = {scale, good, skipped};
	return stint_set(*s, "state/loss_scale", state, sizeof state) == STINT_OK;
}

static int scale_is(const stint_step *s, float scale, float good, float skipped)
{
	const float *state = stint_at((stint_step *)s, "state/loss_scale");
	return state[0] == scale && state[1] == good && state[2] == skipped;
}

int main(void)
{
	static unsigned char before[ROOM], after[ROOM], other[ROOM];
	stint_step *s = NULL, *t = NULL;
	/* it begins at 65536, and counts updates */
	CHECK(start(&s, 0, 0, 0));
	const size_t n = trained(s, before);
	CHECK(stint_train(s, 0.01) == STINT_OK && stint_loss(s) > 0);
	CHECK(trained(s, after) == n && memcmp(before, after, n) != 0);
	CHECK(scale_is(s, 65536, 1, 0));

	/* too large: nothing is updated, and the scale is halved */
	const float large[3] = {0x1p60f, 1, 0}, usual[3] = {65536, 0, 1};
	CHECK(stint_set(s, "state/loss_scale", large, sizeof large) == STINT_OK);
	CHECK(stint_train(s, 0.01) == STINT_OK && stint_loss(s) > 0);
	CHECK(scale_is(s, 0x1p59f, 0, 1));
	CHECK(trained(s, before) == n && memcmp(before, after, n) == 0);

	/* the optimizer does not count the step: the next is the second, as of one that skipped
	 * none */
	CHECK(stint_set(s, "state/loss_scale", usual, sizeof usual) == STINT_OK);
	CHECK(stint_train(s, 0.01) == STINT_OK);
	CHECK(scale_is(s, 65536, 1, 1));
	CHECK(start(&t, 0, 0, 0));
	CHECK(stint_train(t, 0.01) == STINT_OK && stint_train(t, 0.01) == STINT_OK);
	CHECK(trained(s, after) == n && trained(t, other) == n && memcmp(after, other, n) == 0);

	/* 2000 updates in a row double it */
	stint_free(s);
	CHECK(start(&s, 1024, 1998, 0));
	CHECK(stint_train(s, 0.01) == STINT_OK && scale_is(s, 1024, 1999, 0));
	CHECK(stint_train(s, 0.01) == STINT_OK && scale_is(s, 2048, 0, 0));
	stint_free(s);
	stint_free(t);
	return 0;
}
