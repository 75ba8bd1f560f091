/* From an imported graph to one that can be planned: the passes (graph/pass.h) in their order. */
#ifndef STINT_COMPILE_GRAPHS_H
#define STINT_COMPILE_GRAPHS_H

#include "graph/pass.h"

/* What a graph may be looked at after. */
enum stage {
	STAGE_IMPORT,
	STAGE_LOWER,
	STAGE_LOSS,
	STAGE_AUTODIFF,
	STAGE_UPDATES,
	STAGE_LAYOUT,
	STAGE_NARROW,
	STAGE_FUSE,
	STAGE_NONE
};

struct graph_options {
	struct lower_options lower;             /* its mode is set here */
	const struct loss_list *losses;         /* NULL: none, and no step made for that */
	const struct optimizer_spec *optimizer; /* of training */
	int64_t shards, rows; /* micro-batches of a step, and rows of one; 0: none */
	int64_t ranks;        /* processes that train; 0: any number up to the shards */
	bool pieces;          /* of these, each has a piece of the optimizer's states... */
	int64_t share_least;  /* ... and of parameters of so many bytes; 0: none */
	const char *const *input_gradient; /* inputs by which gradients are kept; NULL: none */
	bool no_outputs;
	bool scale_loss; /* graph_scale_loss */
	bool fuse, everywhere;
	enum store frozen;     /* graph_store_frozen's */
	enum dtype narrow;     /* graph_narrow's type; DT_F32: not done */
	unsigned narrow_flags; /* enum narrow_flag; NARROW_OUTPUTS is training's anyway */
	const char *untrained; /* what may help where the loss depends on no parameter; NULL */
	/* In the place of a loss, for tests: sets g->loss. NULL */
	enum status (*attach)(void *user, struct graph *g);
	/* Called with the graph after each stage; NULL */
	void (*dump)(void *user, enum stage stage, const struct graph *g);
	void *user;
};

/* Forward, backward and updates. Requires a loss, or `attach`. */
enum status graphs_train(
	const struct graph *imported, const struct graph_options *o, struct graph **out);
/* The forward pass and, where there is one, the loss; for training's behaviour of records as it is
 * for evaluation's. */
enum status graphs_forward(const struct graph *imported, const struct graph_options *o,
	enum lower_mode mode, struct graph **out);

#endif
