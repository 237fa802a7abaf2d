"""Sets up a Python with ONNX Runtime, builds the execution provider, and runs a test program with both.

usage: environment.py BUILD WORK PROGRAM...

BUILD is the build folder with libsluice.so, WORK a folder for the output. The program finds the provider's library in
SLUICE_ONNXRUNTIME. If packages cannot be fetched, the exit status is 77: skipped, with the reason.
"""

import fcntl
import json
import os
import pathlib
import shutil
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
sys.path.insert(0, str(ROOT / "tests" / "support"))

from virtual_environment import VirtualEnvironment, last_line, must, run, skip  # noqa: E402

EXAMPLE = ROOT / "docs" / "examples" / "onnxruntime"
PACKAGES = ["onnxruntime==1.32.0", "onnx==1.23.2", "numpy", "ml_dtypes"]
# The wheel has no headers. This module has those of the C API, version 24, for its own use.
HEADERS = "github.com/yalue/onnxruntime_go@v1.27.0"
HEADERS_SUM = "h1:c1YSgDNtpf0WGtxj3YeRIb8VC5LmM1J+Ve3uHdteC1U="


def headers():
    """The folder with ONNX Runtime's headers; skips the test without them."""
    if not shutil.which("go"):
        skip("go, which fetches ONNX Runtime's headers, is missing")
    fetched = run(["go", "mod", "download", "-json", HEADERS], cwd=HERE, env={**os.environ, "GO111MODULE": "on"})
    module = json.loads(fetched.stdout or "{}")
    if fetched.returncode != 0:
        skip(f"go could not download {HEADERS}: {module.get('Error') or last_line(fetched.stderr)}")
    if module["Sum"] != HEADERS_SUM:
        sys.exit(f"{HEADERS} has the sum {module['Sum']}, not {HEADERS_SUM}")
    return module["Dir"]


def main():
    build, work, *program = sys.argv[1:]
    work = pathlib.Path(work).resolve()
    work.mkdir(parents=True, exist_ok=True)
    environment, provider = VirtualEnvironment(work), work / "provider"
    with open(work / "lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # tests run side by side
        environment.need(PACKAGES)
        must(["cmake", "-S", EXAMPLE, "-B", provider, f"-DSLUICE_DIR={build}", f"-DONNXRUNTIME_INCLUDE={headers()}",
              "-DCMAKE_CXX_FLAGS=-Werror"], "cmake")
        must(["cmake", "--build", provider], "the build of the provider")
    os.environ.update(SLUICE_ONNXRUNTIME=str(provider / "libsluice_onnxruntime.so"), SLUICE_DIR=build)
    os.execv(environment.python, [str(environment.python), "-B", *program])


if __name__ == "__main__":
    main()
