"""The stages of tests/gpu/run.sh, which says what they are, builds what they need, and starts this."""
import argparse
import os
import pathlib
import sys
import time

import compare
import several
import stages
from results import Results
from tools import ROOT, Failed, Tools


def places(text):
    """"1-3,7" as {1, 2, 3, 7}."""
    ends = [[int(end) for end in word.split("-")] for word in text.split(",")]
    return {i for end in ends for i in range(end[0], end[-1] + 1)}


def parse():
    p = argparse.ArgumentParser(prog="tests/gpu/run.sh")
    p.add_argument("--stage", default="a,b,c,d,e,f,g,h,i", metavar="LIST")
    p.add_argument("--quick", action="store_true", help="small shapes, few cases: five minutes")
    p.add_argument("--out", metavar="FOLDER", help="default: gpu in the build folder")
    p.add_argument("--build", default=str(ROOT / "build"), metavar="FOLDER")
    p.add_argument("--python", default="python3", metavar="PROGRAM", help="with torch")
    p.add_argument("--models", default="gpt2,resnet50", metavar="LIST", help="of c and d")
    p.add_argument("--variants", metavar="LIST", help="of c: " + ",".join(compare.VARIANTS))
    p.add_argument("--budgets", metavar="LIST", help="of d: default four, down to the smallest one met")
    p.add_argument("--points", type=places, metavar="LIST", help="of g's budgets: 1 is the largest, as 1-3,7; default all")
    p.add_argument("--again", action="store_true", help="c, d, g: also what this commit has measured already")
    p.add_argument("--precision", default="bf16", choices=("bf16", "fp32"), help="of c, d and g")
    p.add_argument("--batch", type=int, metavar="N", help="of c, d and g: default 64 (GPT-2), 256 (ResNet-50)")
    p.add_argument("--length", type=int, default=1024, metavar="T", help="of GPT-2's texts")
    p.add_argument("--steps", type=int, metavar="N", help="timed in a turn; default 10")
    p.add_argument("--rounds", type=int, metavar="N", help="turns of each; default 3")
    p.add_argument("--cases", metavar="LIST", help="of e, as gpt2/raw")
    p.add_argument("--limit", type=int, metavar="SECONDS", help="of stage e: default 1200")
    p.add_argument("--jobs", type=int, default=min(8, os.cpu_count() or 1), metavar="N", help="of e, f and h")
    p.add_argument("--tiny", action="store_true", help="tiny models")
    p.add_argument("--device", default="cuda", choices=("cuda", "cpu"), help="PyTorch's")
    p.add_argument("--fake", action="store_true", help="stand-ins in the place of the device")
    a = p.parse_args()
    a.tiny = a.tiny or a.fake
    small = a.quick or a.tiny
    a.out = a.out or str(pathlib.Path(a.build) / "gpu")
    a.variants = a.variants or ",".join(compare.VARIANTS[:2] if small else compare.VARIANTS)
    a.steps = a.steps or (2 if a.tiny else 5 if a.quick else 10)
    a.rounds = a.rounds or (1 if small else 3)
    a.limit = a.limit or (100 if a.quick else 1200)
    unknown = set(a.stage.split(",")) - set("abcdefghi")
    if unknown:
        p.error("unknown stage: " + ", ".join(sorted(unknown)))
    if a.points and not a.points <= set(range(1, stages.sweep_size(a) + 1)):
        p.error(f"--points: there are 1 to {stages.sweep_size(a)}")
    return a


def against_torch(tools, results, wanted):
    """Stages c and d in one go, so that they take turns."""
    start = time.time()
    why = compare.torch_there(tools) if "c" in wanted else ""
    torch_too, ours_too = "c" in wanted and not why, "d" in wanted
    if ours_too:
        missing = "" if torch_too else compare.torch_there(argparse_cpu(tools))
        exported = all(list(tools.work.glob(f"{m}.*.onnx")) for m in tools.args.models.split(","))
        if missing and not exported:  # models come from PyTorch
            results.keep("d", "skipped", missing, {}, 0)
            ours_too = False
    if why:
        results.keep("c", "skipped", why, {}, time.time() - start)
    if not torch_too and not ours_too:
        return
    faults = compare.stage(tools, results, torch_too, ours_too)
    for name, there in (("c", torch_too), ("d", ours_too)):
        if there:
            words = "; ".join(f"{model}: " + ", ".join(f"{e} {r['step_ms']:.4g} ms" if "step_ms" in r else f"{e} {r['verdict']}"
                                                       for e, r in of["entries"].items())
                              for model, of in results.models(name).items())
            results.gather(name, words, faults[name], time.time() - start)


def argparse_cpu(tools):
    """The same tools where PyTorch is wanted for export only."""
    class Other:
        pass
    other = Other()
    other.args = argparse.Namespace(**{**vars(tools.args), "device": "cpu"})
    return other


def main():
    args = parse()
    tools = Tools(args)
    results = Results(tools)
    wanted = args.stage.split(",")
    for name in sorted(set(wanted)):
        start = time.time()
        try:
            if name in "cd":
                if name == "c" or "c" not in wanted:
                    against_torch(tools, results, wanted)
                continue
            if name == "g":
                results.gather(name, *stages.sweep(tools, results), time.time() - start)
                continue
            stage = several.several if name == "i" else stages.STAGES[name]
            verdict, words, data = stage(tools)
            results.keep(name, verdict, words, data, time.time() - start)
        except Failed as e:
            results.keep(name, "FAILED", str(e), results.models(name), time.time() - start)
        except Exception as e:  # a fault of ours is no reason not to go on
            results.keep(name, "FAILED", f"{type(e).__name__}: {e}", results.models(name), time.time() - start)
    print(f"{tools.out}/results.json, table.md, log.txt")
    return 1 if results.failed else 0


if __name__ == "__main__":
    sys.exit(main())
