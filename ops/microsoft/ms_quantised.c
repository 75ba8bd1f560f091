/* Operators that compute in whole numbers, ONNX's and ONNX Runtime's: nothing trains through them.
 * What their makers write as well, QuantizeLinear and DequantizeLinear around operators of real
 * numbers, does. */
#include "ops/family.h"

static const char fixed[] =
	"write the model with QuantizeLinear and DequantizeLinear around what it computes (ONNX "
	"Runtime: quantize_static(..., quant_format=QuantFormat.QDQ, "
	"extra_options={'AddQDQPairToWeight': True})), which --qat trains";
static const char while_running[] =
	"train the model as it was before quantize_dynamic, and quantise what `stint export` "
	"writes; or quantise it by quantize_static(..., quant_format=QuantFormat.QDQ, "
	"extra_options={'AddQDQPairToWeight': True}), which --qat trains";
static const char blocks[] =
	"export the model in float: --frozen-precision nf4 stores weights in the same 4 bits";

#define FIXED(onnx)                                                                                \
	{                                                                                          \
		.name = onnx, .since = 1, .instead = fixed                                         \
	}
#define WHILE_RUNNING(onnx)                                                                        \
	{                                                                                          \
		.name = onnx, .since = 1, .instead = while_running                                 \
	}

const struct op_def ops_ms_quantised[] = {
	FIXED("QLinearConv"),
	FIXED("QLinearMatMul"),
	FIXED("com.microsoft.QGemm"),
	FIXED("com.microsoft.QLinearAdd"),
	FIXED("com.microsoft.QLinearAveragePool"),
	FIXED("com.microsoft.QLinearConcat"),
	FIXED("com.microsoft.QLinearConv"),
	FIXED("com.microsoft.QLinearGlobalAveragePool"),
	FIXED("com.microsoft.QLinearLeakyRelu"),
	FIXED("com.microsoft.QLinearMul"),
	FIXED("com.microsoft.QLinearReduceMean"),
	FIXED("com.microsoft.QLinearSigmoid"),
	FIXED("com.microsoft.QLinearSoftmax"),
	FIXED("com.microsoft.QLinearWhere"),
	WHILE_RUNNING("ConvInteger"),
	WHILE_RUNNING("DynamicQuantizeLinear"),
	WHILE_RUNNING("MatMulInteger"),
	WHILE_RUNNING("com.microsoft.DynamicQuantizeLSTM"),
	WHILE_RUNNING("com.microsoft.DynamicQuantizeMatMul"),
	WHILE_RUNNING("com.microsoft.MatMulInteger16"),
	WHILE_RUNNING("com.microsoft.MatMulIntegerToFloat"),
	WHILE_RUNNING("com.microsoft.QAttention"),
	WHILE_RUNNING("com.microsoft.QEmbedLayerNormalization"),
	{.name = "com.microsoft.MatMulBnb4", .since = 1, .instead = blocks},
	{.name = NULL},
};
