/* Weights that are no initializers of the model: in Constant nodes, as Paddle, tf2onnx and tools of
 * ONNX Runtime's write them, and in the bodies of If and Loop. They become initializers of the
 * model, so that whatever is done with those is done with them.
 *
 * Of Constant nodes not all are weights: one has to stand where weights stand, or beside them as
 * scales and biases do; roles.c has more to say of those. PyTorch's exporter writes values that a
 * forward pass makes as Constant nodes and parameters as initializers. */
#include <stdint.h>
#include <string.h>

#include "import/ties.h"

typedef Onnx__GraphProto Graph;

/* What may be a weight. */
struct spelled {
	Tensor *t;
	Node *node; /* NULL: an initializer of a body */
	char **name;
	Graph *graph;
	const char *body; /* the attribute that it stands in; NULL: none */
	struct spelled *next;
};

struct spelling {
	struct importer *im;
	const struct op_def *constant;
	struct names taken; /* all names → how often they are given */
	struct names use;   /* of what may be a weight, and of initializers → struct use */
	struct memo gone;   /* nodes and tensors that are initializers of the model now */
	struct spelled *first, **end;
	size_t n;
	bool weights; /* an initializer stands where weights stand */
};

/* A list of numbers as a tensor; NULL: no memory. */
static Tensor *tensor_of_list(const struct importer *im, Onnx__AttributeProto *a)
{
	Tensor *t = ARENA_NEW(im->m.arena, Tensor);
	int64_t *dim = ARENA_NEW(im->m.arena, int64_t);
	if (!t || !dim)
		return NULL;
	onnx__tensor_proto__init(t);
	*dim = (int64_t)a->n_floats;
	t->has_data_type = 1;
	t->data_type = ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT;
	t->dims = dim;
	t->n_dims = 1;
	t->float_data = a->floats;
	t->n_float_data = a->n_floats;
	return t;
}

/* The values of a Constant node that could be a weight, or NULL. */
static Tensor *value_of(const struct spelling *s, const Node *n)
{
	if (!s->constant || strcmp(text_of(n->op_type), s->constant->name) != 0 || *domain_of(n) ||
		n->n_output != 1 || n->n_attribute != 1)
		return NULL;
	Onnx__AttributeProto *a = n->attribute[0];
	Tensor *t = !strcmp(text_of(a->name), "value") ? a->t
		    : !strcmp(text_of(a->name), "value_floats") && a->n_floats
			    ? tensor_of_list(s->im, a)
			    : NULL;
	return t && t->n_dims > 0 && tensor_is_real(t) ? t : NULL;
}

/* --- All that may be --- */

static enum status take_name(struct spelling *s, const char *name)
{
	void **at = *name ? names_at(&s->taken, name) : NULL;
	if (*name && !at)
		return diag_nomem(s->im->d);
	if (at)
		*at = (void *)((uintptr_t)*at + 1);
	return ST_OK;
}

static enum status add(
	struct spelling *s, Tensor *t, Node *n, char **name, Graph *g, const char *body)
{
	struct spelled *one = ARENA_NEW(s->im->m.arena, struct spelled);
	if (!one)
		return diag_nomem(s->im->d);
	*one = (struct spelled){.t = t, .node = n, .name = name, .graph = g, .body = body};
	*s->end = one;
	s->end = &one->next;
	s->n++;
	return ST_OK;
}

