#!/usr/bin/python3
"""Searches for the choices of kernels' last order of instructions (kernels/target/ScheduleChoices.h).

usage: search_schedules.py BUILD-FOLDER KERNEL...

Times each kernel with `sluice bench --timing` and all combinations of a few choices, which depend on one another. Kernels that
gain more than chance get a line in schedules.txt, the others lose theirs. Prints what was tried. The model is deterministic;
addresses are not, so programs run without their randomisation.
"""
import itertools
import pathlib
import re
import subprocess
import sys
import tempfile

USUAL = (8, 20, 30)
CHOICES = ((6, 8, 12, 16), (0, 20, 40), (12, 20, 30))
LENGTHS = "1024,4096"
# Smaller gains are chance, in points of MFMA busy: such changes move the waves of a compute unit against each other.
CHANCE = 0.5
TABLE = pathlib.Path(__file__).with_name("schedules.txt")


class Kernel:
    def __init__(self, build, name):
        self.programs, self.name, self.known = build / "bin", name, {}

    def busy(self, choices):
        """MFMA busy in percent: the mean of all lengths, without a mask and causal."""
        if choices not in self.known:
            self.known[choices] = self.time(" ".join(map(str, choices)))
            print(f"{self.name} {choices}: {self.known[choices]:.2f} %", flush=True)
        return self.known[choices]

    def time(self, choices):
        with tempfile.NamedTemporaryFile(suffix=".pack") as pack:
            generate = [self.programs / "sluice-kernelgen", "--row", self.name, "--schedule", choices, "--pack", pack.name]
            subprocess.run(generate, check=True)
            bench = [self.programs / "sluice", "bench", "--timing", "--pack", pack.name, "--kernel", self.name]
            bench += ["--lengths", LENGTHS, "--parts"]
            text = subprocess.run(["setarch", "-R", *bench], check=True, capture_output=True, text=True).stdout
        rows = [re.findall(r"([\d.]+) %", row) for row in text.splitlines() if row.startswith(self.name)]
        # The bound, then useful multiplications, then masked ones.
        return sum(float(row[1]) + float(row[2]) for row in rows) / len(rows)

    def search(self):
        best = max(itertools.product(*CHOICES), key=self.busy)
        return best if self.busy(best) - self.busy(USUAL) >= CHANCE else USUAL


def write(name, choices):
    lines = [line for line in TABLE.read_text().splitlines() if line.split(" ")[0] != name]
    comments = [line for line in lines if line.startswith("#")]
    rows = [line for line in lines if line and not line.startswith("#")]
    if choices != USUAL:
        rows.append(" ".join(map(str, (name, *choices))))
    TABLE.write_text("\n".join(comments + sorted(rows)) + "\n")


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    for name in sys.argv[2:]:
        kernel = Kernel(pathlib.Path(sys.argv[1]), name)
        write(name, kernel.search())


if __name__ == "__main__":
    main()
