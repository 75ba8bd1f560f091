"""The tools that write such files: a list of (tool, kind, how), where how(path) writes one and returns (the model in double precision,
or None; its inputs; options for stint). A tool that is not installed raises ModuleNotFoundError."""
import copy
import logging
import warnings

import numpy as np
import onnx
import torch

from models import KINDS, build

logging.disable(logging.WARNING)
warnings.filterwarnings("ignore")
FROZEN = ("--bn", "frozen")  # an export for inference, as what checks it computes


def double(model):
    return copy.deepcopy(model).double()


def batch_axes(inputs):
    return {f"in{i}": {0: "N"} for i in range(len(inputs))}


def torch_export(kind, path, dtype=torch.float32, dynamic=False, train=False, **how):
    model, inputs = build(kind)
    model = model.to(dtype)
    inputs = tuple(x.to(dtype) if x.is_floating_point() else x for x in inputs)
    reference = double(model.train(train))
    names = [f"in{i}" for i in range(len(inputs))]
    if how.get("dynamo"):
        if dynamic:
            how["dynamic_shapes"] = tuple({0: torch.export.Dim("N")} for _ in inputs)
        torch.onnx.export(model, inputs, path, input_names=names, verbose=False, **how)
    else:
        if train:
            how |= {"training": torch.onnx.TrainingMode.TRAINING, "do_constant_folding": False}
        if dynamic:
            how["dynamic_axes"] = batch_axes(inputs)
        torch.onnx.export(model, inputs, path, input_names=names, **how)
    return reference, [x.numpy() if x.dtype != torch.bfloat16 else x.float().numpy() for x in inputs], () if train else FROZEN


def exporters():
    new, old = {"dynamo": True}, {"dynamo": False, "opset_version": 17}
    free = {"dynamic": True}
    for kind in KINDS:
        yield "PyTorch dynamo", kind, new
        yield "PyTorch TorchScript", kind, old
    for kind in ("cnn", "resnet", "gpt", "vit", "unet", "lstm", "spectral_norm", "weight_norm"):
        yield "PyTorch dynamo, unoptimised, free batch", kind, new | free | {"optimize": False}
    for kind in ("mlp", "cnn", "gpt", "encoder", "embeddings"):
        yield "PyTorch TorchScript, free batch", kind, old | free
    for kind in ("cnn", "resnet", "layer_scale"):
        yield "PyTorch TorchScript, training", kind, old | {"train": True}
    yield "PyTorch TorchScript, opset 11", "cnn", old | {"opset_version": 11}
    yield "PyTorch TorchScript, opset 13", "encoder", old | {"opset_version": 13}
    yield "PyTorch dynamo, opset 23", "gpt", new | {"opset_version": 23}
    for kind in ("mlp", "cnn"):
        yield "PyTorch dynamo, double", kind, new | {"dtype": torch.float64}
        yield "PyTorch dynamo, fp16", kind, new | {"dtype": torch.float16}
    yield "PyTorch dynamo, bf16", "mlp", new | {"dtype": torch.bfloat16}
    yield "PyTorch TorchScript, fp16", "mlp", old | {"dtype": torch.float16}


# --- What is done to a file that PyTorch wrote ---


def simplified(model, path):
    import onnxsim

    model, right = onnxsim.simplify(model)
    assert right
    onnx.save(model, path)


def slimmed(model, path):
    import onnxslim

    onnx.save(onnxslim.slim(model), path)


def optimised(model, path):
    import onnxoptimizer

    onnx.save(onnxoptimizer.optimize(model), path)


def by_runtime(level):
    def tool(model, path):
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, "ORT_ENABLE_" + level)
        options.optimized_model_filepath = str(path)
        options.log_severity_level = 4
        onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])

    return tool


def transformers_optimizer(model, path):
    from onnxruntime.transformers import optimizer

    onnx.save(model, str(path) + ".before")
    optimizer.optimize_model(str(path) + ".before", "bert", num_heads=2, hidden_size=8, opt_level=0).save_model_to_file(str(path))


