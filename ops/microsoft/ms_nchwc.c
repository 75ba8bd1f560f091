/* ONNX Runtime's operators on blocks of channels, in the layout of one processor. */
#include "ops/family.h"

static const char unblocked[] =
	"ONNX Runtime's optimization level \"all\" wrote it, in a layout for one processor: write "
	"the "
	"model at \"extended\" (GraphOptimizationLevel.ORT_ENABLE_EXTENDED) or \"basic\", or take "
	"it as "
	"it was before";

#define BLOCKED(onnx)                                                                              \
	{                                                                                          \
		.name = "com.microsoft.nchwc." onnx, .since = 1, .instead = unblocked              \
	}

const struct op_def ops_ms_nchwc[] = {
	BLOCKED("AveragePool"),
	BLOCKED("Conv"),
	BLOCKED("GlobalAveragePool"),
	BLOCKED("GlobalMaxPool"),
	BLOCKED("MaxPool"),
	BLOCKED("ReorderInput"),
	BLOCKED("ReorderOutput"),
	BLOCKED("Upsample"),
	{.name = NULL},
};
