"""Random calls against results in double precision: test_random.py [attention] [caches] [torch]. SLUICE_RANDOM_CALLS asks for a
number of calls of each kind in place of some seconds, and SLUICE_RANDOM_SEED for another first seed."""

import os
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from emulated import CONTEXT  # noqa: E402

SECONDS = {"attention": 30, "caches": 10, "torch": 40}
CALLS = int(os.environ.get("SLUICE_RANDOM_CALLS", "0"))
FIRST = int(os.environ.get("SLUICE_RANDOM_SEED", "0"))


def run_attention(seed):
    import random_calls

    call, said = random_calls.run(seed, CONTEXT)
    return call.describe(), said


def run_caches(seed):
    import random_caches

    return random_caches.run(seed, CONTEXT)


def run_torch(seed):
    import random_torch

    name, drawn, said = random_torch.run(seed)
    return f"{name}: {drawn}", said


def wrong_of(kind, run):
    """Runs calls, and returns how many are wrong."""
    end, seed, done, unsupported, wrong = time.monotonic() + SECONDS[kind], FIRST, 0, 0, 0
    while done < CALLS if CALLS else time.monotonic() < end:
        try:
            described, said = run(seed)
        except Exception as error:  # the calls after it count too
            described, said = "", [f"{type(error).__name__}: {error}"]
        done += 1
        if said is None:
            unsupported += 1
        elif said:
            wrong += 1
            print(f"{kind}, seed {seed}: {said[:3]}\n    {described}", file=sys.stderr)
        seed += 1
    print(f"{kind}: {done} calls, {wrong} wrong, {unsupported} unsupported")
    return wrong + (unsupported > done // 4)


if __name__ == "__main__":
    KINDS = {"attention": run_attention, "caches": run_caches, "torch": run_torch}
    sys.exit(1 if sum([wrong_of(kind, KINDS[kind]) for kind in sys.argv[1:]]) else 0)
