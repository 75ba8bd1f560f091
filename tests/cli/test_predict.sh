# stint predict, as people use it: tables, JSON, masks; what it says of samples that cannot be read; pictures of any kind.
. "$(dirname "$0")/lib.sh"

# what checks the answers: arrays, tables and pictures, read by Python's own library
cat >look.py <<'END'
import array, ast, csv, json, math, struct, sys, zlib
def npy(path):
    raw = open(path, "rb").read()
    n = struct.unpack("<H", raw[8:10])[0]
    head = ast.literal_eval(raw[10:10 + n].decode())
    values = array.array({"<f4": "f", "<f8": "d", "<i8": "q"}[head["descr"]])
    values.frombytes(raw[10 + n:])
    return head["shape"], list(values)
def rows(path):
    shape, v = npy(path)
    size = len(v) // shape[0]
    return [v[i:i + size] for i in range(0, len(v), size)]
def table(path):
    with open(path, newline="") as f:
        return list(csv.DictReader(f))
def lines(path):
    return [json.loads(line) for line in open(path)]
def softmax(v):
    e = [math.exp(x - max(v)) for x in v]
    return [x / sum(e) for x in e]
def near(a, b, by=1e-6):
    assert math.isnan(a) and math.isnan(b) or abs(a - b) <= by, (a, b)
def png(path):
    """Width, height, palette and the numbers of an 8-bit palette PNG."""
    raw, at, data, palette = open(path, "rb").read(), 8, b"", None
    assert raw[:8] == b"\x89PNG\r\n\x1a\n"
    while at < len(raw):
        n, kind = struct.unpack(">I4s", raw[at:at + 8])
        part = raw[at + 8:at + 8 + n]
        assert struct.unpack(">I", raw[at + 8 + n:at + 12 + n])[0] == zlib.crc32(kind + part)
        if kind == b"IHDR":
            width, height, bits, colour, _, _, interlace = struct.unpack(">IIBBBBB", part)
            assert (bits, colour, interlace) == (8, 3, 0)
        palette = part if kind == b"PLTE" else palette
        data += part if kind == b"IDAT" else b""
        at += 12 + n
    data, out, above = zlib.decompress(data), [], [0] * width
    for y in range(height):
        how, line = data[y * (width + 1)], list(data[y * (width + 1) + 1:(y + 1) * (width + 1)])
        for x in range(width):
            a, b, c = line[x - 1] if x else 0, above[x], above[x - 1] if x else 0
            p = min((abs(b - c), 0, a), (abs(a - c), 1, b), (abs(a + b - 2 * c), 2, c))[2]
            line[x] = line[x] + (0, a, b, (a + b) // 2, p)[how] & 255
        out += line
        above = line
    return width, height, palette, out
def write(path, shape, values, descr="<f4", kind="f"):
    head = repr({"descr": descr, "fortran_order": False, "shape": shape}).ljust(117) + "\n"
    open(path, "wb").write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + struct.pack(f"<{len(values)}{kind}", *values))
def picture(path, width, height, colour):
    raw = b"".join(b"\0" + bytes(colour(x, y)[k] for x in range(width) for k in range(3)) for y in range(height))
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    open(path, "wb").write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)) +
                           chunk(b"IDAT", zlib.compress(raw)) + chunk(b"IEND", b""))
