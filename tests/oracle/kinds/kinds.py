"""Files as people have them: written with the usual tools, and what stint makes of each.

    python tests/oracle/kinds/kinds.py [--stint build/stint] [--work FOLDER] [--table FILE.md] [PATTERN ...]

A row for each file (PATTERN: of those whose `TOOL / KIND` fits): whether it is read; how far the outputs are from ONNX Runtime's, relative to
their greatest; whether the least memory that any plan needs gives the bits of keeping everything; and how far gradients are from
PyTorch's in double precision, of parameters that are the module's by their values, and of the others from finite differences
along a direction of each one's own. Everything is computed in double precision (--portable --precision fp64). What is
refused is right where `REFUSED` expects it. Exit code 1 where a row is wrong."""
import argparse
import fnmatch
import importlib.metadata
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import torch

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]
from reference import save_tensors, turned
from sweep import QUICK, load_tensors
from tools import everything

# What cannot be trained, by what the refusal says.
REFUSED = {
    "quantize_dynamic*": "train the model as it was before quantize_dynamic",
    "quantize_static, QOperator*": "write the model with QuantizeLinear and DequantizeLinear around",
    "ONNX Runtime, all after TorchScript / cnn": "optimization level \"all\" wrote it",
    "onnxmltools*": "is not supported",
    "skl2onnx / logistic": "is not supported",
}
HEAD = ["| tool | model | read | outputs | bits | gradients |", "|---|---|---|---|---|---|"]
FORWARD, NARROW, GRADIENT, DIFFERENCE = 1e-4, 2e-2, 1e-5, 1e-4  # NARROW: ONNX Runtime rounds each value to half precision
TOOLS = ("torch onnx onnxscript onnxruntime onnxsim onnxslim onnxoptimizer onnxconverter-common skl2onnx scikit-learn hummingbird-ml "
         "onnxmltools lightgbm jax jax2onnx keras tensorflow tf2onnx paddlepaddle paddle2onnx").split()


class Wrong(Exception):
    pass


class File:
    def __init__(self, stint, work, how):
        self.stint, self.work, self.path = stint, work, work / "model.onnx"
        self.reference, self.inputs, self.options = how(self.path)
        self.model = onnx.load(self.path)
        stored = {t.name for t in self.model.graph.initializer}
        self.names = [i.name for i in self.model.graph.input if i.name not in stored]
        for name, x in zip(self.names, self.inputs):
            np.save(work / f"{name.replace('/', '_')}.npy", x.astype(np.float32) if x.dtype.kind == "f" else x)

    def call(self, *args):
        done = subprocess.run([self.stint, *map(str, args)], capture_output=True, text=True, env=QUICK, cwd=self.work)
        return done.returncode, done.stderr

    def compile(self, name, *options):
        return self.call("compile", self.path, "--loss", f"mse:output={escaped(self.output)}", "--optimizer", "sgd", "--batch", len(self.inputs[0]),
                         "--portable", "--precision", "fp64", "--threads", 1, *self.options, *options, "-o", name)

    def run(self, name, *options):
        data = [w for n in self.names for w in ("--input", f"{n}={self.work / n.replace('/', '_')}.npy")]
        code, said = self.call("run", name, *data, "--target", self.work / "target.npy", *options, "-o", "run.safetensors")
        if code:
            raise Wrong(f"run: {said.strip()}")
        return load_tensors(self.work / "run.safetensors")

    def runtime(self):
        """ONNX Runtime's first output of real numbers; without it, of a type that it does not compute in, PyTorch's."""
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        try:
            session = onnxruntime.InferenceSession(self.path, options, providers=["CPUExecutionProvider"])
            kinds = {"tensor(double)": np.float64, "tensor(float16)": np.float16}
            feed = {i.name: x.astype(kinds.get(i.type, np.float32)) if x.dtype.kind == "f" else x
                    for i, x in zip(session.get_inputs(), self.inputs)}
            got, by = dict(zip([o.name for o in session.get_outputs()], session.run(None, feed))), ""
        except Exception as fault:
            if self.reference is None:
                raise Wrong(f"ONNX Runtime does not run it: {fault}") from None
            got, by = {self.model.graph.output[0].name: self.torch_output().detach().numpy()}, " (PyTorch's)"
        real = [n for n, y in got.items() if isinstance(y, np.ndarray) and y.dtype.kind == "f"]
        self.output = real[0]
        return got[real[0]].astype(float), by

    def torch_output(self):
        y = self.reference(*[torch.from_numpy(x.astype(np.float64) if x.dtype.kind == "f" else x) for x in self.inputs])
        return y[0] if isinstance(y, tuple) else y

    def torch_gradients(self, target):
        self.reference.zero_grad()
        torch.nn.functional.mse_loss(self.torch_output(), torch.from_numpy(target).double()).backward()
        return {n: (p.detach().numpy(), p.grad.numpy()) for n, p in self.reference.named_parameters() if p.grad is not None}


