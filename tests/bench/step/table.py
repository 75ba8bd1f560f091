"""What was measured against the goals: judged, as a table, and as one JSON document.

    python3 table.py FILE.json ...      the table of earlier runs
"""
import datetime
import json
import platform
import sys

import models

MIB = 1 << 20
OTHERS = {"jax": "JAX", "ort": "ONNX Runtime training"}
HALF = 1.12         # goal: the step at half of the activation memory, over the step that keeps everything


def _paired(turns, over):
    """The median over the rounds of one contender's time over another's in the same round."""
    ratios = sorted(a["ms"] / b["ms"] for a, b in zip(turns, over))
    n = len(ratios)
    return (ratios[n // 2] + ratios[(n - 1) // 2]) / 2


def judge(name, r):
    """Add r["verdict"]: ratios, and which goals are met."""
    m, seen = models.MODELS[name], r["measured"]
    rivals = {k: v for k, v in seen.items() if k.startswith("torch ")}
    best = min(rivals, key=lambda k: rivals[k]["ms"])
    peak, turns = seen[best]["peak"], seen[best]["turns"]
    v = {"best": best.removeprefix("torch "), "torch_ms": seen[best]["ms"], "peak": peak}
    if "stint 100%" in seen:
        keep = seen["stint 100%"]
        v.update(ms=keep["ms"], arena=keep["arena"], arena_share=keep["arena"] / peak,
                 faster=_paired(turns, keep["turns"]))
        v["speed_met"] = v["faster"] >= m.speed
        if "stint 50%" in seen:
            half = seen["stint 50%"]
            v.update(half_slower=_paired(half["turns"], keep["turns"]), half_arena=half["arena"])
            v["half_met"] = v["half_slower"] <= HALF
    if "stint goal" in seen:
        small = seen["stint goal"]
        v.update(goal_ms=small["ms"], goal_arena=small["arena"], goal_share=small["arena"] / peak,
                 goal_faster=_paired(turns, small["turns"]))
        # PyTorch's peak is measured anew each time and moves by a per cent.
        v["arena_met"] = v["goal_share"] <= 1.01 * m.arena and v["goal_faster"] >= 1
    for label in set(OTHERS) & set(seen):
        v[label] = {"ms": seen[label]["ms"], "peak": seen[label]["peak"]}
        if "ms" in v:
            v[label]["faster"] = _paired(seen[label]["turns"], seen["stint 100%"]["turns"])
    if "jax" in v and "ms" in v:
        v["speed_met"] = v["speed_met"] and v["jax"]["faster"] >= m.speed
    r["verdict"] = v


def document(o, found):
    return {"format": "stint-bench-step-1", "date": datetime.date.today().isoformat(), "machine": _processor(),
            "threads": o.threads, "rounds": o.rounds, "options": o.stint_option,
            "versions": _versions(), "models": found}


def _processor():
    with open("/proc/cpuinfo") as f:
        return next((line.split(":")[1].strip() for line in f if line.startswith("model name")), platform.machine())


def _versions():
    import torch
    import torchvision
    return {"python": platform.python_version(), "torch": torch.__version__, "torchvision": torchvision.__version__}


def _mark(met):
    return {True: "met", False: "missed", None: ""}[met]


def _row(name, r):
    if "error" in r:
        return [name, r["error"].split("\n")[0][:60]]
    if "verdict" not in r:
        return [name]
    v, m = r["verdict"], models.MODELS[name]
    row = [name, v["best"], f"{v['torch_ms']:.4g}", f"{v['peak'] / MIB:.0f}"]
    row += [f"{v['ms']:.4g}", f"{v['faster']:.2f}", f">= {m.speed}", _mark(v["speed_met"]),
            f"{v['arena'] / MIB:.0f}", f"{v['arena_share']:.2f}"] if "ms" in v else [""] * 6
    row += [f"{v['goal_arena'] / MIB:.0f}", f"{v['goal_share']:.2f}", f"<= {m.arena}", f"{v['goal_ms']:.4g}",
            f"{v['goal_faster']:.2f}", _mark(v["arena_met"])] if "goal_ms" in v else [""] * 6
    row += [f"{v['half_arena'] / MIB:.0f}", f"{v['half_slower']:.2f}",
            _mark(v["half_met"])] if "half_met" in v else [""] * 3
    made = r["compiled"].get("100%", {})
    row += [f"{made.get('cpu_seconds', made['seconds']):.0f}", f"{made['text_bytes'] / 1e6:.2f}"] if made else ["", ""]
    return row


HEAD = ["model", "PyTorch's best", "ms", "peak MiB",
        "ms", "faster", "goal", "", "arena", "share",
        "arena", "share", "goal", "ms", "faster", "",
        "arena", "slower", "", "s", "MB"]
OVER = [(4, "PyTorch"), (6, "stint, keeping everything"), (6, "at the goal's share of PyTorch's peak"),
        (3, "at 50 %"), (2, "compile")]


def _grid(rows):
    wide = [max(len(r[i]) if i < len(r) else 0 for r in rows if len(r) > 2) for i in range(len(HEAD))]
    groups, at = [], 0
    for n, title in OVER:
        room = sum(wide[at:at + n]) + 2 * (n - 1)
        wide[at + n - 1] += max(0, len(title) - room)
        groups.append(title.ljust(sum(wide[at:at + n]) + 2 * (n - 1)))
        at += n
    lines = ["  ".join(groups)]
    for r in rows:
        cells = [c.ljust(w) if i < 2 or not c[:1].isdigit() else c.rjust(w) for i, (c, w) in enumerate(zip(r, wide))]
        lines.append("  ".join(cells).rstrip())
    return lines


def text(found):
    lines = _grid([HEAD] + [_row(name, r) for name, r in found.items()])
    for name, r in found.items():
        v = r.get("verdict", {})
        for label in OTHERS:
            if label in v:
                lines.append(f"{name}: {OTHERS[label]} {v[label]['ms']:.4g} ms, peak {v[label]['peak'] / MIB:.0f} MiB"
                             + (f", stint {v[label]['faster']:.2f} times as fast" if "faster" in v[label] else ""))
        unmet = r.get("compiled", {}).get("goal", {}).get("not_met")
        if unmet:
            lines.append(f"{name}: the goal's {int(unmet) / MIB:.0f} MiB is below the smallest budget met")
        if "best" in v and r.get("budget_from", "torch " + v["best"]) != "torch " + v["best"]:
            lines.append(f"{name}: the goal's budget was made from the peak of {r['budget_from']}, which led at first")
        seen = r.get("measured", {}).values()
        others = max((x["others"] for x in seen), default=0)
        if others > 0.1:
            lines.append(f"{name}: other programs took up to {100 * others:.0f} % of the processors: "
                         "not an idle machine's times")
    return "\n".join(lines)


if __name__ == "__main__":
    known = {}
    for each in sys.argv[1:]:
        with open(each) as f:
            known.update(json.load(f)["models"])
    print(text(known))
