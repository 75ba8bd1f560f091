"""PyTorch's loss, output and gradients, under the names that an exported file gives its initializers."""
import fnmatch
import itertools
import json
import re
import struct

import numpy as np
import torch
import torch.nn.functional as F
from onnx import numpy_helper
from torch import nn
from torch.overrides import TorchFunctionMode
from torchvision.ops import sigmoid_focal_loss


def save_tensors(path, tensors, kind="F64"):
    """safetensors: 8 bytes of header length, a JSON header, the bytes."""
    header, offset, blobs = {}, 0, []
    for name, array in tensors.items():
        blob = array.astype({"F64": "<f8", "F32": "<f4"}[kind]).tobytes()
        header[name] = {"dtype": kind, "shape": list(array.shape), "data_offsets": [offset, offset + len(blob)]}
        offset += len(blob)
        blobs.append(blob)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(blobs))


class Double(TorchFunctionMode):
    """What a model asks to have in single precision (norms, softmax, rotary angles) it gets in double."""

    def __torch_function__(self, function, types, args=(), kwargs=None):
        wide = lambda v: torch.float64 if v is torch.float32 else v
        if function is torch.Tensor.float:
            function = torch.Tensor.double
        return function(*map(wide, args), **{k: wide(v) for k, v in (kwargs or {}).items()})


def without_dropout(model):
    for module in model.modules():
        for name, value in vars(module).items():
            if isinstance(value, float) and ("drop" in name or name == "p"):
                setattr(module, name, 0.0)
    return model


def class_weights(text, dtype):
    return None if text is None else torch.tensor([float(w) for w in text.split(";")], dtype=dtype)


def ctc(y, target, reduction="mean"):
    """ctc:batch_first=1 without more: all steps, labels up to the first that is negative."""
    steps, lengths = torch.full((len(y),), y.shape[1]), (target >= 0).cumprod(1).sum(1)
    return F.ctc_loss(y.transpose(0, 1), target, steps, lengths, reduction=reduction)


def penalty(tensors, kind):
    return sum(t.abs().pow(1 if kind == "l1-penalty" else 2).sum() for t in tensors)


def distilled(y, other, temperature):
    return temperature**2 * F.kl_div(F.log_softmax(y / temperature, 1), F.softmax(other / temperature, 1), reduction="batchmean")


def criterion(loss):
    """The PyTorch loss that `stint compile --loss` names."""
    name, _, text = loss.partition(":")
    options = dict(item.split("=") for item in text.split(",") if "=" in item)
    if name == "output":
        return lambda y, target: y
    if name == "mse":
        return F.mse_loss
    if name == "smooth-l1":
        return lambda y, target: F.smooth_l1_loss(y, target, beta=float(options["beta"]), reduction=options["reduction"])
    if name == "bce-with-logits":
        return F.binary_cross_entropy_with_logits
    if name == "sigmoid-focal":
        return lambda y, target: sigmoid_focal_loss(y, target, reduction="mean")
    if name == "ctc":
        return ctc
    if name == "kl-div":
        return lambda y, other: distilled(y, other, float(options["temperature"]))
    if name == "cosine-embedding":
        return lambda y, other: F.cosine_embedding_loss(y, other, y.new_ones(len(y)))
    if name.endswith("-penalty"):
        return lambda y, target: penalty([y], name) / len(y)
    assert name == "cross-entropy", loss
    weight = options.pop("weight", None)
    for key in ("output", "name", "target"):
        options.pop(key, None)
    kw = {k: float(v) if k == "label_smoothing" else int(v) for k, v in options.items()}

    def cross_entropy(y, target):
        if y.dim() == 3:  # tokens: classes last
            y, target = y.flatten(0, 1), target.flatten()
        return F.cross_entropy(y, target, class_weights(weight, y.dtype), **kw)

    return cross_entropy


