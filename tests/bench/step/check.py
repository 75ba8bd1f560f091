"""Do stint and PyTorch compute the same step? Loss and gradients of the first one, on the same weights and data."""
import subprocess
import sys

import contenders
import models
from contenders import Failed, note


def _floats(path):
    from safetensors import safe_open

    with safe_open(path, "pt") as f:
        return {k: f.get_tensor(k).double() for k in f.keys() if k == "loss" or k.startswith("grad/")}


def compare(o, name):
    """{"loss", "torch_loss", "gradient_error": ‖g − g'‖ / ‖g'‖ over all gradients, "worst": of one tensor, "of": which}.
    Without dropout, whose random numbers differ."""
    folder = o.work / f"{name}.check"
    folder.mkdir(exist_ok=True)
    onnx = models.export(name, o.work)
    options, step = contenders.options(o, name), contenders.folder(o, name, "100%")
    if models.has_dropout(models.make(name)):
        options, step = [*options, "--dropout", "off"], folder / "step"
    contenders.compile_step(o.stint, onnx, options, step, o.nice)
    ours, theirs = folder / "ours.safetensors", folder / "step.safetensors"
    if not theirs.exists() or theirs.stat().st_mtime < onnx.stat().st_mtime:
        subprocess.run([sys.executable, "-W", "ignore", contenders.HERE / "torch_step.py", name, "--check", folder],
                       check=True, stdout=subprocess.DEVNULL)
    done = subprocess.run([o.stint, "run", step, "--input", folder / "input.npy", "--target",
                           folder / "target.npy", "-o", ours], capture_output=True, text=True)
    if done.returncode:
        raise Failed(f"stint run: {done.stderr.strip()}")
    a, b = _floats(ours), _floats(theirs)
    missing = sorted(set(b) - set(a))
    if missing:
        raise Failed(f"{name}: no gradient of {', '.join(missing[:5])}")
    names = [k for k in b if k != "loss"]
    whole = sum(b[k].norm() ** 2 for k in names) ** 0.5
    wrong = {k: float((a[k] - b[k]).norm()) for k in names}
    total = float(sum(v * v for v in wrong.values()) ** 0.5 / whole)
    size = {k: float(b[k].norm()) for k in names}
    relative = {k: wrong[k] / size[k] for k in names if size[k] > 1e-4 * float(whole)}
    worst = max(relative, key=relative.get)
    out = {"loss": float(a["loss"]), "torch_loss": float(b["loss"]), "gradient_error": total,
           "worst": relative[worst], "of": worst.removeprefix("grad/")}
    note(f"{name}: loss {out['loss']:.6f}, PyTorch's {out['torch_loss']:.6f}; gradients differ by {total:.1e}, "
         f"at most {out['worst']:.1e} ({out['of']})")
    return out
