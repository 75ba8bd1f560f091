/* The operator record: everything the program knows of one operator, in one place. A family file in
 * ops/ holds an array of these, ended by an empty one; ops/all.c lists the families.
 *
 * How to write one: docs/howto/add-an-operator.md. */
#ifndef STINT_GRAPH_OP_H
#define STINT_GRAPH_OP_H

#include "graph/graph.h"
#include "graph/op_role.h"

/* What the hooks are handed. */
struct emit;          /* codegen/emit.h */
struct expansion;     /* graph/expansion.h */
struct lower_options; /* graph/lowering.h */
struct blocking;      /* graph/blocking.h */
struct lib_call;      /* graph/cost.h */

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
	OP_VIEW = 1 << 0,      /* output 0 is input 0's bytes under another shape: never executed */
	OP_POINTWISE = 1 << 1, /* output 0 from `expr`, inputs broadcast; infer, fold, cost, pairs,
			     C come by themselves */
	OP_ONCE = 1 << 2,      /* runs exactly once a step (running statistics) */
	OP_UPDATE = 1 << 3,    /* an update: its pairs overwrite residents; implies OP_ONCE */
	OP_CHECKED =
		1 << 4, /* the kernel returns a status: it reads indices that may be out of range */
	OP_STOP = 1 << 5,  /* the gradient legitimately stops here (comparisons, integer outputs,
			    * shapes)
			    */
	OP_BOOL = 1 << 6,  /* OP_POINTWISE: the output is DT_BOOL */
	OP_ALIKE = 1 << 7, /* what narrow_in and narrow_out name has one type in all: elements that
			   are moved, whatever they are */
	OP_PRODUCT = 1 << 8,     /* rounds its operands (narrow_in) where precision is reduced */
	OP_OWN_PRODUCT = 1 << 9, /* its text multiplies matrices: most of its flops are that */
	OP_EXACT = 1
		   << 10, /* its gradient looks for the inputs among the outputs: these stay real */
	OP_PLACED = 1 << 11, /* where it runs in slices of the batch, attributes slice and slices
			     tell which this is, and of how many */
	OP_COUNTED =
		1 << 12, /* where fewer samples count than the batch has (control), it takes those
			 together alone: apart along axis 0 in the sense of graph/mixed.c */
	OP_BY_ELEMENT = 1 << 13, /* an optimizer whose update of an element takes that element's
				 gradient and states, and numbers of the step: pieces go */
	OP_WAITS = 1 << 14, /* waits for what the node that made its inputs has begun, and that goes
			     on by itself: the later, the better. Nothing may stand between */
	OP_SUMS = 1 << 15,  /* its gradient rule finds in dx the sums so far, and puts there these
			     with  what it adds, in the order of the nodes that it stands for */
	OP_DRAWS = 1 << 16, /* random numbers, which are keyed by its place in the model */
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
enum op_gives { GIVES_ANYTHING, GIVES_SOFTMAX, GIVES_LOG_SOFTMAX, GIVES_SIGMOID };

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
	/* Where an attribute tells of each input which axis counts the outputs: its name, and
	 * whether by that text one axis of input k, of `rank`, does; it is *axis, and *behind axes
	 * of the output lie behind the one that it becomes. */
	const char *equation;
	bool (*counts)(const char *equation, int k, int rank, int *axis, int *behind);

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

	/* Called when a training graph has its loss: builds in n's place the same in chunks of
	 * input 0, so that less is live at once, and sets out[0..nout), or leaves out[0] NULL. By
	 * shapes and target alone, never by a budget: bits differ from the whole's. `from` is the
	 * graph that n is in; `in` are the new graph's tensors. Input 0 is then not made whole. */
	enum status (*chunk)(struct graph *g, const struct graph *from, const struct node *n,
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

	/* What else it is, if it is: each in a header of its name. */
	const struct op_loss *loss;
	const struct op_optimizer *optimizer;
	const struct op_adapter *adapter;

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

/* That a node has as many inputs and outputs as its record takes and gives. */
enum status node_counts(struct graph *g, const struct node *n);

/* A hint where t is wanted when compiling, and is not known then: the input that it is computed
 * from, which --fix would tell. */
const char *graph_unknown_hint(struct graph *g, const struct tensor *t);
/* One where x cannot be seen in the shape that is wanted. */
const char *graph_view_hint(const struct graph *g, const struct tensor *x);

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
/* The place of `word` among the option's words; -1: none of them. */
int option_word(const struct op_option *o, const char *word);

#endif
