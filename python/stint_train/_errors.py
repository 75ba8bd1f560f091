"""What may go wrong, with all that stint says of it."""
from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Diagnostic:
    level: str  # "note", "warning" or "error"
    message: str
    hint: str | None = None
    file: str | None = None
    node: str | None = None  # a node or tensor of the model
    op: str | None = None  # its operator

    def __str__(self) -> str:
        where = "".join(f"{part}: " for part in (self.file, self.node and f"{self.op or 'node'} '{self.node}'") if part)
        return where + self.message + (f"\n  hint: {self.hint}" if self.hint else "")


class StintWarning(UserWarning):
    """stint goes on, but it may not be what you mean."""


class StintError(Exception):
    """`status` is the command line's exit code; file, node, op, message and hint are the first error's."""

    def __init__(self, status: int, diagnostics: tuple[Diagnostic, ...] = ()) -> None:
        self.status = status
        self.diagnostics = diagnostics
        first = next((x for x in diagnostics if x.level == "error"), Diagnostic("error", "stint failed"))
        self.file, self.node, self.op = first.file, first.node, first.op
        self.message, self.hint = first.message, first.hint
        # notes behind errors: a compiler's words, say
        told = [str(x) for level in ("error", "note") for x in diagnostics if x.level == level]
        super().__init__("\n".join(told) or first.message)

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.status, self.diagnostics)


class UsageError(StintError):
    """An option that there is not, or that does not go with another."""


class ModelError(StintError):
    """A model or data that are invalid or not supported."""


class BudgetError(StintError):
    """No plan within the budget. What is known of smaller and larger ones, in bytes:"""

    min_bytes_known: int | None = None  # the smallest budget that is met
    min_bytes_proven: int | None = None  # no plan needs less


class DivergedError(StintError):
    """Values that are not finite: nothing is saved of them."""


class FileError(StintError):
    """Files, devices, the C compiler."""


class ExportError(Exception):
    """The exporter left something of the module out; `names` are the parameters' in state_dict."""

    def __init__(self, message: str, names: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.names = names


_BY_STATUS: dict[int, type[StintError]] = {2: UsageError, 3: ModelError, 4: BudgetError, 5: FileError, 7: DivergedError}


def failure(status: int, diagnostics: tuple[Diagnostic, ...]) -> StintError:
    return _BY_STATUS.get(status, StintError)(status, diagnostics)
