/* Biases that are all zeros, which the dynamo exporter's optimizer takes away (the rules
 * RemoveOptionalBiasFromConv, ...ConvTranspose, ...Gemm): to compute the same nothing is missing,
 * to train a parameter is. The module's signature still has it, and the node's call names it. */
#include <string.h>

#include "import/import_parts.h"

typedef Onnx__NodeProto Node;
typedef Onnx__TensorProto Tensor;

struct biases {
	struct importer *im;
	struct names present; /* initializers by name → Tensor */
	Tensor **added;
	size_t nadded;
	struct text list;
	int n;
};

/* Put back for one node, it is still to be for the module's other calls. */
static bool is_absent(const struct biases *b, const struct module_tensor *t)
{
	return t->kind == ORIGIN_PARAMETER && (t->removed || !names_get(&b->present, t->name));
}

/* What the call names and the file has not, where that is one bias; or one parameter, beside the
 * weight. */
static struct module_tensor *by_call(
	const struct biases *b, const struct call *c, const char *weight)
{
	struct module_tensor *bias = NULL, *any = NULL;
	int nbias = 0, nany = 0;
	bool named = false;
	for (int i = 0; i < c->narg; i++) {
		struct module_tensor *t = c->arg[i];
		named |= !strcmp(t->name, weight);
		if (!is_absent(b, t))
			continue;
		any = t;
		nany++;
		if (strstr(name_leaf(t->name), "bias")) {
			bias = t;
			nbias++;
		}
	}
	return nbias == 1 ? bias : nbias == 0 && nany == 1 && named && c->whole ? any : NULL;
}

/* Whether a module's "fc.bias" stands beside "fc.weight", called `weight` in full; that may be
 * another, equal module's. */
static bool is_beside(const char *bias, const char *weight)
{
	static const char leaf[] = "weight";
	const char *name = name_leaf(bias);
	size_t stem = (size_t)(name - bias), len = strlen(weight), n = stem + strlen(leaf);
	if (strcmp(name, "bias") != 0 || len < n || (len > n && weight[len - n - 1] != '.'))
		return false;
	const char *end = weight + len - n;
	return !strncmp(end, bias, stem) && !strcmp(end + stem, leaf);
}

/* Of the module that the node comes from, or of one in it, a bias that stands beside the weight; or
 * the module's own, where the exporter made the weight anew. */
static struct module_tensor *by_name(const struct biases *b, const Node *n, const char *weight)
{
	const char *scope = node_scope(b->im->m.arena, n);
	const size_t len = scope ? strlen(scope) : 0;
	struct module_tensor *found = NULL;
	for (struct module_tensor *t = b->im->module_first; t; t = t->next) {
		const char *inside = t->name + (len ? len + 1 : 0);
		if (!is_absent(b, t) ||
			(len && (strncmp(t->name, scope, len) != 0 || t->name[len] != '.')))
			continue;
		if (!is_beside(inside, weight) &&
			!(name_generated(weight) && scope && !strcmp(inside, "bias")))
			continue;
		if (found) /* not to be told */
			return NULL;
		found = t;
	}
	return found;
}

int64_t attribute_int(const Node *n, const char *name, int64_t otherwise)
{
	for (size_t i = 0; name && i < n->n_attribute; i++)
		if (!strcmp(text_of(n->attribute[i]->name), name))
			return n->attribute[i]->i;
	return otherwise;
}

int bias_axis(const struct op_bias *bias, const Node *n)
{
	return attribute_int(n, bias->turned, 0) ? 1 - bias->axis : bias->axis;
}

/* 0: not to be told. A file may claim any size: no more than its weight really has. */
static int64_t length_of(
	const struct biases *b, const struct op_bias *bias, const Node *n, const Tensor *weight)
{
	const int axis = bias_axis(bias, n);
	int rank;
	int64_t length, dim[RANK_MAX], numel;
	struct diag quiet = {0};
	const unsigned char *raw;
	const struct model *m = &b->im->m;
	if (tensor_shape(m, weight, &rank, dim, &numel, &quiet) != ST_OK || rank < 2 ||
		dim[axis] < 1 || !size_mul(dim[axis], attribute_int(n, bias->times, 1), &length) ||
		length < 1 || length > numel || !element_width(weight->data_type) ||
		tensor_raw(m, weight, numel, &raw, &quiet) != ST_OK)
		return 0;
	return raw || (int64_t)(weight->n_float_data + weight->n_double_data +
				weight->n_int32_data) >= numel
		       ? length
		       : 0;
}

/* --- Put back --- */

