"""Do stint and PyTorch compute the same step? Loss and gradients of the first one, on the same weights and data."""
import subprocess
import sys

import contenders
import models
from contenders import Failed, note

CLOSE = 1e-4        # where the two differ by more, PyTorch in double precision says how far each is off


def _floats(path):
    from safetensors import safe_open

    with safe_open(path, "pt") as f:
        return {k: f.get_tensor(k).double() for k in f.keys() if k == "loss" or k.startswith("grad/")}


def _torch(name, folder, kind, newer_than):
    """PyTorch's step, made once: "check" or "double"."""
    path = folder / ("float.safetensors" if kind == "check" else "double.safetensors")
    if not path.exists() or path.stat().st_mtime < newer_than:
        done = subprocess.run([sys.executable, "-W", "ignore", contenders.HERE / "torch_step.py", name, "--" + kind,
                               folder], capture_output=True, text=True)
        if done.returncode:
            raise Failed(f"{name}: torch_step.py: {done.stderr.strip()}")
    return _floats(path)


def _difference(a, b):
    """‖a − b‖ / ‖b‖ over all gradients; the greatest of a single tensor's, those below 1e-4 of all left out; whose."""
    names = [k for k in b if k != "loss"]
    missing = [k for k in names if k not in a]
    if missing:
        raise Failed(f"no gradient of {', '.join(missing[:5])}")
    whole = float(sum(b[k].norm() ** 2 for k in names) ** 0.5)
    wrong = {k: float((a[k] - b[k]).norm()) for k in names}
    size = {k: float(b[k].norm()) for k in names}
    worst = max((k for k in names if size[k] > 1e-4 * whole), key=lambda k: wrong[k] / size[k])
    return sum(w * w for w in wrong.values()) ** 0.5 / whole, wrong[worst] / size[worst], worst.removeprefix("grad/")


def compare(o, name):
    """{"loss", "torch_loss", "gradient_difference", "worst", "of"}, and where that is not close also
    "gradient_error" and "torch_gradient_error" against double precision. Without dropout: its random numbers differ."""
    folder = o.work / f"{name}.check"
    folder.mkdir(exist_ok=True)
    onnx = models.export(name, o.work)
    options, step = contenders.options(o, name), contenders.folder(o, name, "100%")
    if models.has_dropout(models.make(name)):
        options, step = [*options, "--dropout", "off"], folder / "step"
    contenders.compile_step(o.stint, onnx, options, step, o.nice)
    theirs = _torch(name, folder, "check", onnx.stat().st_mtime)
    done = subprocess.run([o.stint, "run", step, "--input", folder / "input.npy", "--target", folder / "target.npy",
                           "-o", folder / "ours.safetensors"], capture_output=True, text=True)
    if done.returncode:
        raise Failed(f"stint run: {done.stderr.strip()}")
    ours = _floats(folder / "ours.safetensors")
    difference, worst, of = _difference(ours, theirs)
    out = {"loss": float(ours["loss"]), "torch_loss": float(theirs["loss"]), "gradient_difference": difference,
           "worst": worst, "of": of}
    message = (f"{name}: loss {out['loss']:.6f}, PyTorch's {out['torch_loss']:.6f}; gradients differ by "
               f"{difference:.1e}, at most {worst:.1e} ({of})")
    if difference > CLOSE:
        exact = _torch(name, folder, "double", onnx.stat().st_mtime)
        out.update(gradient_error=_difference(ours, exact)[0], torch_gradient_error=_difference(theirs, exact)[0])
        message += (f"; from double precision, stint's by {out['gradient_error']:.1e}, "
                    f"PyTorch's by {out['torch_gradient_error']:.1e}")
    note(message)
    return out
