/* Shared by the files of import/ only. */
#ifndef STINT_IMPORT_IMPORT_PARTS_H
#define STINT_IMPORT_IMPORT_PARTS_H

#include "graph/expansion.h"
#include "import/import.h"
#include "onnx.pb-c.h"

/* A model in memory, unpacked by a guarded reader. */
struct model {
	const char *path;
	Onnx__ModelProto *proto;
	struct arena *arena; /* owns everything unpacked */
	struct names
		*external;     /* files beside it, by the names that it has for them (external.c) */
	struct absent *absent; /* stands in for weights in those that are not there; NULL: an error
				*/
};

/* Read and unpack `path`: depth at most 64, no text with a zero byte, memory bounded by the file's
 * size. */
enum status model_read(struct arena *a, const char *path, struct model *out, struct diag *d);
/* Unpack a message that lies in a field which onnx.proto does not know, as guarded. */
enum status model_unpack(const struct model *m, const ProtobufCMessageDescriptor *type,
	const ProtobufCMessageUnknownField *field, ProtobufCMessage **out, struct diag *d);
/* The text in such a field; "" where it holds no text. NULL when out of memory. */
const char *unknown_text(struct arena *a, const ProtobufCMessage *m, uint32_t tag);

/* Every external tensor inline, but for initializers of which `outside` says otherwise; NULL: of
 * none. */
enum status model_take_in(
	const struct model *m, import_outside *outside, void *user, struct diag *d);
/* Where the model would be larger than `most` bytes (PROTOBUF_MOST: what protobuf allows) its large
 * tensors go into a file beside it. All are inline before (write.c). */
#define PROTOBUF_MOST INT32_MAX
#define MODEL_DATA ".data"
enum status model_write(const struct model *m, const char *to, int64_t most, struct diag *d);
/* The tensors of a model: initializers and attributes, those of bodies and functions too. */
struct tensors {
	struct arena *arena;
	size_t n, cap;
	Onnx__TensorProto **item;
	bool initializers, attributes; /* which are wanted */
	bool failed;                   /* out of memory */
};
enum status tensors_list(const struct model *m, struct tensors *list, struct diag *d);
/* Raw bytes take the place of other forms. */
void tensor_set_raw(Onnx__TensorProto *t, const void *data, size_t bytes);
/* Whether its bytes are many enough to lie in another file, and that they do: in `location`, beside
 * the model. False: no memory. */
bool tensor_is_large(const Onnx__TensorProto *t);
bool tensor_refer(struct arena *a, Onnx__TensorProto *t, const char *location, uint64_t offset);
/* A node's name for people and for the schedule; nodes without one get "Op_index". */
const char *node_label(struct arena *a, const Onnx__NodeProto *n, int index);

/* Element counts and values of a TensorProto. *dim has rank entries. */
enum status tensor_shape(const struct model *m, const Onnx__TensorProto *t, int *rank,
	int64_t dim[RANK_MAX], int64_t *numel, struct diag *d);
/* A fault of tensor t: ST_INVALID. */
enum status tensor_bad(const struct model *m, const Onnx__TensorProto *t, const char *hint,
	struct diag *d, const char *what);
/* The `bytes` bytes of a tensor whose data is external, mapped. (external.c) */
enum status external_raw(const struct model *m, const Onnx__TensorProto *t, int64_t bytes,
	const unsigned char **raw, struct diag *d);
bool tensor_is_external(const Onnx__TensorProto *t);
/* Its values are others', since its file is not there. Requires that they were asked for. */
bool tensor_is_absent(const struct model *m, const Onnx__TensorProto *t);
/* The latter, as the file would have them. (absent.c) Requires m->absent, which absent_new makes
 * (NULL: no memory), and what absent_will_do says. */
struct absent *absent_new(struct arena *a);
bool absent_will_do(const Onnx__TensorProto *t);
void absent_file(const struct model *m, const char *location);
enum status absent_raw(const struct model *m, const Onnx__TensorProto *t, int64_t bytes,
	const unsigned char **raw, struct diag *d);