def escaped(name):
    return name.replace("\\", "\\\\").replace(",", "\\,").replace(":", "\\:")


def top(x):
    return float(np.abs(x).max(initial=0.0))


def narrow(model):
    return any(t.data_type in (onnx.TensorProto.FLOAT16, onnx.TensorProto.BFLOAT16) for t in model.graph.initializer)


def owner(value, known):
    """(a parameter of the module, how its gradient turns into this one's); None: it is none of them."""
    for name, (whole, gradient) in known.items():
        if whole.size == value.size:
            rounded = np.float32(whole).astype(float) if value.dtype != whole.dtype else whole
            how = turned(rounded, value.astype(float)) or (turned(np.float32(rounded), np.float32(value)))
            if how:
                return name, how[1](gradient)
    return None


def by_difference(file, values, name, gradient):
    """How far the gradient's part along a direction is from a central difference of the loss."""
    rng = np.random.default_rng(1)
    along = rng.standard_normal(gradient.shape)
    along = along / np.linalg.norm(along) + gradient / (np.linalg.norm(gradient) or 1)
    small, loss = 1e-6 * max(1.0, float(np.linalg.norm(values[name]))), []
    for sign in (1, -1):
        moved = {n: v.astype(float) for n, v in values.items()}
        moved[name] = moved[name] + sign * small * along
        save_tensors(file.work / "moved.safetensors", moved)
        loss.append(float(file.run("all", "--weights", "moved.safetensors")["loss"]))
    slope, told = (loss[0] - loss[1]) / (2 * small), float((gradient * along).sum())
    return abs(slope - told) / max(abs(slope), abs(told), 1e-6)


def gradients(file, ours, target, said):
    """What the row says of them. Parameters that an exporter folded into constants are warned of."""
    if "--qat" in file.options:
        return "straight through: not compared"
    known = file.torch_gradients(target) if file.reference else {}
    values, owned, worst, off, apart = load_tensors(file.work / "all" / "weights.safetensors"), set(), 0.0, 0.0, 0
    mine = {n[5:]: g for n, g in ours.items() if n.startswith("grad/")}
    floor = 1e-3 * max(map(top, mine.values()), default=0.0)
    for name, gradient in mine.items():
        found = owner(values[name], known)
        if found:
            owned.add(found[0])
            worst = max(worst, top(gradient - found[1]) / max(top(found[1]), floor, 1e-30))
        else:
            apart += 1
            off = max(off, by_difference(file, values, name, gradient))
    words = [f"{len(owned)} of {len(known)} PyTorch's: {worst:.0e}"] if owned else []
    words += [f"{apart} by differences: {off:.0e}"] if apart else []
    # an LSTM's biases are one tensor in the file; rows of a table that the file's length leaves out have no gradient
    unread = sum((~g.any(1)).sum() * g.shape[1] for n, (_, g) in known.items() if n not in owned and g.ndim == 2)
    lost = sum(p.size for p, _ in known.values()) - sum(g.size for g in mine.values()) - unread
    words += [f"{lost} numbers folded away, warned of"] if lost > 0 else []
    text = ", ".join(words)
    if lost > 0 and "warning:" not in said:
        raise Wrong(f"{lost} of the module's numbers are left out in silence")
    if worst > (NARROW if narrow(file.model) else GRADIENT) or off > DIFFERENCE or not mine:
        raise Wrong(f"gradients: {text}")
    return text


