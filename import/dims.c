/* Sizes of the inputs' axes. An axis is fixed in the file, or has a symbolic name (or none) and is
 * bound on the command line: --dim by name, or by input and axis ("x:2"), --batch by place, for it
 * binds the first axis of every data input whatever that is called. One name has one size wherever
 * it stands; "?" and a size below 0 are no name: such an axis has a size of its own. */
#include <inttypes.h>
#include <string.h>

#include "import/import_parts.h"

typedef Onnx__TensorShapeProto__Dimension Dimension;

/* What a symbolic name is bound to. */
struct binding {
	int64_t size;
	bool bound;        /* else seen in the model only */
	const char *input; /* the input whose first axis --batch bound; NULL: --dim did */
	bool in_model;
};

static const char *symbol(const Dimension *dim)
{
	const bool named = dim->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM;
	return named && strcmp(text_of(dim->dim_param), "?") != 0 ? text_of(dim->dim_param) : "";
}

static bool is_fixed(const Dimension *dim)
{
	return dim->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE &&
	       dim->dim_value >= 0;
}

static struct binding *binding_at(struct importer *im, const char *name)
{
	void **at = names_at(&im->dim, name);
	if (at && !*at)
		*at = ARENA_NEW(im->m.arena, struct binding);
	return at ? *at : NULL;
}

static enum status bind_options(struct importer *im)
{
	for (int i = 0; i < im->o->ndim; i++) {
		const struct import_dim *dim = &im->o->dim[i];
		struct binding *b = binding_at(im, dim->name);
		if (!b)
			return diag_nomem(im->d);
		if (b->bound && b->size != dim->size)
			return diag_fail(im->d, ST_USAGE, NULL, NULL,
				"--dim gives '%s' two sizes: %" PRId64 " and %" PRId64, dim->name,
				b->size, dim->size);
		b->size = dim->size;
		b->bound = true;
	}
	return ST_OK;
}

/* "x:2", which --dim may call an axis by. */
static struct binding *binding_of_axis(const struct importer *im, const char *input, int axis)
{
	const char *name = arena_printf(im->m.arena, "%s:%d", input, axis);
	return name && im->o->ndim ? names_get(&im->dim, name) : NULL;
}

/* --dim x:2=N. An axis that has a name gives it that size everywhere. */
static enum status bind_by_place(
	struct importer *im, const char *input, int axis, const Dimension *dim)
{
	const struct where w = {im->m.path, input, "input"};
	struct binding *place = binding_of_axis(im, input, axis);
	if (!place || !place->bound)
		return ST_OK;
	place->in_model = true;
	if (is_fixed(dim) && dim->dim_value != place->size)
		return diag_fail(im->d, ST_USAGE, &w, NULL,
			"axis %d is fixed at %" PRId64 ", but --dim %s:%d says %" PRId64, axis,
			dim->dim_value, input, axis, place->size);
	struct binding *b = *symbol(dim) ? binding_at(im, symbol(dim)) : NULL;
	if (b && b->bound && b->size != place->size)
		return diag_fail(im->d, ST_USAGE, &w, "give one of the two",
			"axis %d is '%s', which is %" PRId64 "; --dim %s:%d makes it %" PRId64,
			axis, symbol(dim), b->size, input, axis, place->size);
	if (b)
		*b = (struct binding){.size = place->size, .bound = true, .in_model = true};
	return ST_OK;
}

static enum status bind_axis(struct importer *im, const char *input, int axis, const Dimension *dim)
{
	int64_t batch = axis == 0 ? im->rows : 0;
	TRY(bind_by_place(im, input, axis, dim));
	if (!*symbol(dim))
		return ST_OK;
	struct binding *b = binding_at(im, symbol(dim));
	if (!b)
		return diag_nomem(im->d);
	b->in_model = true;
	if (!batch)
		return ST_OK;
	if (b->bound && b->size != batch)
		return diag_fail(im->d, ST_USAGE, &(struct where){im->m.path, input, "input"},
			"give one of the two",
			"axis 0 is '%s': --batch makes it %" PRId64 ", --dim %s=%" PRId64,
			symbol(dim), batch, symbol(dim), b->size);
	if (!b->bound)
		*b = (struct binding){
			.size = batch, .bound = true, .input = input, .in_model = true};
	return ST_OK;
}

