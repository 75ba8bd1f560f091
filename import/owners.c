/* Whose tensor stands where: of the initializers that an exporter has merged, which of the module's
 * each input of a node means.
 *
 * The calls that a dynamo file notes name it. Without them there are the modules that nodes come
 * from: a module reads what is its own, or, as nn.MultiheadAttention does, of a module in it. */
#include <string.h>

#include "import/ties.h"

/* --- Aliases --- */

static bool is_output(const Onnx__GraphProto *g, const char *name)
{
	for (size_t i = 0; i < g->n_output; i++)
		if (!strcmp(text_of(g->output[i]->name), name))
			return true;
	return false;
}

static bool is_alias(const struct ties *s, const Node *n)
{
	const struct op_def *identity = op_by_role(s->im->table, ROLE_IDENTITY);
	return identity && !strcmp(text_of(n->op_type), identity->name) && n->n_output == 1 &&
	       !is_output(s->graph, text_of(n->output[0]));
}

bool reader_is_alias(const struct ties *s, const struct reader *r)
{
	return is_alias(s, r->node);
}

/* --- By calls --- */

static bool is_lost(const struct ties *s, const struct module_tensor *t)
{
	return t->kind != ORIGIN_CONSTANT && !t->removed && !names_get(&s->item, t->name);
}

static bool mentions(const struct call *c, const struct module_tensor *t)
{
	for (int i = 0; i < c->narg; i++)
		if (c->arg[i] == t)
			return true;
	return false;
}

/* One axis holds all elements. */
static bool is_by_channel(const Tensor *t)
{
	int longer = 0;
	for (size_t i = 0; i < t->n_dims; i++)
		longer += t->dims[i] > 1;
	return t->n_dims >= 2 && longer == 1;
}

/* Where a parameter can stand in a new form, under a name that the exporter made. */
static bool is_weighty(const struct ties *s, const struct item *x, const struct reader *r)
{
	const struct op_def *op = record_of(s->im, r->node, s->im->top.opset);
	if (!op || !tensor_is_real(x->t))
		return false;
	return (r->input < 32 && op->weights >> r->input & 1) ||
	       ((op->role == ROLE_MUL || op->role == ROLE_ADD) && is_by_channel(x->t));
}

/* One call: what it reads that is not called as it says, and what it names that is not there. */
struct puzzle {
	int nread, nlost, narg;
	struct reader **read;
	struct module_tensor **lost, **arg;
};

/* As many reads as arguments, and none that is there out of its place: in order. */
static bool all_in_order(const struct ties *s, const struct call *c, const struct puzzle *p)
{
	int n = 0;
	for (struct reader *r = c->first; r; r = r->in_call, n++)
		if (n == p->narg || (r->reads != p->arg[n] && !is_lost(s, p->arg[n])))
			return false;
	if (n != p->narg)
		return false;
	n = 0;
	for (struct reader *r = c->first; r; r = r->in_call)
		r->means = p->arg[n++];
	return true;
}

static int same_leaf(const struct puzzle *p, const struct reader *r)
{
	int found = -1;
	for (int i = 0; r->reads && i < p->nlost; i++)
		if (!strcmp(name_leaf(p->lost[i]->name), name_leaf(r->reads->name)))
			found = found < 0 ? i : -2;
	return found;
}

/* A weight that was merged with another layer's weight, a bias with a bias. */
static bool all_by_leaf(const struct puzzle *p)
{
	for (int i = 0; i < p->nread; i++) {
		int at = same_leaf(p, p->read[i]);
		if (at < 0)
			return false;
		for (int k = 0; k < i; k++)
			if (same_leaf(p, p->read[k]) == at && p->read[k]->node == p->read[i]->node)
				return false;
	}
	for (int i = 0; i < p->nread; i++)
		p->read[i]->means = p->lost[same_leaf(p, p->read[i])];
	return true;
}

static void solve(const struct ties *s, const struct call *c, const struct puzzle *p)
{
	if (p->nlost == 0) {
		for (int i = 0; i < p->nread; i++)
			p->read[i]->nobody = true;
		return;
	}
	if ((p->nread > 0 && all_by_leaf(p)) || all_in_order(s, c, p) || p->nread == 0)
		return;
	for (int i = 0; i < p->nread; i++) {
		int leaf = same_leaf(p, p->read[i]);
		if (p->nread == p->nlost)
			p->read[i]->means = p->lost[i];
		else if (leaf >= 0 || p->nlost == 1)
			p->read[i]->means = p->lost[leaf >= 0 ? leaf : 0];
	}
}

