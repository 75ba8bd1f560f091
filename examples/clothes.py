"""Fashion-MNIST (Debian's dataset-fashion-mnist) as folders of pictures in classes.

    python3 examples/clothes.py FOLDER TRAIN TEST   so many of each class, in FOLDER/train/CLASS/*.png and FOLDER/test/CLASS/*.png
"""
import gzip
import os
import struct
import subprocess
import sys
import zlib

NAMES = ["t-shirt", "trouser", "pullover", "dress", "coat", "sandal", "shirt", "sneaker", "bag", "boot"]


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(path, pixels):
    """A gray PNG of 28 x 28 bytes."""
    rows = b"".join(b"\0" + pixels[28 * y:28 * y + 28] for y in range(28))
    with open(path, "wb") as f:
        f.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 28, 28, 8, 0, 0, 0, 0)) +
                chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


def write(images, labels, most, folder):
    with gzip.open(images) as f:
        pixels = f.read()[16:]
    with gzip.open(labels) as f:
        label = f.read()[8:]
    done = [0] * len(NAMES)
    for i, k in enumerate(label):
        if done[k] < most:
            os.makedirs(f"{folder}/{NAMES[k]}", exist_ok=True)
            png(f"{folder}/{NAMES[k]}/{i:05}.png", pixels[784 * i:784 * i + 784])
            done[k] += 1


def main(folder, train, test):
    files = subprocess.run(["dpkg", "-L", "dataset-fashion-mnist"], capture_output=True, text=True, check=True).stdout
    at = os.path.dirname(next(f for f in files.splitlines() if f.endswith("/train-images-idx3-ubyte.gz")))
    for part, most, where in (("train", train, "train"), ("t10k", test, "test")):
        write(f"{at}/{part}-images-idx3-ubyte.gz", f"{at}/{part}-labels-idx1-ubyte.gz", int(most), f"{folder}/{where}")


main(*sys.argv[1:])