/* "'N', 'H', 'W'": names of axes, as --dim takes them; NULL: there are none. */
static const char *axes_list(const struct importer *im)
{
	const Onnx__GraphProto *p = im->m.proto->graph;
	struct arena *a = im->m.arena;
	struct names seen = {.arena = a};
	const char *list = NULL;
	for (size_t i = 0; i < p->n_input; i++) {
		const Onnx__TensorShapeProto *shape = input_shape(p->input[i]);
		for (size_t k = 0; shape && k < shape->n_dim && k < RANK_MAX; k++) {
			const char *name = symbol(shape->dim[k]);
			void **at = *name ? names_at(&seen, name) : NULL;
			if (!at || *at)
				continue;
			*at = p->input[i];
			list = list ? arena_printf(a, "%s, '%s'", list, name)
				    : arena_printf(a, "'%s'", name);
		}
	}
	return list;
}

/* Every --dim must name something: a slip of the pen would otherwise go unseen. */
static enum status check_used(struct importer *im)
{
	enum status worst = ST_OK;
	for (int i = 0; i < im->o->ndim; i++) {
		const struct binding *b = names_get(&im->dim, im->o->dim[i].name);
		const char *axes = b->in_model ? NULL : axes_list(im);
		if (!b->in_model)
			worst = diag_fail(im->d, ST_USAGE, &(struct where){.file = im->m.path},
				axes ? arena_printf(im->m.arena,
					       "axes with names are %s; `stint show MODEL.onnx` "
					       "lists the inputs and their axes",
					       axes)
				     : "`stint show MODEL.onnx` lists the inputs and their axes",
				"--dim %s: no input has an axis of that name, or such an axis",
				im->o->dim[i].name);
	}
	return worst;
}

enum status dims_bind(struct importer *im)
{
	const Onnx__GraphProto *p = im->m.proto->graph;
	batch_read(im);
	TRY(bind_options(im));
	for (size_t i = 0; i < p->n_input; i++) {
		const Onnx__ValueInfoProto *v = p->input[i];
		const Onnx__TensorShapeProto *shape = input_shape(v);
		if (!shape || names_get(im->top.tensor, text_of(v->name)))
			continue;
		for (size_t k = 0; k < shape->n_dim && k < RANK_MAX; k++)
			TRY(bind_axis(im, text_of(v->name), (int)k, shape->dim[k]));
	}
	return check_used(im);
}

/* --- One axis --- */

const char *fixed_hint(const struct importer *im, int64_t size)
{
	const int64_t whole = im->o->whole ? im->o->whole : im->o->batch;
	const bool parts = size && whole % size == 0 && whole > size;
	if (!size)
		return "export the model with a dynamic batch axis";
	return arena_printf(im->m.arena,
		parts ? "--micro-batch %" PRId64
			" takes the batch in parts of so many; or export the "
			"model with a dynamic batch axis"
		      : "export the model with a dynamic batch axis; or give --batch %" PRId64
			", or with --micro-batch a multiple of it",
		size);
}

static enum status fixed_size(
	struct importer *im, const struct where *w, int axis, int64_t size, int64_t *out)
{
	if (size > INT32_MAX)
		return diag_fail(im->d, ST_INVALID, w, "sizes go from 0 to 2147483647",
			"axis %d has the size %" PRId64, axis, size);
	if (axis == 0 && im->fixed && size != im->fixed)
		return diag_fail(im->d, ST_INVALID, w, "leave --batch away",
			"axis 0 is fixed at %" PRId64 ", that of '%s' at %" PRId64
			": --batch cannot make both another",
			size, im->batched, im->fixed);
	if (axis == 0 && im->o->batch && size != im->rows)
		return diag_fail(im->d, ST_INVALID, w, fixed_hint(im, size),
			"axis 0 is fixed at %" PRId64 ", but --batch says %" PRId64, size,
			im->o->batch);
	*out = size;
	return ST_OK;
}

static enum status unbound(struct importer *im, const struct where *w, int axis, const char *name)
{
	struct arena *a = im->m.arena;
	const char *option = *name ? arena_printf(a, "--dim %s=N", name)
				   : arena_printf(a, "--dim %s:%d=N", w->node, axis);
	const char *hint = !option ? NULL
			   : axis == 0 && !im->o->batch
				   ? arena_printf(a, "give --batch N or %s", option)
				   : arena_printf(a, "give %s", option);
	return diag_fail(im->d, ST_INVALID, w, hint, "axis %d ('%s') has no fixed size", axis,
		*name ? name : "?");
}

