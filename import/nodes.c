/* Nodes: which operators the file asks for, attributes, and building. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "import/private.h"

typedef Onnx__NodeProto Node;
typedef Onnx__AttributeProto Attribute;

#define KIND(x) ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__##x

static bool own_domain(const Node *n)
{
	const char *domain = text_of(n->domain);
	return !*domain || !strcmp(domain, "ai.onnx");
}

const char *node_label(struct arena *a, const Node *n, int index)
{
	return n->name && *n->name ? n->name : arena_printf(a, "%s_%d", text_of(n->op_type), index);
}

static const char *node_name(struct importer *im, int index)
{
	return node_label(im->m.arena, im->m.proto->graph->node[index], index);
}

static bool is_supported(const struct importer *im, const Node *n)
{
	const char *op = text_of(n->op_type);
	/* records of our own are not for models to use */
	return own_domain(n) && strncmp(op, "stint.", 6) != 0 &&
	       op_find(im->g->table, op, im->g->opset);
}

/* An operator that is missing, in the order of first use. */
struct missing {
	const char *label; /* with its domain, if that is not ONNX's */
	int count, first;
	struct missing *next;
};

static enum status count_missing(struct importer *im, struct missing **list)
{
	const Onnx__GraphProto *p = im->m.proto->graph;
	struct names seen = {.arena = im->m.arena};
	struct missing **tail = list;
	for (int i = 0; i < (int)p->n_node; i++) {
		const Node *n = p->node[i];
		if (is_supported(im, n))
			continue;
		const char *op = text_of(n->op_type);
		const char *label = own_domain(n)
					    ? op
					    : arena_printf(im->m.arena, "%s.%s", n->domain, op);
		void **at = label ? names_at(&seen, label) : NULL;
		if (!at)
			return diag_nomem(im->d);
		struct missing *k = *at;
		if (!k) {
			k = *at = *tail = ARENA_NEW(im->m.arena, struct missing);
			if (!k)
				return diag_nomem(im->d);
			*k = (struct missing){.label = label, .first = i};
			tail = &k->next;
		}
		k->count++;
	}
	return ST_OK;
}

enum status check_operators(struct importer *im)
{
	struct missing *list = NULL;
	int reported = 0;
	TRY(count_missing(im, &list));
	for (const struct missing *k = list; k && reported < REPORT_MAX; k = k->next, reported++) {
		const char *name = node_name(im, k->first);
		if (!name)
			return diag_nomem(im->d);
		diag_fail(im->d, ST_INVALID, &(struct where){im->m.path, name, k->label},
			"docs/reference/operators.md lists what is supported",
			"operator %s is not supported at opset %d; used %d time%s, first here",
			*k->label ? k->label : "''", im->g->opset, k->count,
			k->count == 1 ? "" : "s");
	}
	return reported ? ST_INVALID : ST_OK;
}

/* --- Attributes --- */

static enum status attribute_error(
	struct importer *im, int index, const Attribute *a, const char *what)
{
	const struct where w = {im->m.path, node_name(im, index),
		text_of(im->m.proto->graph->node[index]->op_type)};
	return diag_fail(im->d, ST_INVALID, &w, NULL, "attribute '%s' %s", text_of(a->name), what);
}

