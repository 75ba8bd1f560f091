/* The graph: tensors and the nodes that make them, in a valid order. Built by import/, rewritten by
 * the passes in graph/pass.h, read by codegen/. Everything lives in one arena. Which operators
 * exist is said by a table of records (graph/op.h) that the caller hands in; nothing here names an
 * operator. */
#ifndef STINT_GRAPH_GRAPH_H
#define STINT_GRAPH_GRAPH_H

#include "base/base.h"

enum { RANK_MAX = 8, WAYS_MAX = 4 };

/* Element types. Every float in a model becomes the graph's one real type (F32, or F64 under
 * --precision fp64), every integer I64. The narrow types, BF16, the upper half of an F32, and F16,
 * IEEE 754's binary16, are how values are stored under --precision bf16 and fp16 (graph_narrow):
 * kernels still compute in the real type. I8 and U8 are bytes that weights are stored in (struct
 * stored), a number or two of them each; U8 are codes of an optimizer's state, too. */
enum dtype { DT_F32, DT_F64, DT_I64, DT_BOOL, DT_BF16, DT_F16, DT_I8, DT_U8 };

static inline bool dtype_is_narrow(enum dtype t)
{
	return t == DT_BF16 || t == DT_F16;
}

static inline int64_t dtype_bytes(enum dtype t)
{
	return t == DT_F32                                ? 4
	       : t == DT_BOOL || t == DT_I8 || t == DT_U8 ? 1
	       : dtype_is_narrow(t)                       ? 2
							  : 8;
}

static inline bool dtype_is_real(enum dtype t)
{
	return t == DT_F32 || t == DT_F64 || dtype_is_narrow(t);
}

/* A narrow value; and the nearest, to even where two are as near. (frozen.c) */
double narrow_value(enum dtype t, uint16_t bits);
uint16_t narrow_bits(enum dtype t, float v);
/* "f32", "f64", "i64", "bool", "bf16", "f16", "i8", "u8". */
const char *dtype_name(enum dtype t);

enum tensor_role {
	TR_VALUE,     /* made by a node */
	TR_INPUT,     /* data the caller gives each step: the model's inputs, then the target */
	TR_PARAMETER, /* trainable initializer */
	TR_BUFFER,    /* written by the forward pass and kept over steps: running statistics */
	TR_STATE,     /* optimizer state */
	TR_ELSEWHERE, /* of a step for another length: its place is kept */
	TR_SUMS, /* of gradients, or rows that they come from: from one micro-batch to the next */
	TR_CONSTANT, /* a value known at compile time (data != NULL), never trained */
	TR_CONTROL, /* what the driver sets per step: seed, step count, valid rows, learning rate */
};

/* Real numbers as small ones with scales: (small - zero) * scale, or, in NF4, a number of its table
 * times scale. They are those of a matrix of rows * columns, a tensor's in its order.
 *
 *	INT8	a byte each, with a sign
 *	INT4	two a byte, from 0 to 15; the first in the upper half
 *	NF4	the same; a place in the table of Dettmers et al., "QLoRA", 2023, arXiv 2305.14314
 */
enum stored_form { STORED_INT8, STORED_INT4, STORED_NF4 };

struct stored {
	enum stored_form form;
	int64_t rows, columns;
	/* Element (i, j) is small number i * row + j * column, and its scale and zero number
	 * i / row_block * row_scale + j / column_block * column_scale; or, where flat is not 0, the
	 * small number's place / flat. */
	int64_t row, column;
	int64_t row_block, row_scale, column_block, column_scale, flat;
	int64_t scales; /* how many */
	int middle;     /* the zero where there are none */
	const void *small;
	const float *scale;
	const signed char *zero; /* NULL: there are none */
	/* Scales that are stored in 8 bits, as bitsandbytes has them: places in its table of signed
	 * numbers (kernels/dynamic_map.h), coarse scales of SCALES_BLOCK of these, and an offset,
	 * which come to `scale`. NULL: they are stored as they are. */
	const unsigned char *code;
	const float *coarse;
	float offset;
};
enum { SCALES_BLOCK = 256 };

