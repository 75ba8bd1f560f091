/* What nodes are called. PyTorch's newer exporter names them after its own intermediate form
 * ("node__native_batch_norm_legit_functional_6__0") and notes beside it which layer they come from:
 * that is what people know ("layer2.0.bn1/BatchNormalization"). */
#include <inttypes.h>
#include <string.h>

#include "import/import_parts.h"

typedef Onnx__NodeProto Node;

const char *node_label(struct arena *a, const Node *n, int index)
{
	if (n->name && *n->name)
		return n->name;
	/* arena_printf's work, for names by the million */
	char digits[16];
	const char *op = text_of(n->op_type);
	size_t len = strlen(op), ndigit = 0;
	char *s = arena_alloc(a, len + 16, 1);
	if (!s)
		return NULL;
	do
		digits[ndigit++] = (char)('0' + index % 10);
	while ((index /= 10) > 0);
	memcpy(s, op, len);
	s[len++] = '_';
	while (ndigit)
		s[len++] = digits[--ndigit];
	return s;
}

/* `base`, or the first of "base_1", "base_2", ... that nothing is called yet. */
static const char *free_name(struct arena *a, struct names *taken, const char *base)
{
	const char *name = base;
	void **first = names_at(taken, base);
	if (!first)
		return NULL;
	if (!*first) {
		*first = ARENA_NEW(a, int64_t);
		return *first ? base : NULL;
	}
	for (int64_t *next = *first;;) {
		name = arena_printf(a, "%s_%" PRId64, base, ++*next);
		void **at = name ? names_at(taken, name) : NULL;
		if (!at)
			return NULL;
		if (!*at) {
			*at = ARENA_NEW(a, int64_t);
			return *at ? name : NULL;
		}
	}
}

/* The file's own names, where no layer is noted: they are not given twice. */
static bool take_names(
	struct arena *a, const Onnx__GraphProto *g, const char *const *layer, struct names *taken)
{
	for (size_t i = 0; i < g->n_node; i++) {
		const char *name = layer[i] ? NULL : node_label(a, g->node[i], (int)i);
		void **at = name ? names_at(taken, name) : NULL;
		if (at && !*at)
			*at = ARENA_NEW(a, int64_t);
		if (!layer[i] && (!at || !*at))
			return false;
	}
	return true;
}

enum status node_layers(struct arena *a, const Onnx__GraphProto *g, const char *const **out)
{
	struct names taken = {.arena = a};
	size_t first = 0;
	*out = NULL;
	while (first < g->n_node && !node_scope(a, g->node[first]))
		first++;
	if (first == g->n_node)
		return ST_OK;
	const char **name = ARENA_ARRAY(a, const char *, g->n_node);
	for (size_t i = 0; name && i < g->n_node; i++)
		name[i] = node_scope(a, g->node[i]);
	if (!name || !take_names(a, g, name, &taken))
		return ST_INTERNAL;
	for (size_t i = 0; i < g->n_node; i++) {
		if (!name[i])
			continue;
		const char *base = arena_printf(
			a, "%s%s%s", name[i], *name[i] ? "/" : "", text_of(g->node[i]->op_type));
		name[i] = base ? free_name(a, &taken, base) : NULL;
		if (!name[i])
			return ST_INTERNAL;
	}
	*out = name;
	return ST_OK;
}

enum status layers_rewrite(struct importer *im)
{
	Onnx__GraphProto *g = im->m.proto->graph;
	const char *const *name;
	if (node_layers(im->m.arena, g, &name) != ST_OK)
		return diag_nomem(im->d);
	for (size_t i = 0; name && i < g->n_node; i++)
		if (name[i])
			g->node[i]->name = (char *)name[i];
	return ST_OK;
}
