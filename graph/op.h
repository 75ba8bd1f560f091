/* The operator record: everything the program knows of one operator, in one place. A family file in
 * ops/ holds an array of these, ended by an empty one; ops/all.c lists the families.
 *
 * How to write one: docs/howto/add-an-operator.md. */
#ifndef STINT_GRAPH_OP_H
#define STINT_GRAPH_OP_H

#include "graph/graph.h"
#include "runtime/stint_call.h"

struct emit; /* codegen/emit.h */

struct op_cost {
	double flops; /* floating-point operations */
	double bytes; /* read and written */
};

/* Output `out` may be written over input `in`: element i of the output is stored after every read
 * of element i of the input and no other element of it is read later. */
struct op_pair {
	int out, in;
};

enum op_trait {
	OP_VIEW = 1,      /* output 0 is input 0's bytes under another shape: never executed */
	OP_POINTWISE = 2, /* output 0 from `expr`, inputs broadcast; infer, fold, cost, pairs, C
			     come by themselves */
	OP_ONCE = 4,      /* runs exactly once a step (running statistics) */
	OP_UPDATE = 8,    /* an update: its pairs overwrite residents; implies OP_ONCE */
	OP_CHECKED =
		16,   /* the kernel returns a status: it reads indices that may be out of range */
	OP_STOP = 32, /* the gradient legitimately stops here (comparisons, integer outputs, shapes)
		       */
	OP_BOOL = 64, /* OP_POINTWISE: the output is DT_BOOL */
	OP_ALIKE = 128, /* what narrow_in and narrow_out name has one type in all: elements that are
			   moved, whatever they are */
	OP_PRODUCT = 256,      /* rounds its operands (narrow_in) where precision is reduced */
	OP_OWN_PRODUCT = 1024, /* its text multiplies matrices: most of its flops are that */
	OP_EXACT = 512,   /* its gradient looks for the inputs among the outputs: these stay real */
	OP_PLACED = 2048, /* where it runs in slices of the batch, attributes slice and slices tell
			     which this is, and of how many */
	OP_COUNTED = 4096, /* where fewer samples count than the batch has (control), it takes those
			      together alone: apart along axis 0 in the sense of graph/mixed.c */
	OP_BY_ELEMENT = 8192, /* an optimizer whose update of an element takes that element's
				 gradient and states, and numbers of the step: pieces go */
	OP_WAITS = 16384, /* waits for what the node that made its inputs has begun, and that goes
			     on by itself: the later, the better. Nothing may stand between */
};

/* What core code may ask the table for, without knowing names. */
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
	ROLE_CONSTANT,   /* a value as files spell it */
	ROLE_STOP,       /* an identity through which no gradient passes */
	ROLE_BUFFER,     /* a buffer of the model, and the value that it has after the step */
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
	ROLE_COUNT
};

/* When a record treats samples apart: whether, with some axis of its inputs counting samples, each
 * sample's outputs come from that sample's inputs alone (graph/apart.c). */
enum op_apart {
	APART_NEVER,
	APART_FIRST,     /* where the axis is the first: of input 0, of all outputs */
	APART_BROADCAST, /* where it is the same one counted from the last; OP_POINTWISE: always */
	APART_SHAPE,     /* a view: where as many elements lie before it */
	APART_PASSES,    /* where one input has it, and the outputs have it still */
	APART_BEFORE,    /* where it comes before the axis that attribute `axis` names */
	APART_BESIDE,    /* where it is another one than that */
	APART_UNCUT,     /* Slice: where it is not cut */
	APART_PRODUCT,   /* MatMul: where it is not summed over */
	/* In no slices, but apart where fewer samples count than the batch has (graph/mixed.c): */
	APART_PLACED, /* wherever the axis is, by each sample's place in the batch */
	APART_SECOND  /* where it is the second of input 0 */
};

/* What a record's output is, where losses care. */
enum op_gives { GIVES_ANYTHING, GIVES_SOFTMAX, GIVES_SIGMOID };

/* A library call that does a node: what is printed into the step and made into a primitive by the
 * runtime; and what the library is not told. */
