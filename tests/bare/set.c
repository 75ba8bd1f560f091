/* set FILE w: a step with its values writes them to FILE, and trains. set FILE r: one that is
 * compiled with STINT_NO_VALUES has zeros, is set from FILE, and trains. Both print the bits of
 * what follows. */
#include <stdio.h>
#include <string.h>

#include "stint_step.h"

static _Alignas(ARENA_ALIGNMENT) unsigned char arena[ARENA_BYTES];
static unsigned char value[ARENA_BYTES], zero[ARENA_BYTES];

static int in_arena(const struct stint_tensor *t)
{
	return t->kind == STINT_PARAMETER && t->offset != STINT_IN_VALUE;
}

/* Values to the file, or from it. Returns how many bytes; 0 where something is wrong. */
static size_t carry(stint_step *s, FILE *f, int write)
{
	size_t all = 0;
	for (int i = 0; i < MODEL.nresident; i++) {
		const struct stint_tensor *t = &MODEL.resident[i];
		if (!in_arena(t))
			continue;
		if (stint_get(s, t->name, value, t->bytes))
			return 0;
		if (write) {
			all += fwrite(value, 1, t->bytes, f);
		} else {
			if (t->value || memcmp(value, zero, t->bytes)) {
				printf("%s is not zero\n", t->name);
				return 0;
			}
			all += fread(value, 1, t->bytes, f);
			if (stint_set(s, t->name, value, t->bytes))
				return 0;
		}
	}
	return all;
}

static void make_inputs(stint_step *s)
{
	for (int i = 0; i < MODEL.nresident; i++) {
		const struct stint_tensor *t = &MODEL.resident[i];
		float *x = stint_at(s, t->name);
		for (uint32_t k = 0;
			t->kind == STINT_INPUT && t->dtype == STINT_F32 && k < t->bytes / 4; k++)
			x[k] = (float)(k * 37 % 101) / 101 - 0.5f;
	}
}

int main(int argc, char **argv)
{
	static stint_step step;
	const int write = argc == 3 && argv[2][0] == 'w';
	FILE *f = argc == 3 ? fopen(argv[1], write ? "wb" : "rb") : NULL;
	if (!f || stint_init(&step, &MODEL, arena, sizeof arena))
		return 1;
	const size_t bytes = carry(&step, f, write);
	if (!bytes || fclose(f))
		return 1;
	printf("%zu bytes\n", bytes);
	for (int i = 0; i < 3; i++) {
		make_inputs(&step);
		if (stint_train(&step, 0.05f))
			return 1;
		printf("loss %a\n", (double)stint_loss(&step));
	}
	return 0;
}
