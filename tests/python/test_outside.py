"""A step whose loss is computed here: forward, the loss and its gradients by NumPy, backward. In the environment: SOURCE, the
repository; WORK, a folder to work in."""
from __future__ import annotations

import os
import unittest
from pathlib import Path

import numpy as np
import stint_train as stint

WORK = Path(os.environ["WORK"])
MODELS = Path(os.environ["SOURCE"]) / "examples" / "models"
BATCH = 8
OPTIONS = {"batch": BATCH, "threads": 2, "portable": True}


def data(model, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 128, (BATCH, 64)) if model == "gpt" else rng.standard_normal((BATCH, 1, 28, 28)).astype(np.float32)
    labels = rng.integers(0, 128, (BATCH, 64)) if model == "gpt" else rng.integers(0, 10, BATCH)
    return x, labels


def cross_entropy(y, labels, rows):
    """The sum over these rows' share of a mean over `rows` rows, and its gradient by y."""
    wide = y.astype(np.float64)
    p = np.exp(wide - wide.max(-1, keepdims=True))
    p /= p.sum(-1, keepdims=True)
    at = np.take_along_axis(p, labels[..., None], -1)
    onehot = np.zeros_like(p)
    np.put_along_axis(onehot, labels[..., None], 1, -1)
    return -np.log(at).sum() / rows, ((p - onehot) / rows).astype(y.dtype)


def train(step, model, steps=3, parts=1, rows=BATCH):
    losses = []
    for k in range(steps):
        x, labels = (a[:rows] for a in data(model, k))
        total = 0.0
        for part in range(parts):
            (name, y), = step.forward(x if part == 0 else None).items()
            mine = labels[part * BATCH // parts:(part + 1) * BATCH // parts]
            assert len(y) == len(mine)
            loss, gradient = cross_entropy(y, mine, labels.size)
            total += loss
            step.backward({name: gradient}, loss=loss)
        losses.append(total)
    return losses


def values(step):
    return {name: x.copy() for name, x in step.parameters().items()}


class Outside(unittest.TestCase):
    def compiled(self, name, model, loss, **more):
        return stint.compile(MODELS / f"{model}.onnx", loss=loss, optimizer="sgd:lr=0.1,momentum=0.9", out=WORK / name, **{**OPTIONS, **more})

    def test_same_as_the_closed_step(self):
        for model, parts in (("cnn", 1), ("gpt", 1), ("mlp", 1), ("mlp", 4)):
            more = {"micro_batch": BATCH // parts} if parts > 1 else {}
            with self.subTest(model=model, parts=parts):
                closed = self.compiled(f"closed-{model}-{parts}", model, "cross-entropy", **more)
                opened = self.compiled(f"outside-{model}-{parts}", model, "outside:logits", **more)
                want = [closed.train(*data(model, k)) for k in range(3)]
                np.testing.assert_allclose(train(opened, model, 3, parts), want, rtol=1e-5)
                for name, x in values(closed).items():
                    np.testing.assert_allclose(opened.parameters()[name], x, rtol=1e-4, atol=1e-6, err_msg=name)

    def test_same_bits_at_every_budget(self):
        for model in "cnn", "gpt":
            first = None
            for budget in None, "50%", "min":
                step = self.compiled(f"budget-{model}-{budget}", model, "outside", **({"budget": budget} if budget else {}))
                train(step, model)
                bits = {name: x.tobytes() for name, x in values(step).items()}
                first = first or bits
                self.assertEqual(bits, first, f"{model} within {budget}")

    def test_an_incomplete_last_batch(self):
        """Is the closed step's, which is PyTorch's (models.last.*)."""
        for model, parts, rows in ("cnn", 1, 5), ("mlp", 1, 1), ("mlp", 4, 5), ("mlp", 4, 2):
            more = {"micro_batch": BATCH // parts} if parts > 1 else {}
            with self.subTest(model=model, parts=parts, rows=rows):
                closed = self.compiled(f"closed-{model}-{parts}-{rows}", model, "cross-entropy", **more)
                opened = self.compiled(f"outside-{model}-{parts}-{rows}", model, "outside:logits", **more)
                want = [closed.train(*(a[:rows] for a in data(model, k))) for k in range(2)]
                np.testing.assert_allclose(train(opened, model, 2, parts, rows), want, rtol=1e-5)
                for name, x in {**values(closed), **closed.buffers()}.items():
                    np.testing.assert_allclose({**opened.parameters(), **opened.buffers()}[name], x, rtol=1e-4, atol=1e-6, err_msg=name)
                # the next step is whole again
                np.testing.assert_allclose(train(opened, model, 1, parts), [closed.train(*data(model, 0))], rtol=1e-5)

    def test_gradients_come_in_order(self):
        step = self.compiled("order", "mlp", "outside:logits", debug_arena=True)
        x, labels = data("mlp")
        before = values(step)
        with self.assertRaisesRegex(stint.StintError, "no forward pass of 'mlp' waits"):
            step.backward({})
        with self.assertRaisesRegex(stint.StintError, "computed by who calls stint_forward and stint_backward"):
            step.train(x)
        y = step.forward(x)["logits"]
        kept = y.copy()
        with self.assertRaisesRegex(stint.StintError, "a forward pass of 'mlp' waits for stint_backward"):
            step.forward(x)
        with self.assertRaisesRegex(ValueError, "there is none by 'logits'"):
            step.backward({})
        with self.assertRaisesRegex(ValueError, "not by 'scores'"):
            step.backward({"logits": kept, "scores": kept})
        with self.assertRaisesRegex(ValueError, "has the shape"):
            step.backward({"logits": kept[:1]})
        with self.assertRaisesRegex(stint.StintError, "is running"):
            step.eval(x)
        np.testing.assert_array_equal(y, kept)  # nothing was lost
        loss, gradient = cross_entropy(y, labels, BATCH)
        step.backward({"logits": gradient}, loss=loss)
        self.assertEqual(step.steps, 1)
        self.assertTrue(any((before[name] != x).any() for name, x in step.parameters().items()))
        closed = self.compiled("closed", "mlp", "cross-entropy")
        with self.assertRaisesRegex(stint.StintError, "computes its loss itself"):
            closed.forward(x)

    def test_what_does_not_go(self):
        for more, words in (({"target": "cuda", "portable": False}, "--loss outside does not go with --target cuda yet"),
                            ({"bare": True, "threads": 1}, "--loss outside does not go with --bare yet")):
            with self.assertRaisesRegex(stint.StintError, words):
                self.compiled("refused", "mlp", "outside", **more)
        with self.assertRaisesRegex(stint.StintError, "--loss outside: more than 16 outputs"):
            self.compiled("refused", "mlp", "outside:" + ",".join("abcdefghijklmnopq"))
        with self.assertRaisesRegex(stint.StintError, "the model has no output 'scores'"):
            self.compiled("refused", "mlp", "outside:scores")
        with self.assertRaisesRegex(stint.StintError, "--loss outside goes with no other loss"):
            self.compiled("refused", "mlp", ["outside", "cross-entropy"])


if __name__ == "__main__":
    unittest.main()
