#include "data/shuffle.h"

#include <stdlib.h>
#include <string.h>

#include "kernels/philox.h"

/* Nodes of Philox that no model's node has. */
enum { NODE_LIST = -1, NODE_COMPUTED = -2 };

/* From the top; the remainder of 64 random bits is even to n in 2^64. */
void shuffle_list(int64_t *order, int64_t n, int64_t seed, int64_t epoch)
{
	for (int64_t i = 0; i < n; i++)
		order[i] = i;
	for (int64_t i = n - 1; i > 0; i--) {
		uint32_t word[4];
		stint_philox_at(seed, epoch, NODE_LIST, 4 * i, word);
		uint64_t random = (uint64_t)word[1] << 32 | word[0];
		int64_t j = (int64_t)(random % ((uint64_t)i + 1)), keep = order[i];
		order[i] = order[j];
		order[j] = keep;
	}
}

/* A Feistel network over pairs of numbers below `side` that are added by their remainder (Black and
 * Rogaway, "Ciphers with Arbitrary Finite Domains", CT-RSA 2002): a permutation of side * side
 * places. Those that lead out of n are gone through again until one does not, as there: fewer than
 * 2 * side in a square of n or more do. */
int64_t shuffle_compute(const struct shuffle *o, int64_t place)
{
	enum { ROUNDS = 8 };
	uint64_t x = (uint64_t)place;
	do {
		uint64_t left = x / o->side, right = x % o->side;
		for (int round = 0; round < ROUNDS; round++) {
			uint32_t word[4];
			stint_philox_at(o->seed, o->epoch, NODE_COMPUTED,
				4 * (int64_t)(right * ROUNDS + (unsigned)round), word);
			const uint64_t random = (uint64_t)word[1] << 32 | word[0],
				       next = (left + random % o->side) % o->side;
			left = right;
			right = next;
		}
		x = left * o->side + right;
	} while (x >= (uint64_t)o->n);
	return (int64_t)x;
}

int shuffle_open(struct shuffle *o, int64_t n)
{
	*o = (struct shuffle){.n = n, .side = 1};
	if (n <= SHUFFLE_LISTED) {
		o->list = malloc((size_t)(n > 0 ? n : 1) * sizeof *o->list);
		return !o->list;
	}
	uint64_t above = (uint64_t)1 << 32; /* its square is more than any n */
	while (o->side < above) {
		const uint64_t middle = o->side + (above - o->side) / 2;
		if (middle * middle >= (uint64_t)n)
			above = middle;
		else
			o->side = middle + 1;
	}
	return 0;
}

void shuffle_close(struct shuffle *o)
{
	free(o->list);
	memset(o, 0, sizeof *o);
}

void shuffle_begin(struct shuffle *o, int64_t seed, int64_t epoch)
{
	o->seed = seed;
	o->epoch = epoch;
	if (o->list)
		shuffle_list(o->list, o->n, seed, epoch);
}

int64_t shuffle_at(const struct shuffle *o, int64_t place)
{
	return o->list ? o->list[place] : shuffle_compute(o, place);
}