struct lib_call {
	struct stint_lib_call call;
	/* Of the ways to do a node, what this one is called (NULL: way 0), how many times as fast
	 * as way 0 it is, and whether it rounds more. */
	const char *name;
	double speed;
	bool rough;
	bool slow; /* generated C is faster: not taken on a CPU */
};

/* A named scalar parameter: a pointwise attribute, or a loss's or optimizer's option. */
struct op_option {
	const char *name;
	double value;     /* default */
	double low, high; /* what the command line may give, ends included; both 0: any number */
	/* "mean sum": it is given as one of these words, its value the word's place from 0. Words
	 * behind number `high`, if that is not 0, are not for the command line. */
	const char *words;
	bool list; /* "1;2;0.5": numbers, of which the attribute has a list */
};

/* What a loss is made of. */
enum { LOSS_OUTPUTS = 3 };
struct loss_inputs {
	struct tensor *output[LOSS_OUTPUTS]; /* of the model, as many as the record reads */
	struct tensor *target, *control;     /* target NULL: it has none */
	struct tensor *whole; /* the target of the whole batch; `target` but in micro-batches */
	int nattr;
	const struct attr *attr;
};

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
	const char *with; /* the option that wants it, by not being 0; NULL: it is always there */
};
static inline bool op_state_narrows(const struct op_state *s)
{
	return s->shape == STATE_WHOLE && !s->exact;
}
/* The last state of an update with this attribute, of any optimizer: the parameter's average over
 * the steps, of which the attribute's value is the decay. */
#define OP_AVERAGE "ema"
enum { OP_STATES = 5, OP_STATE_BLOCK = 256 };

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
/* A node of an optimizer's record, with the states that the record names. */
enum status graph_update(
	struct graph *g, const struct op_def *op, const struct update_of *u, struct node **n);

enum lower_mode { LOWER_TRAIN, LOWER_EVAL };
/* --dropout NODE=P: what a dropout whose node matches the shell pattern does, whatever the file
 * says. */
struct dropout_ratio {
	const char *pattern;
	double ratio; /* in [0, 1) */
};
struct lower_options {
	enum lower_mode mode;
	bool dropout_off, bn_frozen;
	bool bn_sync;       /* statistics of micro-batches are those of all of them together */
	bool bn_population; /* running variances divide by n, not by n - 1 as PyTorch's */
	int nratio;
	const struct dropout_ratio *ratio;
	struct lower_told *told; /* graph_lower's own */
};
/* What graph_lower says at its end of all nodes together. */
enum lower_tale {
	TOLD_IDLE,   /* they would drop out, and were exported for inference */
	TOLD_SILENT, /* they do, and the file does not say so */
	LOWER_TALES
};
void lower_tell(
	const struct lower_options *o, enum lower_tale what, const char *node, double ratio);

/* A test case: the record's author writes no other test. */
struct op_example {
	/* Inputs, separated by spaces, by position. Each one of
	 *   2,3,8,8       reals drawn from [low, high); "()" is a scalar
	 *   2,3:data      the same, but no gradient is asked for
	 *   2,3:whole     reals that are whole numbers of [low, high): zeros and ties
	 *   4:i64<7       integers in [0, 7)
	 *   2,3:bool      booleans
	 *   =[1,-1]       a constant I64 vector; =3 a constant I64 scalar; =f0.5 a constant real
	 *                 scalar, =f[1,0.5] a vector
	 *   -             absent
	 * A letter a to h stands for a size from 2 to 6, A to H for one from 5 to 9, 2a for twice
	 * that: here and in `attr`, the same letter the same size. An example with letters is run
	 * five times, sizes drawn anew. */
	const char *in;
	const char *attr; /* "strides=2,2 alpha=0.1 mode=constant": ints, a decimal point makes a
			     float */
	double low, high; /* both 0: [-1, 1) */
	int nout;         /* outputs asked for; 0: the default */
	double tolerance; /* of the finite difference, relative; 0: the suite's */
};

/* --- What is more than a node: control flow, sequences, optional values ---
 *
 * No such thing reaches the graph. While a model is read, a record's `expand` builds in its node's
 * place what the node comes to (docs/adr/0009-control-flow-at-import.md). */

