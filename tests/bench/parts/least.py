"""The smallest budget with --micro-batch auto against what no way of taking the batch apart can do without.

    python3 tests/bench/parts/least.py [--stint build/stint] [--effort 0.5]

For each example: what is resident (parameters, optimizer state, inputs) when nothing is taken apart; the largest single
layer's need, which is the most bytes that any op with micro-batches of one sample reads and writes, with its workspace, of what is
not resident; and the smallest budget found. The goal: no more than 10 % above the sum of the first two.
"""
import argparse
import json
import pathlib
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[3]
EXAMPLES = {  # model: batch, optimizer
    "mlp": (128, "sgd:lr=0.1"), "cnn": (64, "adam"), "resnet": (64, "sgd:lr=0.1,momentum=0.9"), "vgg": (64, "sgd:lr=0.001,momentum=0.9"),
    "gpt": (16, "adamw")}
RESIDENT = "input", "parameter", "state"


def stint(o, *words):
    return subprocess.run([o.stint, *map(str, words)], capture_output=True, text=True, check=True).stdout


def largest(graph):
    """The most that an op needs, its own results and what it reads, and which one; of the forward and backward
    pass; residents and their next values are not counted."""
    tensors = {t["id"]: t for t in graph["tensors"]}

    def need(op):
        ids = {*op["inputs"], *op["outputs"]}
        in_place = {pair[0] for pair in op.get("inplace", [])}
        counted = [t for t in ids if tensors[t]["kind"] not in (*RESIDENT, "output") and
                   not (t in in_place and t in op["outputs"])]
        return sum(tensors[t]["bytes"] for t in counted) + op["workspace"]

    op = max((op for op in graph["ops"] if op["phase"] != "update"), key=need)
    return need(op), op["name"] + " " + op["phase"]


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--stint", default=ROOT / "build/stint")
    p.add_argument("--effort", type=float, default=0.5)
    o = p.parse_args()
    print("| example | batch | resident | largest layer | sum + 10 % | smallest budget | micro-batches | of the goal |\n|" + "---|" * 8)
    for name, (batch, optimizer) in EXAMPLES.items():
        model = ROOT / f"examples/models/{name}.onnx"
        words = [model, "--batch", batch, "--loss", "cross-entropy", "--optimizer", optimizer, "--threads", 2, "--effort", o.effort]
        resident = json.loads(stint(o, "frontier", *words, "--points", 1, "--json"))["resident_bytes"]
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "graph.json"
            stint(o, "plan", *words, "--micro-batch", 1, "--dump-graph", file, "--effort", 0.01)
            need, layer = largest(json.loads(file.read_text()))
        plan = json.loads(stint(o, "plan", *words, "--micro-batch", "auto", "--budget", "min", "--json"))
        parts = next(x["micro_batches"] for x in plan["tried"] if x["chosen"])
        goal = (resident + need) * 1.1
        mib = lambda b: f"{b / 2**20:.2f}"
        print(f"| {name} | {batch} | {mib(resident)} | {mib(need)} ({layer}) | {mib(goal)} | {mib(plan['arena_bytes'])} | {parts} | "
              f"{plan['arena_bytes'] / goal:.2f} × |", flush=True)


main()
