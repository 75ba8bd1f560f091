"""The module over a compiled step. In the environment: STINT, the program; SOURCE, the repository; WORK, a folder to work in."""
from __future__ import annotations

import gc
import html
import json
import os
import pickle
import re
import signal
import struct
import subprocess
import sys
import threading
import time
import tracemalloc
import unittest
import unittest.mock
import warnings
from pathlib import Path

import numpy as np
import stint_train as stint

STINT, WORK = os.environ["STINT"], Path(os.environ["WORK"])
MODELS = Path(os.environ["SOURCE"]) / "examples" / "models"
MLP = MODELS / "mlp.onnx"
BATCH = 64
OPTIONS = {"loss": "cross-entropy", "batch": BATCH, "threads": 2}
LINE = ["--loss", "cross-entropy", "--batch", str(BATCH), "--threads", "2"]


def command(*words, status=0):
    done = subprocess.run([STINT, *map(str, words)], cwd=WORK, capture_output=True, text=True)
    assert done.returncode == status, done.stderr
    return done.stdout


def tensors(path):
    """Of a safetensors file, by Python's own means."""
    data = Path(path).read_bytes()
    length, = struct.unpack_from("<Q", data)
    header = json.loads(data[8:8 + length])
    kinds = {"F32": "<f4", "F64": "<f8", "I64": "<i8"}
    return {name: np.frombuffer(data[8 + length:][slice(*x["data_offsets"])], kinds[x["dtype"]]).reshape(x["shape"])
            for name, x in header.items() if name != "__metadata__"}


def batch(seed=0):
    """Pictures that a network can tell apart: ten patterns, and noise."""
    patterns = np.random.default_rng(1).random((10, 1, 28, 28))
    random = np.random.default_rng(seed)
    y = random.integers(0, 10, BATCH)
    return (patterns[y] + 0.3 * random.standard_normal((BATCH, 1, 28, 28))).astype(np.float32), y


def opened():
    """A step of the folder that all tests share."""
    if not (WORK / "sgd").exists():
        return stint.compile(MLP, optimizer="sgd:lr=1", budget="100%", out=WORK / "sgd", **OPTIONS)
    return stint.open(WORK / "sgd")


def has(module):
    """What the module can do without, and the tests too; tools/setup.sh tests installs it."""
    try:
        __import__(module)
    except ImportError:
        print(f"not tried: {module} is not there", file=sys.stderr)
        return False
    return True


def without(module):
    """As where that is not installed."""
    return unittest.mock.patch.dict(sys.modules, {module: None})


