#!/usr/bin/env python3
"""The planner measured: one line per instance and budget, and geometric means.

Without a FOLDER, on generated graphs (build/graphs). A FOLDER holds stint-graph-1 files NAME.json
and, perhaps, a reference.json: {NAME: {LABEL: {"budget_bytes", "best_cost", "lower_bound"}}}, whose
budgets are then used. A chain without a reference is compared with the optimum over persistent
schedules (build/chain_optimum, which see; other schedules may cost less). Every plan is run through `stint check`. Times are of the processor and of one
run of `stint plan`, reading and writing included.
"""

import argparse
import json
import math
import os
import resource
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))

# family, N: what fits a coffee break on one core
SMALL = [("chain", 64), ("rotor", 40), ("trunk", 60), ("layered", 250), ("layered-train", 60),
         ("ladder", 18), ("dense", 10), ("gpt", 12), ("flash", 24), ("bert", 12), ("vgg16", 64),
         ("resnet50", 32), ("mobilenetv2", 64), ("densenet121", 32)]
LARGE = [("layered", 1000), ("layered", 10000), ("trunk", 5000), ("ladder", 700), ("gpt", 240),
         ("flash", 96), ("gpt", 2380)]

COLUMNS = [("instance", 28, "s"), ("ops", 7, "d"), ("budget", 8, "s"), ("bytes", 14, "d"),
           ("cost/once", 10, ".5f"), ("ref/once", 9, ".5f"), ("ratio", 8, ".5f"),
           ("bound/once", 10, ".5f"), ("gap %", 7, ".3f"), ("arena/peak", 10, ".5f"),
           ("cpu s", 7, ".2f"), ("MiB", 6, "d"), ("note", 0, "s")]


def arguments():
    a = argparse.ArgumentParser(prog="run.sh", description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("folder", nargs="*", help="instances and their reference.json")
    a.add_argument("--build", default=os.path.join(HERE, "..", "..", "..", "build"))
    a.add_argument("--fractions", help="0.9,0.5: instead of the reference's; 0.8,0.5 where none is")
    a.add_argument("--only", metavar="NAME", help="instances whose name holds NAME")
    a.add_argument("--large", action="store_true", help="the generated graphs up to 100,000 ops too")
    a.add_argument("--effort", help="passed on to stint plan, where it knows the option")
    a.add_argument("--gap", help="the same")
    a.add_argument("--timeout", type=float, default=600, help="processor seconds for one plan")
    a.add_argument("--save", metavar="FILE", help="write the results as JSON")
    a.add_argument("--against", metavar="FILE", help="compare with results saved before")
    return a.parse_args()


def run(command, timeout):
    """(exit status, processor seconds, peak MiB, stderr)"""
    def limit():
        if timeout:
            resource.setrlimit(resource.RLIMIT_CPU, (int(timeout) + 1, int(timeout) + 2))
    with tempfile.TemporaryFile() as err:
        p = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=err, preexec_fn=limit)
        _, status, usage = os.wait4(p.pid, 0)
        p.returncode = os.waitstatus_to_exitcode(status)
        err.seek(0)
        return (p.returncode, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024,
                err.read().decode(errors="replace"))


def rounded_peak(plan):
    """The most bytes live at a step, each buffer rounded up to 64, an in-place pair counted once."""
    change = [0] * (len(plan["steps"]) + 1)
    ends = {}
    for b in plan["buffers"]:
        b["room"] = (b["bytes"] + 63) // 64 * 64
        change[b["first_step"]] += b["room"]
        change[b["last_step"] + 1] -= b["room"]
        if b["room"]:
            ends[b["last_step"], b["offset"]] = b
    for b in plan["buffers"]:
        other = ends.get((b["first_step"], b["offset"]))
        if b["room"] and other and other is not b and other["first_step"] < b["first_step"]:
            change[b["first_step"]] -= b["room"]
            change[b["first_step"] + 1] += b["room"]
    live = peak = 0
    for c in change:
        live += c
        peak = max(peak, live)
    return peak


