"""Compile and run every case in a folder, and print a table.

    python3 tests/oracle/sweep.py [--stint build/stint] [--work FOLDER] CASES [PATTERN ...]

For each case: does it compile; do 100 %, 70 % and the smallest budget give the same gradients, bit for bit
(the table has the last two's arenas, as parts of the first's); and
how far are loss, outputs, gradients and running statistics from PyTorch's in float64, in double (--portable) and in
single precision, beside PyTorch's own single precision. Needs numpy only.
"""
import argparse
import concurrent.futures
import fnmatch
import json
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import time

import numpy as np

KINDS = {"F64": "<f8", "F32": "<f4", "I64": "<i8", "BOOL": "?"}
QUICK = {"CFLAGS": "-O0 -march=native"} | os.environ  # optimizing would be most of the time, and changes no bit
NOT_MET = 4  # stint's exit code for a budget that no plan meets


def load_tensors(path):
    data = path.read_bytes()
    (length,) = struct.unpack_from("<Q", data)
    tensors = {}
    for name, entry in json.loads(data[8:8 + length]).items():
        if name != "__metadata__":
            first, last = entry["data_offsets"]
            blob = data[8 + length + first:8 + length + last]
            tensors[name] = np.frombuffer(blob, KINDS[entry["dtype"]]).reshape(entry["shape"])
    return tensors


def top(array):
    return float(np.abs(array.astype(float)).max(initial=0.0))


def compare(ours, reference):
    """(the worst relative difference, its tensor, what is missing, gradients that the reference has not)."""
    floor = 1e-3 * max((top(a) for n, a in reference.items() if n.startswith("grad/")), default=0.0)
    worst, where, missing = 0.0, "", []
    for name, value in reference.items():
        mine = ours.get(name)
        if mine is None or mine.shape != value.shape:
            missing.append(name)
            continue
        off = top(mine.astype(float) - value) if np.isfinite(mine).all() else np.inf
        off = off / max(top(value), floor) if off else 0.0
        if off > worst:
            worst, where = off, name
    extra = [n for n in ours if n.startswith("grad/") and n not in reference]
    return worst, where, missing, extra


class Failure(Exception):
    pass


