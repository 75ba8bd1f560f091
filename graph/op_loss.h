/* The facet of a record that is a loss. */
#ifndef STINT_GRAPH_OP_LOSS_H
#define STINT_GRAPH_OP_LOSS_H

#include "graph/op.h"

/* What a loss is made of. */
/* That a loss reads at most: a record of three, the caller's of all these. */
enum { LOSS_OUTPUTS = 16 };

/* Of a ROLE_OUTSIDE node: what the model calls its inputs. */
struct outside_loss {
	const char *name[LOSS_OUTPUTS];
};
struct loss_inputs {
	/* Of the model, as many as the record reads; behind them the one that it is compared with
	 * in place of a target. */
	struct tensor *output[LOSS_OUTPUTS];
	struct tensor *target, *control; /* target NULL: it has none */
	int nparameter;                  /* of a penalty of these alone */
	struct tensor *const *parameter;
	struct tensor *whole; /* the target of the whole batch; `target` but in micro-batches */
	int nattr;
	const struct attr *attr;
};

typedef enum status loss_build(struct graph *g, const struct op_def *op,
	const struct loss_inputs *in, struct tensor **loss);

/* A loss by PyTorch's name on the command line ("cross-entropy"); the record's `option` list holds
 * its options and defaults. Its node's inputs are (model output, target, control). */
struct op_loss {
	const char *name;
	int outputs;   /* of the model's, as many as it reads; 0 stands for 1 */
	bool together; /* each term is of all samples of a batch: no micro-batches */
	/* What it does not want of the model: a warning then names the tensor before that, and the
	 * loss that reads it (NULL: this one). */
	enum op_gives unwanted, unwanted_against;
	const char *instead;
	/* Shape and type of the target that it wants for the first of the outputs; NULL: it has
	 * none. */
	enum status (*target)(struct graph *g, const struct tensor *output, int nattr,
		const struct attr *attr, enum dtype *type, int *rank, int64_t *dim);
	/* Build it; where g->shards_differ, a micro-batch's part of the whole batch's (g->shards of
	 * them). NULL: one node of the record, and no micro-batches. */
	loss_build *build;
	/* The same of one output against another one, which is the target then; NULL: it is
	 * compared with a target alone. */
	loss_build *against;
	/* The same of parameters, whole in each micro-batch; NULL: it is of outputs. */
	loss_build *parameters;
};

/* By its name; NULL: the record is no loss. */
static inline const char *op_loss(const struct op_def *op)
{
	return op->loss ? op->loss->name : NULL;
}

#endif
