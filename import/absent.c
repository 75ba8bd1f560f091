/* What stands in for the values of weights that lie in a file that is not there. Who plans a step
 * needs sizes, and often has no values at hand: a large model's are elsewhere, or not downloaded
 * yet.
 *
 * They are positive numbers as small as weights are, drawn by a fixed rule, no two tensors' in one
 * place: what looks at values (for masks, equal numbers, progressions) takes them for a weight's
 * then, which is what such a tensor nearly always is. That a tensor is a copy of another one cannot
 * be told: whoever compares values asks tensor_is_absent first. */
#include <string.h>

#include "import/import_parts.h"

typedef Onnx__TensorProto Tensor;

enum { PLACE = 16, BLOCKS = 4 }; /* bytes between two tensors' first values; types of reals */

struct absent {
	struct names place; /* of a tensor: where its values begin in a block, int64_t */
	int64_t nplace;
	int nfile; /* that are not there */
	const char *file;
	struct block_of {
		unsigned char *bytes;
		int64_t size;
	} block[BLOCKS];
};

struct absent *absent_new(struct arena *a)
{
	struct absent *x = ARENA_NEW(a, struct absent);
	if (x)
		x->place.arena = a;
	return x;
}

/* Which block a type's values are of; -1: it is no type of reals. */
static int block_of_type(int32_t type)
{
	switch (type) {
	case ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT:
		return 0;
	case ONNX__TENSOR_PROTO__DATA_TYPE__DOUBLE:
		return 1;
	case ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT16:
		return 2;
	case ONNX__TENSOR_PROTO__DATA_TYPE__BFLOAT16:
		return 3;
	default:
		return -1;
	}
}

bool absent_will_do(const Tensor *t)
{
	return t->n_dims > 0 && block_of_type(t->data_type) >= 0;
}

/* The bits of 1/128 to 1/64, by type: what all have, and how many of the drawn ones are the
 * fraction's. */
static const struct {
	uint64_t base;
	int fraction;
} number[BLOCKS] = {
	{0x3c000000, 23}, {UINT64_C(0x3f80000000000000), 32}, {0x2000, 10}, {0x3c00, 7}};

static void fill(unsigned char *to, int64_t n, int block, int width)
{
	uint32_t drawn = 1;
	for (int64_t i = 0; i < n; i++) {
		drawn = drawn * 1664525u + 1013904223u;
		uint64_t bits = number[block].base | drawn >> (32 - number[block].fraction);
		for (int k = 0; k < width; k++, bits >>= 8)
			*to++ = (unsigned char)bits;
	}
}

/* The most that an initializer of t's type outside of the model takes. */
static int64_t largest(const struct model *m, const Tensor *t, int64_t bytes)
{
	const Onnx__GraphProto *g = m->proto->graph;
	for (size_t i = 0; i < g->n_initializer; i++) {
		const Tensor *x = g->initializer[i];
		int rank;
		int64_t numel, dim[RANK_MAX];
		struct diag quiet = {0};
		if (x->data_type != t->data_type || !tensor_is_external(x) ||
			tensor_shape(m, x, &rank, dim, &numel, &quiet) != ST_OK)
			continue;
		const int64_t size = element_bytes(x->data_type, numel);
		bytes = size > bytes ? size : bytes;
	}
	return bytes;
}

/* How many places there are: more share one, which takes as many weights in bodies as initializers.
 */
static int64_t nplace(const struct model *m)
{
	return (int64_t)m->proto->graph->n_initializer + 1;
}

static enum status make_block(const struct model *m, const Tensor *t, int64_t bytes, struct diag *d)
{
	const int at = block_of_type(t->data_type), width = element_width(t->data_type);
	const int64_t places = PLACE * nplace(m);
	struct block_of *b = &m->absent->block[at];
	if (b->size >= bytes + places)
		return ST_OK;
	const int64_t size = largest(m, t, bytes) + places;
	b->bytes = arena_alloc(m->arena, (size_t)size, 1);
	b->size = b->bytes ? size : 0;
	if (!b->bytes)
		return diag_nomem(d);
	fill(b->bytes, size / width, at, width);
	return ST_OK;
}

enum status absent_raw(const struct model *m, const Tensor *t, int64_t bytes,
	const unsigned char **raw, struct diag *d)
{
	struct absent *x = m->absent;
	TRY(make_block(m, t, bytes, d));
	struct block_of *b = &x->block[block_of_type(t->data_type)];
	void **known = names_at(&x->place, text_of(t->name));
	int64_t *place = known ? *known : NULL;
	if (known && !place && (place = *known = ARENA_NEW(m->arena, int64_t)))
		*place = PLACE * (x->nplace++ % nplace(m));
	if (!place)
		return diag_nomem(d);
	*raw = b->bytes + *place;
	return ST_OK;
}

void absent_file(const struct model *m, const char *location)
{
	if (!m->absent->nfile++)
		m->absent->file = location;
}

void absent_tell(const struct importer *im)
{
	const struct absent *x = im->m.absent;
	const struct where w = {.file = im->m.path};
	if (x && x->nfile)
		diag_warn(im->d, &w,
			"their values alone tell which weights are copies of others, and which are "
			"masks: put it beside the model where there are such",
			"its external data '%s'%s not there: planned without those values", x->file,
			x->nfile == 1 ? " is" : " and other files are");
}
