/* The model written again: with external data taken in, or with trained values. */
#include <inttypes.h>
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

/* Its bytes stay where the model has them, or where they are beside the copy. */
static enum status leave_out(
	const struct model *m, Tensor *t, const struct import_place *at, struct diag *d)
{
	if (!at->file)
		return is_external(t) ? external_leave(m, t, d) : ST_OK;
	if (is_external(t))
		TRY(take_in(m, t, d));
	if (!tensor_is_large(t) || t->raw_data.len != at->bytes ||
		memcmp(t->raw_data.data, at->data, at->bytes) != 0)
		return ST_OK;
	return tensor_refer(m->arena, t, at->file, at->offset) ? ST_OK : diag_nomem(d);
}

enum status model_take_in(
	const struct model *m, import_outside *outside, void *user, struct diag *d)
{
	struct tensors other = {.attributes = true}, list = {.initializers = true};
	TRY(tensors_list(m, &list, d));
	TRY(tensors_list(m, &other, d));
	for (size_t i = 0; i < list.n; i++) {
		struct import_place at;
		if (outside && outside(user, text_of(list.item[i]->name), &at))
			TRY(leave_out(m, list.item[i], &at, d));
		else if (is_external(list.item[i]))
			TRY(take_in(m, list.item[i], d));
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

/* Element i of v. */
static double real_at(const void *v, enum dtype type, int64_t i)
{
	return type == DT_F64 ? ((const double *)v)[i] : (double)((const float *)v)[i];
}

/* A tensor's own values, of `want` where they are reals. */
static enum status own_reals(
	const struct model *m, const Tensor *t, enum dtype want, const void **out, struct diag *d)
{
	enum dtype type;
	int rank;
	int64_t dim[RANK_MAX];
	TRY(tensor_values(m, t, want, &type, &rank, dim, out, d));
	return type == want ? ST_OK
			    : diag_fail(d, ST_INTERNAL,
				      &(struct where){m->path, text_of(t->name), "tensor"}, NULL,
				      "is no tensor of reals");
}

/* The sum of a tensor's value, v of that type or (NULL) its own, and `more`. */
static enum status sum(const struct model *m, const Tensor *t, const void *v, enum dtype type,
	const float *more, int64_t numel, float **out, struct diag *d)
{
	float *total = ARENA_ARRAY(m->arena, float, numel);
	if (!total)
		return diag_nomem(d);
	if (!v)
		TRY(own_reals(m, t, type = DT_F32, &v, d));
	for (int64_t i = 0; i < numel; i++)
		total[i] = (float)real_at(v, type, i) + more[i];
	*out = total;
	return ST_OK;
}

static bool is_real(int32_t type)
{
	return type == ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT ||
	       type == ONNX__TENSOR_PROTO__DATA_TYPE__DOUBLE ||
	       type == ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT16 ||
	       type == ONNX__TENSOR_PROTO__DATA_TYPE__BFLOAT16;
}

/* In the file's type, or in float where that is none of reals. What is the file's own number when
 * rounded, as an untrained double in single precision, stays that number. */
static enum status put_values(const struct model *m, Tensor *t, const void *v, enum dtype type,
	int64_t numel, bool infinite, struct diag *d)
{
	const struct where at = {m->path, text_of(t->name), "tensor"};
	const void *own = NULL;
	int64_t large = 0;
	if (!is_real(t->data_type))
		t->data_type = ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT;
	if (t->data_type == ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT && type == DT_F32) {
		tensor_set_raw(t, v, (size_t)numel * sizeof(float));
		return ST_OK;
	}
	if (t->data_type == ONNX__TENSOR_PROTO__DATA_TYPE__DOUBLE && type == DT_F32)
		TRY(own_reals(m, t, DT_F64, &own, d));
	const int64_t bytes = element_bytes(t->data_type, numel),
		      width = element_bytes(t->data_type, 1);
	unsigned char *raw = arena_alloc(m->arena, (size_t)bytes, 1);
	if (!raw)
		return diag_nomem(d);
	for (int64_t i = 0; i < numel; i++) {
		double x = real_at(v, type, i);
		if (own && (float)((const double *)own)[i] == (float)x)
			x = ((const double *)own)[i];
		real_put(t->data_type, raw + i * width, x);
		large += !real_fits(t->data_type, x);
	}
	tensor_set_raw(t, raw, (size_t)bytes);
	if (!large || infinite)
		return ST_OK;
	return diag_fail(d, ST_INVALID, &at, "--allow-nonfinite exports them as infinities",
		"%" PRId64 " of its values are too large for the file's %s", large,
		t->data_type == ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT16 ? "float16" : "type");
}

static enum status replace(const struct model *m, const struct export_values *x, struct diag *d)
{
	struct tensors list = {.initializers = true};
	TRY(tensors_list(m, &list, d));
	for (size_t i = 0; i < list.n; i++) {
		Tensor *t = list.item[i];
		int rank;
		int64_t dim[RANK_MAX], numel;
		enum dtype type = DT_F32;
		TRY(tensor_shape(m, t, &rank, dim, &numel, d));
		const char *name = text_of(t->name);
		const void *v = x->lookup(x->user, name, numel, &type);
		const float *more = x->merge ? x->merge->delta(x->user, name, rank, dim, numel)
					     : NULL;
		if (more) {
			float *total = NULL;
			TRY(sum(m, t, v, type, more, numel, &total, d));
			x->merge->settle(x->user, name, dim, total);
			v = total;
			type = DT_F32;
		}
		if (v)
			TRY(put_values(m, t, v, type, numel, x->infinite, d));
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

enum status export_onnx(
	const char *model, const char *to, const struct export_values *x, struct diag *d)
{
	struct model m;
	struct arena *a = arena_new();
	enum status st = a ? model_read(a, model, &m, d) : diag_nomem(d);
	if (st == ST_OK)
		st = replace(&m, x, d);
	if (st == ST_OK)
		st = annotate(&m, x->note, d);
	if (st == ST_OK && x->check)
		st = x->check(x->user, d);
	if (st == ST_OK)
		st = model_take_in(&m, NULL, NULL, d);
	if (st == ST_OK)
		st = model_write(&m, to, PROTOBUF_MOST, d);
	arena_free(a);
	return st;
}
