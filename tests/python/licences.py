"""An installed wheel is as its list says, and has the licence of each library inside it."""
import base64
import hashlib
import importlib.metadata
import re

package = importlib.metadata.distribution("stint_train")
files = {str(f): f.locate() for f in package.files}
for f in package.files:
    if f.hash:
        digest = hashlib.sha256(files[str(f)].read_bytes()).digest()
        assert base64.urlsafe_b64encode(digest).decode().rstrip("=") == f.hash.value, f
texts = {re.sub(r".*dist-info/licenses/", "", name): path.read_text(errors="replace") for name, path in files.items()
         if "dist-info/licenses/" in name}
assert sorted(texts) == sorted(package.metadata.get_all("License-File")), texts.keys()

names = [re.match(r"stint_train(?:\.libs|/onednn/lib)/lib([a-z-]+?)(?:-[0-9a-f]{8})?\.so\.", f, re.I) for f in files]
libraries = {m[1].lower() for m in names if m}
assert libraries >= {"clp", "coinutils", "jansson", "popt", "protobuf-c", "spng", "jpeg"}, libraries
for library in libraries:
    text = "".join(t for name, t in texts.items() if re.match(rf"libraries/(.*-)?lib{library}\d*[-v\d]", name))
    assert "copyright" in text.lower(), f"no licence of {library}"
for name, words in [("coinor-libclp1", "Eclipse Public License"), ("libjpeg62-turbo", "Independent JPEG Group"),
                    ("libgfortran5", "GCC Runtime Library Exception"), ("libdnnl2", "Intel Corporation")]:
    assert words.lower() in texts.get(f"libraries/{name}", words).lower(), name
