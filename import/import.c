/* import_onnx: the stages in order. */
#include <inttypes.h>
#include <string.h>

#include "graph/pass.h"
#include "import/private.h"

enum { OPSET_MIN = 11, OPSET_MAX = 21 };

static enum status find_opset(struct importer *im)
{
	const Onnx__ModelProto *p = im->m.proto;
	const struct where w = {.file = im->m.path};
	int64_t opset = 0;
	for (size_t i = 0; i < p->n_opset_import; i++) {
		const char *domain = text_of(p->opset_import[i]->domain);
		if (!*domain || !strcmp(domain, "ai.onnx"))
			opset = p->opset_import[i]->version;
	}
	if (opset == 0)
		return diag_fail(im->d, ST_INVALID, &w, NULL, "says no opset version");
	if (opset < OPSET_MIN || opset > OPSET_MAX)
		return diag_fail(im->d, ST_INVALID, &w,
			"export it with an opset from 11 to 21, or convert it with "
			"onnx.version_converter",
			"is written for opset %" PRId64 "; opsets 11 to 21 are supported", opset);
	im->g->opset = (int)opset;
	if (p->n_functions)
		return diag_fail(im->d, ST_INVALID, &w,
			"inline them with onnx.inliner.inline_local_functions",
			"has local functions ('%s' is the first), which are not supported",
			text_of(p->functions[0]->name));
	return ST_OK;
}

static enum status import_outputs(struct importer *im)
{
	const Onnx__GraphProto *p = im->m.proto->graph;
	struct graph *g = im->g;
	const struct where file = {.file = im->m.path};
	if (!p->n_output)
		return diag_fail(im->d, ST_INVALID, &file, NULL, "has no output");
	g->output = ARENA_ARRAY(im->m.arena, struct tensor *, p->n_output);
	if (!g->output)
		return diag_nomem(im->d);
	for (size_t i = 0; i < p->n_output; i++) {
		const char *name = text_of(p->output[i]->name);
		struct tensor *t = names_get(&im->tensor, name);
		if (!t)
			return diag_fail(im->d, ST_INVALID,
				&(struct where){im->m.path, name, "tensor"}, NULL,
				"is an output that nothing makes");
		g->output[g->noutput++] = t;
	}
	return ST_OK;
}

static enum status import_graph(struct importer *im)
{
	const int *order;
	enum status worst = ST_OK;
	TRY(find_opset(im));
	TRY(signature_read(im));
	TRY(ties_rewrite(im));
	TRY(check_operators(im));
	TRY(order_nodes(im, &order));
	TRY(import_values(im));
	for (size_t i = 0; i < im->m.proto->graph->n_node && worst == ST_OK; i++)
		worst = import_node(im, order[i]);
	TRY(worst);
	TRY(import_outputs(im));
	im->g->opset = OPSET_LATEST;
	return graph_verify(im->g);
}

enum status import_onnx(struct arena *a, const char *path, const struct import_options *o,
	const struct op_table *table, const struct target *target, enum dtype real, struct diag *d,
	struct graph **out)
{
	struct importer im = {.o = o,
		.d = d,
		.table = table,
		.tensor = {.arena = a},
		.module = {.arena = a},
		.use = {.arena = a},
		.dim = {.arena = a}};
	TRY(model_read(a, path, &im.m, d));
	im.g = graph_new(a, d, path, table, target, real);
	if (!im.g)
		return ST_INTERNAL;
	TRY(import_graph(&im));
	*out = im.g;
	return ST_OK;
}
