"""Values and gradients of PyTorch's losses, as test_losses.c takes them:

    python3 tests/oracle/losses.py >tests/ops/losses_torch.h

needs PyTorch and torchvision."""

import torch
import torch.nn.functional as F
import torchvision

MASK = (1 << 64) - 1
SHOWN = 5


def draw(key, i):  # case_draw of example.c
    z = (key * 0x9E3779B97F4A7C15 + (i + 1) * 0xD1342543DE82EF95) & MASK
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 & MASK
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB & MASK
    return ((z ^ (z >> 31)) >> 40) / (1 << 24)


def elementwise(function, **options):
    return lambda x, t: function(x, t, **options)


def classes(function, axis, **options):  # PyTorch's class axis is 1
    return lambda x, t: function(x.movedim(axis, 1), t, **options)


def soft(axis, **options):
    return lambda x, t: F.cross_entropy(x.movedim(axis, 1), t.movedim(axis, 1), **options)


def of_outputs(function, **options):
    return lambda x, t: function(*x.unbind(0), *([] if t is None else [t]), **options)


def against(function, attached=False, **options):
    """Of two outputs, through the second of which a gradient passes where it is attached."""
    def run(x, t):
        output, other = x.unbind(0)
        return function(output, other if attached else other.detach(), **options)
    return run


def distilled(output, other, temperature=1.0, axis=1, reduction="batchmean"):
    """Hinton's, whose gradients do not shrink as the temperature rises."""
    log, share = F.log_softmax(output / temperature, axis), F.softmax(other / temperature, axis)
    return temperature**2 * F.kl_div(log, share, reduction=reduction)


def alike(output, other, **options):
    return F.cosine_embedding_loss(output, other, torch.ones(len(output), dtype=torch.float64), **options)


def infonce(output, other, temperature=0.07, normalize=True, reduction="mean"):
    """CLIP's symmetric loss."""
    if normalize:
        output, other = F.normalize(output, dim=1), F.normalize(other, dim=1)
    scores, own = output @ other.T / temperature, torch.arange(len(output))
    return (F.cross_entropy(scores, own, reduction=reduction) + F.cross_entropy(scores.T, own, reduction=reduction)) / 2


def penalty(power, how="batchmean"):
    """Of one output, or of the parameter, which has the same elements."""
    def run(x, t):
        total = x.abs().pow(power).sum()
        return total / {"batchmean": len(x), "mean": x.numel(), "sum": 1}[how]
    return run


def ctc(batch_first=False, blank=0, timed=False, **options):
    """A row of labels ends before its first that is negative, or the blank."""
    def run(x, t):
        x = x.transpose(0, 1) if batch_first else x
        steps = torch.full((x.shape[1],), x.shape[0])
        if timed:
            steps, t = t[:, 0], t[:, 1:]
        ended = (t < 0) | (t == blank)
        lengths = torch.where(ended.any(1), ended.long().argmax(1), t.shape[1])
        return F.ctc_loss(x, t, steps, lengths, blank, **options)
    return run


