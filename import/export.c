/* The model written again: with external data taken in, or with trained values. */
#include <string.h>

#include "import/import_parts.h"

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
	return diag_fail(d, ST_INVALID, &(struct where){.file = m->path},
		"initializers of float16 take half the bytes of float",
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

/* --- The tensors of a model: initializers and attributes, those of bodies and functions too --- */

struct tensors {
	struct arena *arena;
	size_t n, cap;
	Tensor **item;
	bool initializers, attributes; /* which are wanted */
	bool failed;                   /* out of memory */
};

static void add_tensor(struct tensors *list, Tensor *t)
{
	if (list->n == list->cap) {
		size_t wider = list->cap ? 2 * list->cap : 256;
		Tensor **item = ARENA_ARRAY(list->arena, Tensor *, wider);
		if (!item) {
			list->failed = true;
			return;
		}
		if (list->n)
			memcpy(item, list->item, list->n * sizeof *item);
		list->item = item;
		list->cap = wider;
	}
	list->item[list->n++] = t;
}

static void add_graph(struct tensors *list, const Onnx__GraphProto *g);

static void add_nodes(struct tensors *list, Onnx__NodeProto *const *node, size_t n)
{
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < node[i]->n_attribute; k++) {
			const Onnx__AttributeProto *a = node[i]->attribute[k];
			if (a->t && list->attributes)
				add_tensor(list, a->t);
			if (a->g)
				add_graph(list, a->g);
		}
}

static void add_graph(struct tensors *list, const Onnx__GraphProto *g)
{
	for (size_t i = 0; list->initializers && i < g->n_initializer; i++)
		add_tensor(list, g->initializer[i]);
	add_nodes(list, g->node, g->n_node);
}

static enum status list_tensors(const struct model *m, struct tensors *list, struct diag *d)
{
	list->arena = m->arena;
	add_graph(list, m->proto->graph);
	for (size_t i = 0; i < m->proto->n_functions; i++)
		add_nodes(list, m->proto->functions[i]->node, m->proto->functions[i]->n_node);
	return list->failed ? diag_nomem(d) : ST_OK;
}

/* No more is read than a file may hold. */
static enum status check_sizes(const struct model *m, const struct tensors *list, struct diag *d)
{
	int64_t total = 0;
	for (size_t i = 0; i < list->n; i++)
		if (is_external(list->item[i]))
			TRY(add_size(m, list->item[i], &total, d));
		else if (!size_add(total, (int64_t)list->item[i]->raw_data.len, &total) ||
			 total > INT32_MAX)
			return too_large(m, d);
	return ST_OK;
}

enum status model_take_in(const struct model *m, struct diag *d)
{
	struct tensors list = {.initializers = true, .attributes = true};
	TRY(list_tensors(m, &list, d));
	TRY(check_sizes(m, &list, d));
	for (size_t i = 0; i < list.n; i++)
		if (is_external(list.item[i]))
			TRY(take_in(m, list.item[i], d));
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

enum status import_copy_fits(const char *from, struct diag *d)
{
	struct model m;
	struct tensors list = {.initializers = true, .attributes = true};
	struct arena *a = arena_new();
	enum status st = a ? model_read(a, from, &m, d) : diag_nomem(d);
	if (st == ST_OK)
		st = list_tensors(&m, &list, d);
	if (st == ST_OK)
		st = check_sizes(&m, &list, d);
	arena_free(a);
	return st;
}

enum status import_copy_model(const char *from, const char *to, const struct import_options *o,
	const struct op_table *table, struct diag *d)
{
	struct arena *a = arena_new();
	struct diag quiet = {0}; /* what there is to say was said on import */
	struct importer im = {.o = o, .d = &quiet, .table = table};
	im.index = a ? op_index_new(a, table) : NULL;
	enum status st = im.index ? model_read(a, from, &im.m, d) : diag_nomem(d);
	if (st == ST_OK)
		st = model_take_in(&im.m, d);
	if (st == ST_OK) {
		const Onnx__ModelProto *p = im.m.proto;
		im.top.opset = (int)opset_of(p->opset_import, p->n_opset_import);
		st = initializers_rewrite(&im);
	}
	if (st == ST_OK)
		st = model_write(&im.m, to, d);
	arena_free(a);
	return st;
}

/* The sum of a tensor's value, v or (NULL) its own, and `more`. */
static enum status sum(const struct model *m, const Tensor *t, const float *v, const float *more,
	int64_t numel, const float **out, struct diag *d)
{
	enum dtype type;
	int rank;
	int64_t dim[RANK_MAX];
	const void *own = v;
	float *total = ARENA_ARRAY(m->arena, float, numel);
	if (!total)
		return diag_nomem(d);
	if (!v) {
		TRY(tensor_values(m, t, DT_F32, &type, &rank, dim, &own, d));
		if (type != DT_F32)
			return diag_fail(d, ST_INTERNAL,
				&(struct where){m->path, text_of(t->name), "tensor"}, NULL,
				"is no tensor of reals");
	}
	for (int64_t i = 0; i < numel; i++)
		total[i] = ((const float *)own)[i] + more[i];
	*out = total;
	return ST_OK;
}

static enum status replace(const struct model *m, export_lookup *lookup, export_delta *delta,
	void *user, struct diag *d)
{
	struct tensors list = {.initializers = true};
	TRY(list_tensors(m, &list, d));
	for (size_t i = 0; i < list.n; i++) {
		Tensor *t = list.item[i];
		int rank;
		int64_t dim[RANK_MAX], numel;
		TRY(tensor_shape(m, t, &rank, dim, &numel, d));
		const float *v = lookup(user, text_of(t->name), numel);
		const float *more = delta ? delta(user, text_of(t->name), rank, dim, numel) : NULL;
		if (more)
			TRY(sum(m, t, v, more, numel, &v, d));
		if (!v)
			continue;
		t->data_type = ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT;
		set_raw(t, v, (size_t)numel * sizeof *v);
	}
	return ST_OK;
}

enum status export_onnx(const char *model, const char *to, export_lookup *lookup,
	export_delta *delta, void *user, struct diag *d)
{
	struct model m;
	struct arena *a = arena_new();
	enum status st = a ? model_read(a, model, &m, d) : diag_nomem(d);
	if (st == ST_OK)
		st = replace(&m, lookup, delta, user, d);
	if (st == ST_OK)
		st = model_take_in(&m, d);
	if (st == ST_OK)
		st = model_write(&m, to, d);
	arena_free(a);
	return st;
}
