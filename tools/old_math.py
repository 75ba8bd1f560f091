#!/usr/bin/env python3
"""Lets ELF files built with glibc 2.29 to 2.33 run with 2.28: they are changed in place.

    tools/old_math.py FILE...

glibc 2.29 gave exp, exp2, log, log2 and pow new versions, which set errno otherwise and compute the same; the older ones are still
there. Each file that wants these of GLIBC_2.29 is made to want them of the first version of its processor. Anything else that it
wants of GLIBC_2.29 is an error; what is newer still, auditwheel finds.
"""
import struct
import sys

SAME = {b"exp", b"exp2", b"log", b"log2", b"pow"}
NEW, FIRST = b"GLIBC_2.29", {62: b"GLIBC_2.2.5", 183: b"GLIBC_2.17"}  # by ELF's number of the processor
DYNSYM, VERSYM, VERNEED = 11, 0x6FFFFFFF, 0x6FFFFFFE


def elf_hash(name):
    h = 0
    for c in name:
        h = (h << 4) + c
        h = (h ^ (h >> 24 & 0xF0)) & 0x0FFFFFFF
    return h


def change(path):
    with open(path, "rb") as f:
        data = bytearray(f.read())
    machine = int.from_bytes(data[18:20], "little")
    if data[:6] != b"\x7fELF\x02\x01" or machine not in FIRST:
        sys.exit(f"{path}: no ELF file of x86-64 or aarch64")
    table, = struct.unpack_from("<Q", data, 40)
    size, count = struct.unpack_from("<HH", data, 58)
    sections, of_kind = [], {}  # offset, bytes, number of the section it refers to
    for i in range(count):
        kind, _, _, offset, length, link = struct.unpack_from("<IQQQQI", data, table + i * size + 4)
        sections.append((offset, length, link))
        of_kind[kind] = sections[i]
    if VERNEED not in of_kind:
        return
    need, _, link = of_kind[VERNEED]
    strings, length, _ = sections[link]

    def text(at):
        return bytes(data[strings + at:data.index(0, strings + at)])

    first = data.find(b"\0" + FIRST[machine] + b"\0", strings, strings + length) + 1 - strings
    while True:
        _, auxiliaries, file, to_aux, to_next = struct.unpack_from("<HHIII", data, need)
        at = need + to_aux
        for _ in range(auxiliaries):
            _, _, number, name, next_aux = struct.unpack_from("<IHHII", data, at)
            if text(name) == NEW:
                symbols, size_of_symbols, _ = of_kind[DYNSYM]
                versions, _, _ = of_kind[VERSYM]
                wanted = {text(struct.unpack_from("<I", data, symbols + 24 * i)[0]) for i in range(size_of_symbols // 24)
                          if struct.unpack_from("<H", data, versions + 2 * i)[0] == number}
                if text(file) != b"libm.so.6" or wanted - SAME or first <= 0:
                    sys.exit(f"{path}: wants {b', '.join(sorted(wanted)).decode()} of {NEW.decode()}")
                struct.pack_into("<I", data, at, elf_hash(FIRST[machine]))
                struct.pack_into("<I", data, at + 8, first)
            at += next_aux
        if not to_next:
            break
        need += to_next
    with open(path, "r+b") as f:
        f.write(data)


for path in sys.argv[1:]:
    change(path)
