# What follows torch_step.py's operators: the graph, loss and optimizer, and the talk with stint.


def as_tensor(proto):
    y = torch.from_numpy(numpy_helper.to_array(proto).copy())
    return y.to(REAL) if y.is_floating_point() else y


def attributes(node, opset, known):
    a = {"opset": opset, "op": node.op_type, "outputs": len(node.output), "known": known}
    for x in node.attribute:
        y = onnx.helper.get_attribute_value(x)
        a[x.name] = y.decode() if isinstance(y, bytes) else as_tensor(y) if isinstance(y, onnx.TensorProto) else y
    return a


class Model:
    """A graph as a list of calls over slots; slot 0 is the absent input."""

    def __init__(self, proto, want, given):
        self.slot, self.value = {"": 0}, [None]
        self.constant = set()
        self.params = self.initialize(proto.graph, set(want["trainable"]))
        for name, x in given.items():
            self.place(name, x)
        opset = next(o.version for o in proto.opset_import if o.domain in ("", "ai.onnx"))
        nodes = list(proto.graph.node)
        self.random = any(n.op_type in ("Dropout", "RandomUniformLike", "RandomNormalLike") for n in nodes)
        unknown = sorted({n.op_type for n in nodes if n.domain not in ("", "ai.onnx") or n.op_type not in BUILD})
        if unknown:
            raise Unknown(", ".join(unknown))
        with torch.no_grad():
            calls = [c for n in self.sorted(nodes) if (c := self.trace(n, opset)) is not None]
        self.choose_output(proto.graph, want)
        self.calls = self.finish(calls)

    def place(self, name, x):
        self.slot[name] = len(self.value)
        self.value.append(x)

    def initialize(self, graph, trainable):
        params = []
        stats = {name for n in graph.node if n.op_type == "BatchNormalization" for name in n.input[3:5]}
        names = {t.name for t in graph.initializer}
        for t in graph.initializer:
            x = as_tensor(t)
            # exporters rename weights: where a name is missing, take what looks like a weight
            weight = x.is_floating_point() and x.dim() > 0 and t.name not in stats
            if t.name in trainable or (weight and not trainable <= names):
                x = torch.nn.Parameter(x)
                params.append(x)
            elif t.name not in stats:
                self.constant.add(t.name)
            self.place(t.name, x)
        return params

    def sorted(self, nodes):
        """Each once what it reads has been made, else in the file's order."""
        while nodes:
            later = []
            for node in nodes:
                if all(i in self.slot for i in node.input):
                    yield node
                else:
                    later.append(node)
            if len(later) == len(nodes):
                raise Unknown(f"a value that nothing makes, of node {nodes[0].name}")
            nodes = later

    def trace(self, node, opset):
        """Run once; a call, or None where the result is known for good."""
        x = [self.value[self.slot[i]] for i in node.input]
        constant = [not i or i in self.constant for i in node.input]
        run = BUILD[node.op_type](attributes(node, opset, constant), x)
        y = run(x)
        y = list(y) if isinstance(y, (tuple, list)) else [y]
        for name, one in zip(node.output, y):
            self.place(name, one)
        if node.op_type == "Shape" or all(constant):
            self.constant.update(node.output)
            return None
        ins, outs = [self.slot[i] for i in node.input], [self.slot[o] for o in node.output[:len(y)]]
        while len(ins) > 0 and ins[-1] == 0:
            ins.pop()
        return run, ins, outs

    def choose_output(self, graph, want):
        name = want["output"]
        outputs = [o.name for o in graph.output]
        if not name and want["loss"] is None:
            name = next((o for o in outputs if self.value[self.slot[o]].numel() == 1), None)
        name = name or outputs[0]
        if name not in self.slot:
            raise Unknown(f"an output {name}")
        self.output = self.slot[name]

    def finish(self, calls):
        """Only what the output needs; after its last use a value goes."""
        needed, live = {self.output}, []
        for call in reversed(calls):
            if needed & set(call[2]):
                drop = [s for s in set(call[1]) | set(call[2]) if s not in needed]
                needed |= set(call[1])
                live.append((*call, drop))
        made = {s for call in live for s in call[2]}
        for call in calls:
            for s in call[2]:
                self.value[s] = None
        return [(run, ins, outs, [s for s in drop if s in made]) for run, ins, outs, drop in reversed(live)]

    def __call__(self):
        v = list(self.value)
        for run, ins, outs, drop in self.calls:
            y = run([v[i] for i in ins])
            if len(outs) == 1:
                v[outs[0]] = y[0] if isinstance(y, (tuple, list)) else y
            else:
                for slot, one in zip(outs, y):
                    v[slot] = one
            for i in drop:
                v[i] = None
        return v[self.output]


def classes_second(x, axis):
    axis = (2 if x.dim() == 3 else 1) if axis is None else axis
    return x.movedim(axis, 1) if x.dim() > 1 else x


def focal(x, t, alpha=0.25, gamma=2, reduction="mean"):
    import torchvision
    return torchvision.ops.sigmoid_focal_loss(x, t, alpha, gamma, reduction)