def losses_of(loss, names, y, target, parameters):
    """(the sum, {name: before its weight}, {output's name: value}) of one loss's text, or several; penalties are of all parameters."""
    if isinstance(loss, str):
        return criterion(loss)(y, target), {}, dict.fromkeys(names[:1], y)
    outputs, parts, total = dict(zip(names, y)), {}, 0
    for text in loss:
        weight, plain = re.fullmatch(r"(?:([^:]*)\*)?(.*)", text).groups()
        kind, _, more = plain.partition(":")
        options = {"output": more} if kind == "output" else dict(item.split("=") for item in more.split(","))
        name = options.get("name", more if kind == "output" else kind)
        other = outputs[options["against"]] if "against" in options else target.get(options.get("target", name))
        if "against" in options and options.get("detach") != "0":
            other = other.detach()
        parts[name] = penalty(parameters, kind) if "parameter" in options else criterion(plain)(outputs[options["output"]], other)
        total = total + float(weight or 1) * parts[name]
    return total, parts, outputs


def each(convert, value):
    """Of a tensor, or of each of several by name or in a tuple; nothing of nothing."""
    if isinstance(value, dict):
        return {k: convert(v) for k, v in value.items()}
    if isinstance(value, tuple):
        return tuple(convert(v) for v in value)
    return None if value is None else convert(value)


def step(model, inputs, target, loss, names, precision):
    """One step: (losses, outputs, {name: gradient}, {name: running statistics}), as float64 arrays by name. precision: "double",
    "single", "autocast": what that makes of single in bf16, or "bf16": all of the model in it."""
    wide = precision == "double"
    if precision == "bf16":
        model = model.bfloat16()
        inputs = [t.bfloat16() if t.is_floating_point() else t for t in inputs]
    model = without_dropout(model.train())
    if wide:
        model = model.double()
        cast = lambda t: t.double() if t.is_floating_point() else t
        inputs, target = [cast(t) for t in inputs], each(cast, target)
    torch.set_default_dtype(torch.float64 if wide else torch.float32)
    try:
        with Double() if wide else torch.autocast("cpu", torch.bfloat16, enabled=precision == "autocast"):
            y = model(*inputs)
            value, parts, outputs = losses_of(loss, names, each(torch.Tensor.float, y) if precision == "bf16" else y, target,
                                              list(model.parameters()))
        value.backward()
    finally:
        torch.set_default_dtype(torch.float32)
    array = lambda t: t.detach().double().numpy()
    gradients = {n: array(p.grad) for n, p in model.named_parameters() if p.grad is not None}
    buffers = {n: array(b) for n, b in model.named_buffers() if n.endswith(("running_mean", "running_var"))}
    losses = {"loss": value} | {"loss/" + n: t for n, t in parts.items()}
    return {n: array(t).reshape(()) for n, t in losses.items()}, each(array, outputs), gradients, buffers


def floats(onnx_model):
    stored = {t.name: numpy_helper.to_array(t) for t in onnx_model.graph.initializer}
    return {n: a for n, a in stored.items() if a.dtype.kind == "f"}


def load_folded(model, stored):
    """Exporters may fold batch-norm into the layer before it: what is left is a model without, under old names."""
    notes, parameters = [], dict(model.named_parameters())
    for name, value in stored.items():
        p = parameters.get(name)
        if p is None or tuple(p.shape) != value.shape or np.array_equal(p.detach().numpy(), value):
            continue
        path = name.rsplit(".", 1)[0]
        if name.endswith(".weight") and (name + "_bias" in stored or path + ".bias" in stored):
            bias = stored.get(name + "_bias", stored.get(path + ".bias"))
            layer = model.get_submodule(path)
            layer.weight, layer.bias = nn.Parameter(torch.tensor(value)), nn.Parameter(torch.tensor(bias))
            notes.append(name)
    if notes:
        for path, module in list(model.named_modules()):
            if isinstance(module, nn.modules.batchnorm._BatchNorm) and path + ".weight" not in stored:
                parent, _, child = path.rpartition(".")
                setattr(model.get_submodule(parent), child, nn.Identity())
    return notes


LAYERS = nn.Linear, nn.modules.conv._ConvNd