/* What t says of its data's place is no longer found: it is for who knows t's name. */
enum status external_leave(const struct model *m, Onnx__TensorProto *t, struct diag *d);
/* The raw little-endian bytes: inline, or of the external file (checked to lie below the model's
 * folder). *raw NULL when the values stand in one of the typed fields. */
enum status tensor_raw(const struct model *m, const Onnx__TensorProto *t, int64_t numel,
	const unsigned char **raw, struct diag *d);
/* A TensorProto as numel values of the graph's types, owned by the model's arena. */
enum status tensor_values(const struct model *m, const Onnx__TensorProto *t, enum dtype real,
	enum dtype *type, int *rank, int64_t dim[RANK_MAX], const void **data, struct diag *d);
/* Our type for an ONNX element type; false when there is none. */
bool element_type(int32_t onnx, enum dtype real, enum dtype *out);
/* "float16", for messages. */
const char *element_name(int32_t onnx);
/* Bytes of one element in raw data; 0: not supported, or half a byte. */
int element_width(int32_t onnx);
/* Bytes of so many elements in raw data; 0 also where the type is not supported. */
int64_t element_bytes(int32_t onnx, int64_t numel);

/* One real number as the bytes of ONNX's `type`, rounded to nearest. */
void real_put(int32_t type, unsigned char *to, double v);
/* v does not become an infinity there that it is not. */
bool real_fits(int32_t type, double v);

/* Text of a protobuf string field that may be absent. */
static inline const char *text_of(const char *s)
{
	return s ? s : "";
}

/* --- Names to values: a hash table in the arena --- */

struct names {
	struct arena *arena;
	int n, cap; /* cap: a power of two */
	struct name_slot {
		const char *name;
		void *value;
	} * slot;
};
/* The value's place for `name`, made on demand (NULL value then); NULL when out of memory. The name
 * is not copied. */
void **names_at(struct names *t, const char *name);
/* The value, or NULL. */
void *names_get(const struct names *t, const char *name);
/* Room for n names in an empty table: what grows leaves its old places in the arena. */
bool names_reserve(struct names *t, size_t n);
/* Empty it, in time in proportion to what it held since it was last emptied. */
void names_clear(struct names *t);

/* The same with addresses for keys: what was made of a message of the file. */
struct memo {
	struct arena *arena;
	int n, cap;
	struct memo_slot {
		const void *key;
		void *value;
	} * slot;
};
void **memo_at(struct memo *t, const void *key);
void *memo_get(const struct memo *t, const void *key);

/* --- Graphs and functions, ready to be built any number of times (block.c) --- */

struct block {
	const char *what;              /* for messages: a function's or an attribute's name, NULL */
	const Onnx__GraphProto *graph; /* NULL: a function's nodes */
	bool inner;                    /* names may come from around it */
	int n, nin, nout;
	Onnx__NodeProto *const *node;
	const char **in, **out; /* names */
	const int *order;       /* NULL until order_nodes */
	bool checked;           /* block_ready was here */
	const bool *unread;     /* by node: the loss does not read it; NULL: it may read all */
	int64_t size;           /* nodes that building it may make */
};

/* A function of the model. */
struct function {
	const Onnx__FunctionProto *proto;
	const char *name, *domain;
	int opset; /* ONNX's, for its nodes */
	int ndefault;
	Onnx__AttributeProto **deflt; /* its attributes' defaults */
	enum { FUNCTION_NEW, FUNCTION_OPEN, FUNCTION_DONE } state;
	bool checked; /* check_operators has seen it */
	struct function *next_check;
	struct block block;
};

/* Names in one block while it is built. */
struct scope {
	const struct scope *outer;       /* where other names are looked for; NULL: nowhere */
	struct names *tensor, *other;    /* struct tensor; struct value: lists and nothing */
	const char *prefix;              /* of names made here: "call/" */
	const struct function *function; /* whose attributes may be referred to; NULL */
	int nattr;                       /* those given by the call */
	const struct attr *attr;
	int opset;
};

