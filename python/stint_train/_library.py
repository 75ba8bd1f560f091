"""libstint, as its header declares it: loading, messages, and waiting for long work."""
from __future__ import annotations

import os
import re
import warnings
from typing import Any, Callable, Iterable, Iterator

import cffi
from stint_command import PACKAGE, find_onednn

from ._errors import Diagnostic, StintWarning, failure

INTERRUPTED = 130


def _declarations(header: str) -> str:
    """What a C parser without a preprocessor needs of it."""
    text = re.sub(r"#ifdef __cplusplus.*?#endif", "", header, flags=re.S)
    return re.sub(r"^#.*$", "", text, flags=re.M).replace("STINT_PUBLIC", "")


def _load() -> Any:
    # As `stint` does for itself: on a busy machine GNU's OpenMP, which reads this when it is loaded, waits by spinning otherwise.
    own = not {"GOMP_SPINCOUNT", "OMP_WAIT_POLICY"} & set(os.environ)
    if own:
        os.environ["GOMP_SPINCOUNT"] = "1000"
    try:
        return ffi.dlopen(str(PACKAGE / "lib" / "libstint.so"))
    finally:
        if own:
            del os.environ["GOMP_SPINCOUNT"]


ffi: Any = cffi.FFI()
ffi.cdef(_declarations((PACKAGE / "stint.h").read_text(encoding="utf-8")))
find_onednn()
lib: Any = _load()


def text(s: Any) -> str:
    """A string of the library's; names may come from a model, and be anything."""
    return str(ffi.string(s).decode("utf-8", "backslashreplace"))


def _text_or_none(s: Any) -> str | None:
    return text(s) if s else None


def diagnostics(of: Callable[[Any, int], Any], owner: Any) -> Iterator[Diagnostic]:
    index = 0
    while x := of(owner, index):
        yield Diagnostic(("note", "warning", "error")[x.level], text(x.message), _text_or_none(x.hint), _text_or_none(x.file),
                         _text_or_none(x.node), _text_or_none(x.op))
        index += 1


def warn(messages: Iterable[Diagnostic], stacklevel: int) -> None:
    for message in messages:
        if message.level == "warning":
            warnings.warn(str(message), StintWarning, stacklevel=stacklevel + 1)


class Waiting:
    """An onlooker: while the library works, Python handles signals, and what a handler raises (Ctrl-C does) ends the work."""

    def __init__(self) -> None:
        self._raised: BaseException | None = None
        self._stop = ffi.callback("int(void *)", lambda user: 0, error=1, onerror=self._keep)
        self.onlooker = ffi.new("struct stint_onlooker *", {"stop": self._stop})

    def _keep(self, kind: Any, raised: BaseException, traceback: Any) -> None:
        self._raised = raised

    def finish(self, status: int) -> int:
        """Raises what was raised meanwhile."""
        if self._raised:
            raise self._raised
        if status == INTERRUPTED:
            raise KeyboardInterrupt
        return status


def made(what: str, out: Any) -> Any:
    """The object that a ..._new call made, freed with the last use of it."""
    if not out[0]:
        raise MemoryError
    return ffi.gc(out[0], getattr(lib, f"stint_{what}_free"))


def check(what: str, status: int, owner: Any) -> None:
    if status:
        raise failure(status, tuple(diagnostics(getattr(lib, f"stint_{what}_diagnostic"), owner)))