/* "int8", "int4", "nf4". */
const char *stored_name(enum stored_form f);
/* Element i of the matrix, in its order; and how many bytes all of it takes. (quantise.c) */
float stored_value(const struct stored *s, int64_t i);
int64_t stored_bytes(const struct stored *s);
/* Those of the small numbers alone. */
int64_t stored_small_bytes(const struct stored *s);
/* Coarse scales, where scales are stored in 8 bits. */
int64_t stored_coarse(const struct stored *s);
/* The transpose of the matrix. */
struct stored stored_turned(const struct stored *s);

struct body;
struct node;
struct lib_call;

struct tensor {
	int id;           /* index in graph->tensor */
	const char *name; /* from the model, or derived from it; any bytes but NUL */
	enum dtype dtype;
	int rank;
	int64_t dim[RANK_MAX];
	int64_t numel; /* product of dim, checked */
	enum tensor_role role;
	bool from_model; /* an initializer of the model's file */
	bool weight; /* one that is trained unless somebody says otherwise; or TR_CONSTANT, such a
		      * one's elements, moved */
	bool drawn;  /* a weight of a new head: trained beside adapters, too */
	const char *why;  /* for people: why such a one is trained, or is not */
	int element;      /* ONNX's number of the type that the file gives it; 0: not known */
	bool is_gradient; /* made by the backward pass; for the planner's and the reader's eyes only
			   */
	const void *data; /* TR_CONSTANT: numel values. TR_PARAMETER, TR_BUFFER, TR_STATE: initial
			   * values (NULL: zeros) */
	/* Of the model's inputs and outputs: the names of axes that nothing binds, NULL where one
	 * does; NULL: all are bound. For looking at a model only (import's `unbound`). */
	const char *const *axis;
	struct node *maker;     /* NULL unless TR_VALUE (a folded constant has none either) */
	struct tensor *storage; /* made by a view: whose bytes these are; NULL: its own */
	/* TR_CONSTANT in a narrow type: what it was rounded from (graph_store_frozen); NULL. Of the
	 * graph before. */
	const struct tensor *exact;
	/* TR_CONSTANT whose values are these: as the file has them; or those of `exact`, of which
	 * this is `small`. NULL: they are its own. */
	const struct stored *stored;
	/* TR_STATE, TR_PARAMETER or TR_CONSTANT (whose data are all of it) of which each process
	 * has a piece: the parameter whose shape all of it has. Maybe of the graph before; for name
	 * and shape only. NULL: it is whole. */
	const struct tensor *piece_of;
	/* It lasts over steps, but in a file: it takes no memory, and nothing but ROLE_FETCH and
	 * ROLE_STORE reads it (graph_put_away). */
	bool away;
	/* Of a loop's body: whoever runs the body says where it is, and it takes no memory of the
	 * body's own (graph/loop.h). And it is made in the place of this input. */
	bool outside;
	const struct tensor *over;
	bool around; /* with `outside`: what is there in all turns, and no turn makes */
};

/* A node's attribute, as ONNX has them. */
struct attr {
	const char *name;
	enum {
		ATTR_INT,
		ATTR_FLOAT,
		ATTR_STRING,
		ATTR_INTS,
		ATTR_FLOATS,
		ATTR_STRINGS,
		ATTR_TENSOR,
		ATTR_BODY, /* a graph: on nodes that are expanded while a model is read only */
		ATTR_OTHER /* a type, a sparse tensor, ...: there, but nobody can read it */
	} kind;
	int64_t i;
	double f;
	const char *s; /* ATTR_OTHER: what it holds, for messages */
	int n;         /* of ints, floats, strings */
	const int64_t *ints;
	const double *floats;
	const char *const *strings;
	struct tensor *t;
	const struct body *body; /* graph/op.h */
};

enum node_phase { NODE_FORWARD, NODE_BACKWARD, NODE_UPDATE };

struct op_def;

