/* Just enough of ONNX for the data of its own node tests: independent of import/, which reads the
 * models. */
#ifndef STINT_TESTS_ONNX_READ_H
#define STINT_TESTS_ONNX_READ_H

#include "graph/graph.h"

struct onnx_tensor {
	const char *type; /* "float16" */
	enum dtype dtype; /* DT_F64, DT_I64 or DT_BOOL */
	int rank;
	int64_t dim[RANK_MAX], numel;
	double *real;   /* of DT_F64 */
	int64_t *whole; /* of the others; uint64 as its bits */
};

/* A model's names. */
struct onnx_model {
	int nop, ninitializer, nin, nout;
	const char **op; /* of its nodes, in the file's order: "Relu", "ai.onnx.ml.Binarizer" */
	const char **initializer, **in, **out;
	int *in_type, *out_type; /* TensorProto.DataType; 0: no tensor */
};

/* false: not readable. */
bool onnx_read_model(struct arena *a, const char *path, struct onnx_model *out);
/* A TensorProto in a file; false: of another type than numbers (8 to 64 bits) and bools, or no
 * tensor. The model declares the type; old files hold bfloat16 as uint16. */
bool onnx_read_tensor(struct arena *a, const char *path, int declared, struct onnx_tensor *out);

#endif
