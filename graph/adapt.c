/* Low-rank adapters beside frozen weights: y = W x becomes y = W x + s B A x, where A and B are
 * small and trained, W is a constant. What a record does with A and B it says itself (`adapt`). */
#include "graph/adapt.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/nearest.h"
#include "base/once.h"
#include "graph/graph_parts.h"
#include "graph/pass.h"

enum { RANK_LARGEST = 65536 };

struct adapt {
	struct graph_copy copy;
	const struct adapter_options *o;
	int nadapter, cap;
	struct adapter *adapter;
	int nparam, capparam; /* parameters of adapters so far */
	struct tensor **param;
	int ndraw;  /* dropouts so far */
	bool *used; /* by spec */
};

struct adapting {
	struct adapt *all;
	const struct adapter *adapter;
	bool turned; /* how this node reads the weight */
};

/* --- What is said --- */

static enum status parse_fail(const char *text, struct diag *d, const char *what)
{
	return diag_fail(d, ST_USAGE, NULL, "for example --lora r=8,alpha=16:'*proj.weight'",
		"--lora '%s': %s", text, what);
}

static enum status parse_option(
	char *key, struct once *given, struct adapter_spec *out, struct diag *d)
{
	char *eq = strchr(key, '='), *end;
	if (!strcmp(key, "rslora") || !strcmp(key, "dora")) {
		*(*key == 'r' ? &out->rslora : &out->dora) = true;
		return ST_OK;
	}
	if (!eq)
		return parse_fail(
			out->text, d, "options are r=N, alpha=X, dropout=P, rslora and dora");
	*eq = '\0';
	TRY(once_add(given, "--lora: ", key, eq + 1, d));
	const double v = strtod(eq + 1, &end);
	if (end == eq + 1 || *end)
		return parse_fail(out->text, d, "an option's value is no number");
	if (!strcmp(key, "r") && v >= 1 && v <= RANK_LARGEST && v == floor(v))
		out->rank = (int64_t)v;
	else if (!strcmp(key, "r"))
		return parse_fail(out->text, d, "r is a whole number from 1 to 65536");
	else if (!strcmp(key, "alpha") && v > 0 && isfinite(v))
		out->alpha = v;
	else if (!strcmp(key, "alpha"))
		return parse_fail(out->text, d, "alpha is a number above 0");
	else if (!strcmp(key, "dropout") && v >= 0 && v < 1)
		out->dropout = v;
	else if (!strcmp(key, "dropout"))
		return parse_fail(out->text, d, "dropout is a probability from 0 to below 1");
	else
		return parse_fail(
			out->text, d, "options are r=N, alpha=X, dropout=P, rslora and dora");
	return ST_OK;
}

enum status adapter_parse(
	struct arena *a, const char *text, struct adapter_spec *out, struct diag *d)
{
	struct once given = {0};
	*out = (struct adapter_spec){.text = text};
	char *p = arena_strdup(a, text), *pattern = p ? strchr(p, ':') : NULL;
	if (!p)
		return diag_nomem(d);
	if (pattern) {
		*pattern++ = '\0';
		out->pattern = pattern;
		if (!*pattern)
			return parse_fail(text, d, "its PATTERN is empty");
	}
	while (p && *p) {
		char *next = strchr(p, ',');
		if (next)
			*next++ = '\0';
		TRY(parse_option(p, &given, out, d));
		p = next;
	}
	if (!out->rank)
		return parse_fail(text, d, "r=N is missing: the adapters' rank");
	out->alpha = out->alpha > 0 ? out->alpha : (double)out->rank;
	return ST_OK;
}

double adapter_scale(const struct adapter_spec *s)
{
	return s->alpha / (s->rslora ? sqrt((double)s->rank) : (double)s->rank);
}

/* --- For records --- */

struct graph *adapting_graph(const struct adapting *x)
{
	return x->all->copy.to;
}

int64_t adapting_rank(const struct adapting *x)
{
	return x->adapter->spec->rank;
}

void adapting_turn(struct adapting *x)
{
	x->turned = !x->turned;
}

