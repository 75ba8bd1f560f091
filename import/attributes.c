/* Attributes of nodes: numbers, texts, tensors, graphs; or what a call of the function around gives
 * or its default says. */
#include <string.h>

#include "import/import_parts.h"

typedef Onnx__AttributeProto Attribute;

#define KIND(x) ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__##x

static enum status attribute_error(
	struct importer *im, const struct where *w, const Attribute *a, const char *what)
{
	return diag_fail(im->d, ST_INVALID, w, NULL, "attribute '%s' %s", text_of(a->name), what);
}

/* Old files leave the type away: it follows from the field that is set. */
static int attribute_kind(const Attribute *a)
{
	if (a->has_type && a->type != KIND(UNDEFINED))
		return (int)a->type;
	return a->has_f              ? KIND(FLOAT)
	       : a->has_i            ? KIND(INT)
	       : a->has_s            ? KIND(STRING)
	       : a->t                ? KIND(TENSOR)
	       : a->g                ? KIND(GRAPH)
	       : a->sparse_tensor    ? KIND(SPARSE_TENSOR)
	       : a->tp               ? KIND(TYPE_PROTO)
	       : a->n_floats         ? KIND(FLOATS)
	       : a->n_strings        ? KIND(STRINGS)
	       : a->n_tensors        ? KIND(TENSORS)
	       : a->n_graphs         ? KIND(GRAPHS)
	       : a->n_sparse_tensors ? KIND(SPARSE_TENSORS)
	       : a->n_type_protos    ? KIND(TYPE_PROTOS)
				     : KIND(INTS);
}

static enum status make_tensor(struct importer *im, const Onnx__TensorProto *t, struct tensor **out)
{
	enum dtype type;
	int rank;
	int64_t dim[RANK_MAX];
	const void *data;
	TRY(tensor_values(&im->m, t, im->g->real, &type, &rank, dim, &data, im->d));
	*out = graph_constant(im->g, text_of(t->name), type, rank, dim, data);
	if (*out)
		(*out)->element = t->data_type;
	return *out ? ST_OK : im->g->failed;
}

/* Inside functions and bodies the same message may be asked for many times. */
static enum status tensor_attribute(
	struct importer *im, const Onnx__TensorProto *t, struct attr *out)
{
	out->kind = ATTR_TENSOR;
	if (!im->depth)
		return make_tensor(im, t, &out->t);
	void **known = memo_at(&im->constant, t);
	if (!known)
		return diag_nomem(im->d);
	if (!*known) {
		TRY(make_tensor(im, t, &out->t));
		*known = out->t;
	}
	out->t = *known;
	return ST_OK;
}

static enum status floats_attribute(struct importer *im, const Attribute *a, struct attr *out)
{
	double *v = ARENA_ARRAY(im->m.arena, double, a->n_floats);
	if (!v)
		return diag_nomem(im->d);
	for (size_t i = 0; i < a->n_floats; i++)
		v[i] = (double)a->floats[i];
	out->kind = ATTR_FLOATS;
	out->floats = v;
	out->n = (int)a->n_floats;
	return ST_OK;
}

static enum status text(struct importer *im, const struct where *w, const Attribute *a,
	const ProtobufCBinaryData *s, const char **out)
{
	if (s->len && memchr(s->data, 0, s->len))
		return attribute_error(im, w, a, "is a text with a zero byte");
	*out = arena_strndup(im->m.arena, s->data ? (const char *)s->data : "", s->len);
	return *out ? ST_OK : diag_nomem(im->d);
}

static enum status strings_attribute(
	struct importer *im, const struct where *w, const Attribute *a, struct attr *out)
{
	const char **v = ARENA_ARRAY(im->m.arena, const char *, a->n_strings);
	if (!v)
		return diag_nomem(im->d);
	for (size_t i = 0; i < a->n_strings; i++)
		TRY(text(im, w, a, &a->strings[i], &v[i]));
	out->kind = ATTR_STRINGS;
	out->strings = v;
	out->n = (int)a->n_strings;
	return ST_OK;
}

