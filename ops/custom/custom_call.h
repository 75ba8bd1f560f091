/* A user's hook being called; shared by custom.c and custom_api.c. */
#ifndef STINT_OPS_CUSTOM_CALL_H
#define STINT_OPS_CUSTOM_CALL_H

#include "codegen/emit.h"
#include "ops/stint_op.h"

/* A user's record as one of ours: found back from a node's op, which is def[0]. */
struct custom {
	struct op_def def[2]; /* the record, and what ends a family */
	const struct stint_op *user;
	const char *file;
};

struct hook {
	struct stint_call call; /* first: what the user's code is handed */
	const struct graph *g;
	struct graph *build; /* `gradient`: to add nodes to; NULL in others */
	struct emit *e;      /* `body`; NULL in others */
	const struct node *n;
	const struct custom *custom;
	const char *name;   /* of the hook, for messages */
	enum status status; /* of the first failure, which was reported */
};

/* Ready to be called. ST_INTERNAL when out of memory. */
enum status hook_begin(
	struct hook *h, const struct graph *g, const struct node *n, const char *name);
/* What the hook returned, as a status; reports a failure that it did not. */
enum status hook_end(struct hook *h, int returned);
/* Report "FILE.so: ..." about the node. */
enum status hook_fail(struct hook *h, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* A handle's tensor; NULL for 0, and, with a message, for one that is none of this graph's. */
struct tensor *hook_tensor(struct hook *h, stint_value v);

#endif