/* `n` pointers or adapters of `size` bytes in room for one more. */
static void *room(struct arena *a, void *list, int n, int *cap, size_t size)
{
	if (n < *cap)
		return list;
	*cap = n ? 2 * n : 64;
	void *wider = arena_alloc(a, (size_t)*cap, size);
	if (wider && n)
		memcpy(wider, list, (size_t)n * size);
	return wider;
}

static struct tensor *fail(struct graph *g, enum status st)
{
	g->failed = g->failed != ST_OK ? g->failed : st;
	return NULL;
}

static struct tensor *new_parameter(struct adapting *x, const char *name, int rank,
	const int64_t *dim, enum adapter_start start, int64_t fan_in)
{
	struct adapt *all = x->all;
	struct graph *g = all->copy.to;
	struct tensor *t = graph_tensor(g, name, g->real, rank, dim);
	all->param = room(
		g->arena, all->param, all->nparam, &all->capparam, sizeof(struct tensor *));
	if (!t || !all->param)
		return fail(g, t ? diag_nomem(g->diag) : ST_INVALID);
	t->role = TR_PARAMETER;
	t->why = "--lora";
	all->param[all->nparam++] = t;
	const enum status st = all->o->start(all->o->user, t, start, fan_in);
	return st == ST_OK ? t : fail(g, st);
}

static bool dims_same(const struct tensor *t, int rank, const int64_t *dim)
{
	return t->rank == rank && !memcmp(t->dim, dim, (size_t)rank * sizeof *dim);
}

static enum status other_shape(const struct adapting *x, const char *name)
{
	const struct graph *g = x->all->copy.to;
	return diag_fail(g->diag, ST_USAGE, &(struct where){.file = g->file},
		"--untie parts them; or let the pattern leave it out",
		"--lora '%s': '%s' would have two shapes, for two nodes that read '%s'",
		x->adapter->spec->text, name, x->adapter->weight->name);
}

struct tensor *adapting_parameter(struct adapting *x, const char *part, int rank,
	const int64_t *dim, enum adapter_start start, int64_t fan_in)
{
	struct adapt *all = x->all;
	struct graph *g = all->copy.to;
	if (g->failed != ST_OK)
		return NULL;
	const char *name = arena_printf(
		g->arena, "base_model.model.%s.%s", x->adapter->module, part);
	if (!name)
		return fail(g, diag_nomem(g->diag));
	for (int i = 0; i < all->nparam; i++)
		if (!strcmp(all->param[i]->name, name))
			return dims_same(all->param[i], rank, dim) ? all->param[i]
								   : fail(g, other_shape(x, name));
	return new_parameter(x, name, rank, dim, start, fan_in);
}

struct tensor *adapting_dropped(struct adapting *x, struct tensor *t)
{
	struct graph *g = adapting_graph(x);
	if (x->adapter->spec->dropout == 0)
		return t;
	const int64_t axes = 0;
	bool *trains = ARENA_NEW(g->arena, bool);
	if (!trains)
		return fail(g, diag_nomem(g->diag));
	*trains = true;
	struct tensor *in[] = {t, graph_scalar(g, x->adapter->spec->dropout),
		graph_constant(g, NULL, DT_BOOL, 0, &axes, trains)};
	/* the model's own draw by their nodes' numbers */
	const struct attr key = ATTR_I("key", x->all->copy.from->nnode + x->all->ndraw++);
	return graph_op(g, op_by_role(g->table, ROLE_DROPOUT)->name, 3, in, 1, &key);
}

struct tensor *adapting_scaled(struct adapting *x, struct tensor *t)
{
	struct graph *g = adapting_graph(x);
	const double scale = adapter_scale(x->adapter->spec);
	return scale == 1 ? t
			  : OP2(g, op_by_role(g->table, ROLE_MUL)->name, t, graph_scalar(g, scale));
}

/* --- Lengths --- */

bool adapting_lengths(const struct adapting *x)
{
	return x->adapter->spec->dora;
}

double adapting_scale(const struct adapting *x)
{
	return adapter_scale(x->adapter->spec);
}

/* Of each output's row of a weight, whose first axis is its outputs or whose last is, the sum of
 * squares; NULL: no memory. */
