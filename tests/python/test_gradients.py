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
    folders = 0

    def compiled(self, name, model, **more):
        Gradients.folders += 1  # a library that is loaded is not loaded again
        return stint.compile(MODELS / f"{model}.onnx", out=WORK / f"{name}-{self.folders}", **{**OPTIONS, **more})

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

    def differences(self, value, gradient, loss, what, h=1e-7):
        """Of the loss, along a random way, against the gradient. So small a step h passes over few kinks of a ReLU."""
        way, kept = np.random.default_rng(1).standard_normal(value.shape), value.copy()
        losses = []
        for by in h, -h:
            value[...] = kept + by * way
            losses.append(loss())
        value[...] = kept
        np.testing.assert_allclose((losses[0] - losses[1]) / (2 * h), (gradient * way).sum(), rtol=1e-6, atol=1e-8, err_msg=what)

    def test_finite_differences(self):
        for model, more in (("mlp", {}), ("mlp", {"micro_batch": 2}), ("gpt", {})):
            inputs = [] if model == "gpt" else ["image"]
            step = self.compiled("double", model, precision="fp64", dropout="off", input_gradient=inputs, **more)
            step.train(*data(model, dtype=np.float64))
            found = copies(step.gradients())
            self.assertEqual(set(found), set(step.trained()))
            for name, g in found.items():
                self.differences(step.parameters()[name], g, step.train, f"{name} of {model} {more}", 1e-6 if model == "gpt" else 1e-7)
            for name in inputs:
                step.train()
                g = step.input_gradient(name).copy()
                for row in range(BATCH):  # each part's rows are in their places
                    self.differences(step.inputs[name][row], g[row], step.train, f"row {row} of {name} {more}")

    def test_input_of_a_frozen_model(self):
        x, labels = data("mlp", dtype=np.float64)
        for optimizer in "none", "sgd:lr=0.1":
            step = self.compiled("frozen", "mlp", precision="fp64", freeze="*", optimizer=optimizer, input_gradient=["image"])
            step.train(x, labels)
            self.assertEqual(step.gradients(), {})
            self.differences(step.inputs["image"], step.input_gradient("image").copy(), step.train, optimizer)

    def error(self, x, exact):
        return np.linalg.norm(x - exact) / np.linalg.norm(exact)

    def test_input_beside_an_update(self):
        """The gradient is that of the parameters before it."""
        for more in {}, {"micro_batch": 4}, {"precision": "fp16"}, {"portable": False, "debug_arena": False, "precision": "bf16"}:
            with self.subTest(**more):
                kept, updated = (self.compiled(name, "cnn", **{**more, "input_gradient": ["image"], "optimizer": optimizer})
                                 for name, optimizer in (("kept", "none"), ("updated", "adamw")))
                for step in kept, updated:
                    step.train(*data("cnn"))
                self.assertEqual(kept.input_gradient("image").tobytes(), updated.input_gradient("image").tobytes())
                exact = self.compiled("exact", "cnn", input_gradient=["image"], **{**more, "precision": "fp32"})
                exact.train(*data("cnn"))
                first = self.error(kept.gradients()["0.weight"], exact.gradients()["0.weight"])  # of the layer that reads it
                self.assertLessEqual(self.error(kept.input_gradient("image"), exact.input_gradient("image")), 2 * first)
                self.assertLess(first, 0.2)

    def test_loss_of_ones_own(self):
        """A generator's behind a discriminator: the gradient goes back through the model to its input."""
        x, labels = data("mlp")
        for parts, more in ((1, {}), (4, {"micro_batch": 2})):
            closed = self.compiled("closed", "mlp", input_gradient=["image"], **more)
            closed.train(x, labels)
            step = self.compiled("outside", "mlp", loss="outside:logits", input_gradient=["image"], **more)
            for part in range(parts):
                y = step.forward(x if part == 0 else None)["logits"].astype(np.float64)
                p = np.exp(y - y.max(-1, keepdims=True))
                p /= p.sum(-1, keepdims=True)
                p[range(len(y)), labels[part * len(y):][:len(y)]] -= 1
                with self.assertRaisesRegex(ValueError, "there are no gradients now"):
                    step.input_gradient("image")
                step.backward({"logits": p / BATCH})
            for name, g in closed.gradients().items():
                np.testing.assert_allclose(step.gradients()[name], g, rtol=1e-4, atol=1e-7, err_msg=name)
            np.testing.assert_allclose(step.input_gradient("image"), closed.input_gradient("image"), rtol=1e-4, atol=1e-7)

    def test_same_bits_at_every_budget(self):
        for model in "cnn", "gpt":
            first = None
            for budget in None, "80%", "min":
                step = self.compiled(f"budget-{model}", model, input_gradient=["image"] if model == "cnn" else [],
                                     **({"budget": budget} if budget else {}))
                step.train(*data(model))
                found = bits(step.gradients())
                if model == "cnn":
                    found["image"] = step.input_gradient("image").tobytes()
                first = first or found
                self.assertEqual(found, first, f"{model} within {budget}")

    def test_gradients_that_are_there_already(self):
        """The one by x is w, which the update overwrites; that by w is x; the other two are known when compiling."""
        x = np.array([1.5, 2, 3, 4], np.float32)
        for optimizer in "none", "sgd:lr=0.1":
            step = stint.compile(WORK / "known.onnx", loss="output:z", optimizer=optimizer, input_gradient=["x"], portable=True, debug_arena=True)
            w = step.parameters()["w"].copy()
            step.train((x,))
            np.testing.assert_array_equal(step.input_gradient("x"), w)
            if optimizer == "none":
                step.inputs["x"][...] = 0  # is a place of its own
                self.assertEqual(bits(step.gradients()), {"w": x.tobytes(), **dict.fromkeys("bc", np.ones(4, np.float32).tobytes())})

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
