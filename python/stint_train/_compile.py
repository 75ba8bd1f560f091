"""From a model to a step."""
from __future__ import annotations

import os
import shutil
import tempfile
import weakref
import warnings
from pathlib import Path as FilePath
from typing import Any, Mapping

from ._errors import StintWarning
from ._library import ffi, lib
from ._options import Option, Path, options
from ._plan import Frontier, Plan
from ._step import Step
from ._torch import Rates, loss_words, rates_of, wrong


def _options(model: Path, loss: Any, optimizer: Any, rates: Rates | None, more: Mapping[str, Option]) -> Any:
    if not isinstance(model, (str, bytes, os.PathLike)):
        raise wrong(f"the model is '{type(model).__name__}', and not the path of an ONNX file",
                    "stint_train.export(module, example_inputs, loss=..., optimizer=...) takes a torch module")
    words: dict[str, Option] = {"loss": loss_words(loss), "optimizer": rates.words if rates else optimizer}
    given: Any = more.get("group") or []
    # what is said here holds over what the optimizer's groups say
    groups = [*(rates.groups if rates else []), *([given] if isinstance(given, str) else given)]
    return options(model, {**words, **more, "group": groups})


def plan(model: Path, *, loss: Any = None, optimizer: Any = None, budget: str | int | None = None, **more: Option) -> Plan:
    """The plan alone; nothing is written."""
    return Plan("plan", _options(model, loss, optimizer, rates_of(optimizer), {"budget": budget, **more}))


def compile(model: Path, *, loss: Any = None, optimizer: Any = None, scheduler: Any = None, budget: str | int | None = None,
            out: Path | None = None, **more: Option) -> Step:
    """A step that trains `model` within `budget`, in the folder `out`, or in one that goes when the step does. Loss and optimizer
    are words, as on the command line, or objects of torch.nn and torch.optim; `train` then takes the rate that the optimizer
    has by then, as its `scheduler` sets it. `more`: the options of `stint compile`, with _ for -: portable=True,
    micro_batch="auto", dim={"N": 4}, freeze=["encoder.*"]."""
    rates = rates_of(optimizer, scheduler)
    step = _compile(model, loss, optimizer, rates, out, {"budget": budget, **more})
    has = rates and sum(p.numel() for p in rates.parameters())
    trained = sum(step.parameters()[name].size for name in step.trained())
    if has and has != trained:
        warnings.warn(f"the optimizer has {has} values, and the step trains {trained}: say what is trained by train=[...] or "
                      "freeze=[...], or give the module to stint.export", StintWarning, stacklevel=2)
    return step


def _compile(model: Path, loss: Any, optimizer: Any, rates: Rates | None, out: Path | None, more: Mapping[str, Option]) -> Step:
    given = _options(model, loss, optimizer, rates, more)
    if out is not None:
        return Step(out, Plan("compile", given, os.fsencode(out)), rates)
    folder = tempfile.mkdtemp(prefix="stint-")
    try:
        step = Step(FilePath(folder, "step"), Plan("compile", given, os.fsencode(os.path.join(folder, "step"))), rates)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    weakref.finalize(step, shutil.rmtree, folder, ignore_errors=True)
    return step


def open(folder: Path) -> Step:
    """A step that was compiled before."""
    return Step(folder, Plan("read_plan", os.fsencode(folder), waits=False))


def frontier(model: Path, *, loss: Any = None, optimizer: Any = None, points: int | None = None, **more: Option) -> Frontier:
    """What other budgets cost."""
    return Frontier(_options(model, loss, optimizer, rates_of(optimizer), {"points": points, **more}))


def version() -> str:
    return str(ffi.string(lib.stint_version()).decode())
