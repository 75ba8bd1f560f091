/* A program as a user would write it, around one or two generated steps:
 *
 *	product OUT FOLDER [FOLDER]
 *
 * brings the arena itself, trains three steps on made-up data and evaluates, each model in turn,
 * and writes the losses and all stored tensors, as bytes, to OUT. Built with HEADER and MODEL
 * (HEADER2 and MODEL2) defined, and ARENA as the header's constant; with COUNT, allocations are
 * reported and those of a warm step bounded by COUNT bytes each (0: there must be none); with KEPT,
 * steps leave so many gradients, which are written too, and parameters are updated here. Exit 1
 * when a check fails.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include HEADER
#ifdef HEADER2
#include HEADER2
#endif
#ifdef COUNT
#include "tests/models/count_allocations.h"
#endif

enum { GUARD = 4096, CANARY = 0xa5, STEPS = 3 };

struct product {
	const struct stint_model *model;
	size_t arena_bytes;
	unsigned char *memory; /* guard | arena | guard */
	stint_step *step;
};

static int check(int ok, const char *name, const char *what)
{
	if (!ok)
		fprintf(stderr, "%s: %s\n", name, what);
	return !ok;
}

static int set_up(struct product *p, const char *folder)
{
	char path[1024];
	size_t bytes = (2 * GUARD + p->arena_bytes + GUARD - 1) / GUARD * GUARD;
	if (check(p->arena_bytes == p->model->arena_bytes, folder,
		    "the header's arena is not the model's"))
		return 1;
	p->memory = aligned_alloc(GUARD, bytes);
	if (!p->memory)
		return check(0, folder, "out of memory");
	memset(p->memory, CANARY, bytes);
	if (check(stint_init(&p->step, p->model, p->memory + GUARD, p->arena_bytes - 1) ==
			    STINT_BAD_DATA,
		    folder, "an arena one byte too small is taken"))
		return 1;
	stint_free(p->step);
	if (stint_init(&p->step, p->model, p->memory + GUARD, p->arena_bytes))
		return check(0, folder, p->step ? stint_message(p->step) : "out of memory");
	snprintf(path, sizeof path, "%s/weights.safetensors", folder);
	stint_seed(p->step, 5);
	return check(!stint_load(p->step, path), folder, stint_message(p->step));
}

/* Reals in [0, 1), whole numbers below 10. */
static int feed(struct product *p)
{
	unsigned x = 1;
	for (int i = 0; i < p->model->nresident; i++) {
		const struct stint_tensor *t = &p->model->resident[i];
		if (t->kind != STINT_INPUT)
			continue;
		size_t n = t->bytes / (t->dtype == STINT_F32 ? 4 : 8);
		void *data = malloc(t->bytes);
		for (size_t k = 0; data && k < n; k++) {
			x = x * 1664525u + 1013904223u;
			if (t->dtype == STINT_F32)
				((float *)data)[k] = (float)(x >> 8) / 16777216.0f;
			else
				((int64_t *)data)[k] = (int64_t)(x >> 8) % 10;
		}
		int bad = !data || stint_set(p->step, t->name, data, t->bytes);
		free(data);
		if (bad)
			return check(0, t->name, "cannot be set");
	}
	return 0;
}

#ifdef KEPT
/* Plain SGD on the gradients that the step has left. */
static int update(struct product *p, FILE *out)
{
	const struct stint_model *m = p->model;
	if (check(m->nkept == KEPT, m->name, "another number of gradients"))
		return 1;
	for (int i = 0; i < m->nkept; i++) {
		const struct stint_tensor *t = &m->resident[m->kept[i].resident];
		const float *g = stint_gradient(p->step, t->name);
		float *x = stint_at(p->step, t->name);
		if (check(g && t->dtype == STINT_F32, t->name, "has no gradient"))
			return 1;
		fwrite(t->name, 1, strlen(t->name), out);
		fwrite(g, 1, t->bytes, out);
		for (size_t k = 0; t->trainable && k < t->bytes / sizeof *x; k++)
			x[k] -= 0.01f * g[k];
	}
	return 0;
}
#endif

static int train(struct product *p, FILE *out)
{
	double loss, before = INFINITY;
	for (int i = 0; i < STEPS; i++) {
#ifdef COUNT
		allocations_counted = (struct allocations){0};
#endif
		if (stint_train(p->step, 1e-3))
			return check(0, p->model->name, stint_message(p->step));
#ifdef COUNT
		printf("%s: step %d allocates %zu times, at most %zu bytes\n", p->model->name, i,
			allocations_counted.number, allocations_counted.largest);
		if (i > 0 && check(allocations_counted.largest <= COUNT, p->model->name,
				     "a warm step allocates"))
			return 1;
#endif
		loss = stint_loss(p->step);
		fwrite(&loss, sizeof loss, 1, out);
#ifdef KEPT
		if (update(p, out))
			return 1;
#endif
		if (check(isfinite(loss) && loss < 2 * before, p->model->name, "does not train"))
			return 1;
		before = loss;
	}
	return 0;
}

static int evaluate(struct product *p, FILE *out)
{
	if (stint_eval(p->step, 0))
		return check(0, p->model->name, stint_message(p->step));
#ifdef KEPT
	const char *name = p->model->resident[p->model->kept[0].resident].name;
	if (check(!stint_gradient(p->step, name), name, "has a gradient after an evaluation"))
		return 1;
#endif
	double loss = stint_loss(p->step);
	fwrite(&loss, sizeof loss, 1, out);
	printf("%s: evaluates to %.9g\n", p->model->name, loss);
	return check(isfinite(loss), p->model->name, "does not evaluate");
}

/* The guards are whole; then everything that a checkpoint would hold. */
static int finish(struct product *p, FILE *out)
{
	const unsigned char *end = p->memory + GUARD + p->arena_bytes;
	int broken = 0;
	for (size_t i = 0; i < GUARD; i++)
		broken |= p->memory[i] != CANARY || end[i] != CANARY;
	for (int i = 0; i < p->model->nresident; i++) {
		const struct stint_tensor *t = &p->model->resident[i];
		if (t->kind != STINT_INPUT && t->kind != STINT_CONTROL)
			fwrite(p->memory + GUARD + t->offset, 1, t->bytes, out);
	}
	stint_free(p->step);
	free(p->memory);
	return check(!broken, p->model->name, "bytes outside the arena were written");
}

int main(int argc, char **argv)
{
	struct product product[] = {{.model = &MODEL, .arena_bytes = ARENA},
#ifdef HEADER2
		{.model = &MODEL2, .arena_bytes = ARENA2}
#endif
	};
	int n = (int)(sizeof product / sizeof *product), bad = 0;
	FILE *out = argc == 2 + n ? fopen(argv[1], "wb") : NULL;
	if (!out)
		return check(0, "product", "give OUT and each model's folder");
	for (int i = 0; i < n && !bad; i++)
		bad = set_up(&product[i], argv[2 + i]) || feed(&product[i]);
	for (int i = 0; i < n && !bad; i++)
		bad = train(&product[i], out);
	for (int i = 0; i < n && !bad; i++)
		bad = evaluate(&product[i], out);
	for (int i = 0; i < n && !bad; i++)
		bad = finish(&product[i], out);
	return (fclose(out) != 0) | bad;
}
