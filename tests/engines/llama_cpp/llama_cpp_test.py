#!/usr/bin/python3
"""The commands of docs/examples/llama_cpp/README.md, run as written, and their output.

usage: llama_cpp_test.py SOURCE BUILD WORK CASE

WORK gets what the page's reader has: docs/ and build/. An installation of BUILD replaces the first two commands, which build and
install Sluice. Commands that fetch run once. If they cannot reach the network, the exit status is 77: skipped, with the reason.
"""
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

SKIPPED = 77
FIRST = ["./dev build release", "cmake --install build/release --prefix build/installed"]


class Page:
    def __init__(self, source):
        self.text = (source / "docs/examples/llama_cpp/README.md").read_text(encoding="utf-8")

    def block(self, name):
        """The lines of code below <!-- NAME -->."""
        return re.search(rf"<!-- {name} -->\n```\w*\n(.*?)```", self.text, re.DOTALL).group(1).splitlines()


class Folder:
    """Where the commands run."""

    def __init__(self, source, build, work):
        self.work = work
        work.mkdir(parents=True, exist_ok=True)
        docs = work / "docs"
        if not docs.is_symlink():
            docs.symlink_to(source / "docs")
        installed = subprocess.run(["cmake", "--install", build, "--prefix", work / "build/installed"], capture_output=True,
                                   text=True)
        if installed.returncode != 0:
            sys.exit(f"Sluice cannot be installed:\n{installed.stderr}")
        launcher = shutil.which("ccache")
        launchers = {f"CMAKE_{language}_COMPILER_LAUNCHER": launcher for language in ("C", "CXX")} if launcher else {}
        self.environment = {**os.environ, **launchers, "CMAKE_GENERATOR": "Ninja"}

    def run(self, *lines, **variables):
        return subprocess.run(["bash", "-c", "\n".join(lines)], cwd=self.work, capture_output=True, text=True,
                              env={**self.environment, **variables})

    def must(self, *lines, **variables):
        done = self.run(*lines, **variables)
        if done.returncode != 0:
            sys.exit("\n".join((*lines, done.stdout, done.stderr)))
        return done

    def fetch(self, line):
        stamp = self.work / "build" / f"fetched-{hashlib.sha256(line.encode()).hexdigest()[:12]}"
        if stamp.exists():
            return
        done = self.run(line)
        if done.returncode != 0:
            print(f"SKIPPED: {line}: {(done.stderr.strip() or 'no message').splitlines()[-1]}", file=sys.stderr)
            sys.exit(SKIPPED)
        stamp.touch()


def prepare(page, folder):
    """All commands but the last, which generates."""
    lines = page.block("commands")
    if lines[:2] != FIRST:
        sys.exit(f"the page begins with {lines[:2]}, not with {FIRST}")
    for line in lines[2:-1]:
        if re.search(r"\bpip (install|download) ", line):
            folder.fetch(line)
        else:
            folder.must(line)


def expect(is_so, what, *texts):
    if not is_so:
        sys.exit("\n".join((what, *texts)))


def text(page, folder):
    """The text is the stored one, byte for byte, and Sluice has computed all attention, or else the CPU backend."""
    command = page.block("commands")[-1]
    expected = json.loads((folder.work / "docs/examples/jargon_lm/model/expected.json").read_text(encoding="utf-8"))
    config = json.loads((folder.work / "docs/examples/jargon_lm/model/config.json").read_text(encoding="utf-8"))
    count = expected["greedy_bytes"]
    expect(command.endswith(f' "{expected["prompt"]}" {count}'), "the page generates something else:", command)
    ours, cpu = folder.must(command), folder.must(re.sub(r"GGML_BACKEND_PATH=\S+ ", "", command))
    for name, done in (("Sluice", ours), ("CPU", cpu)):
        same = sum(a == b for a, b in zip(done.stdout, expected["greedy_text"]))
        expect(done.stdout == expected["greedy_text"] + "\n",
               f"{name}: {same - len(expected['prompt'])} of {count} bytes are as expected:", done.stdout)
        print(f"{name}: {count} of {count} bytes; {done.stderr.strip()}")
    # A step for the prompt, which gives the first byte, and one for each further byte.
    counted = f"attention by Sluice: {config['num_layers'] * count} nodes, 2 plans, "
    expect(ours.stderr.startswith(counted), ours.stderr)
    for cache_type in ("q8_0", "q4_0"):
        blocks = folder.must(f"{command} {cache_type}")
        expect(blocks.stdout == ours.stdout, f"{cache_type}: another text:", blocks.stdout)
        expect(blocks.stderr.startswith(counted), f"{cache_type}: ", blocks.stderr)
        print(f"{cache_type}: the same text; {blocks.stderr.strip()}")
    refused = folder.run(f"{command} q5_0")
    expect(refused.returncode == 1 and "it must be f16, q8_0 or q4_0" in refused.stderr, "a type that does not exist for a cache:", refused.stderr)
    expect(cpu.stderr == "attention without Sluice\n", cpu.stderr)
    shown = "\n".join(page.block("text")) + "\n"
    expect(ours.stdout + ours.stderr == shown, "the page does not show", ours.stdout + ours.stderr)


