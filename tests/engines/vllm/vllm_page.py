"""Runs the commands of docs/examples/vllm/README.md in an empty virtual environment, and compares what they print with what
the page shows.

usage: vllm_page.py BUILD WORK

BUILD is the build folder that takes the place of build/dev, WORK a folder for the environment. The exit status is 77 if
packages cannot be fetched.
"""

import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[3]
PAGE = "docs/examples/vllm/README.md"


def main():
    build, work = sys.argv[1:]
    shown = re.search(r"```text\n(.*?)```", (ROOT / PAGE).read_text(encoding="utf-8"), re.DOTALL).group(1)
    done = subprocess.run([sys.executable, "-B", ROOT / "bindings/python/tests/test_pages.py", build, work, PAGE],
                          capture_output=True, text=True)
    print(done.stdout, done.stderr)
    if done.returncode == 0 and shown not in done.stdout:
        sys.exit(f"the page shows\n{shown}")
    sys.exit(done.returncode)


if __name__ == "__main__":
    main()
