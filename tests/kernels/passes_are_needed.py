#!/usr/bin/python3
"""Checks that each pass of the kernel pipeline is needed, by running the pipeline without it.

Without a pass, generation must fail or the machine code must differ, for at least one shipped kernel; a pass that
changes nothing for any of them does not belong in the pipeline. The passes and the kernels come from the generator.
Prints a table; --first stops at the first kernel that changes, else the kernels, all if none is named, are generated
without each pass.

usage: passes_are_needed.py KERNELGEN OBJDUMP [--first] [KERNEL...]
"""
import concurrent.futures
import functools
import hashlib
import os
import subprocess
import sys
import tempfile
import threading

CHIPS = "gfx942", "gfx950"


def run(*command):
    return subprocess.run(command, capture_output=True, text=True, check=False)


class Generator:
    def __init__(self, kernelgen, objdump, folder):
        self.kernelgen, self.objdump, self.folder = kernelgen, objdump, folder

    def lines(self, *arguments):
        result = run(self.kernelgen, *arguments)
        if result.returncode != 0:
            raise RuntimeError(result.stderr)
        return result.stdout.split()

    @functools.cache
    def variant(self, kernel):
        """The arguments for a kernel, on the first chip that can have it: some have other 8-bit numbers."""
        for chip in CHIPS:
            arguments = "--variant", kernel, "--chips", chip
            if run(self.kernelgen, *arguments, "--list-passes").returncode == 0:
                return arguments
        raise RuntimeError(f"{kernel} cannot be generated for any of {CHIPS}")

    @functools.cache
    def passes_of(self, kernel):
        return self.lines(*self.variant(kernel), "--list-passes")

    def code(self, kernel, disabled=None):
        """(machine code as text, None) or (None, the error)."""
        file = os.path.join(self.folder, f"{kernel}-{disabled}.co")
        result = run(self.kernelgen, *self.variant(kernel), "-o", file,
                     *(["--disable-pass", disabled] if disabled else []))
        if result.returncode < 0:
            return None, "a signal"
        if result.returncode != 0:
            return None, result.stderr.strip().splitlines()[-2:][0]  # above the generator's own last line
        return run(self.objdump, "-d", "--no-leading-addr", file).stdout.split("\n", 3)[3], None


def compare(intact, code, error):
    """The effect of leaving the pass out on a kernel, in words; empty if the code is the same."""
    if error is not None:
        return f"fails: {error}"
    if code == intact:
        return None
    instructions = [sum(line.startswith("\t") for line in text.splitlines()) for text in (intact, code)]
    digest = hashlib.sha256(code.encode()).hexdigest()[:8]
    return f"differs: {instructions[0]} instructions become {instructions[1]}, hash {digest}"


def examine(generator, name, kernels, intact, first_only):
    noticed = []
    for kernel in kernels:
        if name not in generator.passes_of(kernel):
            continue
        effect = compare(intact(kernel), *generator.code(kernel, name))
        if effect is not None:
            noticed.append(f"{kernel} {effect}")
            if first_only:
                break
    return name, noticed


def main(kernelgen, objdump, first_only, kernels):
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(2) as pool:
        generator = Generator(kernelgen, objdump, folder)
        kernels = kernels or generator.lines("--list")
        passes = list(dict.fromkeys(name for kernel in (kernels[:1] if first_only else kernels)
                                    for name in generator.passes_of(kernel)))
        cache, lock = {}, threading.Lock()

        def intact(kernel):
            with lock:  # else two threads write one file
                if kernel not in cache:
                    cache[kernel] = generator.code(kernel)[0]
                if cache[kernel] is None:
                    raise RuntimeError(f"{kernel} cannot be generated at all")
                return cache[kernel]

        print("| pass left out | kernels that notice | the first of them |\n| --- | ---: | --- |")
        useless = []
        for name, noticed in pool.map(lambda name: examine(generator, name, kernels, intact, first_only), passes):
            print(f"| `{name}` | {len(noticed)}{' or more' if first_only and noticed else ''} | "
                  f"{noticed[0] if noticed else 'none'} |", flush=True)
            if not noticed:
                useless.append(name)
    for name in useless:
        print(f"FAILED: no kernel changes without '{name}'")
    return 1 if useless or not passes else 0


if __name__ == "__main__":
    first_only = sys.argv[3:4] == ["--first"]
    named = sys.argv[4 if first_only else 3:]
    if len(sys.argv) < 3 or any(name.startswith("-") for name in named):
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1], sys.argv[2], first_only, named))
