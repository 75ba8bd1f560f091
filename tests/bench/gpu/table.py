"""results.json as tables, in the style of docs/benchmarks.md."""

GIB = 1 << 30


def gib(value):
    return f"{value / GIB:.2f}" if value is not None else ""


def ms(value):
    return f"{value:,.4g}" if value < 1000 else f"{value:,.0f}"


def rows(head, lines):
    return ["", "| " + " | ".join(head) + " |", "|" + "---|" * len(head)] + ["| " + " | ".join(map(str, x)) + " |" for x in lines]


def line(what, entry, *values):
    """A row: numbers, or what went wrong, and the commit of both."""
    shown = [v() for v in values] if "step_ms" in entry else [entry.get("error", entry["verdict"]).replace("|", "/")] + \
        [""] * (len(values) - 1)
    return [what, *shown, entry["with"]["commit"]]


def beside_torch(theirs, ours):
    """A table a model and shape: PyTorch's variants, then ours at each budget."""
    out = []
    shapes = [(model, of["shape"]) for data in (theirs, ours) for model, of in data.items()]
    for i, (model, shape) in enumerate(shapes):
        if (model, shape) in shapes[:i]:
            continue
        text = f", {shape['length']} symbols" if "length" in shape else ""
        out += ["", f"{model}, batch {shape['batch']}{text}, {shape['precision']}{', tiny' if shape['tiny'] else ''}:"]
        t, o = ([*of["entries"].items()] if of and of["shape"] == shape else [] for of in (theirs.get(model), ours.get(model)))
        lines = [line(f"PyTorch, {name}", r, lambda: ms(r["step_ms"]), lambda: f"{r['ratio']:.3f}" if "ratio" in r else "",
                      lambda: gib(r.get("allocated")), lambda: gib(r.get("device_used"))) for name, r in t]
        lines += [line(f"stint, {name}", r, lambda: ms(r["step_ms"]), lambda: "", lambda: gib(r["arena_bytes"]),
                       lambda: gib(r["arena_bytes"] + r["outside_bytes"])) for name, r in o]
        out += rows(["", "ms a step", "stint's (first budget) ÷ this, in turn", "allocated or arena, GiB",
                     "of the device, GiB", "commit"], lines)
    return out


def over_budgets(model, of):
    out = ["", f"{model} over budgets:"]
    lines = [line(p.get("budget", name), p, lambda: gib(p["arena"]), lambda: f"{p['outside'] / 2**20:.1f}",
                  lambda: f"{p['off'] / 2**20:+.1f}" if "off" in p else "", lambda: ms(p["step_ms"]),
                  lambda: ms(p["predicted_ms"] or 0)) for name, p in sorted(of["entries"].items(), key=lambda e: int(e[0]))]
    return out + rows(["budget", "arena, GiB", "outside, MiB", "peak less both, MiB (pages: 2)", "ms a step", "predicted",
                       "commit"], lines)


def markdown(results):
    out = ["# On a GPU", ""]
    a = results.get("a", {})
    if a.get("data"):
        d = a["data"]
        out += [f"{d['name']}; {d.get('nvidia_smi', '')}. Measured: copies {d['copy_gb_s']} GB/s; products " + ", ".join(
            f"{k} {v}" for k, v in (d["tflops"] or {}).items()) + " TFLOP/s.", "Outside the arena, MiB: " + ", ".join(
                f"{k} {v}" for k, v in d["outside_mib"].items()) + "."]
    if any(r.get("fake") for r in results.values()):
        out += ["", "**On stand-ins for a GPU: times are a CPU's and mean nothing.**"]
    out += rows(["stage", "", "", "s", "commit"],
                [[k, r["verdict"], r["words"].replace("|", "/"), r["seconds"], r["with"]["commit"]]
                 for k, r in sorted(results.items())])
    out += beside_torch(results.get("c", {}).get("data", {}), results.get("d", {}).get("data", {}))
    for model, of in results.get("g", {}).get("data", {}).items():
        out += over_budgets(model, of)
    return "\n".join(out) + "\n"