# specification; shape; range of x; kind of target, its range; PyTorch's
REAL, LABELS, SIGNS, ROWS, PADDED, NONE = "TARGET_REAL", "TARGET_LABELS", "TARGET_SIGNS", "TARGET_ROWS", "TARGET_PADDED", "TARGET_NONE"
BIG, UNIT = (-3, 3), (0.05, 0.95)
THREE, FIVE = (torch.tensor(w, dtype=torch.float64) for w in ([0.5, 2, 1.5], [0.5, 2, 1.5, 0, 0.25]))
CASES = [
    ("mse", (4, 5), BIG, REAL, BIG, elementwise(F.mse_loss)),
    ("mse:reduction=sum", (4, 5), BIG, REAL, BIG, elementwise(F.mse_loss, reduction="sum")),
    ("l1", (4, 5), BIG, REAL, BIG, elementwise(F.l1_loss)),
    ("l1:reduction=sum", (4, 5), BIG, REAL, BIG, elementwise(F.l1_loss, reduction="sum")),
    ("smooth-l1", (4, 5), BIG, REAL, BIG, elementwise(F.smooth_l1_loss)),
    ("smooth-l1:beta=2", (4, 5), BIG, REAL, BIG, elementwise(F.smooth_l1_loss, beta=2.0)),
    ("smooth-l1:beta=0", (4, 5), BIG, REAL, BIG, elementwise(F.smooth_l1_loss, beta=0.0)),
    ("huber", (4, 5), BIG, REAL, BIG, elementwise(F.huber_loss)),
    ("huber:delta=2,reduction=sum", (4, 5), BIG, REAL, BIG, elementwise(F.huber_loss, delta=2.0, reduction="sum")),
    ("bce", (4, 5), UNIT, REAL, (0, 1), elementwise(F.binary_cross_entropy)),
    ("bce:reduction=sum", (4, 5), UNIT, REAL, (0, 1), elementwise(F.binary_cross_entropy, reduction="sum")),
    ("bce-with-logits", (4, 5), BIG, REAL, (0, 1), elementwise(F.binary_cross_entropy_with_logits)),
    ("bce-with-logits:pos_weight=2.5,reduction=sum", (4, 5), BIG, REAL, (0, 1),
     elementwise(F.binary_cross_entropy_with_logits, pos_weight=torch.tensor(2.5, dtype=torch.float64), reduction="sum")),
    ("bce-with-logits:pos_weight=0.5;2;1.5;0;0.25", (4, 5), BIG, REAL, (0, 1),
     elementwise(F.binary_cross_entropy_with_logits, pos_weight=FIVE)),
    ("bce-with-logits:weight=0.5;2;1.5;0;0.25,pos_weight=2,reduction=sum", (4, 5), BIG, REAL, (0, 1),
     elementwise(F.binary_cross_entropy_with_logits, weight=FIVE, pos_weight=torch.tensor(2.0, dtype=torch.float64), reduction="sum")),
    ("bce:weight=0.5;2;1.5;0;0.25", (4, 5), UNIT, REAL, (0, 1), elementwise(F.binary_cross_entropy, weight=FIVE)),
    ("sigmoid-focal", (4, 5), BIG, REAL, (0, 1), elementwise(torchvision.ops.sigmoid_focal_loss, reduction="mean")),
    ("sigmoid-focal:alpha=-1,gamma=1.5,reduction=sum", (4, 5), BIG, REAL, (0, 1),
     elementwise(torchvision.ops.sigmoid_focal_loss, alpha=-1, gamma=1.5, reduction="sum")),
    ("sigmoid-focal:alpha=0.7,gamma=0", (4, 5), BIG, REAL, (0, 1),
     elementwise(torchvision.ops.sigmoid_focal_loss, alpha=0.7, gamma=0, reduction="mean")),
    ("kl-div", (4, 5), BIG, REAL, (0, 1), elementwise(F.kl_div)),
    ("kl-div:reduction=batchmean", (4, 5), BIG, REAL, (0, 1), elementwise(F.kl_div, reduction="batchmean")),
    ("kl-div:log_target=1,reduction=sum", (4, 5), BIG, REAL, BIG, elementwise(F.kl_div, log_target=True, reduction="sum")),
    ("soft-margin", (4, 5), BIG, SIGNS, BIG, elementwise(F.soft_margin_loss)),
    ("hinge-embedding", (4, 5), BIG, SIGNS, BIG, elementwise(F.hinge_embedding_loss)),
    ("hinge-embedding:margin=2,reduction=sum", (4, 5), BIG, SIGNS, BIG,
     elementwise(F.hinge_embedding_loss, margin=2.0, reduction="sum")),
    ("poisson-nll", (4, 5), BIG, REAL, (0, 4), elementwise(F.poisson_nll_loss)),
    ("poisson-nll:full=1", (4, 5), BIG, REAL, (0, 4), elementwise(F.poisson_nll_loss, full=True)),
    ("poisson-nll:log_input=0,eps=0.1,full=1,reduction=sum", (4, 5), UNIT, REAL, (0, 4),
     elementwise(F.poisson_nll_loss, log_input=False, eps=0.1, full=True, reduction="sum")),
    ("nll", (4, 5), BIG, LABELS, (0, 5), classes(F.nll_loss, 1)),
    ("nll:axis=1,ignore_index=0", (2, 3, 4), BIG, LABELS, (0, 3), classes(F.nll_loss, 1, ignore_index=0)),
    ("nll:reduction=sum", (2, 3, 4), BIG, LABELS, (0, 4), classes(F.nll_loss, 2, reduction="sum")),
    ("cross-entropy", (4, 5), BIG, LABELS, (0, 5), classes(F.cross_entropy, 1)),
    ("cross-entropy:ignore_index=1,label_smoothing=0.2", (6, 3), BIG, LABELS, (0, 3),
     classes(F.cross_entropy, 1, ignore_index=1, label_smoothing=0.2)),
    ("cross-entropy:axis=1,label_smoothing=0.1,reduction=sum", (2, 3, 4), BIG, LABELS, (0, 3),
     classes(F.cross_entropy, 1, label_smoothing=0.1, reduction="sum")),
    ("nll:weight=0.5;2;1.5;0;0.25", (4, 5), BIG, LABELS, (0, 5), classes(F.nll_loss, 1, weight=FIVE)),
    ("nll:axis=1,weight=0.5;2;1.5,ignore_index=0", (2, 3, 4), BIG, LABELS, (0, 3),
     classes(F.nll_loss, 1, weight=THREE, ignore_index=0)),
    ("cross-entropy:weight=0.5;2;1.5;0;0.25", (4, 5), BIG, LABELS, (0, 5), classes(F.cross_entropy, 1, weight=FIVE)),
    ("cross-entropy:ignore_index=1,label_smoothing=0.2,weight=0.5;2;1.5", (6, 3), BIG, LABELS, (0, 3),
     classes(F.cross_entropy, 1, ignore_index=1, label_smoothing=0.2, weight=THREE)),
    ("cross-entropy:axis=1,weight=0.5;2;1.5,reduction=sum", (2, 3, 4), BIG, LABELS, (0, 3),
     classes(F.cross_entropy, 1, weight=THREE, reduction="sum")),
    ("cross-entropy:target=probabilities,weight=0.5;2;1.5;0;0.25", (4, 5), BIG, REAL, (0, 1),
     classes(F.cross_entropy, 1, weight=FIVE)),
    ("triplet-margin", (4, 5), BIG, NONE, BIG, of_outputs(F.triplet_margin_loss)),
    ("triplet-margin:margin=5,swap=1,reduction=sum", (4, 5), BIG, NONE, BIG,
     of_outputs(F.triplet_margin_loss, margin=5.0, swap=True, reduction="sum")),
    ("triplet-margin:p=1,margin=4", (2, 3, 4), BIG, NONE, BIG, of_outputs(F.triplet_margin_loss, p=1, margin=4.0)),
    ("triplet-margin:p=3,eps=1e-3,margin=2", (4, 5), BIG, NONE, BIG, of_outputs(F.triplet_margin_loss, p=3, eps=1e-3, margin=2.0)),
    ("cosine-embedding", (6, 3), BIG, ROWS, BIG, of_outputs(F.cosine_embedding_loss)),
    ("cosine-embedding:margin=-0.5,reduction=sum", (6, 3), BIG, ROWS, BIG,
     of_outputs(F.cosine_embedding_loss, margin=-0.5, reduction="sum")),
    ("margin-ranking", (4, 5), BIG, SIGNS, BIG, of_outputs(F.margin_ranking_loss)),
    ("margin-ranking:margin=0.7,reduction=sum", (4, 5), BIG, SIGNS, BIG,
     of_outputs(F.margin_ranking_loss, margin=0.7, reduction="sum")),
    ("mse:output=a,against=b", (4, 5), BIG, NONE, BIG, against(F.mse_loss)),
    ("mse:output=b,against=a,detach=1,reduction=sum", (4, 5), BIG, NONE, BIG,
     lambda x, t: F.mse_loss(x[1], x[0].detach(), reduction="sum")),
    ("mse:output=a,against=b,detach=0", (4, 5), BIG, NONE, BIG, against(F.mse_loss, True)),
    ("l1:output=a,against=b", (4, 5), BIG, NONE, BIG, against(F.l1_loss)),
    ("l1:output=a,against=b,detach=false,reduction=sum", (4, 5), BIG, NONE, BIG, against(F.l1_loss, True, reduction="sum")),
    ("smooth-l1:output=a,against=b,beta=2", (2, 3, 4), BIG, NONE, BIG, against(F.smooth_l1_loss, beta=2.0)),
    ("smooth-l1:output=a,against=b,beta=2,detach=0", (2, 3, 4), BIG, NONE, BIG, against(F.smooth_l1_loss, True, beta=2.0)),
    ("huber:output=a,against=b,delta=2", (4, 5), BIG, NONE, BIG, against(F.huber_loss, delta=2.0)),
    ("huber:output=a,against=b,detach=0", (4, 5), BIG, NONE, BIG, against(F.huber_loss, True)),
    ("kl-div:output=a,against=b", (4, 5), BIG, NONE, BIG, against(distilled)),
    ("kl-div:output=a,against=b,temperature=4", (4, 5), BIG, NONE, BIG, against(distilled, temperature=4.0)),
    ("kl-div:output=a,against=b,temperature=4,detach=0", (4, 5), BIG, NONE, BIG, against(distilled, True, temperature=4.0)),
    ("kl-div:output=a,against=b,temperature=0.5,reduction=mean,detach=0", (2, 3, 4), BIG, NONE, BIG,
     against(distilled, True, temperature=0.5, axis=2, reduction="mean")),
    ("kl-div:output=a,against=b,axis=1,reduction=sum", (2, 3, 4), BIG, NONE, BIG, against(distilled, reduction="sum")),
    ("kl-div:output=a,against=b,axis=-2,reduction=batchmean", (2, 3, 4), BIG, NONE, BIG, against(distilled)),
    ("cosine-embedding:output=a,against=b", (6, 3), BIG, NONE, BIG, against(alike)),
    ("cosine-embedding:output=a,against=b,detach=0,reduction=sum", (6, 3), BIG, NONE, BIG, against(alike, True, reduction="sum")),
    ("infonce:output=a;b", (6, 3), BIG, NONE, BIG, of_outputs(infonce)),
    ("infonce:output=b;a,temperature=0.5,reduction=sum", (4, 5), BIG, NONE, BIG,
     lambda x, t: infonce(x[1], x[0], temperature=0.5, reduction="sum")),
    ("infonce:output=a,against=b,temperature=0.2", (6, 3), BIG, NONE, BIG, against(infonce, temperature=0.2)),
    ("infonce:output=a,against=b,detach=0,normalize=0,temperature=2", (4, 5), BIG, NONE, BIG,
     against(infonce, True, normalize=False, temperature=2.0)),
    ("l1-penalty", (4, 5), BIG, NONE, BIG, penalty(1)),
    ("l1-penalty:reduction=sum", (2, 3, 4), BIG, NONE, BIG, penalty(1, "sum")),
    ("l2-penalty", (2, 3, 4), BIG, NONE, BIG, penalty(2)),
    ("l2-penalty:reduction=mean", (4, 5), BIG, NONE, BIG, penalty(2, "mean")),
    ("l2-penalty:output=b,reduction=batchmean", (6,), BIG, NONE, BIG, lambda x, t: penalty(2)(x[1], t)),
    ("l1-penalty:parameter=x", (4, 5), BIG, NONE, BIG, penalty(1, "sum")),
    ("0.25*l2-penalty:parameter=*", (2, 3, 4), BIG, NONE, BIG, lambda x, t: 0.25 * penalty(2, "sum")(x, t)),
    ("ctc", (9, 6, 5), BIG, PADDED, (-2, 5), ctc()),
    ("ctc:target_length=2,reduction=sum", (7, 6, 3), BIG, PADDED, (-1, 3), ctc(reduction="sum")),
    ("ctc:batch_first=1,blank=3,target_length=3", (6, 9, 4), BIG, PADDED, (0, 4), ctc(batch_first=True, blank=3)),
    ("ctc:input_lengths=1,target_length=2,zero_infinity=1", (4, 6, 5), BIG, PADDED, (1, 5), ctc(timed=True, zero_infinity=True)),
    ("ctc:zero_infinity=1,target_length=3", (3, 9, 3), BIG, PADDED, (0.5, 3), ctc(zero_infinity=True)),
    ("cross-entropy:target=probabilities", (4, 5), BIG, REAL, (0, 1), soft(1)),
    ("cross-entropy:target=probabilities,label_smoothing=0.3", (2, 3, 4), BIG, REAL, (0, 1), soft(2, label_smoothing=0.3)),
    ("cross-entropy:target=probabilities,axis=1,reduction=sum", (2, 3, 4), BIG, REAL, (0, 1), soft(1, reduction="sum")),
]


