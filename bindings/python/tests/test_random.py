"""Random calls against results in double precision. SLUICE_RANDOM_CALLS asks for a number of calls in place of some seconds, and
SLUICE_RANDOM_SEED for a first seed."""

import os
import pathlib
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import random_calls  # noqa: E402
from emulated import CONTEXT  # noqa: E402

SECONDS = 40
CALLS = int(os.environ.get("SLUICE_RANDOM_CALLS", "0"))
FIRST = int(os.environ.get("SLUICE_RANDOM_SEED", "0"))


class Random(unittest.TestCase):
    def test_attention(self):
        end, seed, unsupported = time.monotonic() + SECONDS, FIRST, 0
        done = 0
        while done < CALLS if CALLS else time.monotonic() < end:
            call, mistakes = random_calls.run(seed, CONTEXT)
            with self.subTest(seed=seed):
                if mistakes is None:
                    unsupported += 1
                else:
                    done += 1
                    self.assertEqual(mistakes, [], call.describe())
            seed += 1
        print(f"{done} calls, {unsupported} unsupported", file=sys.stderr)
        self.assertGreater(done, 4 * unsupported)


if __name__ == "__main__":
    unittest.main()
