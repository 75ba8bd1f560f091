"""A budget under a loop of one's own: a torch module whose forward and backward passes run as a step of stint's.

    from stint_train.torch import wrap

    model = wrap(model, example, budget="2GiB")
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)  # and so on, as before
"""
from __future__ import annotations

import copy
import ctypes
import gc
import os
import tempfile
import threading
from typing import Any, Mapping

import torch
from torch.utils import _pytree as pytree

from ._compile import _compile
from ._errors import ExportError
from ._export import check, examples, write
from ._library import lib
from ._options import Option
from ._step import Array, Step
from ._torch import wrong

__all__ = ["Wrapped", "checkpoint", "wrap"]

# Options of `stint compile` that a wrapped module has from elsewhere, and from where.
_FROM_THE_MODULE = {
    "loss": "the loss is computed in your loop, of the module's outputs",
    "optimizer": "the optimizer is your loop's: torch.optim's, of model.parameters()",
    "batch": "the example's rows are the batch",
    "micro_batch": "wrap for a smaller batch, and add up gradients over several backward passes",
    "freeze": "call requires_grad_(False) on a parameter before the module is wrapped",
    "train": "call requires_grad_(False) on all other parameters before the module is wrapped",
    "input_gradient": "call requires_grad_() on the example's tensor",
}


def wrap(module: torch.nn.Module, example_inputs: Any = (), *, example_kwargs: Mapping[str, Any] | None = None,
         budget: str | int | None = None, **more: Option) -> Wrapped:
    """`module`, trained within `budget` bytes of parameters, activations and gradients. `example_inputs` (a tensor, or a tuple of
    what the module takes) and `example_kwargs` say the batch. `more`: options of `stint compile`. Parameters and buffers stay
    the module's own, under their names; their storage is the step's arena from now on.

    What is not as in torch: dropout draws stint's own numbers; a pass takes as many rows as the example or fewer, and an evaluation gives no
    gradients; a forward pass is gone when the next one begins."""
    args = tuple(example_inputs) if isinstance(example_inputs, (tuple, list)) else (example_inputs,)
    return Wrapped(module, (args, dict(example_kwargs or {})), {"budget": budget, **more})


def checkpoint(module: torch.nn.Module, *, budget: str | int | None = None, **more: Option) -> Wrapped:
    """The same, of which the first call's inputs are the example."""
    return Wrapped(module, None, {"budget": budget, **more})


def _check_options(options: Mapping[str, Option]) -> None:
    """Nothing that is given is passed over in silence."""
    for name, hint in _FROM_THE_MODULE.items():
        if options.get(name) is not None:
            raise wrong(f"wrap: {name}= is no option of a wrapped module", hint)


def _sizes(of_batch: dict[str, int], given: Option) -> dict[str, Option]:
    """`dim` as the caller has it, beside the batch's own axes, which are the example's."""
    words = [] if given is None else [given] if isinstance(given, (str, os.PathLike, int, float)) else given
    sizes: dict[str, Any] = dict(words) if isinstance(words, Mapping) else dict(str(x).split("=", 1) for x in words)
    for axis, rows in of_batch.items():
        if str(sizes.get(axis, rows)) != str(rows):
            raise wrong(f"wrap: dim says {axis}={sizes[axis]}, and the example has {rows} rows", "give an example of the batch that is wanted")
    return {**sizes, **of_batch}


