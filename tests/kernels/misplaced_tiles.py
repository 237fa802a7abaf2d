#!/usr/bin/python3
"""Places an LDS tile of a kernel wrongly, and expects the emulator to notice.

The kernel is taken apart where its tiles have become offsets into one array; waits, barriers and alias scopes stay as
they are. For each two places of tiles, the tiles of the higher one move onto the lower one; and the tiles of each place
move down by 256 bytes, so that they share the last bytes of the tiles before them.

usage: misplaced_tiles.py BIN-FOLDER [KERNEL...]      all kernels, if none is named
"""
import itertools
import os
import re
import subprocess
import sys
import tempfile


def moved(text, arena, old, new):
    pattern = re.compile(rf"(getelementptr (?:inbounds )?{re.escape(arena)})\[{old}\]")
    result, count = pattern.subn(rf"\1[{new}]", text)
    if count == 0:
        raise RuntimeError(f"no tile at {old}")
    return result


def mutations(text):
    """(name, text) of each wrong placement; none if all tiles follow one another at a single place."""
    arenas = re.findall(r"(%\w+) = llvm\.mlir\.addressof @\w+_lds :", text)
    if len(arenas) != 1:
        raise RuntimeError(f"expected one array of LDS, not {len(arenas)}")
    arena = arenas[0]
    found = re.findall(rf"getelementptr (?:inbounds )?{re.escape(arena)}\[(\d+)\]", text)
    # The tiles at 0 have no offset to move, but others can move there.
    places = sorted({0} | {int(offset) for offset in found})
    for low, high in itertools.combinations(places, 2):
        yield f"{high}-onto-{low}", moved(text, arena, high, low)
    for place in places[1:]:
        yield f"{place}-down-by-256", moved(text, arena, place, place - 256)


def main(folder, kernels):
    def tool(name, *arguments):
        return subprocess.run([os.path.join(folder, name), *arguments], check=True, capture_output=True, text=True)

    kernels = kernels or tool("sluice-kernelgen", "--list").stdout.split()
    failures, rows = 0, []
    for kernel in kernels:
        with tempfile.TemporaryDirectory() as work:
            text = tool("sluice-kernelgen", "--variant", kernel, "--emit", "mlir").stdout
            files = []
            for name, mlir in itertools.chain([("intact", text)], mutations(text)):
                source = os.path.join(work, name + ".mlir")
                with open(source, "w", encoding="utf-8") as file:
                    file.write(mlir)
                files.append(name + ".co")
                tool("sluice-kernelgen", "--compile", source, "-o", os.path.join(work, name + ".co"))
            if len(files) == 1:
                continue
            sys.stdout.flush()
            result = subprocess.run([os.path.abspath(os.path.join(folder, "misplaced_tiles")), kernel, *files], cwd=work,
                                    check=False)
            rows.append(f"| {kernel} | {len(files) - 1} | {'all' if result.returncode == 0 else 'NOT ALL'} |")
            failures += result.returncode != 0
    print("", "| kernel | wrong placements | noticed |", "| --- | ---: | --- |", *rows, sep="\n")
    return 1 if failures or not rows else 0


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1], sys.argv[2:]))
