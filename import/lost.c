/* Parameters of the module that have no initializer and stand in no other: what the exporter folded
 * into constants is not trained. Nothing is wrong with a parameter that nothing uses, and with the
 * second name of one that is shared: no call names them. */
#include <ctype.h>
#include <string.h>

#include "import/import_parts.h"

typedef Onnx__NodeProto Node;

struct lost {
	struct importer *im;
	struct names present; /* initializers by name → TensorProto */
	struct names found;   /* modules whose nodes read parameters → anything */
	int forms;            /* trained initializers that are tables made of parameters' rows */
	struct text computed; /* constants that may be made of parameters */
	int ncomputed;
	struct text list[2]; /* folded; perhaps */
	int n[2];
};

/* "mul", "mul_3": an operation's name and PyTorch's number. */
static bool is_called(const char *name, const char *const *operation)
{
	for (; *operation; operation++) {
		size_t n = strlen(*operation);
		const char *end = name + n;
		if (strncmp(name, *operation, n) != 0)
			continue;
		end += *end == '_';
		while (isdigit((unsigned char)*end))
			end++;
		if (!*end)
			return true;
	}
	return false;
}

static void add_name(struct text *list, int *n, const char *name)
{
	if ((*n)++ < 4)
		text_add(list, "%s'%s'", *n > 1 ? ", " : "", name);
}

/* What nodes read that is trained under a name of the exporter's, by call or else by module. */
static enum status find_forms(struct lost *l)
{
	struct importer *im = l->im;
	const Onnx__GraphProto *g = im->m.proto->graph;
	for (size_t i = 0; i < g->n_node; i++)
		for (size_t k = 0; k < g->node[i]->n_input; k++) {
			const char *name = text_of(g->node[i]->input[k]);
			const struct tensor *t = names_get(&l->present, name)
							 ? names_get(im->top.tensor, name)
							 : NULL;
			struct call *c = call_of(im, g->node[i]);
			if (!t || t->role != TR_PARAMETER)
				continue;
			if (c)
				c->trained |= !names_get(&im->module, name);
			const char *scope = c ? NULL : node_scope(im->m.arena, g->node[i]);
			void **at = scope ? names_at(&l->found, scope) : NULL;
			if (scope && !at)
				return diag_nomem(im->d);
			if (at)
				*at = im;
		}
	return ST_OK;
}

/* Constants of real numbers whose name is that of a call's result which no node makes: the exporter
 * computed it. Not of those that make something of nothing. */
static void find_computed(struct lost *l)
{
	static const char *const made[] = {"arange", "full", "full_like", "zeros", "zeros_like",
		"ones", "ones_like", "eye", "linspace", "triu", "tril", "scalar_tensor", "sin",
		"cos", NULL};
	struct importer *im = l->im;
	const Onnx__GraphProto *g = im->m.proto->graph;
	for (size_t i = 0; i < g->n_initializer; i++) {
		const char *name = text_of(g->initializer[i]->name);
		const struct tensor *t = names_get(im->top.tensor, name);
		if (!t || !dtype_is_real(t->dtype) || names_get(&im->module, name))
			continue;
		l->forms += t->role == TR_PARAMETER && !strncmp(name, "embedding", 9);
		const bool noted = im->call.n ? names_get(&im->mentioned, name) != NULL
					      : t->rank > 0;
		if (t->role != TR_PARAMETER && noted && !is_called(name, made))
			add_name(&l->computed, &l->ncomputed, name);
	}
}

/* Sums with 0 and products with 1 that the exporter dropped, the scalar with them. */
static enum status find_dropped(struct lost *l)
{
	static const char *const arithmetic[] = {"mul", "add", "sub", "div", NULL};
	const Onnx__GraphProto *g = l->im->m.proto->graph;
	for (size_t i = 0; i < g->n_node; i++) {
		const struct call *c = call_of(l->im, g->node[i]);
		for (int k = 0; c && k < c->nunknown; k++) {
			const char *name = c->unknown[k];
			if (names_get(&l->im->call, name) || !is_called(name, arithmetic))
				continue;
			void **at = names_at(&l->present, name);
			if (!at)
				return diag_nomem(l->im->d);
			if (!*at) /* once */
				add_name(&l->computed, &l->ncomputed, name);
			*at = l;
		}
	}
	return ST_OK;
}

/* The module of a tensor: "a.b.weight" → "a.b". */
static const char *module_of(struct arena *a, const char *name)
{
	const char *dot = strrchr(name, '.');
	return dot ? arena_strndup(a, name, (size_t)(dot - name)) : "";
}

static enum status list_lost(struct lost *l)
{
	struct importer *im = l->im;
	struct arena *a = im->m.arena;
	for (const struct module_tensor *t = im->module_first; t; t = t->next) {
		const char *module = module_of(a, t->name);
		const char *mean = module ? arena_printf(a, "%s.running_mean", module) : NULL;
		if (!mean)
			return diag_nomem(im->d);
		if (t->kind != ORIGIN_PARAMETER || t->removed || names_get(&l->present, t->name) ||
			names_get(&im->module, mean)) /* a batch-norm's: that has its own words */
			continue;
		if (t->call ? t->call->trained : names_get(&l->found, module) != NULL)
			continue;
		const int perhaps = !t->call;
		add_name(&l->list[perhaps], &l->n[perhaps], t->name);
	}
	return ST_OK;
}

static void tell(struct lost *l)
{
	static const char hint[] =
		"`stint show MODEL.onnx` tells which constants are trained; export with "
		"optimize=False to keep the parameters";
	const struct where w = {.file = l->im->m.path};
	if (l->list[0].failed || l->list[1].failed || l->computed.failed)
		return;
	if (l->n[0])
		diag_warn(l->im->d, &w, hint,
			"%d parameter%s of the module %s been folded into constants: %s%s", l->n[0],
			l->n[0] == 1 ? "" : "s", l->n[0] == 1 ? "has" : "have", l->list[0].s,
			l->n[0] > 4 ? ", ..." : "");
	if (l->n[1] > l->forms && l->ncomputed)
		diag_warn(l->im->d, &w, hint,
			"%d parameter%s of the module %s nowhere in the file: not used, the second "
			"name of another, or folded into constants that are not trained: %s%s; "
			"what the exporter computed: %s%s",
			l->n[1], l->n[1] == 1 ? "" : "s", l->n[1] == 1 ? "is" : "are", l->list[1].s,
			l->n[1] > 4 ? ", ..." : "", l->computed.s, l->ncomputed > 4 ? ", ..." : "");
}

enum status warn_of_lost(struct importer *im)
{
	const Onnx__GraphProto *g = im->m.proto->graph;
	struct lost l = {
		.im = im, .present = {.arena = im->m.arena}, .found = {.arena = im->m.arena}};
	if (!im->module_first)
		return ST_OK;
	for (size_t i = 0; i < g->n_initializer; i++) {
		void **at = names_at(&l.present, text_of(g->initializer[i]->name));
		if (!at)
			return diag_nomem(im->d);
		*at = g->initializer[i];
	}
	enum status st = find_forms(&l);
	if (st == ST_OK)
		st = list_lost(&l);
	if (st == ST_OK && l.n[1]) {
		find_computed(&l);
		st = find_dropped(&l);
	}
	if (st == ST_OK)
		tell(&l);
	text_free(&l.computed);
	text_free(&l.list[0]);
	text_free(&l.list[1]);
	return st;
}