static enum status resolve(struct ties *s, struct call *c)
{
	struct arena *a = s->im->m.arena;
	struct puzzle p = {0};
	int most = 0;
	c->resolved = true;
	for (struct reader *r = c->first; r; r = r->in_call)
		most++;
	p.read = ARENA_ARRAY(a, struct reader *, most);
	p.lost = ARENA_ARRAY(a, struct module_tensor *, c->narg);
	p.arg = ARENA_ARRAY(a, struct module_tensor *, c->narg);
	if (!p.read || !p.lost || !p.arg)
		return diag_nomem(s->im->d);
	for (struct reader *r = c->first; r; r = r->in_call)
		if (r->reads && mentions(c, r->reads))
			r->means = r->reads;
		else
			p.read[p.nread++] = r;
	for (int i = 0; i < c->narg; i++) {
		if (c->arg[i]->kind != ORIGIN_CONSTANT && !c->arg[i]->removed)
			p.arg[p.narg++] = c->arg[i];
		if (is_lost(s, c->arg[i]))
			p.lost[p.nlost++] = c->arg[i];
	}
	solve(s, c, &p);
	return ST_OK;
}

void owners_add(struct ties *s, struct item *x, struct reader *r)
{
	struct call *c = call_of(s->im, r->node);
	if (!s->im->module_first)
		return;
	r->reads = names_get(&s->im->module, text_of(x->t->name));
	if (!c || !c->whole || x->t->n_dims == 0 || (!r->reads && !is_weighty(s, x, r)))
		return;
	r->call = c;
	if (!c->first)
		c->end = &c->first;
	*c->end = r;
	c->end = &r->in_call;
}

/* Who reads aliases of initializers, in files without notes. */
static enum status alias_readers(struct ties *s)
{
	const Onnx__GraphProto *g = s->graph;
	s->reading.arena = s->im->m.arena;
	for (size_t i = 0; !s->im->module_first && i < g->n_node; i++) {
		const Node *n = g->node[i];
		if (!n->n_input || !names_get(&s->item, text_of(n->input[0])) || !is_alias(s, n))
			continue;
		void **at = names_at(&s->reading, text_of(n->output[0]));
		if (!at)
			return diag_nomem(s->im->d);
		*at = g->node[i]; /* nobody yet */
	}
	for (size_t i = 0; s->reading.n && i < g->n_node; i++)
		for (size_t k = 0; k < g->node[i]->n_input; k++) {
			const Node *known = names_get(&s->reading, text_of(g->node[i]->input[k]));
			if (known && is_alias(s, known) && !is_alias(s, g->node[i]))
				*names_at(&s->reading, text_of(g->node[i]->input[k])) = g->node[i];
		}
	return ST_OK;
}

enum status owners_read(struct ties *s)
{
	const Onnx__GraphProto *g = s->graph;
	TRY(alias_readers(s));
	for (size_t i = 0; i < g->n_node; i++) {
		struct call *c = call_of(s->im, g->node[i]);
		if (c && !c->resolved)
			TRY(resolve(s, c));
	}
	return ST_OK;
}

/* --- By modules --- */

/* Whether `name` stands directly in module `scope`. */
static bool stands_in(const char *name, const char *scope)
{
	size_t n = strlen(scope);
	if (n && (strncmp(name, scope, n) != 0 || name[n] != '.'))
		return false;
	return !strchr(name + (n ? n + 1 : 0), '.');
}

/* What stands at reader r's input, whose node is of module `scope`: the module's tensors that have
 * lost their initializer belong, in order, to the node's inputs that read another module's.
 * (Buffers come last, and not all of them are in the graph.) NULL when the numbers do not fit. */
