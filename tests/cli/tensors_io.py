"""safetensors files by python's own library: tensors of type F32."""
import array
import json
import struct


def load(path):
    data = open(path, "rb").read()
    length, = struct.unpack_from("<Q", data)
    header = json.loads(data[8:8 + length])
    header.pop("__metadata__", None)
    out = {}
    for name, e in header.items():
        if e["dtype"] == "F32":
            begin, end = e["data_offsets"]
            out[name] = e["shape"], array.array("f", data[8 + length + begin:8 + length + end])
    return out


def save(path, tensors):
    header, body = {}, b""
    for name, (shape, values) in tensors.items():
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(body), len(body) + 4 * len(values)]}
        body += values.tobytes()
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    open(path, "wb").write(struct.pack("<Q", len(text)) + text + body)
