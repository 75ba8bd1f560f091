# More of torch_step.py's operators: by index, sequences, recurrent ones.


class Sequence:
    """ONNX's sequence of tensors: one value."""

    def __init__(self, items):
        self.items = items


@op("GatherND")
def gather_nd(a, x):
    batch = a.get("batch_dims", 0)
    shape = x[1].shape[:batch]
    before = torch.meshgrid(*(torch.arange(n) for n in shape), indexing="ij") if batch else ()

    def run(v):
        rank = v[1].dim() - 1
        lead = tuple(b.reshape(shape + (1,) * (rank - batch)) for b in before)
        return v[0][lead + tuple(v[1].unbind(-1))]
    return run


@op("ScatterND")
def scatter_nd(a, x):
    how = a.get("reduction", "none")
    needs(how in ("none", "add"), f"ScatterND {how}")
    return lambda v: v[0].index_put(tuple(v[1].unbind(-1)), v[2], accumulate=how == "add")


@op("ScatterElements")
def scatter_elements(a, x):
    axis, how = a.get("axis", 0), a.get("reduction", "none")
    n = x[0].shape[axis]
    names = {"add": "sum", "mul": "prod", "max": "amax", "min": "amin"}
    if how == "none":
        return lambda v: v[0].scatter(axis, v[1] % n, v[2])
    return lambda v: v[0].scatter_reduce(axis, v[1] % n, v[2], names[how])


@op("TopK")
def top_k(a, x):
    k, axis = int(numbers(x[1])[0]) if len(x) > 1 else a["k"], a.get("axis", -1)
    return lambda v: torch.topk(v[0], k, axis, bool(a.get("largest", 1)), bool(a.get("sorted", 1)))


@op("OneHot")
def one_hot(a, x):
    depth, axis = int(numbers(x[1])[0]), a.get("axis", -1)

    def run(v):
        off, on = v[2]
        return torch.where(F.one_hot(v[0].long() % depth, depth).movedim(-1, axis) > 0, on, off)
    return run


@op("Size")
def size(a, x):
    return lambda v: torch.tensor(v[0].numel())


@op("RandomUniformLike")
def random_uniform(a, x):
    low, high = a.get("low", 0.0), a.get("high", 1.0)
    return lambda v: torch.rand_like(v[0]) * (high - low) + low


@op("RandomNormalLike")
def random_normal(a, x):
    mean, scale = a.get("mean", 0.0), a.get("scale", 1.0)
    return lambda v: torch.randn_like(v[0]) * scale + mean


@op("Attention")
def attention(a, x):
    heads = a.get("q_num_heads"), a.get("kv_num_heads"), a.get("kv_num_heads")
    needs(a["outputs"] == 1 and len(x) <= 4 and not a.get("softcap"), "Attention with a cache or a cap")

    def run(v):
        q, k, w = (y if y.dim() == 4 else y.unflatten(-1, (n, -1)).transpose(1, 2) for y, n in zip(v, heads))
        y = F.scaled_dot_product_attention(
            q, k, w, v[3] if len(v) > 3 else None, is_causal=bool(a.get("is_causal")), scale=a.get("scale"),
            enable_gqa=q.shape[1] != k.shape[1])
        return y if v[0].dim() == 4 else y.transpose(1, 2).flatten(2)
    return run


@op("SplitToSequence")
def split_to_sequence(a, x):
    axis = a.get("axis", 0)
    if len(x) < 2 or x[1] is None:
        keep = bool(a.get("keepdims", 1))
        return lambda v: Sequence(v[0].split(1, axis) if keep else v[0].unbind(axis))
    parts = numbers(x[1])
    parts = parts[0] if x[1].dim() == 0 else parts
    return lambda v: Sequence(v[0].split(parts, axis))


@op("SequenceAt")
def sequence_at(a, x):
    i = int(numbers(x[1])[0])
    return lambda v: v[0].items[i]


@op("SoftmaxCrossEntropyLoss")
def cross_entropy(a, x):
    more = {"ignore_index": a.get("ignore_index", -100), "reduction": a.get("reduction", "mean")}

    def run(v):
        loss = F.cross_entropy(v[0], v[1], v[2] if len(v) > 2 else None, **more)
        return (loss, F.log_softmax(v[0], 1)) if a["outputs"] > 1 else loss
    return run


def recurrent(f, order, names, rest=None):
    """Of PyTorch's own; their gates stand in another order."""
    def build(a, x):
        hidden, way = a["hidden_size"], a.get("direction", "forward")
        needs(way != "reverse" and not a.get("layout") and "clip" not in a, f"{a['op']} backwards, by batch or clipped")
        needs(a["op"] != "GRU" or a.get("linear_before_reset"), "GRU with linear_before_reset=0")
        said = [s.decode() if isinstance(s, bytes) else s for s in a.get("activations", [])]
        needs(said in ([], names, names * 2) or (rest and said in (["Relu"], ["Relu"] * 2)), f"{a['op']}: {said}")
        call = rest if "Relu" in said else f
        lengths = x[4] if len(x) > 4 else None
        needs(lengths is None or bool((lengths == x[0].shape[0]).all()), "sequences of several lengths")
        both = 2 if way == "bidirectional" else 1

        def gates(w):
            return torch.cat([w[g * hidden:(g + 1) * hidden] for g in order])

        def run(v):
            v = list(v) + [None] * (7 - len(v))
            batch, weights = v[0].shape[1], []
            for d in range(both):
                weights += [gates(v[1][d]), gates(v[2][d])]
                if v[3] is not None:
                    weights += [gates(half) for half in v[3][d].chunk(2)]
            zero = v[0].new_zeros(both, batch, hidden)
            state = tuple(zero if s is None else s for s in v[5:7 if a["op"] == "LSTM" else 6])
            y, *last = call(v[0], state if a["op"] == "LSTM" else state[0], weights, v[3] is not None, 1, 0.0, True, both == 2,
                         False)
            return (y.reshape(-1, batch, both, hidden).transpose(1, 2), *last)
        return run
    return build


def recurrent_table():
    BUILD["LSTM"] = recurrent(torch.lstm, (0, 2, 3, 1), ["Sigmoid", "Tanh", "Tanh"])
    BUILD["GRU"] = recurrent(torch.gru, (1, 0, 2), ["Sigmoid", "Tanh"])
    BUILD["RNN"] = recurrent(torch.rnn_tanh, (0,), ["Tanh"], torch.rnn_relu)
