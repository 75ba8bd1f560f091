#!/usr/bin/env python3
"""What models need on a board, measured: one row for each model and amount of memory, in Markdown.

    python3 examples/microcontroller/table.py [MOBILENET.onnx]

Each is compiled for what the memory leaves beside a stack of 4 KiB, run for a step on the emulated board, and compared
with this computer (run.sh). MOBILENET.onnx is what models.py makes.
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
STACK, BESIDE = 4096, 512  # bytes; the second: the step's own, and the program's
MEMORY = (96, 128, 192, 256)  # KiB
ROWS = [  # name, model, options, classes
    ("LeNet, all", "lenet", "--batch 1", 10),
    ("LeNet, but for the first dense layer", "lenet", "--batch 1 --freeze 7.*", 10),
    ("LeNet, the same, 8 samples a step", "lenet", "--batch 8 --micro-batch 1 --freeze 7.*", 10),
    ("DS-CNN, all", "kws", "--batch 1", 12),
    ("DS-CNN, the last two blocks", "kws", "--batch 1 --bn frozen --train 1[5-9].* --train 2?.*", 12),
    ("DS-CNN, the same, 8 samples a step", "kws", "--batch 8 --micro-batch 1 --bn frozen --train 1[5-9].* --train 2?.*",
     12),
    ("MobileNetV2 x 0.35, the classifier", "mobilenet", "--batch 1 --bn frozen --train classifier.*", 10),
    ("MobileNetV2 x 0.35, the same and the last block's norms and depthwise convolution", "mobilenet",
     "--batch 1 --bn frozen --train classifier.* --train blocks.14.conv.?.1.* --train blocks.14.conv.3.* "
     "--train blocks.14.conv.1.0.weight", 10),
]


def measure(model, options, classes, kib, out):
    memory = kib * 1024
    environment = dict(os.environ, RAM_BYTES=str(memory), STACK_BYTES=str(STACK), STEPS="1", CLASSES=str(classes),
                       OUT=str(out))
    run = subprocess.run([str(HERE / "run.sh"), str(model), "--budget", str(memory - STACK - BESIDE), *options.split()],
                         env=environment, capture_output=True, text=True)
    if run.returncode == 77:
        sys.exit(run.stderr)
    if run.returncode:
        least = re.search(r"smallest budget met: (\d+)", run.stderr)
        return None, int(least[1]) if least else sys.exit(run.stderr + run.stdout)
    found = dict(re.findall(r"^(text|rodata|data|bss|stack|instructions of a step): (\d+)", run.stdout, re.M))
    return {k: int(v) for k, v in found.items()}, None


def main():
    models = {"lenet": HERE / "lenet.onnx", "kws": HERE / "kws.onnx",
              "mobilenet": pathlib.Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else None}
    print("| trained | memory | text | rodata | data | bss | stack | million instructions a step |")
    print("|---|--:|--:|--:|--:|--:|--:|--:|")
    with tempfile.TemporaryDirectory() as out:
        for name, model, options, classes in ROWS:
            for kib in MEMORY if models[model] else ():
                v, least = measure(models[model], options, classes, kib, pathlib.Path(out) / model)
                if v:
                    print(f"| {name} | {kib} KiB | {v['text']:,} | {v['rodata']:,} | {v['data']:,} | {v['bss']:,} | "
                          f"{v['stack']:,} | {v['instructions of a step'] / 1e6:,.1f} |", flush=True)
                else:
                    print(f"| {name} | {kib} KiB | needs an arena of {least:,} bytes | | | | | |", flush=True)


main()
