"""lora_peft.py STINT WORK: adapters against Hugging Face's PEFT, on Qwen2's architecture with random weights and on convolutions.

Gradients of every adapter are PEFT's, with its dropout off; an adapter that stint trained, PEFT loads onto the same base, with the
same logits; one that PEFT saved, stint goes on from. STINT_PYTHON names the Python that has torch, transformers and peft; the
exit code is 77, with the reason, where it has not.
"""
import os
import pathlib
import subprocess
import sys
import warnings

STEPS = 6


def language(torch):
    """Two of a model, its data, and what gets adapters."""
    from transformers import Qwen2Config, Qwen2ForCausalLM

    class Logits(Qwen2ForCausalLM):
        def forward(self, tokens):  # pylint: disable=arguments-differ
            return super().forward(input_ids=tokens, use_cache=False).logits

    config = Qwen2Config(vocab_size=61, hidden_size=24, intermediate_size=40, num_hidden_layers=2, num_attention_heads=4,
                         num_key_value_heads=2, max_position_embeddings=32, tie_word_embeddings=False)
    def make(what):
        torch.manual_seed(3)
        return what(config).eval()

    tokens = torch.arange(20).reshape(2, 10) * 7 % 61
    return (lambda: make(Logits), lambda: make(Qwen2ForCausalLM), tokens, (tokens + 1) % 61,
            ["embed_tokens", "q_proj", "v_proj", "down_proj", "lm_head"])


def pictures(torch):
    from torch import nn

    def make():
        torch.manual_seed(3)
        return nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 6, (3, 2), stride=2, bias=False), nn.ReLU(),
                             nn.Conv2d(6, 5, 1), nn.Flatten(), nn.Linear(5 * 3 * 4, 4)).eval()

    return make, make, torch.randn((4, 3, 8, 8)), torch.arange(4), ["0", "2", "4", "6"]


def close(what, have, want):
    off, top = float(abs(have - want).max()), float(abs(want).max())
    print(f"{what}: off by {off:.2g} of {top:.2g}")
    assert top > 0 and off <= 2e-4 * top, what


def compare(stint, work, kind, models):
    import numpy as np
    import torch
    from peft import LoraConfig, PeftModel, get_peft_model, get_peft_model_state_dict
    from safetensors.torch import load_file, save_file

    def run(*args):
        done = subprocess.run([stint, *args], capture_output=True, text=True, check=False, cwd=work,
                              env={**os.environ, "CFLAGS": "-O0"})
        assert done.returncode == 0, f"{args}: {done.stderr}"

    def named(name):
        return str(work / name)

    def logits_of(model, x):
        y = model(x)
        return getattr(y, "logits", y)

    exported, base, x, labels, targets = models(torch)
    np.save(named("x.npy"), x.numpy())
    np.save(named("y.npy"), labels.numpy())
    torch.onnx.export(exported(), (x,), named("m.onnx"), dynamo=True, optimize=False, opset_version=18,
                      input_names=["x"], output_names=["logits"], external_data=False, verbose=False)
    peft = get_peft_model(base(), LoraConfig(r=3, lora_alpha=5, target_modules=targets, **{"use_" + kind: True}))
    for name, p in peft.named_parameters():
        if "magnitude" in name:
            p.data *= 0.8 + 0.4 * torch.rand(p.shape)
        elif "lora_" in name:
            torch.nn.init.normal_(p, std=0.2)
    save_file({k: v.contiguous() for k, v in get_peft_model_state_dict(peft).items()}, named("drawn.safetensors"))
    loss = torch.nn.functional.cross_entropy(logits_of(peft, x).flatten(0, -2), labels.flatten())
    loss.backward()

    plan = ["--loss", "cross-entropy", "--optimizer", "adam:lr=0.02", "--threads", "2", "--budget", "min"]
    lora = [w for t in targets for w in ("--lora", f"r=3,alpha=5,{kind}:*{t}.weight")]
    data = ["--input", "x.npy", "--target", "y.npy"]
    run("compile", "m.onnx", *plan, *lora, "-o", "dir")
    run("run", "dir", *data, "--weights", "drawn.safetensors", "-o", "step.safetensors")
    step = load_file(named("step.safetensors"))
    close("loss", step["loss"], loss.detach())
    plain_name = lambda n: n.replace(".default.weight", "") if "magnitude" in n else n.replace(".default", "")
    grads = {plain_name(n): p.grad for n, p in peft.named_parameters() if p.requires_grad}
    assert {"grad/" + n for n in grads} == {n for n in step if n.startswith("grad/")}
    for name, grad in grads.items():
        close(name, step["grad/" + name], grad)

    run("train", "dir", *data, "--epochs", str(STEPS), "--checkpoint", "kept")
    run("export", "dir", "--checkpoint", "kept", "--adapter", "adapter")
    run("export", "dir", "--checkpoint", "kept", "--merge", "-o", "merged.onnx")
    run("predict", "dir", "--checkpoint", "kept", "--input", "x.npy", "-o", "ours.npy")
    run("compile", "merged.onnx", "--loss", "none", "-o", "merged")
    run("predict", "merged", "--input", "x.npy", "-o", "merged.npy")
    base = base()
    with torch.no_grad():
        plain = logits_of(base, x).numpy().copy()
        logits = logits_of(PeftModel.from_pretrained(base, named("adapter")), x).numpy()
    assert abs(plain - logits).max() > 0.05 * abs(logits).max(), "nothing was learned"
    close("logits of PEFT with the adapter that stint trained", np.load(named("ours.npy")), logits)
    close("logits of the merged model", np.load(named("merged.npy")), logits)

    peft.save_pretrained(named("theirs"))
    run("compile", "m.onnx", *plan, "--adapter", "theirs", "-o", "on")
    run("predict", "on", "--input", "x.npy", "-o", "on.npy")
    with torch.no_grad():
        close("logits of stint with PEFT's adapter", np.load(named("on.npy")), logits_of(peft, x).numpy())


def main():
    stint, work = os.path.abspath(sys.argv[1]), pathlib.Path(sys.argv[2]).resolve()
    python = os.environ.get("STINT_PYTHON")
    if python and not os.environ.get("LORA_PEFT_CHILD"):
        return subprocess.run([python, __file__, stint, work], check=False,
                              env={**os.environ, "LORA_PEFT_CHILD": "1"}).returncode
    warnings.filterwarnings("ignore")
    try:
        import onnxscript  # noqa: F401
        import peft  # noqa: F401
        import safetensors.torch  # noqa: F401
        import transformers  # noqa: F401
    except ImportError as missing:
        print(f"skipped: {python or sys.executable}: {missing}")
        return 77
    subprocess.run(["rm", "-rf", work], check=True)
    for kind in "rslora", "dora":
        for models in language, pictures:
            print(kind, models.__name__)
            (work / kind / models.__name__).mkdir(parents=True)
            compare(stint, work / kind / models.__name__, kind, models)
    return 0


sys.exit(main())
