#!/usr/bin/python3
"""Mutation testing: changes what the library consists of in small ways and reports what no test notices.

Each mutant is one change: another comparison or sign, a constant one more or less, only one side of && or ||, a condition
negated or a check left out, a statement left out, true for false. All mutants of a file are compiled into one copy of it,
selected by an environment variable, so that a mutant costs a run of the tests but not a build. The tests are quick ones
that cover the folder, cheapest first; one that fails, or runs much longer than usual, kills the mutant.

Prints survivors, and the numbers of mutants in total, killed, surviving and equivalent (equivalent.txt next to this
script gives the reasons). Exits with 1 if there are survivors. Macros, constexpr variables and default member initialisers are not
mutated.

usage: mutate.py [options] [FILE or FOLDER]...
"""
import argparse
import concurrent.futures
import hashlib
import os
import pathlib
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time

import builds

ROOT = pathlib.Path(__file__).resolve().parents[2]
EQUIVALENT = pathlib.Path(__file__).resolve().parent / "equivalent.txt"

# The tests of a folder, cheapest first: all together take seconds.
TESTS = {
    "src/abi": ["abi_checks_test", "abi_test", "abi_launch_order_test", "abi_memory_test"],
    "src/features": ["features_list_test", "abi_checks_test", "runtime_test", "reference_test", "abi_test"],
    "src/tensors": ["tensors_test", "abi_checks_test", "abi_test"],
    "src/package": ["package_test", "package_code_object_test", "pack_page_reader", "pack_page", "runtime_test", "abi_test"],
    "src/runtime": ["runtime_test", "abi_test", "abi_launch_order_test", "abi_memory_test"],
}
# For files that these tests do not cover, or that only other tests cover.
FILE_TESTS = {
    "src/abi/context.cpp": ["abi_test", "abi_memory_test", "abi_finds_hip", "abi_finds_emulator"],
    "src/package/code_object.cpp": ["package_code_object_test"],
    "src/package/code_object.h": ["package_code_object_test"],
    "src/package/msgpack.cpp": ["package_code_object_test"],
    "src/runtime/device.cpp": ["runtime_test", "abi_test", "abi_contents_test"],
    "src/runtime/library.cpp": ["abi_test", "abi_finds_hip", "abi_finds_emulator"],
}
MEMORY_BYTES = 8 << 30


def read_equivalents(path):
    """{mutant: reason}: a line with the mutant, then one with a tab and the reason."""
    equivalents, mutant = {}, None
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        if not line[0].isspace():
            mutant = line
        elif mutant is None:
            sys.exit(f"{path}:{number}: a reason without a mutant")
        else:
            equivalents[mutant] = line.strip()
            mutant = None
    if mutant is not None:
        sys.exit(f"{path}: no reason for {mutant}")
    return equivalents


def limit():
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY_BYTES, MEMORY_BYTES))


def passes(command, folder, number, seconds):
    """Whether a test passes in time with this mutant; all processes that it started end with it."""
    nothing = subprocess.DEVNULL
    process = subprocess.Popen(command, cwd=folder, env={**os.environ, "SLUICE_MUTANT": str(number)}, stdin=nothing,
                               stdout=nothing, stderr=nothing, start_new_session=True, preexec_fn=limit)
    try:
        return process.wait(seconds) == 0
    except subprocess.TimeoutExpired:
        return False
    finally:
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        process.wait()