/* --- What the dynamo exporter notes (metadata.c) --- */

/* Fields of onnx.proto after 1.12. */
enum { NODE_METADATA = 9, GRAPH_METADATA = 16 };
/* The value under `key` among a message's metadata_props; NULL when there is none. */
const char *metadata_get(
	struct arena *a, const ProtobufCMessage *message, unsigned field, const char *key);
/* What nodes are called by their layers, unique among those of the graph; NULL: as in the file,
 * also for *out, where that is so for all. ST_INTERNAL without a message when out of memory. */
enum status node_layers(struct arena *a, const Onnx__GraphProto *g, const char *const **out);
/* The module that a node comes from, as "encoder.layers.0"; NULL when the file does not say. */
const char *node_scope(struct arena *a, const Onnx__NodeProto *n);

/* What a tensor was in the module that was exported. */
enum origin { ORIGIN_UNKNOWN, ORIGIN_PARAMETER, ORIGIN_BUFFER, ORIGIN_CONSTANT };
struct module_tensor {
	const char *name, *argument; /* argument: what calls name it by; NULL */
	enum origin kind;
	bool removed;               /* a bias of zeros that the exporter took away */
	struct call *call;          /* one that names it; NULL: none */
	struct module_tensor *next; /* in the module's order */
};

/* What PyTorch called where nodes come from (calls.c). */
struct call {
	const char *name, *target; /* "linear_1", "aten.linear.default" */
	const char *text;          /* from its arguments on */
	int narg, nodes;
	struct module_tensor **arg; /* the module's tensors among the arguments, in order */
	const char **unknown;       /* the others' names */
	int nunknown;
	bool whole;   /* nodes come from this call alone: what it does not mention, they do not mean
		       */
	bool trained; /* its nodes read a parameter that is not called as the module's */
	struct reader *first, **end; /* its nodes' inputs that are initializers (owners.c) */
	bool resolved;
};

/* --- The stages of import_onnx --- */

enum {
	REPORT_MAX = 100,   /* faults of one kind that are reported; a file can have millions */
	DEPTH_MAX = 100,    /* calls and bodies inside each other */
	BYTES_A_NODE = 256, /* so many bytes of names and lists count as one more */
};

struct trie;

/* Why a node is left out (not_read.c). */
struct left_reason {
	const char *node, *op, *message, *hint;
	struct left_reason *next;
};

struct importer {
	struct model m;
	const struct import_options *o;
	const struct op_table *table;
	struct graph *g;
	const struct op_index *index; /* of the table */
	struct diag *d;
	struct scope top;
	struct names module;    /* the module's tensors by name → struct module_tensor */
	struct names argument;  /* the same by what calls name them by */
	struct names call;      /* PyTorch's calls by name → struct call */
	struct names mentioned; /* all that calls name → struct call, the last one to do so */
	struct memo call_of;    /* nodes → struct call */
	struct module_tensor *module_first, **module_end;
	struct names copied;    /* initializers that ties_rewrite made → struct copied */
	struct names turned;    /* those that it turned back → what the file calls them */
	struct names use;       /* initializers → how nodes read them (uses.c) */
	struct names spelled;   /* those that were Constant nodes → their TensorProto */
	struct names replacing; /* values that replace a buffer → its name (replaced.c) */
	struct names dim;       /* symbolic size → what it is bound to (dims.c) */
	struct trie *functions; /* by domain, name, overload; NULL: the model has none */
	struct memo block;      /* GraphProto → struct block */
	struct memo constant;   /* TensorProto → struct tensor, in blocks that are built often */
	bool unbound;           /* an input has an axis of no size (dims_axes) */
	int64_t rows;           /* the batch that the graph is built for */
	int64_t fixed;          /* the file says so: in its input `batched`; 0: it does not */
	const char *batched;
	bool one_row;          /* the nodes say so, of an axis with a name: at 1 */
	struct names left_out; /* what nodes that are left out would have made */
	int nleft;             /* these nodes */
	struct left_reason *left_first, **left_end;
	struct names head;   /* what --replace-head made: trained, whatever else is */
	const char *headed;  /* an output that --replace-head changes; NULL */
	const char *resized; /* the weight that it has made of another size; NULL */
	int headed_axis;     /* which then has as many as it says */
	int64_t limit, left; /* nodes that calls and bodies make: in all, still */
	int depth;           /* blocks being built, the model's own not counted */
	struct names tensor[DEPTH_MAX + 1], other[DEPTH_MAX + 1]; /* their names, by depth */
};