static double *squares_of(struct graph *g, const struct tensor *w, bool first)
{
	const int64_t rows = first ? w->dim[0] : w->dim[w->rank - 1], columns = w->numel / rows;
	double *sum = ARENA_ARRAY(g->arena, double, rows);
	for (int64_t i = 0; sum && w->data && i < w->numel; i++) {
		const double v = tensor_real(w, i);
		sum[first ? i / columns : i % rows] += v * v;
	}
	return sum;
}

/* Those numbers in the graph's type, or their roots. */
static const void *numbers(struct graph *g, int64_t n, const double *v, bool roots)
{
	void *data = arena_alloc(g->arena, (size_t)n, (size_t)dtype_bytes(g->real));
	for (int64_t i = 0; data && i < n; i++)
		value_set(g->real, data, i, roots ? sqrt(v[i]) : v[i]);
	return data;
}

struct tensor *adapting_rows(
	struct adapting *x, int rank, const int64_t *dim, struct tensor **squares)
{
	struct graph *g = adapting_graph(x);
	const bool first = x->turned || x->adapter->kind == ADAPTER_CONV;
	int64_t out = 1;
	for (int i = 0; i < rank; i++)
		out *= dim[i];
	const double *sum = g->failed == ST_OK ? squares_of(g, x->adapter->weight, first) : NULL;
	const void *data = sum ? numbers(g, out, sum, false) : NULL;
	if (!data)
		return fail(g, diag_nomem(g->diag));
	*squares = graph_constant(g, "", g->real, 1, &out, data);
	struct tensor *length = adapting_parameter(
		x, "lora_magnitude_vector", rank, dim, ADAPTER_GIVEN, 0);
	if (length && !length->data && !(length->data = numbers(g, out, sum, true)))
		return fail(g, diag_nomem(g->diag));
	return length;
}

/* --- Which weights --- */

/* How an input reads a weight. */
enum reading { AS_IT_IS, TURNED, OTHERWISE };

static enum reading reading_through(const struct node *transpose, enum reading how)
{
	const int rank = transpose->out[0]->rank;
	const int64_t *perm = node_attr(transpose, "perm")->ints;
	bool moves = false;
	for (int i = 0; i < rank; i++)
		moves |= perm[i] != i;
	if (!moves)
		return how;
	return rank != 2 || how == OTHERWISE ? OTHERWISE : how == TURNED ? AS_IT_IS : TURNED;
}

/* The initializer behind an input, maybe transposed; NULL: it is computed. What is folded of one
 * has no reason for its role. */
static const struct tensor *weight_of(const struct node *n, int input, enum reading *how)
{
	const struct tensor *t = node_input(n, input);
	*how = AS_IT_IS;
	while (t && t->maker &&
		(t->maker->op->role == ROLE_TRANSPOSE || t->maker->op->role == ROLE_IDENTITY)) {
		if (t->maker->op->role == ROLE_TRANSPOSE)
			*how = reading_through(t->maker, *how);
		t = t->maker->in[0];
	}
	return t && !t->maker && t->from_model && t->why && dtype_is_real(t->dtype) ? t : NULL;
}

/* An adapter can be merged into a weight that is read so. */
static bool may_adapt(const struct node *n, int input, enum reading how)
{
	return input == n->op->adapter->weight &&
	       (how == AS_IT_IS || (how == TURNED && op_adapter(n->op) == ADAPTER_LINEAR));
}

/* Node n reads the weight, or a view of it that was folded, where no adapter of `kind` stands. */
static bool reads_besides(const struct node *n, const struct tensor *weight, enum adapter_kind kind)
{
	enum reading how;
	for (int k = 0; k < n->nin; k++) {
		const struct tensor *t = n->in[k];
		if (weight_of(n, k, &how) == weight &&
			!(op_adapter(n->op) == kind && may_adapt(n, k, how)))
			return true;
		if (t && !t->maker && t->from_model && !t->why && t->data &&
			t->data == weight->data)
			return true;
	}
	return false;
}

