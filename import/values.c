/* Initializers and inputs. */
#include <fnmatch.h>
#include <inttypes.h>
#include <string.h>

#include "import/private.h"

static bool matches(const char *const *patterns, const char *name)
{
	for (; patterns && *patterns; patterns++)
		if (fnmatch(*patterns, name, 0) == 0)
			return true;
	return false;
}

static bool is_trained(const struct import_options *o, const struct tensor *t)
{
	return dtype_is_real(t->dtype) && t->rank > 0 &&
	       (!o->train_pattern || matches(o->train_pattern, t->name)) &&
	       !matches(o->freeze_pattern, t->name);
}

static enum status define(struct importer *im, const char *name, struct tensor *t)
{
	void **at = names_at(&im->tensor, name);
	if (!at)
		return diag_nomem(im->d);
	if (*at)
		return diag_fail(im->d, ST_INVALID, &(struct where){im->m.path, name, "tensor"},
			NULL, "stands twice among the initializers or inputs");
	*at = t;
	return ST_OK;
}

static enum status import_initializer(struct importer *im, const Onnx__TensorProto *t)
{
	enum dtype type;
	int rank;
	int64_t dim[RANK_MAX];
	void *data;
	TRY(tensor_values(&im->m, t, im->g->real, &type, &rank, dim, &data, im->d));
	struct tensor *x = graph_constant(im->g, text_of(t->name), type, rank, dim, data);
	if (!x)
		return im->g->failed;
	x->from_model = true;
	if (is_trained(im->o, x))
		x->role = TR_PARAMETER;
	return define(im, x->name, x);
}

/* --- Sizes of the inputs' axes --- */

typedef Onnx__TensorShapeProto__Dimension Dimension;

static int64_t given_size(const struct import_options *o, const char *name)
{
	for (int i = 0; i < o->ndim; i++)
		if (!strcmp(o->dim[i].name, name))
			return o->dim[i].size;
	return 0;
}

static enum status axis_error(struct importer *im, const char *input, int axis, const char *hint,
	const char *what, const char *name)
{
	return diag_fail(im->d, ST_INVALID, &(struct where){im->m.path, input, "tensor"}, hint,
		"axis %d: %s'%s'", axis, what, name);
}

/* The batch axis binds its symbolic name too, for every other input that uses it. */
struct batch_name {
	const char *name, *input;
};

static enum status axis_size(struct importer *im, const char *input, int axis, const Dimension *dim,
	struct batch_name *batch, int64_t *out)
{
	const struct import_options *o = im->o;
	bool fixed = dim->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE;
	const char *name = dim->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM
				   ? text_of(dim->dim_param)
				   : "";
	bool is_batch = axis == 0 && o->batch > 0;
	if (fixed) {
		*out = dim->dim_value;
		if (is_batch && *out != o->batch)
			return diag_fail(im->d, ST_INVALID,
				&(struct where){im->m.path, input, "tensor"},
				"export the model with a dynamic batch axis, or leave --batch away",
				"its first axis is fixed at %" PRId64
				", not the --batch of %" PRId64,
				*out, o->batch);
		return ST_OK;
	}
	int64_t given = *name ? given_size(o, name) : 0;
	if (is_batch && given && given != o->batch)
		return axis_error(im, input, axis, NULL, "--batch and --dim disagree about ", name);
	if (is_batch) {
		if (*name && !batch->name)
			*batch = (struct batch_name){name, input};
		*out = o->batch;
		return ST_OK;
	}
	if (!given && *name && batch->name && !strcmp(batch->name, name))
		given = o->batch;
	if (!given)
		return axis_error(im, input, axis,
			axis == 0 ? "give --batch N (or --dim NAME=N)" : "give --dim NAME=N",
			"its size is not fixed: ", name);
	*out = given;
	return ST_OK;
}

static enum status import_input(
	struct importer *im, const Onnx__ValueInfoProto *v, struct batch_name *batch)
{
	const char *name = text_of(v->name);
	const struct where w = {im->m.path, name, "tensor"};
	const Onnx__TypeProto *type = v->type;
	enum dtype t;
	if (!type || type->value_case != ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE)
		return diag_fail(im->d, ST_INVALID, &w, NULL, "is an input that is no tensor");
	if (!element_type(type->tensor_type->elem_type, im->g->real, &t))
		return diag_fail(im->d, ST_INVALID, &w, NULL,
			"has element type %d, which is not supported",
			type->tensor_type->elem_type);
	const Onnx__TensorShapeProto *shape = type->tensor_type->shape;
	if (!shape)
		return diag_fail(im->d, ST_INVALID, &w, "export the model with input shapes",
			"has no shape");
	if (shape->n_dim > RANK_MAX)
		return diag_fail(im->d, ST_INVALID, &w, "stint handles up to 8 axes",
			"has %zu axes", shape->n_dim);
	int64_t dim[RANK_MAX];
	enum status worst = ST_OK;
	for (int i = 0; i < (int)shape->n_dim; i++) {
		enum status st = axis_size(im, name, i, shape->dim[i], batch, &dim[i]);
		worst = st != ST_OK ? st : worst;
	}
	TRY(worst);
	struct tensor *x = graph_tensor(im->g, name, t, (int)shape->n_dim, dim);
	if (!x)
		return im->g->failed;
	x->role = TR_INPUT;
	im->g->input[im->g->ninput++] = x;
	return define(im, name, x);
}

enum status import_values(struct importer *im)
{
	const Onnx__GraphProto *p = im->m.proto->graph;
	struct batch_name batch = {0};
	enum status worst = ST_OK;
	if (p->n_sparse_initializer)
		return diag_fail(im->d, ST_INVALID, &(struct where){.file = im->m.path}, NULL,
			"sparse initializers are not supported");
	for (size_t i = 0; i < p->n_initializer; i++)
		TRY(import_initializer(im, p->initializer[i]));
	im->g->input = ARENA_ARRAY(im->m.arena, struct tensor *, p->n_input);
	if (!im->g->input)
		return diag_nomem(im->d);
	for (size_t i = 0; i < p->n_input; i++) {
		if (names_get(&im->tensor, text_of(p->input[i]->name)))
			continue; /* files of old versions list initializers among the inputs */
		enum status st = import_input(im, p->input[i], &batch);
		worst = st != ST_OK ? st : worst;
	}
	return worst;
}
