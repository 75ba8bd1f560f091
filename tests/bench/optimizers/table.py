"""table.py FOLDER EPOCHS SEEDS NAME...: of run.sh's logs the last loss on text not seen, by optimizer and seed; the first is what the
others are held against."""
import json
import statistics
import sys

folder, epochs, seeds, names = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4:]


def last_loss(name, seed):
    found = None
    for line in open(f"{folder}/{name}.{epochs}.{seed}.jsonl"):
        found = json.loads(line).get("eval_loss", found)
    return found


def state_bytes(name):
    plan = json.load(open(f"{folder}/{name}/graph.json"))
    return sum(t["bytes"] for t in plan["tensors"] if t["kind"] == "state" and t["name"].startswith("state/"))


print(f"| optimizer | bytes of state | loss after {epochs} epoch(s), by seed | mean | deviation |\n|---|---|---|---|---|")
first, beyond = None, []
for name in names:
    losses = [last_loss(name, seed) for seed in range(1, seeds + 1)]
    mean, deviation = statistics.mean(losses), statistics.stdev(losses) if seeds > 1 else 0
    print(f"| {name} | {state_bytes(name)} | {' '.join(f'{x:.4f}' for x in losses)} | {mean:.4f} | {deviation:.4f} |")
    first = first or losses
    if mean > max(first):
        beyond.append(name)
print("above the spread of " + names[0] + ": " + (", ".join(beyond) or "none"))
