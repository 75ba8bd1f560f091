"""All tensors of the second file have the same bytes in the first; what else the first has is zeros or, where a folder tells the
values before, as it was: what a step does not run, because data say so, and a model that knows it does not have.

    python3 agrees.py FILE.safetensors KNOWN.safetensors [FOLDER]
"""
import json
import sys


def read(path):
    with open(path, "rb") as f:
        size = int.from_bytes(f.read(8), "little")
        head, data = json.loads(f.read(size)), f.read()
    return {k: data[slice(*v["data_offsets"])] for k, v in head.items() if k != "__metadata__"}


data, known = read(sys.argv[1]), read(sys.argv[2])
before = read(f"{sys.argv[3]}/weights.safetensors") if len(sys.argv) > 3 else {}


def untouched(name):
    value = before.get(name.removeprefix("buffer/")) if not name.startswith("grad/") else None
    return data[name] == value if value is not None else not any(data[name])


bad = [k for k in known if data.get(k) != known[k]] + [k for k in data if k not in known and not untouched(k)]
print(len(known), "tensors and", len(data) - len(known), "of what is not run;", *(bad or ["alike"]))
sys.exit(bool(bad) or len(data) <= len(known) or not known)
