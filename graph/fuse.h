/* Shared by fuse.c, which decides what is fused, and fuse_group.c, which makes the nodes. */
#ifndef STINT_GRAPH_FUSE_H
#define STINT_GRAPH_FUSE_H

#include "graph/op.h"

/* Ways to run a fused node, at most. */
enum { FUSED_WAYS = 8 };

enum inlined {
	INLINE_NOT,
	INLINE_ALL, /* the value is made by each of its readers */
	INLINE_ONE, /* by its one reader; ways that read it otherwise are dropped */
};

struct fuse {
	struct graph *g;
	/* Who reads tensor t: reader[first[t]] ... reader[first[t + 1]). */
	int *first;
	struct fuse_reader {
		int node, way; /* way 0: its inputs; else alternative way - 1 */
	} * reader;
	bool *kept;   /* by tensor: an output or the loss */
	int *updated; /* by tensor: the first node that may overwrite it; nnode: none */
	/* By node. */
	enum inlined *mode;
	int *ninput, *nstage; /* of what is fused into it so far, at least */
	int *place;           /* where in the order it runs */
	double *work;         /* operations an element */
};

/* Updates make the gradients that are outer products themselves. */
enum status fuse_updates(struct graph *g);
/* A pointwise node that can be a stage. */
bool fuse_can(const struct node *n);
/* The inlined node behind `t` as `reader` reads it; NULL: t is stored. */
struct node *fuse_maker(const struct fuse *f, const struct node *reader, const struct tensor *t);
/* What takes the place of n and of everything inlined into it; n itself, without the ways that are
 * no more, where nothing is. */
enum status fuse_group(const struct fuse *f, struct node *n, struct node **out);

#endif
