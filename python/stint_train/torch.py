"""A budget under a loop of one's own: a torch module whose forward and backward passes run as a step of stint's.

    from stint_train.torch import wrap

    model = wrap(model, example, budget="2GiB")
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)  # and so on, as before
"""
from __future__ import annotations

import copy
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
from ._step import Step
from ._torch import wrong

__all__ = ["Wrapped", "wrap"]


def wrap(module: torch.nn.Module, example_inputs: Any, *, example_kwargs: Mapping[str, Any] | None = None, budget: str | int | None = None,
         **more: Option) -> Wrapped:
    """`module`, trained within `budget` bytes of activations, gradients and parameters. `example_inputs` (a tensor, or a tuple of
    what the module takes) and `example_kwargs` say the batch. `more`: options of `stint compile`. The parameters and buffers stay
    the module's own, under their names; their storage is the step's arena from now on.

    What is not as in torch: dropout draws stint's own numbers; a training pass takes the example's batch, an evaluation that many
    rows at most, and gives no gradients; a forward pass is gone when the next one begins."""
    args = tuple(example_inputs) if isinstance(example_inputs, (tuple, list)) else (example_inputs,)
    return Wrapped(module, args, dict(example_kwargs or {}), {"budget": budget, **more})


class _Pass(torch.autograd.Function):
    """One forward pass, and the backward pass that belongs to it."""

    @staticmethod
    def forward(ctx: Any, wrapped: Wrapped, inputs: tuple[Any, ...], *differentiable: torch.Tensor) -> Any:
        ctx.wrapped, ctx.turn, ctx.wants = wrapped, wrapped._forward(inputs), ctx.needs_input_grad[2:]
        outputs = tuple(torch.from_numpy(x.copy()) for x in wrapped._outputs.values())
        ctx.mark_non_differentiable(*(y for y, name in zip(outputs, wrapped._outputs) if name not in wrapped._step._gradients))
        return outputs

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *gradients: torch.Tensor) -> Any:
        return (None, None, *ctx.wrapped._backward(ctx.turn, gradients, ctx.wants))


class _Evaluated(torch.autograd.Function):
    """What an evaluation gives, whose backward pass says why there is none."""

    @staticmethod
    def forward(ctx: Any, outputs: tuple[torch.Tensor, ...], *parameters: torch.Tensor) -> Any:
        return tuple(y.view_as(y) for y in outputs)

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> Any:
        raise RuntimeError("stint_train.torch.wrap: an evaluation has no backward pass; .train() the module before its forward pass")


