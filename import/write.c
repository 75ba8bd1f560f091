/* A model as a file: in one piece, or, where that would be more than protobuf allows, with its
 * large tensors in a second file. Nothing large is put together in memory. */
#include <inttypes.h>
#include <string.h>

#include "import/import_parts.h"

typedef Onnx__TensorProto Tensor;

enum { SMALL = 1024, ALIGNMENT = 64 }; /* bytes that stay inside; of tensors in the other file */

/* --- The tensors of a model --- */

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

enum status tensors_list(const struct model *m, struct tensors *list, struct diag *d)
{
	list->arena = m->arena;
	add_graph(list, m->proto->graph);
	for (size_t i = 0; i < m->proto->n_functions; i++)
		add_nodes(list, m->proto->functions[i]->node, m->proto->functions[i]->n_node);
	return list->failed ? diag_nomem(d) : ST_OK;
}

void tensor_set_raw(Tensor *t, const void *data, size_t bytes)
{
	t->n_float_data = t->n_int32_data = t->n_int64_data = t->n_double_data = t->n_uint64_data =
		0;
	t->n_external_data = 0;
	t->has_data_location = 0;
	t->has_raw_data = 1;
	t->raw_data = (ProtobufCBinaryData){bytes, (uint8_t *)(uintptr_t)data};
}

/* --- The other file --- */

bool tensor_is_large(const Tensor *t)
{
	return t->has_raw_data && t->raw_data.len > SMALL;
}

static uint64_t aligned(uint64_t at)
{
	return (at + ALIGNMENT - 1) & ~(uint64_t)(ALIGNMENT - 1);
}

static bool put_large(void *user, FILE *f)
{
	static const char zeros[ALIGNMENT];
	const struct tensors *list = user;
	uint64_t at = 0;
	for (size_t i = 0; i < list->n; i++) {
		const ProtobufCBinaryData *raw = &list->item[i]->raw_data;
		const size_t gap = (size_t)(aligned(at) - at);
		if (!tensor_is_large(list->item[i]))
			continue;
		if (fwrite(zeros, 1, gap, f) != gap ||
			fwrite(raw->data, 1, raw->len, f) != raw->len)
			return false;
		at += gap + raw->len;
	}
	return true;
}

bool tensor_refer(struct arena *a, Tensor *t, const char *location, uint64_t offset)
{
	enum { KEYS = 3 };
	char *const value[KEYS] = {arena_strdup(a, location), arena_printf(a, "%" PRIu64, offset),
		arena_printf(a, "%zu", t->raw_data.len)};
	static const char *const key[KEYS] = {"location", "offset", "length"};
	Onnx__StringStringEntryProto *e = ARENA_ARRAY(a, Onnx__StringStringEntryProto, KEYS);
	t->external_data = ARENA_ARRAY(a, Onnx__StringStringEntryProto *, KEYS);
	if (!e || !t->external_data || !value[0] || !value[1] || !value[2])
		return false;
	for (int i = 0; i < KEYS; i++) {
		onnx__string_string_entry_proto__init(&e[i]);
		e[i].key = (char *)(uintptr_t)key[i];
		e[i].value = value[i];
		t->external_data[i] = &e[i];
	}
	t->n_external_data = KEYS;
	t->has_data_location = 1;
	t->data_location = ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL;
	t->has_raw_data = 0;
	return true;
}

static enum status put_outside(
	const struct model *m, struct tensors *list, const char *to, struct diag *d)
{
	struct arena *a = m->arena;
	const char *path = arena_printf(a, "%s" MODEL_DATA, to);
	const char *slash = path ? strrchr(path, '/') : NULL;
	uint64_t at = 0;
	if (!path)
		return diag_nomem(d);
	TRY(file_save(path, put_large, list, d));
	for (size_t i = 0; i < list->n; i++) {
		Tensor *t = list->item[i];
		if (!tensor_is_large(t))
			continue;
		at = aligned(at);
		if (!tensor_refer(a, t, slash ? slash + 1 : path, at))
			return diag_nomem(d);
		at += t->raw_data.len;
	}
	return ST_OK;
}

/* --- The file --- */

struct packed {
	ProtobufCBuffer base; /* first: what protobuf-c knows of it */
	FILE *f;
	bool ok;
};

static void append(ProtobufCBuffer *buffer, size_t len, const uint8_t *data)
{
	struct packed *p = (struct packed *)(void *)buffer;
	p->ok = p->ok && fwrite(data, 1, len, p->f) == len;
}

static bool put_model(void *user, FILE *f)
{
	struct packed p = {{append}, f, true};
	onnx__model_proto__pack_to_buffer(user, &p.base);
	return p.ok;
}

/* Bytes of tensors that stand in it as such: they may be too many for protobuf-c to count. */
static int64_t raw_bytes(const struct tensors *list)
{
	int64_t total = 0;
	for (size_t i = 0; i < list->n; i++)
		if (list->item[i]->has_raw_data &&
			!size_add(total, (int64_t)list->item[i]->raw_data.len, &total))
			return INT64_MAX;
	return total;
}

enum status model_write(const struct model *m, const char *to, int64_t most, struct diag *d)
{
	struct tensors list = {.initializers = true, .attributes = true};
	TRY(tensors_list(m, &list, d));
	if (raw_bytes(&list) > most ||
		(int64_t)onnx__model_proto__get_packed_size(m->proto) > most) {
		TRY(put_outside(m, &list, to, d));
		if (onnx__model_proto__get_packed_size(m->proto) > PROTOBUF_MOST)
			return diag_fail(d, ST_INVALID, &(struct where){.file = m->path}, NULL,
				"would be larger than 2 GiB without its tensors' bytes, which "
				"protobuf does not allow");
	}
	return file_save(to, put_model, m->proto, d);
}
