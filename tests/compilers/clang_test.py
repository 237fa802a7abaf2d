#!/usr/bin/python3
"""Builds src/ with Clang, warnings as errors, in a build folder of its own.

usage: clang_test.py files|all SOURCE WORK CLANG CLANGXX [LAUNCHER]
files: compiles, without optimisation, the files with compiler-specific code (pragmas, built-in functions, attributes,
assembly). all: builds everything in src/ as it is built with GCC, and runs the emulator's tests of arithmetic with it,
which compare bits.
"""
import concurrent.futures
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys

SPECIFIC = re.compile(r"^\s*#\s*pragma (?!once)|\b__builtin_|__attribute__|\b_Pragma\b|<immintrin\.h>|\basm\b|\[\[gnu::",
                      re.MULTILINE)
INCLUDED = re.compile(r'^\s*#\s*include "([^"]+)"', re.MULTILINE)
# Every vector instruction set against plain code or a model, to the bit.
TESTS = ["emulator_mfma_test", "isa_lanes_test", "isa_matrix_test", "isa_scalar_test", "isa_valu_float_test",
         "isa_valu_integer_test", "isa_valu_mode_test", "isa_valu_modifiers_test", "isa_valu_noise_test"]


def run(*command, **options):
    done = subprocess.run([str(part) for part in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          **options)
    if done.returncode != 0:
        sys.exit(f"{shlex.join(str(part) for part in command)}\n{done.stdout}")
    return done.stdout


def configure(source, work, clang, clangxx, launchers):
    settings = ["-DCMAKE_BUILD_TYPE=Release", "-DCMAKE_C_FLAGS_RELEASE=-O2", "-DCMAKE_CXX_FLAGS_RELEASE=-O2",
                "-DSLUICE_BUILD_KERNELS=OFF", "-DSLUICE_BUILD_DOCS=OFF", "-DSLUICE_BUILD_EXAMPLES=OFF",
                "-DSLUICE_BUILD_TESTS=ON", "-DSLUICE_DEVELOPER_WARNINGS=ON", "-DSLUICE_KERNEL_PACK="]
    settings += [f"-DCMAKE_{language}_COMPILER_LAUNCHER={launcher}" for launcher in launchers for language in ("C", "CXX")]
    run("cmake", "-G", "Ninja", "-S", source, "-B", work, f"-DCMAKE_C_COMPILER={clang}",
        f"-DCMAKE_CXX_COMPILER={clangxx}", *settings)


def is_specific(source, path, seen):
    """Whether a file, or a .inc of src/ that it includes, has such code; headers have little."""
    if path in seen or not path.is_file():
        return False
    seen.add(path)
    text = path.read_text(encoding="utf-8")
    return SPECIFIC.search(text) is not None or any(
        is_specific(source, source / "src" / name, seen) for name in INCLUDED.findall(text) if name.endswith(".inc"))


def compile_files(source, work):
    commands = [entry for entry in json.loads((work / "compile_commands.json").read_text())
                if pathlib.Path(entry["file"]).is_relative_to(source / "src")
                and is_specific(source, pathlib.Path(entry["file"]), set())]
    files = [str(pathlib.Path(entry["file"]).relative_to(source)) for entry in commands]
    for wanted in ("src/emulator/exec/valu/valu_avx512.cpp", "src/emulator/exec/mfma_avx512.cpp"):
        if wanted not in files:
            sys.exit(f"{wanted} is not among the files that are compiled: {files}")

    def one(entry):
        command = shlex.split(entry["command"])
        command[command.index("-o") + 1] = str(work / (pathlib.Path(entry["file"]).name + ".o"))
        run(*command, "-O0", cwd=entry["directory"])

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(one, commands))
    print(f"Clang compiles {len(files)} files: {' '.join(sorted(set(files)))}")


def build_all(work):
    run("cmake", "--build", work, "--target", "src/all", *TESTS)
    for test in TESTS:
        print(f"{test}: {run(work / 'bin' / test).strip().splitlines()[-1]}")


def main():
    if len(sys.argv) not in (6, 7) or sys.argv[1] not in ("files", "all"):
        sys.exit(__doc__)
    source, work = (pathlib.Path(argument).resolve() for argument in sys.argv[2:4])
    configure(source, work, *sys.argv[4:6], sys.argv[6:])
    if sys.argv[1] == "files":
        compile_files(source, work)
    else:
        build_all(work)


if __name__ == "__main__":
    main()