struct node {
	int id;           /* index in graph->node */
	const char *name; /* the ONNX node's; nodes made for it (gradients, updates) carry it too */
	const struct op_def *op;
	enum node_phase phase;
	bool last; /* runs in a step's last shard only */
	/* Of a branch that data decide: it runs where this, one BOOL made by ROLE_BRANCH, is true.
	 * Where it is not, what it makes holds anything, and is read by nobody that runs, but for
	 * what picks (graph/branches.c). NULL: it always runs. */
	struct tensor *when;
	int nin, nout;
	struct tensor **in; /* NULL where an optional input is absent */
	struct tensor **out;
	int nattr;
	const struct attr *attr;
	/* What infer made of the attributes: a struct of the operator's own, in the arena. A
	 * gradient rule may hand the forward node's to the nodes it makes. */
	const void *param;
	/* Other inputs that give the same bits (ReLU's gradient from x or from y): nalt full lists
	 * of nin tensors. The planner picks. */
	int nalt;
	struct tensor ***alt;
	/* Its place in the listed order is right before its first reader (graph_chunk). */
	bool late;
	/* The record's library calls that may do it, the usual one first; none: way 0. */
	int nway, way[WAYS_MAX];
};

/* Which of several ways to compute a product is taken (docs/explanation/determinism.md). */
enum math {
	MATH_FIXED,  /* by shape: the fastest whose scratch stays in proportion */
	MATH_STRICT, /* none that rounds more than the plain way */
	MATH_FREE    /* the planner's choice, by budget */
};

/* All channels of a tensor stand together: channels last. */
enum { BLOCK_ALL = -1 };

/* What the code will run on: fixed before any pass, part of what makes results repeat. */
struct target {
	bool cuda;     /* CUDA C, for NVRTC; else C */
	int arch;      /* of the GPU: 90 is sm_90; 0: a CPU */
	bool narrow;   /* values will be stored in a narrow type (graph_narrow) */
	bool tf32;     /* library calls may round single-precision operands to tf32 */
	bool portable; /* generated text only, no library calls */
	bool ranks;  /* several processes may share a step's micro-batches (runtime/stint_tree.h) */
	bool bare;   /* a microcontroller's: nothing is packed, and what nothing writes stays where
		      * its values are */
	int threads; /* ≥ 1 */
	/* What lasts over steps and has `away` bytes or more is in a file (graph_put_away), which
	 * gives and takes so many bytes a microsecond; 0: there is none. */
	int64_t away;
	double disk_reads, disk_writes;
	/* Between processes: bytes a microsecond, and a message's microseconds. */
	double link, latency;
	enum math math;
	int block; /* channels that the library likes together, or BLOCK_ALL; 0: none */
	/* Scratch bytes of a library call, or -1 when the library cannot do it without allocating.
	 * NULL when portable. `user` is handed back. */
	int64_t (*library_workspace)(void *user, const struct lib_call *call);
	void *user;
	bool no_room; /* there was no memory to ask the library */
};

struct op_table;
struct op_index;

/* One of the losses whose sum is trained. */
struct loss_term {
	struct tensor *value;  /* a scalar, before its weight; `loss` itself where it is the sum */
	struct tensor *target; /* the input that it is compared with; NULL: none */
};

struct graph {
	struct arena *arena;
	bool straight_through; /* what rounds to whole numbers trains: --qat */
	/* PyTorch's attention drops out by a node that does not say whether it trains: it does. */
	bool silent_trains;
	struct diag *diag;
	const char *file; /* for messages */
	const struct op_table *table;
	const struct op_index *index; /* of the table */
	const struct target *target;
	enum dtype real; /* DT_F32 or DT_F64 */
	int opset;       /* of the nodes being added; OPSET_LATEST outside the importer */
	int ntensor, nnode, captensor, capnode;
	struct tensor **tensor;
	struct node **node; /* in a valid order */
	int ninput, noutput;
	struct tensor **input; /* TR_INPUT, in the model's order */
	/* The model's outputs, in its order; NULL: one that training never makes whole
	 * (graph_chunk). */
	struct tensor **output;
	/* Set by graph_attach_loss: what is trained, and the losses of which it is the sum. */
	struct tensor *loss;
	int nterm;
	struct loss_term *term;
	/* I64[4]: seed, step, rows that count, 0; NULL until asked for. With shards STINT_CONTROLS:
	 * the shard's number, how many sums wait for it and how many of them it completes, whether
	 * it is the last, and rows of the whole batch that count (runtime/stint_tree.h). Updates
	 * may read another, made by a node, whose last number is 1 where they are to change
	 * nothing. */
	struct tensor *control;
	struct tensor *lr; /* real[1] */
	/* Dynamic loss scaling, where there is any: its state, real[3], and, after graph_autodiff,
	 * what all gradients are to be multiplied by. */
	struct tensor *loss_scale, *loss_unscale;
	/* Micro-batches of a step (graph_shard), of which this graph is one; 0: there are none.
	 * They differ in training; an evaluation is of the first. */
	int64_t shards;
	bool shards_differ;
	/* Training is by exactly so many processes; 0: by any number up to the shards. `pieces`:
	 * each has a piece of optimizer states and updates that of the parameters. */
	int64_t ranks;
	bool pieces;
	const char *resized; /* a weight of another size than in the file (--replace-head); NULL */
	bool partial;        /* nodes of the model were left out (import/not_read.c) */
	bool sliced;         /* parts of it run slice by slice of the batch (graph/slices.h) */
	/* Loops of so many turns or more are one node, where they can be; 0: none is. */
	int64_t loop_turns;
	/* Given to nodes as they are added. */
	enum node_phase phase;
	bool last;
	struct tensor *when;
	const char *scope;   /* name for nodes added without one */
	enum status failed;  /* sticky: the first failure of graph_op; ST_OK */
	double fold_work;    /* of folding so far: operations and bytes, small nodes not counted */
	int64_t known_bytes; /* by graph_known */
};

