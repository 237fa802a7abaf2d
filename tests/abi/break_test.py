#!/usr/bin/python3
"""Checks that the ABI checks find breaks and accept additions, on a library whose header was changed.

usage: break_test.py SOURCE C_COMPILER CXX_COMPILER ENTRY_POINT_SOURCE...

Header and sources are copied and changed, the entry points compiled again with debug information, and linked into a
library of the same name and versions. It is never loaded, so it may lack the functions that the entry points call.
"""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
HEADER, SIZES, MAP = "include/sluice/sluice.h", "src/abi/sized.h", "src/abi/sluice.map"
LAST_HEADER = "include/sluice/merge.h"  # includes the others that declare functions
PUBLISH = (SIZES, r"(\(sluice_problem, [^)]*\b(\d+))\)", lambda match: f"{match[1]}, {int(match[2]) + 8})")
APPEND = (HEADER, r"\n\} sluice_problem;", "\n  int64_t appended;\n} sluice_problem;")
MINOR = (HEADER, r"(#define SLUICE_ABI_MINOR) \d+", r"\1 7")
# A function in the version node of that minor, and an enumerator after the last one.
FUNCTION = [
    (HEADER, r"\n(SLUICE_API uint32_t sluice_abi_version)", r"\nSLUICE_API int sluice_appended(void) SLUICE_NOEXCEPT;\n\1"),
    (HEADER, r"(SLUICE_TRACE_RUN = 2)\b", r"\1, SLUICE_TRACE_APPENDED = 3"),
    (MAP, r"\Z", "SLUICE_1.7 {\n  global:\n    sluice_appended;\n} SLUICE_1;\n"),
    ("src/abi/library.cpp", r"\Z", "int sluice_appended(void) noexcept { return 0; }\n"),
]


def copy(source, work, edits):
    for folder in ("include", "src"):
        shutil.copytree(source / folder, work / folder)
    for file, pattern, replacement in edits:
        text, count = re.subn(pattern, replacement, (work / file).read_text())
        if count != 1:
            sys.exit(f"{file} has {count} places like {pattern}: the test has to follow the source")
        (work / file).write_text(text)


def build(work, compiler, sources):
    """All entry points as one source, which is several times faster."""
    library, joined = work / "libsluice.so", work / "src/joined.cpp"
    joined.write_text("".join(f'#include "abi/{name}"\n' for name in sources))
    texts = [f'-D{name}="none"' for name in ("SLUICE_VERSION", "SLUICE_GIT_COMMIT", "SLUICE_COMPILER")]
    subprocess.run([compiler, "-std=c++20", "-O0", "-g", "-fPIC", "-fvisibility=hidden", "-shared",
                    "-DSLUICE_BUILDING_LIBRARY", *texts, f"-I{work}/include", f"-I{work}/src", joined, "-o", library,
                    "-Wl,-soname,libsluice.so.1", f"-Wl,--version-script={work / MAP}"], check=True)
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
                "since": self.run("check_abi.py", "since", HERE / "frozen/sluice_1_0.h", header, c),
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
    given = pathlib.Path(sys.argv[1]), *sys.argv[2:4], sys.argv[4:]
    middle = Change(*given, "a member in the middle", [
        PUBLISH, (HEADER, r"\n  int64_t max_q_tokens;", "\n  int64_t inserted;\n  int64_t max_q_tokens;")])
    for check in ("diff", "layout", "since"):
        middle.expect(check, False, "breaks of the ABI", "sluice_problem", "inserted")
    end = Change(*given, "a member, a function and an enumerator at the end", [PUBLISH, APPEND, MINOR, *FUNCTION])
    end.expect("diff", True, "with additions")
    end.expect("since", True, "nothing of sluice_1_0.h is lost")
    end.expect("layout", False, "additions that are not recorded", "appended", "SLUICE_TRACE_APPENDED")
    end.expect("symbols", False, "additions that are not recorded", "sluice_appended@@SLUICE_1.7")
    hidden = Change(*given, "one at the end, and another's type", [
        PUBLISH, APPEND, *FUNCTION, (HEADER, r"\n  float soft_cap;", "\n  uint32_t soft_cap;"), MINOR[:2] + (r"\1 0",)])
    hidden.expect("diff", False, "breaks of the ABI", "sluice_problem", "soft_cap")
    hidden.expect("symbols", False, "sluice_appended@@SLUICE_1.7 has a version node outside those of", "['SLUICE_1']")
    hidden.expect("since", False, "SLUICE_ABI_MINOR is 0, not above 0")
    lost = Change(*given, "a member that is gone and two that changed places", [
        (HEADER, r"\n  uint64_t workspace_bytes; [^\n]* that a run needs\. [^\n]*", ""),
        (HEADER, r"(\n  int32_t max_batch;[^\n]*)(\n  int32_t max_q_len;[^\n]*)", r"\2\1")])
    for check in ("diff", "layout", "since"):
        lost.expect(check, False, "breaks of the ABI", "sluice_trace_record", "workspace_bytes", "max_q_len")
    failures = middle.failures + end.failures + hidden.failures + lost.failures
    sys.exit("\n".join(failures) if failures else 0)


if __name__ == "__main__":
    main()
