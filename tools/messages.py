#!/usr/bin/env python3
"""tools/messages.py [--untold | --spelling] [--seen FILE...] [ROOT]: every message of the sources, a line each:

    FILE:LINE  KIND  TEXT | hint: HINT

KIND: error and its exit code (error 3), warning or note. Functions that take a text are found by their declarations (`format(printf, N)`),
and by the list below; a text that another function hands on (`"%s", message`) stands where it is made.

--untold: the texts alone that no test says: of no literal of tests/ is a large part in them, or the other way round. With --seen what programs
have printed into files (build/Testing/Temporary/LastTest.log, build/tests/*/*/err) counts, too.
--spelling: texts that are spelled otherwise than the others: they begin in lower case, end without a point, and say "cannot"."""
import pathlib, re, sys

FOLDERS = "api base bridge cli codegen compile data graph import ops planner runtime train view".split()
# Where the text stands among the arguments (from 0), its hint, and the exit code, or where that stands.
TAKE = {"diag_fail": (4, 3, "status"), "diag_warn": (3, 2, "warning"), "diag_note": (3, 2, "note"), "node_fail": (3, 2, "error 3"), "usage": (2, 1, "error 2"),
        "snprintf": (2, None, "error")}
STATUS = {"INTERNAL": 1, "USAGE": 2, "INVALID": 3, "BUDGET": 4, "IO": 5, "LOST": 6, "DIVERGED": 7, "INTERRUPTED": 130}
LITERAL = r'"(?:[^"\\]|\\.)*"'
BETWEEN = r"\s*(?:PRI[a-z]+\d*\s*)?"
TEXT = re.compile(LITERAL + "(?:" + BETWEEN + LITERAL + r")*(?:\s*PRI[a-z]+\d*)?")
PRINTF = re.compile(r"%%|%[-+ 0#.*\d]*(?:ll|[lzjh])?[a-zA-Z]")
DECLARED = re.compile(r"\b(\w+)\((?:[^;{}()]|\([^()]*\))*\)\s*(?:__attribute__\(\(format\(printf, (\d+)|STINT_FORMAT\((\d+)\))")
NO_MESSAGES = {"text_add", "arena_printf", "emit", "emit_text", "diag_vfail", "doctor_say"}


def without_comments(code):
    """With the same lines."""
    return re.sub(r'("(?:[^"\\\n]|\\.)*")|/\*.*?\*/', lambda m: m[1] or "\n" * m[0].count("\n"), code, flags=re.S)


def arguments(text, at):
    """Of the call whose parenthesis is text[at]."""
    out, depth, start = [], 0, at + 1
    for token in re.finditer(LITERAL + r"|'(?:[^'\\]|\\.)+'|[()\[\]{},]", text[at:]):
        here, c = at + token.start(), token[0]
        depth += (c in "([{") - (c in ")]}")
        if (c == "," and depth == 1) or depth == 0:
            out.append(text[start:here])
            start = here + 1
        if depth == 0:
            break
    return out


def text_of(literals):
    joined = re.sub(r"PRI[a-z]+\d*", '"d"', literals)
    return "".join(x[1:-1] for x in re.findall(LITERAL, joined)).replace('\\"', '"').replace("\\n", "\n")


def sources(root, endings=("*.c",)):
    for folder in FOLDERS:
        for ending in endings:
            yield from sorted((root / folder).rglob(ending))


def declared(path):
    return {name: (int(a or b) - 1, None, "error") for name, a, b in DECLARED.findall(without_comments(path.read_text())) if name not in NO_MESSAGES}


def takers(root):
    """The functions that take a message."""
    found = {}
    for path in sources(root, ("*.c", "*.h")):
        found = declared(path) | found
    return found | TAKE


def kind_of(how, given):
    status = re.search(r"\bST_(\w+)", given[1]) if how == "status" and len(given) > 1 else None
    return f"error {STATUS[status[1]]}" if status and status[1] in STATUS else "error" if how == "status" else how