static const char *lost_name(const struct ties *s, const struct reader *r, const char *scope)
{
	const struct importer *im = s->im;
	int before = 0, foreign = 0, lost = 0, parameters = 0;
	const char *found = NULL;
	for (size_t k = 0; k < r->node->n_input; k++) {
		const char *name = text_of(r->node->input[k]);
		bool is_foreign = names_get(&s->item, name) && !stands_in(name, scope);
		before += is_foreign && k < r->input;
		foreign += is_foreign;
	}
	for (const struct module_tensor *t = im->module_first; t; t = t->next)
		if (is_lost(s, t) && stands_in(t->name, scope)) {
			if (lost == before)
				found = t->name;
			lost++;
			parameters += t->kind == ORIGIN_PARAMETER;
		}
	return parameters <= foreign && foreign <= lost ? found : NULL;
}

/* "layers.0.fc", "layers.11.fc": the layers of a stack, made as copies of one. */
static bool differ_in_number(const char *a, const char *b)
{
	bool differ = false;
	while (*a || *b) {
		size_t n = strspn(a, "0123456789"), m = strspn(b, "0123456789");
		if ((n == 0) != (m == 0))
			return false;
		differ |= n != m || strncmp(a, b, n) != 0;
		a += n;
		b += m;
		if (*a != *b)
			return false;
		a += *a != 0;
		b += *b != 0;
	}
	return differ;
}

/* "/a/fc_1/MatMul" beside "/a/fc/MatMul": what the older exporter calls a layer that is called
 * again, where layers of a stack are "/a.0/fc/MatMul" and "/a.1/fc/MatMul". */
static bool is_called_again(const struct ties *s, const struct item *x, const struct reader *r)
{
	const char *name = text_of(x->t->name), *other = text_of(r->node->output[0]);
	const struct reader *own = x->first;
	const Node *n = names_get(&s->reading, other);
	while (own && reader_is_alias(s, own))
		own = own->next;
	if (!own || !n || !name_generated(name) || !name_generated(other))
		return false;
	const char *first = text_of(own->node->name), *again = text_of(n->name);
	const char *leaf = strrchr(first, '/'), *other_leaf = strrchr(again, '/');
	return leaf && other_leaf && !strcmp(leaf, other_leaf) && !differ_in_number(first, again);
}

/* --- By names of nodes: "/layers.0/norm/Mul" --- */

/* The module's part of a node's name; 0: it says none. */
static size_t path_length(const Node *n)
{
	const char *name = text_of(n->name), *leaf = *name == '/' ? strrchr(name, '/') : NULL;
	return leaf ? (size_t)(leaf - name) : 0;
}

/* "/norm_1" and "/norm", or the same: a module that is called again. */
static bool is_same_module(const char *a, size_t na, const char *b, size_t nb)
{
	const char *ea = a + na, *eb = b + nb;
	while (a < ea && b < eb) {
		const size_t n = strcspn(a, "_/"), m = strcspn(b, "_/");
		if (n != m || strncmp(a, b, n) != 0)
			return false;
		a += n;
		b += m;
		for (int k = 0; k < 2; k++) { /* of either a number at a part's end */
			const char **at = k ? &b : &a, *end = k ? eb : ea;
			size_t digits = *at < end && **at == '_' ? strspn(*at + 1, "0123456789")
								 : 0;
			if (digits && (*at + 1 + digits == end || (*at)[1 + digits] == '/'))
				*at += 1 + digits;
		}
		if ((a < ea) != (b < eb) || (a < ea && *a != *b))
			return false;
		a += a < ea;
		b += b < eb;
	}
	return a >= ea && b >= eb;
}

/* Whether both read one weight in the same place: one that is not uniform is no accident. */
static bool share_weight(struct ties *s, const Node *a, const Node *b)
{
	if (strcmp(text_of(a->op_type), text_of(b->op_type)) != 0)
		return false;
	for (size_t k = 0; k < a->n_input && k < b->n_input; k++) {
		const char *name = text_of(a->input[k]);
		struct item *x = strcmp(name, text_of(b->input[k])) ? NULL
								    : names_get(&s->item, name);
		if (x && x->t->n_dims > 0 && item_load(s, x) && !item_is_uniform(x))
			return true;
	}
	return false;
}

/* One layer, twice, of nodes of one operator: its weight is one, or that of the product to which it
 * adds its bias. */