class Match:
    """How a file's float initializers come from a model's parameters, found by name and else by value: an exporter
    may rename, transpose, cut, join and reorder them (the gates of an LSTM), merge equal ones, or keep copies."""

    def __init__(self, stored, model, dropped=(), calls=False, restored=False):
        self.values = {n: p.detach().numpy() for n, p in model.named_parameters()}  # tied ones once
        alias = {id(p): n for n, p in model.named_parameters()}
        first = {n: alias[id(p)] for n, p in model.named_parameters(remove_duplicate=False)}
        buffers = dict(model.named_buffers())
        self.back = set()  # parameters that are turned back
        self.sources, self.notes = {}, []  # initializer: [(parameter, gradient -> its share of the initializer's)]
        free = {n: v for n, v in self.values.items() if not any(fnmatch.fnmatch(n, d) for d in dropped)}
        rest = {n: v for n, v in stored.items() if n not in buffers and v.size > 1}
        for source in list(free) if restored else ():  # biases of zeros that the exporter removed
            layer, _, leaf = source.rpartition(".")
            if leaf == "bias" and source not in stored and isinstance(model.get_submodule(layer), LAYERS):
                self.sources[source] = [(source, lambda g: g)]
                self.notes.append(f"put back: {source}")
                del free[source]
        for name in list(stored):
            bias = name.removesuffix("weight_bias") + "bias"  # made by folding
            source = first.get(name, first.get(bias))
            if source in free and np.array_equal(free[source], stored[name]):
                self.sources[name] = [(source, lambda g: g)]
                del free[source]
                rest.pop(name, None)
        for name, value in rest.items():
            self.by_value(name, value, free, calls)
        self.apart(stored, free, calls)
        if free:
            self.notes.append("not in the file: " + " ".join(sorted(free)))

    def apart(self, stored, free, calls):
        """Equal ones that the exporter has made one: to be told apart again, by the module's names."""
        for source, value in list(free.items()):
            for name, shares in list(self.sources.items()):
                first, how = shares[0]
                if (name in stored or name in self.back) and len(shares) == 1 and np.array_equal(self.values[first], value):
                    copy = source if name == first else f"{name}@{source if calls else source.rpartition('.')[0]}"
                    self.sources[copy] = [(source, how)]
                    self.notes.append(f"merged: {source} is in {name}")
                    del free[source]
                    break

    def by_value(self, name, value, free, calls):
        for source, known in sorted(self.values.items(), key=lambda item: item[0] not in free):
            how = turned(known, value) if known.size == value.size else None
            if how and source in free and calls and is_turned_back(name, known, value):
                self.sources[source] = [(source, lambda g: g)]
                self.back.add(source)
                self.notes.append(f"turned back: {name}{list(value.shape)} is {how[0]} of {source}")
                del free[source]
                return
            if how and source in free:
                self.sources[name] = [(source, how[1])]
                self.notes.append(f"renamed: {name}{list(value.shape)} is {how[0]} of {source}")
                del free[source]
                return
            if how:
                self.notes.append(f"tied: {name}{list(value.shape)} is {how[0]} of {source}, in the file as well")
                return
        if value.size > 100000 or (value == value.flat[0]).all() or not self.by_element(name, value, free):
            self.notes.append(f"constant: {name}{list(value.shape)}")

    def by_element(self, name, value, free):
        """Made of elements of parameters, each used once?"""
        table = {}
        for source, known in free.items():
            for i, x in enumerate(known.reshape(-1).tolist()):
                table.setdefault(x, []).append((source, i))
        found = [table.get(x, ()) for x in value.reshape(-1).tolist()]
        if not all(found):
            return False
        sure = {f[0][0] for f in found if len(f) == 1}
        used, picked = set(), []
        for candidates in found:
            left = [c for c in candidates if c[0] in sure and c not in used]
            if not left:
                self.notes.append(f"repeated: {name}{list(value.shape)} has elements of {candidates[0][0]} several times")
                return True
            picked.append(left[0])
            used.add(left[0])
        shares = []
        for source in sorted(sure):
            here = [(k, i) for k, (s, i) in enumerate(picked) if s == source]
            to, of = np.array([k for k, _ in here]), np.array([i for _, i in here])
            shares.append((source, self.share(value.shape, to, of)))
            if len(here) == free[source].size:
                del free[source]
        self.sources[name] = shares
        self.notes.append(f"made of: {name}{list(value.shape)} has {' '.join(sorted(sure))}")
        return True

    @staticmethod
    def share(shape, to, of):
        def gather(gradient):
            out = np.zeros(int(np.prod(shape)))
            out[to] = gradient.reshape(-1)[of]
            return out.reshape(shape)

        return gather


