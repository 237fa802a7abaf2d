#!/usr/bin/env python3
"""Runs the commands of docs/examples/candle/README.md, and compares what they print with what the page shows.

usage: candle_test.py LIBRARY WORK

LIBRARY is a build folder of Sluice, WORK a folder for cargo's output. cargo is the one on the PATH. Exits with status 77 if
it is missing or too old, or if the crates cannot be fetched.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[3]
FOLDER = ROOT / "docs/examples/candle"
LIBRARY_ON_PAGE = "$PWD/build/dev"
SKIPPED = 77
# Commands, each with the output that the page shows for it, if any.
COMMAND = re.compile(r"```sh\n(?P<command>.*?)```(?:(?:(?!```).)*?It prints\n\n```text\n(?P<output>.*?)```)?", re.DOTALL)


def skip(reason):
    print(f"skipped: {reason}")
    sys.exit(SKIPPED)


def number_of(version):
    return tuple(int(part) for part in re.search(r"(\d+)\.(\d+)", version).groups())


def check_toolchain():
    if not shutil.which("cargo") or not shutil.which("rustc"):
        skip("cargo or rustc is not on the PATH")
    rust = subprocess.run(["rustc", "--version"], capture_output=True, text=True, check=True).stdout.strip()
    needed = re.search(r'^rust-version = "(.*)"', (FOLDER / "Cargo.toml").read_text(), re.MULTILINE)[1]
    if number_of(rust) < number_of(needed):
        skip(f"candle needs Rust {needed}; on the PATH is {rust}")


def fetch(environment):
    """Cargo.lock pins the crates. If it does not match Cargo.toml, the test fails, with or without a network."""
    command = ["cargo", "fetch", "--locked", "--manifest-path", str(FOLDER / "Cargo.toml")]
    fetched = subprocess.run(command, capture_output=True, text=True, env=environment)
    if "--locked" in fetched.stderr:
        sys.exit(fetched.stderr)
    if fetched.returncode != 0:
        skip(f"the crates cannot be fetched: {fetched.stderr.strip().splitlines()[-1].strip()}")


def comparable(text):
    """The last digits of the difference of logits depend on the host's vector instructions."""
    return re.sub(r"(?<=first logits )0\.\d{5}", "0.#####", text)


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    library, work = (pathlib.Path(argument).resolve() for argument in sys.argv[1:])
    check_toolchain()
    environment = os.environ | {"CARGO_TARGET_DIR": str(work / "target")}
    fetch(environment)
    environment |= {"CARGO_NET_OFFLINE": "true"}
    commands = list(COMMAND.finditer((FOLDER / "README.md").read_text(encoding="utf-8")))
    if [command["output"] is not None for command in commands] != [True, False]:
        sys.exit("the page must have a command with its output, and then the tests")
    for block in commands:
        command = block["command"]
        print(command, end="", flush=True)
        if LIBRARY_ON_PAGE not in command:
            sys.exit(f"the command does not name {LIBRARY_ON_PAGE}")
        command = command.replace(LIBRARY_ON_PAGE, f"'{library}'")
        done = subprocess.run(["bash", "-ec", command], cwd=ROOT, env=environment, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"{done.stdout}{done.stderr}")
        print(done.stdout, end="", flush=True)
        if block["output"] and comparable(done.stdout) != comparable(block["output"]):
            sys.exit(f"the page shows\n{block['output']}")


if __name__ == "__main__":
    main()
