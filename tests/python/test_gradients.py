"""Gradients that a step leaves: by parameters (optimizer="none"), for an optimizer that is written here, and by inputs. In the
environment: SOURCE, the repository; WORK, a folder to work in."""
from __future__ import annotations

import os
import unittest
from pathlib import Path

import numpy as np
import stint_train as stint

WORK = Path(os.environ["WORK"])
MODELS = Path(os.environ["SOURCE"]) / "examples" / "models"
BATCH = 8
OPTIONS = {"loss": "cross-entropy", "optimizer": "none", "batch": BATCH, "threads": 2, "portable": True, "debug_arena": True}


def data(model, seed=0, dtype=np.float32):
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 128, (BATCH, 64)) if model == "gpt" else rng.standard_normal((BATCH, 1, 28, 28)).astype(dtype)
    labels = rng.integers(0, 128, (BATCH, 64)) if model == "gpt" else rng.integers(0, 10, BATCH)
    return x, labels


def copies(arrays):
    return {name: x.copy() for name, x in arrays.items()}


def bits(arrays):
    return {name: x.tobytes() for name, x in arrays.items()}


class Gradients(unittest.TestCase):
    def compiled(self, name, model, **more):
        return stint.compile(MODELS / f"{model}.onnx", out=WORK / name, **{**OPTIONS, **more})

    def test_sgd_of_ones_own(self):
        for model, more in (("mlp", {}), ("cnn", {}), ("gpt", {}), ("mlp", {"micro_batch": 2})):
            with self.subTest(model=model, **more):
                own = self.compiled(f"own-{model}", model, **more)
                theirs = self.compiled(f"sgd-{model}", model, optimizer="sgd:lr=0.1", **more)
                for k in range(3):
                    x, labels = data(model, k)
                    self.assertEqual(own.train(x, labels), theirs.train(x, labels))
                    parameters = own.parameters()
                    for name, g in own.gradients().items():
                        parameters[name] -= np.float32(0.1) * g
                self.assertEqual(bits(own.parameters()), bits(theirs.parameters()))

    def test_finite_differences(self):
        x, labels = data("cnn", dtype=np.float64)
        step = self.compiled("double", "cnn", precision="fp64", dropout="off")
        step.train(x, labels)
        found, rng = copies(step.gradients()), np.random.default_rng(1)
        self.assertEqual(list(found), [name for name in found if name in step.trained()])
        self.assertEqual(set(found), set(step.trained()))
        for name, value in step.parameters().items():
            way, kept = rng.standard_normal(value.shape), value.copy()
            losses = []
            for h in 1e-6, -1e-6:
                value[...] = kept + h * way
                losses.append(step.train(x, labels))
            value[...] = kept
            np.testing.assert_allclose((losses[0] - losses[1]) / 2e-6, (found[name] * way).sum(), rtol=1e-6, atol=1e-9, err_msg=name)

    def test_same_bits_at_every_budget(self):
        for model in "cnn", "gpt":
            first = None
            for budget in None, "80%", "min":
                step = self.compiled(f"budget-{model}", model, **({"budget": budget} if budget else {}))
                step.train(*data(model))
                first = first or bits(step.gradients())
                self.assertEqual(bits(step.gradients()), first, f"{model} within {budget}")

    def test_until_anything_is_run(self):
        step = self.compiled("until", "mlp")
        for run in None, lambda: step.eval(*data("mlp")), lambda: step.predict(data("mlp")[0]):
            if run:
                step.train(*data("mlp"))
                self.assertEqual(len(step.gradients()), 6)
                run()
            with self.assertRaisesRegex(ValueError, "there are no gradients now"):
                step.gradients()
        with self.assertRaisesRegex(ValueError, "read-only"):
            step.train(*data("mlp"))
            next(iter(step.gradients().values()))[...] = 0
        closed = self.compiled("closed", "mlp", optimizer="sgd")
        closed.train(*data("mlp"))
        with self.assertRaisesRegex(ValueError, "the step updates its parameters itself"):
            closed.gradients()


if __name__ == "__main__":
    unittest.main()
