/* The graph as text, one node a line. */
#include "graph/cost.h"
#include "graph/pass.h"

static const char *const phase_text[] = {"forward", "backward", "update"};
static const char *const role_text[] = {
	"value", "input", "parameter", "buffer", "state", "constant", "control"};

static void print_tensor(const struct tensor *t, struct text *out)
{
	char shape[200];
	if (t)
		text_add(
			out, " %%%d%s%s", t->id, dtype_name(t->dtype), tensor_shape_text(t, shape));
	else
		text_puts(out, " -");
}

void graph_print(const struct graph *g, struct text *out)
{
	for (int i = 0; i < g->ntensor; i++) {
		const struct tensor *t = g->tensor[i];
		if (t->role == TR_VALUE || t->role == TR_CONSTANT)
			continue;
		print_tensor(t, out);
		text_add(out, "  %s '%s'\n", role_text[t->role], t->name);
	}
	for (int i = 0; i < g->nnode; i++) {
		const struct node *n = g->node[i];
		text_add(out, "%5d %-8s ", n->id, phase_text[n->phase]);
		node_title(n, out);
		for (int k = 0; k < n->nin; k++)
			print_tensor(n->in[k], out);
		text_puts(out, " ->");
		for (int k = 0; k < n->nout; k++)
			print_tensor(n->out[k], out);
		text_add(out, "  '%s'\n", n->name);
	}
}