class Bench:
    def __init__(self, options, work):
        self.o = options
        self.work = work
        self.stint = os.path.join(options.build, "stint")
        self.extra = []
        says = subprocess.run([self.stint, "plan", "--help"], capture_output=True, text=True)
        for option, value in (("--effort", options.effort), ("--gap", options.gap)):
            if value and option in says.stdout + says.stderr:
                self.extra += [option, value]
            elif value:
                print(f"this stint has no {option}: planning as usual", file=sys.stderr)
        self.before = {}
        if options.against:
            with open(options.against) as f:
                self.before = {(r["instance"], r["budget"]): r for r in json.load(f)}
        self.rows = []

    def plan(self, name, path, ops, label, budget, reference):
        out = os.path.join(self.work, "plan.json")
        if os.path.exists(out):
            os.remove(out)
        code, cpu, rss, err = run([self.stint, "plan", "--graph", path, "--budget", str(budget),
                                   "--json", "-o", out] + self.extra, self.o.timeout)
        row = {"instance": name, "ops": ops, "budget": label, "cpu s": cpu, "MiB": int(rss),
               "bytes": budget if isinstance(budget, int) else None, "note": ""}
        if code == 0:
            self.measure(row, path, out, reference)
        elif code == 4 and os.path.exists(out):
            with open(out) as f:
                p = json.load(f)
            row["bytes"] = p["budget_bytes"]
            row["note"] = "not met: known %d, proven %d" % (p["min_bytes_known"],
                                                            p["min_bytes_proven"])
            row["note"] += ", as the reference" if reference.get("proven_infeasible") else ""
            if reference.get("best_cost"):
                row["note"] += "; THE REFERENCE MEETS IT"
        else:
            row["note"] = "FAILED: exit %d %s" % (code, err.strip().split("\n")[-1][:80])
        self.rows.append(row)
        show(row)

    def measure(self, row, path, out, reference):
        with open(out) as f:
            p = json.load(f)
        code, _, _, err = run([self.stint, "check", "--graph", path, out], 0)
        cost, peak = p["cost"], rounded_peak(p)
        once = cost["once"] or 1
        row["bytes"] = p["budget_bytes"]
        row["cost"] = cost["total"]
        row["cost/once"] = cost["total"] / once
        bound = cost["lower_bound"]
        if bound is not None:
            row["bound/once"] = bound / once
            row["gap %"] = 100 * (1 - bound / cost["total"]) if cost["total"] else 0
        row["arena/peak"] = (p["arena_bytes"] + 63) // 64 * 64 / peak if peak else 1
        best = reference.get("best_cost")
        chain = self.chain_optimum(path, row)
        if best is None:
            best = chain
        if best is not None:
            row["ref/once"] = best / once
            row["ratio"] = cost["total"] / best if best else 1
        notes = []
        if chain is not None:
            row["chain"] = cost["total"] / chain
            notes.append("chain optimum x %.5f" % row["chain"])
        if code:
            notes.append("REFUSED BY CHECK: " + err.strip().split("\n")[-1][:80])
        best = reference.get("best_cost")
        if best is not None and bound is not None and bound > best * (1 + 1e-9):
            # a reference counts live bytes: where these do not pack, a bound on arenas may exceed it
            notes.append("bound over the reference's cost")
        if reference.get("packed_arena_over_peak", 1) > 1:
            notes.append("reference packs at %.4f" % reference["packed_arena_over_peak"])
        old = self.before.get((row["instance"], row["budget"]))
        if old and old.get("cost"):
            row["before"] = row["cost"] / old["cost"]
            notes.append("before x %.5f" % row["before"])
        row["note"] = "; ".join(notes)

    def chain_optimum(self, path, row):
        if row["ops"] > 400:
            return None
        r = subprocess.run([os.path.join(self.o.build, "chain_optimum"), path, str(row["bytes"])],
                           capture_output=True, text=True)
        return float(r.stdout) if r.returncode == 0 and r.stdout.strip() != "none" else None

    def instance(self, name, path, reference):
        if self.o.only and self.o.only not in name:
            return
        with open(path) as f:
            ops = len(json.load(f)["ops"])
        known = {k: v for k, v in reference.items() if not k.startswith("_")}
        fractions = self.o.fractions.split(",") if self.o.fractions else None
        if known:
            for label, r in sorted(known.items(), key=lambda k: -k[1]["budget_bytes"]):
                if not fractions or label in fractions:
                    self.plan(name, path, ops, label, r["budget_bytes"], r)
        else:
            for f in fractions or ["0.8", "0.5"]:
                budget = f if f == "min" else "%g%%" % (100 * float(f))
                self.plan(name, path, ops, f, budget, {})

    def folder(self, folder):
        reference = {}
        path = os.path.join(folder, "reference.json")
        if os.path.exists(path):
            with open(path) as f:
                reference = json.load(f)
        for file in sorted(os.listdir(folder)):
            if file.endswith(".json") and file != "reference.json":
                self.instance(file[:-5], os.path.join(folder, file), reference.get(file[:-5], {}))

    def generated(self):
        for family, n in SMALL + (LARGE if self.o.large else []):
            name = "%s-%d" % (family, n)
            if self.o.only and self.o.only not in name:
                continue
            path = os.path.join(self.work, "graph.json")
            with open(path, "wb") as f:
                subprocess.run([os.path.join(self.o.build, "graphs"), family, str(n)], stdout=f,
                               check=True)
            self.instance(name, path, {})