enum { OPSET_LATEST = 1 << 20 };

/* A new empty graph in `a`. NULL when out of memory. */
struct graph *graph_new(struct arena *a, struct diag *d, const char *file,
	const struct op_table *table, const struct target *target, enum dtype real);

/* A new tensor. NULL, with a message naming tensor and axis, when the size overflows, a dim is
 * negative or rank > RANK_MAX. `name` is not copied. */
struct tensor *graph_tensor(
	struct graph *g, const char *name, enum dtype t, int rank, const int64_t *dim);
/* A TR_CONSTANT whose data (not copied) has numel values of type t. */
struct tensor *graph_constant(struct graph *g, const char *name, enum dtype t, int rank,
	const int64_t *dim, const void *data);
/* Zeroed room for the values of a constant that a rule makes, `count` of `size` bytes. NULL, with a
 * message and g->failed, where they, or all of them together, are more than stint makes at compile
 * time: a file of a few bytes could ask for any amount. `n`, for the message, may be NULL. */
void *graph_known(struct graph *g, const struct node *n, int64_t count, int64_t size);
/* Before a rule evaluates known values itself (a record's fold is counted without): reports where
 * so many operations and bytes are more than stint spends on known values in all. */
enum status graph_known_work(struct graph *g, const struct node *n, double work);
struct tensor *graph_scalar(struct graph *g, double value);          /* rank 0, real */
struct tensor *graph_ints(struct graph *g, int n, const int64_t *v); /* I64, rank 1 */

/* Element i of a tensor with data, as double or int64. */
double tensor_real(const struct tensor *t, int64_t i);
int64_t tensor_int(const struct tensor *t, int64_t i);
/* Towards 0; the nearest int64 where there is none, 0 for NaN. */
int64_t real_to_int(double v);
/* Store v (rounded to the type) as element i of `data`, values of type t. */
void value_set(enum dtype t, void *data, int64_t i, double v);
int64_t tensor_bytes(const struct tensor *t);
/* A GPU's inputs lie in memory twice: this many bytes behind what the running step reads is what
 * the next one will. 0: once. */
int64_t tensor_next(const struct graph *g, const struct tensor *t);
bool tensor_same_shape(const struct tensor *a, const struct tensor *b);
/* "[2, 3, 8, 8]" */
const char *tensor_shape_text(const struct tensor *t, char buf[static 200]);
/* Numbers that are read when a step is over, by k from 0: the loss, and, where it is the sum of
 * several, each of these, but on a microcontroller. NULL: there are no more. */
struct tensor *graph_told(const struct graph *g, int k);

/* The tensor whose bytes `t` shares: through view nodes (OP_VIEW) back to their source. */
struct tensor *tensor_storage(struct tensor *t);

/* Add a node: finds its record for g->opset, infers outputs, folds it when every input is known and
 * the record can. Outputs in n->out. On failure a message was reported. in and attr are copied (not
 * deep). `nout` is how many outputs the caller wants (0: the record's default). `param`, when not
 * NULL, replaces reading attributes. */
enum status graph_node(struct graph *g, const char *op, const char *name, int nin,
	struct tensor *const *in, int nout, int nattr, const struct attr *attr, const void *param,
	struct node **out);

