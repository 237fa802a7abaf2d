#!/usr/bin/python3
"""Runs the tools behind docs/concepts/proofs.md and writes their tables, of the kernels that synchronisation_mutations
takes, between its markers.

usage: update_proofs.py BUILD-FOLDER
"""
import pathlib
import re
import subprocess
import sys


def output_of(*command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{command[0]}:\n{done.stdout}{done.stderr}")
    return done.stdout


def table(output, header):
    """The lines of the table with this beginning."""
    start = output.index(header)
    return output[start:].split("\n\n")[0].rstrip("\n") + "\n"


def write(page, name, rows):
    text = page.read_text(encoding="utf-8")
    pattern = re.compile(rf"(<!-- {name}: begin -->\n).*?(<!-- {name}: end -->)", re.DOTALL)
    text, count = pattern.subn(lambda match: match.group(1) + rows + match.group(2), text)
    if count != 1:
        raise RuntimeError(f"{page} has {count} places for the table of {name}")
    page.write_text(text, encoding="utf-8")


def main(build):
    tests = pathlib.Path(__file__).parent
    page = tests.parent.parent / "docs" / "concepts" / "proofs.md"
    pack = build / "kernels" / "sluice.pack"
    mutations = output_of(build / "bin" / "synchronisation_mutations", pack, "--quick")
    mutants = table(mutations, "| kernel | waits |")
    kernels = re.findall(r"^\| (attn_\w+)", mutants, re.MULTILINE)
    # Writes each result as soon as it is there: they take long.
    write(page, "mutants", mutants)
    write(page, "redundant", table(mutations, "| kernel | redundant"))
    write(page, "loops", table(output_of(build / "bin" / "loop_waits", pack), "| kernel | loop at |"))
    passes = output_of(tests / "passes_are_needed.py", build / "bin" / "sluice-kernelgen", "llvm-objdump-22", *kernels)
    write(page, "passes", table(passes, "| pass left out |"))
    overlaps = output_of(tests / "misplaced_tiles.py", build / "bin", *kernels)
    write(page, "overlaps", table(overlaps, "| kernel | wrong placements |"))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(pathlib.Path(sys.argv[1]).resolve())