/* b->order[i]: the index of the i-th node to build; nodes stand after what they read. Reports
 * inputs that nothing makes (names from around an inner block are not looked at), names made twice,
 * and cycles. Of the model's own block, b->unread, too. */
enum status order_nodes(struct importer *im, struct block *b);
/* Build node `index` of the model's own block, or leave it out where that fails and the loss does
 * not read it. */
enum status import_or_leave(struct importer *im, const struct block *b, int index);
bool output_left_out(const struct importer *im, const char *name);
/* Note what was left out. */
void left_out_tell(struct importer *im);
/* Report it as errors: nothing is left to compute. */
enum status left_out_fail(struct importer *im);

/* What exporters did to initializers undone, in the file in memory: the stages below, in order.
 * Requires the index and top.opset. */
enum status initializers_rewrite(struct importer *im);
/* Nodes are called by node_layers, in the file in memory. */
enum status layers_rewrite(struct importer *im);
/* The module's tensors, where the exporter notes them. */
enum status signature_read(struct importer *im);
/* PyTorch's calls of the graph's nodes. Requires signature_read. */
enum status calls_read(struct importer *im);
/* NULL: the file does not say. */
struct call *call_of(const struct importer *im, const Onnx__NodeProto *n);
/* Its argument `i`, as a number; false: there is none. */
bool call_number(const struct call *c, int i, double *out);
/* Its argument `i`, where that is one of the module's tensors; else NULL. */
const struct module_tensor *call_tensor(const struct call *c, int i);
/* The row of a lookup's table that gets no gradient from it: by --padding-idx, or as noted. false:
 * none. */
bool padding_of(const struct importer *im, const Onnx__NodeProto *n, int64_t *row);
/* Report --padding-idx that fits no lookup. */
enum status padding_check(struct importer *im);
/* What stands where weights stand in Constant nodes and bodies becomes initializers of the model,
 * and so do those that --train names. Rewrites the file in memory. */
enum status constants_rewrite(struct importer *im);
/* Biases of zeros that PyTorch's exporter took away: marked as removed, with --restore-biases put
 * back, and told. Rewrites the file in memory. Requires calls_read. */
enum status biases_rewrite(struct importer *im);
/* A whole number among n's attributes. `name` NULL: it has none. */
int64_t attribute_int(const Onnx__NodeProto *n, const char *name, int64_t otherwise);
/* The axis of node n's weight that is as long as its bias. */
int bias_axis(const struct op_bias *bias, const Onnx__NodeProto *n);
/* Undo what exporters do to initializers: equal ones that were merged are separate again,
 * transposed copies are tied to what they are copies of, transposed weights turned back; --tie and
 * --untie. Rewrites the file in memory. Requires signature_read. */
enum status ties_rewrite(struct importer *im);
/* Constants that are functions of parameters, by their values, are made of them again, by nodes
 * (folded.c). Rewrites the file in memory. Requires ties_rewrite. */
enum status folded_rewrite(struct importer *im);
/* The last product gets another number of outputs, with --replace-head. Rewrites the file in
 * memory. */
