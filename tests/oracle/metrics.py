"""torchmetrics' numbers for tests/train: writes tests/train/metrics_torch.h.

    python3 tests/oracle/metrics.py tests/train/metrics_torch.h
"""
import sys
import warnings

import torch
import torchmetrics.functional as tf
import torchmetrics.functional.classification as tc

warnings.simplefilter("ignore")
torch.manual_seed(7)


def numbers(values, width=8, single=False):
    words = [f"{v:.8e}f" if single else f"{v:.9g}" for v in values]
    lines = [", ".join(words[i:i + width]) for i in range(0, len(words), width)]
    return "{" + ",\n\t".join(lines) + "}"


def classes(name, scores, label, ignore=-100, per_class=True):
    """scores [N, C, ...], label [N, ...]"""
    n = scores.shape[1]
    kw = {"num_classes": n, "ignore_index": ignore}
    found = {}
    for text, f in (("accuracy", tc.multiclass_accuracy), ("precision", tc.multiclass_precision),
                    ("recall", tc.multiclass_recall), ("f1", tc.multiclass_f1_score),
                    ("iou", tc.multiclass_jaccard_index)):
        for average in ("macro", "micro", "weighted"):
            found[f"{text}:average={average}"] = [f(scores, label, average=average, **kw)]
        usual = "micro" if text == "accuracy" else "macro"
        each = f(scores, label, average="none" if text != "iou" else None, **kw)
        found[text] = [f(scores, label, average=usual, **kw), *each]
    for k in (1, 2, n):
        if scores.dim() == 2:
            found[f"top-k:k={k}"] = [tc.multiclass_accuracy(scores, label, average="micro", top_k=k, **kw)]
    for text, thresholds in (("auc", None), ("auc:thresholds=7", 7), ("auc:thresholds=200", 200)):
        f = lambda average: tc.multiclass_auroc(scores.double(), label, average=average, thresholds=thresholds, **kw)
        found[text] = [f("macro"), *f("none")]
    rows = scores.movedim(1, -1).reshape(1, -1, n)
    found["perplexity"] = [tf.text.perplexity(rows.double(), label.reshape(1, -1), ignore_index=ignore)]
    matrix = tc.multiclass_confusion_matrix(scores, label, **kw)
    inner = label[0].numel()
    return name, "METRIC_CLASSES", len(label), n, inner, ignore, 1, scores, label, found, matrix


def binary(name, scores, target, logits):
    found = {}
    for text, f in (("accuracy", tc.binary_accuracy), ("precision", tc.binary_precision), ("recall", tc.binary_recall),
                    ("f1", tc.binary_f1_score), ("iou", tc.binary_jaccard_index), ("auc", tc.binary_auroc)):
        found[text] = [f(scores.double(), target)]
    found["auc:thresholds=11"] = [tc.binary_auroc(scores.double(), target, thresholds=11)]
    matrix = tc.binary_confusion_matrix(scores, target)
    return name, "METRIC_BINARY", len(target), 2, target[0].numel(), -100, int(logits), scores, target, found, matrix


def values(name, answer, target):
    a, b = answer.double(), target.double()
    found = {"mae": [tf.mean_absolute_error(a, b)], "rmse": [tf.mean_squared_error(a, b, squared=False)]}
    return name, "METRIC_VALUES", len(target), 1, target[0].numel(), -100, 0, answer, target, found, None


def cases():
    label = torch.randint(0, 4, (40,))
    scores = torch.randn(40, 6) + 2 * torch.nn.functional.one_hot(label, 6)
    scores[:, 5] -= 50  # never said, never so
    scores[3, 4] += 50  # said once, never so
    yield classes("classes", scores, label)
    some = label.clone()
    some[::5] = -100
    yield classes("left_out", scores, some)
    yield classes("left_out_class", scores, label, ignore=2)
    mask = torch.randint(0, 3, (2, 4, 5))
    mask[0, 1] = 255
    wide = torch.randn(2, 3, 4, 5)
    yield classes("segments", wide, mask, ignore=255)
    target = torch.randint(0, 2, (50, 1))
    logits = 2 * torch.randn(50, 1) + target
    logits[7] = logits[9]
    yield binary("logits", logits, target, True)
    yield binary("probabilities", (torch.sigmoid(logits) * 20).round() / 20, target, False)
    yield binary("all_yes", logits[:9], torch.ones(9, 1, dtype=torch.int64), True)
    yield values("values", torch.randn(12, 3), torch.randn(12, 3))


def main():
    out = ["/* torchmetrics' numbers; written by tests/oracle/metrics.py. */",
           "#ifndef STINT_TESTS_METRICS_TORCH_H", "#define STINT_TESTS_METRICS_TORCH_H", "", "/* clang-format off */"]
    table = []
    for name, kind, rows, n, inner, ignore, logits, scores, target, found, matrix in cases():
        out.append(f"static const float {name}_scores[] = {numbers(scores.flatten().tolist(), single=True)};")
        type_ = "int64_t" if kind == "METRIC_CLASSES" else "float"
        out.append(f"static const {type_} {name}_target[] = {numbers(target.flatten().tolist(), 16, type_ == 'float')};")
        if matrix is not None:
            out.append(f"static const int64_t {name}_confusion[] = {numbers(matrix.flatten().tolist(), 16)};")
        out.append(f"static const struct torch_metric {name}_metrics[] = {{")
        for text, value in found.items():
            out.append(f'\t{{"{text}", {len(value) - 1}, {numbers([float(v) for v in value])}}},')
        out.append("\t{0}};")
        confusion = f"{name}_confusion" if matrix is not None else "NULL"
        table.append(f'\t{{"{name}", {kind}, {rows}, {n}, {inner}, {ignore}, {logits}, {name}_scores, {name}_target, '
                     f"{confusion}, {name}_metrics}},")
    out += ["static const struct torch_case torch_cases[] = {", *table, "};", "/* clang-format on */", "", "#endif"]
    open(sys.argv[1], "w").write("\n".join(out) + "\n")


if __name__ == "__main__":
    main()