class Wrapped(torch.nn.Module):
    """What `wrap` gives. What it has not itself (`config`), the module has."""

    accepts_loss_kwargs = False  # asked by Hugging Face's Trainer: no further inputs than the example's

    def __init__(self, module: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], options: dict[str, Any]) -> None:
        super().__init__()
        for members in "_parameters", "_buffers", "_modules", "_non_persistent_buffers_set":
            self.__dict__[members] = module.__dict__[members]
        self.__dict__["_module"] = module  # no child: names are the module's
        self.training = module.training
        self._made_of = args, kwargs, options
        leaves, self._spec = pytree.tree_flatten((args, kwargs))
        self._static = [None if isinstance(x, torch.Tensor) else x for x in leaves]
        self._shapes = [tuple(x.shape) for x in leaves if isinstance(x, torch.Tensor)]
        self._batch = next((s[0] for s in self._shapes if s), 1)
        self._differentiable = [f"in_{i}" for i, x in enumerate(y for y in leaves if isinstance(y, torch.Tensor)) if x.requires_grad]
        self._lock = threading.Lock()
        self._turn = 0  # forward passes so far
        self._waits = False  # the last one for its backward pass
        self._outputs: dict[str, Any] = {}
        self._step = self._compiled(leaves, options)
        self._share()

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(self.__dict__["_module"], name)

    # --- Making ---

    def _compiled(self, leaves: list[Any], options: Mapping[str, Any]) -> Step:
        if any(x.device.type != "cpu" for x in leaves if isinstance(x, torch.Tensor)):
            raise wrong("wrap: the example's tensors are not on the CPU", "module.cpu(), and its inputs")
        tensors = [f"in_{i}" for i in range(len(self._shapes))]
        self._frozen = [name for name, p in self.named_parameters(remove_duplicate=False) if not p.requires_grad]
        with tempfile.TemporaryDirectory(prefix="stint-") as folder:
            model = os.path.join(folder, "model.onnx")
            plain = tuple(x.detach() if isinstance(x, torch.Tensor) else x for x in leaves)
            args, kwargs = pytree.tree_unflatten(examples(plain, torch), self._spec)
            # what has the batch's rows has any number; sizes of another meaning stay
            free = [{0: torch.export.Dim.AUTO} if isinstance(x, torch.Tensor) and x.ndim and x.shape[0] == self._batch else None
                    for x in leaves]
            of_args, of_kwargs = pytree.tree_unflatten(free, self._spec)
            program = write(self._module, args, kwargs, model, {"input_names": tensors}, (*of_args, *of_kwargs.values()))
            self._out_spec = program.exported_program.call_spec.out_spec
            outputs = program.model.graph.outputs
            if len(outputs) != self._out_spec.num_leaves or not all(o.dtype.is_floating_point() for o in outputs):
                raise ExportError("an output of the module is no tensor of real numbers: " +
                                  ", ".join(f"{o.name} ({o.dtype})" for o in outputs), tuple(o.name for o in outputs))
            step = _compile(model, "outside:" + ",".join(o.name for o in outputs), "none", None, None, {
                "input_gradient": self._differentiable, **options, "freeze": self._frozen,
                "dim": {f"in_{i}:0": self._batch for i, shape in enumerate(self._shapes) if shape and shape[0] == self._batch}})
        check(self._module, self._frozen, step, True)
        return step

    def _share(self) -> None:
        """Parameters and running statistics lie in the arena from now on."""
        held = {x.name: x for x in step_arrays(self._step)}
        aliases = {name: x.name for name, x in self._step._alias.items() if x.name in held}
        own = {**dict(self.named_parameters(remove_duplicate=False)), **dict(self.named_buffers(remove_duplicate=False))}
        self._shared: dict[str, torch.Tensor] = {}
        for name, tensor in own.items():
            x = held.get(aliases.get(name, name))
            if x is None or name in self._frozen:
                continue
            view = x.view.view()
            view.flags.writeable = True  # load_state_dict writes statistics, too
            if tensor.data_ptr() != x.view.ctypes.data:
                tensor.data = torch.from_numpy(view)
            self._shared[x.name] = tensor
        self._trained = [(name, self._shared[name]) for name in self._step.trained()]
        self._places = [(name, t, t.data_ptr()) for name, t in self._shared.items()]
        self._constants = [(name, own[name]) for name in self._frozen]
        self._versions = {name: p._version for name, p in self._constants}
        self._counters = [m for m in self._module.modules() if getattr(m, "num_batches_tracked", None) is not None]
        inside = [m for m in self._module.modules() if m is not self._module]
        self._inside = [(m, m.training or not self.training) for m in inside]  # as `write` exports it

    # --- What would go unnoticed ---

    def _look(self) -> None:
        for name, tensor, place in self._places:
            if tensor.data_ptr() != place:
                raise RuntimeError(f"'{name}' lies elsewhere than in the step's arena: copy_ values into it, and move or convert a "
                                   "module before it is wrapped")
        for name, p in self._constants:
            if p.requires_grad or not self._is_constant(name, p):
                raise RuntimeError(f"'{name}' was frozen when the module was wrapped, and is a constant of the step: wrap it anew")
        for m, training in self._inside:
            if self.training and m.training != training:
                raise RuntimeError(f"{type(m).__name__} was in {'train' if training else 'eval'}() when the module was wrapped: wrap it anew")
            if m._forward_hooks or m._forward_pre_hooks or m._backward_hooks or m._backward_pre_hooks:
                raise RuntimeError(f"a hook of {type(m).__name__} inside the wrapped module would not be called: the whole of it is one "
                                   "step; hooks of the wrapped module, of its parameters and outputs are")

    def _is_constant(self, name: str, p: torch.Tensor) -> bool:
        if p._version != self._versions[name]:
            held = self._step._alias.get(name)
            if held is None or not torch.equal(p.detach(), torch.from_numpy(held.values().copy())):
                return False
            self._versions[name] = p._version
        return True

    def _flat(self, args: Any, kwargs: Any) -> tuple[torch.Tensor, ...]:
        in_order = {name: kwargs[name] for name in self._made_of[1] if name in kwargs}
        leaves, spec = pytree.tree_flatten((args, {**in_order, **kwargs}))
        if spec != self._spec:
            raise ValueError(f"the module was wrapped for inputs {self._spec}, not {spec}")
        for given, static in zip(leaves, self._static):
            if not isinstance(given, torch.Tensor) and given != static:
                raise ValueError(f"the module was wrapped with {static!r}, not {given!r}, as an input that is no tensor")
        return tuple(x for x in leaves if isinstance(x, torch.Tensor))

    # --- Running ---

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        inputs = self._flat(args, kwargs)
        self._look()
        parameters = [p for _, p in self._trained]
        if not self.training:
            outputs = self._predict(inputs)
            if torch.is_grad_enabled():
                outputs = _Evaluated.apply(outputs, *parameters)
        else:
            wanted = [x for name, x in zip(self._names(), inputs) if x.requires_grad]
            if len(wanted) > len(self._differentiable) and torch.is_grad_enabled():
                raise RuntimeError("an input wants a gradient that the example's did not: requires_grad_() it there")
            of = [x for name, x in zip(self._names(), inputs) if name in self._differentiable]
            outputs = _Pass.apply(self, inputs, *of, *parameters)
            for m in self._counters if self.training else ():
                m.num_batches_tracked += 1
        return pytree.tree_unflatten(list(outputs), self._out_spec)

    def _names(self) -> list[str]:
        return [f"in_{i}" for i in range(len(self._shapes))]

    def _given(self, inputs: tuple[torch.Tensor, ...]) -> dict[str, torch.Tensor]:
        """A step has not what no node reads."""
        there = {x.name for x in self._step._of(lib.STINT_KIND_INPUT)}
        return {name: x.detach() for name, x in zip(self._names(), inputs) if name in there}

    def _predict(self, inputs: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...]:
        with self._lock:
            self._finish()
            return tuple(torch.from_numpy(y) for y in self._step.predict(self._given(inputs)).values())

    def _finish(self) -> None:
        """A forward pass that nobody asks back is ended: its statistics are the module's, as in torch."""
        if self._waits:
            self._step.backward({name: torch.zeros(g.shape) for name, g in self._step._gradients.items()})
            self._waits = False

    def _forward(self, inputs: tuple[torch.Tensor, ...]) -> int:
        with self._lock:
            self._finish()
            self._outputs = self._step.forward(self._given(inputs))
            self._waits = True
            self._turn += 1
            return self._turn

    def _backward(self, turn: int, gradients: tuple[torch.Tensor, ...], wants: tuple[bool, ...]) -> list[torch.Tensor | None]:
        with self._lock:
            if turn != self._turn or not self._waits:
                raise RuntimeError("the activations of this forward pass are gone: a wrapped module keeps those of its last one, once; "
                                   "call backward before the module's next forward pass")
            self._step.backward({name: g for name, g in zip(self._outputs, gradients) if name in self._step._gradients})
            self._waits = False
            parameters = self._step.gradients() if self._trained else {}
            found = [*map(self._step.input_gradient, self._differentiable), *(parameters[name] for name, _ in self._trained)]
            # not the views: autograd keeps what it is given, and the next pass writes there
            return [torch.from_numpy(x.copy()) if wanted else None for x, wanted in zip(found, wants)]

    def train(self, mode: bool = True) -> Wrapped:
        super().train(mode)
        self._module.training = mode
        return self

    # --- What would move it ---

    def _apply(self, fn: Any, recurse: bool = True) -> Wrapped:
        for name, t in self._shared.items():
            if fn(t.detach()).data_ptr() != t.data_ptr():
                raise RuntimeError(f"a wrapped module stays where it is and as it is, and '{name}' would be moved or converted: do that before "
                                   "wrapping it")
        return self

    def _plain(self) -> torch.nn.Module:
        """A copy of the module that is no longer in the arena."""
        memo: dict[int, Any] = {}
        for t in (*self.parameters(), *self.buffers()):
            memo[id(t)] = torch.nn.Parameter(t.detach().clone(), t.requires_grad) if isinstance(t, torch.nn.Parameter) else t.detach().clone()
        return copy.deepcopy(self._module, memo)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return Wrapped, (self._plain(), *self._made_of)

    def __deepcopy__(self, memo: Any) -> Wrapped:
        return Wrapped(self._plain(), *self._made_of)


def step_arrays(step: Step) -> Any:
    return step._of(lib.STINT_KIND_PARAMETER, lib.STINT_KIND_BUFFER)