enum status head_rewrite(struct importer *im);
/* Whether the output `name`, t, has become what it was to. Requires head_rewrite. */
enum status head_check(const struct importer *im, const char *name, const struct tensor *t);
/* An initializer that ties_rewrite made of another. */
struct copied {
	const char *of;
	bool trained; /* as that one is: nothing says that it is a constant */
};
/* Whether initializer `t` is trained, and why (for people). Requires uses_read. */
struct decision {
	bool trained;
	const char *why;
};
/* "bias" of "a.fc.bias". */
const char *name_leaf(const char *name);
/* "mul", "mul_3": one of these words (NULL ends them), numbered as PyTorch does. */
bool name_numbered(const char *name, const char *const word[]);
/* Made by an exporter or optimizer for a constant of its own. */
bool name_generated(const char *name);
/* How nodes read an initializer (uses.c). */
struct use {
	bool weight;   /* where weights stand by nature */
	bool affine;   /* factor or summand */
	bool table;    /* of which rows are looked up */
	bool bias;     /* added to a product with weights */
	bool data;     /* factor or summand of what the caller gives */
	bool known;    /* where only constants can stand */
	bool expected; /* in a module of which a parameter is not among the initializers */
	bool renamed;  /* a layer's weights, which PyTorch's exporters made with the bias: a batch
			  norm is in them */
	bool computed; /* a layer's weights, which PyTorch's older exporter made, not the bias */
};
/* Of all names in `use`, which has a struct use for each. */
enum status uses_of(struct importer *im, const struct names *use);
/* Those of the initializers: im->use. */
enum status uses_read(struct importer *im);
/* Say so when parameters of the module are nowhere in the file: folded into constants (lost.c).
 * Requires the initializers in `top`. */
enum status warn_of_lost(struct importer *im);
/* Say so when the exporter folded batch-norms away. Requires uses_read. */
void warn_of_folding(struct importer *im);
/* Note what is trained by its name and looks like no parameter. Requires the graph. */
enum status note_suspects(struct importer *im);
/* Say so of what is not trained, since the exporter made it, and stands where parameters do, in
 * files without notes of a module. Requires the graph. */
enum status warn_of_left_out(struct importer *im);
/* All elements are one number; or they are what no training leaves: whole numbers, evenly spaced
 * ones, powers, sines and cosines of positions. */
bool looks_uniform(const struct tensor *t);
bool looks_computed(const struct tensor *t);
/* Buffers that the module's forward pass overwrites, as the exporter notes: im->replacing, and a
 * warning of those that the file cannot tell the new value of. Requires signature_read. */
enum status replaced_read(struct importer *im);
/* Nodes that overwrite them. Requires all others. */
enum status replaced_build(struct importer *im);
/* Say so when the exporter left label smoothing out of a loss, which its notes have. */
void warn_of_smoothing(struct importer *im);
/* PyTorch's `.detach()`, which ONNX has as Identity: the newer exporter notes it, without optimize.
 */
bool node_is_detach(const Onnx__NodeProto *n);
/* Say which files are not there, values in which others stand in for. */
void absent_tell(const struct importer *im);
struct decision role_of(const struct importer *im, const struct tensor *t);
/* Whether it would be trained if the command line said nothing of it. */
bool weight_by_origin(const struct importer *im, const struct tensor *t);

/* The file's functions into im->functions. */
enum status functions_read(struct importer *im);
/* The function that a node calls, or NULL. */
struct function *function_of(const struct importer *im, const Onnx__NodeProto *n);
/* Build its body in place of the call. out[nout] are set. */
enum status function_call(struct importer *im, struct function *f, const char *name, int nin,
	const struct value *in, int nout, struct value *out, int nattr, const struct attr *attr);
/* "", where it is ONNX's own. */
const char *domain_of(const Onnx__NodeProto *n);
/* Report an opset that stint does not know; `function` NULL: the model's. */
enum status check_opset(struct importer *im, int64_t opset, const char *function);
/* ONNX's opset in a list; 0: none. */
int64_t opset_of(Onnx__OperatorSetIdProto *const *list, size_t n);

