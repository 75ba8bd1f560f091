#include "compile/guess.h"

#include <string.h>

#include "base/marked.h"

static const char OWN[] = "output"; /* a loss that the model computes */

/* What it has the shape of an input of is compared with that: an autoencoder's, a denoiser's. */
static bool is_like_an_input(const struct graph *g, const struct tensor *y)
{
	for (int i = 0; i < g->ninput; i++) {
		const struct tensor *x = g->input[i];
		if (dtype_is_real(x->dtype) && x->rank == y->rank &&
			!memcmp(x->dim, y->dim, (size_t)y->rank * sizeof *y->dim))
			return true;
	}
	return false;
}

/* By its shape alone. */
static const char *loss_for_shape(const struct graph *g, const struct tensor *y)
{
	const int axis = y->rank == 3 ? 2 : 1; /* of the classes, as cross-entropy has it */
	return y->rank == 0                                                    ? OWN
	       : y->rank > axis && y->dim[axis] > 1 && !is_like_an_input(g, y) ? "cross-entropy"
									       : "mse";
}

/* Some parameter is among what y is computed from. */
static enum status is_trained(
	const struct pipeline *p, const struct graph *g, const struct tensor *y, bool *out)
{
	bool *needed = ARENA_ARRAY(p->arena, bool, g->ntensor);
	if (!needed)
		return diag_nomem(p->diag);
	needed[y->id] = true;
	*out = y->role == TR_PARAMETER;
	for (int i = g->nnode - 1; i >= 0 && !*out; i--) {
		const struct node *n = g->node[i];
		bool makes = false;
		for (int k = 0; k < n->nout; k++)
			makes |= n->out[k] && needed[n->out[k]->id];
		for (int k = 0; makes && k < n->nin; k++)
			if (n->in[k]) {
				needed[n->in[k]->id] = true;
				*out |= n->in[k]->role == TR_PARAMETER;
			}
	}
	return ST_OK;
}

struct guess {
	const char *loss;            /* NULL: no output is made for one */
	const struct tensor *output; /* that it reads, or is */
	bool inside;                 /* which is no output of the model: what a softmax reads */
};

/* The loss that output y is made for, as far as its maker and its shape tell. Probabilities are
 * left to the loss, which has them of the scores before them more exactly. */
static void guess_for(const struct graph *g, const struct tensor *y, struct guess *out)
{
	const struct node *maker = loss_maker(y);
	const enum op_gives gives = maker && y->rank ? maker->op->gives : GIVES_ANYTHING;
	out->inside = gives == GIVES_SOFTMAX || gives == GIVES_SIGMOID;
	out->output = out->inside ? maker->in[0] : y;
	out->loss = gives == GIVES_SOFTMAX       ? "cross-entropy"
		    : gives == GIVES_SIGMOID     ? "bce-with-logits"
		    : gives == GIVES_LOG_SOFTMAX ? "nll"
						 : loss_for_shape(g, y);
}

/* The first output that is trained, or where the model has a loss that. Lowered, the graph has a
 * softmax where the model may spell it out. */
static enum status find(const struct pipeline *p, struct guess *out)
{
	const struct lower_options lower = pipeline_lowering(p->o);
	struct graph *g;
	*out = (struct guess){0};
	TRY(graph_lower(p->imported, &lower, &g));
	for (int i = 0; i < g->noutput; i++) {
		const struct tensor *y = g->output[i];
		bool trained = false;
		if (!dtype_is_real(y->dtype) || (out->loss && (y->rank || !out->output->rank)))
			continue;
		TRY(is_trained(p, g, y, &trained));
		if (trained)
			guess_for(g, y, out);
	}
	return ST_OK;
}

/* As --loss would say it. */
static const char *text_of_guess(const struct pipeline *p, const struct guess *x)
{
	if (x->loss != OWN && !x->inside && p->imported->noutput == 1)
		return x->loss;
	const char *name = marked_write(p->arena, x->output->name);
	return name ? arena_printf(
			      p->arena, x->loss == OWN ? "%s:%s" : "%s:output=%s", x->loss, name)
		    : NULL;
}

static enum status none_given(const struct pipeline *p, const char *text)
{
	static const char otherwise[] = "--loss none plans the forward pass only";
	return diag_fail(p->diag, ST_USAGE, &(struct where){.file = p->imported->file},
		text ? arena_printf(p->arena, "--loss %s fits the outputs; %s", text, otherwise)
		     : otherwise,
		"no --loss given");
}

/* What the loss reads becomes an output, as if it had been asked for by name. */
static enum status add_output(const struct pipeline *p, const char *name)
{
	struct graph *g = p->imported;
	struct tensor **list = ARENA_ARRAY(p->arena, struct tensor *, g->noutput + 1);
	if (!list)
		return diag_nomem(p->diag);
	for (int i = 0; i < g->noutput; i++) {
		list[i] = g->output[i];
		if (!strcmp(list[i]->name, name))
			return ST_OK;
	}
	for (int i = 0; i < g->ntensor && g->output != list; i++)
		if (g->tensor[i]->maker && !strcmp(g->tensor[i]->name, name)) {
			list[g->noutput++] = g->tensor[i];
			g->output = list;
		}
	return ST_OK;
}

enum status guess_loss(struct pipeline *p)
{
	struct guess x;
	const char *text = NULL;
	if (p->o->loss)
		return ST_OK;
	TRY(find(p, &x));
	if (x.loss && !(text = text_of_guess(p, &x)))
		return diag_nomem(p->diag);
	if (!text || !p->o->guess)
		return none_given(p, text);
	TRY(losses_parse(
		p->arena, p->table, (const char *const[]){text, NULL}, &p->losses, p->diag));
	if (x.inside)
		TRY(add_output(p, x.output->name));
	diag_note(p->diag, &(struct where){.file = p->imported->file},
		"--loss NAME plans for another, --loss none for the forward pass",
		"no --loss given: planned for --loss %s", text);
	return ST_OK;
}

const char *guess_optimizer(const struct pipeline *p)
{
	if (p->o->optimizer || !p->o->guess)
		return p->o->optimizer;
	diag_note(p->diag, NULL, "--optimizer sgd, for example, has less state",
		"no --optimizer given: planned for --optimizer adamw");
	return "adamw";
}
