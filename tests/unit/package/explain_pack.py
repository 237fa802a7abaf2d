#!/usr/bin/python3
"""Reads a kernel pack as docs/formats/pack.md describes it, and knows nothing else of it.

usage: explain_pack.py PACK                  a table of all bytes of the header and the manifest
       explain_pack.py --check PACK          nothing but what is wrong
       explain_pack.py --from PROGRAM        the table of the pack that PROGRAM FILE writes
Fails unless every byte is accounted for and every checksum is right.
"""
import pathlib
import struct
import subprocess
import sys
import tempfile

MASK = (1 << 64) - 1
P1, P2, P3, P4, P5 = (11400714785074694791, 14029467366897019727, 1609587929392839161, 9650029242287828579,
                      2870177450012600261)


def rotated(value, bits):
    return (value << bits | value >> (64 - bits)) & MASK


def xxh64(data):
    """XXH64 with seed 0, from its specification."""
    def step(lane, word):
        return rotated((lane + word * P2) & MASK, 31) * P1 & MASK

    position = 0
    if len(data) >= 32:
        lanes = [(P1 + P2) & MASK, P2, 0, -P1 & MASK]
        while position + 32 <= len(data):
            words = struct.unpack_from("<4Q", data, position)
            lanes = [step(lane, word) for lane, word in zip(lanes, words)]
            position += 32
        value = sum(rotated(lane, bits) for lane, bits in zip(lanes, (1, 7, 12, 18))) & MASK
        for lane in lanes:
            value = ((value ^ step(0, lane)) * P1 + P4) & MASK
    else:
        value = P5
    value = (value + len(data)) & MASK
    while position + 8 <= len(data):
        value = (rotated(value ^ step(0, struct.unpack_from("<Q", data, position)[0]), 27) * P1 + P4) & MASK
        position += 8
    if position + 4 <= len(data):
        value = (rotated(value ^ struct.unpack_from("<I", data, position)[0] * P1 & MASK, 23) * P2 + P3) & MASK
        position += 4
    for byte in data[position:]:
        value = rotated(value ^ byte * P5 & MASK, 11) * P1 & MASK
    for shift, prime in ((33, P2), (29, P3), (32, 1)):
        value = (value ^ value >> shift) * prime & MASK
    return value


class Reader:
    """Takes fields from front to back and remembers what they were."""

    def __init__(self, data):
        self.data, self.at, self.rows = data, 0, []

    def take(self, size, name, show):
        raw = self.data[self.at:self.at + size]
        if len(raw) != size:
            raise ValueError(f"the pack ends inside {name}")
        value = show(raw)
        self.rows.append((self.at, raw, name, value))
        self.at += size
        return value

    def number(self, bits, name):
        return self.take(bits // 8, name, lambda raw: int.from_bytes(raw, "little"))

    def checksum(self, name):
        return int(self.take(8, name, lambda raw: f"{int.from_bytes(raw, 'little'):016x}"), 16)

    def string(self, name):
        size = self.number(16, f"{name}: length")
        return self.take(size, name, lambda raw: raw.decode("utf-8")) if size else ""

    def list(self, name):
        return [self.string(f"{name} {i}") for i in range(self.number(16, f"{name}: elements"))]


def read(data):
    """The rows of header and manifest. ValueError if a rule of the page does not hold."""
    def must(holds, what):
        if not holds:
            raise ValueError(what)

    reader = Reader(data)
    must(reader.take(8, "magic", lambda raw: raw.decode("ascii", "replace")) == "SLUICEPK", "the magic is another one")
    must(reader.number(32, "version") == 2, "the version is another one")
    kernels = reader.number(32, "`kernel_count`")
    must(reader.number(64, "`pack_bytes`") == len(data), "pack_bytes is not the size of the file")
    manifest_bytes = reader.number(64, "`manifest_bytes`")
    manifest_checksum = reader.checksum("checksum of the manifest")
    must(reader.checksum("checksum of the header") == xxh64(data[:40]), "the header's checksum is wrong")
    must(reader.at == 48, "the header has another size")
    must(manifest_checksum == xxh64(data[48:48 + manifest_bytes]), "the manifest's checksum is wrong")
    reader.string("generator")
    reader.string("LLVM version")
    previous, code = "", 48 + manifest_bytes
    for _ in range(kernels):
        name = reader.string("name")
        must(name > previous, "names are out of order")
        previous = name
        for field in ("threads", "`lds_bytes`", "`kernarg_bytes`"):
            reader.number(32, field)
        reader.checksum("`kernarg_hash`")
        reader.list("features")
        reader.string("P rounding")
        reader.number(32, "stages")
        reader.list("copy groups")
        reader.number(32, "`lds_bytes_without_reuse`")
        chips = reader.list("chips")
        must(chips == sorted(chips) and chips, "chips are out of order, or none")
        compressed = reader.number(64, "`compressed_bytes`")
        must(reader.number(64, "`bundle_bytes`") < 1 << 28, "bundle_bytes is too large")
        must(reader.checksum("checksum of the code") == xxh64(data[code:code + compressed]),
             f"the checksum of {name}'s code is wrong")
        must(data[code:code + 4] == bytes.fromhex("28b52ffd"), f"the code of {name} is no zstd frame")
        code += compressed
    must(reader.at == 48 + manifest_bytes, "the manifest does not end where the header says")
    must(code == len(data), "the code does not end where the pack does")
    return reader.rows


def main():
    arguments = sys.argv[1:]
    if arguments[:1] == ["--from"] and len(arguments) == 2:
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "small.pack"
            subprocess.run([arguments[1], file], check=True)
            data = file.read_bytes()
    elif len(arguments) in (1, 2) and arguments[0] != "--from":
        data = pathlib.Path(arguments[-1]).read_bytes()
    else:
        sys.exit(__doc__)
    try:
        rows = read(data)
    except ValueError as error:
        sys.exit(str(error))
    if arguments[0] == "--check":
        return
    print("| offset | bytes | field | value |\n| --- | --- | --- | --- |")
    for offset, raw, name, value in rows:
        print(f"| {offset} | `{raw.hex(' ')}` | {name} | {value} |")


if __name__ == "__main__":
    main()
