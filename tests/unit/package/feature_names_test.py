#!/usr/bin/python3
"""Checks that the page of the pack names the features of kernels that src/package/feature_names.h has, and no others.

usage: feature_names_test.py PAGE HEADER
"""
import pathlib
import re
import sys

page, header = (pathlib.Path(path).read_text(encoding="utf-8") for path in sys.argv[1:])
attention, cache_operations = (set(re.findall(r'constexpr char (\w+)\[\] = "\1";', part))
                               for part in header.split("// Cache operations only.\n"))
assert attention and cache_operations, "the header has no names: nothing would be checked"

table = page[page.index("| feature | of a plan or a call"):].split("\n\n")
rows = [line.split("|")[1] for line in table[0].splitlines()[2:]]
on_page = set(re.findall(r"`(\w+)`", " ".join(rows)))
assert on_page == attention, f"the page's table and the header differ in {on_page ^ attention}"

# The paragraph after the table; some of its names are those of attention.
on_page = set(re.findall(r"`(\w+)`", table[1])) - {"kv_append", "kv_copy", "append_step", "merge_states"} - attention
assert on_page == cache_operations, f"the page's paragraph and the header differ in {on_page ^ cache_operations}"
