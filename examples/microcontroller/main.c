/* SPDX-License-Identifier: MIT-0 */
/* Trains a step from `stint compile` on samples that are made up on the spot, and prints each loss
 * and, at the end, a sum over all bits that were trained. The same source runs on a computer, with
 * the same folder or with one compiled by --portable: the bits that it prints are the same.
 *
 * Compile with -DMODEL=stint_model_NAME -DARENA_BYTES=... -DARENA_ALIGNMENT=... (stint_step.h's),
 * -DCLASSES=N and -DSTEPS=N. */
#include "board.h"
#include "stint_step.h"

static _Alignas(ARENA_ALIGNMENT) unsigned char arena[ARENA_BYTES];

/* --- Text --- */

static void print_whole(uint64_t v, unsigned base, int digits)
{
	char text[24], *p = text + sizeof text - 1;
	*p = '\0';
	for (int i = 0; i < digits || v; i++, v /= base)
		*--p = "0123456789abcdef"[v % base];
	board_print(p);
}

static void print_number(const char *before, uint64_t v, const char *behind)
{
	board_print(before);
	print_whole(v, 10, 1);
	board_print(behind);
}

static uint32_t bits_of(float x)
{
	union {
		float f;
		uint32_t i;
	} t = {.f = x};
	return t.i;
}

/* "2.3026 (40135d8e)" */
static void print_loss(float loss)
{
	const int finite = loss >= 0 && loss < 1e6f;
	const uint32_t whole = finite ? (uint32_t)(loss * 10000 + 0.5f) : 0;
	print_whole(whole / 10000, 10, 1);
	board_print(".");
	print_whole(whole % 10000, 10, 4);
	board_print(" (");
	print_whole(bits_of(loss), 16, 8);
	board_print(")");
}

/* --- Samples --- */

static uint32_t random_state;

/* Numerical Recipes' linear congruential generator: from -1 to 1. */
static float random_number(void)
{
	random_state = random_state * 1664525u + 1013904223u;
	return (float)((int32_t)random_state >> 8) / 8388608;
}

/* A sample is its class's own noise and some other. */
static void make_sample(float *x, uint32_t n, uint32_t class, uint32_t number)
{
	for (uint32_t i = 0; i < n; i++) {
		random_state = class * 7919u + i * 104729u + 1;
		const float pattern = (random_number(), random_number());
		random_state = number * 15485863u + i * 32452843u + 2;
		x[i] = pattern + 0.5f * (random_number(), random_number());
	}
}

/* A step for a microcontroller has whole numbers of 32 bits, and takes one micro-batch a call;
 * others have 64 bits and take the whole batch. */
#ifdef STINT_BARE_H
typedef int32_t label_type;
enum { LABEL = STINT_I32 };
#define PARTS(model) ((uint32_t)(model)->shards)
#else
typedef int64_t label_type;
enum { LABEL = STINT_I64 };
#define PARTS(model) 1u
#endif

/* The labels of the step's whole batch, and the samples of one part. Each sample is a number's. */
static void make_batch(stint_step *s, uint32_t step, uint32_t part)
{
	const struct stint_model *m = &MODEL;
	uint32_t rows = 0;
	for (int i = 0; i < m->nresident; i++)
		if (m->resident[i].kind == STINT_INPUT && m->resident[i].dtype == LABEL) {
			label_type *label = stint_at(s, m->resident[i].name);
			rows = (uint32_t)(m->resident[i].bytes / sizeof(label_type));
			for (uint32_t r = 0; r < rows; r++)
				label[r] = (label_type)((step * rows + r) % CLASSES);
		}
	const uint32_t here = rows / PARTS(m);
	for (int i = 0; i < m->nresident; i++)
		if (m->resident[i].kind == STINT_INPUT && m->resident[i].dtype == STINT_F32) {
			float *x = stint_at(s, m->resident[i].name);
			const uint32_t n = (uint32_t)m->resident[i].bytes / 4 / here;
			for (uint32_t r = 0; r < here; r++) {
				const uint32_t number = step * rows + part * here + r;
				make_sample(x + r * n, n, number % CLASSES, number);
			}
		}
}

/* --- Training --- */

/* FNV-1a over what is trained and what goes with it. */
static uint64_t sum_bits(stint_step *s)
{
	uint64_t sum = 14695981039346656037u;
	for (int i = 0; i < MODEL.nresident; i++) {
		const struct stint_tensor *t = &MODEL.resident[i];
		const unsigned char *p = stint_at(s, t->name);
		const int lasts = (t->kind == STINT_PARAMETER && t->trainable) ||
				  t->kind == STINT_BUFFER || t->kind == STINT_STATE;
		for (uint32_t k = 0; lasts && p && k < t->bytes; k++)
			sum = (sum ^ p[k]) * 1099511628211u;
	}
	return sum;
}

/* One step; *took: its instructions. */
static int train(stint_step *s, uint32_t step, uint64_t *took)
{
	int rc = 0;
	*took = 0;
	for (uint32_t part = 0; part < PARTS(&MODEL) && !rc; part++) {
		make_batch(s, step, part);
		const uint64_t before = board_instructions();
		rc = stint_train(s, RATE);
		*took += board_instructions() - before;
	}
	return rc;
}

static int run(stint_step *s)
{
	uint64_t took = 0;
	for (uint32_t step = 0; step < STEPS; step++) {
		const int rc = train(s, step, &took);
		if (rc) {
			print_number("stint_train returned ", (uint64_t)rc, "\n");
			return rc;
		}
		print_number("step ", step + 1, ": loss ");
		print_loss((float)stint_loss(s));
		board_print("\n");
	}
	board_print("trained bits: ");
	print_whole(sum_bits(s), 16, 16);
	board_print("\n");
	if (took)
		print_number("instructions of a step: ", took, "\n");
	if (board_stack())
		print_number("stack: ", board_stack(), "\n");
	return 0;
}

int main(void)
{
#ifdef STINT_BARE_H
	static stint_step step;
	stint_step *s = &step;
	int rc = stint_init(s, &MODEL, arena, sizeof arena);
#else
	stint_step *s;
	int rc = stint_init(&s, &MODEL, arena, sizeof arena);
	if (!rc)
		rc = stint_load(s, WEIGHTS);
#endif
	if (rc)
		board_print("the step cannot be set up\n");
	return rc ? rc : run(s);
}