def attention(page, folder):
    """Nodes of many kinds, by both backends, against double precision."""
    line, = page.block("check")
    done = folder.must(line)
    print(done.stdout, end="")
    summary = done.stdout.splitlines()[-1]
    expect(f"`{summary}`" in page.text, "the page does not say", summary)
    # name, backend, share of the bound, error with Q rounded, error with Q as it is, the CPU backend's error
    for names, prefix, count in (("(?!BF16|Q\\d_0|no keys|scale of 0 )", "", "of the {} nodes of F16"),
                                 ("Q\\d_0", "blocks, ", "of the {} nodes of Q8_0 and Q4_0")):
        rows = re.findall(rf"^{names}.* Sluice +\S+ +(\S+e\S+) +(\S+) +\S+$", done.stdout, re.MULTILINE)
        for row, errors in zip(("Q rounded in the reference too", "Q as it is"), zip(*rows)):
            line = f"| {prefix}{row} | {min(errors, key=float)} to {max(errors, key=float)} |"
            expect(line in page.text, "the page does not say", line)
        expect(count.format(len(rows)) in page.text, "the page does not give the number of nodes:", count.format(len(rows)))


def tools(page, folder):
    """A tool of llama.cpp, in a default build, gives the same text, and only with -dev do Sluice's kernels compute it."""
    *build, command = page.block("tools")
    for line in build:
        folder.must(line)
    expected = json.loads((folder.work / "docs/examples/jargon_lm/model/expected.json").read_text(encoding="utf-8"))
    for words, by_sluice in ((command, True), (command.replace(" -dev Sluice", ""), False)):
        done = folder.must(f"{words} -v < /dev/null", GGML_SCHED_DEBUG="1")
        parts = len(re.findall(r"SPLIT #\d+: Sluice", done.stdout + done.stderr))
        expect((parts > 0) == by_sluice, f"{words}: {parts} parts of graphs by Sluice", done.stderr[-2000:])
        # The tool's own logger may lose what is queued when it ends: up to 30 bytes were seen, with and without Sluice.
        texts = [folder.must(f"{words} < /dev/null").stdout.rstrip("\n") for _ in range(5)]
        for text in texts:
            expect(expected["greedy_text"].startswith(text), f"{words}: another text:", text)
        expect(max(map(len, texts)) >= 0.8 * len(expected["greedy_text"]), f"{words}: most of the text is missing:", *texts)
        print(f"{'with' if by_sluice else 'without'} -dev: {parts} parts of the first graphs by Sluice")


def failures(page, folder):
    """Every failure gives a status and a message."""
    line = page.block("check")[0].replace("check_attention", "check_failures")
    print(folder.must(line).stdout, end="")
    done = folder.must(page.block("commands")[-1].replace("DEVICE=emulated", "DEVICE=emulator"))
    expect("the device is 'emulator'; it must be 'emulated', or 'hip:N'" in done.stderr, "a device that does not exist:", done.stderr)
    expect("attention without Sluice" in done.stderr, "a device that does not exist:", done.stderr)
    print(done.stderr, end="")


def main():
    source, build, work = (pathlib.Path(word).resolve() for word in sys.argv[1:4])
    page, folder = Page(source), Folder(source, build, work)
    prepare(page, folder)
    {"text": text, "attention": attention, "failures": failures, "tools": tools}[sys.argv[4]](page, folder)


if __name__ == "__main__":
    main()
