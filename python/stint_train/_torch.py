"""Losses, optimizers and schedulers of torch's, in stint's words. torch itself is not imported here: who gives one has it."""
from __future__ import annotations

import re
import warnings
from typing import Any, Iterator, Mapping

from ._errors import Diagnostic, StintWarning, UsageError

# Classes of torch.nn: stint's name, and the attributes that are options of the same name.
_LOSSES: dict[str, tuple[str, tuple[str, ...]]] = {
    "CrossEntropyLoss": ("cross-entropy", ("weight", "ignore_index", "label_smoothing")),
    "NLLLoss": ("nll", ("weight", "ignore_index")),
    "MSELoss": ("mse", ()),
    "L1Loss": ("l1", ()),
    "SmoothL1Loss": ("smooth-l1", ("beta",)),
    "HuberLoss": ("huber", ("delta",)),
    "BCELoss": ("bce", ("weight",)),
    "BCEWithLogitsLoss": ("bce-with-logits", ("weight", "pos_weight")),
    "KLDivLoss": ("kl-div", ("log_target",)),
    "SoftMarginLoss": ("soft-margin", ()),
    "HingeEmbeddingLoss": ("hinge-embedding", ("margin",)),
    "PoissonNLLLoss": ("poisson-nll", ("log_input", "full", "eps")),
    "TripletMarginLoss": ("triplet-margin", ("margin", "p", "eps", "swap")),
    "CosineEmbeddingLoss": ("cosine-embedding", ("margin",)),
    "MarginRankingLoss": ("margin-ranking", ("margin",)),
    "CTCLoss": ("ctc", ("blank", "zero_infinity")),
}
_FUNCTIONS = {"cross_entropy": "CrossEntropyLoss", "nll_loss": "NLLLoss", "mse_loss": "MSELoss", "l1_loss": "L1Loss",
              "smooth_l1_loss": "SmoothL1Loss", "huber_loss": "HuberLoss", "binary_cross_entropy": "BCELoss",
              "binary_cross_entropy_with_logits": "BCEWithLogitsLoss", "kl_div": "KLDivLoss",
              "soft_margin_loss": "SoftMarginLoss", "hinge_embedding_loss": "HingeEmbeddingLoss",
              "poisson_nll_loss": "PoissonNLLLoss", "triplet_margin_loss": "TripletMarginLoss",
              "cosine_embedding_loss": "CosineEmbeddingLoss", "margin_ranking_loss": "MarginRankingLoss", "ctc_loss": "CTCLoss"}
# Of torch.optim; their options are those that the optimizer has defaults for.
_OPTIMIZERS = {name: name.lower() for name in ("SGD", "Adam", "AdamW", "Adagrad", "Adadelta", "RMSprop", "Adamax", "NAdam",
                                               "RAdam", "ASGD", "Adafactor", "Muon")}
_HOW = {"lr", "foreach", "fused", "capturable", "differentiable"}  # how torch computes the same, and the rate, which changes
_OWN_MODEL = "let the module's forward compute it, of the targets as a further input, and export that: loss=\"output:NAME\""


def wrong(message: str, hint: str) -> UsageError:
    return UsageError(2, (Diagnostic("error", message, hint),))


def _name(x: Any) -> str:
    """Of a class of torch's own: one that was made from it may compute something else."""
    kind = type(x)
    return kind.__name__ if kind.__module__.startswith("torch.") else ""


def _called(x: Any) -> str:
    return str(getattr(x, "__name__", None) or type(x).__name__)


def _option(key: str, value: Any) -> Iterator[str]:
    """As the command line has it; nothing of None."""
    if hasattr(value, "detach"):
        if value.numel() != max((*value.shape, 1)):
            raise wrong(f"{key} of shape {tuple(value.shape)}: stint takes one number for each class",
                        "give as many numbers as classes")
        value = [float(x) for x in value.detach().flatten().tolist()] if value.ndim else float(value)
    if key in ("betas", "eps") and isinstance(value, (tuple, list)):
        for i, x in enumerate(value, 1):
            yield from _option(f"{'beta' if key == 'betas' else key}{i}", x)
    elif isinstance(value, (tuple, list)):
        yield f"{key}={';'.join(map(str, value))}"
    elif value is not None:
        yield f"{key}={int(value) if isinstance(value, bool) else value}"


def _spelled(name: str, options: Mapping[str, Any]) -> str:
    words = [word for key, value in options.items() for word in _option(key, value)]
    return name + (":" + ",".join(words) if words else "")


def _of_output(words: Any, name: str) -> str:
    """A loss that reads this output, and is told by its name."""
    if not isinstance(words, str) or words.rpartition("*")[2].startswith("output:"):
        raise wrong(f"of the output '{name}' {words!r} is no loss of stint's", "a loss that the model computes goes into a list of losses")
    marked = re.sub(r"([,:\\])", r"\\\1", name)
    return f"{words}{',' if ':' in words else ':'}output={marked},name={marked}"


