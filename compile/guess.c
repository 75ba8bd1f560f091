#include "compile/guess.h"

#include <string.h>

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

/* The loss that an output is made for, as far as its shape tells; NULL: none. */
static const char *loss_for(const struct graph *g, const struct tensor *y)
{
	const int axis = y->rank == 3 ? 2 : 1; /* of the classes, as cross-entropy has it */
	if (!dtype_is_real(y->dtype))
		return NULL;
	if (y->rank == 0)
		return OWN;
	return y->rank > axis && y->dim[axis] > 1 && !is_like_an_input(g, y) ? "cross-entropy"
									     : "mse";
}

enum status guess_loss(struct pipeline *p)
{
	const struct graph *g = p->imported;
	const char *loss = NULL, **output = ARENA_ARRAY(p->arena, const char *, 2);
	struct loss_spec *spec = ARENA_NEW(p->arena, struct loss_spec);
	if (p->o->loss || !p->o->guess)
		return ST_OK;
	if (!output || !spec)
		return diag_nomem(p->diag);
	for (int i = 0; i < g->noutput; i++) {
		const char *fits = loss_for(g, g->output[i]);
		const bool own = fits && !strcmp(fits, OWN);
		if (!fits || (loss && (!own || !strcmp(loss, OWN))))
			continue;
		loss = fits; /* the first, or where the model has a loss that */
		output[0] = g->output[i]->name;
	}
	if (!loss)
		return ST_OK;
	const bool own = !strcmp(loss, OWN);
	const char *text = own ? arena_printf(p->arena, "output:%s", output[0])
			   : g->noutput > 1
				   ? arena_printf(p->arena, "%s:output=%s", loss, output[0])
				   : loss;
	if (!text)
		return diag_nomem(p->diag);
	TRY(losses_parse(
		p->arena, p->table, (const char *const[]){loss, NULL}, &p->losses, p->diag));
	*spec = p->losses.item[0];
	spec->output = output;
	p->losses.item = spec;
	diag_note(p->diag, &(struct where){.file = g->file},
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
