/* The loss at the graph's end. */
#include <string.h>

#include "graph/graph_parts.h"
#include "graph/pass.h"

static enum status ambiguous(const struct graph *g, int wanted)
{
	static const char *const hint[] = {"add :output=NAME to the loss",
		"add :output=FIRST;SECOND to the loss",
		"add :output=FIRST;SECOND;THIRD to the loss"};
	struct text names = {0};
	for (int i = 0; i < g->noutput; i++)
		text_add(&names, "%s%s", i ? ", " : "", g->output[i]->name);
	enum status st = diag_fail(g->diag, ST_USAGE, &(struct where){.file = g->file},
		g->noutput < wanted ? NULL : hint[wanted - 1],
		"the model has %d output%s, and the loss reads %d: %s", g->noutput,
		g->noutput == 1 ? "" : "s", wanted, names.s ? names.s : "");
	text_free(&names);
	return st;
}

static struct tensor *named_output(const struct graph *g, const char *name)
{
	for (int i = 0; i < g->noutput; i++)
		if (!strcmp(g->output[i]->name, name))
			return g->output[i];
	return NULL;
}

enum status graph_loss_outputs(const struct graph *g, const struct loss_spec *spec, int *n,
	struct tensor *out[LOSS_OUTPUTS])
{
	const int wanted = spec->op && spec->op->loss->outputs ? spec->op->loss->outputs : 1;
	const int given = list_length(spec->output);
	*n = wanted;
	if (!spec->output && g->noutput != wanted)
		return ambiguous(g, wanted);
	for (int i = 0; i < wanted; i++) {
		const char *name = i < given ? spec->output[i] : "";
		out[i] = spec->output ? named_output(g, name) : g->output[i];
		if (!out[i]) {
			diag_fail(g->diag, ST_USAGE, &(struct where){.file = g->file}, NULL,
				"the model has no output '%s'", name);
			return ambiguous(g, wanted);
		}
	}
	return given > wanted ? ambiguous(g, wanted) : ST_OK;
}

static enum status own_loss(struct graph *g, struct tensor *y)
{
	char shape[200];
	if (y->numel != 1 || !dtype_is_real(y->dtype))
		return diag_fail(g->diag, ST_INVALID,
			&(struct where){.file = g->file, .node = y->name},
			"name a loss, as in --loss cross-entropy",
			"is no scalar loss: its shape is %s", tensor_shape_text(y, shape));
	g->loss = y;
	if (!g->shards_differ)
		return ST_OK;
	/* a mean: each micro-batch has its share */
	g->loss = OP2(
		g, op_by_role(g->table, ROLE_MUL)->name, y, graph_scalar(g, 1 / (double)g->shards));
	return g->failed;
}

static enum status add_input(struct graph *g, struct tensor *x)
{
	struct tensor **list = ARENA_ARRAY(g->arena, struct tensor *, g->ninput + 1);
	if (!list)
		return diag_nomem(g->diag);
	if (g->ninput)
		memcpy(list, g->input, (size_t)g->ninput * sizeof *list);
	list[g->ninput++] = x;
	g->input = list;
	return ST_OK;
}

/* A model of views alone would have no step to run: an output of it is copied. */
static enum status make_step(struct graph *g)
{
	for (int i = 0; i < g->nnode; i++)
		if (!(g->node[i]->op->traits & OP_VIEW))
			return ST_OK;
	for (int i = 0; i < g->noutput; i++) {
		struct tensor *old = g->output[i];
		if (old->role == TR_CONSTANT)
			continue;
		g->output[i] = OP1(g, op_by_role(g->table, ROLE_COPY)->name, old);
		if (g->output[i])
			g->output[i]->name = old->name;
		return g->failed;
	}
	return diag_fail(g->diag, ST_INVALID, &(struct where){.file = g->file}, NULL,
		"computes nothing: all its outputs are known when it is compiled");
}

static enum status build_loss(
	struct graph *g, const struct op_def *op, const struct loss_inputs *in)
{
	if (op->loss->build) {
		TRY(op->loss->build(g, op, in, &g->loss));
		return g->failed;
	}
	if (g->shards_differ)
		return diag_fail(g->diag, ST_USAGE, NULL, NULL,
			"--micro-batch: stint cannot take the loss %s of a batch in parts",
			op->loss->name);
	g->loss = graph_op(g, op->name, 3,
		(struct tensor *[]){in->output[0], in->target, in->control}, in->nattr, in->attr);
	return g->failed;
}

static enum status add_target(struct graph *g, const struct loss_spec *spec, struct loss_inputs *in)
{
	enum dtype type;
	int rank;
	int64_t dim[RANK_MAX];
	if (!spec->op->loss->target)
		return ST_OK;
	TRY(spec->op->loss->target(g, in->output[0], spec->nattr, spec->attr, &type, &rank, dim));
	struct tensor *target = graph_tensor(g, "target", type, rank, dim);
	if (!target)
		return g->failed;
	target->role = TR_INPUT;
	TRY(add_input(g, target));
	g->target_input = in->whole = target;
	in->target = g->shards && rank > 0 ? graph_shard_of(g, target) : target;
	return g->failed;
}

void graph_warn_of_loss(const struct graph *g, const struct loss_spec *spec)
{
	struct tensor *out[LOSS_OUTPUTS];
	struct text hint = {0};
	int n;
	if (!spec->op || !spec->op->loss->unwanted || graph_loss_outputs(g, spec, &n, out) != ST_OK)
		return;
	const struct tensor *t = out[0];
	while (t->maker && t->maker->op->traits & OP_VIEW)
		t = t->maker->in[0];
	const struct node *maker = t->maker;
	if (!maker || maker->op->gives != spec->op->loss->unwanted)
		return;
	text_add(&hint, "--loss '%s:output=%s' reads that",
		spec->op->loss->instead ? spec->op->loss->instead : spec->op->loss->name,
		maker->in[0]->name);
	diag_warn(g->diag, &(struct where){g->file, out[0]->name, "output"}, hint.s,
		"is a %s of '%s', and the loss %s reads no probabilities",
		maker->op->gives == GIVES_SOFTMAX ? "softmax" : "sigmoid", maker->in[0]->name,
		spec->op->loss->name);
	text_free(&hint);
}

enum status graph_attach_loss(struct graph *g, const struct loss_spec *spec)
{
	struct loss_inputs in = {.nattr = spec->nattr, .attr = spec->attr};
	int noutput;
	if (spec->none)
		return make_step(g);
	TRY(graph_loss_outputs(g, spec, &noutput, in.output));
	if (!spec->op)
		return own_loss(g, in.output[0]);
	TRY(add_target(g, spec, &in));
	in.control = graph_control(g);
	TRY(g->failed);
	g->scope = "loss";
	TRY(build_loss(g, spec->op, &in));
	g->scope = NULL;
	return g->failed;
}