def loss_words(loss: Any) -> Any:
    """Of one of torch.nn's: what --loss takes; of several, a list or a mapping by outputs, each one's, of a pair the weight before it.
    What is none of them stays."""
    if isinstance(loss, Mapping):
        return [_of_output(loss_words(x), str(name)) for name, x in loss.items()]
    if isinstance(loss, tuple) and len(loss) == 2 and isinstance(loss[0], (int, float)):
        return f"{loss[0]}*{loss_words(loss[1])}"
    if isinstance(loss, (list, tuple)):
        return [loss_words(x) for x in loss]
    if loss is None or isinstance(loss, str):
        return loss
    if isinstance(loss, type):
        raise wrong(f"loss is the class {loss.__name__}, no object of it", f"make one: {loss.__name__}()")
    if _name(loss) in _LOSSES:
        name, keys = _LOSSES[_name(loss)]
        if loss.reduction == "none":
            raise wrong("a loss with reduction='none' is not one number", "reduction='mean' or 'sum'")
        usual = type(loss)()
        options = {key: getattr(loss, key) for key in (*keys, "reduction")}
        return _spelled(name, {key: x for key, x in options.items() if hasattr(x, "detach") or x != getattr(usual, key)})
    if hasattr(loss, "forward"):
        raise wrong(f"stint has no loss of the class {_called(loss)}",
                    f"it has torch.nn's {', '.join(_LOSSES)}; of any other: {_OWN_MODEL}")
    known = _FUNCTIONS.get(_called(loss))
    raise wrong(f"loss is '{_called(loss)}', into which stint cannot look: it wants a loss that it knows by name",
                 f"loss=\"{_LOSSES[known][0]}\", or torch.nn.{known}()" if known else
                 f"a word, loss=\"cross-entropy\", or an object, torch.nn.CrossEntropyLoss(); of any other: {_OWN_MODEL}")


class Rates:
    """An optimizer of torch's as it is compiled, and the rate that its schedulers give it since."""

    def __init__(self, optimizer: Any, names: Mapping[int, str] | None = None) -> None:
        """`names`: of parameters, by their id."""
        self._optimizer = optimizer
        groups = optimizer.param_groups
        self._keys = [key for key in optimizer.defaults if key not in _HOW]
        self._compiled = [self._options(group) for group in groups]
        self._first = [self._rate(group, "initial_lr") for group in groups]
        name = _OPTIMIZERS[_name(optimizer)]
        for options in self._compiled:
            if name in ("adam", "adamw") and options.pop("decoupled_weight_decay", name == "adamw"):
                name = "adamw"
        self.words = _spelled(name, {"lr": self._first[0], **self._compiled[0]})
        self.groups = [word for i in range(1, len(groups)) for word in self._group(i, names)]
        if any(float(state.get("step", 1)) for state in optimizer.state.values()):
            warnings.warn(f"{_called(optimizer)} has done steps: stint's begins anew", StintWarning, stacklevel=5)

    @staticmethod
    def _rate(group: Mapping[str, Any], key: str = "lr") -> float:
        return float(group.get(key, group["lr"]))

    def _options(self, group: Mapping[str, Any]) -> dict[str, Any]:
        return {key: group[key] for key in self._keys}

    def _group(self, index: int, names: Mapping[int, str] | None) -> Iterator[str]:
        """--group for each of its parameters."""
        base, rate = self._compiled[0], self._first[index]
        options = {key: value for key, value in self._compiled[index].items() if value != base[key]}
        if rate != self._first[0]:
            if not self._first[0]:
                raise wrong("the first parameter group's rate is 0, and another one's is not", "begin with a group that is trained")
            options = {"lr": f"{rate / self._first[0]}x", **options}
        group = self._optimizer.param_groups[index]
        called = group.get("param_names") or [(names or {}).get(id(p)) for p in group["params"]]
        if not options:
            return
        if None in called:
            raise wrong("parameter groups of an optimizer whose parameters have no names here",
                         "make it of module.named_parameters(), or say group=[\"PATTERN:lr=0.1x\"]")
        yield from (_spelled(x, options) for x, p in zip(called, group["params"]) if p.requires_grad)

    def parameters(self) -> list[Any]:
        return [p for group in self._optimizer.param_groups for p in group["params"]]

    def now(self) -> float:
        """The first group's, where nothing else than the rate has changed: anything else is compiled."""
        self._optimizer._opt_called = True  # a step is done: schedulers warn where they see none
        rates = [self._rate(group) for group in self._optimizer.param_groups]
        for i, group in enumerate(self._optimizer.param_groups):
            changed = [key for key, value in self._compiled[i].items() if group[key] != value]
            if changed:
                raise ValueError(f"{', '.join(changed)} of the optimizer changed since it was compiled (cycle_momentum=False "
                                 "where a scheduler does that)")
            if abs(rates[i] * self._first[0] - rates[0] * self._first[i]) > 1e-6 * abs(rates[0] * self._first[i]):
                raise ValueError("the rates of the optimizer's groups changed apart, and compiled is what they are of the first's")
        return rates[0]


def rates_of(optimizer: Any, scheduler: Any = None, names: Mapping[int, str] | None = None) -> Rates | None:
    """Of one of torch.optim's, or of a scheduler's; None of a word."""
    if scheduler is not None and not hasattr(scheduler, "get_last_lr"):
        raise wrong(f"scheduler is '{_called(scheduler)}', no object of torch.optim.lr_scheduler",
                    "make one of the optimizer, or give train() a rate: lr=X")
    if scheduler is not None and scheduler.optimizer is not optimizer:
        raise wrong("the scheduler is another optimizer's", "give compile the optimizer that the scheduler was made of, too")
    if optimizer is None or isinstance(optimizer, str):
        return None
    if hasattr(optimizer, "get_last_lr"):
        raise wrong(f"optimizer is '{_called(optimizer)}', a scheduler", "optimizer=scheduler.optimizer, scheduler=scheduler")
    if isinstance(optimizer, type) or not hasattr(optimizer, "param_groups"):
        raise wrong(f"optimizer is '{_called(optimizer)}', no optimizer yet",
                     "a word, optimizer=\"adamw:lr=0.001\", or an object, torch.optim.AdamW(module.parameters(), lr=0.001)")
    if _name(optimizer) not in _OPTIMIZERS:
        raise wrong(f"stint has no optimizer of the class {_called(optimizer)}",
                     f"it has torch.optim's {', '.join(_OPTIMIZERS)}, and its own words: lion, adamw8bit, adam-mini")
    return Rates(optimizer, names)
