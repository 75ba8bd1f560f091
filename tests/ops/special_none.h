/* Records that take real numbers and have no case in special_torch.h, and why. */
#define MOVED "moves elements as Slice and Transpose do: nothing is asked of them"
#define NO_VALUES "reads the shape alone"
#define SUMS "sums and products: nothing is asked of the numbers"

static const struct {
	const char *op, *why;
} special_none[] = {
	{"AffineGrid", SUMS},
	{"BatchNormalization", "training is stint.BatchNormByBatch, evaluation sums and products"},
	{"Bernoulli", "PyTorch refuses a probability that is none"},
	{"CenterCropPad", MOVED},
	{"Col2Im", SUMS},
	{"Dropout", "PyTorch draws other numbers; what is dropped is a product with 0 "
		    "(tests/ops/test_random.c)"},
	{"EyeLike", NO_VALUES},
	{"OneHot", "an index that is no number: PyTorch takes none"},
	{"RandomNormalLike", NO_VALUES},
	{"RandomUniformLike", NO_VALUES},
	{"RotaryEmbedding", SUMS},
	{"Shape", NO_VALUES},
	{"Size", NO_VALUES},
	{"SpaceToDepth", MOVED},
	{"TensorScatter", MOVED},
	{"ai.onnx.preview.training.Adagrad", SUMS},
	{"ai.onnx.preview.training.Adam", SUMS},
	{"ai.onnx.preview.training.Momentum", SUMS},
	{"stint.AddWhen", SUMS},
	{"stint.BatchNormByRunning", SUMS},
	{"stint.BatchNormStats", SUMS},
	{"stint.Bce", "PyTorch refuses outputs that are not in [0, 1]"},
	{"stint.BceLogitsTerm", "the formula of stint.BceWithLogits, with a number an element"},
	{"stint.BceTerm", "as stint.Bce"},
	{"stint.Choose", MOVED},
	{"stint.Ctc",
		"PyTorch's is by way of a log-softmax; what has no path is in losses_torch.h"},
	{"stint.DivOrZero", "LpNormalization's"},
	{"stint.Either", MOVED},
	{"stint.Exact", MOVED},
	{"stint.GatherGrad", SUMS},
	{"stint.GroupNorm", "GroupNormalization's"},
	{"stint.JoinSlice", MOVED},
	{"stint.Roll", MOVED},
	{"stint.Rotary", SUMS},
	{"stint.SliceGrad", MOVED},
	{"stint.Terms", SUMS},
	{"stint.Quantize", "as stint.FakeQuantize, which has both halves"},
	{"stint.Dequantize", SUMS},
};
