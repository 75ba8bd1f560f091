/* Just enough of ONNX to read its own node tests: a reader independent of import/. */
#ifndef STINT_TESTS_ONNX_READ_H
#define STINT_TESTS_ONNX_READ_H

#include "graph/graph.h"

struct onnx_tensor {
	const char *name;
	bool supported;  /* its element type is */
	enum dtype type; /* DT_F64, DT_I64 or DT_BOOL */
	int rank;
	int64_t dim[RANK_MAX], numel;
	double *v;
};

struct onnx_node {
	const char *op, *domain;
	int nin, nout, nattr;
	const char **in, **out;
	struct attr *attr;           /* tensors: `s` is NULL, t not set; see tensor */
	struct onnx_tensor **tensor; /* by attribute; NULL */
	bool supported;              /* no graphs or strings lists in the attributes */
};

struct onnx_model {
	int opset; /* 0: not ONNX's own domain */
	int nnode, ninit, nin, nout;
	struct onnx_node *node;
	struct onnx_tensor *init;
	const char **in, **out;
};

/* false: not readable. */
bool onnx_read_model(struct arena *a, const char *path, struct onnx_model *out);
/* A TensorProto in a file. */
bool onnx_read_tensor(struct arena *a, const char *path, struct onnx_tensor *out);

#endif
