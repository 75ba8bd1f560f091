/* The facet of a record that is an optimizer. */
#ifndef STINT_GRAPH_OP_OPTIMIZER_H
#define STINT_GRAPH_OP_OPTIMIZER_H

#include "graph/op.h"

/* A state tensor of an optimizer. It starts as zeros. */
enum state_shape {
	STATE_WHOLE,   /* the parameter's */
	STATE_NUMBER,  /* one number */
	STATE_ROWS,    /* the parameter's, its last axis 1 */
	STATE_COLUMNS, /* the parameter's, its last axis but one 1 */
	STATE_CODES,   /* the parameter's, of bytes that stand for numbers */
	STATE_SCALES   /* a number for each OP_STATE_BLOCK elements */
};
struct op_state {
	const char *name;
	enum state_shape shape;
	bool exact;       /* never stored narrower than the parameter */
	bool positive;    /* STATE_CODES: never negative. The k-th of these goes with the k-th
			   * STATE_SCALES */
	const char *with; /* the option that wants it, by not being 0; NULL: it is always there */
};
static inline bool op_state_narrows(const struct op_state *s)
{
	return s->shape == STATE_WHOLE && !s->exact;
}
/* The last state of an update with this attribute, of any optimizer: the parameter's average over
 * the steps, of which the attribute's value is the decay. */
#define OP_AVERAGE "ema"
enum { OP_STATES = 5, OP_STATE_BLOCK = 256, OP_RULE_LINES = 10 };

/* A line of an optimizer's rule, "exp_avg = beta1 * exp_avg + (1 - beta1) * g": an expression as
 * graph/expr.h has it, and the name that stands for its value from then on. */
struct op_line {
	const char *name, *value;
};

/* What an update is made of. */
struct update_of {
	const struct tensor *param;
	/* Its value, or the piece of it that this process has; the same of its gradient; lr;
	 * control. */
	struct tensor *read[4];
	enum dtype state; /* what states of the parameter's shape are stored in; DT_F32: as it is */
	bool averaged;    /* the parameter's average is a state of it */
	int nattr;
	const struct attr *attr;
};
/* An optimizer by PyTorch's name on the command line ("adamw"); the record's `option` list holds
 * its options and defaults. Its node's inputs are (parameter, gradient, lr, control, state...) and
 * its outputs (parameter, state...). Where the gradient is absent, it is the outer product of the
 * last two inputs, a column and a row (graph/fuse_update.c), if the record is OP_BY_ELEMENT. */
struct op_optimizer {
	const char *name;
	/* What it keeps of a parameter: fewer than OP_STATES, ended by a NULL name. */
	const struct op_state *state;
	/* What an update does, by lines, at most OP_RULE_LINES and ended by a NULL name: C, CUDA,
	 * states of any precision and the reference of options come from them
	 * (codegen/update_loops.c). NULL: the record has kernels of its own.
	 *
	 * `once` is worked out in double precision, of options, lr, t (the steps so far and this
	 * one) and states that are one number; what `each` reads of it is rounded to a real. `each`
	 * is done for each element in reals, of these, options, the parameter p, its gradient g and
	 * the states; what is made of options and numbers alone is one constant. p and states take
	 * what is given to their names; a line that gives to a state that the node has not, or to a
	 * name that nobody reads, is left out, and so is the branch that an option alone does not
	 * choose: "amsgrad ? max_exp_avg_sq : exp_avg_sq".
	 *
	 * g is the gradient, or by option `maximize` its negative, with option `weight_decay` times
	 * p added to it; or, where `decoupled` or the option decoupled_weight_decay says so, p is
	 * shrunk by lr times it before. Where a line reads weight_decay, the lines do it all. */
	const struct op_line *once, *each;
	bool decoupled;
	/* Build the update of a parameter, where that is not one node of the record. */
	enum status (*build)(struct graph *g, const struct op_def *op, const struct update_of *u);
};
/* By its name; NULL: the record is no optimizer, or a part of one. */
static inline const char *op_optimizer(const struct op_def *op)
{
	return op->optimizer ? op->optimizer->name : NULL;
}
/* A node of an optimizer's record, with the states that the record names. */
enum status graph_update(
	struct graph *g, const struct op_def *op, const struct update_of *u, struct node **n);
/* The key of the numbers that a node's first state is rounded with, where it is narrow; the k-th
 * one's is k more. By the parameter, so that no plan and no other parameter has a part in it. */
static inline int64_t op_state_key(const struct node *n)
{
	return n->nin > 4 && dtype_is_narrow(n->in[4]->dtype) ? (int64_t)name_hash(n->in[4]->name)
							      : 0;
}
/* Whether a node of an optimizer has a state, by its options. */
bool node_has_state(const struct node *n, const struct op_state *s);

#endif
