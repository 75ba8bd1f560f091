"""against_torch.py STINT WORK [CASE ...]: `stint bench --against torch` on cases of tests/models (all, without names).

A case is OK where PyTorch's step runs, its loss is ours (unless the model draws numbers), and it trains as many numbers.
STINT_PYTHON, as for stint, names the Python that has torch; the exit code is 77, with the reason, where it has not.
Folders that were compiled by an earlier run in WORK are used again.
"""
import json
import os
import pathlib
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

CASES = pathlib.Path(__file__).resolve().parent / "cases"


def find(case, name):
    return next((p for p in (case / name, case.parent / name) if p.exists()), None)


def compiled(stint, case, folder):
    """None, or why not."""
    if (folder / "step.so").exists():
        return None
    options = find(case, "options").read_text(encoding="utf-8").split()
    folder.parent.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(
        [stint, "compile", case / "model.onnx", "--effort", "0.05", *options, "--optimizer", "sgd:lr=0.1", "--threads", "1",
         "--force", "-o", folder], capture_output=True, text=True, check=False,
        env={**os.environ, "CFLAGS": "-O0 -march=native"})
    return None if done.returncode == 0 else "does not compile: " + done.stderr.strip().splitlines()[0]


def compare(stint, case, work):
    """(the case's name, what is wrong or None, what was measured)"""
    name = str(case.relative_to(CASES))
    folder = work / name
    wrong = compiled(stint, case, folder)
    if wrong:
        return name, wrong, ""
    done = subprocess.run([stint, "bench", folder, "--against", "torch", "--steps", "1", "--json"], capture_output=True,
                          text=True, check=False)
    said = " ".join(x for x in done.stderr.splitlines() if ": note: " not in x)
    if done.returncode or said:
        return name, said.replace(str(folder), name) or f"exit code {done.returncode}", ""
    x = json.loads(done.stdout)
    return name, None, f"loss {x.get('loss')}, {x.get('torch_loss')}"


def main():
    stint, work = os.path.abspath(sys.argv[1]), pathlib.Path(sys.argv[2]).resolve()
    python = os.environ.get("STINT_PYTHON") or "python3"
    has = subprocess.run([python, "-c", "import torch, onnx"], capture_output=True, text=True, check=False)
    if has.returncode:
        print(f"skipped: {python}: {has.stderr.strip().splitlines()[-1]}")
        return 77
    cases = [CASES / c for c in sys.argv[3:]] or sorted(p.parent for p in CASES.glob("*/*/model.onnx"))
    failed = 0
    with ThreadPoolExecutor(2) as pool:
        for name, wrong, measured in pool.map(lambda c: compare(stint, c, work), cases):
            print(f"{'FAILED' if wrong else 'ok    '} {name}: {wrong or measured}", flush=True)
            failed += wrong is not None
    print(f"{len(cases) - failed} of {len(cases)} cases")
    return 1 if failed else 0


sys.exit(main())
