#!/usr/bin/python3
"""Checks that every kernel and every pass that pages and comments of headers name exists.

usage: check_names.py ROOT KERNELGEN
- A kernel's name is one of `sluice-kernelgen --list`. `*`, `?`, `[ab]`, `{a,b}` and `...` make it a pattern, which matches at
least one of them. The name after `--row` belongs to a kernel that the reader makes.
- A name in backticks that has dashes, and begins like a pass or stands beside the word "pass", is a pass.
- The table of passes in docs/concepts/proofs.md names the passes that kernelgen runs, all of them and in its order; the
picture in docs/concepts/pipeline.md names every pass of kernels/.
"""
import fnmatch
import itertools
import pathlib
import re
import subprocess
import sys

import check_links

KERNEL = re.compile(r"(?<!--row )(?<!\w)(?:attn_fwd|kv_append|append_step|merge_states|kv_copy)_[\w*?\[\]{},.]*[\w*?\]}.]"
                    r"|(?<![\w-])[\w*?{},]*_q\d+_kv\d+_w\d[\w*?]*")
OTHERS_NAMES = {"attn_fwd_params"}  # of aotriton
COMMENT = re.compile(r"//.*")
HEADERS = ("*.h", "*.hpp", "*.td", "*.inc")
PASS = re.compile(r"`([a-z]+(?:-[a-z0-9]+)+)(?::\d)?`")
OWN_PASS = re.compile(r'^def \w+ *: *Pass<"([\w-]+)"', re.MULTILINE)
TABLE = re.compile(r"<!-- passes: begin [^\n]*-->\n(.*?)<!-- passes: end -->", re.DOTALL)


def braces_of(name):
    """The names that {a,b} stands for."""
    parts = re.split(r"\{([^{}]*)\}", name)
    choices = [part.split(",") if odd else [part] for odd, part in zip(itertools.cycle([False, True]), parts)]
    return ["".join(choice) for choice in itertools.product(*choices)]


def is_kernel(name, kernels):
    """Whether a name or pattern is of a kernel; a name that begins with its types lacks attn_fwd_."""
    return all(any(fnmatch.filter(kernels, begin + one.replace("...", "*")) for begin in ("", "attn_fwd_"))
               for one in braces_of(name))


def wrong_kernels(text, kernels):
    """(offset, message) of each name that no kernel has."""
    for match in KERNEL.finditer(text):
        name = match[0] if match[0].endswith("...") else match[0].rstrip(".,")
        before = text[:match.start()]
        if name not in OTHERS_NAMES and not before.endswith("--row ") and not is_kernel(name, kernels):
            yield match.start(), f"no kernel is called {name}"


def wrong_passes(text, passes):
    """(offset, message) of each name that looks like a pass and is none."""
    verbs = {name.split("-")[0] for name in passes}
    for match in PASS.finditer(text):
        beside = text[max(0, match.start() - 7):match.start()] + "|" + text[match.end():match.end() + 6]
        is_named = match[1].split("-")[0] in verbs or re.search(r"\bpass(es)?\s\||\|\s+pass", beside)
        if is_named and match[1] not in passes:
            yield match.start(), f"no pass is called {match[1]}"


def wrong_lists(proofs, pipeline, own, run):
    """Messages about the table of passes that tests leave out, and the picture of the pipeline."""
    table = TABLE.search(proofs)
    shown = re.findall(r"^\| `([\w:-]+)`", table[1], re.MULTILINE) if table else []
    if shown != run:
        yield f"docs/concepts/proofs.md: its table has the passes {' '.join(shown)}; kernelgen runs {' '.join(run)}"
    picture = pipeline.partition("\n```\n")[2].partition("\n```")[0]
    for name in own:
        if not re.search(rf"(?<![\w-]){name}(?![\w-])", picture):
            yield f"docs/concepts/pipeline.md: its picture lacks the pass {name}"


def headers_of(root):
    for folder in ("bindings", "include", "kernels", "src"):
        for pattern in HEADERS:
            yield from sorted((root / folder).rglob(pattern))


def listed(kernelgen, *arguments):
    return subprocess.run([kernelgen, *arguments], check=True, stdout=subprocess.PIPE, text=True).stdout.split()


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    root = pathlib.Path(sys.argv[1]).resolve()
    kernels = listed(sys.argv[2], "--list")
    run = listed(sys.argv[2], "--variant", kernels[0], "--list-passes")
    own = [name for file in sorted((root / "kernels").rglob("Passes.td"))
           for name in OWN_PASS.findall(file.read_text(encoding="utf-8"))]
    passes = {name.partition(":")[0] for name in run} | set(own)
    if len(kernels) < 100 or len(own) < 10:
        sys.exit(f"{len(kernels)} kernels, {len(own)} passes: the check would prove little")

    texts = {path: path.read_text(encoding="utf-8") for path in check_links.pages_of(root)}
    problems = list(wrong_lists(texts[root / "docs/concepts/proofs.md"], texts[root / "docs/concepts/pipeline.md"], own, run))
    for path in headers_of(root):
        lines = path.read_text(encoding="utf-8").splitlines()
        texts[path] = "\n".join("".join(COMMENT.findall(line)) for line in lines)
    for path, text in texts.items():
        for offset, message in sorted((*wrong_kernels(text, kernels), *wrong_passes(text, passes))):
            problems.append(f"{path.relative_to(root)}:{text.count(chr(10), 0, offset) + 1}: {message}")
    if problems:
        sys.exit("\n".join(problems))


if __name__ == "__main__":
    main()
