"""A compiled step in this process: its arrays, training and files."""
from __future__ import annotations

import math
import os
import threading
from pathlib import Path as FilePath
from typing import Any, Mapping, Union

import numpy as np
import numpy.typing as npt

from ._library import check, diagnostics, ffi, lib, made, text, warn
from ._options import Path
from ._plan import Plan
from ._torch import Rates

Array = npt.NDArray[Any]
# What goes into a step: one array, or several, in the model's order or by name. An array: NumPy's, or whatever has DLPack (a
# torch tensor on the CPU) or Python's buffers.
Data = Union[Any, "tuple[Any, ...]", Mapping[str, Any]]

# The bits of bf16, which NumPy does not have, as whole numbers.
_DTYPES = ("float32", "float64", "int64", "bool", "uint16", "float16", "int32", "int8", "uint8")


def _as_array(x: Any) -> Array:
    if isinstance(x, np.ndarray):
        return x
    if hasattr(x, "detach"):  # a torch tensor, which lends its values only where they want no gradient
        x = x.detach()
    return np.from_dlpack(x) if hasattr(x, "__dlpack__") else np.asarray(x)


def _same_memory(x: Array, y: Array) -> bool:
    """Of the rows that both have."""
    return bool(x.ctypes.data == y.ctypes.data and x.strides == y.strides and x.dtype == y.dtype)


class _Held:
    """An array of a step: in its arena, or, of a GPU's, in the GPU's memory."""

    def __init__(self, owner: Any, x: Any) -> None:
        self.name = text(x.name)
        self.kind: int = x.kind
        self.dtype = np.dtype(_DTYPES[x.type])
        self.shape = tuple(x.dim[i] for i in range(x.rank))
        self.bytes: int = x.bytes
        self._key = x.name
        self._owner = owner
        self.view: Array | None = None
        if x.data:
            # the memory lives as long as somebody has a view of it: views hold this, and this the step
            memory = ffi.gc(ffi.cast("char *", x.data), lambda _, owner=owner: None)
            self.view = np.frombuffer(ffi.buffer(memory, x.bytes), self.dtype).reshape(self.shape)
            self.view.flags.writeable = self.kind in (lib.STINT_KIND_INPUT, lib.STINT_KIND_TARGET, lib.STINT_KIND_PARAMETER,
                                                      lib.STINT_KIND_FROZEN)

    def values(self) -> Array:
        """A view, or, of a GPU's, a copy."""
        if self.view is not None:
            return self.view
        out = np.empty(self.shape, self.dtype)
        check("trainer", lib.stint_trainer_get(self._owner, self._key, ffi.from_buffer(out), self.bytes), self._owner)
        return out

    def put(self, x: Any, rows: int | None) -> int:
        """Copied in at once, whatever type and strides it has; not at all where it is this very memory. With `rows` it may have fewer, so many at
        most: behind them stands the last one again. Returns its rows."""
        x = _as_array(x)
        fits = x.ndim == len(self.shape) and x.shape[1:] == self.shape[1:]
        count: int = x.shape[0] if x.ndim else 0
        if x.shape != self.shape and not (rows is not None and fits and 0 < count <= rows):
            raise ValueError(f"'{self.name}' wants the shape {self.shape}, not {x.shape}"
                             + (f" (or fewer rows, at most {rows})" if rows is not None and fits else ""))
        if not np.can_cast(x.dtype, self.dtype, "same_kind"):
            raise TypeError(f"'{self.name}' wants {self.dtype}, and {x.dtype} is no such numbers")
        if self.view is None:
            whole = np.zeros(self.shape, self.dtype)
            whole[:count or None] = x
            whole[count:] = whole[count - 1:count] if count else 0
            check("trainer", lib.stint_trainer_set(self._owner, self._key, ffi.from_buffer(whole), self.bytes), self._owner)
        elif not _same_memory(x, self.view):
            np.copyto(self.view[:count] if self.shape else self.view, x, casting="same_kind")
        if self.view is not None and 0 < count < self.shape[0]:
            self.view[count:] = self.view[count - 1]
        return count