static Tensor *zeros(struct biases *b, const char *name, const Tensor *weight, int64_t length)
{
	struct arena *a = b->im->m.arena;
	const int width = element_width(weight->data_type);
	Tensor *t = ARENA_NEW(a, Tensor);
	int64_t *dim = ARENA_NEW(a, int64_t);
	uint8_t *data = arena_alloc(a, (size_t)length, (size_t)width);
	if (!t || !dim || !data)
		return NULL;
	onnx__tensor_proto__init(t);
	*dim = length;
	t->name = (char *)(uintptr_t)name;
	t->has_data_type = t->has_raw_data = 1;
	t->data_type = weight->data_type;
	t->dims = dim;
	t->n_dims = 1;
	t->raw_data = (ProtobufCBinaryData){(size_t)(length * width), data};
	return t;
}

static enum status put_back(struct biases *b, Node *n, int input, const char *name,
	const Tensor *weight, int64_t length)
{
	void **at = names_at(&b->present, name);
	if (!at)
		return diag_nomem(b->im->d);
	if (!*at) {
		*at = b->added[b->nadded++] = zeros(b, name, weight, length);
		if (!*at)
			return diag_nomem(b->im->d);
	}
	if (((Tensor *)*at)->dims[0] != length) /* one bias of two sizes: not that */
		return ST_OK;
	char **in = ARENA_ARRAY(b->im->m.arena, char *, input + 1);
	if (!in)
		return diag_nomem(b->im->d);
	for (int i = 0; i < input; i++)
		in[i] = i < (int)n->n_input ? n->input[i] : (char *)(uintptr_t) "";
	in[input] = (char *)(uintptr_t)name;
	n->input = in;
	n->n_input = (size_t)input + 1;
	return ST_OK;
}

/* --- The nodes --- */

static enum status look_at(struct biases *b, Node *n)
{
	struct importer *im = b->im;
	const struct op_def *op = record_of(im, n, im->top.opset);
	const int input = op ? op->bias.input : 0;
	if (!input || n->n_input < 2 || ((int)n->n_input > input && *text_of(n->input[input])))
		return ST_OK;
	const Tensor *weight = names_get(&b->present, text_of(n->input[1]));
	const struct call *c = call_of(im, n);
	const int64_t length = weight ? length_of(b, &op->bias, n, weight) : 0;
	struct module_tensor *t = length == 0 ? NULL
				  : c         ? by_call(b, c, weight->name)
					      : by_name(b, n, weight->name);
	if (!t)
		return ST_OK;
	if (!t->removed) {
		if (b->n++ < 8)
			text_add(&b->list, "%s'%s'", b->n > 1 ? ", " : "", t->name);
		t->removed = true;
	}
	return im->o->restore_biases ? put_back(b, n, input, t->name, weight, length) : ST_OK;
}

static void tell(struct biases *b)
{
	const struct where w = {.file = b->im->m.path};
	const char *more = b->n > 8 ? ", ..." : "";
	const char *some = b->n == 1 ? "bias" : "biases";
	if (b->n && !b->list.failed && b->im->o->restore_biases)
		diag_note(b->im->d, &w, NULL,
			"%d %s of zeros, which the exporter took away, %s "
			"back: %s%s",
			b->n, some, b->n == 1 ? "is" : "are", b->list.s, more);
	else if (b->n && !b->list.failed)
		diag_warn(b->im->d, &w,
			"--restore-biases puts them back; or export with optimize=False",
			"%d %s of zeros, which the exporter took away, %s not trained: %s%s", b->n,
			some, b->n == 1 ? "is" : "are", b->list.s, more);
	text_free(&b->list);
}

static enum status append(struct biases *b)
{
	Onnx__GraphProto *g = b->im->m.proto->graph;
	Tensor **all = ARENA_ARRAY(b->im->m.arena, Tensor *, g->n_initializer + b->nadded);
	if (!all)
		return diag_nomem(b->im->d);
	for (size_t i = 0; i < g->n_initializer; i++)
		all[i] = g->initializer[i];
	for (size_t i = 0; i < b->nadded; i++)
		all[g->n_initializer + i] = b->added[i];
	g->initializer = all;
	g->n_initializer += b->nadded;
	return ST_OK;
}

enum status biases_rewrite(struct importer *im)
{
	const Onnx__GraphProto *g = im->m.proto->graph;
	struct biases b = {.im = im, .present = {.arena = im->m.arena}};
	if (!im->module_first)
		return ST_OK;
	b.added = ARENA_ARRAY(im->m.arena, Tensor *, g->n_node);
	if (!b.added)
		return diag_nomem(im->d);
	for (size_t i = 0; i < g->n_initializer; i++) {
		void **at = names_at(&b.present, text_of(g->initializer[i]->name));
		if (!at)
			return diag_nomem(im->d);
		*at = g->initializer[i];
	}
	enum status st = ST_OK;
	for (size_t i = 0; i < g->n_node && st == ST_OK; i++)
		st = look_at(&b, g->node[i]);
	if (st == ST_OK && b.nadded)
		st = append(&b);
	tell(&b);
	return st;
}
