"""From a model to a step."""
from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from pathlib import Path as FilePath

from ._library import ffi, lib
from ._options import Option, Path, options
from .plan import Frontier, Plan
from .step import Step


def plan(model: Path, *, loss: str | None = None, optimizer: str | None = None, budget: str | int | None = None,
         **more: Option) -> Plan:
    """The plan alone; nothing is written."""
    return Plan("plan", options(model, {"loss": loss, "optimizer": optimizer, "budget": budget, **more}))


def compile(model: Path, *, loss: str | None = None, optimizer: str | None = None, budget: str | int | None = None,
            out: Path | None = None, **more: Option) -> Step:
    """A step that trains `model` within `budget`, in the folder `out`, or in one that goes when the step does. `more`: the
    options of `stint compile`, with _ for -: portable=True, micro_batch="auto", dim={"N": 4}, freeze=["encoder.*"]."""
    given = options(model, {"loss": loss, "optimizer": optimizer, "budget": budget, **more})
    if out is not None:
        return Step(out, Plan("compile", given, os.fsencode(out)))
    folder = tempfile.mkdtemp(prefix="stint-")
    try:
        step = Step(FilePath(folder, "step"), Plan("compile", given, os.fsencode(os.path.join(folder, "step"))))
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    weakref.finalize(step, shutil.rmtree, folder, ignore_errors=True)
    return step


def open(folder: Path) -> Step:
    """A step that was compiled before."""
    return Step(folder, Plan("read_plan", os.fsencode(folder), waits=False))


def frontier(model: Path, *, loss: str | None = None, optimizer: str | None = None, points: int | None = None,
             **more: Option) -> Frontier:
    """What other budgets cost."""
    return Frontier(options(model, {"loss": loss, "optimizer": optimizer, "points": points, **more}))


def version() -> str:
    return str(ffi.string(lib.stint_version()).decode())
