#!/usr/bin/python3
"""Reads a kernel pack with only the knowledge in docs/formats/pack.md.

usage: explain_pack.py PAGE PACK                  a table of all bytes of the header and the manifest
       explain_pack.py --check PAGE PACK          prints errors only
       explain_pack.py --from PAGE PROGRAM        the table of the pack that PROGRAM FILE writes
PAGE is the description, whose grammar of names is used as written. Fails unless every byte is accounted for, every
checksum is right and every name follows the grammar.
"""
import pathlib
import re
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


def grammar_of(page):
    """The page's rules for `name` as one regular expression."""
    block = re.search(r"^```\n(name .*?)^```$", page, re.DOTALL | re.MULTILINE)
    if not block:
        raise ValueError("the page has no grammar of names")
    rules = {}
    for line in block[1].splitlines():
        line = line.split("#")[0].rstrip()
        rule = re.match(r"(\w+)\s*= (.*)", line)
        if rule:
            last, rules[rule[1]] = rule[1], rule[2]
        else:
            rules[last] += line
    number = "[1-9][0-9]*"

    def expanded(rule):
        parts = []
        for text, name, sign in re.findall(r'"([^"]*)"|(\w+)|([\[\]|])', rules[rule]):
            parts.append({"[": "(?:", "]": ")?", "|": "|"}[sign] if sign else
                         re.escape(text) if text else number if name == "number" else expanded(name))
        return f"(?:{''.join(parts)})"

    return re.compile(expanded("name"))


class Reader:
    """Takes fields from front to back and records them."""

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


def read(data, grammar):
    """The rows of header and manifest. ValueError if a rule of the page does not hold."""
    def must(holds, what):
        if not holds:
            raise ValueError(what)

    reader = Reader(data)
    must(reader.take(8, "magic", lambda raw: raw.decode("ascii", "replace")) == "SLUICEPK", "the magic is another one")
    must(reader.number(32, "version") == 4, "the version is another one")
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
        must(grammar.fullmatch(name) and all(int(n) < 1 << 32 for n in re.findall("[0-9]+", name)),
             f"{name} is not a name by the grammar")
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
        vgprs, matrix, slot, wave = (reader.number(32, field) for field in (
            "vgprs", "`loop_matrix_clk`", "`loop_slot_clk`", "`loop_wave_clk`"))
        chips = reader.list("chips")
        measured = name.startswith("attn_fwd_") and "gfx942" in chips
        must(8 <= vgprs <= 512 and 0 < matrix <= slot and wave >= matrix if measured else True,
             f"the machine code of {name} was not measured")
        must(chips == sorted(chips) and chips, "chips are out of order or missing")
        compressed = reader.number(64, "`compressed_bytes`")
        must(reader.number(64, "`bundle_bytes`") < 1 << 28, "bundle_bytes is too large")
        must(reader.checksum("checksum of the code") == xxh64(data[code:code + compressed]),
             f"the checksum of {name}'s code is wrong")
        must(data[code:code + 4] == bytes.fromhex("28b52ffd"), f"the code of {name} is not a zstd frame")
        code += compressed
    must(reader.at == 48 + manifest_bytes, "the manifest does not end where the header says")
    must(code == len(data), "the code does not end where the pack does")
    return reader.rows


def main():
    option, rest = sys.argv[1:-2], sys.argv[-2:]
    if len(sys.argv) < 3 or option not in ([], ["--check"], ["--from"]):
        sys.exit(__doc__)
    page, pack = rest
    if option == ["--from"]:
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "small.pack"
            subprocess.run([pack, file], check=True)
            data = file.read_bytes()
    else:
        data = pathlib.Path(pack).read_bytes()
    try:
        rows = read(data, grammar_of(pathlib.Path(page).read_text(encoding="utf-8")))
    except ValueError as error:
        sys.exit(str(error))
    if option == ["--check"]:
        return
    print("| offset | bytes | field | value |\n| --- | --- | --- | --- |")
    for offset, raw, name, value in rows:
        print(f"| {offset} | `{raw.hex(' ')}` | {name} | {value} |")


if __name__ == "__main__":
    main()
