/* How nodes read initializers, those of bodies as well: what names alone do not tell of them. */
#include <string.h>

#include "graph/op_adapter.h"
#include "import/import_parts.h"

typedef Onnx__GraphProto Graph;
typedef Onnx__NodeProto Node;

struct walk {
	struct importer *im;
	const struct names *use; /* name → struct use */
	struct names view;       /* what only changes shape or order → whose numbers it has */
	struct names maker;      /* names → nodes */
};

/* Whether a parameter of module `scope` itself has no initializer: it was folded into another. */
static bool has_lost_parameter(struct importer *im, const char *scope)
{
	size_t n = scope ? strlen(scope) : 0;
	if (!scope)
		return false;
	for (const struct module_tensor *t = im->module_first; t; t = t->next) {
		if (t->kind != ORIGIN_PARAMETER || names_get(&im->use, t->name))
			continue;
		bool inside = n == 0 || (!strncmp(t->name, scope, n) && t->name[n] == '.');
		if (inside && !strchr(t->name + (n ? n + 1 : 0), '.'))
			return true;
	}
	return false;
}

/* The same of the call that a node comes from. */
static bool call_lacks_parameter(struct importer *im, const Node *n)
{
	const struct call *c = call_of(im, n);
	for (int i = 0; c && i < c->narg; i++)
		if (c->arg[i]->kind == ORIGIN_PARAMETER && !names_get(&im->use, c->arg[i]->name))
			return true;
	return false;
}

/* Where node `n` reads an initializer and the file knows modules. */
static void read_in_module(struct importer *im, const Node *n, struct use *u)
{
	u->expected |= has_lost_parameter(im, node_scope(im->m.arena, n)) ||
		       call_lacks_parameter(im, n);
}

/* Whether the name is what a product gives: what is added to it is a bias. */
static bool is_product(const struct walk *w, const char *name)
{
	const Node *n = names_get(&w->maker, name);
	const struct op_def *op = n ? record_of(w->im, n, w->im->top.opset) : NULL;
	return op && op->adapter;
}

/* PyTorch's older exporter keeps a module's names; what it makes itself is called so. */
static bool is_its_own(const Node *n, size_t k)
{
	static const char own[] = "onnx::";
	return k < n->n_input && !strncmp(text_of(n->input[k]), own, sizeof own - 1);
}

/* Where both a convolution's weights and its bias are the older exporter's, it computed them. The
 * newer one keeps their names, and names what a node makes after the call that it stands for: the
 * first of several results is no layer's own, but that of a batch norm behind it. */
static bool is_renamed(const Node *n, const struct op_def *op, size_t k)
{
	static const char *const result[] = {"getitem", NULL};
	if (!op->adapter || (int)k != op->adapter->weight)
		return false;
	return (n->n_output == 1 && name_numbered(text_of(n->output[0]), result)) ||
	       (op_adapter(op) == ADAPTER_CONV && is_its_own(n, k) && is_its_own(n, k + 1));
}

/* Weights alone that are the exporter's, where it need not have turned them: they were computed of
 * others (weight_norm). */
static bool is_computed(const Node *n, const struct op_def *op, size_t k)
{
	const bool as_it_is = op_adapter(op) == ADAPTER_CONV ||
			      (op_adapter(op) == ADAPTER_LINEAR && op->bias.turned);
	return as_it_is && (int)k == op->adapter->weight && is_its_own(n, k) &&
	       !is_its_own(n, k + 1);
}

static void read_input(const struct walk *w, const Node *n, const struct op_def *op, size_t k)
{
	const char *name = text_of(n->input[k]), *whose = names_get(&w->view, name);
	struct use *u = names_get(w->use, whose ? whose : name);
	if (!u)
		return;
	const bool affine = op->role == ROLE_MUL || op->role == ROLE_ADD;
	const char *other = affine && n->n_input == 2 ? text_of(n->input[1 - k]) : "";
	u->weight |= op->weights >> k & 1;
	u->known |= !whose && op->known >> k & 1;
	u->affine |= affine;
	u->table |= op->role == ROLE_LOOKUP && k == 0;
	u->bias |= op->role == ROLE_ADD && is_product(w, other);
	u->renamed |= is_renamed(n, op, k);
	u->computed |= is_computed(n, op, k);
	u->data |= affine && *other && !names_get(&w->maker, other) && !names_get(w->use, other);
	if (w->im->module_first && !u->expected)
		read_in_module(w->im, n, u);
}

/* Of node n's output: it has the numbers of what has a use. */
static enum status follow(struct walk *w, const Node *n, const struct op_def *op)
{
	const bool view = op->role == ROLE_TRANSPOSE || op->role == ROLE_IDENTITY ||
			  op->role == ROLE_CAST || (op->traits & (OP_VIEW | OP_STOP)) == OP_VIEW;
	if (!view || !n->n_input || n->n_output != 1)
		return ST_OK;
	const char *name = text_of(n->input[0]), *whose = names_get(&w->view, name);
	whose = whose ? whose : names_get(w->use, name) ? name : NULL;
	void **at = whose ? names_at(&w->view, text_of(n->output[0])) : NULL;
	if (whose && !at)
		return diag_nomem(w->im->d);
	if (at)
		*at = (void *)(uintptr_t)whose;
	return ST_OK;
}

static enum status walk(struct walk *w, const Graph *g, int depth)
{
	for (size_t i = 0; i < g->n_node; i++) {
		Node *n = g->node[i];
		const struct op_def *op = record_of(w->im, n, w->im->top.opset);
		for (size_t k = 0; k < n->n_output; k++) {
			void **at = names_at(&w->maker, text_of(n->output[k]));
			if (!at)
				return diag_nomem(w->im->d);
			*at = n;
		}
		for (size_t k = 0; op && k < n->n_input && k < 32; k++)
			read_input(w, n, op, k);
		if (op)
			TRY(follow(w, n, op));
		for (size_t k = 0; depth < DEPTH_MAX && k < n->n_attribute; k++)
			if (n->attribute[k]->g)
				TRY(walk(w, n->attribute[k]->g, depth + 1));
	}
	return ST_OK;
}

enum status uses_of(struct importer *im, const struct names *use)
{
	struct walk w = {.im = im,
		.use = use,
		.view = {.arena = im->m.arena},
		.maker = {.arena = im->m.arena}};
	return walk(&w, im->m.proto->graph, 0);
}

enum status uses_read(struct importer *im)
{
	const Graph *g = im->m.proto->graph;
	for (size_t i = 0; i < g->n_initializer; i++) {
		void **at = names_at(&im->use, text_of(g->initializer[i]->name));
		if (at && !*at)
			*at = ARENA_NEW(im->m.arena, struct use);
		if (!at || !*at)
			return diag_nomem(im->d);
	}
	return uses_of(im, &im->use);
}
