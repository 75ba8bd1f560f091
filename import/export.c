/* The model written again: with external data taken in, or with trained values. */
#include <string.h>

#include "import/private.h"

typedef Onnx__TensorProto Tensor;

/* Value fields give way to raw bytes. */
static void set_raw(Tensor *t, const void *data, size_t bytes)
{
	t->n_float_data = t->n_int32_data = t->n_int64_data = t->n_double_data = t->n_uint64_data =
		0;
	t->n_external_data = 0;
	t->has_data_location = 0;
	t->has_raw_data = 1;
	t->raw_data = (ProtobufCBinaryData){bytes, (uint8_t *)(uintptr_t)data};
}

static enum status too_large(const struct model *m, struct diag *d)
{
	return diag_fail(d, ST_INVALID, &(struct where){.file = m->path}, NULL,
		"would be larger than 2 GiB with its data inside, which protobuf does not allow");
}

static bool is_external(const Tensor *t)
{
	return t && t->has_data_location &&
	       t->data_location == ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL &&
	       element_width(t->data_type) > 0;
}

static enum status take_in(const struct model *m, Tensor *t, struct diag *d)
{
	int rank;
	int64_t dim[RANK_MAX], numel;
	const unsigned char *raw;
	TRY(tensor_shape(m, t, &rank, dim, &numel, d));
	TRY(tensor_raw(m, t, numel, &raw, d));
	set_raw(t, raw, (size_t)numel * (size_t)element_width(t->data_type));
	return ST_OK;
}

static enum status add_size(const struct model *m, Tensor *t, int64_t *total, struct diag *d)
{
	int rank;
	int64_t dim[RANK_MAX], numel, bytes;
	TRY(tensor_shape(m, t, &rank, dim, &numel, d));
	if (!size_mul(numel, element_width(t->data_type), &bytes) ||
		!size_add(*total, bytes, total) || *total > INT32_MAX)
		return too_large(m, d);
	return ST_OK;
}

/* The external tensors: the initializers' and the nodes'. */
static enum status list_external(const struct model *m, Tensor ***list, int *n, struct diag *d)
{
	const Onnx__GraphProto *g = m->proto->graph;
	size_t most = g->n_initializer;
	for (size_t i = 0; i < g->n_node; i++)
		most += g->node[i]->n_attribute;
	Tensor **out = *list = most > INT32_MAX ? NULL : ARENA_ARRAY(m->arena, Tensor *, most);
	if (!out)
		return diag_nomem(d);
	*n = 0;
	for (size_t i = 0; i < g->n_initializer; i++)
		if (is_external(g->initializer[i]))
			out[(*n)++] = g->initializer[i];
	for (size_t i = 0; i < g->n_node; i++)
		for (size_t k = 0; k < g->node[i]->n_attribute; k++)
			if (is_external(g->node[i]->attribute[k]->t))
				out[(*n)++] = g->node[i]->attribute[k]->t;
	return ST_OK;
}

/* The sizes come first: no more is read than a file may hold. */
enum status model_take_in(const struct model *m, struct diag *d)
{
	Tensor **list;
	int n;
	int64_t total = 0;
	TRY(list_external(m, &list, &n, d));
	for (int i = 0; i < n; i++)
		TRY(add_size(m, list[i], &total, d));
	for (int i = 0; i < n; i++)
		TRY(take_in(m, list[i], d));
	return ST_OK;
}

enum status model_write(const struct model *m, const char *to, struct diag *d)
{
	size_t size = onnx__model_proto__get_packed_size(m->proto);
	if (size > INT32_MAX)
		return too_large(m, d);
	uint8_t *bytes = arena_alloc(m->arena, size, 1);
	if (!bytes)
		return diag_nomem(d);
	onnx__model_proto__pack(m->proto, bytes);
	struct text t = {.s = (char *)bytes, .len = size};
	return text_save(&t, to, d);
}

enum status import_copy_model(const char *from, const char *to, const struct import_options *o,
	const struct op_table *table, struct diag *d)
{
	struct arena *a = arena_new();
	struct diag quiet = {0}; /* what there is to say was said on import */
	struct importer im = {.o = o, .d = &quiet, .table = table, .module = {.arena = a}};
	enum status st = a ? model_read(a, from, &im.m, d) : diag_nomem(d);
	if (st == ST_OK)
		st = model_take_in(&im.m, d);
	if (st == ST_OK)
		st = signature_read(&im);
	if (st == ST_OK)
		st = ties_rewrite(&im);
	if (st == ST_OK)
		st = model_write(&im.m, to, d);
	arena_free(a);
	return st;
}

static enum status replace(const struct model *m, export_lookup *lookup, void *user, struct diag *d)
{
	const Onnx__GraphProto *g = m->proto->graph;
	for (size_t i = 0; i < g->n_initializer; i++) {
		Tensor *t = g->initializer[i];
		int rank;
		int64_t dim[RANK_MAX], numel;
		TRY(tensor_shape(m, t, &rank, dim, &numel, d));
		const float *v = lookup(user, text_of(t->name), numel);
		if (!v)
			continue;
		t->data_type = ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT;
		set_raw(t, v, (size_t)numel * sizeof *v);
	}
	return ST_OK;
}

enum status export_onnx(
	const char *model, const char *to, export_lookup *lookup, void *user, struct diag *d)
{
	struct model m;
	struct arena *a = arena_new();
	enum status st = a ? model_read(a, model, &m, d) : diag_nomem(d);
	if (st == ST_OK)
		st = replace(&m, lookup, user, d);
	if (st == ST_OK)
		st = model_take_in(&m, d);
	if (st == ST_OK)
		st = model_write(&m, to, d);
	arena_free(a);
	return st;
}