def loss_function(name, text):
    """The function of (output, target), and the output that it reads."""
    if name is None:
        return (lambda y, t: y.reshape(())), text.partition(":")[2] if text.startswith("output:") else None
    o = dict(re.findall(r"([^:,=]+)=((?:\\.|[^\\,])*?)(?=[:,][^:,=]+=|$)", text.partition(":")[2], re.S))
    if "against" in o:
        raise Unknown("a loss against another output")
    output, axis = o.pop("output", None), o.pop("axis", None)
    output = output and re.sub(r"\\(.)", r"\1", output, flags=re.S)  # as base/marked.h has it
    kind = o.pop("target", "labels")
    lists = {k: torch.tensor([float(x) for x in o.pop(k).split(";")]) for k in ("weight", "pos_weight") if k in o}
    o = {k: v if k == "reduction" else float(v) for k, v in o.items()} | lists
    for k in ("log_target", "log_input", "full"):
        if k in o:
            o[k] = bool(o[k])
    if "ignore_index" in o:
        o["ignore_index"] = int(o["ignore_index"])
    f = {"cross-entropy": F.cross_entropy, "nll": F.nll_loss, "mse": F.mse_loss, "l1": F.l1_loss,
         "smooth-l1": F.smooth_l1_loss, "huber": F.huber_loss, "bce": F.binary_cross_entropy,
         "bce-with-logits": F.binary_cross_entropy_with_logits, "kl-div": F.kl_div,
         "soft-margin": F.soft_margin_loss, "hinge-embedding": F.hinge_embedding_loss,
         "poisson-nll": F.poisson_nll_loss, "sigmoid-focal": focal}.get(name)
    if f is None:
        raise Unknown(f"the loss {name}")
    if name in ("cross-entropy", "nll"):
        axis = None if axis is None or int(axis) == -1000 else int(axis)

        def classes(y, t):
            return f(classes_second(y, axis), classes_second(t, axis) if kind != "labels" else t, **o)
        return classes, output
    return (lambda y, t: f(y, t, **o)), output


def optimizer_of(want, params):
    name = want["optimizer"].lower()
    kinds = {n.lower(): c for n, c in vars(torch.optim).items() if isinstance(c, type)}
    if name not in kinds or name in ("optimizer", "lbfgs"):
        raise Unknown(f"the optimizer {want['optimizer']}")
    more = {"momentum": 0.9} if name == "sgd" and want["states"] else {}
    # the learning rate is 0, as on the other side: every step is the first
    return kinds[name](params, lr=0.0, **more)


def read_inputs(want):
    kinds = {"F32": numpy.float32, "F64": numpy.float64, "I64": numpy.int64, "BOOL": numpy.bool_}
    given = {}
    for x in want["inputs"]:
        raw = sys.stdin.buffer.read(x["bytes"])
        given[x["name"]] = torch.from_numpy(numpy.frombuffer(raw, kinds[x["dtype"]]).copy()).reshape(x["dim"])
    return given


def make_step(want):
    given = read_inputs(want)
    target = given.pop(want["target"], None)
    measure, want["output"] = loss_function(want["loss"], want["options"] or "")
    proto = onnx.load(want["model"])
    if proto.functions:
        proto = onnx.inliner.inline_local_functions(proto)
    if want["variant"] == "torch-channels-last":
        given = {k: x.to(memory_format=torch.channels_last) if x.dim() == 4 else x for k, x in given.items()}
    model = Model(proto, want, given)
    if want["variant"] == "torch-channels-last":
        for p in model.params:
            if p.dim() == 4:
                p.data = p.data.to(memory_format=torch.channels_last)
    optimizer = optimizer_of(want, model.params)

    def both():
        return measure(model(), target)
    forward = torch.compile(both) if want["variant"] == "torch-compile" else both

    def step():
        optimizer.zero_grad(set_to_none=True)
        loss = forward()
        loss.backward()
        if want["clip"]:
            torch.nn.utils.clip_grad_norm_(model.params, 1.0)
        optimizer.step()
        return loss.item()
    return step, sum(p.numel() for p in model.params), model.random


def load_all(want):
    """A small step: what PyTorch loads only when it is used is there before memory is measured."""
    x, w, b = torch.rand(2, 8, 8, 8), torch.nn.Parameter(torch.rand(8, 8, 3, 3)), torch.nn.Parameter(torch.rand(8))
    optimizer = optimizer_of(want, [w, b])
    F.cross_entropy(F.linear(F.conv2d(x, w, b).flatten(1), torch.rand(4, 288)), torch.zeros(2, dtype=torch.int64)).backward()
    optimizer.step()


def resident(which):
    """VmRSS, or VmHWM, its peak; bytes."""
    with open("/proc/self/status", encoding="ascii") as f:
        return next(int(line.split()[1]) * 1024 for line in f if line.startswith(which))


def forget_peak():
    """What building took is given back, and no part of the step's peak."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    with open("/proc/self/clear_refs", "w", encoding="ascii") as f:
        f.write("5")


def main():
    want = json.loads(sys.stdin.buffer.readline())
    torch.set_num_threads(want["threads"])
    global REAL
    REAL = torch.float64 if want["real"] == "f64" else torch.float32
    torch.manual_seed(0)
    load_all(want)
    forget_peak()
    base = resident("VmRSS")
    step, count, random = make_step(want)
    forget_peak()
    for _ in range(2):
        loss = step()
    say("ready", repr(loss), count, int(random), torch.__version__)
    for line in iter(sys.stdin.buffer.readline, b""):
        start = time.perf_counter()
        loss = step()
        say("step", repr(1e6 * (time.perf_counter() - start)), repr(loss),
            resident("VmHWM") - base)


try:
    import numpy
    import onnx
    import onnx.inliner
    import torch
    import torch.nn.functional as F
    from onnx import numpy_helper
    REAL = torch.float32
    table()
    main()
except ImportError as e:
    say("error", f"{sys.executable} has no module {e.name}")
except Unknown as e:
    say("error", f"not known to this comparison: {e}")
except Exception as e:
    say("error", f"{type(e).__name__}: {' '.join(str(e).split())[:300]}")
