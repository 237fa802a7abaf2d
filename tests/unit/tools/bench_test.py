#!/usr/bin/python3
"""`sluice bench --kernel`: its figures against counts without the model, and its refusals.

usage: bench_test.py SLUICE [--whole] [unittest arguments]
--whole: only the comparison with a whole XCD, for every kernel.
"""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

from bench_fixture import SLUICE, BenchTestCase, bench

WHOLE = "--whole" in sys.argv
SMALL = ["--heads", "8", "--kv-heads", "2", "--batch", "8", "--lengths", "512"]
KERNEL = "attn_fwd_f16_d64_q128_kv32_w4"


def timings_and_warnings(*arguments):
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "timings.json"
        result = bench("--timing", "--json", file, *arguments)
        assert result.returncode == 0, result.stdout + result.stderr
        return json.loads(file.read_text()), result.stderr


def timings(*arguments):
    rows, warnings = timings_and_warnings(*arguments)
    assert warnings == "", warnings
    return rows


def parts_sum(timing):
    parts = timing["matrix_core_percent"]
    return sum(value for name, value in parts.items() if name != "waiting") + sum(parts["waiting"].values())


def executed_pairs(length, causal):
    """Tokens times keys for which MFMAs are issued, per query head: waves of 8 tokens of the 4 heads of a group, tiles of
    32 keys up to the last visible one."""
    if not causal:
        return length * length
    return sum(8 * 32 * ((token + 8 + 31) // 32) for token in range(0, length, 8))


@unittest.skipIf(WHOLE, "only the comparison with a whole XCD")
class BenchTest(BenchTestCase):
    def test_refusals(self):
        self.refuses("--kernel is 'attn_bwd*'; no kernel for prefill of contiguous tensors of ", "--timing", "--kernel",
                     "attn_bwd*")
        self.refuses("--heads is 12 and --kv-heads 8; the heads of keys must divide", "--timing", "--heads", 12)
        self.refuses("--causal", "--timing", "--causal", "maybe")
        for option in ("--lengths", "--heads", "--kv-heads", "--batch", "--compute-units"):
            self.refuses(option, "--timing", option, 0)
        self.refuses("--compute-units", "--timing", "--compute-units", 39)
        self.refuses("65536 sequences of 1048576 tokens, 65536 heads of queries and 8 of keys have ", "--timing",
                     "--kernel", KERNEL, "--lengths", 1048576, "--batch", 65536, "--heads", 65536)
        self.refuses("--json: ", "--timing", "--json", "/no/such/folder/file")
        self.refuses("none.pack: cannot be opened", "--timing", "--pack", "none.pack")

    def test_figures_agree_with_what_can_be_counted(self):
        rows = timings(*SMALL, "--kernel", "attn_fwd_[bf]*16_d64_*")
        self.assertEqual([(row["kernel"], row["causal"]) for row in rows],
                         [(f"attn_fwd_{dtype}_d64_q128_kv32_w4", causal) for dtype in ("bf16", "f16")
                          for causal in (False, True)])
        for row in rows:
            with self.subTest(kernel=row["kernel"], causal=row["causal"]):
                per_pair = 4 * 8 * 8 * 64  # two products, batch, heads, head dim
                useful = per_pair * 512 * 512 / (2 if row["causal"] else 1)
                executed = per_pair * executed_pairs(512, row["causal"])
                self.assertEqual(row["useful_flops"], useful)
                self.assertAlmostEqual(row["executed_flops"] / executed, 1)
                for mhz in (2100, 1200):
                    self.assertAlmostEqual(row["tflops"][f"{mhz}_mhz"], useful / (row["clk"] / (mhz * 1e6)) / 1e12)
                # A 32x32x8 MFMA is 16384 multiply-adds in 32 clk of one of 1216 matrix cores.
                busy = 100 * executed / (2 * 8192) * 32 / (row["clk"] * 1216)
                self.assertAlmostEqual(row["mfma_percent"]["launch"], busy)
                parts = row["matrix_core_percent"]
                self.assertAlmostEqual(parts_sum(row), 100)
                self.assertAlmostEqual(parts["useful"] + parts["masked"], busy)
                self.assertAlmostEqual(parts["masked"], busy * (1 - useful / executed))
                for name, value in list(parts.items()) + list(parts["waiting"].items()):
                    if name != "waiting":
                        self.assertGreaterEqual(value, -1e-9, name)
                self.assertAlmostEqual(sum(row["wait_percent"].values()), 100)
                self.assertEqual(row["extrapolated_along"], "y" if row["causal"] else "none")

    def test_bound_and_occupancy_are_those_of_the_machine_code(self):
        stats = subprocess.run([SLUICE, "kernels", "--stats", "--kernel", KERNEL], check=True, capture_output=True, text=True).stdout
        [row] = timings(*SMALL, "--kernel", KERNEL, "--causal", "off")
        self.assertIn(f"{row['occupancy']['workgroups_per_cu']} workgroups of 256 lanes per CU, "
                      f"{row['occupancy']['waves_per_simd']} waves per SIMD, limited by {row['occupancy']['limit']}",
                      stats)
        self.assertIn(f"matrix cores busy at most {round(row['bound_percent'], 1):g}%", stats)

    def test_options_choose_rows_and_problems(self):
        rows = timings("--kernel", KERNEL, "--lengths", "128,256", "--causal", "on", "--heads", 16, "--kv-heads", 16)
        self.assertEqual([(row["length"], row["batch"], row["heads"], row["kv_heads"]) for row in rows],
                         [(128, 128, 16, 16), (256, 64, 16, 16)])
        # For a launch of many rounds: all rounds of a short one are simulated.
        [one], warnings = timings_and_warnings("--kernel", KERNEL, "--lengths", 512, "--causal", "off", "--workgroups", 3,
                                               "--compute-units", 2)
        self.assertEqual((one["simulated"]["compute_units"], one["simulated"]["workgroups"]), (2, 6))
        self.assertEqual(warnings, f"sluice: 512 tokens: {KERNEL}: {one['warnings'][0]}\n")
        self.assertIn("the sample is too small", warnings)

    def test_tables(self):
        for options in ([], ["--parts"]):
            text = bench("--timing", *SMALL, "--kernel", KERNEL, "--markdown", *options).stdout.splitlines()
            self.assertEqual(len(text), 4)
            self.assertEqual(len({line.count("|") for line in text}), 1)
            plain = bench("--timing", *SMALL, "--kernel", KERNEL, *options).stdout.splitlines()
            self.assertEqual(plain[1].split()[0], KERNEL)
            self.assertEqual([cell.strip() for cell in text[2].split("|")[1:4]], [KERNEL, "512", "no"])
            if options:
                cells = [float(cell.strip(" %")) for cell in text[2].split("|")[5:-1]]
                self.assertAlmostEqual(sum(cells), 100, delta=0.6)


class WholeXcdTest(unittest.TestCase):
    def compare(self, *options):
        sampled = timings(*options)
        whole = timings(*options, "--compute-units", 38, "--workgroups", 0)
        for a, b in zip(sampled, whole):
            with self.subTest(kernel=a["kernel"], causal=a["causal"]):
                print(f"{a['kernel']} {a['length']} causal {a['causal']}: {100 * (a['clk'] / b['clk'] - 1):+.1f} %, "
                      f"{a['simulated']['workgroups']} workgroups for {b['simulated']['workgroups']}")
                # A sample has neither a last round to halve nor a next workgroup: it times the launch without rounds
                # (package/rounds.h), which takes longer.
                has_rounds = a["kernel"].endswith("_w8") and not a["causal"]
                self.assertLess(a["clk"] / b["clk"] - 1, 0.12 if has_rounds else 0.06)
                self.assertGreater(a["clk"] / b["clk"] - 1, -0.05)

    @unittest.skipIf(WHOLE, "all of them follow")
    def test_a_sample_is_as_good_as_a_whole_xcd(self):
        self.compare("--lengths", 512, "--kernel", "*_f16_d128_q256*", "--causal", "on")

    @unittest.skipUnless(WHOLE, "the first ones do")
    def test_all_samples_are_as_good_as_whole_xcds(self):
        self.compare("--lengths", 1024, "--kernel", "*")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]] + [a for a in sys.argv[2:] if a != "--whole"])
