#!/usr/bin/python3
"""Runs the diamond of kernels through sluice-mlir-run, in many orders of its streams, damaged, and with failures.

The order of the kernels is proven by removing it: without any one of the four dependencies HIP allows an order that
gives wrong numbers, while with all of them every order gives the right ones. Then every HIP call of the program fails
once: the tool says which, and nothing stays alive. The last tests are launches inside control flow, incorrect programs,
and command lines that are refused.

usage: check_launches.py TOOL order|failures|programs
"""
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).parent
DIAMOND = HERE / "diamond.mlir"
SEEDS = range(8)
# Each damage: the text in the program that it removes, and the replacement.
DEPENDENCIES = {
    "B on A": ("%b = gpu.launch_func async [%a]", "%b = gpu.launch_func async"),
    "C on A": ("%c = gpu.launch_func async [%ea]", "%c = gpu.launch_func async"),
    "D on B": ("%d = gpu.launch_func async [%b, %c]", "%d = gpu.launch_func async [%c]"),
    "D on C": ("%d = gpu.launch_func async [%b, %c]", "%d = gpu.launch_func async [%b]"),
}
# Lines of --counters that must hold at the end of every run.
CLEAN = ["streams alive: 0", "events alive: 0", "streams destroyed with work left: 0"]


def run(tool, program, *options, clean=CLEAN):
    result = subprocess.run([tool, program, "--counters", *options], capture_output=True, text=True, timeout=60)
    for line in clean:
        if line not in result.stdout.splitlines():
            sys.exit(f"{program} {' '.join(options)}: no '{line}' in:\n{result.stdout}{result.stderr}")
    return result


def is_right_in_order(tool, program, seed):
    """True if the numbers are right. The same seed gives the same answer."""
    codes = [run(tool, program, "--emulator", f"stream_order={seed}").returncode for _ in range(2)]
    if codes not in ([0, 0], [1, 1]):
        sys.exit(f"{program}, order {seed}: exit codes {codes}")
    return codes[0] == 0


def check_right(tool, program):
    for order in ["concurrent", *SEEDS]:
        result = run(tool, program, "--emulator", f"stream_order={order}")
        if result.returncode != 0 or "main returned 0" not in result.stdout:
            sys.exit(f"{program} is wrong in order {order}: {result.stdout}{result.stderr}")


def damage(folder, text, instead):
    """The diamond with one text, which occurs once in it, replaced by another."""
    program = DIAMOND.read_text(encoding="utf-8")
    if program.count(text) != 1:
        sys.exit(f"'{text}' is not in the program exactly once")
    damaged = pathlib.Path(folder, "damaged.mlir")
    damaged.write_text(program.replace(text, instead), encoding="utf-8")
    return damaged


def check_order(tool):
    check_right(tool, DIAMOND)
    with tempfile.TemporaryDirectory() as folder:
        for name, (dependency, without) in DEPENDENCIES.items():
            damaged = damage(folder, dependency, without)
            wrong = next((seed for seed in SEEDS if not is_right_in_order(tool, damaged, seed)), None)
            if wrong is None:
                sys.exit(f"without the dependency of {name} no order gives wrong numbers")
            print(f"without the dependency of {name}: wrong numbers in order {wrong}")


def check_failures(tool):
    calls = int(re.search(r"^HIP calls: (\d+)$", run(tool, DIAMOND).stdout, re.MULTILINE).group(1))
    failed = set()
    for number in range(calls):
        result = run(tool, DIAMOND, "--fail-call", str(number), "--emulator", f"stream_order={number}")
        message = re.fullmatch(r"sluice-mlir-run: (hip\w+) failed with hipErrorUnknown \(999\)\n", result.stderr)
        if result.returncode != 3 or not message or "main returned" in result.stdout:
            sys.exit(f"call {number}: exit code {result.returncode}, message: {result.stderr}")
        failed.add(message.group(1))
    result = run(tool, DIAMOND, "--fail-call", str(calls))
    if result.returncode != 0:
        sys.exit(f"the program makes {calls} calls, but call {calls} fails: {result.stderr}")
    expected = {"hipHostRegister", "hipHostUnregister", "hipModuleLoadData", "hipModuleGetFunction", "hipModuleUnload",
                "hipModuleLaunchKernel", "hipStreamCreateWithFlags", "hipStreamSynchronize", "hipStreamDestroy",
                "hipStreamWaitEvent", "hipEventCreateWithFlags", "hipEventRecord", "hipEventDestroy"}
    if failed != expected:
        sys.exit(f"entry points that failed: {sorted(failed)}, not {sorted(expected)}")
    print(f"each of {calls} calls of {len(failed)} entry points failed once")


def check_programs(tool):
    check_right(tool, HERE / "loop.mlir")

    def expect(result, code, message):
        if result.returncode != code or not re.search(message, result.stderr):
            sys.exit(f"exit code {result.returncode}, not {code} and '{message}': {result.stderr}")

    with tempfile.TemporaryDirectory() as folder:
        expect(run(tool, damage(folder, "func.call @drop(%md) : (memref<64xi32>) -> ()", "")), 3,
               "^sluice-mlir-run: the program has left 0 streams, 0 events and 1 registered memories$")
        # Threads past the end of the memory: the next wait returns the kernel's fault, with its report.
        wide = damage(folder, "%d = gpu.launch_func async [%b, %c] @kernels::@subtract blocks in (%c1, %c1, %c1) "
                      "threads in (%c64, %c1, %c1)", "%c128 = arith.constant 128 : index %d = gpu.launch_func async "
                      "[%b, %c] @kernels::@subtract blocks in (%c1, %c1, %c1) threads in (%c128, %c1, %c1)")
        result = run(tool, wide)
        expect(result, 3, r"sluice-mlir-run: hipStreamSynchronize failed with hipErrorIllegalAddress \(700\)\n$")
        expect(result, 3, r'"kind": *"global_out_of_bounds"')
        expect(run(tool, damage(folder, "func.func @main()", "func.func @other()"), clean=[]), 2,
               r"the program needs a function 'main' of type \(\) -> i32")
        expect(run(tool, damage(folder, "gpu.wait [%d]", "gpu.dealloc [%d] %md : memref<64xi32>"), clean=[]), 2,
               "takes an async token, but only gpu.launch_func, gpu.wait and sluice.record_event")
    expect(run(tool, DIAMOND, "--chip", "gfx1100", clean=[]), 2, "chip 'gfx1100' is not in the chip table")
    expect(run(tool, DIAMOND, "--device", "gpu", clean=[]), 3, "--device is 'gpu'; it must be emulated or hip:N")
    expect(run(tool, DIAMOND, "--emulator", "speed=1", clean=[]), 3, "the emulator has no setting speed=1")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    {"order": check_order, "failures": check_failures, "programs": check_programs}[sys.argv[2]](sys.argv[1])
