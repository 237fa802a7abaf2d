#!/usr/bin/python3
"""Checks that a run through sluice.hpp compiles to as many calls and instructions as in C, or
fewer.

usage: cost.py CXX INCLUDE_FOLDER
"""
import pathlib
import re
import subprocess
import sys
import tempfile

PAIRS = {
    "run": (
        "sluice_error e; e.struct_size = sizeof e; e.code = SLUICE_OK;"
        " return sluice_attention_run(p, a, l, &e) == SLUICE_OK;",
        "const sluice::Plan &plan = *reinterpret_cast<sluice::Plan *>(&p); return bool(plan.run(*a, *l));"),
    "append": (
        "sluice_error e; e.struct_size = sizeof e; e.code = SLUICE_OK;"
        " return sluice_cache_append(c, n, l, &e) == SLUICE_OK;",
        "const sluice::Context &context = *reinterpret_cast<sluice::Context *>(&c);"
        " return bool(context.append(*n, *l));"),
    "support": (
        "sluice_support x = {}; x.struct_size = sizeof x; sluice_error e; e.struct_size = sizeof e; e.code = SLUICE_OK;"
        " const bool found = sluice_attention_support(c, t, &x, &e) == SLUICE_OK;"
        " if (found) *s = x; return found;",
        "sluice::Sized<sluice_support> x; sluice::Error e;"
        " const bool found = sluice_attention_support(c, t, &x, e.c()) == SLUICE_OK;"
        " if (found) *s = x; return found;"),
}
SIGNATURE = ("bool {}(sluice_plan *p, sluice_context *c, const sluice_attention_args *a, const sluice_append_args *n,"
             " const sluice_launch *l, const sluice_attention *t, sluice_support *s)"
             " {{ (void)p; (void)c; (void)a; (void)n; (void)l; (void)t; (void)s; {} }}\n")


def instructions(assembly, function):
    """The mnemonics of a function."""
    body = re.search(rf"^{function}:[^\n]*\n(.*?)\.size\s+{function},", assembly, re.MULTILINE | re.DOTALL).group(1)
    return re.findall(r"^\s+([a-z]\w*)", body, re.MULTILINE)


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    source = '#include <sluice/sluice.hpp>\nextern "C" {\n'
    for name, (c, cpp) in PAIRS.items():
        source += SIGNATURE.format(f"{name}_c", c) + SIGNATURE.format(f"{name}_cpp", cpp)
    with tempfile.TemporaryDirectory() as work:
        file = pathlib.Path(work) / "cost.cpp"
        file.write_text(source + "}\n")
        assembly = subprocess.run([sys.argv[1], "-std=c++17", "-O2", "-Wno-array-bounds", f"-I{sys.argv[2]}", "-S",
                                   "-o", "-", file], check=True, capture_output=True, text=True).stdout
    dearer = False
    for name in PAIRS:
        c, cpp = instructions(assembly, f"{name}_c"), instructions(assembly, f"{name}_cpp")
        calls = [sum(name.startswith(("call", "jmp")) for name in code) for code in (c, cpp)]
        print(f"{name}: {len(c)} instructions in C, {len(cpp)} in C++; calls {calls[0]}, {calls[1]}")
        dearer |= not c or len(cpp) > len(c) or calls[0] != calls[1]
    sys.exit("the C++ header costs something" if dearer else 0)


if __name__ == "__main__":
    main()