def to_half(keep_io):
    def tool(model, path):
        from onnxconverter_common import float16

        onnx.save(float16.convert_float_to_float16(model, keep_io_types=keep_io), path)

    return tool


def converted(version):
    return lambda model, path: onnx.save(onnx.version_converter.convert_version(model, version), path)


def dynamically_quantised(model, path):
    from onnxruntime.quantization import quantize_dynamic

    onnx.save(model, str(path) + ".before")
    quantize_dynamic(str(path) + ".before", str(path))


def statically_quantised(form):
    def tool(model, path):
        from onnxruntime.quantization import CalibrationDataReader, QuantFormat, quantize_static

        class Data(CalibrationDataReader):
            def __init__(self):
                shape = [d.dim_value or 2 for d in model.graph.input[0].type.tensor_type.shape.dim]
                self.left = [{"in0": np.random.default_rng(i).random(shape, np.float32)} for i in range(4)]

            def get_next(self):
                return self.left.pop() if self.left else None

        onnx.save(model, str(path) + ".before")
        quantize_static(str(path) + ".before", str(path), Data(), quant_format=getattr(QuantFormat, form),
                        extra_options={"AddQDQPairToWeight": form == "QDQ"})

    return tool


def passes():
    """(tool, kinds, how the model is exported before, the pass, options)."""
    old, new = {"dynamo": False, "opset_version": 17}, {"dynamo": True}
    for before in (old, new):
        yield "onnxsim", ("cnn", "gpt", "lstm"), before, simplified, FROZEN
        yield "onnxslim", ("resnet", "gpt", "layer_scale"), before, slimmed, FROZEN
    yield "onnxoptimizer", ("cnn", "encoder"), old, optimised, FROZEN
    for level in ("BASIC", "EXTENDED", "ALL"):
        yield f"ONNX Runtime, {level.lower()}", ("cnn", "gpt", "encoder"), old, by_runtime(level), FROZEN
    yield "ONNX Runtime's transformers optimizer", ("encoder", "gpt"), old, transformers_optimizer, FROZEN
    yield "onnxconverter-common float16", ("mlp", "encoder"), old, to_half(False), FROZEN
    yield "onnxconverter-common float16, float inputs", ("mlp", "cnn"), old, to_half(True), FROZEN
    yield "onnx's version converter, opset 21", ("cnn",), old, converted(21), FROZEN
    yield "quantize_dynamic", ("mlp",), old, dynamically_quantised, FROZEN
    yield "quantize_static, QDQ", ("mlp", "cnn"), old, statically_quantised("QDQ"), ("--qat", *FROZEN)
    yield "quantize_static, QOperator", ("cnn",), old, statically_quantised("QOperator"), FROZEN


def after(kind, before, tool, options):
    def how(path):
        reference, inputs, _ = torch_export(kind, str(path) + ".torch", **before)
        tool(onnx.load(str(path) + ".torch"), path)
        return reference, inputs, options

    return how


# --- Other frameworks ---


def data():
    rng = np.random.default_rng(3)
    return rng.random((40, 4), np.float32), rng.integers(0, 3, 40)


def sklearn(which):
    def how(path):
        import skl2onnx
        from sklearn import linear_model, neural_network, pipeline, preprocessing

        x, y = data()
        model = {"mlp": neural_network.MLPClassifier((6,), max_iter=30), "logistic": linear_model.LogisticRegression(),
                 "pipeline": pipeline.make_pipeline(preprocessing.StandardScaler(), neural_network.MLPRegressor((6,), max_iter=30)),
                 }[which].fit(x, y)
        form = [("in0", skl2onnx.common.data_types.FloatTensorType([None, 4]))]
        onnx.save(skl2onnx.to_onnx(model, initial_types=form, options={"zipmap": False} if which != "pipeline" else None, target_opset=17), path)
        return None, [x[:2]], ()

    return how


