"""results.json as tables, in the style of docs/benchmarks.md."""

GIB = 1 << 30


def gib(value):
    return f"{value / GIB:.2f}" if value is not None else ""


def ms(value):
    return f"{value:,.4g}" if value < 1000 else f"{value:,.0f}"


def rows(head, lines):
    return ["", "| " + " | ".join(head) + " |", "|" + "---|" * len(head)] + ["| " + " | ".join(map(str, x)) + " |" for x in lines]


def beside_torch(theirs, ours):
    """A table a model: PyTorch's variants, then ours at each budget."""
    out = []
    for model in dict.fromkeys([*theirs, *ours]):
        t, o = theirs.get(model, {}), ours.get(model, {})
        shape = t or o
        text = f", {shape['length']} symbols" if model == "gpt2" else ""
        out += ["", f"{model}, batch {shape['batch']}{text}, {shape['precision']}{', tiny' if shape['tiny'] else ''}:"]
        lines = []
        for name, r in t.get("variants", {}).items():
            if "error" in r:
                lines.append([f"PyTorch, {name}", r["error"], "", "", ""])
                continue
            lines.append([f"PyTorch, {name}", ms(r["step_ms"]), f"{r['ratio']:.3f}" if "ratio" in r else "",
                          gib(r.get("allocated")), gib(r.get("device_used"))])
        for name, r in o.get("budgets", {}).items():
            if "error" in r:
                lines.append([f"stint, {name}", r["error"], "", "", ""])
                continue
            lines.append([f"stint, {name}", ms(r["step_ms"]), "", gib(r["arena_bytes"]),
                          gib(r["arena_bytes"] + r["outside_bytes"])])
        out += rows(["", "ms a step", "stint's (first budget) ÷ this, in turn", "allocated or arena, GiB",
                     "of the device, GiB"], lines)
    return out


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
    g = results.get("g", {}).get("data")
    if g:
        out += ["", f"{g['model'].rsplit('/', 1)[-1]} over budgets:"]
        out += rows(["budget", "arena, GiB", "outside, MiB", "peak less both, MiB (pages: 2)", "ms a step", "predicted"],
                    [[p["budget"], gib(p["arena"]), f"{p['outside'] / 2**20:.1f}",
                      f"{p['off'] / 2**20:+.1f}" if "off" in p else "", ms(p["step_ms"]), ms(p["predicted_ms"] or 0)]
                     for p in g["points"]])
    return "\n".join(out) + "\n"
