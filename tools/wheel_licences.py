#!/usr/bin/env python3
"""Puts the licences of the libraries that a repaired wheel has inside it into the wheel, which is rewritten.

    tools/wheel_licences.py WHEEL

Run where auditwheel was (which it needs), on Debian: each library is looked up by its file's name among the installed packages, and
the package's copyright file goes to *.dist-info/licenses/libraries/PACKAGE, with the texts that these refer to. A library of no
package is an error.
"""
import pathlib
import re
import subprocess
import sys

from auditwheel.wheeltools import InWheelCtx

DOC = pathlib.Path("/usr/share/doc")
COMMON = pathlib.Path("/usr/share/common-licenses")


def package_of(library):
    name = re.sub(r"-[0-9a-f]{8}(?=\.so)", "", library.name)  # auditwheel's
    found = subprocess.run(["dpkg-query", "-S", f"*/{name}"], capture_output=True, text=True).stdout
    for package in re.findall(r"^([^:, ]+)[:,]", found, re.M):
        if (DOC / package / "copyright").exists():
            return package
    sys.exit(f"{library.name}: no package that is installed here has it")


def main():
    wheel = pathlib.Path(sys.argv[1]).resolve()
    with InWheelCtx(wheel, wheel) as ctx:
        root = pathlib.Path(ctx.path)
        [info] = root.glob("*.dist-info")
        own = {"libstint.so"}  # and a script for the linker
        libraries = [f for f in root.rglob("*.so*") if f.name not in own and f.read_bytes()[:4] == b"\x7fELF"]
        texts = {}
        for package in sorted({package_of(f) for f in libraries}):
            text = (DOC / package / "copyright").read_text(errors="surrogateescape")
            texts[f"libraries/{package}"] = text
            for name in re.findall(rf"{COMMON}/([A-Za-z0-9.+-]+)", text):
                name = name.rstrip(".")
                texts[f"libraries/common-licenses/{name}"] = (COMMON / name).read_text(errors="surrogateescape")
        for name, text in texts.items():
            path = info / "licenses" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, errors="surrogateescape")
        metadata = (info / "METADATA").read_text()
        lines = "".join(f"License-File: {name}\n" for name in sorted(texts))
        (info / "METADATA").write_text(re.sub(r"((?:^License-File: .*\n)+)", lambda m: m[1] + lines, metadata, count=1, flags=re.M))
    print(f"{wheel.name}: {len(libraries)} libraries, {len(texts)} texts")


main()
