#!/usr/bin/env python3
"""Seeds for the fuzzers, from code objects of the tests: make_seeds.py DIRECTORY FILE...

DIRECTORY/loader gets the files, DIRECTORY/decoder their code, DIRECTORY/metadata their metadata.
"""
import pathlib
import shutil
import struct
import sys

directory, files = pathlib.Path(sys.argv[1]), [pathlib.Path(name) for name in sys.argv[2:]]
shutil.rmtree(directory, ignore_errors=True)
for kind in ("loader", "decoder", "metadata"):
    (directory / kind).mkdir(parents=True)

for file in files:
    elf = file.read_bytes()
    (directory / "loader" / file.name).write_bytes(elf)
    table, = struct.unpack_from("<Q", elf, 32)
    count, = struct.unpack_from("<H", elf, 56)
    for index in range(count):
        kind, flags, offset, _, _, size = struct.unpack_from("<IIQQQQ", elf, table + 56 * index)
        if kind == 1 and flags & 1:
            (directory / "decoder" / file.name).write_bytes(elf[offset:offset + size])
        if kind == 4:
            # A note's name, "AMDGPU", takes eight bytes after the header of twelve.
            length, = struct.unpack_from("<I", elf, offset + 4)
            (directory / "metadata" / file.name).write_bytes(elf[offset + 20:offset + 20 + length])