/* The model's graph as a block. */
enum status block_main(struct importer *im, struct block **out);
/* A function's nodes as a block. */
enum status block_function(struct importer *im, struct function *f);
/* Check its operators and order its nodes, once. */
enum status block_ready(struct importer *im, const struct scope *s, struct block *b);
/* Check that a function does not call itself, and set its block's size. */
enum status function_size(struct importer *im, struct function *f, int depth);
/* Build a block with these inputs in a scope of its own. */
enum status block_build(struct importer *im, struct block *b, const struct scope *s, int nin,
	const struct value *in, int nout, struct value *out);
/* A body: the graph in an attribute, and the scope in which it stands. */
enum status block_body(struct importer *im, const struct scope *s, const Onnx__AttributeProto *a,
	const struct body **out);

/* The scope for a block built inside: names found around it or not, under a prefix. */
struct scope scope_inside(const struct scope *s, const char *prefix);
/* "prefix/name" in the arena, the name itself where there is no prefix; NULL when out of memory. */
const char *scope_name(struct importer *im, const struct scope *s, const char *name);
/* What a name stands for; false: nothing. */
bool scope_get(const struct scope *s, const char *name, struct value *out);
enum status scope_set(
	struct importer *im, const struct scope *s, const char *name, const struct value *v);
/* One more node made by a call or a body, with so many bytes of names and lists. */
enum status expansion_count(struct importer *im, const struct where *w, size_t bytes);

/* Initializers and inputs of the model as tensors. */
enum status import_values(struct importer *im);
/* Initializers of an inner block. */
enum status import_initializers(
	struct importer *im, const struct scope *s, const Onnx__GraphProto *p);
/* The shape of an input; NULL when it is no tensor or has none. */
const Onnx__TensorShapeProto *input_shape(const Onnx__ValueInfoProto *v);
/* Bind the symbolic sizes. Requires the initializers in `top`. */
enum status dims_bind(struct importer *im);
/* The names of axes that nothing binds, of an input or, once those are done, an output. */
enum status dims_axes(
	struct importer *im, const Onnx__TensorShapeProto *shape, bool output, struct tensor *t);
/* Whether the file or --dim says the size of an input's axis (or --batch, of its name). */
bool dims_known(const struct importer *im, const char *input, int axis,
	const Onnx__TensorShapeProto__Dimension *dim, int64_t *out);
/* What helps where the batch is fixed at `size`: NULL where there is no memory. */
const char *fixed_hint(const struct importer *im, int64_t size);
/* im->rows: --batch, or what the file fixes. Requires the initializers in `top`. */
void batch_read(struct importer *im);
/* The graph for --batch, where the file fixes another one. Requires the graph. (fixed_batch.c) */
enum status batch_free(struct importer *im);
/* What --fix says of an input; NULL: nothing. */
const struct import_fix *fix_of(const struct import_options *o, const char *name);
/* The size of one axis of an input; reports an unbound one. */
enum status dims_size(struct importer *im, const Onnx__ValueInfoProto *v, int axis, int64_t *out);

/* A node's attributes. Those that are graphs only where the node can be expanded. */
enum status import_attributes(struct importer *im, const struct scope *s, const char *node,
	const Onnx__NodeProto *p, bool bodies, int *n, struct attr *out);
/* The opset of a node's domain, of which `opset` is ONNX's. */
int domain_opset(const struct importer *im, const Onnx__NodeProto *n, int opset);
/* The record that a node means, or NULL: it may call a function. */
const struct op_def *record_of(const struct importer *im, const Onnx__NodeProto *n, int opset);
/* What a node's operator is called, with its domain where that is not ONNX's; NULL: out of memory.
 */
const char *operator_label(struct arena *a, const Onnx__NodeProto *n);
/* What to do about a node that means no record and no function. */
const char *hint_without_record(const struct importer *im, const Onnx__NodeProto *n);
/* Report every operator of a block (and of the functions it calls) that is neither. */
enum status check_operators(struct importer *im, const struct block *b, int opset);
/* Build node `index` of a block. */
enum status import_node(
	struct importer *im, const struct scope *s, const struct block *b, int index);

#endif
