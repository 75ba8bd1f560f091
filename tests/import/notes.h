/* Models with what PyTorch's dynamo exporter notes beside the graph. */
#ifndef STINT_TESTS_IMPORT_NOTES_H
#define STINT_TESTS_IMPORT_NOTES_H

#include "tests/import/model.h"

/* An entry of metadata_props. */
void notes_put(struct model_test *t, ProtobufCMessage *m, uint32_t field, const char *key,
	const char *value);
/* The graph's signature: "p_w: PARAMETER target='w'\n" and so on. */
void notes_signature(struct model_test *t, const char *lines);
/* A node that comes from module `scope`. */
Onnx__NodeProto *notes_from(struct model_test *t, const char *scope, Onnx__NodeProto *n);
/* A node that comes from a call: "linear", "aten.linear.default", "%x, %p_w, %p_b". */
Onnx__NodeProto *notes_call(struct model_test *t, const char *name, const char *target,
	const char *arguments, Onnx__NodeProto *n);

/* An initializer of n equal numbers. */
void notes_filled(struct model_test *t, const char *name, const char *shape, size_t n, float v);

/* What a node of the imported graph reads. */
const struct tensor *notes_input(const struct model_test *t, const char *node, int i);
/* It is this parameter. */
void notes_reads(const struct model_test *t, const char *node, int i, const char *tensor);
void notes_not_trained(const struct model_test *t, const char *name, const char *why);

#endif