/* For rules that build graph: the first output of a new node. A NULL among the first min_in inputs,
 * or a graph that has failed, gives NULL without a second message; g->failed remembers. So rules
 * chain calls and return g->failed once at the end. */
struct tensor *graph_op(struct graph *g, const char *op, int nin, struct tensor *const *in,
	int nattr, const struct attr *attr);
struct tensor *graph_param_op(struct graph *g, const char *op, int nin, struct tensor *const *in,
	int nattr, const struct attr *attr, const void *param);
struct node *graph_op_node(struct graph *g, const char *op, int nin, struct tensor *const *in,
	int nattr, const struct attr *attr, const void *param);
/* The operator of `like` on other inputs, as many; attributes and parameters as given. */
struct node *graph_op_like(struct graph *g, const struct node *like, struct tensor *const *in,
	int nattr, const struct attr *attr, const void *param);
#define OP1(g, op, a) graph_op((g), (op), 1, (struct tensor *[]){(a)}, 0, NULL)
#define OP2(g, op, a, b) graph_op((g), (op), 2, (struct tensor *[]){(a), (b)}, 0, NULL)
#define OP3(g, op, a, b, c) graph_op((g), (op), 3, (struct tensor *[]){(a), (b), (c)}, 0, NULL)
/* Offer `in` (nin tensors, as the node has) as another way to run n. */
enum status graph_alternative(struct graph *g, struct node *n, struct tensor *const *in);

/* `x` in the shape `dim`: a view. */
struct tensor *graph_reshape(struct graph *g, struct tensor *x, int rank, const int64_t *dim);
/* `dy` summed over the axes along which a tensor of shape `like` was broadcast: like's shape. */
struct tensor *graph_unbroadcast(struct graph *g, struct tensor *dy, const struct tensor *like);
/* The control tensors, made on first use. */
struct tensor *graph_control(struct graph *g);
struct tensor *graph_lr(struct graph *g);
/* Rows of a batch, or of a shard: the first axis of the model's first input that has one; 0: none.
 */
int64_t graph_rows(const struct graph *g);

/* Attributes. The _get functions return the default when absent. */
/* A node of the operator of this name; false for NULL. */
bool node_is(const struct node *n, const char *op);
const struct attr *node_attr(const struct node *n, const char *name);
/* NULL: absent. */
static inline struct tensor *node_input(const struct node *n, int k)
{
	return k < n->nin ? n->in[k] : NULL;
}
int64_t node_int(const struct node *n, const char *name, int64_t def);
double node_float(const struct node *n, const char *name, double def);
const char *node_string(const struct node *n, const char *name, const char *def);
/* attribute `name`, or, where input `input` (≥ 0) is present and known, its values (opset ≥ 13
 * moved axes there). *v NULL and *len 0 when neither is given. Fails when the input is not a
 * constant. */
enum status node_ints(struct graph *g, const struct node *n, const char *name, int input, int *len,
	const int64_t **v);
#define ATTR_I(nm, v) ((struct attr){.name = (nm), .kind = ATTR_INT, .i = (v)})
#define ATTR_F(nm, v) ((struct attr){.name = (nm), .kind = ATTR_FLOAT, .f = (v)})
#define ATTR_IS(nm, len, p)                                                                        \
	((struct attr){.name = (nm), .kind = ATTR_INTS, .n = (len), .ints = (p)})

/* How a node's small numbers lie, as its attributes: STORED_ATTRS of them; and back, without the
 * numbers themselves. */
enum { STORED_ATTRS = 3 };
enum status stored_attributes(struct graph *g, const struct stored *s, struct attr *attr);
void stored_of(const struct node *n, struct stored *out);

/* "in [-rank, rank)" → [0, rank); a message otherwise. */
enum status node_axis(struct graph *g, const struct node *n, int64_t axis, int rank, int *out);
/* NumPy broadcasting of two shapes (out may be a). A message naming both on mismatch. */
enum status node_broadcast(struct graph *g, const struct node *n, int ra, const int64_t *a, int rb,
	const int64_t *b, int *r, int64_t *out);

/* Report "FILE: node 'NAME' (Op): ..." and return ST_INVALID. */
enum status node_fail(struct graph *g, const struct node *n, const char *hint, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

#endif