static bool is_one_layer(struct ties *s, const Node *a, const Node *b)
{
	const struct op_def *op = record_of(s->im, a, s->im->top.opset);
	const size_t nsum = op && op->role == ROLE_ADD ? a->n_input : 0;
	bool one = share_weight(s, a, b);
	for (size_t k = 0; k < nsum && !one; k++)
		for (size_t l = 0; l < b->n_input && !one; l++) {
			const Node *from = names_get(&s->maker, text_of(a->input[k]));
			const Node *other = names_get(&s->maker, text_of(b->input[l]));
			one = from && other && share_weight(s, from, other);
		}
	return one;
}

/* A reader before r that reads x in the same module and place, which is called again; NULL: there
 * is none. A weight that they share, or the names of nodes, have to say so. */
static const struct reader *used_before(
	struct ties *s, const struct item *x, const struct reader *r)
{
	for (const struct reader *own = x->first; own && own != r; own = own->next) {
		const struct op_def *op = record_of(s->im, own->node, s->im->top.opset);
		const bool either = op && (op->role == ROLE_ADD || op->role == ROLE_MUL);
		const size_t n = path_length(own->node), m = path_length(r->node);
		if (strcmp(text_of(own->node->op_type), text_of(r->node->op_type)) != 0 ||
			(!either && own->input != r->input))
			continue;
		if ((n && m && is_same_module(own->node->name, n, r->node->name, m)) ||
			is_one_layer(s, own->node, r->node))
			return own;
	}
	return NULL;
}

bool reader_in_stack(const struct item *x, const struct reader *r)
{
	char a[200], b[200];
	const size_t n = path_length(x->first->node), m = path_length(r->node);
	if (!n || !m || n >= sizeof a || m >= sizeof b)
		return false;
	memcpy(a, x->first->node->name, n);
	memcpy(b, r->node->name, m);
	a[n] = b[m] = '\0';
	return !is_same_module(a, n, b, m) && differ_in_number(a, b);
}

static bool is_below(const char *name, const char *module)
{
	size_t n = strlen(module);
	return n == 0 || (!strncmp(name, module, n) && name[n] == '.');
}

/* The copy for a reader in another layer of the stack that x belongs to: a parameter that has lost
 * its initializer and is called as x but for a number; or, where the exporter made x of one, any
 * that the reader's module has lost. */
static const char *stack_name(const struct ties *s, const struct item *x, const struct reader *r)
{
	const struct importer *im = s->im;
	struct arena *a = im->m.arena;
	const char *scope = node_scope(a, r->node), *name = text_of(x->t->name);
	bool named = names_get(&im->module, name) != NULL;
	if (reader_is_alias(s, r))
		return differ_in_number(name, r->node->output[0]) && !is_called_again(s, x, r)
			       ? r->node->output[0]
			       : NULL;
	const char *home = scope && !named ? node_scope(a, x->first->node) : NULL;
	if (!scope || (!named && (!home || !differ_in_number(home, scope))))
		return NULL;
	for (const struct module_tensor *t = im->module_first; t; t = t->next) {
		if (t->kind != ORIGIN_PARAMETER || !is_lost(s, t))
			continue;
		if (named && is_below(t->name, scope) && differ_in_number(name, t->name))
			return t->name;
		if (!named && stands_in(t->name, scope))
			return arena_printf(a, "%s@%s", name, scope);
	}
	return NULL;
}

/* A tensor deeper in the reader's module that has lost its initializer, and is called there as x is
 * in its own: "b.out_proj.bias", read in b as "a.out_proj.bias". */
static const char *deep_name(const struct ties *s, const struct item *x, const char *scope)
{
	size_t n = strlen(scope), len = strlen(x->t->name);
	for (const struct module_tensor *t = s->im->module_first; t; t = t->next) {
		const char *inside = t->name + (n ? n + 1 : 0);
		if (!is_lost(s, t) || !is_below(t->name, scope) || !strchr(inside, '.'))
			continue;
		size_t m = strlen(inside);
		if (len > m && x->t->name[len - m - 1] == '.' &&
			!strcmp(x->t->name + len - m, inside))
			return t->name;
	}
	return NULL;
}

