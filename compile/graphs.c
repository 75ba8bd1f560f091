#include "compile/graphs.h"

#include "graph/loop.h"
#include "graph/slices.h"

static void dump(const struct graph_options *o, enum stage stage, const struct graph *g)
{
	if (o->dump)
		o->dump(o->user, stage, g);
}

static enum status lowered(const struct graph *imported, const struct graph_options *o,
	enum lower_mode mode, struct graph **g)
{
	struct lower_options lower = o->lower;
	lower.mode = mode;
	struct graph *shard = NULL;
	if (o->shards)
		TRY(graph_shard(imported, o->shards, o->rows, mode == LOWER_TRAIN, &shard));
	TRY(graph_lower(shard ? shard : imported, &lower, g));
	dump(o, STAGE_LOWER, *g);
	if ((*g)->target->cuda && !graph_control(*g)) /* kernels tell there of bad indices */
		return (*g)->failed;
	return ST_OK;
}

/* The loss; what is large in pieces, in training and, without outputs, in evaluation too. */
static enum status with_loss(const struct graph_options *o, bool whole, struct graph **g)
{
	if (o->attach)
		return o->attach(o->user, *g);
	TRY(graph_attach_losses(*g, o->losses));
	dump(o, STAGE_LOSS, *g);
	if (o->no_outputs)
		(*g)->noutput = 0;
	return whole ? ST_OK : graph_chunk(*g, g);
}

/* What runs in each turn of loops that are one node: as in the step, but that layouts and types are
 * as they come. */
static enum status bodies_of(const struct graph_options *o, struct graph *g)
{
	for (int i = 0; i < g->nnode; i++) {
		struct loop *l = node_loop(g->node[i]);
		for (int b = 0; l && b < l->nbody; b++) {
			TRY(graph_add_inside(l->body[b].graph));
			if (o->fuse)
				TRY(graph_fuse(l->body[b].graph));
		}
		if (l)
			TRY(loop_settle(g, g->node[i]));
		for (int b = 0; l && b < l->nbody; b++)
			graph_choose(l->body[b].graph, g->target->math);
	}
	return ST_OK;
}

/* Layouts, frozen weights, precision, slices, fusion, what is in a file or in pieces, and which way
 * each node is computed. */
static enum status kernels_of(const struct graph_options *o, unsigned flags, struct graph **g)
{
	const struct target *t = (*g)->target;
	if (t->block != 0 && (*g)->real == DT_F32) {
		TRY(graph_layout(*g, t->block, o->everywhere, g));
		dump(o, STAGE_LAYOUT, *g);
	}
	if (o->frozen != STORE_AS_IS || (graph_has_stored(*g) && !t->bare))
		TRY(graph_store_frozen(*g, o->frozen, g));
	if (o->narrow != DT_F32) {
		TRY(graph_narrow(*g, o->narrow, o->narrow_flags | flags, g));
		dump(o, STAGE_NARROW, *g);
	}
	if ((*g)->sliced)
		TRY(graph_slice_by_slice(*g, g));
	if (!t->bare)
		TRY(graph_add_inside(*g));
	if (o->fuse) {
		TRY(graph_fuse(*g));
		dump(o, STAGE_FUSE, *g);
	}
	TRY(graph_keep_either(*g));
	TRY(bodies_of(o, *g));
	if (t->away)
		TRY(graph_put_away(*g, g));
	if (o->share_least && (*g)->ranks > 1)
		TRY(graph_share_parameters(*g, o->share_least, g));
	graph_choose(*g, t->math);
	return graph_name_constants(*g);
}

enum status graphs_train(
	const struct graph *imported, const struct graph_options *o, struct graph **out)
{
	int nparam;
	struct tensor **param, **grad;
	struct kept_inputs kept;
	TRY(lowered(imported, o, LOWER_TRAIN, out));
	if (o->ranks)
		TRY(graph_set_ranks(*out, o->ranks, o->pieces, o->optimizer));
	if (o->losses)
		graph_warn_of_losses(*out, o->losses);
	TRY(with_loss(o, false, out));
	if (o->scale_loss)
		TRY(graph_scale_loss(*out));
	TRY(kept_inputs_find(*out, o->input_gradient, &kept));
	TRY(graph_autodiff(*out, o->untrained, &kept, &nparam, &param, &grad));
	TRY(graph_accumulate(*out, o->optimizer, nparam, param, grad));
	TRY(kept_inputs_keep(*out, &kept, grad + nparam));
	dump(o, STAGE_AUTODIFF, *out);
	TRY(graph_attach_updates(*out, o->optimizer, nparam, param, grad));
	dump(o, STAGE_UPDATES, *out);
	return kernels_of(o, NARROW_OUTPUTS, out);
}

enum status graphs_forward(const struct graph *imported, const struct graph_options *o,
	enum lower_mode mode, struct graph **out)
{
	static const struct loss_list none;
	struct graph_options alone = *o;
	TRY(lowered(imported, o, mode, out));
	if (o->share_least) /* the residents are training's */
		(*out)->ranks = o->ranks;
	if (o->losses && o->losses->n && o->losses->item[0].outside)
		alone.losses = &none; /* an evaluation has no loss then */
	if (o->losses)
		TRY(with_loss(&alone, !o->no_outputs, out));
	TRY(graph_prune(*out));
	return kernels_of(&alone, 0, out);
}
