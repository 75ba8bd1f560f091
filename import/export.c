/* The model written again: with external data taken in, or with trained values. */
#include <string.h>

#include "import/import_parts.h"

typedef Onnx__TensorProto Tensor;

static bool is_external(const Tensor *t)
{
	return t && t->has_data_location &&
	       t->data_location == ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL &&
	       element_bytes(t->data_type, 1) > 0;
}

static enum status take_in(const struct model *m, Tensor *t, struct diag *d)
{
	int rank;
	int64_t dim[RANK_MAX], numel;
	const unsigned char *raw;
	TRY(tensor_shape(m, t, &rank, dim, &numel, d));
	TRY(tensor_raw(m, t, numel, &raw, d));
	tensor_set_raw(t, raw, (size_t)element_bytes(t->data_type, numel));
	return ST_OK;
}

enum status model_take_in(
	const struct model *m, import_outside *outside, void *user, struct diag *d)
{
	struct tensors other = {.attributes = true}, list = {.initializers = true};
	TRY(tensors_list(m, &list, d));
	TRY(tensors_list(m, &other, d));
	for (size_t i = 0; i < list.n; i++) {
		if (!is_external(list.item[i]))
			continue;
		TRY(outside && outside(user, text_of(list.item[i]->name))
				? external_leave(m, list.item[i], d)
				: take_in(m, list.item[i], d));
	}
	for (size_t i = 0; i < other.n; i++)
		if (is_external(other.item[i]))
			TRY(take_in(m, other.item[i], d));
	return ST_OK;
}

enum status import_copy_model(const char *from, const char *to, const struct import_options *o,
	const struct op_table *table, import_outside *outside, void *user, struct diag *d)
{
	struct arena *a = arena_new();
	struct diag quiet = {0}; /* what there is to say was said on import */
	struct importer im = {.o = o, .d = &quiet, .table = table};
	im.index = a ? op_index_new(a, table) : NULL;
	enum status st = im.index ? model_read(a, from, &im.m, d) : diag_nomem(d);
	if (st == ST_OK) {
		const Onnx__ModelProto *p = im.m.proto;
		im.top.opset = (int)opset_of(p->opset_import, p->n_opset_import);
		st = initializers_rewrite(&im);
	}
	if (st == ST_OK) /* what was untied, too: each has a name of its own now */
		st = model_take_in(&im.m, outside, user, d);
	if (st == ST_OK)
		st = model_write(&im.m, to, PROTOBUF_MOST, d);
	arena_free(a);
	return st;
}

/* The sum of a tensor's value, v or (NULL) its own, and `more`. */
static enum status sum(const struct model *m, const Tensor *t, const float *v, const float *more,
	int64_t numel, float **out, struct diag *d)
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

static enum status replace(const struct model *m, export_lookup *lookup,
	const struct export_merge *merge, void *user, struct diag *d)
{
	struct tensors list = {.initializers = true};
	TRY(tensors_list(m, &list, d));
	for (size_t i = 0; i < list.n; i++) {
		Tensor *t = list.item[i];
		int rank;
		int64_t dim[RANK_MAX], numel;
		TRY(tensor_shape(m, t, &rank, dim, &numel, d));
		const float *v = lookup(user, text_of(t->name), numel);
		const char *name = text_of(t->name);
		const float *more = merge ? merge->delta(user, name, rank, dim, numel) : NULL;
		if (more) {
			float *total = NULL;
			TRY(sum(m, t, v, more, numel, &total, d));
			merge->settle(user, name, dim, total);
			v = total;
		}
		if (!v)
			continue;
		t->data_type = ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT;
		tensor_set_raw(t, v, (size_t)numel * sizeof *v);
	}
	return ST_OK;
}

static enum status annotate(const struct model *m, const struct export_note *note, struct diag *d)
{
	typedef Onnx__StringStringEntryProto Entry;
	Onnx__ModelProto *p = m->proto;
	size_t n = p->n_metadata_props, more = 0;
	while (note && note[more].key)
		more++;
	Entry **all = ARENA_ARRAY(m->arena, Entry *, n + more + 1);
	if (!all)
		return diag_nomem(d);
	if (n)
		memcpy(all, p->metadata_props, n * sizeof *all);
	for (size_t i = 0; i < more; i++) {
		size_t at = 0;
		while (at < n && strcmp(text_of(all[at]->key), note[i].key) != 0)
			at++;
		Entry *e = ARENA_NEW(m->arena, Entry);
		if (!e)
			return diag_nomem(d);
		onnx__string_string_entry_proto__init(e);
		e->key = arena_strdup(m->arena, note[i].key);
		e->value = arena_strdup(m->arena, note[i].value);
		if (!e->key || !e->value)
			return diag_nomem(d);
		all[at] = e;
		n += at == n;
	}
	p->metadata_props = all;
	p->n_metadata_props = n;
	return ST_OK;
}

enum status export_onnx(const char *model, const char *to, export_lookup *lookup,
	const struct export_merge *merge, export_check *check, void *user,
	const struct export_note *note, struct diag *d)
{
	struct model m;
	struct arena *a = arena_new();
	enum status st = a ? model_read(a, model, &m, d) : diag_nomem(d);
	if (st == ST_OK)
		st = replace(&m, lookup, merge, user, d);
	if (st == ST_OK)
		st = annotate(&m, note, d);
	if (st == ST_OK && check)
		st = check(user, d);
	if (st == ST_OK)
		st = model_take_in(&m, NULL, NULL, d);
	if (st == ST_OK)
		st = model_write(&m, to, PROTOBUF_MOST, d);
	arena_free(a);
	return st;
}
