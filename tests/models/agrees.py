"""All tensors of the second file have the same bytes in the first; what else the first has is zeros: what a step does not run,
because data say so, and a model that knows it does not have.

    python3 agrees.py FILE.safetensors KNOWN.safetensors
"""
import json
import sys


def read(path):
    with open(path, "rb") as f:
        size = int.from_bytes(f.read(8), "little")
        head, data = json.loads(f.read(size)), f.read()
    return {k: data[slice(*v["data_offsets"])] for k, v in head.items() if k != "__metadata__"}


data, known = read(sys.argv[1]), read(sys.argv[2])
bad = [k for k in known if data.get(k) != known[k]] + [k for k in data if k not in known and any(data[k])]
print(len(known), "tensors and", len(data) - len(known), "of what is not run;", *(bad or ["alike"]))
sys.exit(bool(bad) or len(data) <= len(known) or "loss" not in known)
