"""docs/examples/parallel over four ranks with a device each: results, bytes, and the failure of a rank."""

import pathlib
import re
import subprocess
import sys
import time
import unittest

PROGRAM = pathlib.Path(__file__).resolve().parents[3] / "docs" / "examples" / "parallel" / "parallel.py"
RANKS = 4
# The line of the page has a prompt of 8k tokens, which takes minutes on two cores.
PAGE_LINE = re.search(r"^torchrun --nproc-per-node 4 docs/examples/parallel/parallel\.py (.*)$",
                      PROGRAM.with_suffix(".md").read_text(encoding="utf-8"), re.MULTILINE)[1].split()
SIZES = {"small": ["--prefill", "512", "--decode", "2048"], "large": PAGE_LINE}
SIZE = SIZES["large"] if "large" in sys.argv else SIZES["small"]


def run(*words, ranks=RANKS):
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(ranks), PROGRAM, *words]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False, timeout=3000)
    return done.returncode, done.stdout + done.stderr


class Parallel(unittest.TestCase):
    def test_equal_results_and_bytes(self):
        code, said = run(*SIZE)
        self.assertEqual(code, 0, said)
        for what in ("prefill by heads", "prefill as a ring", "decode"):
            found = re.findall(rf"rank \d of {RANKS}, {what}: .*: equal", said)
            self.assertEqual(len(found), RANKS, said)
        print("\n".join(sorted(re.findall(r"rank 0 of .*", said))))

    def test_heads_of_groups_and_two_ranks(self):
        code, said = run("--prefill", "128", "--decode", "70", "--heads", "8", "2", "--dim", "128", ranks=2)
        self.assertEqual(code, 0, said)
        self.assertEqual(said.count(": equal"), 6, said)

    def test_ranks_without_keys(self):
        code, said = run("--decode", "3")
        self.assertEqual(code, 0, said)
        self.assertEqual(said.count(": equal"), RANKS, said)

    def check_failure(self, how, sentence, ranks):
        start = time.monotonic()
        code, said = run("--fail", how, "--timeout", "60")
        self.assertNotEqual(code, 0)
        self.assertLess(time.monotonic() - start, 120)
        for rank in ranks:
            self.assertRegex(said, rf"rank {rank}: {sentence}")

    def test_all_ranks_report_another_shape(self):
        self.check_failure("shape", r"ring: rank 3 has bfloat16 \[64, 4, 72\].*; rank 0 has bfloat16 \[64, 4, 64\]", range(RANKS))

    def test_all_ranks_report_a_failure(self):
        self.check_failure("error", "ring, step 0: rank 3 failed: ValueError: this device computes no more", range(RANKS))

    def test_the_loss_of_a_rank_is_noticed(self):
        # The first rank that notices ends, and the launcher ends the rest.
        self.check_failure("exit", "ring: a rank has gone", ())
        _, said = run("--fail", "exit", "--timeout", "60")
        self.assertRegex(said, r"rank [012]: ring: a rank has gone")


if __name__ == "__main__":
    unittest.main(argv=[word for word in sys.argv if word != "large"])
