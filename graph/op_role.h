/* The roles of records: what core code may ask the table for, without knowing names. */
#ifndef STINT_GRAPH_OP_ROLE_H
#define STINT_GRAPH_OP_ROLE_H

enum op_role {
	ROLE_NONE,
	ROLE_ADD,        /* two inputs: adds gradients that meet */
	ROLE_RESHAPE,    /* input 1: the shape, a constant */
	ROLE_EXPAND,     /* input 1: the shape that it is repeated to, a constant */
	ROLE_SLICE,      /* attributes starts, ends, axes */
	ROLE_SPLIT,      /* as many outputs as asked for, attribute axis */
	ROLE_CONCAT,     /* attribute axis */
	ROLE_JOIN,       /* a part, and what the others so far were joined to (absent: this is the
			    first); attributes at, rows: the part's first row, and all rows */
	ROLE_REDUCE_SUM, /* attributes axes, keepdims */
	ROLE_COPY,       /* an identity that is executed */
	ROLE_IDENTITY,   /* an identity as files spell it */
	ROLE_CAST,       /* the same numbers in another type, as files spell it */
	ROLE_CONSTANT,   /* a value as files spell it */
	ROLE_BRANCH, /* a condition of one BOOL, and when it is there to be read (absent: always):
			when the nodes of either branch run, that of the condition first */
	ROLE_CHOOSE, /* one BOOL, two values: the first where it is true, else the second, of which
			the other one is not read; one that is absent is zeros */
	ROLE_ADD_WHEN, /* one BOOL, two values: their sum where it is true, else the first */
	ROLE_EITHER, /* when a branch runs; what it makes, and the other one, of one type, which has
			no more elements: the first's elements or the second's, in the first's shape
		      */
	ROLE_PART,   /* attribute shape: a view of so many of its first elements in that shape */
	ROLE_STOP,   /* an identity through which no gradient passes */
	ROLE_BUFFER, /* a buffer of the model, and the value that it has after the step */
	ROLE_TRANSPOSE,  /* without attributes: axes in reverse */
	ROLE_DROPOUT,    /* as files spell it: a ratio and whether it trains, constants; attribute
			    key: whose random numbers */
	ROLE_MUL,        /* two inputs, broadcast */
	ROLE_CLAMP,      /* attributes min, max */
	ROLE_LOOKUP,     /* of rows of input 0 by the indices in input 1; attribute padding_idx: a
			    row that no gradient reaches */
	ROLE_FUSED,      /* several pointwise nodes in one: param is a struct fused */
	ROLE_CLIP_SCALE, /* any number of gradients, attribute max_norm: the factor (rank 0) to
			    scale them by */
	ROLE_LOSS_SCALE, /* the state loss_scale: the loss's gradient, and what to multiply
			    gradients by */
	ROLE_LOSS_SCALE_CHECK,  /* loss_scale, control, gradients: control for the updates */
	ROLE_LOSS_SCALE_UPDATE, /* loss_scale, that control: loss_scale for the next step */
	ROLE_SHARD,      /* the whole batch, control; attribute shards: the rows of the shard that
			    control      names */
	ROLE_ACCUMULATE, /* a value, control, sums: the sum over all shards, in the last; and the
			    sums */
	ROLE_START_SUM,  /* in the last shard that a process does: that, control, the sums: that, on
			    its way to other processes, and room for what comes from them;
			    attributes shards, whole (0: a ROLE_SCATTER_SUM follows) */
	ROLE_SUM_RANKS,  /* both of these: the sum over all processes */
	ROLE_KEEP_ROWS,  /* a value, control, all shards' rows of it; attribute shards: these, with
			    those of the shard that control names; in the last, those of all
			    processes are on their way */
	ROLE_SHARE_ROW,  /* a value, of which each process, having one shard, has one; attribute
			    shards: those of all, which are on their way */
	ROLE_TAKE_ROWS,  /* in the last shard, all of either's rows; attributes first, count: so
			    many of them, when they are there */
	/* Of g->ranks processes each has one piece of a tensor's elements, in a vector of so many
	 * as the largest has, zeros behind its end; attribute ranks: */
	ROLE_SCATTER_SUM,   /* as ROLE_SUM_RANKS, but of the sum its piece alone */
	ROLE_OWN_PIECE,     /* of a tensor its piece; what is to be there before */
	ROLE_GATHER_PIECES, /* a parameter, its piece of what that will be: all of it */
	ROLE_FETCH_PIECES,  /* a parameter of which each process has a piece (tensor.piece_of): all
			       of it, in its shape */
	ROLE_WIDEN,         /* small numbers, scales, zeros (may be absent); attributes shape and
			       those of stored_attributes: the real numbers */
	ROLE_WIDEN_SCALES, /* scales in 8 bits, their coarse scales; attribute offset: the scales */
	ROLE_UPDATE_END,   /* of an update of several nodes the one that makes the parameter; the
			      first of them reads its gradient */
	/* Of a tensor that is not in memory (tensor.away): */
	ROLE_FETCH, /* it, what is to be there before (absent: nothing), and what stands for its
		       pieces: its elements. Attributes from, count: of these a vector of so many */
	ROLE_STORE, /* it, and what its elements will be: nothing, in its place. With from, count:
		       what stands for the piece, what will be in that, and it */
	ROLE_PIECE, /* a gradient, and the parameter that it is of, which is not read; from, count:
		       so many of its elements */
	ROLE_KEEP_GRADIENT, /* a parameter or an input, which is not read, and its gradient: that,
			       which stays until the next step */
	ROLE_OUTSIDE, /* outputs of the model: a loss that the caller computes of them, a scalar,
			 and its gradients by each of them */
	ROLE_LOOP,    /* param is a struct loop (graph/loop.h): the turns of a loop... */
	ROLE_LOOP_GRADIENT, /* ...and their backward pass */
	ROLE_COUNT
};

#endif
