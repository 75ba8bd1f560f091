/* The losses at the graph's end, and their sum. */
#include <string.h>

#include "graph/graph_parts.h"
#include "graph/pass.h"

static enum status ambiguous(const struct graph *g, int wanted)
{
	static const char *const hint[] = {"add :output=NAME to the loss",
		"add :output=FIRST;SECOND to the loss",
		"add :output=FIRST;SECOND;THIRD to the loss"};
	const int known = sizeof hint / sizeof *hint;
	struct text names = {0};
	for (int i = 0; i < g->noutput; i++)
		text_add(&names, "%s%s", i ? ", " : "", g->output[i]->name);
	enum status st = diag_fail(g->diag, ST_USAGE, &(struct where){.file = g->file},
		g->noutput < wanted || wanted > known ? NULL : hint[wanted - 1],
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

/* The caller's reads those that are named, or all. */
static int outputs_wanted(const struct graph *g, const struct loss_spec *spec)
{
	if (spec->outside && (spec->output || g->noutput))
		return spec->output ? list_length(spec->output) : g->noutput;
	return spec->op && spec->op->loss->outputs && !spec->against ? spec->op->loss->outputs : 1;
}

static enum status find_output(
	const struct graph *g, const char *name, const char *hint, struct tensor **out)
{
	*out = named_output(g, name);
	return *out ? ST_OK
		    : diag_fail(g->diag, ST_USAGE, &(struct where){.file = g->file}, hint,
			      "the model has no output '%s'", name);
}

enum status graph_loss_outputs(const struct graph *g, const struct loss_spec *spec, int *n,
	struct tensor *out[LOSS_OUTPUTS])
{
	const int wanted = spec->parameter ? 0 : outputs_wanted(g, spec);
	const int given = list_length(spec->output);
	*n = wanted;
	if (spec->parameter)
		return ST_OK;
	if (wanted > LOSS_OUTPUTS)
		return diag_fail(g->diag, ST_USAGE, NULL, NULL,
			"--loss outside: more than %d outputs", LOSS_OUTPUTS);
	if (!spec->output && g->noutput != wanted)
		return ambiguous(g, wanted);
	for (int i = 0; i < wanted; i++) {
		const char *name = i < given ? spec->output[i] : "";
		if (!spec->output)
			out[i] = g->output[i];
		else if (find_output(g, name, NULL, &out[i]) != ST_OK)
			return ambiguous(g, wanted);
	}
	if (spec->against)
		TRY(find_output(g, spec->against, "`stint show MODEL.onnx` lists the outputs",
			&out[(*n)++]));
	return given > wanted ? ambiguous(g, wanted) : ST_OK;
}

static enum status own_loss(struct graph *g, struct tensor *y, struct tensor **loss)
{
	char shape[200];
	if (y->numel != 1 || !dtype_is_real(y->dtype))
		return diag_fail(g->diag, ST_INVALID,
			&(struct where){.file = g->file, .node = y->name},
			"name a loss, as in --loss cross-entropy",
			"is no scalar loss: its shape is %s", tensor_shape_text(y, shape));
	*loss = y;
	if (!g->shards_differ)
		return ST_OK;
	/* a mean: each micro-batch has its share */
	*loss = OP2(
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

static enum status build_loss(struct graph *g, const struct op_def *op, loss_build *build,
	const struct loss_inputs *in, struct tensor **loss)
{
	if (g->shards_differ && (!build || op->loss->together))
		return diag_fail(g->diag, ST_USAGE, NULL, NULL,
			"--micro-batch: stint cannot take the loss %s of a batch in parts",
			op->loss->name);
	if (build) {
		TRY(build(g, op, in, loss));
		return g->failed;
	}
	*loss = graph_op(g, op->name, 3,
		(struct tensor *[]){in->output[0], in->target, in->control}, in->nattr, in->attr);
	return g->failed;
}

/* Losses that name one target compare with the same values. */
static enum status share_target(struct graph *g, const struct loss_spec *spec,
	const struct tensor *has, const struct tensor *wants)
{
	char a[200], b[200];
	return has->dtype == wants->dtype && tensor_same_shape(has, wants)
		       ? ST_OK
		       : diag_fail(g->diag, ST_USAGE, &(struct where){.file = g->file},
				 "target=NAME gives it one of its own",
				 "the losses compare '%s' with other values: %s wants %s %s, "
				 "others "
				 "before it %s %s",
				 spec->target, spec->name, dtype_name(wants->dtype),
				 tensor_shape_text(wants, a), dtype_name(has->dtype),
				 tensor_shape_text(has, b));
}

/* Of the targets so far the one that a loss names; NULL: there is none. */
static struct tensor *known_target(const struct graph *g, const struct loss_spec *spec)
{
	for (int i = 0; i < g->nterm; i++)
		if (g->term[i].target && !strcmp(g->term[i].target->name, spec->target))
			return g->term[i].target;
	return NULL;
}

/* Data are given by name. */
static enum status check_target_name(const struct graph *g, const struct loss_spec *spec)
{
	for (int i = 0; spec->target && i < g->ninput; i++)
		if (!strcmp(g->input[i]->name, spec->target))
			return diag_fail(g->diag, ST_USAGE, &(struct where){.file = g->file},
				"target=NAME calls it otherwise",
				"the target of the loss %s is called as the model's input '%s'",
				spec->name, spec->target);
	return ST_OK;
}

/* Another output in the target's place; no gradient passes there, unless asked for. */
static enum status add_against(
	struct graph *g, const struct loss_spec *spec, struct loss_inputs *in)
{
	char a[200], b[200];
	const struct tensor *x = in->output[0], *t = in->output[1];
	const struct where w = {g->file, t->name, "tensor"};
	enum dtype type;
	int rank;
	int64_t dim[RANK_MAX];
	if (spec->op->loss->target)
		TRY(spec->op->loss->target(g, x, spec->nattr, spec->attr, &type, &rank, dim));
	if (x == t)
		return diag_fail(g->diag, ST_USAGE, &w, "against=NAME is another output",
			"the loss %s compares it with itself", spec->name);
	if (!tensor_same_shape(x, t) || x->dtype != g->real || t->dtype != g->real)
		return diag_fail(g->diag, ST_INVALID, &w, "it compares numbers of one shape",
			"is %s %s, where '%s', which the loss %s compares with it, is %s %s",
			dtype_name(t->dtype), tensor_shape_text(t, a), x->name, spec->name,
			dtype_name(x->dtype), tensor_shape_text(x, b));
	in->target = spec->attached ? in->output[1]
				    : OP1(g, op_by_role(g->table, ROLE_STOP)->name, in->output[1]);
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
	struct tensor *target = known_target(g, spec);
	if (target) {
		struct tensor wants = {.dtype = type, .rank = rank};
		memcpy(wants.dim, dim, sizeof dim);
		TRY(share_target(g, spec, target, &wants));
	} else {
		TRY(check_target_name(g, spec));
		target = graph_tensor(g, spec->target ? spec->target : "target", type, rank, dim);
		if (!target)
			return g->failed;
		target->role = TR_INPUT;
		TRY(add_input(g, target));
	}
	in->whole = target;
	in->target = g->shards && rank > 0 ? graph_shard_of(g, target) : target;
	return g->failed;
}

const struct node *loss_maker(const struct tensor *t)
{
	while (t->maker && t->maker->op->traits & OP_VIEW)
		t = t->maker->in[0];
	return t->maker;
}

static void warn_of_output(const struct graph *g, const struct loss_spec *spec,
	const struct tensor *out, const char *key, enum op_gives unwanted)
{
	struct text hint = {0};
	const struct node *maker = loss_maker(out);
	if (!maker || maker->op->gives != unwanted)
		return;
	text_add(&hint, "--loss '%s:%s=%s' reads that",
		spec->op->loss->instead ? spec->op->loss->instead : spec->op->loss->name, key,
		maker->in[0]->name);
	diag_warn(g->diag, &(struct where){g->file, out->name, "output"}, hint.s,
		"is a %s of '%s', and the loss %s reads no probabilities",
		maker->op->gives == GIVES_SOFTMAX ? "softmax" : "sigmoid", maker->in[0]->name,
		spec->op->loss->name);
	text_free(&hint);
}

static void warn_of_loss(const struct graph *g, const struct loss_spec *spec)
{
	struct tensor *out[LOSS_OUTPUTS];
	int n;
	const struct op_loss *loss = spec->op ? spec->op->loss : NULL;
	const enum op_gives unwanted = !loss           ? GIVES_ANYTHING
				       : spec->against ? loss->unwanted_against
						       : loss->unwanted;
	if (unwanted == GIVES_ANYTHING || spec->parameter ||
		graph_loss_outputs(g, spec, &n, out) != ST_OK)
		return;
	warn_of_output(g, spec, out[0], "output", unwanted);
	if (spec->against)
		warn_of_output(g, spec, out[1], "against", unwanted);
}

void graph_warn_of_losses(const struct graph *g, const struct loss_list *losses)
{
	for (int i = 0; i < losses->n; i++)
		warn_of_loss(g, &losses->item[i]);
}

/* All that are trained and of such a name. */
static enum status take_parameters(
	struct graph *g, const struct loss_spec *spec, struct loss_inputs *in)
{
	struct tensor **fits = ARENA_ARRAY(g->arena, struct tensor *, g->ntensor);
	const char **name = ARENA_ARRAY(g->arena, const char *, g->ntensor);
	int n = 0;
	if (!fits || !name)
		return diag_nomem(g->diag);
	for (int i = 0; i < g->ntensor; i++) {
		struct tensor *t = g->tensor[i];
		if (t->role != TR_PARAMETER || !dtype_is_real(t->dtype))
			continue;
		name[n++] = t->name;
		if (name_fits(spec->parameter, t->name))
			fits[in->nparameter++] = t;
	}
	in->parameter = fits;
	return in->nparameter ? ST_OK
			      : no_parameter_fits(g,
					arena_printf(g->arena, "--loss %s: parameter", spec->name),
					spec->parameter, n, name);
}

static enum status take_target(
	struct graph *g, const struct loss_spec *spec, struct loss_inputs *in)
{
	return spec->parameter ? take_parameters(g, spec, in)
	       : spec->against ? add_against(g, spec, in)
			       : add_target(g, spec, in);
}

static loss_build *builder_of(const struct loss_spec *spec)
{
	const struct op_loss *loss = spec->op->loss;
	return spec->parameter ? loss->parameters : spec->against ? loss->against : loss->build;
}

/* What the caller computes of these. */
static enum status outside_loss(
	struct graph *g, int n, struct tensor *const *y, struct tensor **value)
{
	struct outside_loss *o = ARENA_NEW(g->arena, struct outside_loss);
	struct node *node;
	if (!o)
		return diag_nomem(g->diag);
	for (int i = 0; i < n; i++)
		o->name[i] = y[i]->name;
	TRY(graph_node(g, op_by_role(g->table, ROLE_OUTSIDE)->name, "outside", n, y, 1 + n, 0, NULL,
		o, &node));
	*value = node->out[0];
	return g->failed;
}

static enum status attach_loss(
	struct graph *g, const struct loss_spec *spec, const char *scope, struct loss_term *out)
{
	struct loss_inputs in = {.nattr = spec->nattr, .attr = spec->attr};
	int noutput;
	*out = (struct loss_term){0};
	TRY(graph_loss_outputs(g, spec, &noutput, in.output));
	if (spec->outside)
		return outside_loss(g, noutput, in.output, &out->value);
	if (!spec->op)
		return own_loss(g, in.output[0], &out->value);
	TRY(take_target(g, spec, &in));
	out->target = in.whole;
	in.control = graph_control(g);
	TRY(g->failed);
	g->scope = scope;
	TRY(build_loss(g, spec->op, builder_of(spec), &in, &out->value));
	g->scope = NULL;
	return g->failed;
}

/* The next one's part in the sum of those before it. */
static enum status add_to_sum(struct graph *g, double weight, struct tensor *value)
{
	g->scope = "loss";
	if (weight != 1)
		value = OP2(
			g, op_by_role(g->table, ROLE_MUL)->name, value, graph_scalar(g, weight));
	g->loss = g->loss ? OP2(g, op_by_role(g->table, ROLE_ADD)->name, g->loss, value) : value;
	g->scope = NULL;
	return g->failed;
}

enum status graph_attach_losses(struct graph *g, const struct loss_list *losses)
{
	if (!losses->n)
		return make_step(g);
	g->term = ARENA_ARRAY(g->arena, struct loss_term, losses->n);
	if (!g->term)
		return diag_nomem(g->diag);
	for (int i = 0; i < losses->n; i++) {
		const struct loss_spec *spec = &losses->item[i];
		const char *scope = losses->n == 1 ? "loss"
						   : arena_printf(g->arena, "loss/%s", spec->name);
		if (!scope)
			return diag_nomem(g->diag);
		TRY(attach_loss(g, spec, scope, &g->term[i]));
		g->nterm++;
	}
	for (int i = 0; i < losses->n; i++)
		TRY(add_to_sum(g, losses->item[i].weight, g->term[i].value));
	return g->failed;
}