def hummingbird(path):
    import hummingbird.ml
    from sklearn.ensemble import RandomForestClassifier

    x, y = data()
    model = RandomForestClassifier(3, max_depth=3).fit(x, y)
    onnx.save(hummingbird.ml.convert(model, "onnx", x[:2]).model, path)
    return None, [x[:2]], ()


def lightgbm(path):
    import lightgbm
    import onnxmltools

    x, y = data()
    model = lightgbm.LGBMRegressor(n_estimators=3, min_child_samples=2, verbose=-1).fit(x, y)
    form = [("in0", onnxmltools.convert.common.data_types.FloatTensorType([None, 4]))]
    onnx.save(onnxmltools.convert_lightgbm(model, initial_types=form, target_opset=15), path)
    return None, [x[:2]], ()


def jax(which):
    def how(path):
        from jax2onnx import to_onnx
        import jax.numpy as jnp

        rng = np.random.default_rng(5)
        w, b, v = (rng.standard_normal(s).astype(np.float32) for s in ((4, 6), (6,), (6, 3)))
        model = {"mlp": lambda x: jnp.tanh(x @ w + b) @ v,
                 "attention": lambda x: jnp.einsum("bij,bjd->bid", jnp.exp(x @ x.transpose(0, 2, 1)), x @ w + b) @ v}[which]
        x = rng.random((2, 4) if which == "mlp" else (2, 3, 4), np.float32)
        onnx.save(to_onnx(model, [x.shape]), path)
        return None, [x], ()

    return how


def keras(which):
    def how(path):
        import keras

        layers = keras.layers
        model = keras.Sequential({
            "mlp": [layers.Input((4,)), layers.Dense(6, "relu"), layers.Dense(3)],
            "cnn": [layers.Input((8, 8, 2)), layers.Conv2D(4, 3, activation="relu"), layers.BatchNormalization(),
                    layers.GlobalAveragePooling2D(), layers.Dense(3)],
            "lstm": [layers.Input((5, 4)), layers.LSTM(6), layers.Dense(3)]}[which])
        x = np.random.default_rng(5).random((2, *model.input_shape[1:]), np.float32)
        if keras.backend.backend() == "tensorflow":
            import tensorflow
            import tf2onnx

            form = [tensorflow.TensorSpec((None, *x.shape[1:]), tensorflow.float32, name="in0")]
            tf2onnx.convert.from_function(tensorflow.function(model), form, opset=17, output_path=str(path))
        else:
            model.export(str(path), format="onnx", verbose=False)
        return None, [x], FROZEN

    return how


def paddle(path):
    import paddle

    model = paddle.nn.Sequential(paddle.nn.Conv2D(2, 4, 3), paddle.nn.BatchNorm2D(4), paddle.nn.ReLU(), paddle.nn.Flatten(), paddle.nn.Linear(144, 3))
    model.eval()
    paddle.onnx.export(model, str(path).removesuffix(".onnx"), [paddle.static.InputSpec([None, 2, 8, 8], "float32", "in0")])
    return None, [np.random.default_rng(5).random((2, 2, 8, 8), np.float32)], FROZEN


def everything():
    for tool, kind, how in exporters():
        yield tool, kind, lambda path, kind=kind, how=how: torch_export(kind, str(path), **how)
    for tool, kinds, before, do, options in passes():
        for kind in kinds:
            yield f"{tool} after {'dynamo' if before['dynamo'] else 'TorchScript'}", kind, after(kind, before, do, options)
    for which in ("mlp", "logistic", "pipeline"):
        yield "skl2onnx", which, sklearn(which)
    yield "Hummingbird", "forest", hummingbird
    yield "onnxmltools, LightGBM", "trees", lightgbm
    for which in ("mlp", "attention"):
        yield "jax2onnx", which, jax(which)
    for which in ("mlp", "cnn", "lstm"):
        yield "Keras", which, keras(which)
    yield "Paddle", "cnn", paddle
