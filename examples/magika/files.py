"""Files of this machine for magika's model, and magika itself with the model that came of them.

    files.py data OUT EACH     OUT/{train,test}-{bytes,labels}.npy: EACH manual pages (troff, which the model does not know), and
                               twice as many other files, called what the model calls them; a fifth as many for the test
    files.py try OUT           magika with OUT/model.onnx looks at the files of the test
"""
import collections
import gzip
import json
import pathlib
import random
import sys

import magika
import numpy

NEW = "troff"
FOLDERS = ["/usr/bin", "/usr/include", "/usr/lib/python3", "/usr/lib/x86_64-linux-gnu", "/usr/share", "/etc"]


def files_below(folders, wanted):
    found = [p for f in folders for p in pathlib.Path(f).rglob("*") if p.is_file() and not p.is_symlink() and wanted(p)]
    random.Random(0).shuffle(found)
    return found


def pages(n):
    """Manual pages in English, those that are more than a line that names another one."""
    found = files_below(sorted(str(p) for p in pathlib.Path("/usr/share/man").glob("man*")), lambda p: p.suffix == ".gz")
    text = (gzip.decompress(p.read_bytes()) for p in found)
    texts = [t for t, _ in zip((t for t in text if len(t) > 200), range(n))]
    if len(texts) < n:
        sys.exit(f"files.py: {len(texts)} manual pages on this machine, {n} are wanted")
    return texts


def others(model, n):
    """What the model is sure of, no more than a tenth of one kind: (content, its label)."""
    count, found = collections.Counter(), []
    for p in files_below(FOLDERS, lambda p: 100 < p.stat().st_size < 1 << 20 and "man" not in p.parts):
        content = p.read_bytes()
        prediction = model.identify_bytes(content).prediction
        if prediction.score > 0.9 and prediction.dl.label != "undefined" and count[prediction.dl.label] < n / 10:
            count[prediction.dl.label] += 1
            found.append((content, str(prediction.dl.label)))
            if len(found) == n:
                return found
    sys.exit(f"files.py: {len(found)} other files on this machine, {n} are wanted")


def features(content, config):
    """As magika takes them: the first and the last bytes that are no blanks, and 256 where there are none."""
    size, block = config["beg_size"], config["block_size"]
    begin, end = content[:block].lstrip()[:size], content[-block:].rstrip()[-size:]
    pad = [config["padding_token"]]
    return list(begin) + pad * (size - len(begin)) + pad * (size - len(end)) + list(end)


def data(out, each):
    config = json.loads((out / "config.min.json").read_text())
    model = magika.Magika()
    labels = config["target_labels_space"]
    both = [(t, NEW) for t in pages(each + each // 5)], others(model, 2 * (each + each // 5))
    for name, part in ("train", [x[len(x) // 6:] for x in both]), ("test", [x[:len(x) // 6] for x in both]):
        part = sum(part, [])
        numpy.save(out / f"{name}-bytes.npy", numpy.array([features(c, config) for c, _ in part], dtype=numpy.int32))
        numpy.save(out / f"{name}-labels.npy", numpy.array([(labels + [NEW]).index(n) for _, n in part], dtype=numpy.int64))
        if name == "test":
            for i, (content, label) in enumerate(part):
                (out / f"test/{i}.{label}").write_bytes(content)
    print(f"{each} manual pages and {2 * each} other files of {len({n for _, n in both[1]})} kinds to learn from, a fifth as many for the test")


def try_model(out):
    config = json.loads((out / "config.min.json").read_text())
    config["target_labels_space"].append(NEW)
    (out / "new/config.min.json").write_text(json.dumps(config))
    for name, model in ("as it was", magika.Magika()), ("with one more", magika.Magika(model_dir=out / "new")):
        right = collections.Counter()
        for path in (out / "test").iterdir():
            right[path.suffix == f".{NEW}"] += model.identify_path(path).dl.label == path.suffix[1:]
        n = collections.Counter(p.suffix == f".{NEW}" for p in (out / "test").iterdir())
        print(f"magika {name}: {right[True]} of {n[True]} manual pages are {NEW}, {right[False]} of {n[False]} other files are what they were")


def main():
    what, out = sys.argv[1], pathlib.Path(sys.argv[2])
    if what == "data":
        data(out, int(sys.argv[3]))
    else:
        try_model(out)


main()
