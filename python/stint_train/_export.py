"""From a torch module to a step, as docs/howto/export-from-pytorch.md says, and a look at what the exporter made of it."""
from __future__ import annotations

import os
import tempfile
import warnings
from contextlib import contextmanager
from typing import Any, Iterator, Sequence

from ._compile import _compile
from ._errors import ExportError, StintWarning
from ._library import lib
from ._options import Option, Path
from ._step import Array, Step
from ._torch import rates_of, wrong

_IN_ONE_FILE = 1 << 30  # of protobuf's 2 GiB, which weights beyond must lie beside


@contextmanager
def _training(module: Any) -> Iterator[None]:
    """In train(), for batch norm and dropout to survive, and as it was behind that. A module that already is is left alone:
    what of it was put into eval() stays so."""
    modes = [(m, m.training) for m in module.modules()]
    if not module.training:
        module.train()
    try:
        yield
    finally:
        for m, mode in modes:
            m.training = mode


def examples(given: Any, torch: Any) -> tuple[Any, ...]:
    """With two rows at least: the exporter takes a single one for a constant."""
    inputs = tuple(given) if isinstance(given, (tuple, list)) else (given,)
    rows = {x.shape[0] for x in inputs if isinstance(x, torch.Tensor) and x.ndim}
    if rows != {1}:
        return inputs
    return tuple(torch.cat([x, x]) if isinstance(x, torch.Tensor) and x.ndim else x for x in inputs)


def write(module: Any, inputs: tuple[Any, ...], kwargs: dict[str, Any], path: str, names: dict[str, Any], shapes: Any) -> Any:
    """`module` as an ONNX file; returns what torch.onnx.export does."""
    import torch
    from torch.utils import _pytree as pytree

    weights = sum(t.numel() * t.element_size() for t in module.state_dict().values())
    if shapes is None:
        # AUTO: symbolic unless the module itself fixes it
        shapes = pytree.tree_map(lambda x: {0: torch.export.Dim.AUTO} if isinstance(x, torch.Tensor) and x.ndim else None,
                                 (*inputs, *kwargs.values()))
    with _training(module), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*in training mode")  # that is what is wanted
        return torch.onnx.export(module, inputs, path, kwargs=kwargs or None, dynamo=True, optimize=False, opset_version=18,
                                 dynamic_shapes=shapes, external_data=weights > _IN_ONE_FILE, verbose=False, **names)


def _tensors(module: Any) -> dict[str, Array]:
    """What state_dict says that a step has, too: all but whole numbers, which batch norms count batches with."""
    return {name: t.detach().cpu().numpy() for name, t in module.state_dict().items() if t.is_floating_point()}


def _name_ties(module: Any, step: Step) -> None:
    """A parameter of several names has them all, whichever the exporter kept."""
    names: dict[int, list[str]] = {}
    for name, tensor in module.named_parameters(remove_duplicate=False):
        names.setdefault(id(tensor), []).append(name)
    held = {x.name: x for x in step._of(lib.STINT_KIND_PARAMETER, lib.STINT_KIND_FROZEN)}
    for group in names.values():
        kept = next((held[name] for name in group if name in held), None)
        step._alias.update({name: kept for name in group if kept and name not in held})


def _name_frozen(frozen: list[str], want: dict[str, Array], step: Step) -> None:
    """What is frozen is a constant, named after what it holds."""
    constants = step._of(lib.STINT_KIND_CONSTANT)
    for name in frozen:
        found = next((x for x in constants if _same(x.values(), want[name])), None)
        if found:
            step._alias[name] = found


def _same(have: Array, want: Array) -> bool:
    return have.shape == want.shape and bool((have == want.astype(have.dtype)).all())


def check(module: Any, frozen: list[str], step: Step, strict: bool) -> None:
    """Each of the module's parameters stands in the step, with the module's values, and under its names."""
    want = _tensors(module)
    _name_ties(module, step)
    _name_frozen(frozen, want, step)
    have = {**step.parameters(), **step.buffers()}
    # a buffer may be a constant of the model, or of no use to it, and what is frozen may be folded
    may_go = {*frozen, *(name for name, _ in module.named_buffers())}
    missing = tuple(name for name in want if name not in have and name not in may_go)
    other = tuple(name for name in want if name in have and not _same(have[name], want[name]))
    problems = [f"{what}: {', '.join(names)}" for what, names in (
        ("not in the exported model (nothing reads them, or the exporter folded or renamed them)", missing),
        ("of another shape or with other values in the exported model", other)) if names]
    if problems and strict:
        raise ExportError("; ".join(problems), missing + other)
    for problem in problems:
        warnings.warn(problem, StintWarning, stacklevel=3)


def export(module: Any, example_inputs: Any, *, loss: Any = None, optimizer: Any = None, scheduler: Any = None,
           budget: str | int | None = None, batch: int | str | None = None, out: Path | None = None, path: Path | None = None,
           input_names: Sequence[str] | None = None, output_names: Sequence[str] | None = None, dynamic_shapes: Any = None,
           freeze: str | Sequence[str] = (), strict: bool = True, **more: Option) -> Step:
    """The step of a torch module, whose parameters have the names of its state_dict. The batch is the examples', or `batch`.
    Parameters that want no gradient are frozen, and those that an optimizer of torch's has not. The model is kept in `path`, if
    that is given. ExportError: parameters are missing or others (strict=False: a warning)."""
    import torch

    inputs = tuple(example_inputs) if isinstance(example_inputs, (tuple, list)) else (example_inputs,)
    rows = next((int(x.shape[0]) for x in inputs if isinstance(x, torch.Tensor) and x.ndim), None)
    names = {"input_names": input_names and list(input_names), "output_names": output_names and list(output_names)}
    called = {id(p): name for name, p in module.named_parameters()}
    rates = rates_of(optimizer, scheduler, called)
    updated = {id(p) for p in rates.parameters()} if rates else called.keys()
    if updated - called.keys():
        raise wrong("the optimizer has parameters that the module has not", "make it of this module's parameters()")
    frozen = [name for name, p in module.named_parameters(remove_duplicate=False) if not p.requires_grad or id(p) not in updated]
    with tempfile.TemporaryDirectory(prefix="stint-") as folder:
        model = os.fspath(path) if path is not None else os.path.join(folder, "model.onnx")
        write(module, examples(inputs, torch), {}, model, names, dynamic_shapes)
        step = _compile(model, loss, optimizer, rates, out, {
            "budget": budget, "batch": batch or rows, **more, "freeze": [*([freeze] if isinstance(freeze, str) else freeze), *frozen]})
    check(module, frozen, step, strict)
    return step
