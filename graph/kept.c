/* Gradients of the loss by inputs, which stay when the step is done (--input-gradient). In
 * micro-batches each one's rows are put behind those of the one before. */
#include <string.h>

#include "graph/graph_parts.h"
#include "graph/pass.h"

/* The input that the caller sets; NULL: the model has none of that name. */
static struct tensor *input_named(const struct graph *g, const char *name)
{
	for (int i = 0; i < g->ninput; i++)
		if (!strcmp(g->input[i]->name, name))
			return g->input[i];
	return NULL;
}

static enum status no_input(const struct graph *g, const char *name)
{
	struct text known = {0};
	for (int i = 0; i < g->ninput; i++)
		text_add(&known, "%s'%s'", i ? ", " : "", g->input[i]->name);
	const enum status st = diag_fail(g->diag, ST_USAGE, &(struct where){.file = g->file}, NULL,
		"--input-gradient %s: no input has this name; the inputs are %s", name,
		known.s ? known.s : "none");
	text_free(&known);
	return st;
}

/* A micro-batch's rows of it; itself, where no batch is taken in parts; NULL: each part reads all.
 */
static struct tensor *rows_read(const struct graph *g, struct tensor *input)
{
	for (int i = 0; i < g->nnode; i++)
		if (g->node[i]->op->role == ROLE_SHARD && g->node[i]->in[0] == input)
			return g->node[i]->out[0];
	return g->shards_differ ? NULL : input;
}

static enum status ask(struct graph *g, const char *name, struct kept_inputs *out)
{
	const struct where w = {.file = g->file, .node = name, .op = "input"};
	struct tensor *input = input_named(g, name), *rows = input ? rows_read(g, input) : NULL;
	if (!input)
		return no_input(g, name);
	if (!dtype_is_real(input->dtype))
		return diag_fail(g->diag, ST_USAGE, &w, NULL,
			"--input-gradient wants an input of real numbers, and these are whole");
	if (!rows)
		return diag_fail(g->diag, ST_USAGE, &w, "leave --micro-batch away",
			"--input-gradient: each micro-batch reads all of it, and not rows of its "
			"own");
	for (int i = 0; i < out->n; i++)
		if (out->input[i] == input)
			return ST_OK;
	out->input[out->n] = input;
	out->rows[out->n++] = rows;
	return ST_OK;
}

enum status kept_inputs_find(struct graph *g, const char *const *name, struct kept_inputs *out)
{
	const int n = list_length(name);
	*out = (struct kept_inputs){.input = ARENA_ARRAY(g->arena, struct tensor *, n),
		.rows = ARENA_ARRAY(g->arena, struct tensor *, n)};
	if (!out->input || !out->rows)
		return diag_nomem(g->diag);
	for (int i = 0; i < n; i++)
		TRY(ask(g, name[i], out));
	return ST_OK;
}

static enum status keep(
	struct graph *g, struct tensor *input, const struct tensor *rows, struct tensor *gradient)
{
	g->scope = input->name;
	g->phase = NODE_BACKWARD;
	if (g->loss_unscale)
		gradient = OP2(g, op_by_role(g->table, ROLE_MUL)->name, gradient, g->loss_unscale);
	if (!gradient)
		return g->failed;
	g->phase = NODE_UPDATE; /* what is read stays real from here on */
	if (rows != input)
		gradient = graph_every_shard(
			g, input->name, graph_reshape(g, gradient, 1, &gradient->numel));
	g->last = g->shards_differ;
	gradient = gradient ? graph_reshape(g, gradient, input->rank, input->dim) : NULL;
	if (gradient)
		OP2(g, op_by_role(g->table, ROLE_KEEP_GRADIENT)->name, input, gradient);
	g->last = false;
	g->phase = NODE_FORWARD;
	g->scope = NULL;
	return g->failed;
}

enum status kept_inputs_keep(
	struct graph *g, const struct kept_inputs *of, struct tensor *const *gradient)
{
	for (int i = 0; i < of->n; i++) {
		const struct where w = {.file = g->file, .node = of->input[i]->name, .op = "input"};
		if (!gradient[i])
			return diag_fail(g->diag, ST_USAGE, &w, NULL,
				"--input-gradient: the loss does not depend on it, or no gradient "
				"reaches it");
		TRY(keep(g, of->input[i], of->rows[i], gradient[i]));
	}
	return ST_OK;
}
