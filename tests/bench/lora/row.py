"""row.py GRAPH.json [PLAN.json WHAT]: a line of the table; without a plan, the base's bytes."""
import json
import sys

graph = json.load(open(sys.argv[1], encoding="utf-8"))
tensors = {t["id"]: t for t in graph["tensors"]}
base = sum(t["bytes"] for t in tensors.values() if t["kind"] == "parameter" and not t["name"].startswith("base_model.model."))
if len(sys.argv) == 2:
    print(base)
    sys.exit()
plan = json.load(open(sys.argv[2], encoding="utf-8"))
adapters = {t["id"] for t in tensors.values() if t["name"].endswith("lora_A.weight")}
low = [op["id"] for op in graph["ops"] if op["phase"] == "forward" and adapters & set(op["inputs"])]
runs = dict.fromkeys(low, 0)
for step in plan["steps"]:
    if step["op"] in runs:
        runs[step["op"]] += 1
again = sum(n > 1 for n in runs.values())
cost = plan["cost"]
print(f"| {sys.argv[3]} | {(plan['arena_bytes'] - base) / 1e6:.1f} | {cost['total'] / cost['once']:.3f} | {again} of {len(low)} |")