def interrupt_after(seconds):
    timer = threading.Timer(seconds, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    return timer


class Numbers(unittest.TestCase):
    """What comes out is what the command line computes, bit for bit."""

    @classmethod
    def setUpClass(cls):
        cls.step = opened()
        cls.x, cls.y = batch()

    def test_gradients(self):
        step = opened()
        before = {name: x.copy() for name, x in step.parameters().items()}
        np.save(WORK / "x.npy", self.x), np.save(WORK / "y.npy", self.y)
        command("run", "sgd", "--input", "x.npy", "--target", "y.npy", "-o", "run.safetensors")
        ran = tensors(WORK / "run.safetensors")
        loss = step.train(self.x, self.y)
        self.assertEqual(np.float32(loss), ran["loss"])
        self.assertEqual(set(before), {"1.weight", "1.bias", "3.weight", "3.bias", "5.weight", "5.bias"})
        for name, x in step.parameters().items():
            self.assertTrue(ran[f"grad/{name}"].any())
            np.testing.assert_array_equal(x, before[name] - ran[f"grad/{name}"], name)

    def test_training(self):
        one = {"loss": "cross-entropy", "optimizer": "adam:lr=0.01", "batch": 1, "threads": 1}
        step = stint.compile(MLP, out=WORK / "one", **one)
        np.save(WORK / "x1.npy", self.x[:1]), np.save(WORK / "y1.npy", self.y[:1])
        command("train", "one", "--input", "x1.npy", "--target", "y1.npy", "--epochs", 3, "--checkpoint", "through")
        for _ in range(3):
            step.train(self.x[:1], self.y[:1])
        step.save(WORK / "three.safetensors")
        have, want = tensors(WORK / "three.safetensors"), tensors(WORK / "through" / "step-00000003.safetensors")
        self.assertEqual(have.keys(), want.keys())
        for name in want:
            np.testing.assert_array_equal(have[name], want[name], name)
        # another goes on from the file
        again = stint.open(WORK / "one")
        again.load(WORK / "three.safetensors", strict=True)
        self.assertEqual(again.steps, 3)
        self.assertEqual(again.train(self.x[:1], self.y[:1]), step.train(self.x[:1], self.y[:1]))
        for name, x in again.state().items():
            np.testing.assert_array_equal(x, step.state()[name])

    def test_learns(self):
        step = opened()
        untrained = step.eval(*batch(100))
        losses = [step.train(*batch(i), lr=0.1) for i in range(60)]
        x, y = batch(100)
        self.assertLess(np.mean(losses[-5:]), 0.2)
        self.assertLess(step.eval(x, y), untrained / 4)
        logits = step.predict(x)["logits"]
        self.assertGreater((logits.argmax(1) == y).mean(), 0.95)
        # the loss of those logits, and of fewer rows
        each = np.log(np.exp(logits.astype("f8")).sum(1)) - logits[np.arange(BATCH), y]
        self.assertAlmostEqual(step.eval(x, y), each.mean(), 5)
        self.assertAlmostEqual(step.eval(x[:7], y[:7]), each[:7].mean(), 5)
        np.testing.assert_array_equal(step.predict(x[:7])["logits"], logits[:7])

    def test_parts(self):
        step = stint.compile(MLP, optimizer="sgd:lr=1", micro_batch=16, **OPTIONS)
        whole = opened()
        self.assertEqual((step.eval_rows, whole.eval_rows), (16, BATCH))
        self.assertAlmostEqual(step.train(self.x, self.y), whole.train(self.x, self.y), 5)
        np.testing.assert_allclose(step.parameters()["3.weight"], whole.parameters()["3.weight"], rtol=1e-4, atol=1e-6)
        np.testing.assert_allclose(step.predict(self.x[:16])["logits"], whole.predict(self.x[:16])["logits"], rtol=1e-3, atol=1e-4)
        self.assertEqual(step.predict(self.x[:5])["logits"].shape, (5, 10))
        for rows in 17, BATCH:
            with self.assertRaisesRegex(ValueError, "16"):
                step.predict(self.x[:rows])

    def test_plan(self):
        facts = json.loads(command("plan", MLP, "--optimizer", "sgd:lr=1", *LINE, "--budget", "100%", "--json"))
        plan = self.step.plan
        self.assertEqual((plan.arena, plan.peak, plan.budget, plan.cost, plan.bound, plan.steps),
                         (facts["arena_bytes"], facts["peak_bytes"], facts["budget_bytes"], facts["cost"]["total"],
                          facts["cost"]["lower_bound"], facts["steps"]))
        self.assertEqual(plan.gap, (plan.cost - plan.bound) / plan.cost)
        rows = plan.rows()
        self.assertEqual(len(rows), plan.steps)
        self.assertEqual(max(row["live_bytes"] for row in rows), plan.peak)
        self.assertEqual(rows[plan.peak_step]["live_bytes"], plan.peak)
        self.assertAlmostEqual(sum(row["cost"] for row in rows), plan.cost)
        self.assertEqual({row["phase"] for row in rows}, {"forward", "backward", "update"})
        self.assertIn("recomputed: 0 ops", str(plan))
        command("show", "sgd", "--html", "page.html")
        self.assertEqual(plan.html(), (WORK / "page.html").read_text())
        self.assertEqual(html.unescape(re.fullmatch('<iframe srcdoc="([^"]*)" style="[^"]*"></iframe>', plan._repr_html_())[1]),
                         plan.html())
        self.assertEqual(plan.json(), json.loads((WORK / "sgd" / "plan.json").read_text()))
        self.assertEqual(opened().plan.json(), plan.json())

    def test_frontier(self):
        model = Path(os.environ["SOURCE"]) / "tests/models/cases/lstm/new/model.onnx"
        f = stint.frontier(model, loss="mse", optimizer="sgd:lr=1", points=3, effort=0.05)
        command("frontier", model, "--loss", "mse", "--optimizer", "sgd:lr=1", "--points", 3, "--effort", 0.05, "-o", "f.json",
                "--svg", "f.svg")
        self.assertEqual(f.points, json.loads((WORK / "f.json").read_text())["points"])
        self.assertEqual(f.svg(), (WORK / "f.svg").read_text())
        with without("pandas"):
            self.assertEqual(f.table(), f.points)
        if has("pandas"):
            self.assertEqual(f.table().to_dict("records"), f.points)
        if has("matplotlib"):
            import matplotlib
            matplotlib.use("Agg")
            axes = f.plot()
            self.assertIs(f.plot(axes), axes)
            self.assertEqual(list(axes.lines[0].get_xdata()), [p["budget_bytes"] / 2**20 for p in f.points])
            self.assertEqual(list(axes.lines[0].get_ydata()), [p["cost"] / f.once for p in f.points])
            axes.figure.savefig(WORK / "f.png")

    def test_tables(self):
        plan = self.step.plan
        with without("pandas"):
            self.assertEqual(plan.table(), plan.rows())
        if has("pandas"):
            table = plan.table()
            self.assertEqual(table["live_bytes"].max(), plan.peak)
            self.assertAlmostEqual(table.groupby("phase")["cost"].sum().sum(), plan.cost)
            self.assertEqual(table.to_dict("records"), plan.rows())


class Losses(unittest.TestCase):
    def test_several(self):
        """By their outputs: each is told, their sum is trained, targets go by names or in their order."""
        x, y = batch()
        options = {"optimizer": "sgd:lr=0.1", "batch": BATCH, "threads": 2}
        step = stint.compile(MODELS / "heads.onnx", loss={"logits": "cross-entropy", "early": (0.3, "cross-entropy:label_smoothing=0.1")},
                             out=WORK / "several", **options)
        self.assertEqual(list(step.targets), ["logits", "early"])
        self.assertTrue(all(np.isnan(v) for v in step.losses().values()))
        first = step.train(x, (y, y))
        told = step.losses()
        self.assertEqual(list(told), ["logits", "early"])
        self.assertAlmostEqual(first, told["logits"] + 0.3 * told["early"], 5)
        second = step.train(x, {"early": y, "logits": y})
        self.assertLess(second, first)
        score = step.eval(x, {"early": (y + 1) % 10, "logits": y})
        self.assertAlmostEqual(score, step.losses()["logits"] + 0.3 * step.losses()["early"], 5)
        self.assertGreater(step.losses()["early"], told["early"])
        with self.assertRaisesRegex(ValueError, "the step has no target"):
            step.train(x, {"late": y})
        with self.assertRaisesRegex(stint.UsageError, "is no loss of stint's"):
            stint.plan(MODELS / "heads.onnx", loss={"early": "output:early"}, **options)
        plan = stint.plan(MODELS / "heads.onnx", loss=["mse:output=early", "l1:output=logits"], **options)
        self.assertGreater(plan.arena, 0)


class Memory(unittest.TestCase):
    """Arrays are the arena itself, and what is given is copied once at most."""

    def setUp(self):
        self.step = opened()

    def test_views(self):
        x, y = batch()
        one, two = self.step.parameters(), self.step.parameters()
        for name in one:
            self.assertTrue(np.shares_memory(one[name], two[name]))
        before = one["1.weight"].copy()
        self.step.train(x, y)
        self.assertTrue((one["1.weight"] != before).any())
        for value in one.values():
            value[...] = 0
        self.assertFalse(self.step.predict(x)["logits"].any())
        for value in {**self.step.buffers(), **self.step.state()}.values():
            self.assertFalse(value.flags.writeable)

    def test_views_outlive_the_step(self):
        step = opened()
        weight = step.parameters()["1.weight"][3:5]
        want = weight.copy()
        del step
        gc.collect()
        others = [opened() for _ in range(3)]  # which would take the memory
        for other in others:
            other.parameters()["1.weight"][...] = 7
        np.testing.assert_array_equal(weight, want)

    def test_inputs_in_place(self):
        x, y = batch()
        loss = self.step.eval(x, y)
        image, target = self.step.inputs["image"], self.step.target
        np.testing.assert_array_equal(image, x)
        np.testing.assert_array_equal(target, y)
        image[...], target[...] = 0, 0
        self.assertNotEqual(self.step.eval(image, target), loss)
        image[...], target[...] = x, y
        self.assertEqual(self.step.eval(image, target), loss)
        self.assertEqual(self.step.eval(), loss)
        # the same bytes as other numbers are other data
        as_whole = image.view(np.int32)
        want = as_whole.astype("f4")
        self.step.eval(as_whole, target)
        np.testing.assert_array_equal(image, want)

    def test_nothing_is_copied_twice(self):
        x, y = batch()
        for given in x, x.astype("f8"), np.asfortranarray(x), x[::-1]:
            self.step.eval(given, y)
            tracemalloc.start()
            self.step.eval(given, y)
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
            self.assertLess(peak, x.nbytes // 2)
            np.testing.assert_array_equal(self.step.inputs["image"], given)

    def test_buffers_and_dlpack(self):
        x, y = batch()

        class Exported:  # as a torch tensor has it, and nothing else
            def __dlpack__(self, **how):
                return x.__dlpack__(**how)

            def __dlpack_device__(self):
                return x.__dlpack_device__()

        loss = self.step.eval(x, y)
        self.assertEqual(self.step.eval(Exported(), y), loss)
        self.assertEqual(self.step.eval(memoryview(x), y), loss)
        self.assertEqual(self.step.eval({"image": x}, list(y)), loss)
        self.assertEqual(self.step.eval((x,), y.astype(np.uint8)), loss)


class Errors(unittest.TestCase):
    def test_usage(self):
        with self.assertRaisesRegex(stint.UsageError, "there is no option 'buget'") as e:
            stint.plan(MLP, optimizer="sgd:lr=1", buget="70%", **OPTIONS)
        self.assertEqual((e.exception.status, e.exception.hint), (2, "did you mean budget?"))
        with self.assertRaises(TypeError):
            stint.plan(MLP, optimizer="sgd:lr=1", budget=True, **OPTIONS)
        with self.assertRaisesRegex(stint.UsageError, "optimizer"):
            stint.plan(MLP, **OPTIONS)
        plain = stint.plan(MLP, optimizer="sgd:lr=1", no_outputs=False, **OPTIONS)
        self.assertEqual(plain.json(), stint.plan(MLP, optimizer="sgd:lr=1", **OPTIONS).json())
        self.assertIsNone(stint.plan(MLP, optimizer="sgd:lr=1", keep_all=True, **OPTIONS).budget)
        frozen = stint.plan(MLP, optimizer="sgd:lr=1", freeze=["5.*", "3.bias"], **OPTIONS)
        self.assertLess(frozen.cost, plain.cost)

    def test_names(self):
        """A mapping's keys are names as they are, whatever marks they have."""
        for option in ("dim", "fix"):
            with self.assertRaisesRegex(stint.UsageError, re.escape("a=b\\,c:0")):
                stint.plan(MLP, optimizer="sgd:lr=1", **{option: {"a=b\\,c:0": 1}}, **OPTIONS)

    def test_functions_are_no_words(self):
        def cross_entropy(scores, labels):
            return 0

        for more, message, hint in (({"loss": cross_entropy}, "loss is 'cross_entropy'", 'loss="cross-entropy"'),
                                    ({"loss": lambda x, y: 0}, "loss is '<lambda>'", "output:NAME"),
                                    ({"optimizer": lambda p: p}, "optimizer is '<lambda>'", "optimizer=\"adamw:lr=0.001\""),
                                    ({"scheduler": 3}, "scheduler is 'int'", "lr=X")):
            with self.assertRaises(stint.UsageError) as e:
                stint.compile(MLP, **{"loss": "cross-entropy", "optimizer": "sgd", "batch": 4, **more})
            self.assertEqual(e.exception.status, 2)
            self.assertIn(message, str(e.exception))
            self.assertIn(hint, e.exception.hint)

    def test_budget(self):
        with self.assertRaises(stint.BudgetError) as e:
            stint.plan(MLP, optimizer="sgd:lr=1", budget="64KiB", **OPTIONS)
        least = e.exception.min_bytes_known
        self.assertGreaterEqual(least, e.exception.min_bytes_proven)
        self.assertLessEqual(stint.plan(MLP, optimizer="sgd:lr=1", budget=least, **OPTIONS).arena, least)
        with self.assertRaises(stint.BudgetError):
            stint.plan(MLP, optimizer="sgd:lr=1", budget=least - 1, **OPTIONS)
        again = pickle.loads(pickle.dumps(e.exception))
        self.assertEqual((str(again), again.diagnostics), (str(e.exception), e.exception.diagnostics))

    def test_files(self):
        with self.assertRaises(stint.ModelError) as e:
            stint.plan(Path(os.environ["SOURCE"]) / "README.md", optimizer="sgd:lr=1", **OPTIONS)
        self.assertTrue(e.exception.file.endswith("README.md"))
        with self.assertRaises(stint.StintError):
            stint.plan("/nowhere.onnx", optimizer="sgd:lr=1", **OPTIONS)
        with self.assertRaises(stint.StintError):
            stint.open("/nowhere")
        with self.assertRaises(stint.FileError) as e:
            os.environ["CC"] = "false"
            try:
                stint.compile(MLP, optimizer="sgd:lr=1", out=WORK / "no-compiler", **OPTIONS)
            finally:
                del os.environ["CC"]
        self.assertIn("did not compile", e.exception.message)
        self.assertFalse((WORK / "no-compiler").exists())

    def test_data(self):
        x, y = batch()
        step = stint.compile(MLP, optimizer="sgd:lr=1", budget="100%", **OPTIONS)
        folder = step.folder
        self.assertTrue((folder / "step.c").exists())
        for wrong in x[:, :, 1:], x[0], x[:0], np.zeros((BATCH + 1, 1, 28, 28), "f4"):
            with self.assertRaisesRegex(ValueError, "'image' wants the shape"):
                step.train(wrong, y)
        with self.assertRaisesRegex(ValueError, "no input"):
            step.train({"picture": x}, y)
        with self.assertRaisesRegex(ValueError, "has 1 inputs"):
            step.train((x, x), y)
        with self.assertRaisesRegex(ValueError, "7 rows of inputs, but 8 of targets"):
            step.eval(x[:7], y[:8])
        with self.assertRaisesRegex(ValueError, "5 rows of inputs, but 64 of targets"):
            step.train(x[:5], y)
        with self.assertRaisesRegex(TypeError, "'target' wants int64"):
            step.train(x, y.astype("f4"))
        with self.assertRaisesRegex(stint.ModelError, "index or label 1[0-9] is out of range"):
            step.train(x, y + 9)
        self.assertTrue(np.isfinite(step.train(x, y)))
        with self.assertRaises(stint.FileError):
            step.load("/nowhere.safetensors")
        with self.assertRaises(stint.FileError):
            step.save("/nowhere/w.safetensors")
        # the last batch's labels are not these pictures'
        with self.assertRaisesRegex(ValueError, "no target given"):
            step.train(x)
        with self.assertRaisesRegex(ValueError, "no target given"):
            step.eval(x)
        for rate in -1.0, np.nan, np.inf:
            with self.assertRaisesRegex(stint.UsageError, "rate"):
                step.train(x, y, lr=rate)
        # what has diverged is not saved
        step.train(x, y, lr=1e38), step.train(x, y, lr=1e38)
        with self.assertRaisesRegex(stint.DivergedError, "are not finite"):
            step.save(WORK / "diverged.safetensors")
        self.assertFalse((WORK / "diverged.safetensors").exists())
        del step
        gc.collect()
        self.assertFalse(folder.exists())

    def test_warnings(self):
        from_part = WORK / "part.safetensors"
        header = json.dumps({"1.bias": {"dtype": "F32", "shape": [128], "data_offsets": [0, 512]}}).encode()
        from_part.write_bytes(struct.pack("<Q", len(header)) + header + bytes(512))
        step = opened()
        with self.assertWarnsRegex(stint.StintWarning, "1.weight"):
            step.load(from_part)
        self.assertFalse(step.parameters()["1.bias"].any())
        with self.assertRaises(stint.StintError), warnings.catch_warnings():
            warnings.simplefilter("error")
            step.load(from_part, strict=True)


class Interrupts(unittest.TestCase):
    def interrupted(self, call):
        began, timer = time.monotonic(), interrupt_after(0.4)
        with self.assertRaises(KeyboardInterrupt):
            call()
        timer.join()
        return time.monotonic() - began

    def test_planning(self):
        # this search takes minutes
        took = self.interrupted(lambda: stint.plan(MODELS / "resnet.onnx", loss="cross-entropy", optimizer="sgd:lr=1", batch=32,
                                                   budget="30%", effort=1000))
        self.assertLess(took, 20)

    def test_compiling(self):
        slow = WORK / "slow"
        slow.write_text("#!/bin/sh\nsleep 60\n")
        slow.chmod(0o755)
        os.environ.update(CC=str(slow), TMPDIR=str(WORK / "temporary"))
        (WORK / "temporary").mkdir()
        try:
            import tempfile
            tempfile.tempdir = None
            took = self.interrupted(lambda: stint.compile(MLP, optimizer="sgd:lr=1", **OPTIONS))
        finally:
            del os.environ["CC"], os.environ["TMPDIR"]
            tempfile.tempdir = None
        self.assertLess(took, 20)
        self.assertEqual(list((WORK / "temporary").iterdir()), [])

    def test_training(self):
        step = opened()
        x, y = batch()
        count = 0

        def forever():
            nonlocal count
            while True:
                step.train(x, y, lr=0.01)
                count += 1

        self.interrupted(forever)
        self.assertIn(step.steps, (count, count + 1))
        self.assertTrue(np.isfinite(step.train(x, y)))


class Threads(unittest.TestCase):
    def test_others_run_meanwhile(self):
        """With the interpreter's own switching off, another thread runs only while a step has let go of the lock."""
        step = opened()
        step.train(*batch())
        ran, ticks, done = [], [], threading.Event()

        def train():
            for _ in range(50):
                start = time.monotonic()
                step.train()
                ran.append((start, time.monotonic()))
            done.set()

        interval = sys.getswitchinterval()
        sys.setswitchinterval(60)
        try:
            thread = threading.Thread(target=train)
            thread.start()
            while not done.is_set():
                ticks.append(time.monotonic())
                time.sleep(0)
            thread.join()
        finally:
            sys.setswitchinterval(interval)
        during = sum(any(start < tick < end for tick in ticks) for start, end in ran)
        self.assertGreater(during, 10)

    def test_one_at_a_time(self):
        step = opened()
        x, y = batch()
        threads = [threading.Thread(target=lambda: [step.train(x, y, lr=0.01) for _ in range(20)]) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(step.steps, 80)
        alone = opened()
        for _ in range(80):
            alone.train(x, y, lr=0.01)
        for name, value in alone.parameters().items():
            np.testing.assert_array_equal(value, step.parameters()[name])


if __name__ == "__main__":
    unittest.main()