static enum status collect(struct spelling *s, Graph *g, const char *body, int depth)
{
	for (size_t i = 0; i < g->n_input; i++)
		if (body) /* those of old files are initializers, too */
			TRY(take_name(s, text_of(g->input[i]->name)));
	for (size_t i = 0; i < g->n_initializer; i++) {
		Tensor *t = g->initializer[i];
		TRY(take_name(s, text_of(t->name)));
		if (body && t->n_dims > 0 && tensor_is_real(t) && *text_of(t->name))
			TRY(add(s, t, NULL, &t->name, g, body));
	}
	for (size_t i = 0; i < g->n_node; i++) {
		Node *n = g->node[i];
		Tensor *t = value_of(s, n);
		for (size_t k = 0; k < n->n_output; k++)
			TRY(take_name(s, text_of(n->output[k])));
		if (t && *text_of(n->output[0]))
			TRY(add(s, t, n, &n->output[0], g, body));
		for (size_t k = 0; depth < DEPTH_MAX && k < n->n_attribute; k++)
			if (n->attribute[k]->g)
				TRY(collect(s, n->attribute[k]->g, text_of(n->attribute[k]->name),
					depth + 1));
	}
	return ST_OK;
}

/* --- One name for one tensor --- */

static void rename_reads(Graph *g, const char *from, char *to, int depth)
{
	for (size_t i = 0; i < g->n_output; i++)
		if (!strcmp(text_of(g->output[i]->name), from))
			g->output[i]->name = to;
	for (size_t i = 0; i < g->n_node; i++) {
		Node *n = g->node[i];
		for (size_t k = 0; k < n->n_input; k++)
			if (!strcmp(text_of(n->input[k]), from))
				n->input[k] = to;
		for (size_t k = 0; depth < DEPTH_MAX && k < n->n_attribute; k++)
			if (n->attribute[k]->g)
				rename_reads(n->attribute[k]->g, from, to, depth + 1);
	}
}

/* Bodies beside each other may use the same names. */
static enum status part_names(struct spelling *s)
{
	for (struct spelled *x = s->first; x; x = x->next) {
		const char *name = text_of(*x->name);
		char *own = NULL;
		if (!x->body || (uintptr_t)names_get(&s->taken, name) < 2)
			continue;
		for (int i = 1; !own || names_get(&s->taken, own); i++) {
			own = i == 1 ? arena_printf(s->im->m.arena, "%s@%s", name, x->body)
				     : arena_printf(s->im->m.arena, "%s@%s.%d", name, x->body, i);
			if (!own)
				return diag_nomem(s->im->d);
		}
		TRY(take_name(s, own));
		rename_reads(x->graph, name, own, 0);
		*x->name = own;
	}
	return ST_OK;
}

/* --- Which of them are --- */

static enum status add_use(struct spelling *s, const char *name)
{
	void **at = names_at(&s->use, name);
	if (at && !*at)
		*at = ARENA_NEW(s->im->m.arena, struct use);
	return at && *at ? ST_OK : diag_nomem(s->im->d);
}

static enum status read_uses(struct spelling *s)
{
	const Graph *g = s->im->m.proto->graph;
	for (size_t i = 0; i < g->n_initializer; i++)
		TRY(add_use(s, text_of(g->initializer[i]->name)));
	for (const struct spelled *x = s->first; x; x = x->next)
		TRY(add_use(s, *x->name));
	TRY(uses_of(s->im, &s->use));
	for (size_t i = 0; i < g->n_initializer; i++) {
		const struct use *u = names_get(&s->use, text_of(g->initializer[i]->name));
		s->weights |= u->weight;
	}
	return ST_OK;
}

/* `--train '*'` means all initializers and weights, not the constants of the arithmetic. */
static bool is_asked_for(const struct importer *im, const char *name)
{
	const char *const *p = im->o->train_pattern;
	for (; p && *p; p++)
		if (strcmp(*p, "*") != 0 && name_matches((const char *const[]){*p, NULL}, name))
			return true;
	return name_listed(im->o->train_name, name);
}

static bool is_given_out(const Graph *g, const char *name)
{
	for (size_t i = 0; i < g->n_output; i++)
		if (!strcmp(text_of(g->output[i]->name), name))
			return true;
	return false;
}

/* A value that PyTorch's forward pass makes, in a file that has parameters. */
static bool is_exporters(const struct spelling *s, const struct spelled *x)
{
	const struct importer *im = s->im;
	return x->node && s->weights && name_generated(*x->name) &&
	       !strcmp(text_of(im->m.proto->producer_name), "pytorch");
}

