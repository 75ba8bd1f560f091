"""Writes tests/data/pictures_pil.h: small pictures in files, and what torchvision's Resize and CenterCrop make of them by PIL,
turned as their EXIF says.

    python3 tests/oracle/pictures.py >tests/data/pictures_pil.h
"""
import io

import numpy
from PIL import Image, ImageOps
from torchvision import transforms


def pattern(width, height):
    y, x = numpy.mgrid[0:height, 0:width]
    return numpy.stack([x * 7 + y * 3, x * x + y * 5, 255 - x * 2 - y], -1).astype(numpy.uint8)


def file(picture, **how):
    out = io.BytesIO()
    picture.save(out, **how)
    return out.getvalue()


def alpha(width, height):
    return Image.fromarray(numpy.concatenate([pattern(width, height), pattern(width, height)[..., :1]], -1))


def inks(width, height):
    return Image.fromarray(numpy.concatenate([pattern(width, height), pattern(width, height)[..., :1] // 3], -1), mode="CMYK")


def turned(orientation):
    exif = Image.Exif()
    exif[0x112] = orientation
    return exif.tobytes()


PICTURES = [("a/colours.png", file(Image.fromarray(pattern(19, 12)), format="PNG")),
            ("b/gray.png", file(Image.fromarray(pattern(9, 9)[..., 0]), format="PNG")),
            ("b/palette.PNG", file(Image.fromarray(pattern(11, 16)).quantize(16), format="PNG")),
            ("b/photo.jpeg", file(Image.fromarray(pattern(20, 31)), format="JPEG", quality=90)),
            ("c/gray.jpg", file(Image.fromarray(pattern(13, 10)[..., 1]), format="JPEG", quality=90)),
            ("c/seen_through.png", file(alpha(10, 14), format="PNG")),
            ("d/inks.jpg", file(inks(17, 12), format="JPEG", quality=95)),
            *[(f"d/turned{k}.jpg", file(Image.fromarray(pattern(14, 18)), format="JPEG", quality=90, exif=turned(k))) for k in range(1, 9)],
            ("d/turned9.png", file(Image.fromarray(pattern(14, 9)), format="PNG", exif=turned(6)))]
SETTINGS = [("8", 8, 8, "RGB"), ("6,resize=10", 10, 6, "RGB"), ("12", 12, 12, "RGB"), ("7,gray", 7, 7, "L")]


def array(name, values):
    text = ",".join(str(int(v)) for v in values)
    print(f"static const unsigned char {name}[] = {{{text}}};")


print("/* Written by tests/oracle/pictures.py. */\n/* clang-format off */")
for i, (_, data) in enumerate(PICTURES):
    array(f"file_{i}", data)
for i, (_, resize, size, mode) in enumerate(SETTINGS):
    t = transforms.Compose([transforms.Resize(resize), transforms.CenterCrop(size)])
    made = [numpy.asarray(t(ImageOps.exif_transpose(Image.open(io.BytesIO(data))).convert(mode))) for _, data in PICTURES]
    array(f"made_{i}", numpy.concatenate([m.reshape(size, size, -1).transpose(2, 0, 1).ravel() for m in made]))
print("static const struct { const char *name; const unsigned char *data; size_t n; } pictures[] = {")
for i, (name, _) in enumerate(PICTURES):
    print(f'\t{{"{name}", file_{i}, sizeof file_{i}}},')
print("};\nstatic const struct { const char *text; const unsigned char *made; size_t n; } settings[] = {")
for i, (text, *_) in enumerate(SETTINGS):
    print(f'\t{{"{text}", made_{i}, sizeof made_{i}}},')
print("};\n/* clang-format on */")