/* What a name stands for while a model is read. A list's tensors are known one by one: which one a
 * node picks is known too, or the model is refused. */
struct value {
	enum { VALUE_NONE, VALUE_TENSOR, VALUE_LIST } kind; /* NONE: absent, an empty optional */
	struct tensor *tensor;
	int n; /* VALUE_LIST */
	struct tensor *const *item;
};

/* A graph that an attribute holds: a branch, the body of a loop. */
struct body {
	int nin, nout;
	int64_t size; /* nodes that building it once may make, those of bodies in it counted once */
	/* Build it once more. `label` tells this time from others in the names of nodes: "3".
	 * Reports a nin or nout that is not the body's. */
	enum status (*build)(const struct body *b, const char *label, int nin,
		const struct value *in, int nout, struct value *out);
	/* Type and shape that the file declares for output k; false: it leaves something open. */
	bool (*declared)(const struct body *b, int k, enum dtype *t, int *rank, int64_t *dim);
};

struct expansion {
	struct graph *g;
	const struct node *node; /* for messages and attributes; in[i] NULL where no tensor */
	int nin, nout;
	const struct value *in;
	struct value *out; /* to be set, all nout */
	int64_t *left;     /* nodes that expansions may still make */
};

/* Call a record's hook. `out` holds nout values. Reports counts of inputs and outputs that the
 * record does not take. */
enum status graph_expand(struct graph *g, const struct op_def *op, const char *name, int nin,
	const struct value *in, int nout, struct value *out, int nattr, const struct attr *attr,
	int64_t *left);
/* Report where `times` times `size` nodes are more than may still be made. */
enum status expansion_reserve(const struct expansion *x, int64_t times, int64_t size);
/* Take off for work that makes no nodes (copies of lists). */
enum status expansion_spend(const struct expansion *x, int64_t nodes);
/* The body in an attribute; NULL, with a message, when there is none. */
const struct body *expansion_body(const struct expansion *x, const char *attribute);
/* What helps where t, which is not known, would have to be: --fix, by the input that it comes from.
 */
const char *expansion_hint(const struct expansion *x, const struct tensor *t);
/* Input i, a tensor known at compile time of one element (a condition, a trip count, a position).
 * `what` for the message, which says why it must be known. */
enum status expansion_known(
	const struct expansion *x, int i, const char *what, const struct tensor **out);

/* --- Blocked channels (graph/layout.c) ---
 *
 * A library's convolutions are fastest on tensors [N, C, ...] whose channels come in blocks of B,
 * stored as [N, C/B, ..., B]: to the graph, a tensor of that shape. Channels last is the same with
 * B = C of each tensor: [N, 1, ..., C]. Records that have `block` know how to work on such tensors.
 */
struct layout;
struct blocking {
	struct graph *g;      /* being built: nodes added get the name and phase of n */
	const struct node *n; /* of the graph before */
	bool all;             /* channels last */
	struct layout *layout;
};

/* B, for a tensor [N, C, ...] of the graph before. */
int64_t blocking_channels(const struct blocking *b, const struct tensor *t);
/* The blocked form's shape; its rank, which is one more. */
int blocking_shape(const struct blocking *b, const struct tensor *t, int64_t *dim);
/* Where channels are counted when they are cut and joined: along which axis of the blocked form of
 * `rank` + 1 axes, and how many are 1 there. Blocks: axis 1, B. Channels last: the last axis, 1. */
int blocking_axis(const struct blocking *b, int rank, int64_t *unit);

/* Can stand in blocks: three axes or more, whole blocks of channels. */
bool blocking_fits(const struct blocking *b, const struct tensor *t);
/* Input i can, and does already. */
bool blocking_has(const struct blocking *b, int i);
/* Output k can, and some reader knows what to do with it. */
bool blocking_wanted(const struct blocking *b, int k);
/* Input i in either form, reordered if need be; NULL: absent, or a failure that g remembers. */
struct tensor *blocking_plain(const struct blocking *b, int i);
struct tensor *blocking_blocked(const struct blocking *b, int i);
/* A tensor of the graph before that broadcasts to [N, C, ...] of `rank` axes, so that it broadcasts
 * to the blocked form. */
