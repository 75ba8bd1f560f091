"""Writes tests/data/pictures_pil.h: small pictures in files, and what torchvision's Resize and CenterCrop make of them by PIL,
turned as their EXIF says; and what its random transforms make of them with the numbers that Random123's Philox draws here.

    python3 tests/oracle/pictures.py >tests/data/pictures_pil.h
"""
import io
import math

import numpy
from PIL import Image, ImageOps
from torchvision import transforms
from torchvision.transforms import functional


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


# --- Chance ---


def philox(counter, key):
    """Philox4x32-10 (Salmon et al., SC 2011)."""
    (a, b, c, d), (k, m) = counter, key
    for _ in range(10):
        p, q = 0xD2511F53 * a, 0xCD9E8D57 * c
        a, b, c, d = (q >> 32) ^ b ^ k, q & 0xFFFFFFFF, (p >> 32) ^ d ^ m, p & 0xFFFFFFFF
        k, m = (k + 0x9E3779B9) & 0xFFFFFFFF, (m + 0xBB67AE85) & 0xFFFFFFFF
    return a, b, c, d


class Chance:
    """Numbers of [0, 1) of a sample, one after the other: 64 at most, of node -3 (where) or -4 (colours)."""

    def __init__(self, seed, epoch, node, sample):
        self.seed, self.epoch, self.node, self.at = seed, epoch, node & 0xFFFFFFFF, sample * 64

    def draw(self):
        self.at += 1
        return philox((self.at - 1, 0, self.epoch, self.node), (self.seed, 0))[0] / 2**32

    def below(self, n):
        return int(self.draw() * n)


def zoomed(width, height, least, chance):
    """RandomResizedCrop.get_params: top, left, height, width."""
    for _ in range(10):
        area = width * height * (least + chance.draw() * (1 - least))
        ratio = math.exp(math.log(3 / 4) + chance.draw() * (math.log(4 / 3) - math.log(3 / 4)))
        w, h = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
        if 0 < w <= width and 0 < h <= height:
            return chance.below(height - h + 1), chance.below(width - w + 1), h, w
    w, h = width, height
    if width / height < 3 / 4:
        h = round(width / (3 / 4))
    elif width / height > 4 / 3:
        w = round(height * (4 / 3))
    return (height - h) // 2, (width - w) // 2, h, w


def sized(picture, width, height):
    """Resize, along rows first and then along columns: Pillow 13 takes the other order where it is faster, whose last bit may differ."""
    return functional.resize(functional.resize(picture, [picture.size[1], width]), [height, width])


def by_shorter(picture, size):
    width, height = picture.size
    return sized(picture, *((size * width // height, size) if width > height else (size, size * height // width)))


ADJUST = [functional.adjust_brightness, functional.adjust_contrast, functional.adjust_saturation, functional.adjust_hue]


def jittered(picture, ranges, chance):
    """ColorJitter: an order of the four, then a factor of each."""
    order = [0, 1, 2, 3]
    for i in (3, 2, 1):
        j = chance.below(i + 1)
        order[i], order[j] = order[j], order[i]
    factors = []
    for k, far in enumerate(ranges):
        low, high = (-far, far) if k == 3 else (max(0, 1 - far), 1 + far)
        factors.append(low + chance.draw() * (high - low))
    for k in order:
        if ranges[k]:
            picture = ADJUST[k](picture, factors[k])
    return picture


def drawn(picture, sample, seed, epoch, size, resize=None, zoom=None, pad=0, flip=False, vflip=False, ranges=(0, 0, 0, 0)):
    where, colour = (Chance(seed, epoch, node, sample) for node in (-3, -4))
    if zoom:
        picture = sized(functional.crop(picture, *zoomed(*picture.size, zoom, where)), size, size)
    else:
        picture = functional.pad(by_shorter(picture, resize), pad)
        width, height = picture.size
        picture = functional.crop(picture, where.below(height - size + 1), where.below(width - size + 1), size, size)
    picture = jittered(picture, ranges, colour)
    if flip and where.draw() < 0.5:
        picture = functional.hflip(picture)
    if vflip and where.draw() < 0.5:
        picture = functional.vflip(picture)
    return picture


DRAWN = [("8,random,flip", "RGB", dict(size=8, resize=8, flip=True)),
         ("7,resize=9,random,pad=3,vflip", "RGB", dict(size=7, resize=9, pad=3, vflip=True)),
         ("9,zoom,flip,vflip", "RGB", dict(size=9, zoom=0.08, flip=True, vflip=True)),
         ("9,zoom=0.6,gray,brightness=0.5,contrast=2,hue=0.1,saturation=1", "L", dict(size=9, zoom=0.6, ranges=(0.5, 2, 1, 0.1))),
         ("8,random,brightness=0.4", "RGB", dict(size=8, resize=8, ranges=(0.4, 0, 0, 0))),
         ("8,random,contrast=0.9", "RGB", dict(size=8, resize=8, ranges=(0, 0.9, 0, 0))),
         ("8,random,saturation=3", "RGB", dict(size=8, resize=8, ranges=(0, 0, 3, 0))),
         ("8,random,hue=0.5", "RGB", dict(size=8, resize=8, ranges=(0, 0, 0, 0.5))),
         ("8,zoom,flip,brightness=0.4,contrast=0.4,saturation=0.4,hue=0.1", "RGB",
          dict(size=8, zoom=0.08, flip=True, ranges=(0.4, 0.4, 0.4, 0.1)))]


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
for i, (_, mode, how) in enumerate(DRAWN):
    made = [numpy.asarray(drawn(ImageOps.exif_transpose(Image.open(io.BytesIO(data))).convert(mode), sample, 7, 3 + i, **how))
            for sample, (_, data) in enumerate(PICTURES)]
    array(f"drawn_{i}", numpy.concatenate([m.reshape(how["size"], how["size"], -1).transpose(2, 0, 1).ravel() for m in made]))
print("static const struct { const char *name; const unsigned char *data; size_t n; } pictures[] = {")
for i, (name, _) in enumerate(PICTURES):
    print(f'\t{{"{name}", file_{i}, sizeof file_{i}}},')
print("};\nstatic const struct { const char *text; const unsigned char *made; size_t n; } settings[] = {")
for i, (text, *_) in enumerate(SETTINGS):
    print(f'\t{{"{text}", made_{i}, sizeof made_{i}}},')
print("};\nstatic const struct { const char *text; const unsigned char *made; size_t n; int epoch; } chances[] = {")
for i, (text, *_) in enumerate(DRAWN):
    print(f'\t{{"{text}", drawn_{i}, sizeof drawn_{i}, {3 + i}}},')
print("};\n/* clang-format on */")
