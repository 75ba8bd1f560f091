"""The MLP's training step in ONNX Runtime training: python3 ort_step.py mlp-b1|mlp-b128 THREADS FOLDER.

FOLDER has mlp.onnx (models.py makes it); the training artifacts are made beside it. Served as worker.py says. Needs
onnxruntime-training, whose import needs PyTorch though the step does not use it.
"""
import pathlib
import sys

import numpy
import onnx
import onnxruntime
from onnxruntime.training import api, artifacts

import worker

BATCH = {"mlp-b1": 1, "mlp-b128": 128}


def main(batch, threads, folder):
    made = folder / "ort"
    if not (made / "checkpoint").exists():
        made.mkdir(exist_ok=True)
        model = onnx.load(folder / "mlp.onnx")
        artifacts.generate_artifacts(
            model, requires_grad=[i.name for i in model.graph.initializer], loss=artifacts.LossType.CrossEntropyLoss,
            optimizer=artifacts.OptimType.SGD, artifact_directory=made)
    baseline = worker.resident()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    state = api.CheckpointState.load_checkpoint(made / "checkpoint")
    module = api.Module(made / "training_model.onnx", state, made / "eval_model.onnx", session_options=options)
    optimizer = api.Optimizer(made / "optimizer_model.onnx", module)
    optimizer.set_learning_rate(0.01)
    random = numpy.random.default_rng(0)
    x = random.standard_normal((batch, 784), numpy.float32)
    target = random.integers(0, 10, batch)
    module.train()

    def step():
        module(x, target)
        optimizer.step()
        module.lazy_reset_grad()

    worker.serve(step, baseline)


if __name__ == "__main__":
    main(BATCH[sys.argv[1]], int(sys.argv[2]), pathlib.Path(sys.argv[3]))