def messages(root):
    """Of each FILE, LINE, KIND, TEXT, HINTS."""
    all_files = takers(root)
    call = re.compile(r"\b(%s)\s*\(" % "|".join(all_files))
    for path in sources(root):
        code = without_comments(path.read_text())
        take = all_files | declared(path) | TAKE  # a file's own function may be called as another's
        for found in call.finditer(code):
            text, hint, how = take[found[1]]
            given = arguments(code, found.end() - 1)
            if len(given) <= text or (found[1] == "snprintf" and not given[0].strip().endswith("message")):
                continue
            hints = [text_of(x) for x in TEXT.findall(given[hint])] if hint is not None else []
            line = code.count("\n", 0, found.start()) + 1
            for literals in TEXT.findall(given[text]):
                words = text_of(literals)
                if re.search(r"[a-z]{3}", PRINTF.sub("", words)):
                    yield path.relative_to(root).as_posix(), line, kind_of(how, given), words, hints


# --- What tests say ---


def parts(text):
    return [p for p in (" ".join(x.split()) for x in PRINTF.split(text)) if p]


def said(root):
    """What literals and words in quotes of the tests hold, as one text, a line each."""
    lines = set()
    for path in sorted(p for p in (root / "tests").rglob("*") if p.suffix in (".c", ".h", ".sh", ".py", ".txt", ".cmake") and p.is_file()):
        if path.name in ("messages_untold.txt", "hints_without.txt") or path.stat().st_size > 500000:
            continue
        text = path.read_text(errors="replace")
        if path.suffix in (".c", ".h"):
            lines.update(text_of(x) for x in TEXT.findall(text))
        else:
            lines.update(re.sub(r'\\([`"$])', r"\1", x) for x in re.findall(r'"((?:[^"\\\n]|\\.)+)"', text))
            lines.update(re.findall(r"'([^'\n]+)'", text))
            lines.update(text.splitlines() if path.suffix == ".txt" else [])
    return sorted({" ".join(x.split()) for x in lines if len(x) >= 8})


def pattern(text):
    """What is printed where a message says this."""
    kinds = {"d": r"-?\d+", "s": r".+?", "c": "."}
    ends = [m[0][-1] for m in PRINTF.finditer(text)]
    words = [re.escape(" ".join(p.split())).replace(r"\ ", " ") for p in PRINTF.split(text)]
    return words[0] + "".join(" ?" + ("%" if e == "%" else kinds.get(e, r"\S+")) + " ?" + w for e, w in zip(ends, words[1:]))


def is_said(text, lines, joined):
    """A literal that is a part of the message, two words or more, or that has half of its letters or more, or that is the whole of one."""
    own = parts(text)
    least = max(8, sum(map(len, own)) // 2)
    if any(line in p for p in own if " " in p for line in lines if " " in line and len(line) <= len(p)):
        return True
    known = [p for p in own if len(p) > 3 and p in joined]
    if sum(map(len, known)) >= least and any(sum(len(p) for p in known if p in line) >= least for line in lines):
        return True
    if sum(map(len, own)) < (8 if "%s" in text else 6) or any(p not in joined for p in own):
        return False
    longest, whole = max(own, key=len), re.compile(pattern(text))
    return any(whole.search(line) for line in lines if longest in line)


def is_seen(text, seen):
    return re.search(".*".join(map(re.escape, PRINTF.split(text))), seen) is not None


def odd(text):
    begins = re.match(r"[A-Z][a-z]+ ", text) and not re.match(r"(PyTorch|Winograd|Debian) ", text)
    return begins or (text.endswith(".") and not text.endswith("...")) or re.search(r"\b(can not|can't|could not|couldn't|unable to|failed to|please)\b", text)


def main(arguments):
    seen = ""
    if "--seen" in arguments:
        at = arguments.index("--seen")
        files, arguments = arguments[at + 1 :], arguments[:at]
        seen = "\n".join(pathlib.Path(f).read_text(errors="replace") for f in files)
    folders = [x for x in arguments if not x.startswith("--")]
    root = pathlib.Path(folders[0] if folders else pathlib.Path(__file__).resolve().parent.parent)
    found = list(messages(root))
    if "--untold" in arguments:
        lines = said(root)
        joined = "\n".join(lines)
        untold = {text for *_, text, _ in found if not is_said(text, lines, joined) and not (seen and is_seen(text, seen))}
        print("\n".join(sorted(repr(text)[1:-1] for text in untold)))
        return
    for file, line, kind, text, hints in found:
        if "--spelling" not in arguments or odd(text):
            print(f"{file}:{line}  {kind}  {text!r}" + "".join(f" | hint: {hint!r}" for hint in hints))


if __name__ == "__main__":
    main(sys.argv[1:])
