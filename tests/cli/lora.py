"""lora.py: numbers of adapters, with python's own library.

    lora.py draw DIR OUT.safetensors               adapters of DIR, drawn anew: none is zero
    lora.py check DIR ADAPTERS GRADIENTS MERGED    GRADIENTS (of `run` with those ADAPTERS) are what the chain rule makes of
                                                   MERGED, the gradients of a model whose weights have the adapters added
    lora.py config FILE KEY VALUE                  VALUE (JSON) for KEY; `-`: without KEY
"""
import array
import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import tensors_io as io  # noqa: E402


def ends(kind):
    return ("lora_embedding_A", "lora_embedding_B") if kind == "embedding" else ("lora_A.weight", "lora_B.weight")


def adapters(folder):
    return json.load(open(folder + "/adapter.json", encoding="utf-8"))["adapters"]


def names(x):
    return [f"base_model.model.{x['module']}.{end}" for end in ends(x["kind"])]


def draw(folder, out):
    all_, x = io.load(folder + "/weights.safetensors"), 11
    drawn = {}
    for a in adapters(folder):
        for name in names(a):
            shape, values = all_[name]
            made = array.array("f")
            for _ in values:
                x = (x * 1664525 + 1013904223) % 2**32  # Numerical Recipes' generator
                made.append(((x >> 8) / 2**23 - 1) / 8)
            drawn[name] = shape, made
    io.save(out, drawn)


def rows_of(values, columns):
    return [values[i:i + columns] for i in range(0, len(values), columns)]


def turn(matrix):
    return [list(column) for column in zip(*matrix)]


def times(a, b):
    b = turn(b)
    return [[sum(x * y for x, y in zip(row, column)) for column in b] for row in a]


def close(name, have, want, scale):
    have, want = list(have), [scale * v for row in want for v in row]
    top = max(map(abs, want))
    worst = max(abs(a - b) for a, b in zip(have, want))
    assert len(have) == len(want) and top > 0 and worst <= 1e-4 * top, f"{name}: off by {worst} of {top}"


def check(folder, drawn, gradients, merged):
    drawn, gradients, merged = io.load(drawn), io.load(gradients), io.load(merged)
    want = {"grad/" + name for a in adapters(folder) for name in names(a)}
    assert want == {n for n in gradients if n.startswith("grad/")}, "other gradients than the adapters'"
    loss = gradients["loss"][1][0], merged["loss"][1][0]
    assert abs(loss[0] - loss[1]) < 1e-5 * abs(loss[1]), f"losses differ: {loss}"
    for a in adapters(folder):
        name_a, name_b = names(a)
        shape, weight = merged["grad/" + a["weight"]]
        first = shape[0]
        dw = rows_of(weight, len(weight) // first)
        if a["kind"] == "embedding" or (a["kind"] == "linear" and not a["turned"]):
            dw = turn(dw)  # outputs first
        r = a["r"]
        down = rows_of(drawn[name_a][1], len(drawn[name_a][1]) // r)
        up = rows_of(drawn[name_b][1], r)
        scale = a["alpha"] / (r ** 0.5 if a["rslora"] else r)
        close(name_b, gradients["grad/" + name_b][1], times(dw, turn(down)), scale)
        close(name_a, gradients["grad/" + name_a][1], times(turn(up), dw), scale)


def config(path, key, value):
    with open(path, encoding="utf-8") as f:
        x = json.load(f)
    if value == "-":
        del x[key]
    else:
        x[key] = json.loads(value)
    with open(path, "w", encoding="utf-8") as f:
        json.dump(x, f)


{"draw": draw, "check": check, "config": config}[sys.argv[1]](*sys.argv[2:])
