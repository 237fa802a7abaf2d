"""Every file has a licence, by REUSE.toml.

usage: check_licences.py ROOT WORK

WORK is a folder for a virtual environment with the program `reuse`. The exit status is 77 if pip does not install it.
"""

import pathlib
import sys

ROOT = pathlib.Path(sys.argv[1]).resolve()
sys.path.insert(0, str(ROOT / "tests" / "support"))

from virtual_environment import VirtualEnvironment, run  # noqa: E402

work = pathlib.Path(sys.argv[2]).resolve()
work.mkdir(parents=True, exist_ok=True)
environment = VirtualEnvironment(work)
environment.need(["reuse>=5"])
result = run([environment.folder / "bin" / "reuse", "--root", ROOT, "lint"])
sys.stdout.write(result.stdout)
sys.exit(result.returncode)