/* A node that reads the weight without an adapter of this kind; NULL: there is none. */
static const struct node *other_reader(
	const struct graph *g, const struct tensor *weight, enum adapter_kind kind)
{
	for (int i = 0; i < g->nnode; i++) {
		const struct node *n = g->node[i];
		if (n->op->role != ROLE_TRANSPOSE && n->op->role != ROLE_IDENTITY &&
			reads_besides(n, weight, kind))
			return n;
	}
	return NULL;
}

/* "a.b" of "a.b.weight", and of "a.b" */
static size_t module_length(const char *weight)
{
	static const char end[] = ".weight";
	const size_t length = strlen(weight), tail = sizeof end - 1;
	return length > tail && !strcmp(weight + length - tail, end) ? length - tail : length;
}

static bool spec_fits(const struct adapt *x, const struct adapter_spec *s, const struct node *n,
	const struct tensor *weight)
{
	const size_t module = module_length(weight->name);
	if (s->module)
		return strlen(s->module) == module && !strncmp(s->module, weight->name, module);
	if (s->pattern)
		return name_fits(s->pattern, weight->name);
	return op_adapter(n->op) == ADAPTER_LINEAR && weight->rank == 2 &&
	       !other_reader(x->copy.from, weight, n->op->adapter->kind);
}

static const struct adapter_spec *spec_of(
	struct adapt *x, const struct node *n, const struct tensor *weight)
{
	for (int i = 0; i < x->o->nspec; i++) {
		const struct adapter_spec *s = &x->o->spec[i];
		if (spec_fits(x, s, n, weight)) {
			x->used[i] = true;
			return s;
		}
	}
	return NULL;
}

/* That of the weight; a new one, where no node before has made it. */
static enum status adapter_of(struct adapt *x, const struct node *n, const struct tensor *weight,
	const struct adapter_spec *spec, int *at)
{
	struct graph *g = x->copy.to;
	for (*at = 0; *at < x->nadapter; ++*at)
		if (!strcmp(x->adapter[*at].weight->name, weight->name))
			return ST_OK;
	const struct node *other = other_reader(x->copy.from, weight, n->op->adapter->kind);
	if (other == n)
		return node_fail(g, n, "let the pattern leave it out",
			"--lora '%s': reads '%s' so that no adapter could be merged into it",
			spec->text, weight->name);
	if (other)
		return node_fail(g, n,
			arena_printf(g->arena,
				"--untie '%s' parts them; or let the pattern leave it out",
				weight->name),
			"--lora '%s': '%s' is read by node '%s' (%s) as well: an adapter beside it "
			"would be for one of them only",
			spec->text, weight->name, other->name, other->op->name);
	x->adapter = room(g->arena, x->adapter, x->nadapter, &x->cap, sizeof *x->adapter);
	const char *module = arena_strndup(g->arena, weight->name, module_length(weight->name));
	if (!x->adapter || !module)
		return diag_nomem(g->diag);
	for (int i = 0; i < x->nadapter; i++)
		if (!strcmp(x->adapter[i].module, module))
			return node_fail(g, n, "let the pattern leave one out",
				"--lora '%s': '%s' and '%s' would have one name for their adapters",
				spec->text, x->adapter[i].weight->name, weight->name);
	x->adapter[x->nadapter++] = (struct adapter){
		.weight = weight, .module = module, .kind = n->op->adapter->kind, .spec = spec};
	return ST_OK;
}

/* --- Building --- */

/* The copy of `old` with what the adapter adds. */
static enum status add(struct adapt *x, struct adapter *adapter, bool turned,
	const struct node *old, const struct node *n)
{
	struct graph *g = x->copy.to;
	struct adapting one = {x, adapter, turned};
	struct tensor *delta = NULL;
	graph_copy_for(&x->copy, old);
	TRY(n->op->adapter->build(&one, n, n->in, &delta));
	TRY(g->failed);
	if (adapter->read && adapter->turned != one.turned)
		return node_fail(g, n, "--untie parts them; or let the pattern leave it out",
			"--lora '%s': reads '%s' transposed, where another node does not",
			adapter->spec->text, adapter->weight->name);
	adapter->turned = one.turned;
	adapter->read = true;
	struct tensor *sum = OP2(g, op_by_role(g->table, ROLE_ADD)->name, n->out[0], delta);
	if (!sum)
		return g->failed;
	if (!tensor_same_shape(sum, n->out[0]))
		return node_fail(g, n, "this is a bug in stint", "its adapter has another shape");
	sum->name = n->out[0]->name;
	n->out[0]->name = arena_printf(g->arena, "%s/base", sum->name ? sum->name : n->name);
	x->copy.map[old->out[0]->id] = sum;
	return n->out[0]->name ? ST_OK : diag_nomem(g->diag);
}