static bool is_weight(const struct spelling *s, const struct spelled *x)
{
	const char *name = *x->name;
	const struct use *u = names_get(&s->use, name);
	int64_t numel = 1;
	for (size_t i = 0; i < x->t->n_dims; i++)
		numel *= x->t->dims[i] > 1 || x->t->dims[i] < 0 ? 2 : x->t->dims[i];
	if (numel == 0 || (x->body && is_given_out(x->graph, name)))
		return false;
	if (is_asked_for(s->im, name))
		return true;
	if (u->known || is_exporters(s, x))
		return false;
	if (!x->node && !s->im->module_first && !name_generated(name))
		return true;
	if (u->weight || u->table)
		return true;
	return numel == 1 ? u->bias : u->affine && !u->data;
}

/* --- They become initializers --- */

static enum status move(struct spelling *s, struct spelled *x, Tensor **to)
{
	struct importer *im = s->im;
	void **gone = memo_at(&s->gone, x->node ? (const void *)x->node : (const void *)x->t);
	void **at = x->node ? names_at(&im->spelled, *x->name) : NULL;
	if (!gone || (x->node && !at))
		return diag_nomem(im->d);
	x->t->name = *x->name;
	*gone = *to = x->t;
	if (at)
		*at = x->t;
	return ST_OK;
}

static void take_out(struct spelling *s, Graph *g, int depth)
{
	size_t n = 0;
	for (size_t i = 0; i < g->n_initializer; i++)
		if (!memo_get(&s->gone, g->initializer[i]))
			g->initializer[n++] = g->initializer[i];
	g->n_initializer = n;
	n = 0;
	for (size_t i = 0; i < g->n_node; i++) {
		Node *x = g->node[i];
		if (memo_get(&s->gone, x))
			continue;
		g->node[n++] = x;
		for (size_t k = 0; depth < DEPTH_MAX && k < x->n_attribute; k++)
			if (x->attribute[k]->g)
				take_out(s, x->attribute[k]->g, depth + 1);
	}
	g->n_node = n;
}

/* Once: a deep model has many of them. */
static void tell(struct spelling *s)
{
	for (const struct spelled *x = s->first; x; x = x->next) {
		const struct use *u = names_get(&s->use, *x->name);
		if (!x->node || memo_get(&s->gone, x->node) || x->t->n_dims < 2 || !u->weight)
			continue;
		diag_note(s->im->d, &(struct where){s->im->m.path, *x->name, "constant"},
			"--train NAME trains one; an initializer is trained by itself",
			"stands where weights stand, but is a Constant node of a model whose "
			"weights are initializers: not trained");
		return;
	}
}

enum status constants_rewrite(struct importer *im)
{
	struct arena *a = im->m.arena;
	Graph *g = im->m.proto->graph;
	struct spelling s = {.im = im,
		.constant = op_by_role(im->table, ROLE_CONSTANT),
		.taken = {.arena = a},
		.use = {.arena = a},
		.gone = {.arena = a}};
	s.end = &s.first;
	im->spelled.arena = a;
	TRY(collect(&s, g, NULL, 0));
	if (!s.first)
		return ST_OK;
	TRY(part_names(&s));
	TRY(read_uses(&s));
	size_t n = g->n_initializer;
	Tensor **all = ARENA_ARRAY(a, Tensor *, n + s.n);
	if (!all)
		return diag_nomem(im->d);
	if (n)
		memcpy(all, g->initializer, n * sizeof *all);
	for (struct spelled *x = s.first; x; x = x->next)
		if (is_weight(&s, x))
			TRY(move(&s, x, &all[n++]));
	take_out(&s, g, 0);
	g->initializer = all;
	g->n_initializer = n;
	tell(&s);
	return ST_OK;
}
