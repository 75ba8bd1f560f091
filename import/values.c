/* Initializers and inputs. */
#include <stdlib.h>
#include <string.h>

#include "import/import_parts.h"

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
	const struct decision role = role_of(im, x);
	x->from_model = true;
	x->element = t->data_type;
	x->weight = role.trained || weight_by_origin(im, x);
	x->why = role.why;
	x->drawn = names_get(&im->head, x->name) != NULL;
	if (role.trained)
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

/* --- Inputs that --fix makes known --- */

const struct import_fix *fix_of(const struct import_options *o, const char *name)
{
	for (int i = 0; i < o->nfix; i++)
		if (!strcmp(o->fix[i].name, name))
			return &o->fix[i];
	return NULL;
}

static bool read_numbers(
	struct importer *im, enum dtype type, const char *text, int64_t *n, void **data)
{
	*n = 1;
	for (const char *p = text; *p; p++)
		*n += *p == ',';
	*data = arena_alloc(im->m.arena, (size_t)*n, (size_t)dtype_bytes(type));
	for (int64_t i = 0; *data && i < *n; i++) {
		char *end;
		if (type == DT_I64)
			((int64_t *)*data)[i] = strtoll(text, &end, 10);
		else
			value_set(type, *data, i, strtod(text, &end));
		if (end == text || *end != (i + 1 < *n ? ',' : 0))
			return false;
		text = end + 1;
	}
	return true;
}

/* One number for all elements. */
static void *filled(struct graph *g, enum dtype type, int64_t n, const void *one)
{
	const size_t width = (size_t)dtype_bytes(type);
	char *data = graph_known(g, NULL, n, (int64_t)width);
	for (int64_t i = 0; data && i < n; i++)
		memcpy(data + (size_t)i * width, one, width);
	return data;
}

static enum status fixed_input(struct importer *im, const char *name, enum dtype type,
	const Onnx__TensorShapeProto *shape, const char *text)
{
	int64_t n, product = 1, dim[RANK_MAX];
	void *data;
	int rank = shape ? (int)shape->n_dim : text[strcspn(text, ",")] ? 1 : 0;
	bool ok = read_numbers(im, type, text, &n, &data) && rank <= RANK_MAX;
	if (ok && !data)
		return diag_nomem(im->d);
	for (int i = 0; ok && i < rank; i++) {
		const bool known = shape && dims_known(im, name, i, shape->dim[i], &dim[i]);
		const bool batch = !known && i == 0 && n == 1 && im->rows;
		if (!known)
			dim[i] = batch ? im->rows : n;
		ok = (known || batch || rank == 1) && dim[i] <= INT32_MAX &&
		     size_mul(product, dim[i], &product);
	}
	if (ok && n == 1 && product != 1) {
		data = filled(im->g, type, product, data);
		if (!data)
			return im->g->failed;
		n = product;
	}
	if (!ok || product != n)
		return diag_fail(im->d, ST_USAGE, &(struct where){im->m.path, name, "input"},
			"as many numbers as the input has elements, parted by commas, or one for "
			"all of "
			"them where --batch and --dim say how many there are",
			"--fix %s=%s does not fit it", name, text);
	struct tensor *x = graph_constant(im->g, name, type, rank, dim, data);
	return x ? define(im, name, x) : im->g->failed;
}

static enum status given_input(
	struct importer *im, const char *name, enum dtype type, const struct import_data *data)
{
	if (data->type != type)
		return diag_fail(im->d, ST_USAGE, &(struct where){im->m.path, name, "input"}, NULL,
			"the values given for it are of another type");
	struct tensor *x = graph_constant(im->g, name, type, data->rank, data->dim, data->v);
	return x ? define(im, name, x) : im->g->failed;
}

