"""gpt.py FOLDER [SYMBOLS LENGTH WIDTH HEADS LAYERS [BATCH]]: the GPT of tests/bench/step, its head tied to the embedding, with
random weights as FOLDER/gpt.onnx, and tokens for it; GPT-2's sizes (124 M, sequence 256, batch 4) where none are given. Wants torch and onnx.
"""
import pathlib
import sys

import numpy
import torch

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "step"))
import models  # pylint: disable=wrong-import-position


def main(folder, *size):
    symbols, length, width, heads, layers, batch = list(map(int, size)) + [50257, 256, 768, 12, 12, 4][len(size):]
    torch.manual_seed(0)
    model = models.Gpt(symbols, length, width, heads, layers).eval()
    model.head.weight = model.token.weight
    print(f"{sum(p.numel() for p in model.parameters()):,} parameters")
    torch.onnx.export(model, (torch.zeros((batch, length), dtype=torch.int64),), f"{folder}/gpt.onnx", dynamo=False,
                      opset_version=17, input_names=["tokens"], output_names=["logits"])
    text = numpy.random.default_rng(0).integers(0, symbols, (max(3 * batch, 12), length + 1))
    numpy.save(f"{folder}/tokens.npy", text[:, :-1])
    numpy.save(f"{folder}/next.npy", text[:, 1:])


main(*sys.argv[1:])
