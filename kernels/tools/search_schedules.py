#!/usr/bin/python3
"""Searches for schedules of kernels: the parts that sluice-kernelgen --explain prints, and those of the last order of
instructions (kernels/target/ScheduleChoices.h).

usage: search_schedules.py BUILD-FOLDER KERNEL...

Times each kernel with `sluice bench --timing`. The choices of the last order depend on one another: all combinations are tried.
Then each part of an attention kernel in turn, as long as one of them gains. Kernels that gain more than chance get a line in
schedules.txt, the others lose theirs. Prints what was tried; schedules that cannot be built, or whose kernels spill, are left
out. The model is deterministic; addresses are not, so programs run without their randomisation. A schedule must not change
results, but run the kernels' tests before a line is kept.
"""
import itertools
import pathlib
import re
import subprocess
import sys
import tempfile

LAST_ORDER = {"window": (6, 8, 12, 16), "waits_apart": (0, 20, 40), "reads_before": (12, 20, 30)}
PARTS = {
    "waves_per_simd": ("any", 1, 2, 3),
    "loop": ("ahead", "plain"),
    "few_registers": (0, 1),
    "keeps_addresses": (0, 1),
    "full": (0, 1),
    "copies_through_registers": (0, 1),
    "values_by_columns": (0, 1),
}
LENGTHS = "1024,4096"
# Smaller gains are chance, in points of MFMA busy: such changes move the waves of a compute unit against each other.
CHANCE = 0.5
TABLE = pathlib.Path(__file__).with_name("schedules.txt")


def text(schedule):
    return " ".join(f"{part}={value}" for part, value in sorted(schedule.items()))


class Kernel:
    def __init__(self, build, name):
        self.programs, self.name, self.known = build / "bin", name, {}

    def busy(self, schedule):
        """MFMA busy in percent: the mean of all lengths, without a mask and causal. 0 if there is no such kernel."""
        parts = text(schedule)
        if parts not in self.known:
            self.known[parts] = self.time(parts)
            print(f"{self.name} {parts or 'usual'}: {self.known[parts]:.2f} %", flush=True)
        return self.known[parts]

    def time(self, parts):
        with tempfile.NamedTemporaryFile(suffix=".pack") as pack:
            generate = [self.programs / "sluice-kernelgen", "--row", self.name, "--pack", pack.name]
            generate += ["--schedule", parts] if parts else []
            if subprocess.run(generate, stderr=subprocess.DEVNULL).returncode != 0:
                return 0.0
            bench = [self.programs / "sluice", "bench", "--timing", "--pack", pack.name, "--kernel", self.name]
            bench += ["--lengths", LENGTHS, "--parts"]
            report = subprocess.run(["setarch", "-R", *bench], check=True, capture_output=True, text=True).stdout
        rows = [re.findall(r"([\d.]+) %", row) for row in report.splitlines() if row.startswith(self.name)]
        # The bound, then useful multiplications, then masked ones.
        return sum(float(row[1]) + float(row[2]) for row in rows) / len(rows)

    def search(self):
        orders = [dict(zip(LAST_ORDER, values)) for values in itertools.product(*LAST_ORDER.values())]
        best = max([{}, *orders], key=self.busy)
        gains = self.name.startswith("attn_fwd")
        while gains:
            others = [{**best, part: value} for part, values in PARTS.items() for value in values]
            better = max(others, key=self.busy)
            gains = self.busy(better) - self.busy(best) >= CHANCE
            best = better if gains else best
        return best if self.busy(best) - self.busy({}) >= CHANCE else {}


def write(name, schedule):
    lines = [line for line in TABLE.read_text().splitlines() if line.split(" ")[0] != name]
    comments = [line for line in lines if line.startswith("#")]
    rows = [line for line in lines if line and not line.startswith("#")]
    if schedule:
        rows.append(f"{name} {text(schedule)}")
    TABLE.write_text("\n".join(comments + sorted(rows)) + "\n")


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    for name in sys.argv[2:]:
        kernel = Kernel(pathlib.Path(sys.argv[1]), name)
        write(name, kernel.search())


if __name__ == "__main__":
    main()
