#!/usr/bin/python3
"""Prints tables: the size of an installation, and how long a program that loads it waits for its first result.

usage: first_result.py BUILD [FIRST_RESULT]

Installs the library and the emulator of the build folder, stripped, into a temporary folder, and runs first_result
there once to have all files in memory, and 11 times for the figures. Without it only the sizes.
"""
import pathlib
import statistics
import subprocess
import sys
import tempfile

RUNS = 11


def output(*command):
    return subprocess.run([str(part) for part in command], check=True, stdout=subprocess.PIPE, text=True).stdout


def processor():
    lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
    return next((line.partition(": ")[2] for line in lines if line.startswith("model name")), "unknown processor")


def megabytes(path):
    return f"{path.stat().st_size / 1e6:.1f} MB"


def print_sizes(build, library, emulator):
    symbols = [line for line in output("nm", "--dynamic", "--defined-only", library).splitlines() if " T " in line]
    print("| installed | size |\n| --- | ---: |")
    print(f"| `libsluice.so.2`, with its kernels | {megabytes(library)} |")
    print(f"| of it the kernels | {megabytes(build / 'kernels/sluice.pack')} |")
    print(f"| `libsluice_emulator.so.1` | {megabytes(emulator)} |")
    print(f"| functions that `libsluice.so.2` exports | {len(symbols)} |", flush=True)


def print_times(program, library):
    times = {}
    for run in range(RUNS + 1):
        for line in output(program, library).splitlines():
            step, time = line.split("\t")
            if run > 0:
                times.setdefault(step, []).append(float(time) / 1000)
    print("\n| step | ms, median (least-most) |\n| --- | --- |")
    for step, values in times.items():
        print(f"| {step} | {statistics.median(values):.2f} ({min(values):.2f}-{max(values):.2f}) |")
    print(f"\n{RUNS} runs on {processor()}, load {pathlib.Path('/proc/loadavg').read_text().split()[0]}")


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    build = pathlib.Path(sys.argv[1])
    with tempfile.TemporaryDirectory() as prefix:
        for component in ("runtime", "emulator"):
            output("cmake", "--install", build, "--prefix", prefix, "--component", component, "--strip")
        folder = pathlib.Path(prefix) / "lib"
        print_sizes(build, folder / "libsluice.so.2", folder / "libsluice_emulator.so.1")
        for program in sys.argv[2:]:
            print_times(program, folder / "libsluice.so.2")


if __name__ == "__main__":
    main()
