/* Weights written as Constant nodes, as hand-written files may have them: trained only where
 * --train names them; a note tells of them. */
#include <string.h>

#include "import/import_parts.h"

typedef Onnx__NodeProto Node;
typedef Onnx__TensorProto Tensor;

/* The values of a Constant node that could be a weight, or NULL. */
static Tensor *weight_of(const struct importer *im, const Node *n)
{
	const struct op_def *constant = op_by_role(im->table, ROLE_CONSTANT);
	if (!constant || strcmp(text_of(n->op_type), constant->name) != 0 || *domain_of(n) ||
		n->n_output != 1)
		return NULL;
	Tensor *t = n->n_attribute == 1 && !strcmp(text_of(n->attribute[0]->name), "value")
			    ? n->attribute[0]->t
			    : NULL;
	bool real = t && (t->data_type == ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT ||
				 t->data_type == ONNX__TENSOR_PROTO__DATA_TYPE__DOUBLE);
	return real && t->n_dims > 0 ? t : NULL;
}

/* `--train '*'` means all initializers, not the constants of the arithmetic. */
static bool is_asked_for(const struct importer *im, const char *name)
{
	const char *const *p = im->o->train_pattern;
	for (; p && *p; p++)
		if (strcmp(*p, "*") != 0 && name_matches((const char *const[]){*p, NULL}, name))
			return true;
	return name_listed(im->o->train_name, name);
}

static void tell(struct importer *im, const struct names *constant)
{
	const Onnx__GraphProto *g = im->m.proto->graph;
	for (size_t i = 0; i < g->n_node; i++) {
		const Node *n = g->node[i];
		const struct op_def *op = record_of(im, n, im->top.opset);
		for (size_t k = 0; op && k < n->n_input && k < 32; k++) {
			const Tensor *t = names_get(constant, text_of(n->input[k]));
			if (!t || t->n_dims < 2 || !(op->weights >> k & 1))
				continue;
			diag_note(im->d, &(struct where){im->m.path, n->input[k], "constant"},
				"--train NAME trains one; an initializer is trained by itself",
				"stands where weights stand, but Constant nodes are not trained");
			return;
		}
	}
}

enum status constants_rewrite(struct importer *im)
{
	Onnx__GraphProto *g = im->m.proto->graph;
	struct names constant = {.arena = im->m.arena};
	Tensor **all = ARENA_ARRAY(im->m.arena, Tensor *, g->n_initializer + g->n_node + 1);
	size_t ninit = g->n_initializer, nnode = 0;
	if (!all)
		return diag_nomem(im->d);
	for (size_t i = 0; i < ninit; i++)
		all[i] = g->initializer[i];
	for (size_t i = 0; i < g->n_node; i++) {
		Node *n = g->node[i];
		Tensor *t = weight_of(im, n);
		if (t && is_asked_for(im, text_of(n->output[0]))) {
			t->name = n->output[0];
			all[ninit++] = t;
			continue;
		}
		void **at = t ? names_at(&constant, text_of(n->output[0])) : NULL;
		if (t && !at)
			return diag_nomem(im->d);
		if (at)
			*at = t;
		g->node[nnode++] = n;
	}
	g->n_node = nnode;
	g->initializer = all;
	g->n_initializer = ninit;
	tell(im, &constant);
	return ST_OK;
}
