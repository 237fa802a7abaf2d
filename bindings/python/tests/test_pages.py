"""Checks that pages lead from nothing to a result: runs their commands in an empty virtual environment.

usage: test_pages.py BUILD WORK PAGE...

BUILD is the build folder that takes the place of build/dev, WORK a folder for the environment. The exit status is 77 if
the environment cannot be made or pip reaches no index.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests" / "support"))

from virtual_environment import skip  # noqa: E402


def commands(page):
    found = re.findall(r"<!-- from nothing -->\n```sh\n(.*?)```", (ROOT / page).read_text(encoding="utf-8"), re.DOTALL)
    if len(found) != 1:
        sys.exit(f"{page} has {len(found)} blocks marked 'from nothing'; it must have one")
    if found[0].count("\n") >= 10:
        sys.exit(f"{page} needs {found[0].count(chr(10))} lines to a result; it must need less than ten")
    return found[0]


def checkout(folder, build):
    """A folder that looks like the checkout, where commands may leave files."""
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "build").mkdir(parents=True)
    (folder / "build" / "dev").symlink_to(build)
    for name in ("bindings", "docs", "include"):
        (folder / name).symlink_to(ROOT / name)
    return folder


def main():
    build, work, *pages = sys.argv[1:]
    folder = checkout(pathlib.Path(work).resolve(), pathlib.Path(build).resolve())
    for page in pages:
        made = subprocess.run([sys.executable, "-m", "venv", "--clear", folder / "venv"], check=False)
        if made.returncode != 0:
            skip(f"{sys.executable} makes no virtual environment")
        probe = subprocess.run([folder / "venv" / "bin" / "pip", "download", "--quiet", "--no-deps", "--retries", "1",
                                "-d", folder / "probe", "nanobind"], check=False)
        if probe.returncode != 0:
            skip("pip reaches no index")
        environment = {**os.environ, "PATH": f"{folder / 'venv' / 'bin'}:{os.environ['PATH']}",
                       "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PYTHONDONTWRITEBYTECODE": "1"}
        print(f"== {page}", flush=True)
        done = subprocess.run(["/bin/sh", "-exc", commands(page)], cwd=folder, env=environment, check=False)
        if done.returncode != 0:
            sys.exit(f"{page}: exit status {done.returncode}")


if __name__ == "__main__":
    main()