static enum status import_input(struct importer *im, const Onnx__ValueInfoProto *v)
{
	const char *name = text_of(v->name);
	const struct where w = {im->m.path, name, "input"};
	const Onnx__TensorShapeProto *shape = input_shape(v);
	enum dtype type;
	int64_t dim[RANK_MAX];
	TRY(input_type(im, v, &type));
	const struct import_fix *fix = fix_of(im->o, name);
	if (fix)
		return fix->data ? given_input(im, name, type, fix->data)
				 : fixed_input(im, name, type, shape, fix->values);
	if (!shape)
		return diag_fail(im->d, ST_INVALID, &w, "export the model with input shapes",
			"has no shape");
	if (shape->n_dim > RANK_MAX)
		return diag_fail(im->d, ST_INVALID, &w, "stint handles up to 8 axes",
			"has %zu axes", shape->n_dim);
	enum status worst = ST_OK;
	for (int i = 0; i < (int)shape->n_dim; i++) {
		enum status st = dims_size(im, v, i, &dim[i]);
		worst = st != ST_OK ? st : worst;
	}
	TRY(worst);
	struct tensor *x = graph_tensor(im->g, name, type, (int)shape->n_dim, dim);
	if (!x)
		return im->g->failed;
	x->role = TR_INPUT;
	if (im->o->unbound)
		TRY(dims_axes(im, shape, false, x));
	im->g->input[im->g->ninput++] = x;
	return define(im, name, x);
}

/* A default, says ONNX since its version 4: somebody may mean data by it. */
static void note_both(struct importer *im, const char *name)
{
	if (im->m.proto->ir_version >= 4)
		diag_note(im->d, &(struct where){im->m.path, name, "input"},
			"to give it data, take the initializer out of the file",
			"is an initializer too: the file's values are taken");
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
		if (known && known->from_model) {
			note_both(im, known->name);
			continue; /* files of old versions list initializers among the inputs */
		}
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
			used = name_fits(*patterns, text_of(p->initializer[i]->name));
		if (!used)
			diag_warn(im->d, &(struct where){.file = im->m.path},
				"`stint show MODEL.onnx` lists the parameters",
				"%s '%s' fits no initializer", flag, *patterns);
	}
}

static void check_stops(struct importer *im)
{
	const Onnx__GraphProto *p = im->m.proto->graph;
	for (const char *const *s = im->o->stop_pattern; s && *s; s++) {
		bool used = false;
		for (size_t i = 0; i < p->n_node && !used; i++) {
			const char *label = node_label(im->m.arena, p->node[i], (int)i);
			used = label && name_fits(*s, label);
		}
		if (!used)
			diag_warn(im->d, &(struct where){.file = im->m.path}, NULL,
				"--stop-gradient '%s' fits no node of the model itself", *s);
	}
}

static enum status check_fixed(struct importer *im)
{
	const Onnx__GraphProto *p = im->m.proto->graph;
	for (int i = 0; i < im->o->nfix; i++) {
		bool used = false;
		for (size_t k = 0; k < p->n_input && !used; k++)
			used = !strcmp(text_of(p->input[k]->name), im->o->fix[i].name);
		if (!used)
			return diag_fail(im->d, ST_USAGE, &(struct where){.file = im->m.path},
				"`stint show MODEL.onnx` lists the inputs",
				"--fix: there is no input '%s'", im->o->fix[i].name);
	}
	return ST_OK;
}

enum status import_values(struct importer *im)
{
	const Onnx__GraphProto *p = im->m.proto->graph;
	TRY(no_sparse(im, p));
	TRY(uses_read(im));
	warn_of_folding(im);
	warn_of_smoothing(im);
	TRY(check_fixed(im));
	TRY(padding_check(im));
	for (size_t i = 0; i < p->n_initializer; i++) {
		struct tensor *x;
		TRY(initializer(im, p->initializer[i], &x));
		TRY(define(im, x->name, x));
	}
	absent_tell(im);
	TRY(warn_of_lost(im));
	check_patterns(im, "--train", im->o->train_pattern);
	check_patterns(im, "--freeze", im->o->freeze_pattern);
	check_patterns(im, "--untie", im->o->untie_pattern);
	check_stops(im);
	TRY(dims_bind(im));
	return import_inputs(im);
}
