#!/usr/bin/env python3
"""Public rematerialisation instances as stint-graph-1, with their published results.

    public.py moccasin FOLDER OUT    FOLDER: a copy of github.com/haoming-codes/moccasin
    public.py monet FOLDER OUT       FOLDER: a copy of github.com/utsaslab/monet-schedules

OUT gets one NAME.json per graph and a reference.json for run.sh. The data itself is not ours and stays
out of this repository. Pickles are read without importing or running anything they name.
"""

import collections
import glob
import json
import math
import os
import pickle
import re
import struct
import sys


def graph(name, nodes, edges, fixed):
    """nodes: (name, phase, bytes, cost) in a valid order; edges: pairs of their numbers."""
    tensors = [{"id": i, "name": n[0], "bytes": n[2],
                "kind": "activation" if n[1] == "forward" else "gradient"} for i, n in enumerate(nodes)]
    reads = [[] for _ in nodes]
    if fixed:
        tensors.append({"id": len(nodes), "name": "fixed", "bytes": fixed, "kind": "parameter"})
    for a, b in edges:
        if a not in reads[b]:
            reads[b].append(a)
    ops = [{"id": i, "name": n[0], "phase": n[1], "inputs": sorted(reads[i]), "outputs": [i],
            "cost": n[3], "workspace": 0, "inplace": [], "recomputable": True}
           for i, n in enumerate(nodes)]
    return {"format": "stint-graph-1", "name": name, "tensors": tensors, "ops": ops, "keep": []}


def save(folder, name, value):
    with open(os.path.join(folder, name + ".json"), "w") as f:
        json.dump(value, f, indent=None if name != "reference" else 1)
        f.write("\n")


# --- MOCCASIN: networkx node-link JSON. A run's output lives from its step to its last use; the
# reported number is the increase of the sum of durations over a single run of each.

# Bartan et al., "Moccasin: Efficient Tensor Rematerialization for Neural Networks", ICML 2023, in
# per cent, to a tenth: not known better than that
PUBLISHED = {250: {"0.9": 0.9, "0.8": 4.9}, 1000: {"0.9": 0.7, "0.8": 3.4}}


def listed_peak(order, nodes, edges):
    last = {v: j for j, v in enumerate(order)}
    step = dict(last)
    for a, b in edges:
        last[a] = max(last[a], step[b])
    ends = collections.defaultdict(list)
    live = peak = 0
    for j, v in enumerate(order):
        live += nodes[v]
        peak = max(peak, live)
        ends[last[v]].append(v)
        live -= sum(nodes[u] for u in ends.pop(j, []))
    return peak


def moccasin_graph(path):
    with open(path) as f:
        g = json.load(f)
    name = os.path.basename(path)[:-5].replace(" (MLSys)", "").replace(", ", "x")
    name = re.sub(r"[^A-Za-z0-9_.]", "", name).replace("_nx", "")
    layered = name.startswith("random_layered")
    size = {n["id"] if "id" in n else n["name"]: n["out_cost" if layered else "cost_ram"]
            for n in g["nodes"]}
    cost = {n["id"] if "id" in n else n["name"]: n["duration" if layered else "cost_cpu"]
            for n in g["nodes"]}
    back = {n.get("id"): n.get("backward", False) for n in g["nodes"]}
    a, b = ("0", "1") if layered else ("source", "target")
    edges = [(e[a], e[b]) for e in g["links"]]
    order = g["graph"].get("order") or sorted(size)
    at = {v: i for i, v in enumerate(order)}
    assert sorted(at) == sorted(size) and all(at[u] < at[v] for u, v in edges), path
    # sizes that are no multiples of 64 would be rounded up by a plan's offsets: count in 64 bytes
    unit = 1 if all(s % 64 == 0 for s in size.values()) else 64
    nodes = [("n%s" % v, "backward" if back.get(v) else "forward", size[v] * unit, cost[v])
             for v in order]
    peak = listed_peak(order, size, edges)
    return name, graph(name, nodes, [(at[u], at[v]) for u, v in edges], 0), peak, unit, layered


def moccasin(folder, out):
    reference = {}
    for path in sorted(glob.glob(os.path.join(folder, "data", "*.json"))):
        name, g, peak, unit, layered = moccasin_graph(path)
        once = sum(o["cost"] for o in g["ops"])
        save(out, name, g)
        reference[name] = {"_info": {"ops": len(g["ops"]), "once": once, "keepall_peak": peak * unit}}
        for fraction in ("0.9", "0.8"):
            percent = PUBLISHED.get(len(g["ops"]), {}).get(fraction) if layered else None
            reference[name][fraction] = {
                "budget_bytes": math.ceil(peak * float(fraction)) * unit,
                "best_cost": None if percent is None else once * (1 + percent / 100),
                "lower_bound": None, "method": "published, to a tenth of a per cent"}
    save(out, "reference", reference)