struct tensor *blocking_beside(const struct blocking *b, const struct tensor *old, int rank);
/* What stands for output k from now on. */
void blocking_give(const struct blocking *b, int k, struct tensor *t, bool in_blocks);

/* --- Adapters (graph/adapt.c) ---
 *
 * A small product beside a frozen weight, which learns in its place (Hu et al., "LoRA", 2021,
 * arXiv 2106.09685). Records that have `adapt` know how to build it. */
struct adapting; /* the adapter of one weight, for one node that reads it */
/* What PEFT has for the layer: its parameters' names and shapes. */
enum adapter_kind { ADAPTER_NONE, ADAPTER_LINEAR, ADAPTER_CONV, ADAPTER_EMBEDDING };
/* GIVEN: whoever asks for it sets its values, unless they are there. */
enum adapter_start { ADAPTER_ZEROS, ADAPTER_UNIFORM, ADAPTER_NORMAL, ADAPTER_GIVEN };

struct graph *adapting_graph(const struct adapting *x);
/* Its rank, r. */
int64_t adapting_rank(const struct adapting *x);
/* The node reads the weight's matrix transposed, beside the transpositions before it. */
void adapting_turn(struct adapting *x);
/* A parameter of it, made once for all nodes that read the weight: `part` is what PEFT calls it in
 * the module. `fan_in`: terms of a sum that it makes, for UNIFORM. NULL: failed. */
struct tensor *adapting_parameter(struct adapting *x, const char *part, int rank,
	const int64_t *dim, enum adapter_start start, int64_t fan_in);
/* t with its dropout; and times its factor. */
struct tensor *adapting_dropped(struct adapting *x, struct tensor *t);
struct tensor *adapting_scaled(struct adapting *x, struct tensor *t);

/* DoRA: each output's row of weights has a trained length. Whether it is asked for; the adapter's
 * factor; the lengths, `dim`, which are `out` numbers, and in *squares, a constant of [out], the
 * sums of squares of the rows as the model has them. NULL: failed. */
bool adapting_lengths(const struct adapting *x);
double adapting_scale(const struct adapting *x);
struct tensor *adapting_rows(
	struct adapting *x, int rank, const int64_t *dim, struct tensor **squares);

#define ALL_OPERANDS (~0u)

/* Inputs of an OP_POINTWISE record at most: a to h. */
enum { POINTWISE_INPUTS = 8 };

/* Where a record takes a bias that may be absent: an input, and which axis of input 1, the weight,
 * is as long. `turned`: an attribute with which it is the other one of two axes; `times`: one that
 * the length is multiplied by. */
struct op_bias {
	int input, axis; /* input 0: none */
	const char *turned, *times;
};

struct op_def {
	const char *name;   /* ONNX's; "domain.Name" in other domains; ours: "stint.Name" */
	int since, until;   /* the domain's opsets [since, until); 0, 0 for ours; until 0: no end */
	int min_in, max_in; /* max_in 0: as min_in; -1: any number */
	int min_out, max_out; /* 0, 0: one output */
	unsigned traits;      /* enum op_trait */
	int variant; /* which of a family this is, where hooks serve several: its own enum */
	enum op_role role;
	enum op_apart apart; /* of records that are read from files */
	enum op_gives gives;
	/* Whether that holds for this node, of a slice, as it will be lowered; `axis` counts
	 * samples in input 0. NULL: always. */
	bool (*apart_if)(const struct node *n, int axis, const struct lower_options *o);
	/* Bit i for input i: an initializer there is a weight, whatever its name; or a setting, to
	 * be known when compiling and never trained. */
	unsigned weights, known;
	struct op_bias bias;

	/* Of an operator that stint does not have: what to do about it. The record is no more than
	 * this, and op_index_find does not find it. */
	const char *instead;

	/* Check inputs and attributes, set n->param, make n->out[0..n->nout) with graph_tensor (an
	 * output left out by the caller may stay NULL). A node whose outputs are all made with
	 * graph_constant is not added: its users read the constants. */
	enum status (*infer)(struct graph *g, struct node *n);