class Wrapped(torch.nn.Module):
    """What `wrap` gives. What it has not itself (`config`), the module has."""

    accepts_loss_kwargs = False  # asked by Hugging Face's Trainer: no further inputs than the example's

    def __init__(self, module: torch.nn.Module, example: tuple[tuple[Any, ...], dict[str, Any]] | None, options: dict[str, Any]) -> None:
        _check_options(options)
        super().__init__()
        for members in "_parameters", "_buffers", "_modules", "_non_persistent_buffers_set":
            self.__dict__[members] = module.__dict__[members]
        self.__dict__["_module"] = module  # no child: names are the module's
        self.training = module.training
        self._options = options
        self._run = _Run(module, *example, options) if example else None

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(self.__dict__["_module"], name)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        if self._run is None:
            self._run = _Run(self._module, args, kwargs, self._options)
        run = self._run
        inputs = run.inputs_of(args, kwargs)
        run.look(self.training)
        if self.training:
            outputs = _Pass.apply(run, inputs, *run.differentiable(inputs), *run.trained)
        else:
            outputs = run.predict(inputs)
            if torch.is_grad_enabled():
                outputs = _Evaluation.apply(outputs, *run.trained)
        return outputs[0] if run.structure.is_leaf() else pytree.tree_unflatten(list(outputs), run.structure)

    def train(self, mode: bool = True) -> Wrapped:
        super().train(mode)
        self._module.training = mode
        return self

    def _apply(self, fn: Any, recurse: bool = True) -> Wrapped:
        if self._run is None:
            self._module._apply(fn, recurse)
            return self
        for name, tensor in self._run.shared.items():
            if fn(tensor.detach()).data_ptr() != tensor.data_ptr():
                raise RuntimeError(f"a wrapped module stays where it is and as it is, and '{name}' would be moved or converted: do that "
                                   "before wrapping it")
        return self

    def _plain(self) -> torch.nn.Module:
        """A copy of the module that is not in the arena."""
        memo: dict[int, Any] = {}
        for t in (*self.parameters(), *self.buffers()):
            values = t.detach().clone()
            memo[id(t)] = torch.nn.Parameter(values, t.requires_grad) if isinstance(t, torch.nn.Parameter) else values
        return copy.deepcopy(self._module, memo)

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Files and copies hold the module, which is compiled again."""
        return Wrapped, (self._plain(), self._run.example if self._run else None, self._options)

    def __deepcopy__(self, memo: Any) -> Wrapped:
        return Wrapped(self._plain(), self._run.example if self._run else None, self._options)


class _Pass(torch.autograd.Function):
    """One forward pass, and the backward pass that belongs to it."""

    @staticmethod
    def forward(ctx: Any, run: _Run, inputs: tuple[torch.Tensor, ...], *differentiable: torch.Tensor) -> Any:
        ctx.run, ctx.wants = run, ctx.needs_input_grad[2:]
        ctx.turn, outputs = run.forward(inputs)
        given = tuple(torch.from_numpy(x.copy()) for x in outputs.values())
        ctx.mark_non_differentiable(*(y for y, name in zip(given, outputs) if name not in run.step._gradients))
        return given

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *gradients: torch.Tensor) -> Any:
        return (None, None, *ctx.run.backward(ctx.turn, gradients, ctx.wants))


class _Evaluation(torch.autograd.Function):
    """Its outputs, whose backward pass says why there is none."""

    @staticmethod
    def forward(ctx: Any, outputs: tuple[torch.Tensor, ...], *parameters: torch.Tensor) -> Any:
        return tuple(y.view_as(y) for y in outputs)

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> Any:
        raise RuntimeError("an evaluation of a wrapped module has no backward pass: .train() it before its forward pass")


def _give_back() -> None:
    """What exporting and planning had of memory, which the C library keeps otherwise."""
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc's
    if trim:
        trim(0)


def _writeable(x: Array) -> Array:
    """A view, as torch has no others."""
    view = x.view()
    view.flags.writeable = True
    return view


class _Run:
    """The step of a module, whose inputs are called in_0, in_1, ... as they come out of their structure."""

    def __init__(self, module: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], options: Mapping[str, Any]) -> None:
        leaves, self._spec = pytree.tree_flatten((args, kwargs))
        leaves = [x.detach().requires_grad_(x.requires_grad) if isinstance(x, torch.Tensor) else x for x in leaves]
        self.example = pytree.tree_unflatten(leaves, self._spec)
        self._simple = not kwargs and all(isinstance(x, torch.Tensor) for x in args)
        self._static = [None if isinstance(x, torch.Tensor) else x for x in leaves]
        tensors = [x for x in leaves if isinstance(x, torch.Tensor)]
        if any(x.device.type != "cpu" for x in tensors):
            raise wrong("wrap: the example's tensors are not on the CPU", "module.cpu(), and its inputs")
        self._names = [f"in_{i}" for i in range(len(tensors))]
        self._wanted = [name for name, x in zip(self._names, tensors) if x.requires_grad]
        self._batch = next((x.shape[0] for x in tensors if x.ndim), 1)
        self._module = module
        self._frozen = [name for name, p in module.named_parameters(remove_duplicate=False) if not p.requires_grad]
        inside = [m for m in module.modules() if m is not module]
        self._inside = [(m, m.training or not module.training) for m in inside]  # as `write` exports them
        self._counters = [m for m in module.modules() if getattr(m, "num_batches_tracked", None) is not None]
        self._lock = threading.Lock()
        self._rows = self._batch  # of the last forward pass
        self._turn = 0  # forward passes so far
        self._waits = False  # the last one for its backward pass
        self._outputs: dict[str, Array] = {}
        self._gradients: list[torch.Tensor] = []
        self._of_batch = [x.shape[:1] == (self._batch,) for x in tensors]
        of_batch = {f"{name}:0": self._batch for name, whole in zip(self._names, self._of_batch) if whole}
        self.step = self._compiled(leaves, {**options, "dim": _sizes(of_batch, options.get("dim"))})
        self._read = {x.name for x in self.step._of(lib.STINT_KIND_INPUT)}  # a step has not what no node reads
        self._share()

    # --- Making ---

    def _compiled(self, leaves: list[Any], options: Mapping[str, Any]) -> Step:
        plain = tuple(x.detach() if isinstance(x, torch.Tensor) else x for x in leaves)
        args, kwargs = pytree.tree_unflatten(examples(plain, torch), self._spec)
        # what has the batch's rows has any number; sizes of another meaning stay
        rows = [{0: torch.export.Dim.AUTO} if isinstance(x, torch.Tensor) and x.shape[:1] == (self._batch,) else None for x in leaves]
        of_args, of_kwargs = pytree.tree_unflatten(rows, self._spec)
        with tempfile.TemporaryDirectory(prefix="stint-") as folder:
            model = os.path.join(folder, "model.onnx")
            program = write(self._module, args, kwargs, model, {"input_names": self._names}, (*of_args, *of_kwargs.values()))
            self.structure = program.exported_program.call_spec.out_spec
            outputs = program.model.graph.outputs
            if len(outputs) != self.structure.num_leaves or not all(o.dtype.is_floating_point() for o in outputs):
                raise ExportError("an output of the module is no tensor of real numbers: "
                                  + ", ".join(f"{o.name} ({o.dtype})" for o in outputs), tuple(o.name for o in outputs))
            step = _compile(model, "outside:" + ",".join(o.name for o in outputs), "none", None, None,
                            {**options, "input_gradient": self._wanted, "freeze": self._frozen})
        check(self._module, self._frozen, step, True)
        del program
        _give_back()
        return step

    def _share(self) -> None:
        """Parameters and running statistics lie in the arena from now on."""
        held = {x.name: x for x in self.step._of(lib.STINT_KIND_PARAMETER, lib.STINT_KIND_BUFFER)}
        module, self.shared = self._module, dict[str, torch.Tensor]()
        own = {**dict(module.named_parameters(remove_duplicate=False)), **dict(module.named_buffers(remove_duplicate=False))}
        for name, tensor in own.items():
            x = held.get(name) or self.step._alias.get(name)
            if x is None or x.name not in held or x.view is None or name in self._frozen:
                continue
            if tensor.data_ptr() != x.view.ctypes.data:
                tensor.data = torch.from_numpy(_writeable(x.view))  # load_state_dict writes statistics, too
            self.shared[x.name] = tensor
        self.trained = [self.shared[name] for name in self.step.trained()]
        self._places = [(name, t, t.data_ptr()) for name, t in self.shared.items()]
        self._constants = [(name, own[name]) for name in self._frozen]
        self._versions = {name: p._version for name, p in self._constants}

    # --- What would go unnoticed ---

    def look(self, training: bool) -> None:
        for name, tensor, place in self._places:
            if tensor.data_ptr() != place:
                raise RuntimeError(f"'{name}' lies elsewhere than in the step's arena: copy_ values into it, and move or convert a module "
                                   "before it is wrapped")
        for name, p in self._constants:
            if p.requires_grad or not self._is_constant(name, p):
                raise RuntimeError(f"'{name}' was frozen when the module was wrapped, and is a constant of the step: wrap it anew")
        for m, trains in self._inside:
            if training and m.training != trains:
                raise RuntimeError(f"{type(m).__name__} was in {'train' if trains else 'eval'}() when the module was wrapped: wrap it anew")
            if m._forward_hooks or m._forward_pre_hooks or m._backward_hooks or m._backward_pre_hooks:
                raise RuntimeError(f"a hook of {type(m).__name__} inside the wrapped module would not be called: the whole of it is one "
                                   "step; hooks of the wrapped module, of its parameters and outputs are")

    def _is_constant(self, name: str, p: torch.Tensor) -> bool:
        if p._version != self._versions[name]:
            held = self.step._alias.get(name)
            if held is None or not torch.equal(p.detach(), torch.from_numpy(held.values().copy())):
                return False
            self._versions[name] = p._version
        return True

    def inputs_of(self, args: Any, kwargs: Any) -> tuple[torch.Tensor, ...]:
        if self._simple and not kwargs and len(args) == len(self._names) and all(isinstance(x, torch.Tensor) for x in args):
            return tuple(args)
        in_order = {name: kwargs[name] for name in self.example[1] if name in kwargs}
        leaves, spec = pytree.tree_flatten((args, {**in_order, **kwargs}))
        if spec != self._spec:
            raise ValueError(f"the module was wrapped for inputs {self._spec}, not {spec}")
        for given, static in zip(leaves, self._static):
            if not isinstance(given, torch.Tensor) and given != static:
                raise ValueError(f"the module was wrapped with {static!r}, not {given!r}, as an input that is no tensor")
        return tuple(x for x in leaves if isinstance(x, torch.Tensor))

    def differentiable(self, inputs: tuple[torch.Tensor, ...]) -> list[torch.Tensor]:
        if torch.is_grad_enabled() and any(x.requires_grad and name not in self._wanted for name, x in zip(self._names, inputs)):
            raise RuntimeError("an input wants a gradient that the example's did not: requires_grad_() it there")
        return [x for name, x in zip(self._names, inputs) if name in self._wanted]

    # --- Running ---

    def _given(self, inputs: tuple[torch.Tensor, ...]) -> dict[str, torch.Tensor]:
        return {name: x.detach() for name, x in zip(self._names, inputs) if name in self._read}

    def _finish(self) -> None:
        """A forward pass that nobody asks back is ended: its statistics are the module's, as in torch."""
        if self._waits:
            self._waits = False
            self.step.backward({name: torch.zeros(g.shape) for name, g in self.step._gradients.items()})

    def predict(self, inputs: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...]:
        with self._lock:
            self._finish()
            return tuple(torch.from_numpy(y) for y in self.step.predict(self._given(inputs)).values())

    def forward(self, inputs: tuple[torch.Tensor, ...]) -> tuple[int, dict[str, Array]]:
        with self._lock:
            self._finish()
            self._outputs = self.step.forward(self._given(inputs))
            self._rows = next((x.shape[0] for x, whole in zip(inputs, self._of_batch) if whole), self._batch)
            self._waits = True
            self._turn += 1
            for m in self._counters:
                m.num_batches_tracked += int(m.training)
            return self._turn, self._outputs

    def backward(self, turn: int, gradients: tuple[torch.Tensor, ...], wants: tuple[bool, ...]) -> list[torch.Tensor | None]:
        with self._lock:
            if turn != self._turn or not self._waits:
                raise RuntimeError("the activations of this forward pass are gone: a wrapped module keeps those of its last one, once; "
                                   "call backward before the module's next forward pass")
            self._waits = False
            self.step.backward({name: g for name, g in zip(self._outputs, gradients) if name in self.step._gradients})
            if not self._gradients:  # where they lie does not change
                parameters = self.step.gradients() if self.trained else {}
                found = [*map(self.step.input_gradient, self._wanted), *(parameters[name] for name in self.step.trained())]
                self._gradients = [torch.from_numpy(_writeable(x)) for x in found]
            # not the views: autograd keeps what it is given, and the next pass writes there
            of_inputs = [x[:self._rows] if x.shape[:1] == (self._batch,) else x for x in self._gradients[:len(self._wanted)]]
            return [x.clone() if wanted else None for x, wanted in zip((*of_inputs, *self._gradients[len(self._wanted):]), wants)]
