"""Files, folders, tensors and axes of any name: what each option calls them by, what is written and printed.

    names_fuzz.py STINT FIXTURE FOLDER [--seed N] [--rounds N]

A small model (`names` in models.c) gets names of random bytes; whatever they are, the commands below end well, print
good UTF-8, and the step has the bits of one with plain names. CI runs a few rounds; by hand, thousands.
"""
import argparse
import html.parser
import json
import os
import pathlib
import random
import re
import subprocess
import sys

PIECES = [bytes([c]) for c in b"ab1_ ,:;=+-*?[]{}()\\'\"#%$&<>|~^!@`./\n\t\x01"] + [
    "é".encode(), "层".encode(), "🦉".encode(), b"\xff", b"\\n", b"*/", b"??/", b"%s", b"$(X)", b"${X}", b"</script>", b"->"]
WHOLE = [b"target", b"loss", b"output", b"int", b"0", b"-1", b".", b"..", b"1digit", b"a,b", b"a=1", b"x:0", b"none", b"\\"]
ROLES = ("axis", "x", "s", "w", "b", "node", "h", "y", "z")


def a_name(rng):
    return rng.choice(WHOLE) if rng.random() < 0.2 else b"".join(rng.choices(PIECES, k=rng.randint(1, 8)))


def a_file(rng, ending):
    """No mark that data has before a file's name, no option."""
    name = a_name(rng).replace(b"/", b"_")
    return b"./" + name + ending


def name(text):
    return re.sub(rb"([\\:,=;])", rb"\\\1", text)


def pattern(text):
    return re.sub(rb"([\\:*?[])", rb"\\\1", text)


class Round:
    def __init__(self, o, names, rng):
        self.o, self.name = o, dict(zip(ROLES, names))
        plain = rng is None
        self.model = b"./plain.onnx" if plain else a_file(rng, b".onnx")
        self.dir = b"./plain" if plain else a_file(rng, b".d")
        self.x = b"./x.npy" if plain else a_file(rng, b".npy")
        self.told = []
        self.fixture("model", "names", self.model, b"\x1e".join(names))
        self.fixture("data", "x", "2", self.x)

    def fixture(self, *words):
        subprocess.run([self.o.fixture, *words], check=True)

    def run(self, *words, want=0):
        """The output, which must be good UTF-8 without control bytes."""
        self.told.append(words)
        done = subprocess.run([self.o.stint, *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for stream in (done.stdout, done.stderr):
            if re.search(rb"[\0-\x08\x0b-\x1f\x7f]", stream):
                raise AssertionError(f"control bytes are printed: {stream}")
            stream.decode()
        if done.returncode != want or b"warning" in done.stderr:
            raise AssertionError(f"exit {done.returncode}: {done.stderr.decode()}")
        return done.stdout

    def trained(self, *words):
        shown = json.loads(self.run("show", self.model, "--json", *self.sizes(), *words))
        return [t["role"] for t in shown["initializers"]]

    def sizes(self):
        return "--dim=" .encode() + name(self.name["axis"]) + b"=2", b"--fix=" + name(self.name["s"]) + b"=0.5"

    def check(self):
        n = self.name
        weight, bias, loss = pattern(n["w"]), pattern(n["b"]), b"mse:reduction=sum,output=" + name(n["y"])
        if self.trained(b"--train=" + weight) != self.trained(b"--freeze=" + bias):
            raise AssertionError("--train of one is not --freeze of the other")
        if self.trained(b"--train=" + n["w"]).count("trained") < 1:
            raise AssertionError("a name is no pattern of itself")
        usual = self.model, "--loss", loss, "--optimizer", "sgd", *self.sizes(), "--portable", "--threads", "1"
        self.run("plan", *usual, b"--lora=r=1:" + weight, b"--train=" + bias)
        self.run("compile", *usual, b"--group=" + weight + b":lr=2x", b"--no-recompute=" + pattern(n["node"]), "-o", self.dir)
        data = b"--input=" + name(n["x"]) + b"=" + self.x, "--target", "t.npy"
        self.run("run", self.dir, *data, "-o", "grads.safetensors")
        self.run("train", self.dir, *data, "--no-save", "--epochs", "1", "--log", "log.csv")
        self.run("show", "log.csv")
        self.run("predict", self.dir, data[0], "-o", name(n["z"]) + b"=z.npy")
        self.run("eval", self.dir, *data)
        self.run("export", self.dir, "-o", "exported.onnx")
        self.run("show", self.dir, "--html", "page.html")
        json.loads(self.run("show", self.dir, "--json"))
        for f in ("plan.json", "graph.json"):
            json.loads(pathlib.Path(os.fsdecode(self.dir), f).read_bytes())
        if [t["name"] for t in json.loads(self.run("show", "exported.onnx", "--json", *self.sizes()))["initializers"]] != [
                t["name"] for t in json.loads(self.run("show", self.model, "--json", *self.sizes()))["initializers"]]:
            raise AssertionError("the exported model has other names")
        subprocess.run(["make", "-s", "-B", "-C", self.dir, "step.so"], check=True, stdout=subprocess.DEVNULL)
        if self.o.cc:
            subprocess.run([*self.o.cc.split(), *"-std=c11 -Wall -Wextra -Werror -fsyntax-only step.c".split()], check=True, cwd=self.dir)
        return tags("page.html"), values("grads.safetensors"), pathlib.Path("z.npy").read_bytes()


def tags(path):
    """The page's elements, of which no name may make one."""
    found = []
    parser = html.parser.HTMLParser()
    parser.handle_starttag = lambda tag, attributes: found.append((tag, sorted(k for k, _ in attributes)))
    parser.feed(pathlib.Path(path).read_text(encoding="utf-8"))
    return found


def values(path):
    """The bytes of a .safetensors, by the tensors' places: names are others in each round."""
    raw = pathlib.Path(path).read_bytes()
    size = int.from_bytes(raw[:8], "little")
    header = json.loads(raw[8:8 + size].decode(errors="replace"))  # names may be no UTF-8, and are kept
    spans = sorted(t["data_offsets"] for k, t in header.items() if k != "__metadata__")
    return sorted(raw[8 + size + a:8 + size + b] for a, b in spans)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("stint")
    p.add_argument("fixture")
    p.add_argument("folder")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--rounds", type=int, default=4)
    p.add_argument("--cc", default="", help="a compiler that must have nothing to say about step.c")
    o = p.parse_args()
    os.makedirs(o.folder, exist_ok=True)
    os.chdir(o.folder)
    first = Round(o, [r.encode() for r in ROLES], None)
    first.fixture("data", "x", "2", "t.npy", "3")
    want = first.check()
    for seed in range(o.seed, o.seed + o.rounds):
        rng, names = random.Random(seed), []
        while len(names) < len(ROLES):
            new = a_name(rng)
            if new not in names and (names or new != b"?"):  # "?" is no name of an axis
                names.append(new)
        r = Round(o, names, rng)
        try:
            got = r.check()
            for what, x, y in zip(("the page's elements", "gradients", "predictions"), want, got):
                if x != y:
                    raise AssertionError(f"{what} differ from those with plain names")
        except (AssertionError, subprocess.CalledProcessError, ValueError, UnicodeError) as e:
            sys.exit(f"--seed {seed} --rounds 1: {e}\nnames: {r.name}\nmodel: {r.model}, folder {r.dir}, data {r.x}\nlast: {r.told[-1]}")
    print(f"{o.rounds} rounds of names")


if __name__ == "__main__":
    main()