/* What sizes the axis, by name or, of an input, by place; NULL: nothing. */
static const struct binding *binding_for(
	const struct importer *im, const char *input, int axis, const Dimension *dim, bool output)
{
	const struct binding *b = *symbol(dim) ? names_get(&im->dim, symbol(dim)) : NULL;
	return b || output ? b : binding_of_axis(im, input, axis);
}

enum status dims_axes(
	struct importer *im, const Onnx__TensorShapeProto *shape, bool output, struct tensor *t)
{
	bool any = false;
	const char **axis = ARENA_ARRAY(im->m.arena, const char *, t->rank);
	if (!axis)
		return diag_nomem(im->d);
	for (int i = 0; i < t->rank && i < (int)shape->n_dim; i++) {
		const Dimension *dim = shape->dim[i];
		const struct binding *b = binding_for(im, t->name, i, dim, output);
		const bool known = (b && b->bound) || (!output && i == 0 && im->rows);
		if (is_fixed(dim) || known || (output && !*symbol(dim)))
			continue;
		axis[i] = *symbol(dim) ? symbol(dim) : "?";
		any = true;
	}
	im->unbound |= any && !output;
	/* what outputs' other names stand for is known where all that they come from is */
	t->axis = any && (im->unbound || !output) ? axis : NULL;
	return ST_OK;
}

bool dims_known(
	const struct importer *im, const char *input, int axis, const Dimension *dim, int64_t *out)
{
	const struct binding *b = binding_for(im, input, axis, dim, false);
	const bool bound = b && b->bound;
	*out = is_fixed(dim) ? dim->dim_value : bound ? b->size : 0;
	return is_fixed(dim) || bound;
}

static bool is_channels(const Dimension *dim)
{
	return is_fixed(dim) && (dim->dim_value == 1 || dim->dim_value == 3 || dim->dim_value == 4);
}

/* A side of a picture: [N, C, H, W] or [N, H, W, C] of reals, C the channels of one. */
static bool is_side(const Onnx__ValueInfoProto *v, int axis)
{
	const Onnx__TypeProto__Tensor *type = v->type->tensor_type;
	const Onnx__TensorShapeProto *shape = type->shape;
	enum dtype real;
	if (shape->n_dim != 4 || axis == 0 || !element_type(type->elem_type, DT_F32, &real) ||
		!dtype_is_real(real))
		return false;
	const int channels = axis == 1 || !is_channels(shape->dim[1]) ? 3 : 1;
	return axis != channels && is_channels(shape->dim[channels]);
}

/* A size for what has none, under all its names; told once. */
static enum status guess(struct importer *im, const struct where *w, const Onnx__ValueInfoProto *v,
	int axis, int64_t *out)
{
	enum { SIDE = 224, USUAL = 128 };
	const Dimension *dim = input_shape(v)->dim[axis];
	struct arena *a = im->m.arena;
	const char *place = arena_printf(a, "%s:%d", w->node, axis);
	const char *name = *symbol(dim) ? symbol(dim) : place;
	struct binding *b = place ? binding_at(im, name) : NULL;
	const char *hint = arena_printf(a, axis ? "--dim %s=N" : "--batch N, or --dim %s=N", name);
	if (!b || !hint)
		return diag_nomem(im->d);
	*b = (struct binding){.size = !axis              ? 1
				      : is_side(v, axis) ? SIDE
							 : USUAL,
		.bound = true,
		.in_model = true};
	diag_note(im->d, w, hint, "axis %d ('%s') has no fixed size: planned for %" PRId64, axis,
		*symbol(dim) ? symbol(dim) : "?", b->size);
	*out = b->size;
	return ST_OK;
}

enum status dims_size(struct importer *im, const Onnx__ValueInfoProto *v, int axis, int64_t *out)
{
	const char *input = text_of(v->name);
	const Dimension *dim = input_shape(v)->dim[axis];
	const struct where w = {im->m.path, input, "input"};
	if (is_fixed(dim))
		return fixed_size(im, &w, axis, dim->dim_value, out);
	if (dims_known(im, input, axis, dim, out))
		return ST_OK;
	*out = axis == 0 && im->rows ? im->rows : im->o->unbound;
	if (*out)
		return ST_OK;
	return im->o->guess ? guess(im, &w, v, axis, out) : unbound(im, &w, axis, symbol(dim));
}