	/* Every input is known: write the outputs' values (out[k] has room for n->out[k]).
	 * Optional. */
	enum status (*fold)(struct graph *g, const struct node *n, void *const *out);

	/* Build in the node's place what it comes to. A record that has `infer` too is expanded
	 * only where an input is no tensor. */
	enum status (*expand)(struct expansion *x);

	/* Recognise a spelled-out form ending in node `n` (of any operator) of an imported graph.
	 * If found, build this operator on `in` graph tensors through *replace: the tensor that
	 * stands for n->out[0]. Leaves *replace NULL when it is not there. */
	enum status (*match)(struct graph *g, const struct node *n, struct tensor **replace);

	/* Called when the imported graph is turned into the training or evaluation graph: builds
	 * other nodes in n's place (in: the new graph's tensors, of which n's are the old) and sets
	 * out[0..nout). Without it, and where it leaves out[0] NULL, a node is copied. */
	enum status (*lower)(struct graph *g, const struct node *n, struct tensor *const *in,
		const struct lower_options *o, struct tensor **out);

	/* Build what an adapter beside the node's weight, input `adapts`, adds to output 0, from
	 * `in`. */
	enum status (*adapt)(struct adapting *x, const struct node *n, struct tensor *const *in,
		struct tensor **out);
	enum adapter_kind adapter; /* of what kind; NONE: it has no `adapt` */
	int adapts;

	/* Called when a training graph has its loss: builds in n's place the same in pieces of
	 * input 0, so that less is live at once, and sets out[0..nout), or leaves out[0] NULL. By
	 * shapes and target alone, never by a budget: bits differ from the whole's. `from` is the
	 * graph that n is in; `in` are the new graph's tensors. Input 0 is then not made whole. */
	enum status (*split)(struct graph *g, const struct graph *from, const struct node *n,
		struct tensor *const *in, struct tensor **out);

	/* The axis of input k, a weight, that counts the outputs' channels; -1: none does. Without
	 * it: none. */
	int (*channels)(const struct node *n, int k);
	/* Build the node on its input k in small numbers: `in` are the new graph's tensors, for
	 * input k small numbers, scales and zeros stand in `small`. Leaves *out NULL where it
	 * cannot; without it: nowhere. */
	enum status (*stored)(struct graph *g, const struct node *n, struct tensor *const *in,
		int k, const struct stored *s, struct tensor *const *small, struct tensor **out);

	/* Rebuild a node on tensors in blocks: give all its outputs, or none to have it copied as
	 * it is. OP_POINTWISE needs none. */
	enum status (*block)(struct blocking *b);

	/* Build the gradient: dy[k] is the gradient of output k (NULL: none reached it); set dx[i]
	 * for the inputs that want one (want[i]). What the rule reads is what must be kept. */
	enum status (*grad)(struct graph *g, const struct node *n, struct tensor *const *dy,
		const bool *want, struct tensor **dx);

	/* Of a gradient: build one node that does what n and `first`, which makes input `joins` of
	 * n, do: its outputs are output 0 of both. Leaves *both NULL where there is none. Optional.
	 */
	enum status (*join)(struct graph *g, const struct node *n, const struct node *first,
		struct node **both);
	int joins;
	/* An input that is added to output 0, of its shape and type; 0: there is none. Of a node
	 * without it, whether it may get one; NULL: it may. */
	int addend;
	bool (*adds)(const struct graph *g, const struct node *n);

	struct op_cost (*cost)(
		const struct node *n); /* NULL: reads inputs, writes outputs, `work` flops each */
	/* How often a GPU launches the kernel, where that grows with the node. */
	double (*launches)(const struct node *n);
	/* Operations an element of the output, without `cost`; 0 stands for 1, and for OP_POINTWISE
	 * what `expr` calls comes on top. An exponential counts as 20. */
	double work;
	int npair;
	struct op_pair pair[6];

