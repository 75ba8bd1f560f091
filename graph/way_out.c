/* What helps where a node asks for more than is there, by what its inputs are computed from. */
#include <string.h>

#include "graph/op.h"

/* The first of what t is computed from that `is` says yes to; NULL: none, or more nodes than are
 * looked at. */
static const struct tensor *behind(const struct graph *g, const struct tensor *t,
	bool (*is)(const struct graph *, const struct tensor *), int *left)
{
	if (is(g, t))
		return t;
	for (int i = 0; t->maker && i < t->maker->nin && (*left)-- > 0; i++) {
		const struct tensor *in = t->maker->in[i];
		const struct tensor *found = in ? behind(g, in, is, left) : NULL;
		if (found)
			return found;
	}
	return NULL;
}

enum { LOOKED_AT = 1000 };

/* An input of the model, no real numbers but one. */
static bool is_known_input(const struct graph *g, const struct tensor *t)
{
	(void)g;
	return t->role == TR_INPUT && (!dtype_is_real(t->dtype) || !t->rank);
}

const char *graph_unknown_hint(struct graph *g, const struct tensor *t)
{
	int left = LOOKED_AT;
	const struct tensor *input = t ? behind(g, t, is_known_input, &left) : NULL;
	if (!input)
		return "stint resolves this when it compiles: export the model so that data do not "
		       "decide";
	return arena_printf(g->arena,
		"it comes from the input '%s': where that is the same in every step, --fix "
		"%s=NUMBERS says what it is",
		input->name, input->name);
}

static bool is_resized(const struct graph *g, const struct tensor *t)
{
	return t->name && !strcmp(t->name, g->resized);
}

const char *graph_view_hint(const struct graph *g, const struct tensor *x)
{
	int left = LOOKED_AT;
	return g->resized && behind(g, x, is_resized, &left)
		       ? "what lies behind the head wants as many as there were: export the model "
			 "anew, or leave --replace-head away"
		       : "a batch size fixed by the exporter? give --batch its value";
}
