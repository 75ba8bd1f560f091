/* Shared by the files of import/ only. */
#ifndef STINT_IMPORT_PRIVATE_H
#define STINT_IMPORT_PRIVATE_H

#include "import/import.h"
#include "onnx.pb-c.h"

/* A model in memory, unpacked by a guarded reader. */
struct model {
	const char *path;
	Onnx__ModelProto *proto;
	struct arena *arena; /* owns everything unpacked */
};

/* Read and unpack `path`: depth at most 64, no text with a zero byte, memory bounded by the file's
 * size. */
enum status model_read(struct arena *a, const char *path, struct model *out, struct diag *d);

/* Every external tensor inline. */
enum status model_take_in(const struct model *m, struct diag *d);
/* ST_INVALID where it would be over 2 GiB. */
enum status model_write(const struct model *m, const char *to, struct diag *d);
/* A node's name for people and for the schedule; nodes without one get "Op_index". */
const char *node_label(struct arena *a, const Onnx__NodeProto *n, int index);

/* Element counts and values of a TensorProto. *dim has rank entries. */
enum status tensor_shape(const struct model *m, const Onnx__TensorProto *t, int *rank,
	int64_t dim[RANK_MAX], int64_t *numel, struct diag *d);
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
/* Bytes of one element in raw data; 0: not supported. */
int element_width(int32_t onnx);

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
/* The value's place for `name`, made on demand (NULL value then); NULL when out of memory. */
void **names_at(struct names *t, const char *name);
/* The value, or NULL. */
void *names_get(const struct names *t, const char *name);

/* --- What the dynamo exporter notes (metadata.c) --- */

/* Fields of onnx.proto after 1.12. */
enum { NODE_METADATA = 9, GRAPH_METADATA = 16 };
/* The value under `key` among a message's metadata_props; NULL when there is none. */
const char *metadata_get(
	struct arena *a, const ProtobufCMessage *message, unsigned field, const char *key);
/* The module that a node comes from, as "encoder.layers.0"; NULL when the file does not say. */
const char *node_scope(struct arena *a, const Onnx__NodeProto *n);

/* What a tensor was in the module that was exported. */
enum origin { ORIGIN_UNKNOWN, ORIGIN_PARAMETER, ORIGIN_BUFFER, ORIGIN_CONSTANT };
struct module_tensor {
	const char *name;
	enum origin kind;
	struct module_tensor *next; /* in the module's order */
};

/* --- The stages of import_onnx --- */

struct importer {
	struct model m;
	const struct import_options *o;
	const struct op_table *table;
	struct graph *g;
	struct diag *d;
	struct names tensor; /* ONNX name → struct tensor */
	struct names module; /* the module's tensors by name → struct module_tensor */
	struct module_tensor *module_first, **module_end;
	struct names use; /* initializers → how nodes read them (roles.c) */
	struct names dim; /* symbolic size → what it is bound to (dims.c) */
};

/* Faults of one kind that are reported; a file can have millions. */
enum { REPORT_MAX = 100 };

/* The module's tensors, where the exporter notes them. */
enum status signature_read(struct importer *im);
/* Undo what exporters do to initializers: equal ones that were merged are separate again,
 * transposed copies are tied to what they are copies of; --tie and --untie. Rewrites the file in
 * memory. Requires signature_read. */
enum status ties_rewrite(struct importer *im);
/* Whether initializer `t` is trained, and why (for people). Requires uses_read. */
struct decision {
	bool trained;
	const char *why;
};
/* Shell patterns, ended by NULL; NULL: none. */
bool name_matches(const char *const *patterns, const char *name);
/* Made by an exporter or optimizer for a constant of its own. */
bool name_generated(const char *name);
enum status uses_read(struct importer *im);
/* Say so when the exporter folded batch-norms away. Requires uses_read. */
void warn_of_folding(struct importer *im);
struct decision role_of(const struct importer *im, const struct tensor *t);

/* order[i]: the index in the file of the i-th node to build; nodes stand after what they read.
 * Reports inputs that nothing makes, names made twice, and cycles. */
enum status order_nodes(struct importer *im, const int **order);
/* Initializers and inputs as tensors. */
enum status import_values(struct importer *im);
/* The shape of an input; NULL when it is no tensor or has none. */
const Onnx__TensorShapeProto *input_shape(const Onnx__ValueInfoProto *v);
/* Bind the symbolic sizes. Requires the initializers in `tensor`. */
enum status dims_bind(struct importer *im);
/* The size of one axis of an input; reports an unbound one. */
enum status dims_size(struct importer *im, const char *input, int axis,
	const Onnx__TensorShapeProto__Dimension *dim, int64_t *out);
/* Report every operator without a record, or outside ONNX's domain: one message each. */
enum status check_operators(struct importer *im);
/* Build node `index` of the file. */
enum status import_node(struct importer *im, int index);

#endif
