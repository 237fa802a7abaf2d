#!/usr/bin/python3
"""Checks that the ABI checks find breaks and accept additions, on a library whose header was changed.

usage: break_test.py SOURCE C_COMPILER CXX_COMPILER ENTRY_POINT_SOURCE...

Headers and sources are copied and changed, the entry points compiled again with debug information, and linked into a
library of the same name and versions. It is never loaded, so it may lack the functions that the entry points call.
"""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
HEADERS, MAP = "include/sluice", "src/abi/sluice.map"
LAST_HEADER = f"{HEADERS}/sluice.h"  # includes the others that declare functions
APPEND = (HEADERS, r"\n\} sluice_attention;", "\n  int64_t appended;\n} sluice_attention;")
MINOR = (HEADERS, r"(#define SLUICE_ABI_MINOR) \d+", r"\1 7")


def function(major):
    """A function in the version node of that minor, and an enumerator after the last one."""
    return [
        (HEADERS, r"\n(SLUICE_API uint32_t sluice_abi_version)",
         r"\nSLUICE_API int sluice_appended(void) SLUICE_NOEXCEPT;\n\1"),
        (HEADERS, r"(SLUICE_TRACE_RUN = 2)\b", r"\1, SLUICE_TRACE_APPENDED = 3"),
        (MAP, r"\Z", f"SLUICE_{major}.7 {{\n  global:\n    sluice_appended;\n}} SLUICE_{major};\n"),
        ("src/abi/library.cpp", r"\Z", "int sluice_appended(void) noexcept { return 0; }\n"),
    ]


def copy(source, work, edits):
    for folder in ("include", "src"):
        shutil.copytree(source / folder, work / folder)
    for place, pattern, replacement in edits:
        files = sorted((work / place).glob("*.h")) if place == HEADERS else [work / place]
        total = 0
        for file in files:
            text, count = re.subn(pattern, replacement, file.read_text())
            if count:
                file.write_text(text)
            total += count
        if total != 1:
            sys.exit(f"{place} has {total} places like {pattern}: the test has to follow the source")


def major_of(source):
    headers = "".join(path.read_text() for path in (source / HEADERS).glob("*.h"))
    return re.search(r"#define SLUICE_ABI_MAJOR (\d+)", headers)[1]


def build(work, compiler, sources):
    """All entry points as one source, which is several times faster."""
    library, joined = work / "libsluice.so", work / "src/joined.cpp"
    joined.write_text("".join(f'#include "abi/{name}"\n' for name in sources))
    texts = [f'-D{name}="none"' for name in ("SLUICE_VERSION", "SLUICE_GIT_COMMIT", "SLUICE_COMPILER")]
    subprocess.run([compiler, "-std=c++20", "-O0", "-g", "-fPIC", "-fvisibility=hidden", "-shared",
                    "-DSLUICE_BUILDING_LIBRARY", *texts, f"-I{work}/include", f"-I{work}/src", joined, "-o", library,
                    f"-Wl,-soname,libsluice.so.{major_of(work)}", f"-Wl,--version-script={work / MAP}"], check=True)
    return library


class Change:
    def __init__(self, source, c, cxx, sources, name, edits):
        self.name, self.failures = name, []
        with tempfile.TemporaryDirectory() as folder:
            work = pathlib.Path(folder)
            copy(source, work, edits)
            header, library = work / LAST_HEADER, build(work, cxx, sources)
            self.outputs = {
                "diff": self.run("check_diff.py", library, header.parent),
                "layout": self.run("check_abi.py", "layout", header, c),
                "symbols": self.run("check_abi.py", "symbols", header, library),
                # The header as it is stands for that of a release.
                "since": self.run("check_abi.py", "since", source / LAST_HEADER, header, c),
            }

    def run(self, program, *arguments):
        done = subprocess.run(["/usr/bin/python3", "-B", HERE / program, *arguments], capture_output=True, text=True)
        return done.returncode, done.stdout + done.stderr

    def expect(self, check, passes, *words):
        code, output = self.outputs[check]
        if (code == 0) != passes or any(word not in output for word in words):
            self.failures.append(f"{self.name}: {check} ended with {code} and does not say {words}:\n{output}")
        else:
            print(f"{self.name}: {check} {'passes' if passes else 'fails'}, and says {', '.join(words)}")


def main():
    if len(sys.argv) < 5:
        sys.exit(__doc__)
    source = pathlib.Path(sys.argv[1])
    given = source, *sys.argv[2:4], sys.argv[4:]
    major = major_of(source)
    middle = Change(*given, "a member in the middle", [
        (HEADERS, r"\n  uint64_t workspace_ceiling_bytes;(?=[^\n]*\n\} sluice_attention;)",
         "\n  int64_t inserted;\n  uint64_t workspace_ceiling_bytes;")])
    for check in ("diff", "layout", "since"):
        middle.expect(check, False, "breaks of the ABI", "sluice_attention", "inserted")
    end = Change(*given, "a member, a function and an enumerator at the end", [APPEND, MINOR, *function(major)])
    end.expect("diff", True, "with additions")
    end.expect("since", True, f"nothing of {pathlib.Path(LAST_HEADER).name} is lost")
    end.expect("layout", False, "additions that are not recorded", "appended", "SLUICE_TRACE_APPENDED")
    end.expect("symbols", False, "additions that are not recorded", f"sluice_appended@@SLUICE_{major}.7")
    hidden = Change(*given, "one at the end, and another's type", [
        APPEND, *function(major), MINOR[:2] + (r"\1 0",),
        (HEADERS, r"\n  float epsilon;", "\n  uint32_t epsilon;")])
    hidden.expect("diff", False, "breaks of the ABI", "sluice_norm", "epsilon")
    hidden.expect("symbols", False, f"sluice_appended@@SLUICE_{major}.7 has a version node outside those of",
                  f"['SLUICE_{major}']")
    hidden.expect("since", False, "SLUICE_ABI_MINOR is 0, not above")
    lost = Change(*given, "a member that is gone and two that changed places", [
        (HEADERS, r"\n  uint64_t workspace_bytes; [^\n]* that a run needs\. [^\n]*", ""),
        (HEADERS, r"(struct sluice_bounds \{)(\n  int32_t batch;[^\n]*)(\n  int32_t q_len;[^\n]*)", r"\1\3\2")])
    for check in ("diff", "layout", "since"):
        lost.expect(check, False, "breaks of the ABI", "sluice_trace_record", "workspace_bytes", "q_len")
    failures = middle.failures + end.failures + hidden.failures + lost.failures
    sys.exit("\n".join(failures) if failures else 0)


if __name__ == "__main__":
    main()