END
look() { python3 -c "from look import *
$1" 2>look.err || fail "$(tail -n 3 look.err) in $1"; }

# --- classes ---

make_model dropout m.onnx
make_data x 10 x.npy
expect 0 stint compile m.onnx --loss cross-entropy --optimizer sgd --batch 4 --threads 1 -o dir
expect 0 stint predict dir --input x.npy -o y.npy -o y.csv -o y.jsonl
told "y.npy: y [10, 3]" "y.csv: y [10, 3]"
look '
t, j = table("y.csv"), lines("y.jsonl")
assert list(t[0]) == ["sample", "class", "score"] and len(t) == len(j) == 10
for i, v in enumerate(rows("y.npy")):
    p = softmax(v)
    assert t[i]["sample"] == str(j[i]["sample"]) == str(i)
    assert t[i]["class"] == str(j[i]["class"]) == str(p.index(max(p)))
    near(float(t[i]["score"]), max(p)); near(j[i]["score"], max(p))'
expect 0 stint predict dir --input x.npy --top 2 --scores -o y.csv -o y.jsonl
look '
t, j = table("y.csv"), lines("y.jsonl")
for i, v in enumerate(rows("y.npy")):
    p = softmax(v)
    best = sorted(range(3), key=lambda c: -p[c])
    assert [t[i]["class_1"], t[i]["class_2"]] == [str(c) for c in best[:2]] == [str(e["class"]) for e in j[i]["top"]]
    near(float(t[i]["score_2"]), p[best[1]]); near(j[i]["top"][1]["score"], p[best[1]])
    for c in range(3): near(float(t[i][str(c)]), p[c]); near(j[i]["scores"][c], p[c])'
expect 0 stint predict dir --input x.npy --raw --scores -o y.csv
look '
for line, v in zip(table("y.csv"), rows("y.npy")):
    assert [float(line[str(c)]) for c in range(3)] == [float("%.9g" % x) for x in v] and float(line["score"]) == float("%.9g" % max(v))'
# to standard output, by itself and by name, and as one document
expect 0 stint predict dir --input x.npy --raw --scores
same out y.csv
expect 0 stint predict dir --input x.npy --raw --scores -o -
same out y.csv
expect 0 stint predict dir --input x.npy -o - --format jsonl
expect 0 stint predict dir --input x.npy -o y.jsonl
stint predict dir --input x.npy -o - --format jsonl 2>err | cmp - y.jsonl || fail "other lines on standard output"
expect 0 stint predict dir --input x.npy --json
is_json out
look '
d = json.load(open("out"))
assert d["predictions"] == lines("y.jsonl") and d["samples"] == 10 and d["bad"] == []'
cp out whole.json
expect 0 stint predict dir --input x.npy -o y.json
same y.json whole.json
expect 0 stint predict dir --input x.npy --json -o y.npy -o odd.txt
is_json out
look '
assert json.load(open("out")) == {"files": [{"file": f, "outputs": [{"name": "y", "type": "float32", "shape": [10, 3]}]} for f in ("y.npy", "odd.txt")],
    "samples": 10, "bad": []}'
same y.npy odd.txt
# --format goes before the ending
expect 0 stint predict dir --input x.npy --format csv -o csv.npy
expect 0 stint predict dir --input x.npy -o y.csv
same csv.npy y.csv
# what a link leads to is written, and a pipe
ln -s y.csv link.csv && rm y.csv && : >y.csv
expect 0 stint predict dir --input x.npy -o link.csv
same y.csv csv.npy
[ -L link.csv ] || fail "the link was replaced"
expect 0 stint predict dir --input x.npy -o /dev/null --format csv
[ -c /dev/null ] || fail "a device was replaced"

# --- several outputs, numbers, yes and no ---

make_model two two.onnx
expect 0 stint compile two.onnx --loss none --batch 4 -o two
expect 0 stint predict two --input x.npy -o two.csv -o two.jsonl -o y=one.npy -o z=other.npy
look '
for line, j, y, z in zip(table("two.csv"), lines("two.jsonl"), rows("one.npy"), rows("other.npy")):
    assert [float(line[f"y_{c}"]) for c in range(3)] == [float("%.9g" % x) for x in y] == j["y"]
    assert [float(line[f"z_{c}"]) for c in range(5)] == [float("%.9g" % x) for x in z] == j["z"]'
expect 0 stint predict two --input x.npy --top 1 -o two.csv -o two.jsonl
look '
for line, j, y, z in zip(table("two.csv"), lines("two.jsonl"), rows("one.npy"), rows("other.npy")):
    assert line["y.class"] == str(y.index(max(y))) == str(j["y"]["class"]) and line["z.class"] == str(z.index(max(z)))'
make_model single single.onnx
expect 0 stint compile single.onnx --loss mse --optimizer sgd --batch 4 -o number
expect 0 stint predict number --input x.npy -o y.npy -o y.csv -o y.jsonl
look '
t, j = table("y.csv"), lines("y.jsonl")
assert list(t[0]) == ["sample", "y"]
for i, (v,) in enumerate(rows("y.npy")): assert float(t[i]["y"]) == j[i]["y"] == float("%.9g" % v)'
expect 0 stint compile single.onnx --loss bce-with-logits --optimizer sgd --batch 4 -o yes
expect 0 stint predict yes --input x.npy -o y.npy -o y.csv
look '
for line, (v,) in zip(table("y.csv"), rows("y.npy")): near(float(line["y"]), 1 / (1 + math.exp(-v)))'

# --- places: tokens and pixels ---

make_model frames frames.onnx
make_data x 5 x24.npy 24
expect 0 stint compile frames.onnx --loss nll --optimizer sgd --batch 4 -o frames
expect 0 stint predict frames --input x24.npy -o y.npy -o y.csv -o y.jsonl
look '
t, j = table("y.csv"), lines("y.jsonl")
assert list(t[0]) == ["sample", "place", "class", "score"] and len(t) == 30 and len(j) == 5
for i, v in enumerate(rows("y.npy")):
    for k in range(6):
        p = [math.exp(x) for x in v[3 * k:3 * k + 3]]
        line = t[6 * i + k]
        assert (line["sample"], line["place"], line["class"]) == (str(i), str(k), str(p.index(max(p)))) and j[i]["class"][k] == p.index(max(p))
        near(float(line["score"]), max(p)); near(j[i]["score"][k], max(p))'
make_model pixels pixels.onnx
mkdir -p street/day street/night
look '
for i, name in enumerate(("day/1", "day/2", "night/1")):
    picture(f"street/{name}.png", 16, 16, lambda x, y: (x * 16, y * 16, i * 80))'
expect 0 stint compile pixels.onnx --loss cross-entropy --optimizer sgd --batch 2 -o segment
street="--input images:16:street --scale 0.1,0.1,0.01 --shift -12"
# shellcheck disable=SC2086 # options are words
expect 0 stint predict segment $street -o y.npy -o masks/ -o y.csv -o y.jsonl
look '
t, j, seen = table("y.csv"), lines("y.jsonl"), set()
assert list(t[0]) == ["file", "y", "x", "class", "score"] and len(t) == 3 * 256
for i, (name, v) in enumerate(zip(("day/1", "day/2", "night/1"), rows("y.npy"))):
    width, height, palette, number = png(f"masks/{name}.png")
    want = [max(range(4), key=lambda c: v[256 * c + k]) for k in range(256)]
    assert (width, height) == (16, 16) and number == want
    assert [t[256 * i + k]["class"] for k in range(256)] == [str(c) for c in want]
    assert [c for line in j[i]["class"] for c in line] == want and j[i]["file"] == f"street/{name}.png"
    seen |= set(want)
assert len(seen) > 1 and palette[:15] == bytes((0, 0, 0, 128, 0, 0, 0, 128, 0, 128, 128, 0, 0, 0, 128)) and len(palette) == 768'
# such masks are what masks: reads
# shellcheck disable=SC2086 # options are words
expect 0 stint eval segment $street --target masks:16:masks --metric accuracy --json
[ "$(json_of out metrics accuracy)" = 1 ] || fail "$(cat out)"
# shellcheck disable=SC2086 # options are words
expect 2 stint predict segment $street -o masks/
said masks "not there, or is empty"
expect 2 stint predict dir --input x.npy -o none/
said "'y' is no mask"
absent none

# --- samples that cannot be read ---

cp -r street torn && echo nothing >torn/day/2.png
torn="--input images:16:torn --scale 0.1,0.1,0.01 --shift -12"
# shellcheck disable=SC2086 # options are words
expect 3 stint predict segment $torn -o n.npy
said torn/day/2.png "--skip-bad answers the others"
absent n.npy
# shellcheck disable=SC2086 # options are words
expect 0 stint predict segment $torn --skip-bad -o n.npy -o n.csv -o n.jsonl -o torn-masks/ -o n.json
said "1 of 3 samples is bad, and its row is not a number: neither PNG nor JPEG: torn/day/2.png"
absent torn-masks/day/2.png
same torn-masks/night/1.png masks/night/1.png
look '
good, bad = rows("y.npy"), rows("n.npy")
assert bad[0] == good[0] and bad[2] == good[2] and all(math.isnan(x) for x in bad[1])
t, j, whole = table("n.csv"), lines("n.jsonl"), json.load(open("n.json"))
for i, line in enumerate(t):
    if i // 256 == 1: assert line["class"] == "" and line["score"] == "nan" and line["error"] == "neither PNG nor JPEG"
    else: assert line["error"] == "" and line["class"] == table("y.csv")[i]["class"] if i % 97 == 0 else line["class"]
assert j[1]["error"] == "neither PNG nor JPEG" and j[1]["class"][0][0] is None and "error" not in j[2]
assert whole["bad"] == [{"reason": "neither PNG nor JPEG", "samples": 1, "first": ["torn/day/2.png"]}] and whole["predictions"] == j'
# shellcheck disable=SC2086 # options are words
expect 3 stint predict segment $torn --skip-bad=0 -o n.npy
said "more than --skip-bad allows"

# --- what is refused leaves nothing ---

expect 2 stint predict dir --input x.npy -o - -o -
said "standard output has one"
expect 2 stint predict dir --input x.npy -o - --format npy
said "does not go to standard output"
expect 2 stint predict dir --input x.npy -o no.csv --format xml
said "there is no --format xml" jsonl
expect 2 stint predict dir --input x.npy -o no.csv --top 4
said "'y' has 3 classes"
expect 2 stint predict dir --input x.npy -o no.csv --top -1
expect 5 stint predict dir --input x.npy -o no/such.csv
# shellcheck disable=SC2086 # options are words
expect 5 stint predict segment $street -o no/such/
absent no.csv
[ -z "$(find . -name '*.tmp*')" ] || fail "something half-written stays: $(find . -name '*.tmp*')"
finished