def show(row):
    cells = []
    for name, width, kind in COLUMNS:
        v = row.get(name)
        text = "" if v is None else format(v, kind)
        cells.append(text if not width else text.ljust(width) if kind == "s" else text.rjust(width))
    print(" ".join(cells).rstrip(), flush=True)


def mean(values):
    return math.exp(sum(math.log(v) for v in values) / len(values)) if values else None


def summary(rows):
    def column(name):
        return [r[name] for r in rows if r.get(name) is not None]
    ratios, gaps, arenas = column("ratio"), column("gap %"), column("arena/peak")
    print()
    print("%d plans, %d not met, %d bad" % (
        len(column("cost")), sum("not met" in r["note"] for r in rows), bad(rows)))
    if ratios:
        print("cost against the reference: geometric mean %.6f, worst %.6f, best %.6f, above it %d of %d"
              % (mean(ratios), max(ratios), min(ratios), sum(r > 1 + 1e-9 for r in ratios),
                 len(ratios)))
    if column("chain"):
        print("cost against the chains' optimum: geometric mean %.6f, worst %.6f of %d" % (
            mean(column("chain")), max(column("chain")), len(column("chain"))))
    if gaps:
        print("gap: mean %.4f %%, worst %.4f %%, at most 0.1 %%: %d, at most 1 %%: %d of %d" % (
            sum(gaps) / len(gaps), max(gaps), sum(g <= 0.1 for g in gaps),
            sum(g <= 1 for g in gaps), len(gaps)))
    if arenas:
        print("arena over rounded peak: geometric mean %.6f, worst %.6f, equal %d of %d" % (
            mean(arenas), max(arenas), sum(a <= 1 for a in arenas), len(arenas)))
    if column("cost/once"):
        print("cost over one pass: geometric mean %.6f" % mean(column("cost/once")))
    if column("before"):
        print("cost over the one before: geometric mean %.6f, worst %.6f" % (
            mean(column("before")), max(column("before"))))
    print("processor seconds: %.1f in all, %.1f the longest; %d MiB the most" % (
        sum(column("cpu s")), max(column("cpu s"), default=0), max(column("MiB"), default=0)))


def bad(rows):
    return sum("FAILED" in r["note"] or "REFUSED" in r["note"] for r in rows)


def main():
    o = arguments()
    with tempfile.TemporaryDirectory() as work:
        b = Bench(o, work)
        print(" ".join(n.ljust(w) if k == "s" else n.rjust(w) for n, w, k in COLUMNS))
        for f in o.folder:
            b.folder(f)
        if not o.folder:
            b.generated()
        summary(b.rows)
        if o.save:
            with open(o.save, "w") as f:
                json.dump(b.rows, f, indent=1)
                f.write("\n")
        return 1 if bad(b.rows) else 0


if __name__ == "__main__":
    sys.exit(main())
