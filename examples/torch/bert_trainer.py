"""Hugging Face's Trainer fine-tunes a BERT classifier, once as it is and once within a budget of stint's: the same losses, in less memory.

    python3 examples/torch/bert_trainer.py [--budget 20%] [--steps 20] [--layers 6] [--batch 32] [--length 128]

Each way runs in a process of its own; memory is what model and training add to the process at its peak, as Linux counts it. (PyTorch's
exporter, which wrapping loads once, is loaded in both: about 230 MiB of Python.) The texts are made up (which of two words comes first?), so nothing is downloaded. Needs torch, transformers, accelerate, onnx and onnxscript."""
import argparse
import json
import subprocess
import sys
import time


def peak():
    """The most bytes that this process has had in memory since `forget`."""
    with open("/proc/self/status") as f:
        return next(int(line.split()[1]) * 1024 for line in f if line.startswith("VmHWM"))


def forget():
    with open("/proc/self/clear_refs", "w") as f:
        f.write("5")


def texts(count, length, words, torch):
    x = torch.randint(10, words, (count, length))
    first, second = torch.randint(0, length // 2, (count,)), torch.randint(length // 2, length, (count,))
    y = torch.randint(0, 2, (count,))
    rows = torch.arange(count)
    x[rows, first], x[rows, second] = 2 + y, 3 - y
    return [{"input_ids": a, "labels": b} for a, b in zip(x, y)]


def run(o):
    import torch
    import transformers

    transformers.logging.set_verbosity_error()
    torch.manual_seed(0)
    config = transformers.BertConfig(vocab_size=2000, hidden_size=o.width, num_hidden_layers=o.layers, num_attention_heads=o.width // 32,
                                     intermediate_size=4 * o.width, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    data = texts(o.batch * o.steps, o.length, 2000, torch)
    torch.onnx.export(torch.nn.Linear(4, 4).eval(), (torch.zeros(2, 4),), dynamo=True, verbose=False)
    forget()
    before = peak()
    model = transformers.BertForSequenceClassification(config)
    if o.way == "stint":
        from stint_train.torch import wrap

        example = {k: torch.stack([row[k] for row in data[:o.batch]]) for k in data[0]}
        model = wrap(model, (), example_kwargs=example, budget=o.budget)
        forget()  # planning and compiling; the arena stays

    class Trainer(transformers.Trainer):
        stamps: list = []

        def training_step(self, *args, **kwargs):
            loss = super().training_step(*args, **kwargs)
            self.stamps.append(time.perf_counter())
            return loss

    arguments = transformers.TrainingArguments(
        "/tmp/bert", per_device_train_batch_size=o.batch, max_steps=o.steps, logging_steps=1, learning_rate=5e-4, save_strategy="no",
        report_to=[], disable_tqdm=True, use_cpu=True, remove_unused_columns=False, dataloader_drop_last=True)
    trainer = Trainer(model=model, args=arguments, train_dataset=data)
    trainer.train()
    between = sorted(b - a for a, b in zip(trainer.stamps, trainer.stamps[1:]))
    print(json.dumps({"losses": [row["loss"] for row in trainer.state.log_history if "loss" in row], "peak": peak() - before,
                      "ms": 1e3 * between[len(between) // 2]}))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--budget", default="20%")
    for name, value in ("steps", 20), ("layers", 6), ("batch", 32), ("length", 128), ("width", 256):
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--way", choices=("torch", "stint"), help="one of both, as JSON")
    o = parser.parse_args()
    if o.way:
        return run(o)
    got = {}
    for way in "torch", "stint":
        out = subprocess.run([sys.executable, __file__, *sys.argv[1:], "--way", way], check=True, stdout=subprocess.PIPE).stdout
        got[way] = json.loads(out.splitlines()[-1])
    print("step    torch     stint")
    for k, (a, b) in enumerate(zip(got["torch"]["losses"], got["stint"]["losses"])):
        print(f"{k + 1:4d} {a:9.4f} {b:9.4f}")
    for what, unit in ("peak", 2**20), ("ms", 1):
        a, b = got["torch"][what] / unit, got["stint"][what] / unit
        print(f"{'MiB at its peak' if what == 'peak' else 'ms a step'}: {a:.1f} with torch, {b:.1f} with stint, {b / a:.2f} of it")
    return not all(abs(a - b) <= 1e-4 for a, b in zip(got["torch"]["losses"], got["stint"]["losses"]))


if __name__ == "__main__":
    sys.exit(main())