static enum status list_attribute(
	struct importer *im, const struct where *w, const Attribute *a, struct attr *out)
{
	if (a->n_ints > INT32_MAX || a->n_floats > INT32_MAX || a->n_strings > INT32_MAX)
		return attribute_error(im, w, a, "is too long");
	switch (attribute_kind(a)) {
	case KIND(FLOATS):
		return floats_attribute(im, a, out);
	case KIND(STRINGS):
		return strings_attribute(im, w, a, out);
	default:
		out->kind = ATTR_INTS;
		out->ints = a->ints;
		out->n = (int)a->n_ints;
		return ST_OK;
	}
}

static enum status graph_attribute(struct importer *im, const struct scope *s,
	const struct where *w, const Attribute *a, bool bodies, struct attr *out)
{
	if (!a->g)
		return attribute_error(im, w, a, "has no graph");
	if (!bodies)
		return attribute_error(
			im, w, a, "holds a graph, which this operator does not take");
	out->kind = ATTR_BODY;
	return block_body(im, s, a, &out->body);
}

static enum status own_attribute(struct importer *im, const struct scope *s, const struct where *w,
	const Attribute *a, bool bodies, struct attr *out)
{
	*out = (struct attr){.name = text_of(a->name)};
	switch (attribute_kind(a)) {
	case KIND(FLOAT):
		out->kind = ATTR_FLOAT;
		out->f = (double)a->f;
		return ST_OK;
	case KIND(INT):
		out->kind = ATTR_INT;
		out->i = a->i;
		return ST_OK;
	case KIND(STRING):
		out->kind = ATTR_STRING;
		return text(im, w, a, &a->s, &out->s);
	case KIND(INTS):
	case KIND(FLOATS):
	case KIND(STRINGS):
		return list_attribute(im, w, a, out);
	case KIND(TENSOR):
		if (!a->t)
			return attribute_error(im, w, a, "has no tensor");
		return tensor_attribute(im, a->t, out);
	case KIND(GRAPH):
		return graph_attribute(im, s, w, a, bodies, out);
	case KIND(TYPE_PROTO):
	case KIND(TYPE_PROTOS):
		*out = (struct attr){out->name, .kind = ATTR_OTHER, .s = "a type"};
		return ST_OK;
	case KIND(SPARSE_TENSOR):
	case KIND(SPARSE_TENSORS):
		return attribute_error(im, w, a, "holds a sparse tensor, which is not supported");
	default:
		return attribute_error(im, w, a, "is of a kind that is not supported");
	}
}

/* --- Attributes of the function around --- */

static bool declares(const struct function *f, const char *name)
{
	for (size_t i = 0; i < f->proto->n_attribute; i++)
		if (!strcmp(f->proto->attribute[i], name))
			return true;
	return false;
}

static enum status refer(struct importer *im, const struct scope *s, const struct where *w,
	const Attribute *a, bool bodies, bool *absent, struct attr *out)
{
	if (!s->function)
		return attribute_error(
			im, w, a, "refers to a function's attribute, but stands in none");
	const char *name = a->ref_attr_name;
	for (int i = 0; i < s->nattr; i++)
		if (!strcmp(s->attr[i].name, name)) {
			*out = s->attr[i];
			out->name = text_of(a->name);
			return out->kind != ATTR_BODY || bodies
				       ? ST_OK
				       : attribute_error(im, w, a,
						 "holds a graph, which this operator does not "
						 "take");
		}
	for (int i = 0; i < s->function->ndefault; i++)
		if (!strcmp(text_of(s->function->deflt[i]->name), name)) {
			TRY(own_attribute(im, s, w, s->function->deflt[i], bodies, out));
			out->name = text_of(a->name);
			return ST_OK;
		}
	*absent = true;
	return declares(s->function, name)
		       ? ST_OK
		       : attribute_error(im, w, a,
				 "refers to an attribute that its function does not have");
}

enum status import_attributes(struct importer *im, const struct scope *s, const char *node,
	const Onnx__NodeProto *p, bool bodies, int *n, struct attr *out)
{
	const struct where w = {im->m.path, node, text_of(p->op_type)};
	*n = 0;
	for (size_t i = 0; i < p->n_attribute; i++) {
		const Attribute *a = p->attribute[i];
		bool absent = false;
		if (*text_of(a->ref_attr_name))
			TRY(refer(im, s, &w, a, bodies, &absent, &out[*n]));
		else
			TRY(own_attribute(im, s, &w, a, bodies, &out[*n]));
		*n += !absent;
	}
	return ST_OK;
}