static enum status copy_node(struct adapt *x, const struct node *old)
{
	struct node *n;
	enum reading how;
	int at;
	TRY(graph_copy_node(&x->copy, old, &n));
	if (!old->op->adapter)
		return ST_OK;
	const struct tensor *weight = weight_of(old, old->op->adapter->weight, &how);
	const struct adapter_spec *spec = weight && !weight->drawn ? spec_of(x, old, weight) : NULL;
	if (!spec)
		return ST_OK;
	TRY(adapter_of(x, old, weight, spec, &at));
	return add(x, &x->adapter[at], how == TURNED, old, n);
}

static enum status freeze(struct adapt *x)
{
	struct graph *g = x->copy.to;
	for (int i = 0; i < g->ntensor; i++) {
		struct tensor *t = g->tensor[i];
		if (t->role != TR_PARAMETER || t->drawn ||
			((name_matches(x->o->train_pattern, t->name) ||
				 name_listed(x->o->train_name, t->name)) &&
				!name_matches(x->o->freeze_pattern, t->name)))
			continue;
		t->role = TR_CONSTANT;
		t->why = "frozen by --lora";
		if (!t->data)
			t->data = arena_alloc(
				g->arena, (size_t)t->numel, (size_t)dtype_bytes(t->dtype));
		if (!t->data)
			return diag_nomem(g->diag);
	}
	return ST_OK;
}

/* A spec that fits no weight: those that could have adapters and are nearest to what it says. */
static enum status no_match(const struct graph *g, const struct adapter_spec *s)
{
	static const char some[] = "the nearest are %s; `stint show MODEL.onnx` lists all, and an "
				   "export with optimize=False keeps the module's names";
	int n = 0;
	enum reading how;
	const struct where at = {.file = g->file};
	const char **name = ARENA_ARRAY(g->arena, const char *, g->nnode),
		   *said = s->module    ? s->module
			   : s->pattern ? s->pattern
					: "";
	for (int i = 0; name && i < g->nnode; i++) {
		const struct op_def *op = g->node[i]->op;
		const struct tensor *t = op->adapter
						 ? weight_of(g->node[i], op->adapter->weight, &how)
						 : NULL;
		bool known = !t;
		for (int k = 0; k < n && !known; k++)
			known = name[k] == t->name;
		if (!known)
			name[n++] = t->name;
	}
	const char *near = name ? nearest_names(g->arena, said, name, n) : NULL;
	const char *hint = !near ? NULL
			   : n   ? arena_printf(g->arena, some, near)
				 : "no node of the model has a weight that an adapter could stand "
				   "beside";
	return s->module
		       ? diag_fail(g->diag, ST_INVALID, &at, hint,
				 "has no weight for the adapter of '%s' in %s", s->module, s->text)
		       : diag_fail(g->diag, ST_USAGE, &at, hint, "--lora '%s' fits no weight",
				 s->text);
}

enum status graph_adapt(const struct graph *in, const struct adapter_options *o, struct graph **out,
	int *n, struct adapter **adapter)
{
	struct adapt x = {.o = o, .used = ARENA_ARRAY(in->arena, bool, o->nspec)};
	if (!x.used)
		return diag_nomem(in->diag);
	TRY(graph_copy_begin(&x.copy, in));
	TRY(freeze(&x));
	for (int i = 0; i < in->nnode; i++)
		TRY(copy_node(&x, in->node[i]));
	for (int i = 0; i < o->nspec; i++)
		if (!x.used[i])
			return no_match(in, &o->spec[i]);
	TRY(graph_copy_end(&x.copy, out));
	*n = x.nadapter;
	*adapter = x.adapter;
	return graph_verify(*out);
}