static bool has_lost(const struct ties *s, const char *scope)
{
	for (const struct module_tensor *t = s->im->module_first; t; t = t->next)
		if (t->kind == ORIGIN_PARAMETER && is_lost(s, t) && is_below(t->name, scope))
			return true;
	return false;
}

/* Of the reader's module's own; what is deeper in it, where no nearer one fits; and what it has not
 * is a constant of the exporter's that was merged with x, unless something is still missing. */
static const char *name_in_module(const struct ties *s, const struct item *x,
	const struct reader *r, const char *scope, bool forced, bool *unsure)
{
	const char *name = text_of(x->t->name);
	if (stands_in(name, scope))
		return NULL;
	const char *lost = deep_name(s, x, scope);
	if (!lost)
		lost = lost_name(s, r, scope);
	if (!lost && !forced) /* the module has lost more than this one */
		lost = stack_name(s, x, r);
	if (lost || !*scope || (!forced && is_below(name, scope)))
		return lost;
	*unsure = forced || has_lost(s, scope);
	return arena_printf(s->im->m.arena, "%s@%s", name, scope);
}

/* What the exporter made of parameters (turned, in another shape) and merged: each parameter's form
 * is one of its own, the first of them stays x. */
static const char *name_of_form(const struct ties *s, const struct item *x, const struct reader *r)
{
	struct arena *a = s->im->m.arena;
	const struct reader *home = x->first;
	if (r->call) {
		while (home && !home->means)
			home = home->next;
		return r->means && home->means != r->means
			       ? arena_printf(a, "%s@%s", x->t->name, r->means->name)
			       : NULL;
	}
	const char *scope = node_scope(a, r->node), *first = NULL;
	if (!scope || !*scope || !is_weighty(s, x, r) || !has_lost(s, scope))
		return NULL;
	for (; home && !first; home = home->next)
		first = is_weighty(s, x, home) ? node_scope(a, home->node) : NULL;
	return first && strcmp(first, scope) != 0 ? arena_printf(a, "%s@%s", x->t->name, scope)
						  : NULL;
}

/* As the reader's call says; false: it does not say. */
static bool name_in_call(const struct ties *s, const struct item *x, const struct reader *r,
	enum split_kind kind, const char **name)
{
	const struct module_tensor *origin = names_get(&s->im->module, text_of(x->t->name));
	struct arena *a = s->im->m.arena;
	const char *scope = node_scope(a, r->node);
	*name = NULL;
	if (!origin || !r->call || (!r->means && !r->nobody))
		return false;
	if (r->means)
		*name = r->means == origin ? NULL : r->means->name;
	else if (kind == SPLIT_UNIFORM)
		*name = arena_printf(
			a, "%s@%s", x->t->name, scope && *scope ? scope : r->call->name);
	return true;
}

const char *owner_copy(struct ties *s, const struct item *x, const struct reader *r,
	enum split_kind kind, bool *unsure)
{
	struct importer *im = s->im;
	struct arena *a = im->m.arena;
	const char *scope = node_scope(a, r->node), *label = text_of(r->node->name), *name;
	const struct module_tensor *origin = names_get(&im->module, text_of(x->t->name));
	bool forced = kind == SPLIT_ASKED;
	*unsure = false;
	if (!forced && name_in_call(s, x, r, kind, &name))
		return name;
	if (origin && origin->kind != ORIGIN_PARAMETER)
		return NULL;
	if (im->module_first && !origin && !forced && (kind == SPLIT_UNIFORM || r->call))
		return name_of_form(s, x, r);
	if (kind == SPLIT_STACK)
		return stack_name(s, x, r);
	if (reader_is_alias(s, r))
		return is_called_again(s, x, r) ? NULL : r->node->output[0];
	if (scope && im->module_first)
		return name_in_module(s, x, r, scope, forced, unsure);
	bool pytorch = !strcmp(text_of(im->m.proto->producer_name), "pytorch");
	if (r == x->first || (pytorch && !forced && im->module_first))
		return NULL;
	/* PyTorch's older exporter merges through Identity, tools do without */
	const struct reader *before = forced ? NULL : used_before(s, x, r);
	if (before)
		return before->copy;
	*unsure = true;
	return arena_printf(
		a, "%s@%s.%zu", x->t->name, *label ? label : text_of(r->node->output[0]), r->input);
}