def tensor(key, n, low, high):
    return torch.tensor([low + (high - low) * draw(key, i) for i in range(n)], dtype=torch.float64)


def target(kind, shape, axis, values, spec):
    if kind == PADDED:
        steps, rows = (shape[1], shape[0]) if "batch_first=1" in spec else shape[:2]
        room = int(spec.partition("target_length=")[2][:1] or steps)
        room += "input_lengths=1" in spec
        return values[: rows * room].floor().long().reshape(rows, room)
    if kind == NONE:
        return None
    if kind == LABELS:
        rest = [d for i, d in enumerate(shape) if i != axis]
        return values[: torch.Size(rest).numel()].long().reshape(rest)
    if kind == ROWS:
        values, shape = values[: shape[0]], shape[:1]
    return (values if kind == REAL else torch.where(values < 0, -1.0, 1.0).double()).reshape(shape)


# how many outputs of the model a loss reads; which want logarithms of probabilities
OUTPUTS = {"triplet-margin": 3, "cosine-embedding": 2, "margin-ranking": 2}
LOGS = ("ctc",)

print("/* Made by tests/oracle/losses.py with PyTorch", torch.__version__.split("+")[0] + ". */")
print("enum { SHOWN = %d };" % SHOWN)
print("enum target_kind { TARGET_REAL, TARGET_LABELS, TARGET_SIGNS, TARGET_ROWS, TARGET_PADDED, TARGET_NONE };")
print("""static const struct known_loss {
	const char *spec;
	int outputs; /* of this shape */
	bool log; /* log-softmax of what is drawn */
	int rank;
	int64_t dim[3];
	double x[2]; /* drawn from */
	enum target_kind kind;
	double target[2];
	double loss, gradient[SHOWN]; /* spread evenly */
} torch_losses[] = {""")
for spec, shape, xs, kind, ts, function in CASES:
    name = spec.partition(":")[0]
    n, outputs, log = torch.Size(shape).numel(), 2 if "output=" in spec else OUTPUTS.get(name, 1), name in LOGS
    x = tensor(8, n * outputs, *xs).reshape((outputs, *shape) if outputs > 1 else shape).requires_grad_()
    axis = 1 if "axis=1" in spec or len(shape) == 2 else 2
    t = target(kind, shape, axis, tensor(7, n, *ts), spec)
    loss = function(x.log_softmax(-1) if log else x, t)
    loss.backward()
    every = x.numel() // SHOWN
    print('\t{"%s", %d, %s, %d, {%s}, {%s}, %s, {%s},\n\t\t%.17g, {%s}},' % (
        spec, outputs, str(log).lower(), len(shape), ", ".join(map(str, shape)), ", ".join(map(str, xs)), kind, ", ".join(map(str, ts)),
        loss.item(), ", ".join("%.17g" % g for g in x.grad.flatten().tolist()[: SHOWN * every : every])))
print("};")
