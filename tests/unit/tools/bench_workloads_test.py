#!/usr/bin/python3
"""`sluice bench` on workloads: figures against counts without the model, runs on a device, refusals.

usage: bench_workloads_test.py SLUICE SLUICE_EMU [unittest arguments]
The device is the emulator instead of HIP's library: its times mean nothing, but everything else is as on a GPU.
"""
import json
import pathlib
import sys
import tempfile
import unittest

from bench_fixture import SLUICE, BenchTestCase, bench, run

EMU = sys.argv[2]
PARTS_TILES = 16  # of a part of the keys, at least
DECODE = ["--workload", "decode", "--heads", "16", "--kv-heads", "2", "--sequences", "2x600"]


def bench_on_device(*arguments):
    return run(EMU, "exec", SLUICE, "bench", "--device", "hip:0", *arguments)


def with_json(command, *arguments):
    """(its stdout, its JSON)"""
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "timings.json"
        result = command(*arguments, "--json", file)
        assert result.returncode == 0, result.stdout + result.stderr
        return result.stdout, json.loads(file.read_text())


def timings(*arguments):
    return with_json(bench, "--timing", *arguments)[1]["rows"]


class ModelTest(BenchTestCase):
    def test_figures_agree_with_what_can_be_counted(self):
        [row] = timings("--workload", "decode", "--sequences", "8x1024")
        model = row["model"]
        self.assertEqual((row["heads"], row["kv_heads"], row["page_size"], row["shuffled_pages"]), (64, 8, 16, True))
        keys = 8 * 1024 * 8 * 128
        rows = 8 * 64 * 128
        self.assertEqual(row["needed_bytes"], 2 * (2 * keys + 2 * rows))  # K, V, Q, O of two bytes
        self.assertEqual(row["useful_flops"], 4 * 8 * 64 * 1024 * 128)
        attention, merge = model["launches"]
        self.assertEqual(model["clk"], attention["clk"] + merge["clk"])
        self.assertTrue(merge["kernel"].startswith("merge_states_"))
        # Arguments in registers, and splits that are read before it is known which of them count: otherwise it would be
        # more.
        self.assertLess(merge["clk"], 0.1 * attention["clk"])
        self.assertEqual(attention["kernel"], model["kernel"])
        self.assertEqual(attention["workgroups"], 8 * 8 * model["splits"])
        seconds = model["clk"] / 2.1e9
        self.assertAlmostEqual(model["microseconds"], seconds * 1e6)
        self.assertAlmostEqual(model["needed_gigabytes_per_second"], row["needed_bytes"] / seconds / 1e9)
        self.assertAlmostEqual(model["hbm_share_percent"], 100 * row["needed_bytes"] / seconds / 4.14e12)
        self.assertAlmostEqual(model["tflops"], row["useful_flops"] / seconds / 1e12)
        busy = attention["executed_flops"] / 2 / 1024 * 4  # clk of one matrix core: 1024 products in 4
        self.assertAlmostEqual(model["mfma_percent"], 100 * busy / (model["clk"] * 1216), delta=0.01)

    def test_splits_are_in_the_figure(self):
        one_split, splits = timings(*DECODE[:-1], "2x16,2x600")
        self.assertEqual((one_split["model"]["splits"], len(one_split["model"]["launches"])), (1, 1))
        self.assertGreater(splits["model"]["splits"], 1)
        self.assertEqual(len(splits["model"]["launches"]), 2)
        self.assertIn(f"keys in {splits['model']['splits']} splits", splits["model"]["reason"])
        self.assertRegex(splits["model"]["reason"], r"^about [0-9]+ clk \([0-9]+ us\); next: attn_fwd_")

    def test_all_kinds_of_work_without_a_choice(self):
        rows = timings("--heads", 8, "--kv-heads", 2, "--lengths", 128, "--kv-len", 160, "--batch", 2)
        self.assertEqual([(row["kind"], row["q_len"], row["kv_len"], row["causal"], row["page_size"]) for row in rows],
                         [("prefill", 128, 128, False, 0), ("prefill", 128, 128, True, 0), ("decode", 1, 160, False, 16),
                          ("chunk", 160, 160, True, 16)] +
                         [("draft", rows, 160, True, 16) for rows in (2, 4, 8, 16)])

    def test_drafts_and_chunks(self):
        common = ["--heads", 8, "--kv-heads", 2, "--sequences", "2x160"]
        drafts = timings("--workload", "draft", *common)
        self.assertEqual([(row["q_len"], row["causal"]) for row in drafts], [(rows, True) for rows in (2, 4, 8, 16)])
        few_keys = timings("--workload", "draft", "--heads", 8, "--kv-heads", 2, "--sequences", "2x12")
        self.assertEqual([row["q_len"] for row in few_keys], [2, 4, 8])
        [chunk] = timings("--workload", "chunk", "--q-len", 40, *common)
        self.assertEqual(chunk["useful_flops"], 4 * 2 * 8 * (40 * 160 - 40 * 40 / 2) * 128)
        self.assertEqual(len(chunk["model"]["launches"]), 2 if chunk["model"]["splits"] > 1 else 1)
        for row in drafts + [chunk]:
            self.assertGreater(row["model"]["clk"], 0)

    def test_types_and_head_dims(self):
        rows = timings(*DECODE, "--type", "all", "--head-dim", "128")
        caches = ["fp8", "e5m2", "i8", "q8_0", "q4_0", "u4/32"]
        self.assertEqual([row["type"] for row in rows],
                         ["f16", "bf16"] + [f"{q}+{kv}" for kv in caches for q in ("f16", "bf16")] + ["fp8", "fp8-f16"])
        element = {"f16": (2, 2, 2), "bf16+fp8": (2, 1, 2), "bf16+q4_0": (2, 18 / 32, 2), "fp8": (1, 1, 2)}
        for row in rows:
            if row["type"] in element:
                q, kv, o = element[row["type"]]
                self.assertEqual(row["needed_bytes"], 2 * 128 * (600 * 2 * 2 * kv + 16 * (q + o)))
        [mla] = timings("--workload", "decode", "--head-dim", "576/512", "--heads", 16, "--sequences", "1x200")
        self.assertEqual((mla["v_in_k"], mla["kv_heads"]), (True, 1))
        self.assertEqual(mla["needed_bytes"], 2 * (200 * 576 + 16 * (576 + 512)))
        self.assertIn("_mla", mla["model"]["kernel"])
        [apart] = timings(*DECODE, "--head-dim", "192/128")
        self.assertEqual((apart["head_dim_qk"], apart["head_dim_v"], apart["v_in_k"]), (192, 128, False))

    def test_scales_of_caches(self):
        # Bytes of a row of a head of K or V, with its scales; a page has 16 rows and is the last one of 38.
        rows = {"bf16+i8": 128, "bf16+i8/token": 132, "bf16+e5m2/page": 128 + 38 * 4 / 600, "bf16+q8_0": 136,
                "bf16+u4/32": 72, "bf16+u4/32/zeros": 80}
        for row in timings(*DECODE, "--type", ",".join(rows)):
            with self.subTest(row["type"]):
                self.assertAlmostEqual(row["needed_bytes"], 2 * (2 * 2 * 600 * rows[row["type"]] + 2 * 2 * 16 * 128))
                self.assertGreater(row["model"]["clk"], 0)

    def test_pages(self):
        def clk(*options):
            return [row["model"]["clk"] for row in timings(*DECODE, *options)]
        paged, = timings(*DECODE, "--page-size", 64, "--pages", "in-order")
        self.assertEqual((paged["page_size"], paged["shuffled_pages"]), (64, False))
        self.assertIn("pages of 64 in order", paged["work"])
        sparse, = timings(*DECODE, "--sparse")
        self.assertEqual((sparse["page_size"], sparse["sparse"], paged["sparse"]), (1, True, False))
        contiguous, = timings(*DECODE, "--page-size", 0)
        self.assertEqual((contiguous["page_size"], contiguous["shuffled_pages"]), (0, False))
        self.assertNotIn("pages", contiguous["work"])
        self.assertEqual(clk(), clk())  # nothing is drawn again

    def test_a_sample_where_one_is_asked_for(self):
        work = ["--workload", "decode", "--sequences", "16x300"]
        [whole], [sampled] = timings(*work), timings(*work, "--compute-units", 1, "--workgroups", 2)
        simulated = [row["model"]["launches"][0]["simulated"]["workgroups"] for row in (whole, sampled)]
        self.assertGreater(simulated[0], simulated[1])
        self.assertFalse(sampled["model"]["launches"][0]["complete"])

    def test_lines_that_xcds_share_are_read_from_hbm_once(self):
        # 8 heads of K and V in blocks of 34 bytes, each read by another XCD.
        work = ["--workload", "decode", "--type", "bf16+q8_0", "--sequences", "32x256"]
        hbm = []
        for xcds in (1, 8):
            [row] = timings(*work, "--xcds", xcds)
            attention = row["model"]["launches"][0]
            self.assertEqual(attention["simulated"]["compute_units"], 38 * xcds)
            hbm.append(attention["level_percent"]["hbm"] * attention["clk"])
        self.assertLess(hbm[1], 0.7 * hbm[0])

    def test_a_sample_of_decode_is_near_all_of_an_xcd(self):
        clks = []
        for sample in (["--compute-units", 5, "--workgroups", 8], ["--compute-units", 38, "--workgroups", 0]):
            [row] = timings("--workload", "decode", "--sequences", "256x512", *sample)
            attention = row["model"]["launches"][0]
            self.assertFalse(attention["complete"])
            clks.append(attention["clk"])
        self.assertNotEqual(*clks)
        self.assertAlmostEqual(clks[0] / clks[1], 1, delta=0.05)

    def test_tables(self):
        text = bench("--timing", *DECODE, "--markdown").stdout.splitlines()
        self.assertEqual(len(text), 3)
        self.assertEqual(len({line.count("|") for line in text}), 1)
        [row] = timings(*DECODE)
        self.assertEqual(text[2].split("|")[1].strip(), row["work"])
        clks = [launch["clk"] for launch in row["model"]["launches"]]
        self.assertIn(f"| {clks[0]} + {clks[1]} |", text[2])
        self.assertTrue(bench("--timing", *DECODE).stdout.splitlines()[1].startswith(row["work"]))

    def test_refusals(self):
        self.refuses("bench needs --timing for the model of the chip, or --device hip:N for a GPU")
        for text, *options in (
                ("--workload is 'train'; it must be 'prefill', 'decode', 'chunk' or 'draft'", "--workload", "train"),
                ("--type is 'f32'; it must be 'f16', 'bf16', ", "--type", "f32"),
                ("--type is 'bf16+u4'; it must be 'f16', 'bf16', ", "--type", "bf16+u4"),
                ("decode bf16+i8/page d128, 64/8 heads, 32 x 4096 keys: SLUICE_INVALID_ARGUMENT: kv.k.scale_kind",
                 "--workload", "decode", "--type", "bf16+i8/page", "--page-size", "0"),
                ("--head-dim is '128/'; it must be ", "--head-dim", "128/"),
                ("--head-dim is 'x'; it must be ", "--head-dim", "x"),
                ("--sequences is '8'; it must be ", "--sequences", "8"),
                ("--sequences is '0x16'; it must be ", "--sequences", "0x16"),
                ("--sequences is '8x16x'; it must be ", "--sequences", "8x16x"),
                ("--batch excludes --sequences", "--sequences", "8x16", "--batch", "2"),
                ("--kv-len excludes --sequences", "--sequences", "8x16", "--kv-len", "2"),
                ("--q-len is 17; a draft has 2 to 16 rows", "--workload", "draft", "--q-len", "17"),
                ("--q-len is 1; a draft has 2 to 16 rows", "--workload", "draft", "--q-len", "1"),
                ("--q-len is 16; a chunk has more than 16 rows", "--workload", "chunk", "--q-len", "16"),
                ("512 query rows and 400 keys; the rows of a chunk are among its keys", "--workload", "chunk",
                 "--kv-len", "400", "--q-len", "512"),
                ("--kv-len is 12; a chunk has at least 17 rows, all of them among its keys", "--kv-len", "12"),
                ("the number of keys of --sequences is 1; a draft has at least 2 rows", "--workload", "draft",
                 "--sequences", "4x1"),
                ("--q-len is for a chunk or a draft, but --workload is decode", "--workload", "decode", "--q-len", "4"),
                ("--q-len is for a chunk or a draft, but --workload is prefill,decode,chunk,draft", "--q-len", "4"),
                ("--lengths is for prefill, but --workload is decode", "--workload", "decode", "--lengths", "64"),
                ("--kv-len is for decode, chunk and draft, but --workload is prefill", "--workload", "prefill",
                 "--kv-len", "64"),
                ("--heads is 12 and --kv-heads 8; the heads of keys must divide", "--heads", "12"),
                ("--page-size", "--page-size", "-1"),
                ("--page-size is 0; lists of --sparse have pages of at least 1 row", "--sparse", "--page-size", "0"),
                ("--pages", "--pages", "sorted"),
                ("--causal", "--causal", "maybe"),
                ("--sequences, --heads or --kv-heads", "--workload", "decode", "--sequences", "65535x1048576"),
                ("sequences of 1048576 tokens", "--workload", "decode", "--sequences", "65535x1048576"),
                ("decode fp8 d584, 64/1 heads, 32 x 4096 keys, pages of 16: SLUICE_UNSUPPORTED: kv.head_dim_qk is 584",
                 "--workload", "decode", "--type", "fp8", "--head-dim", "584"),
                ("the pack has no kernel for --type all and --head-dim 136", "--type", "all", "--head-dim", "136"),
                ("--kernel excludes --type", "--kernel", "*", "--type", "f16"),
                ("--parts requires --kernel", "--parts"),
                ("--warm-up requires --device", "--warm-up", "1"),
                ("--no-model", "--no-model"),
        ):
            with self.subTest(options=options):
                self.refuses(text, "--timing", *options)

    def test_devices_that_have_no_time(self):
        self.refuses("--device is 'emulated'; a launch there takes as long as this machine needs", "--device", "emulated")
        self.refuses("--device is 'gfx942:304', a target without a device", "--device", "gfx942:304")
        self.refuses("--device is 'gpu'", "--device", "gpu")
        self.refuses("--kernel excludes --device", "--device", "hip:0", "--kernel", "*")


