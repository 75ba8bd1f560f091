/* Initializers while ties are looked at: what ties.c and owners.c share. */
#ifndef STINT_IMPORT_TIES_H
#define STINT_IMPORT_TIES_H

#include "import/import_parts.h"

typedef Onnx__NodeProto Node;
typedef Onnx__TensorProto Tensor;

/* One input of one node. */
struct reader {
	Node *node;
	size_t input;
	const char *copy; /* what it reads in the end; NULL: as before */
	struct reader *next;
	/* what owners_read found; without a call, or where it does not tell, nothing */
	struct call *call;
	struct module_tensor *reads; /* whose name the initializer has */
	struct module_tensor *means; /* what stood there before the exporter merged equal ones */
	bool nobody;                 /* none of the module's did */
	const char *turned;     /* the parameter whose transpose stands there (turned.c); NULL */
	struct reader *in_call; /* the call's next */
};

/* An initializer while ties are looked at. */
struct item {
	Tensor *t;
	size_t index; /* among the initializers */
	struct reader *first, **end;
	int nreader; /* in the file */
	int64_t numel;
	int width;                /* bytes of an element */
	const unsigned char *raw; /* read on demand */
	bool dropped;
	bool turned;       /* its readers tell whose transpose it is */
	struct item *next; /* in its bucket */
};

enum split_kind {
	SPLIT_UNIFORM,
	SPLIT_STACK,  /* readers in other layers of a stack only */
	SPLIT_ASKED,  /* --untie */
	SPLIT_UNSURE, /* for the message: of SPLIT_UNIFORM's */
	SPLIT_NONE,   /* for the message: one parameter, in several layers of a stack */
	SPLIT_KINDS
};

/* The copies of a kind, for one message. */
struct told {
	struct text list, tie; /* tie: what keeps the first as it was */
	int n;
};

struct ties {
	struct importer *im;
	Onnx__GraphProto *graph;
	struct names item;   /* name → struct item */
	struct names bucket; /* matrices that may be each other's transpose → struct item */
	struct names
		reading; /* owners.c's: aliases of initializers → the first node that reads one */
	struct names maker;  /* what nodes that read one give → the node */
	struct names made;   /* copies by name → the struct item that they are copies of */
	struct names joined; /* those that --tie keeps what they were → that */
	struct names turned; /* turned.c's: names that are to be given → struct claim */
	Tensor **added;      /* initializers to add, and their number */
	size_t nadded;
	Node **node; /* nodes to add */
	size_t nnode;
	struct told told[SPLIT_KINDS];
	bool dropped; /* an initializer or node is to be taken away */
};

bool tensor_is_real(const Tensor *t);
/* The file's i-th initializer; NULL: its name stood before. */
struct item *item_at(const struct ties *s, size_t i);
/* x's values as bytes; false where they are no floats, or cannot be had (which is reported when
 * they are imported). */
bool item_load(struct ties *s, struct item *x);
/* Requires item_load. */
bool item_is_uniform(const struct item *x);
/* Whether --tie names it. */
bool ties_keep(const struct ties *s, const char *name);
/* A node that makes `to` by transposing `from`, of whose readers it is one then. */
enum status ties_transpose(struct ties *s, struct item *from, const char *to);

/* A reader of x, in the file's order. Requires calls_read. */
void owners_add(struct ties *s, struct item *x, struct reader *r);
/* What they mean, as PyTorch's calls say. Requires all of them. */
enum status owners_read(struct ties *s);
/* The name of reader r's own copy, or NULL: it keeps reading x. Readers of one parameter share one
 * name. *unsure: it may be a parameter of which the file does not tell the name. */
const char *owner_copy(struct ties *s, const struct item *x, const struct reader *r,
	enum split_kind kind, bool *unsure);
/* Transposed weights of linear layers become the module's own again, with nodes that transpose
 * them. Requires owners_read, and that is tied what is to be. */
enum status turned_back(struct ties *s);
/* Whether r's node is of another layer of a stack than x's first reader, by their names. */
bool reader_in_stack(const struct item *x, const struct reader *r);
/* Identity(initializer): how the older exporter keeps the name of one that it merged. */
bool reader_is_alias(const struct ties *s, const struct reader *r);

#endif
