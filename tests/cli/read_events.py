"""read_events.py FILE ...: what TensorBoard's event files hold, read by the formats' own descriptions, every checksum
compared. A line each: "version V", "restart STEP", or "STEP TAG VALUE" in the order of the file; "cut" where the last
record is not whole. Shares nothing with what wrote them.
"""
import struct
import sys


def crc32c(data):
    table = []
    for n in range(256):
        for _ in range(8):
            n = (n >> 1) ^ 0x82F63B78 if n & 1 else n >> 1
        table.append(n)
    crc = 0xFFFFFFFF
    for byte in data:
        crc = table[(crc ^ byte) & 255] ^ (crc >> 8)
    return crc ^ 0xFFFFFFFF


assert crc32c(b"123456789") == 0xE3069283  # RFC 3720


def unmask(masked):
    rotated = (masked - 0xA282EAD8) & 0xFFFFFFFF
    return ((rotated >> 17) | (rotated << 15)) & 0xFFFFFFFF


def records(data):
    at = 0
    while at < len(data):
        if at + 12 > len(data):
            print("cut")
            return
        length, = struct.unpack_from("<Q", data, at)
        total, = struct.unpack_from("<I", data, at + 8)
        assert unmask(total) == crc32c(data[at:at + 8]), f"the sum of the length at {at}"
        body = data[at + 12:at + 12 + length]
        if at + 16 + length > len(data):
            print("cut")
            return
        total, = struct.unpack_from("<I", data, at + 12 + length)
        assert unmask(total) == crc32c(body), f"the sum of the record at {at}"
        yield body
        at += 16 + length


def varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 127) << shift
        shift += 7
        at += 1
        if data[at - 1] < 128:
            return value, at


def fields(data):
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        wire = key & 7
        if wire == 0:
            value, at = varint(data, at)
        elif wire == 1:
            value, at = struct.unpack_from("<d", data, at)[0], at + 8
        elif wire == 5:
            value, at = struct.unpack_from("<f", data, at)[0], at + 4
        else:
            assert wire == 2, f"wire type {wire}"
            length, at = varint(data, at)
            value, at = data[at:at + length], at + length
            assert len(value) == length
        yield key >> 3, value


def main():
    for path in sys.argv[1:]:
        last = 0
        for body in records(open(path, "rb").read()):
            event = dict(fields(body))
            assert event[1] >= last, "time goes back"
            last = event[1]
            if 3 in event:
                print("version", event[3].decode())
            if 7 in event:
                assert dict(fields(event[7])) == {1: 1}
                print("restart", event[2])
            for number, value in fields(event.get(5, b"")):
                assert number == 1
                scalar = dict(fields(value))
                print(event[2], scalar[1].decode(), "%.7g" % scalar[2])
        assert last > 1.7e9, "no time of day"


main()
