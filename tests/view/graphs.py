"""Problems to look at: a chain of layers with its backward pass and updates, as stint-graph-1."""
import json


class Graph:
    def __init__(self, name):
        self.name, self.tensors, self.ops, self.keep = name, [], [], []

    def tensor(self, name, size, kind):
        self.tensors.append({"id": len(self.tensors), "name": name, "bytes": size, "kind": kind})
        return len(self.tensors) - 1

    def op(self, name, phase, inputs, outputs, cost, workspace=0, inplace=()):
        self.ops.append({"id": len(self.ops), "name": name, "phase": phase, "inputs": inputs,
                         "outputs": outputs, "cost": cost, "workspace": workspace,
                         "inplace": [list(p) for p in inplace], "recomputable": phase != "update"})

    def save(self, path):
        with open(path, "w") as f:
            json.dump({"format": "stint-graph-1", "name": self.name, "tensors": self.tensors,
                       "ops": self.ops, "keep": self.keep}, f)


def chain(layers, name="a chain", decorate=lambda text: text):
    """`decorate` changes every node's and tensor's name."""
    g = Graph(name)

    def tensor(text, size, kind):
        return g.tensor(decorate(text), size, kind)

    acts, weights = [tensor("x", 1 << 16, "input")], []
    for i in range(layers):
        weights.append(tensor(f"layers.{i}.weight", 4096 * (1 + i % 3), "parameter"))
        acts.append(tensor(f"layers.{i}.out", 1 << (16 if i % 4 else 17), "activation"))
        g.op(decorate(f"layers.{i}.linear"), "forward", [acts[i], weights[i]], [acts[-1]], 10 + i % 7, 512 * (i % 2))
    back = tensor("grad.loss", 1 << 16, "gradient")
    g.op(decorate("loss"), "backward", [acts[-1]], [back], 5, 1024)
    for i in reversed(range(layers)):
        size = 4096 * (1 + i % 3)
        down = tensor(f"grad.layers.{i}.in", 1 << 16, "gradient")
        grad = tensor(f"grad.layers.{i}.weight", size, "gradient")
        g.op(decorate(f"layers.{i}.backward"), "backward", [acts[i], weights[i], back], [down, grad], 20 + i % 5)
        new = tensor(f"layers.{i}.weight.new", size, "output")
        g.op(decorate(f"layers.{i}.update"), "update", [weights[i], grad], [new], 1, 0, [(new, weights[i])])
        g.keep.append(new)
        back = down
    return g