def row_of(tool, kind, file):
    y, by = file.runtime()
    target = np.random.default_rng(2).random(y.shape).astype(np.float32)
    np.save(file.work / "target.npy", target)
    code, said = file.compile("all", "--keep-all")
    expected = next((words for pattern, words in REFUSED.items() if fnmatch.fnmatch(f"{tool} / {kind}", pattern)), None)
    if code:
        text = " ".join(said.split("error: ", 1)[-1].split("stint: error: ")[0].replace(str(file.path) + ": ", "").split())
        if not expected or expected not in said:
            raise Wrong(f"exit {code}: {text}")
        return ["refused: " + text, "", "", ""]
    if expected:
        raise Wrong(f"is read, and was to be refused: {expected}")
    ours, told = file.run("all"), said
    off = top(ours["output/" + file.output] - y) / (top(y) or 1)
    if off > (NARROW if narrow(file.model) else FORWARD):
        raise Wrong(f"forward pass: {off:.0e}")
    code, said = file.compile("least", "--budget", "min")
    if code:
        raise Wrong(f"least memory: {said}")
    least = file.run("least")
    if least.keys() != ours.keys() or any(least[n].tobytes() != ours[n].tobytes() for n in ours):
        raise Wrong("bits differ at the least memory")
    return ["yes", f"{off:.0e}{by}", "the same", gradients(file, ours, target, told)]


def versions():
    out = []
    for tool in TOOLS:
        try:
            out.append(f"{tool} {importlib.metadata.version(tool)}")
        except importlib.metadata.PackageNotFoundError:
            pass
    return ", ".join(out)


def about_run(lines, missing):
    lacking = [f" Not installed: {name} ({', '.join(what)})." for name, what in missing.items()]
    return f"{len(lines)} files; {versions()}." + "".join(lacking)


def main():
    about = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    about.add_argument("--stint", default="build/stint", type=pathlib.Path)
    about.add_argument("--work", type=pathlib.Path)
    about.add_argument("--table", type=pathlib.Path)
    about.add_argument("pattern", nargs="*")
    args = about.parse_args()
    top_folder = args.work or pathlib.Path(tempfile.mkdtemp(prefix="kinds-"))
    lines, wrong, missing = [], 0, {}
    for tool, kind, how in everything():
        if args.pattern and not any(fnmatch.fnmatch(f"{tool} / {kind}", p) for p in args.pattern):
            continue
        work = top_folder / "".join(c if c.isalnum() else "_" for c in f"{tool}-{kind}")
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir(parents=True)
        try:
            file = File(args.stint.resolve(), work, how)
        except ModuleNotFoundError as fault:
            missing.setdefault(fault.name, []).append(f"{tool} / {kind}")
            continue
        except Exception as fault:
            cells = ["the tool fails: " + " ".join(str(fault).split())[:200], "", "", ""]
        else:
            try:
                cells = row_of(tool, kind, file)
            except Wrong as fault:
                wrong += 1
                cells = ["**wrong**: " + " ".join(str(fault).split()), "", "", ""]
        lines.append(f"| {tool} | {kind} | " + " | ".join(c.replace("|", "\\|") for c in cells) + " |")
        print(lines[-1], flush=True)
        if not args.work:
            shutil.rmtree(work)
        if args.table:
            args.table.write_text("\n".join(HEAD + lines + ["", about_run(lines, missing)]) + "\n")
    print(about_run(lines, missing), f"{wrong} wrong", sep="\n")
    return wrong > 0


if __name__ == "__main__":
    os.environ.setdefault("KERAS_BACKEND", "torch")
    sys.exit(main())
