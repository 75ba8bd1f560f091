/* Names for constants, from what they hold: equal constants get equal names, in the training and in
 * the evaluation graph, so that they can share one place. */
#include <inttypes.h>
#include <string.h>

#include "graph/pass.h"

/* FNV-1a, 64 bits, over words of 64 bits: frozen weights are constants too, and many bytes. The
 * upper half of a word would never reach the lower bits by products alone. */
static uint64_t mix(uint64_t h, const void *data, size_t n)
{
	const unsigned char *p = data;
	uint64_t word;
	size_t i = 0;
	for (; n - i >= sizeof word; i += sizeof word) {
		memcpy(&word, p + i, sizeof word);
		h = (h ^ word ^ word >> 32) * UINT64_C(0x100000001b3);
		h ^= h >> 29;
	}
	for (; i < n; i++)
		h = (h ^ p[i]) * UINT64_C(0x100000001b3);
	return h;
}

enum status graph_name_constants(struct graph *g)
{
	for (int i = 0; i < g->ntensor; i++) {
		struct tensor *t = g->tensor[i];
		if (t->role != TR_CONSTANT)
			continue;
		const struct tensor *whole = t->piece_of ? t->piece_of : t;
		uint64_t h = UINT64_C(0xcbf29ce484222325);
		h = mix(h, &t->dtype, sizeof t->dtype);
		h = mix(h, &t->rank, sizeof t->rank);
		h = mix(h, t->dim, (size_t)t->rank * sizeof *t->dim);
		h = mix(h, whole->data, (size_t)tensor_bytes(whole));
		t->name = arena_printf(g->arena, "constant/%016" PRIx64, h);
		if (!t->name)
			return diag_nomem(g->diag);
	}
	return ST_OK;
}