class Step:
    """A training step within its budget. One thread uses it at a time: others wait. What it runs releases the GIL."""

    def __init__(self, folder: Path, plan: Plan, rates: Rates | None = None) -> None:
        self.folder = FilePath(folder)
        self.plan = plan
        self._rates = rates
        self._lock = threading.Lock()
        self._alias: dict[str, _Held] = {}  # further names of parameters
        out = ffi.new("struct stint_trainer **")
        status = lib.stint_trainer_open(out, os.fsencode(folder))
        self._trainer = made("trainer", out)
        check("trainer", status, self._trainer)
        self._held: list[_Held] = []
        x = ffi.new("struct stint_array *")
        while lib.stint_trainer_array(self._trainer, len(self._held), x):
            self._held.append(_Held(self._trainer, x))
        self._parts = int(lib.stint_trainer_parts(self._trainer))
        # of the batch: the first axis of the first input that has one, as the runtime counts
        self._batch = next((x.shape[0] for x in self._of(lib.STINT_KIND_INPUT, lib.STINT_KIND_TARGET) if x.shape), 1)
        self._outside = 0  # parts of a step that have been forward
        self._waits = False  # the last of them for its gradients
        self._gradients: dict[str, Array] = {}

    # --- What it holds ---

    def _of(self, *kinds: int) -> list[_Held]:
        return [x for x in self._held if x.kind in kinds]

    def _values(self, *kinds: int) -> dict[str, Array]:
        with self._lock:
            return {x.name: x.values() for x in self._of(*kinds)}

    @property
    def inputs(self) -> dict[str, Array]:
        """Where the inputs stand, to be written: what was put there itself is not copied by `train`."""
        return self._values(lib.STINT_KIND_INPUT)

    @property
    def target(self) -> Array | None:
        return next(iter(self.targets.values()), None)

    @property
    def targets(self) -> dict[str, Array]:
        """Of several losses each one's, by name."""
        return self._values(lib.STINT_KIND_TARGET)

    def parameters(self) -> dict[str, Array]:
        """By the model's names: views of the arena, to be read and written. Those that were frozen when the step was compiled
        are constants, and not here unless `export` knows them; then they are to be read."""
        values = self._values(lib.STINT_KIND_PARAMETER, lib.STINT_KIND_FROZEN)
        values.update({name: held.values() for name, held in self._alias.items()})
        return values

    def trained(self) -> list[str]:
        """The names of those parameters that are trained."""
        return [x.name for x in self._of(lib.STINT_KIND_PARAMETER)]

    def buffers(self) -> dict[str, Array]:
        """Running statistics: views of the arena, to be read."""
        return self._values(lib.STINT_KIND_BUFFER)

    def state(self) -> dict[str, Array]:
        """The optimizer's: views of the arena, to be read."""
        return self._values(lib.STINT_KIND_STATE)

    def _kept(self, *kinds: int) -> dict[str, Array]:
        x, found, index = ffi.new("struct stint_array *"), dict[str, Array](), 0
        with self._lock:
            while lib.stint_trainer_gradient(self._trainer, index, x):
                index += 1
                if x.kind not in kinds:
                    continue
                if not x.data:
                    raise ValueError("there are no gradients now: a training step leaves them until anything else is run")
                held = _Held(self._trainer, x)
                assert held.view is not None
                held.view.flags.writeable = False
                found[held.name] = held.view
        return found

    def gradients(self) -> dict[str, Array]:
        """Those of the last step's loss by the trained parameters, by the model's names (optimizer="none"): views of the arena, to
        be read until anything is run again."""
        found = self._kept(lib.STINT_KIND_PARAMETER)
        if not found and self.trained():
            raise ValueError('the step updates its parameters itself: optimizer="none" leaves the gradients')
        return found

    def input_gradient(self, name: str) -> Array:
        """The gradient of the last step's loss by an input (input_gradient=["x"]): a view of the arena, to be read until anything
        is run again."""
        found = self._kept(lib.STINT_KIND_INPUT, lib.STINT_KIND_TARGET)
        if name not in found:
            raise ValueError(f"the step keeps no gradient by '{name}': compile it with input_gradient=['{name}']")
        return found[name]

    @property
    def rate(self) -> float:
        """The optimizer's own learning rate, as compiled."""
        return float(lib.stint_trainer_rate(self._trainer))

    @property
    def steps(self) -> int:
        """Steps done. Dropout depends on it and on the seed, and so may an optimizer."""
        return int(lib.stint_trainer_steps(self._trainer))

    def seed(self, seed: int) -> None:
        with self._lock:
            lib.stint_trainer_seed(self._trainer, seed)

    # --- Running ---

    def _put(self, held: list[_Held], data: Data, what: str, rows: int | None) -> int:
        """The rows that all have."""
        if isinstance(data, Mapping):
            unknown = data.keys() - {x.name for x in held}
            if unknown:
                raise ValueError(f"the step has no {what} {sorted(unknown)}; it has {[x.name for x in held]}")
            pairs = [(x, data[x.name]) for x in held if x.name in data]
        else:
            values = data if isinstance(data, tuple) else (data,)
            if len(values) != len(held):
                raise ValueError(f"the step has {len(held)} {what}s, {[x.name for x in held]}, not {len(values)}")
            pairs = list(zip(held, values))
        counts = set()
        for x, value in pairs:
            of_batch = x.shape[:1] == (self._batch,)
            count = x.put(value, rows if of_batch else None)
            if of_batch:
                counts.add(count)
        if len(counts) > 1:
            raise ValueError(f"as many rows of each {what}, not {sorted(counts)}")
        return max(counts, default=0)

    def losses(self) -> dict[str, float]:
        """Each of the losses whose sum is trained, in the last step or evaluation, before its weight; NaN: there was none."""
        x, out = ffi.new("struct stint_loss *"), dict[str, float]()
        with self._lock:
            while lib.stint_trainer_loss(self._trainer, len(out), x):
                out[text(x.name)] = float(x.value)
        return out

    def _with_target(self, x: Data | None, y: Any, call: str) -> None:
        """New inputs with the last batch's targets are a mistake."""
        if x is not None and y is None and (target := self._of(lib.STINT_KIND_TARGET)):
            raise ValueError(f"no target given: {call}(x, y), y of shape {target[0].shape}; "
                             f"what was written to step.inputs and step.target is taken by {call}()")

    def _feed(self, x: Data | None, y: Any, rows: int) -> int:
        """The rows of what was given, `rows` at most; 0: nothing has any."""
        given = [self._put(self._of(kind), data, what, rows)
                 for kind, data, what in ((lib.STINT_KIND_INPUT, x, "input"), (lib.STINT_KIND_TARGET, y, "target"))
                 if data is not None]
        if len({n for n in given if n}) > 1:
            raise ValueError(f"{given[0]} rows of inputs, but {given[1]} of targets")
        return max(given, default=0)

    def _feed_training(self, x: Data | None, y: Any) -> None:
        """Fewer rows than the batch are a step of so many, an epoch's last."""
        rows = self._feed(x, y, self._batch)
        if 0 < rows < self._batch:
            check("trainer", lib.stint_trainer_rows(self._trainer, rows), self._trainer)

    def train(self, x: Data | None = None, y: Any = None, lr: float | None = None) -> float:
        """One step: forward, backward, updates. Returns the loss. Without arguments: on what step.inputs and step.target hold. Fewer rows
        than the batch has may be given, if the model treats samples apart: gradients and loss are those of so small a batch.
        Without lr: the rate that a torch optimizer which the step was compiled of has now, or the optimizer's own."""
        loss = ffi.new("double *")
        self._with_target(x, y, "train")
        with self._lock:
            self._feed_training(x, y)
            rate = lr if lr is not None else self._rates.now() if self._rates else lib.stint_trainer_rate(self._trainer)
            check("trainer", lib.stint_trainer_train(self._trainer, rate, loss), self._trainer)
        return float(loss[0])

    def forward(self, x: Data | None = None) -> dict[str, Array]:
        """The first part of a step whose loss is computed here (loss="outside:NAME"): the outputs that it is of, by name, in place,
        as they are until step.backward. Of a batch in parts (micro-batches) of the next part's rows, one forward and one backward each."""
        with self._lock:
            if self._outside and x is not None and not self._waits:
                raise ValueError("the batch goes on with its next part: forward() without x")
            if not self._outside:
                self._feed_training(x, None)
            check("trainer", lib.stint_trainer_forward(self._trainer), self._trainer)
            self._waits = True
            value, gradient = ffi.new("struct stint_array *"), ffi.new("void **")
            values: dict[str, Array] = {}
            self._gradients = {}
            rows = int(lib.stint_trainer_outside_rows(self._trainer))
            part = self._batch // self._parts
            while lib.stint_trainer_outside(self._trainer, len(values), value, gradient):
                held = _Held(self._trainer, value)
                count = rows if rows < part else None  # of a batch that is not whole; else all
                values[held.name] = held.values()[:count] if held.shape else held.values()
                if gradient[0]:
                    place = np.frombuffer(ffi.buffer(gradient[0], held.bytes), held.dtype).reshape(held.shape)
                    self._gradients[held.name] = place[:count] if held.shape else place
            self._outside += 1
        return values

    def backward(self, gradients: Mapping[str, Any], loss: float = math.nan, lr: float | None = None) -> None:
        """The second part: `gradients` are those of the loss of the whole batch by each of the outputs that forward gave. `loss` is
        told by whoever asks for it, and changes nothing."""
        with self._lock:
            wanted = self._gradients
            missing = [name for name in wanted if name not in gradients]
            unknown = [name for name in gradients if name not in wanted]
            if self._waits and (missing or unknown):
                raise ValueError(f"gradients are wanted by {', '.join(map(repr, wanted))}"
                                 + (f", and there is none by {missing[0]!r}" if missing else f", not by {unknown[0]!r}"))
            for name, given in gradients.items() if self._waits else ():
                g = _as_array(given)
                if g.shape != wanted[name].shape:
                    raise ValueError(f"the gradient by '{name}' has the shape {wanted[name].shape}, not {g.shape}")
                np.copyto(wanted[name], g, casting="same_kind")
            rate = lr if lr is not None else self._rates.now() if self._rates else lib.stint_trainer_rate(self._trainer)
            check("trainer", lib.stint_trainer_backward(self._trainer, rate, loss), self._trainer)
            self._outside %= self._parts
            self._waits = False

    @property
    def eval_rows(self) -> int:
        """So many rows an evaluation takes: of a step that takes the batch in parts, one part."""
        held = self._of(lib.STINT_KIND_INPUT)
        return int(held[0].shape[0]) // self._parts if held and held[0].shape else 1

    def _eval(self, x: Data | None, y: Any) -> tuple[float, int]:
        loss, most = ffi.new("double *"), self.eval_rows
        rows = self._feed(x, y, most) or most
        if rows > most:
            raise ValueError(f"the step takes the batch in {self._parts} parts: an evaluation has {most} rows at most")
        check("trainer", lib.stint_trainer_eval(self._trainer, rows, loss), self._trainer)
        return float(loss[0]), rows

    def eval(self, x: Data | None = None, y: Any = None) -> float:
        """The loss, by the model as it answers when it is not trained. Fewer rows than the batch has may be given."""
        self._with_target(x, y, "eval")
        with self._lock:
            return self._eval(x, y)[0]

    def predict(self, x: Data | None = None) -> dict[str, Array]:
        """The model's outputs by name, of as many rows as were given."""
        with self._lock:
            rows = self._eval(x, None)[1]
            most, out = self.eval_rows, {}
            for held in self._of(lib.STINT_KIND_OUTPUT):
                of_rows = held.shape and held.shape[0] % most == 0
                out[held.name] = held.values()[:held.shape[0] // most * rows if of_rows else None].copy() if held.shape \
                    else held.values().copy()
        return out

    # --- Files ---

    def save(self, path: Path) -> None:
        """Parameters, running statistics, optimizer states, steps done and the seed, as safetensors: all of it or nothing.
        Values that are not finite are not saved: DivergedError."""
        with self._lock:
            check("trainer", lib.stint_trainer_save(self._trainer, os.fsencode(path)), self._trainer)

    def load(self, path: Path, strict: bool = False) -> None:
        """From such a file, after which training goes on bit for bit, or from any with the model's names. `strict`: all of
        them and no others."""
        with self._lock:
            check("trainer", lib.stint_trainer_load(self._trainer, os.fsencode(path), strict), self._trainer)
            messages = list(diagnostics(lib.stint_trainer_diagnostic, self._trainer))
        warn(messages, stacklevel=2)

    def __repr__(self) -> str:
        count = sum(math.prod(x.shape) for x in self._of(lib.STINT_KIND_PARAMETER))
        return f"<stint step: {count} parameters, arena {self.plan.arena} bytes, {self.steps} steps done>"
