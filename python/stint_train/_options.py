"""The command line's options, from Python's values."""
from __future__ import annotations

import os
import re
from typing import Any, Iterator, Mapping, Sequence, Union

from ._library import check, ffi, lib, made, text

Path = Union[str, "os.PathLike[str]"]
Word = Union[str, int, float, Path]
# A flag: True. What may be repeated: a sequence, or NAME=VALUE as a mapping. None: as if it were not given.
Option = Union[Word, bool, None, Sequence[Word], Mapping[str, Word]]


def flags() -> set[str]:
    x, index, out = ffi.new("struct stint_option *"), 0, set()
    while lib.stint_option_at(index, x):
        if not x.value:
            out.add(text(x.name))
        index += 1
    return out


def _word(value: Word) -> str:
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return os.fspath(value) if isinstance(value, os.PathLike) else str(value)


def _name(name: str) -> str:
    return re.sub(r"([=\\])", r"\\\1", name)


def _words(name: str, value: Option) -> Iterator[str | None]:
    if value is None:
        return
    if isinstance(value, bool):
        if name not in flags():
            raise TypeError(f"{name} takes a value, not {value}")
        if value:
            yield None
    elif isinstance(value, Mapping):
        for key, x in value.items():
            # --dropout's are patterns, whose backslashes are their own
            yield f"{key if name == 'dropout' else _name(key)}={_name(str(x)) if name == 'tie' else _word(x)}"
    elif isinstance(value, Sequence) and not isinstance(value, str):
        yield from (_word(x) for x in value)
    else:
        yield _word(value)


def options(model: Path, given: Mapping[str, Option]) -> Any:
    """Of the library's; names with _ in place of -."""
    out = ffi.new("struct stint_options **")
    status = lib.stint_options_new(out, os.fsencode(model))
    made_options = made("options", out)
    check("options", status, made_options)
    for key, value in given.items():
        name = key.replace("_", "-")
        for word in _words(name, value):
            status = lib.stint_options_set(made_options, name.encode(), ffi.NULL if word is None else os.fsencode(word))
            check("options", status, made_options)
    return made_options