class DeviceTest(unittest.TestCase):
    SMALL = ["--heads", "4", "--kv-heads", "2", "--warm-up", "1", "--repetitions", "4", "--flush-mib", "1"]

    def test_runs_are_timed_beside_the_model(self):
        text, result = with_json(bench_on_device, *self.SMALL, "--workload", "decode,prefill", "--sequences", "1x300",
                                 "--causal", "on", "--head-dim", "64")
        self.assertTrue(text.startswith("AMD Instinct MI300X (emulated) (gfx942:"), text)
        self.assertIn("The device is emulated: its times are those of this machine, not of a GPU.", text)
        self.assertEqual((result["format"], result["format_version"]), ("sluice-bench", 2))
        self.assertEqual((result["device"]["chip"], result["device"]["compute_units"], result["device"]["emulated"]),
                         ("gfx942", 304, True))
        self.assertEqual(result["runs"], {"warm_up": 1, "repetitions": 4, "flush_mib": 1})
        self.assertEqual([row["kind"] for row in result["rows"]], ["decode", "prefill"])
        for row in result["rows"]:
            device = row["device"]
            self.assertEqual(device["kernel"], row["model"]["kernel"])
            times = device["microseconds"]
            self.assertEqual((len(times), times), (4, sorted(times)))
            self.assertGreater(times[0], 0)
            self.assertAlmostEqual(device["median_microseconds"], (times[1] + times[2]) / 2)
            seconds = device["median_microseconds"] * 1e-6
            self.assertAlmostEqual(device["tflops"], row["useful_flops"] / seconds / 1e12)
            self.assertAlmostEqual(device["needed_gigabytes_per_second"], row["needed_bytes"] / seconds / 1e9)
            self.assertAlmostEqual(device["hbm_share_percent"], 100 * row["needed_bytes"] / seconds / 4.14e12)
            self.assertIn(f"{device['median_microseconds'] / row['model']['microseconds']:.2f}", text)

    def test_the_model_splits_keys_as_the_device_does(self):
        # 64 workgroups, so that the number of splits follows that of compute units.
        _, result = with_json(bench_on_device, "--workload", "decode", "--head-dim", "64", "--heads", "64", "--kv-heads", "64",
                              "--sequences", "1x2048", "--warm-up", "0", "--repetitions", "1", "--flush-mib", "0")
        [row] = result["rows"]
        self.assertIn("keys in ", row["device"]["reason"])
        self.assertEqual(row["device"]["reason"], row["model"]["reason"])

    def test_every_run_is_enqueued_and_no_more(self):
        result = bench_on_device(*self.SMALL, "--workload", "decode", "--sequences", "1x600", "--head-dim", "64",
                                 "--no-model")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertNotIn("model", result.stdout)
        # Attention and merge, warmed up once, four times for the median.
        self.assertRegex(result.stderr, r"^sluice-emu: 10 launches, .*; nothing to report\n$")

    def test_refusals_of_the_device(self):
        result = bench_on_device("--workload", "decode", "--head-dim", "1024")
        self.assertEqual(result.returncode, 2)
        self.assertIn("SLUICE_UNSUPPORTED", result.stderr)
        self.assertEqual(run(EMU, "exec", SLUICE, "bench", "--device", "hip:9").returncode, 2)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]] + sys.argv[3:])