static enum status tensor_attribute(
	struct importer *im, const Onnx__TensorProto *t, struct attr *out)
{
	enum dtype type;
	int rank;
	int64_t dim[RANK_MAX];
	const void *data;
	TRY(tensor_values(&im->m, t, im->g->real, &type, &rank, dim, &data, im->d));
	out->kind = ATTR_TENSOR;
	out->t = graph_constant(im->g, text_of(t->name), type, rank, dim, data);
	return out->t ? ST_OK : im->g->failed;
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

/* Old files leave the type away: it follows from the field that is set. */
static int kind_of(const Attribute *a)
{
	if (a->has_type && a->type != KIND(UNDEFINED))
		return (int)a->type;
	return a->has_f      ? KIND(FLOAT)
	       : a->has_i    ? KIND(INT)
	       : a->has_s    ? KIND(STRING)
	       : a->t        ? KIND(TENSOR)
	       : a->g        ? KIND(GRAPH)
	       : a->n_floats ? KIND(FLOATS)
			     : KIND(INTS);
}

static enum status import_attribute(
	struct importer *im, int index, const Attribute *a, struct attr *out)
{
	*out = (struct attr){.name = text_of(a->name)};
	switch (kind_of(a)) {
	case KIND(FLOAT):
		out->kind = ATTR_FLOAT;
		out->f = (double)a->f;
		return ST_OK;
	case KIND(INT):
		out->kind = ATTR_INT;
		out->i = a->i;
		return ST_OK;
	case KIND(STRING):
		if (a->s.len && memchr(a->s.data, 0, a->s.len))
			return attribute_error(im, index, a, "is a text with a zero byte");
		out->kind = ATTR_STRING;
		out->s = arena_strndup(
			im->m.arena, a->s.data ? (const char *)a->s.data : "", a->s.len);
		return out->s ? ST_OK : diag_nomem(im->d);
	case KIND(INTS):
		if (a->n_ints > INT32_MAX)
			return attribute_error(im, index, a, "is too long");
		out->kind = ATTR_INTS;
		out->ints = a->ints;
		out->n = (int)a->n_ints;
		return ST_OK;
	case KIND(FLOATS):
		return a->n_floats > INT32_MAX ? attribute_error(im, index, a, "is too long")
					       : floats_attribute(im, a, out);
	case KIND(TENSOR):
		if (!a->t)
			return attribute_error(im, index, a, "has no tensor");
		return tensor_attribute(im, a->t, out);
	case KIND(GRAPH):
	case KIND(GRAPHS):
		return attribute_error(
			im, index, a, "holds a graph: control flow is not supported");
	default:
		return attribute_error(im, index, a, "is of a kind that is not supported");
	}
}

static enum status import_attributes(struct importer *im, int index, int *n, struct attr **out)
{
	const Node *p = im->m.proto->graph->node[index];
	*n = (int)p->n_attribute;
	*out = ARENA_ARRAY(im->m.arena, struct attr, *n);
	if (!*out)
		return diag_nomem(im->d);
	for (int i = 0; i < *n; i++) {
		if (p->attribute[i]->ref_attr_name && *p->attribute[i]->ref_attr_name)
			return attribute_error(
				im, index, p->attribute[i], "refers to a function's attribute");
		TRY(import_attribute(im, index, p->attribute[i], &(*out)[i]));
	}
	return ST_OK;
}

/* --- Building --- */

static int last_wanted(const Node *p)
{
	int n = (int)p->n_output;
	while (n > 0 && !*text_of(p->output[n - 1]))
		n--;
	return n;
}

static enum status name_outputs(struct importer *im, const Node *p, struct node *n)
{
	bool stop = name_matches(im->o->stop_pattern, n->name);
	for (int k = 0; k < n->nout && k < (int)p->n_output; k++) {
		const char *name = text_of(p->output[k]);
		if (!*name || !n->out[k])
			continue;
		void **at = names_at(&im->tensor, name);
		if (!at)
			return diag_nomem(im->d);
		n->out[k]->name = name;
		*at = n->out[k];
		if (stop && dtype_is_real(n->out[k]->dtype))
			*at = OP1(im->g, op_by_role(im->table, ROLE_STOP)->name, n->out[k]);
	}
	return im->g->failed;
}

enum status import_node(struct importer *im, int index)
{
	const Node *p = im->m.proto->graph->node[index];
	const char *name = node_name(im, index);
	int nattr, nin = (int)p->n_input;
	struct attr *attr;
	struct tensor **in = ARENA_ARRAY(im->m.arena, struct tensor *, nin);
	struct node *n;
	if (!in || !name)
		return diag_nomem(im->d);
	while (nin > 0 && !*text_of(p->input[nin - 1]))
		nin--;
	for (int i = 0; i < nin; i++) {
		const char *input = text_of(p->input[i]);
		in[i] = *input ? names_get(&im->tensor, input) : NULL;
		if (*input && !in[i]) /* an optional output that its maker does not give */
			return diag_fail(im->d, ST_INVALID,
				&(struct where){im->m.path, name, p->op_type}, NULL,
				"reads '%s', an output that stint does not provide", input);
	}
	TRY(import_attributes(im, index, &nattr, &attr));
	TRY(graph_node(
		im->g, text_of(p->op_type), name, nin, in, last_wanted(p), nattr, attr, NULL, &n));
	return name_outputs(im, p, n);
}