# --- MONeT's copies of Checkmate's problems: [solver info, solution] of a Gurobi run, and its log.
# Nodes in order, one output each, sizes in KiB, costs in 1/100 of the profile's unit; parameters and
# their gradients are a constant. checkmate_solver.py of that project builds the program:
# permute_ram, permute_cpu, fixed_ram and edge_list.


class Thing:
    """Whatever a pickle names: keeps its state, does nothing."""

    def __new__(cls, *args):
        self = object.__new__(cls)
        self.args = args
        return self

    def __init__(self, *args):
        pass

    def __setstate__(self, state):
        if isinstance(state, dict):
            self.__dict__.update(state)


class Dtype(Thing):
    pass


def scalar(dtype, data):
    code = {"f8": "d", "f4": "f", "i8": "q", "i4": "i", "b1": "?"}[dtype.args[0]]
    return struct.unpack("<" + code, data)[0]


class Reader(pickle.Unpickler):
    def find_class(self, module, name):
        safe = {"collections defaultdict": collections.defaultdict, "builtins set": set,
                "builtins list": list, "builtins getattr": lambda o, n: type(n, (Thing,), {}),
                "numpy.core.multiarray scalar": scalar, "numpy dtype": Dtype}
        return safe.get(module + " " + name) or type(name, (Thing,), {})


def monet_graph(info, name):
    count = len(info.nodes)
    node = [info.nodes[i] for i in range(count)]
    nodes = []
    for i, n in enumerate(node):
        source = n.__dict__.get("gnode") or n.__dict__.get("fwd_node")
        op = str(source.__dict__.get("op", "")) if source else ""
        nodes.append(("%d %s" % (i, op.replace("aten::", "")),
                      "backward" if i > info.loss else "forward",
                      round(n.mem / 1024) * 1024, round(n.workspace_compute[0] * 100)))
    fixed = round(node[-1].fixed_mem / 1024) * 1024
    return graph(name, nodes, [(u, v) for u, v, _ in info.edge_list], fixed)


def log_result(text):
    """The best of the runs in a log: (cost or None, bound or None, infeasible)."""
    cost = bound = None
    for c, b in re.findall(r"^Best objective (\S+), best bound (\S+),", text, re.M):
        if c != "-":
            cost = min(float(c), cost or math.inf)
        if b != "-":
            bound = max(float(b), bound or 0)
    return cost, bound, "Model is infeasible" in text


def log_budget(path):
    name = os.path.basename(path)
    found = re.search(r"_(\d+(?:\.\d+)?)(_new|_noconv\.out)?$", name)
    return "%.2f" % float(found.group(1)) if found else None


def monet(folder, out):
    reference = {}
    for path in sorted(glob.glob(os.path.join(folder, "checkmate_*_24hr"))):
        results = {}
        name = None
        for p in sorted(glob.glob(os.path.join(path, "*.pkl"))):
            found = re.match(r"checkmate_solution_(.*)_normal_(\d+\.\d+)\.pkl", os.path.basename(p))
            with open(p, "rb") as f:
                info, solution = Reader(f).load()
            name = found.group(1)
            g = monet_graph(info, name)
            results[found.group(2)] = [float(solution.runtime_expected), None]
        if name is None:
            print("%s: no solution file: its graph is not known" % path, file=sys.stderr)
            continue
        for p in sorted(glob.glob(os.path.join(path, "*"))):
            if p.endswith(".pkl") or not log_budget(p):
                continue
            with open(p, errors="replace") as f:
                cost, bound, infeasible = log_result(f.read())
            r = results.setdefault(log_budget(p), [None, None])
            r[0] = min(cost or math.inf, r[0] or math.inf) if cost or r[0] else None
            r[1] = math.inf if infeasible else bound
        save(out, name, g)
        reference[name] = {"_info": {"ops": len(g["ops"]), "once": sum(o["cost"] for o in g["ops"])}}
        for budget, (cost, bound) in sorted(results.items(), key=lambda r: -float(r[0])):
            # the bound and the infeasibility hold for the listed order and one stage per node only
            reference[name][budget + "GB"] = {
                "budget_bytes": int(float(budget) * 1024 * 1024) * 1024, "best_cost": cost,
                "lower_bound": None,
                "order_bound": bound if bound is not None and bound < math.inf else None,
                "order_infeasible": bound == math.inf, "method": "Gurobi, 24 h"}
    save(out, "reference", reference)


def main():
    kinds = {"moccasin": moccasin, "monet": monet}
    if len(sys.argv) != 4 or sys.argv[1] not in kinds:
        sys.exit(__doc__)
    os.makedirs(sys.argv[3], exist_ok=True)
    kinds[sys.argv[1]](sys.argv[2], sys.argv[3])


if __name__ == "__main__":
    main()
