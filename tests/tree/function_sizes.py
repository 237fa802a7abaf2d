#!/usr/bin/python3
"""Lists the C and C++ functions and files of the project that are long.

usage: function_sizes.py [--check] ROOT
Without --check: prints how many functions are longer than 60 and than 100 lines, how many files are longer than 500, and
each of them. With --check: fails if a function is longer than 100 lines that is not in MAY_BE_LONG, or if one of these is not.

A function's lines are those between its braces, as clang-tidy's readability-function-size counts them. The sources are
formatted by clang-format, so a function ends with the first brace that is as far in as its first line; nothing is compiled.
A lambda is part of the function around it.
"""
import pathlib
import re
import sys

FOLDERS = ("bindings", "docs", "include", "kernels", "src", "tests")
SUFFIXES = {".c", ".cpp", ".h", ".hpp", ".inc"}
# Functions that may be longer, by place and name: a program as its users write it, or the inputs, the call and the oracle of
# a test that share their strides and places.
MAY_BE_LONG = {
    ("tests/cache_ops/merge_parts_test.cpp", "check_parts"),
    ("tests/copies/copy_kernel.h", "copy_kernel_text"),
    ("tests/features/random_call.cpp", "RandomCall::draw_keys"),
    ("tests/hip_programs/graph_by_hand.cpp", "main"),
}

# What stands before the first parenthesis of a declaration is no function then.
NOT_A_FUNCTION = re.compile(r"^(?![A-Za-z_~])|^(if|for|while|switch|else|do|namespace|struct|class|union|enum|try|catch|return|case"
                            r"|default)\b|[^=!<>r]=[^=]|\[")
NAME = re.compile(r"((?:[\w:]+::)?operator(?:\(\)|[^\w\s(]+)|[~\w:]+(?:<[^()]*>)?)\s*\(")
COMMENT = re.compile(r"\s*(//|/?\*)")
ENDS = re.compile(r"[;{}]\s*(//.*)?$|^\s*(#.*|\w+:)?$")


def first_line(lines, number):
    """The first line of the declaration whose body opens in line `number`."""
    before = number - 1
    while before >= 0 and (COMMENT.match(lines[before]) or not ENDS.search(lines[before])):
        if not COMMENT.match(lines[before]):
            number = before
        before -= 1
    return number


def is_in_list(text):
    """Whether a comma follows the parentheses that are open where the text begins."""
    depth = 1
    for at, character in enumerate(text):
        depth += {"(": 1, ")": -1}.get(character, 0)
        if depth == 0:
            return text[at + 1:].lstrip().startswith(",")
    return False


def functions_of(text):
    """(name, first line from 1, lines) of each function that is not inside another."""
    lines = text.splitlines()
    number = -1
    while number + 1 < len(lines):
        number += 1
        if not lines[number].endswith("{") or COMMENT.match(lines[number]):
            continue
        first = first_line(lines, number)
        declaration = " ".join(line.strip() for line in lines[first:number + 1] if not COMMENT.match(line))
        name = NAME.search(declaration)
        if not name or NOT_A_FUNCTION.search(declaration[:name.end() - 1]) or is_in_list(declaration[name.end():]):
            continue
        indent = re.match(" *", lines[first])[0]
        end = next((n for n in range(number + 1, len(lines)) if lines[n].startswith(indent + "}")), None)
        if end is None:
            continue
        title = re.search(r'"([^"]*)"', declaration)
        yield f'{name[1]} "{title[1]}"' if name[1].startswith("TEST_CASE") and title else name[1], first + 1, end - number
        number = end


def sources(root):
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in SUFFIXES and path.is_file():
                yield path


def main():
    arguments = sys.argv[1:]
    check = "--check" in arguments
    if check:
        arguments.remove("--check")
    if len(arguments) != 1:
        sys.exit(__doc__)
    root = pathlib.Path(arguments[0]).resolve()
    functions, files = [], []
    for path in sources(root):
        text = path.read_text(encoding="utf-8")
        place = path.relative_to(root).as_posix()
        files.append((text.count("\n"), place))
        functions += [(lines, place, first, name) for name, first, lines in functions_of(text)]
    over_100 = [f for f in functions if f[0] > 100]
    if check:
        wrong = [f"{place}:{first}: {name} has {lines} lines; at most 100" for lines, place, first, name in over_100
                 if (place, name) not in MAY_BE_LONG]
        wrong += [f"{place}: {name} is not longer than 100 lines: take it from MAY_BE_LONG" for place, name in sorted(MAY_BE_LONG)
                  if not any((p, n) == (place, name) for _, p, _, n in over_100)]
        if len(functions) < 4000:
            wrong.append(f"only {len(functions)} functions found")
        sys.exit("\n".join(wrong) or 0)
    over_60 = [f for f in functions if f[0] > 60]
    over_500 = [f for f in files if f[0] > 500]
    print(f"{len(functions)} functions, {len(over_60)} over 60 lines, {len(over_100)} over 100; "
          f"{len(files)} files, {len(over_500)} over 500 lines")
    for lines, place, first, name in sorted(over_60, reverse=True):
        print(f"{lines:5} {place}:{first}: {name}")
    for lines, place in sorted(over_500, reverse=True):
        print(f"{lines:5} {place}")


if __name__ == "__main__":
    main()
