"""hints.py STINT SOURCE CASES WITHOUT: follows hints.

CASES: of each case a command that is told a hint, words of that hint, and what the hint says to do, commands that must succeed, the
last of them without being told it again ({--NAME} there is that option as the hint writes it):

	$ plan m.onnx --loss mse
	hint: for example --optimizer
	$ plan m.onnx --loss mse --optimizer sgd:lr=0.1

A last command that begins with > may meet another error, but not this one any more. It must differ from the first by an option
that the hint names, or be a command that it names. Lines that begin with # say something to the reader.

Hints in the sources that name an option or a command and that no case is told stand in WITHOUT, which may only shrink; WITHOUT of
`-` prints them."""
import pathlib, re, shlex, subprocess, sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent.parent / "tools"))
from messages import LITERAL, TEXT, arguments, text_of

# --- What the program has ---

FOLDERS = "api base bridge cli codegen compile data graph import ops planner train".split()
HINT_AT = {"diag_fail": 3, "diag_warn": 2, "diag_note": 2, "node_fail": 2, "usage": 1}
CALL = re.compile(r"\b(%s)\s*\(" % "|".join(HINT_AT))
# What is put together elsewhere: `hint = ...;`, `text_add(&hint, ...);`, and functions that are called so.
STATEMENT = re.compile(r"\bhint\w*(?:\[[^]]*\])?\s*=[^;=][^;]*;|\((?:&\w*->)?&?hint\b[^;]*;")
FUNCTION = re.compile(r"^[\w *]*?\b\w*(?:hint|helps|way_out)\w*\([^;{]*\)\n\{.*?^\}", re.M | re.S)
OPTION = re.compile(r"--[a-z][a-z-]*")
COMMAND = re.compile(r"`stint ([a-z]+)")


def hints(root):
    for path in sorted(p for folder in FOLDERS for p in (root / folder).glob("*.c")):
        code = re.sub(r"/\*.*?\*/", "", path.read_text(), flags=re.S)
        parts = [m[0] for m in STATEMENT.finditer(code)] + [m[0] for m in FUNCTION.finditer(code)]
        for call in CALL.finditer(code):
            given = arguments(code, call.end() - 1)
            parts += given[HINT_AT[call[1]] :][:1]
        texts = {text_of(literals) for part in parts for literals in TEXT.findall(part)}
        yield from (text for text in texts if OPTION.search(text) or COMMAND.search(text))


def is_told(text, told):
    """A text of printf's, or a part of one, in what was printed."""
    words = re.split(r"%%|%[-+ 0#.*\d]*(?:ll|[lzjh])?[a-zA-Z]", text)
    pattern = re.compile(".*".join(re.escape(word) for word in words))
    return any(pattern.search(line) for line in told)


# --- The cases ---


class Failed(Exception):
    pass


def cases(path):
    for block in re.split(r"\n\s*\n", pathlib.Path(path).read_text()):
        lines = [line for line in block.splitlines() if line and not line.startswith("#")]
        if lines:
            yield lines


def run(stint, line):
    done = subprocess.run([stint, *shlex.split(line)], capture_output=True, text=True, errors="replace", stdin=subprocess.DEVNULL)
    if not 0 <= done.returncode <= 7 or done.returncode == 1:
        raise Failed(f"exit {done.returncode}: {line}\n{done.stderr}")
    return done.returncode, done.stderr, re.findall(r"^  hint: (.*)$", done.stderr, re.M)


def values(line, option):
    words = shlex.split(line.replace(option + "=", option + " "))
    return [words[i + 1 : i + 2] for i, word in enumerate(words) if word == option]


def option_in(hint, option):
    written = re.search(re.escape(option) + r" ('[^']*'|[^\s,;]+)", hint)
    if not written:
        raise Failed(f"no {option} in the hint: {hint}")
    return written[0]


def follows(hint, first, then):
    """Whether `then` is what the hint says."""
    commands, after = [line[1:].split()[0] for line in then], "\n".join(then)
    return (
        any(c in commands for c in COMMAND.findall(hint))
        or any(values(first, option) != values(after, option) for option in OPTION.findall(hint))
        or any(option not in after for option in re.findall(r"(?:without|leave) (--[a-z][a-z-]*)", hint))
    )


def follow(stint, lines):
    """The hints that a case is told."""
    first, words, *then = lines
    if first[:2] != "$ " or not words.startswith("hint: ") or not then or any(line[:2] not in ("$ ", "> ") for line in then):
        raise Failed("a case is $ COMMAND, hint: WORDS, and $ COMMAND or > COMMAND")
    _, messages, told = run(stint, first[2:])
    hint = next((h for h in told if words[6:] in h), None)
    if not hint:
        raise Failed(f"no such hint: {words[6:]}\n{messages}")
    then = [re.sub(r"\{(--[a-z-]+)\}", lambda m: option_in(hint, m[1]), line) for line in then]
    if not follows(hint, first, then):
        raise Failed(f"the commands do not do what the hint says: {hint}")
    for line in then:
        code, messages, again = run(stint, line[2:])
        if line is then[-1] and hint in again:
            raise Failed(f"the same hint again: {hint}")
        if code and not (line is then[-1] and line[0] == ">"):
            raise Failed(f"the way out fails: {line}\n{messages}")
    return told


def main(stint, source, table, listed):
    told, failed, count = set(), False, 0
    for lines in cases(table):
        count += 1
        try:
            told.update(follow(stint, lines))
        except Failed as fault:
            print("FAILED:", *lines, fault, sep="\n")
            failed = True
    found = sorted({text for text in hints(pathlib.Path(source)) if not is_told(text, told)})
    if listed == "-":
        print("\n".join(found))
        return failed
    known = pathlib.Path(listed).read_text().splitlines()
    for line in sorted(set(found) - set(known)):
        print(f"FAILED: a hint names an option, and no case of {table} follows it: {line}")
    for line in sorted(set(known) - set(found)):
        print(f"FAILED: a case is told this, or it is not in the sources any more; take it out of {listed}: {line}")
    print(f"{count} hints followed, {len(found)} are not")
    return failed or set(found) != set(known)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