def is_turned_back(name, known, value):
    """A linear layer's weight that the exporter transposed: by its call it becomes the module's own again."""
    return name.startswith("val_") and value.ndim == 2 and np.array_equal(known.T, value)


def turned(value, wanted):
    """A copy, reshaped perhaps, or a transpose."""
    for order in itertools.permutations(range(value.ndim)):
        if np.array_equal(value.transpose(order).reshape(-1), wanted.reshape(-1)):
            name = "a copy" if order == tuple(range(value.ndim)) else f"the transpose {list(order)}"
            return name, lambda g: g.transpose(order).reshape(wanted.shape)
    return None


def difference(tensors, reference):
    """The greatest difference, relative to a gradient's greatest or a thousandth of the greatest of all (as
    compare_tensors has it)."""
    top = lambda a: np.abs(a).max(initial=0.0)
    floor = 1e-3 * max((top(a) for n, a in reference.items() if n.startswith("grad/")), default=0.0)
    worst = 0.0
    for name, value in reference.items():
        scale = max(top(value), floor)
        if scale:
            worst = max(worst, float(top(tensors[name] - value) / scale))
    return worst


def errors(tensors, reference):
    """Of each tensor the norm of the difference, relative to its own or a thousandth of all gradients' (as
    compare_tensors --rounding has it)."""
    norm = lambda a: float(np.sqrt(np.square(a).sum()))
    floor = 1e-3 * norm(np.array([norm(a) for n, a in reference.items() if n.startswith("grad/")]))
    return {n: norm(tensors[n] - a) / (max(norm(a), floor) or 1.0) for n, a in reference.items()}


def tensors_of(onnx_model, build, state, inputs, target, loss, dropped, calls=False, restored=False):
    """(the reference in double precision, PyTorch's own error {precision: difference}, notes)."""
    stored = floats(onnx_model)

    def fresh():
        model = build()
        model.load_state_dict(state)
        buffers = dict(model.named_buffers())
        for name, value in stored.items():  # where exporting has moved them: start where the file starts
            if name in buffers:
                buffers[name].copy_(torch.from_numpy(value.copy()))
        return model, load_folded(model, stored)

    model, folded = fresh()
    match = Match(stored, model, dropped, calls, restored)
    notes = match.notes
    if folded:
        notes.insert(0, f"batch-norm folded into {len(folded)} layers")

    def tensors(precision):
        names = [o.name for o in onnx_model.graph.output]
        named, outputs, gradients, buffers = step(fresh()[0], inputs, target, loss, names, precision)
        if target is not None:
            named |= {"output/" + n: y for n, y in outputs.items()}
        for name, shares in match.sources.items():
            parts = [how(gradients[source]) for source, how in shares if source in gradients]
            if parts:
                named["grad/" + name] = sum(parts[1:], parts[0])
        return named | {"buffer/" + n: b for n, b in buffers.items() if n in stored}

    reference = tensors("double")
    own = {"single": difference(tensors("single"), reference)}
    try:
        narrow = [tensors(p) for p in ("autocast", "bf16")]
        own["bf16"] = max(difference(t, reference) for t in narrow)
        own["rounding"] = {n: max(e) for n, *e in zip(reference, *(errors(t, reference).values() for t in narrow))}
    except RuntimeError:  # not all of PyTorch takes it
        own["bf16"] = np.inf
    return reference, own, notes