	/* OP_POINTWISE: one C expression over a, b, ... h (the inputs), the options by name, and
	 * EXP LOG SQRT POW TANH ERF FABS MAX MIN FLOOR ..., as graph/expr.h has it; `ref` is the
	 * same on doubles. POINTWISE makes both from one text. `in` holds POINTWISE_INPUTS numbers.
	 */
	const char *expr;
	double (*ref)(const double *in, const double *option);
	const struct op_option *option; /* ended by a NULL name */
	/* The same on whole numbers, where `expr` would not do (a division, a number beyond the
	 * reals' precision): taken when no input is real. POINTWISE_INT makes both. */
	const char *int_expr;
	int64_t (*int_ref)(const int64_t *in);

	/* Output 0, read as a matrix, is the outer product of two inputs, read as vectors: element
	 * (i, j) is 0 + in[*column][i] * in[*row][j], rounded once. Optional. */
	bool (*outer)(const struct node *n, int *column, int *row);
	/* The library call that does this node, way 0, 1, ... (false: none, and none beyond).
	 * Inputs and outputs are handed to it in order, absent ones left out. Used unless the
	 * target is portable or refuses. */
	bool (*library)(const struct node *n, int way, struct lib_call *call);
	/* Bits: the inputs that are read, and the outputs that are written, in a narrow type as
	 * well as in the graph's real type (graph_narrow), each in the type its tensor has: by the
	 * C text, or for OP_PRODUCT by the library. OP_POINTWISE: all of them. Around other nodes
	 * values are converted. */
	unsigned narrow_in, narrow_out; /* ALL_OPERANDS: however many there are */
	/* Bits: outputs that only the CUDA text writes in a narrow type as well; what else
	 * narrow_out decides does not depend on it. */
	unsigned narrow_out_cuda;
	/* Scratch bytes of emit_c's kernels, and of emit_cuda's; may depend on target->threads.
	 * NULL: none. */
	int64_t (*workspace)(const struct node *n, const struct target *t);
	int64_t (*workspace_cuda)(const struct node *n, const struct target *t);
	/* The call of its kernels (codegen/call.h). */
	enum status (*emit_c)(struct emit *e, const struct node *n);
	/* The same for a GPU, where it has kernels of its own. NULL: emit_c's, a turn a thread. */
	enum status (*emit_cuda)(struct emit *e, const struct node *n);

	/* A loss or optimizer by PyTorch's name on the command line ("cross-entropy", "adamw"); its
	 * `option` list holds the options and defaults. NULL otherwise. A loss node's inputs are
	 * (model output, target, control); an optimizer's (parameter, gradient, lr, control,
	 * state...) and its outputs (parameter, state...). Where the gradient is absent, it is the
	 * outer product of the last two inputs, a column and a row (graph/fuse_update.c), if the
	 * record is OP_BY_ELEMENT. */
	const char *loss, *optimizer;
	/* How many of the model's outputs a loss reads; 0 stands for 1. */
	int loss_outputs;
	/* What it does not want of the model: a warning then names the tensor before that, and the
	 * loss that reads it (NULL: this one). */
	enum op_gives loss_not;
	const char *loss_instead;
	/* Shape and type of the target that a loss wants for the first of them; NULL: it has none.
	 */
	enum status (*loss_target)(struct graph *g, const struct tensor *output, int nattr,
		const struct attr *attr, enum dtype *type, int *rank, int64_t *dim);
	/* Build a loss; where g->shards_differ, a micro-batch's part of the whole batch's
	 * (g->shards of them). NULL: one node of the record, and no micro-batches. */
	enum status (*loss_build)(struct graph *g, const struct op_def *op,
		const struct loss_inputs *in, struct tensor **loss);
	/* What an optimizer keeps of a parameter: fewer than OP_STATES, ended by a NULL name. */
	const struct op_state *state;
	/* Build the update of a parameter, where that is not one node of the record. */
	enum status (*update_build)(
		struct graph *g, const struct op_def *op, const struct update_of *u);

	const struct op_example *example; /* ended by a NULL `in` */
};

struct op_table {
	int nfamily;
	const struct op_def *const *family;
};

/* FNV-1a, 32 bits. */
unsigned name_hash(const char *s);

/* What its field max_in comes to. */
static inline int op_max_in(const struct op_def *op)
{
	return op->max_in ? op->max_in : op->min_in;
}