class FileRun:
    """One file: its mutants, and which of them survive."""

    def __init__(self, build, root, path, names, options):
        self.root, self.path, self.options = root, path, options
        self.shown = str(path.relative_to(root))
        self.tests = build.tests(names)
        self.build = build

    def run(self, equivalents):
        """(mutants that ran, survivors, keys of all mutants of the file)"""
        with tempfile.TemporaryDirectory(prefix="sluice_mutants_") as folder:
            programs = builds.MutatedPrograms(self.build, self.root, pathlib.Path(folder), self.path, self.tests)
            found = programs.find()
            keys = {mutant.key for mutant in found}
            chosen = [mutant for mutant in found if self.is_chosen(mutant, equivalents)]
            if self.options.list:
                for mutant in chosen:
                    print(mutant)
                return chosen, [], keys
            if not chosen:
                return [], [], keys
            compiled = programs.compile(found)
            left_out = len(chosen)
            chosen = [mutant for mutant in chosen if mutant in compiled]
            left_out -= len(chosen)
            programs.link()
            commands = self.timed(programs.commands())
            if not commands:
                sys.exit(f"mutate.py: {self.shown} is in none of the tests")
            with concurrent.futures.ThreadPoolExecutor(self.options.jobs) as pool:
                try:
                    survived = list(pool.map(lambda mutant: self.survives(mutant, commands), chosen))
                except BaseException:
                    pool.shutdown(cancel_futures=True)
                    raise
            survivors = [mutant for mutant, alive in zip(chosen, survived) if alive]
            for mutant in survivors:
                print(f"survived: {mutant}")
            note = f" ({left_out} more do not compile)" if left_out else ""
            print(f"{self.shown}: {len(chosen)} mutants{note}, {len(survivors)} survivors", flush=True)
            return chosen, survivors, keys

    def is_chosen(self, mutant, equivalents):
        if mutant.key in equivalents and not self.options.all:
            return False
        if self.options.match and not re.search(self.options.match, str(mutant)):
            return False
        # By the mutant's text, not by its place: a new line above it does not matter.
        digest = int.from_bytes(hashlib.sha256(mutant.key.encode()).digest()[:4], "big")
        return digest % 100 < self.options.share

    def timed(self, commands):
        """The tests with the time that each may take. Without a mutant they pass."""
        timed = []
        for name, command, folder in commands:
            start = time.monotonic()
            if not passes(command, folder, 0, 600):
                sys.exit(f"mutate.py: {name} fails without any mutant of {self.shown}")
            timed.append((command, folder, 3 + 10 * (time.monotonic() - start)))
        return timed

    @staticmethod
    def survives(mutant, commands):
        return all(passes(command, folder, mutant.number, seconds) for command, folder, seconds in commands)


def files_of(paths):
    files = []
    for path in paths:
        path = pathlib.Path(path).resolve()
        files += sorted(p for p in path.iterdir() if p.suffix in (".cpp", ".h")) if path.is_dir() else [path]
    for file in files:
        if not file.is_file() or str(file.parent.relative_to(ROOT)) not in TESTS:
            sys.exit(f"mutate.py: {file} is not in {', '.join(TESTS)}")
    return files


def tests_of(file):
    return FILE_TESTS.get(str(file)) or TESTS[str(file.parent)]


def read_options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, usage=argparse.SUPPRESS)
    parser.add_argument("paths", nargs="*", help="files or folders; all three folders if none is given")
    parser.add_argument("--build", default=ROOT / "build/dev", help="build tree (build/dev)")
    parser.add_argument("--jobs", type=int, default=1, help="mutants at a time (1)")
    parser.add_argument("--tests", nargs="+", help="CTest names of the tests to run instead of those of the folder")
    parser.add_argument("--match", help="only mutants whose printed line has this regular expression")
    parser.add_argument("--share", type=int, default=100, help="percent of the mutants, always the same ones (100)")
    parser.add_argument("--all", action="store_true", help="also those that equivalent.txt says change nothing")
    parser.add_argument("--list", action="store_true", help="print the mutants and run nothing")
    return parser.parse_args()


def main():
    # This also deletes the folder of the mutants.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("mutate.py: stopped"))
    options = read_options()
    files = files_of(options.paths or [ROOT / folder for folder in TESTS])
    equivalents = read_equivalents(EQUIVALENT)
    build = builds.Build(options.build)
    names = {file: options.tests or tests_of(file.relative_to(ROOT)) for file in files}
    all_tests = build.tests(sorted({name for file_tests in names.values() for name in file_tests}))
    build.make(sorted({word for _, command, _ in all_tests for word in builds.targets_of(build, command)}))

    counts, known = {}, set()
    for file in files:
        ran, survivors, keys = FileRun(build, ROOT, file, names[file], options).run(equivalents)
        known |= keys
        folder = counts.setdefault(str(file.parent.relative_to(ROOT)), [0, 0, 0])
        folder[0] += len(ran)
        folder[1] += len(survivors)
        folder[2] += len(keys & equivalents.keys())
    stale = [key for key in equivalents if key not in known and ROOT / key.split(":")[0] in files]
    for key in stale:
        print(f"equivalent.txt has no longer a mutant for: {key}")
    if not options.list:
        for folder, (ran, survived, equivalent) in counts.items():
            print(f"{folder}: {ran} mutants, {ran - survived} killed, {survived} survived, {equivalent} change nothing")
    sys.exit(1 if stale or any(survived for _, survived, _ in counts.values()) else 0)


if __name__ == "__main__":
    main()
