#!/usr/bin/python3
"""Checks the README's figures, and the changelog's: those of the build against the build, modelled ones against benchmarks.md.

usage: readme_figures.py ROOT SLUICE PACK

Each modelled figure is a column of one row of a table there, as printed or rounded; other tests compare these rows with the
model. The error that the README states is the row's, too.
"""
import pathlib
import re
import subprocess
import sys

# Sentence of the README; table and row of the figures' page; columns of the groups.
MODELLED = [
    (r"\*\*(\d+) % of the matrix cores' peak\*\*[^*]*?error of the sample (\d\.\d) %",
     "prefill of whole XCDs", "prefill bf16 d128, 64/8 heads, 4 x 4096 tokens, causal", ("MFMA busy", "error")),
    (r"\*\*(\d+) % of HBM's bandwidth\*\*[^*]*?8 sequences of 8192 keys",
     "decode", "decode bf16 d128, 64/8 heads, 8 x 8192 keys, pages of 16", ("HBM share",)),
]


def cells(line):
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def row_of(page, table, row):
    """The cells of a row by the names of their columns."""
    lines = re.search(rf"<!-- {re.escape(table)}: begin [^\n]*\n(.*?)<!--", page, re.DOTALL)[1].splitlines()
    found = [cells(line) for line in lines if cells(line)[0] == row]
    assert len(found) == 1, f"the table '{table}' has {len(found)} rows '{row}'"
    return dict(zip(cells(lines[0]), found[0]))


def check_modelled(readme, page):
    for sentence, table, row, columns in MODELLED:
        found = re.search(sentence, readme)
        assert found, f"the README does not say {sentence}"
        printed = row_of(page, table, row)
        for said, column in zip(found.groups(), columns):
            digits = len(said.partition(".")[2])
            actual = f"{float(printed[column].removesuffix(' %')):.{digits}f}"
            assert said == actual, f"the README says {said} %; '{column}' of '{row}' is {printed[column]}"


def check_build(readme, page, changelog, sluice, pack):
    found = re.search(r"\*\*(\d+) attention kernels in (\d+\.\d) MB\*\*", readme)
    assert found, "the README does not say how many attention kernels there are, and their size"
    lines = subprocess.run([sluice, "kernels"], check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()
    kernels = sum(line.startswith("attn_fwd_") for line in lines)
    assert kernels == int(found[1]), f"the README says {found[1]} attention kernels; the library has {kernels}"
    assert f"* {kernels} attention kernels, up from" in changelog, f"the changelog does not say that there are {kernels} kernels"
    megabytes = pack.stat().st_size / 1e6
    # Compilers differ by some bytes per kernel.
    assert abs(megabytes - float(found[2])) <= 0.1, f"the README says {found[2]} MB; the pack has {megabytes:.2f} MB"
    library = re.search(r"one library of (\d+) MB", readme)
    size = row_of(page, "installation", "`libsluice.so.2`, with its kernels")["size"]
    assert library and round(float(size.removesuffix(" MB"))) == int(library[1]), f"the README does not say that the library has {size}"


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    root, sluice, pack = (pathlib.Path(argument) for argument in sys.argv[1:])
    readme = " ".join((root / "README.md").read_text(encoding="utf-8").split())
    page = (root / "docs/benchmarks.md").read_text(encoding="utf-8")
    check_build(readme, page, (root / "docs/changelog.md").read_text(encoding="utf-8"), sluice, pack)
    check_modelled(readme, page)


if __name__ == "__main__":
    main()