/* The records by name. NULL when out of memory. */
struct op_index;
struct op_index *op_index_new(struct arena *a, const struct op_table *t);
/* That of an operator at an opset; NULL when unknown. */
const struct op_def *op_index_find(const struct op_index *x, const char *name, int opset);
/* What to do about an operator that is not found; NULL: nothing is known. */
const char *op_index_instead(const struct op_index *x, const char *name);
const struct op_def *op_by_role(const struct op_table *t, enum op_role role);
const struct op_def *op_by_loss(const struct op_table *t, const char *loss);
const struct op_def *op_by_optimizer(const struct op_table *t, const char *optimizer);
/* Value of an option or attribute on a node: the attribute if present, else the record's default.
 * -1 for a word that the option does not have. */
double node_option(const struct node *n, const char *name);
/* Whether a node of an optimizer has a state, by its options. */
bool node_has_state(const struct node *n, const struct op_state *s);
/* The place of `word` among the option's words; -1: none of them. */
int option_word(const struct op_option *o, const char *word);

/* How a node may be run: on other inputs (alternatives), by other library calls (ways). Choice 0 is
 * what is taken where nothing speaks against it. */
int node_choices(const struct node *n);
struct node node_choice(const struct node *n, int choice);

/* --- Pointwise nodes fused into one (graph_fuse) ---
 *
 * The last stage makes the node's output, the others values that only later stages read. */
enum { FUSED_INPUTS = 16, FUSED_STAGES = 32 };

/* Where an operand of a stage is: in the node's input `slot`, or, where slot is -1 or the node as
 * it is run lacks that input, made by an earlier stage. Both -1: the operand is absent. */
struct fused_operand {
	int slot, stage;
};
struct fused_stage {
	const struct node *node; /* as it was: its record, attributes, types; in no graph */
	struct fused_operand in[POINTWISE_INPUTS];
};
struct fused {
	int nstage;
	const struct fused_stage *stage;
};
/* NULL: n is not such a node. */
const struct fused *node_fused(const struct node *n);
/* live[FUSED_STAGES]: the stages that the node as it is run needs. */
void fused_live(const struct node *n, const struct fused *f, bool *live);
static inline bool fused_reads_slot(const struct node *n, struct fused_operand o)
{
	return o.slot >= 0 && n->in[o.slot];
}
/* What a node does, for people: "Add", "stint.Fused: Add, Relu". */
void node_title(const struct node *n, struct text *out);

/* How a node's small numbers lie, as its attributes: STORED_ATTRS of them; and back, without the
 * numbers themselves. */
enum { STORED_ATTRS = 3 };
enum status stored_attributes(struct graph *g, const struct stored *s, struct attr *attr);
void stored_of(const struct node *n, struct stored *out);

/* Bytes of a node's inputs and outputs. */
double node_bytes(const struct node *n);
/* Cost and scratch of a node under the graph's target: the library's when it is used. */
struct op_cost node_cost(const struct node *n);
bool node_uses_library(
	const struct graph *g, const struct node *n, struct lib_call *call, int64_t *workspace);
int64_t node_workspace(const struct graph *g, const struct node *n);
/* OP_POINTWISE: the text that does this node, by the types of its inputs; NULL: none does. */
const char *node_expr(const struct node *n);
/* Pairs of a node that hold for its actual shapes (a broadcast input cannot be overwritten). */
int node_pairs(const struct node *n, struct op_pair *out, int max);

/* Kernels in words: "Relu(f32[64,16,28,28]) -> f32[64,16,28,28]; C": operator, inputs, outputs,
 * attributes, and who does it (the library's call, or NULL: C, portable C). The same for any two
 * nodes that run alike, whatever the model; tables of measured times are kept by it. The text up to
 * "(" is the operator. Valid while `g` does not change; lives in `a`. NULL when out of memory. */
struct kernel_keys;
struct kernel_keys *kernel_keys_new(struct arena *a, const struct graph *g);
const char *kernel_key(
	const struct kernel_keys *k, const struct node *n, const struct lib_call *library);

#endif