class Case:
    def __init__(self, stint, folder, work, depth):
        self.stint, self.folder, self.depth = stint, folder, depth
        name = f"{folder.parent.name}.{folder.name}"
        self.work = work / name
        self.about = json.loads(self.file("case.json").read_text())
        self.row = {"case": name, "own": self.about.get("pytorch_fp32")}
        self.remarks = []

    def call(self, *args, seconds=1200):
        try:
            done = subprocess.run([self.stint, *map(str, args)], capture_output=True, timeout=seconds, env=QUICK)
        except subprocess.TimeoutExpired:
            raise Failure(f"{args[0]} takes more than {seconds} s") from None
        text = done.stderr.decode(errors="replace")
        return done.returncode, text

    def compile(self, name, *options):
        rc, text = self.call("compile", self.folder / "model.onnx", *self.options(), "--optimizer", "sgd:lr=0.1",
                             "--threads", 2, "--effort", 0.05, *options, "-o", self.work / name)
        if rc == NOT_MET and options[-1] == "70%":
            return False
        warnings = [l for l in text.splitlines() if "warning:" in l]
        self.remarks += [w.split("warning: ", 1)[1] for w in warnings if w.split("warning: ", 1)[1] not in self.remarks]
        if rc:
            errors = [l.split("error: ", 1)[-1] for l in text.splitlines() if "error:" in l]
            names = sorted(set(re.findall(r"\((\w+)\): (?:the operator|operator|opset|not )", text)))
            self.row["missing"] = names
            first = (errors or text.strip().splitlines() or ["no message"])[0].replace(str(self.folder) + "/", "")
            raise Failure(f"{name}: exit {rc}: {first}")
        return True

    def options(self):
        return self.file("options").read_text().split()

    def file(self, name):
        own = self.folder / name
        return own if own.exists() else self.folder.parent / name

    def run(self, name):
        out = self.work / f"{name}.safetensors"
        self.use("run", name, "-o", out)
        return load_tensors(out)

    def use(self, command, name, *options):
        args = [command, self.work / name, *options]
        for i in range(100):
            path = self.file(f"input{i}.npy")
            if not path.exists():
                break
            args += ["--input", path]
        if self.file("target.npy").exists():
            args += ["--target", self.file("target.npy")]
        rc, text = self.call(*args)
        if rc:
            raise Failure(f"{name}: {command} exits {rc}: {(text.strip().splitlines() or ['no message'])[0]}")

    def train(self, name):
        """Three steps on the same data: the loss goes down."""
        log = self.work / "log.jsonl"
        self.use("train", name, "--epochs", 3, "--lr", 1e-4, "--log", log)
        losses = [json.loads(l)["loss"] for l in log.read_text().splitlines() if '"step"' in l]
        if not np.isfinite(losses).all() or (not self.about_random() and losses[-1] >= losses[0]):
            raise Failure(f"{name}: does not train: {losses}")

    def about_random(self):
        return self.file("tolerance").read_text().split() == ["random"]

    def judge(self, column, ours):
        if self.about_random():
            if not all(np.isfinite(a).all() for a in ours.values()):
                raise Failure(f"{column}: not finite")
            return
        worst, where, missing, extra = compare(ours, load_tensors(self.file("reference.safetensors")))
        self.row[column], self.row[column + "_at"] = worst, where
        if missing:
            self.row["lacking"] = missing
        extra = [n for n in extra if not any(fnmatch.fnmatch(n[5:], p) for p in self.about.get("also", ()))]
        if extra:
            self.row["extra"] = extra

    def measure(self):
        start = time.monotonic()
        row = self.examine()
        row["seconds"] = time.monotonic() - start
        return row

    def examine(self):
        shutil.rmtree(self.work, ignore_errors=True)
        self.work.mkdir(parents=True)
        try:
            if self.depth == "plan":
                self.compile("plan", "--no-build")
                self.row["state"] = "plans"
                return self.row
            if self.depth == "double":
                self.double()
                return self.row
            self.compile("all", "--budget", "100%")
            base = self.run("all")
            self.judge("fp32", base)
            same = [self.again(name, base) for name in ("least", "some")]
            self.row["budgets"] = "/".join(reversed(same))
            self.train("least")
            self.double()
        except Failure as failure:
            self.row["state"] = str(failure)
        finally:
            shutil.rmtree(self.work, ignore_errors=True)
            self.row["warnings"] = self.remarks
        return self.row

    def double(self):
        if not self.about.get("large"):
            self.compile("double", "--portable", "--precision", "fp64")
            self.judge("fp64", self.run("double"))
        self.row["state"] = self.verdict()

    def arena(self, name):
        return json.loads((self.work / name / "plan.json").read_text())["arena_bytes"]

    def again(self, name, base):
        """Another budget: are all results the same, bit for bit?"""
        budget = "min" if name == "least" else "70%"
        if not self.compile(name, "--budget", budget):  # a model that is mostly parameters: the middle, then
            self.compile(name, "--budget", (self.arena("all") + self.arena("least")) // 2)
        ours = self.run(name)
        same = ours.keys() == base.keys() and all(ours[n].tobytes() == base[n].tobytes() for n in base)
        part = self.arena(name) / self.arena("all")
        return f"{100 * part:.0f}%" if same else "DIFFERS"

    def verdict(self):
        row, wrong = self.row, []
        if "lacking" in row:
            wrong.append(f"no {row['lacking'][0]}" + (f" and {len(row['lacking']) - 1} more" * (len(row["lacking"]) > 1)))
        if "DIFFERS" in row.get("budgets", ""):
            wrong.append("budgets differ")
        if row.get("fp64", 0) > 1e-5:
            wrong.append(f"fp64 off at {row['fp64_at']}")
        if row.get("fp32", 0) > max(1e-3, row["own"] or 0):
            wrong.append(f"fp32 off at {row['fp32_at']}")
        if "extra" in row:
            wrong.append(f"trains {row['extra'][0][5:]}" + (f" and {len(row['extra']) - 1} more" * (len(row["extra"]) > 1)))
        return "; ".join(wrong) or "ok"


def line(row):
    number = lambda key: f"{row[key]:.0e}" if row.get(key) is not None else "-"
    state = row["state"]
    if row.get("missing"):
        state += " [" + " ".join(row["missing"]) + "]"
    return f"{row['case']:34} {number('fp64'):7} {number('fp32'):7} {number('own'):7} {row.get('budgets', '-'):11} {row['seconds']:4.0f} {state}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stint", default="build/stint")
    parser.add_argument("--only", choices=("plan", "double"), help="whether they can be compiled; double precision")
    parser.add_argument("--work", type=pathlib.Path, default=None)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--json", type=pathlib.Path, help="write all that was found")
    parser.add_argument("cases", type=pathlib.Path)
    parser.add_argument("pattern", nargs="*", default=["*"])
    args = parser.parse_args()
    named = {f"{p.parent.name}.{p.name}": p for p in args.cases.glob("*/*") if p.is_dir()}
    named = {n: p for n, p in sorted(named.items()) if any(fnmatch.fnmatch(n, q) for q in args.pattern)}
    made = [p for p in named.values() if (p / "model.onnx").exists() and not (p / "error.txt").exists()]
    rows = []
    with tempfile.TemporaryDirectory() as scratch, concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        work = args.work or pathlib.Path(scratch)
        print(f"{'case':34} {'fp64':7} {'fp32':7} {'torch':7} {'arenas':11} {'s':>4} result")
        for row in pool.map(lambda p: Case(args.stint, p, work, args.only).measure(), made):
            rows.append(row)
            print(line(row), flush=True)
    for name, path in named.items():
        if (path / "error.txt").exists():
            print(f"{name:34} not exported: {(path / 'error.txt').read_text().strip().splitlines()[-1][:100]}")
    good = sum(row["state"] in ("ok", "plans") for row in rows)
    print(f"{good} of {len(rows)}")
    if args.json:
        args.json.write_text(json.dumps(rows, indent=1))
    return good != len(rows)


if __name__ == "__main__":
    sys.exit(main())
