/* ONNX in, graph out; and a trained ONNX out again. The only folder that knows protobuf.
 *
 * Opsets 7 to 25. Functions are inlined, control flow and sequences resolved: none of them reaches
 * the graph. Everything in a file is checked before it is used; each fault is reported with
 * file, node and hint. No operator is known here: what a node means is asked of the table. */
#ifndef STINT_IMPORT_IMPORT_H
#define STINT_IMPORT_IMPORT_H

#include "graph/op.h"

enum { EXPANSION_MAX = 200000 };

/* Which nodes must be built; others are left out where they cannot be, with a note. */
enum import_read {
	IMPORT_READ_ALL,
	IMPORT_READ_OUTPUTS, /* those that `output` comes from */
	IMPORT_READ_ANY      /* none: as many as can be */
};

struct import_dim {
	const char *name; /* the symbolic dimension, or "INPUT:AXIS" */
	int64_t size;
};

/* --tie NAME=COPY */
struct import_tie {
	const char *name, *copy;
};

/* Values of a tensor, in types of the graph (reals of its one real type), not copied. */
struct import_data {
	enum dtype type;
	int rank;
	int64_t dim[RANK_MAX];
	const void *v;
};

/* --fix NAME=1,2,3: an input that is known when compiling. Numbers parted by commas; as many as the
 * input's shape has, or any number for one axis. Or handed over as they are: then their type must
 * be the input's, and their shape is taken. */
struct import_fix {
	const char *name, *values;
	const struct import_data *data; /* instead of `values`; NULL */
};

/* --padding-idx NAME=N: of the table NAME, row N gets no gradient from lookups. */
struct import_padding {
	const char *name;
	int64_t row; /* below 0: from the end */
};

struct import_options {
	int64_t batch; /* first axis of the data inputs; 0: not given */
	int64_t whole; /* the batch that `batch` is a micro-batch of, by --micro-batch; 0: none */
	int64_t expansion; /* nodes that functions and loops may come to; 0: EXPANSION_MAX */
	int64_t unbound; /* size of axes that nothing binds, for looking at a model; 0: an error */
	/* They get a size instead, which a note tells: 1, where they are an input's first axis, 224
	 * along a picture's sides, or 128. Values of weights that lie in files that are not there
	 * are others' (absent.c), which a warning tells. */
	int guess;
	int ndim;
	const struct import_dim *dim;
	/* Shell patterns (fnmatch), ended by NULL; NULL: none. With train patterns a float
	 * initializer of rank 1 or more is trained when it matches one of them; without, roles.c
	 * decides. A freeze pattern wins. */
	const char *const *train_pattern, *const *freeze_pattern;
	const char *const *train_name; /* trained as well: names, no patterns; NULL: none */
	/* Patterns take nothing away: what they leave out stays a parameter, for a later pass to
	 * freeze (graph/adapt.h). What is folded now would have a second copy then. */
	bool adapted;
	/* Initializers that are one although the file has two, of one shape or transposed. */
	int ntie;
	const struct import_tie *tie;
	int nfix;
	const struct import_fix *fix;
	int npadding;
	const struct import_padding *padding;
	/* Biases of zeros that PyTorch's exporter took away are parameters again (biases.c). */
	int restore_biases;
	/* QuantizeLinear and DequantizeLinear of what is computed, or trained: the gradient goes
	 * straight through them. Without, they are refused. */
	int qat;
	/* Loops of so many turns or more are one node, where they can be; 0: all are unrolled. */
	int64_t loop_turns;
	/* Tensors of the model that are outputs, too: those that a loss reads. Ended by NULL; NULL:
	 * none. */
	const char *const *output;
	enum import_read read;
	/* --replace-head: the last product before the first of these, or the first output, gets so
	 * many outputs, with new values, or where `head_keeps` with the first that there were; 0:
	 * stays (head.c). */
	int64_t head;
	bool head_keeps;
	/* The oldest opset that is taken; 0: 7. Lower ones are for tests of operators that have not
	 * changed since: such models are too old to be worth the rest of the importer's care. */
	int opset_min;
	/* Nodes whose outputs no gradient passes. */
	const char *const *stop_pattern;
	/* Those that are never tied, and separate for each layer that reads them. */
	const char *const *untie_pattern;
};

/* ST_IO: the file cannot be read; ST_USAGE: --batch and --dim contradict each other or name
 * nothing; ST_INVALID: the model, with every fault of a kind told at once.
 *
 * Requires a path. Produces a verified graph whose inputs, initializers and outputs carry the
 * file's names. */
enum status import_onnx(struct arena *a, const char *path, const struct import_options *o,
	const struct op_table *table, const struct target *target, enum dtype real, struct diag *d,
	struct graph **out);

/* Where an initializer's bytes are, so that a copy of the model need not have them: from `offset`
 * on in `file`, which is beside the copy, if they are `data`; `file` NULL: where the model has
 * them. */
struct import_place {
	const char *file;
	uint64_t offset;
	const void *data;
	size_t bytes;
};

/* A copy of the model with external data taken in, and its initializers tied and untied as
 * import_onnx has them. Where that would be over 2 GiB, which protobuf does not allow, large
 * tensors lie in `to`.data; so do those of all models written here. Initializers of which `outside`
 * knows a place stay there; where that is not beside the copy, export_lookup must know them. */
typedef bool import_outside(void *user, const char *name, struct import_place *at);
enum status import_copy_model(const char *from, const char *to, const struct import_options *o,
	const struct op_table *table, import_outside *outside, void *user, struct diag *d);

/* Value of initializer `name`: numel elements of *type, DT_F32 or DT_F64; or NULL to leave it as it
 * is. */
typedef const void *export_lookup(void *user, const char *name, int64_t numel, enum dtype *type);
/* What is added to that value, given as floats: numel elements, or NULL for nothing; and, of where
 * something was, what becomes of the sum, in its place. */
struct export_merge {
	const float *(*delta)(
		void *user, const char *name, int rank, const int64_t *dim, int64_t numel);
	void (*settle)(void *user, const char *name, const int64_t *dim, float *sum);
};
/* Asked when both were asked for all initializers: anything but ST_OK, and nothing is written. */
typedef enum status export_check(void *user, struct diag *d);
struct export_note {
	const char *key, *value;
};
struct export_values {
	export_lookup *lookup;
	const struct export_merge *merge; /* NULL: none, as of the next two */
	export_check *check;
	const struct export_note *note; /* a NULL key ends them */
	void *user;
	bool infinite; /* numbers too large for the file's type are infinities, else ST_INVALID */
};
/* Write `model` with initializers replaced, or added to, in their own types of reals, atomically,
 * and external data taken in; notes on the whole of it get into its metadata_props, in the place of
 * those of the same keys. Other fields, unknown ones too, stay. */
enum status export_onnx(
	const char *model, const char *to, const struct export_values *x, struct diag *d);

/* What to say about a node: "recompute", "kept" gets into its metadata_props as "stint.recompute".
 */
/* The notes on the node called `name` in a graph made of the model (there, nodes have names of
 * their own). Returns their number, -1 when memory ran out. */
typedef int export_notes(void *user, const char *name, const struct export_note **notes);
/* Write `model` with notes on its nodes in place of those of an earlier time. */
enum status export_annotated(
	const char *model, const char *to, export_notes *notes, void *user, struct diag *d);

#endif
