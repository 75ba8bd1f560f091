/* Initializers and inputs. */
#include <fnmatch.h>
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
	void **at = names_at(im->top.tensor, name);
	if (!at)
		return diag_nomem(im->d);
	if (*at || !*name)
		return diag_fail(im->d, ST_INVALID, &(struct where){im->m.path, name, "tensor"},
			"every input and initializer needs a name of its own", "%s",
			*at ? "stands twice among the inputs or initializers"
			    : "an input or initializer has no name");
	*at = t;
	return ST_OK;
}

static enum status initializer(struct importer *im, const Onnx__TensorProto *t, struct tensor **out)
{
	enum dtype type;
	int rank;
	int64_t dim[RANK_MAX];
	const void *data;
	TRY(tensor_values(&im->m, t, im->g->real, &type, &rank, dim, &data, im->d));
	struct tensor *x = *out = graph_constant(im->g, text_of(t->name), type, rank, dim, data);
	if (!x)
		return im->g->failed;
	x->from_model = true;
	if (is_trained(im->o, x))
		x->role = TR_PARAMETER;
	return ST_OK;
}

static enum status no_sparse(struct importer *im, const Onnx__GraphProto *p)
{
	if (!p->n_sparse_initializer)
		return ST_OK;
	const Onnx__TensorProto *values = p->sparse_initializer[0]->values;
	return diag_fail(im->d, ST_INVALID,
		&(struct where){im->m.path, values ? text_of(values->name) : "", "tensor"},
		"export the model with dense weights",
		"is a sparse initializer (one of %zu), which is not supported",
		p->n_sparse_initializer);
}

/* A weight in a body is one tensor however often the body is built. Its name is that of the
 * model's tensors, for weights are read and written by name. */
static enum status inner_initializer(
	struct importer *im, const Onnx__TensorProto *t, struct tensor **out)
{
	void **known = memo_at(&im->constant, t);
	if (!known)
		return diag_nomem(im->d);
	if (!*known) {
		struct tensor *x;
		TRY(initializer(im, t, &x));
		if (x->role == TR_PARAMETER)
			TRY(define(im, x->name, x));
		known = memo_at(&im->constant, t);
		*known = x;
	}
	*out = *known;
	return ST_OK;
}

enum status import_initializers(
	struct importer *im, const struct scope *s, const Onnx__GraphProto *p)
{
	TRY(no_sparse(im, p));
	for (size_t i = 0; i < p->n_initializer; i++) {
		struct value v = {.kind = VALUE_TENSOR};
		TRY(inner_initializer(im, p->initializer[i], &v.tensor));
		TRY(scope_set(im, s, text_of(p->initializer[i]->name), &v));
	}
	return ST_OK;
}

/* --- Inputs --- */

const Onnx__TensorShapeProto *input_shape(const Onnx__ValueInfoProto *v)
{
	const Onnx__TypeProto *type = v->type;
	return type && type->value_case == ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE && type->tensor_type
		       ? type->tensor_type->shape
		       : NULL;
}

static enum status input_type(struct importer *im, const Onnx__ValueInfoProto *v, enum dtype *out)
{
	const struct where w = {im->m.path, text_of(v->name), "input"};
	const Onnx__TypeProto *type = v->type;
	if (!type || type->value_case != ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE || !type->tensor_type)
		return diag_fail(im->d, ST_INVALID, &w,
			"sequences and optional values may be made and used inside the model",
			"is no tensor");
	if (!element_type(type->tensor_type->elem_type, im->g->real, out))
		return diag_fail(im->d, ST_INVALID, &w, NULL,
			"has elements of type %s, which is not supported",
			element_name(type->tensor_type->elem_type));
	return ST_OK;
}

static enum status import_input(struct importer *im, const Onnx__ValueInfoProto *v)
{
	const char *name = text_of(v->name);
	const struct where w = {im->m.path, name, "input"};
	const Onnx__TensorShapeProto *shape = input_shape(v);
	enum dtype type;
	int64_t dim[RANK_MAX];
	TRY(input_type(im, v, &type));
	if (!shape)
		return diag_fail(im->d, ST_INVALID, &w, "export the model with input shapes",
			"has no shape");
	if (shape->n_dim > RANK_MAX)
		return diag_fail(im->d, ST_INVALID, &w, "stint handles up to 8 axes",
			"has %zu axes", shape->n_dim);
	enum status worst = ST_OK;
	for (int i = 0; i < (int)shape->n_dim; i++) {
		enum status st = dims_size(im, name, i, shape->dim[i], &dim[i]);
		worst = st != ST_OK ? st : worst;
	}
	TRY(worst);
	struct tensor *x = graph_tensor(im->g, name, type, (int)shape->n_dim, dim);
	if (!x)
		return im->g->failed;
	x->role = TR_INPUT;
	im->g->input[im->g->ninput++] = x;
	return define(im, name, x);
}

/* All inputs are looked at, so that one run tells every size that is missing. */
static enum status import_inputs(struct importer *im)
{
	const Onnx__GraphProto *p = im->m.proto->graph;
	enum status worst = ST_OK;
	im->g->input = ARENA_ARRAY(im->m.arena, struct tensor *, p->n_input);
	if (!im->g->input)
		return diag_nomem(im->d);
	for (size_t i = 0; i < p->n_input; i++) {
		const struct tensor *known = names_get(im->top.tensor, text_of(p->input[i]->name));
		if (known && known->from_model)
			continue; /* files of old versions list initializers among the inputs */
		enum status st = import_input(im, p->input[i]);
		worst = worst != ST_OK ? worst : st;
		if (im->d->errors > REPORT_MAX)
			break;
	}
	return worst;
}

/* A pattern that fits no initializer is most likely misspelled. */
static void check_patterns(struct importer *im, const char *flag, const char *const *patterns)
{
	const Onnx__GraphProto *p = im->m.proto->graph;
	for (; patterns && *patterns; patterns++) {
		bool used = false;
		for (size_t i = 0; i < p->n_initializer && !used; i++)
			used = fnmatch(*patterns, text_of(p->initializer[i]->name), 0) == 0;
		if (!used)
			diag_warn(im->d, &(struct where){.file = im->m.path},
				"`stint show MODEL.onnx` lists the parameters",
				"%s '%s' fits no initializer", flag, *patterns);
	}
}

enum status import_values(struct importer *im)
{
	const Onnx__GraphProto *p = im->m.proto->graph;
	TRY(no_sparse(im, p));
	for (size_t i = 0; i < p->n_initializer; i++) {
		struct tensor *x;
		TRY(initializer(im, p->initializer[i], &x));
		TRY(define(im, x->name, x));
	}
	check_patterns(im, "--train", im->o->train_pattern);
	check_patterns(im, "--freeze", im->o->freeze_pattern);
	TRY(dims_bind(im));
	return import_inputs(im);
}
