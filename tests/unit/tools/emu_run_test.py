#!/usr/bin/python3
"""Tests launches of `sluice-emu run`: their options, reports, traces and progress. See emu_fixture.py."""
import array
import json
import pathlib
import re
import struct
import subprocess
import time

from emu_fixture import EMU, KERNELS, REGISTERS, EmuTest, main
from npy_files import read_npy, write_npy
from terminal import run_on_a_terminal


class LaunchTest(EmuTest):
    def test_grids_and_blocks(self):
        self.succeeds("run", KERNELS, "--kernel", "places", "--grid", "3,2,2", "--block", "4,2,2", "--arg",
                      "size:768:type=u32", "--arg", "u32:3", "--arg", "u32:2", "--out", f"0={self.out}")
        self.assertEqual(list(self.elements("I")), [gx | gy << 4 | gz << 8 | x << 12 | y << 16 | z << 20
                                                    for gz in range(2) for gy in range(2) for gx in range(3)
                                                    for z in range(2) for y in range(2) for x in range(4)])
        counters = self.json("run", KERNELS, "--kernel", "spin", "--grid", "3,2", "--block", "65", "--arg", "u32:0")
        self.assertEqual((counters["grid"], counters["block"]), ([3, 2, 1], [65, 1, 1]))
        self.assertEqual((counters["counters"]["workgroups"], counters["counters"]["waves"]), (6, 12))
        counters = self.json("run", KERNELS, "--kernel", "spin", "--arg", "u32:0")["counters"]
        self.assertEqual((counters["workgroups"], counters["waves"]), (1, 1))

    def test_wrong_grids_and_blocks(self):
        call = ["run", KERNELS, "--kernel", "spin", "--arg", "u32:0"]
        for option in ("--grid", "--block"):
            for text, rule in {"x": "'x' is not a whole number", "1,,1": "'' is not a whole number",
                               "1,2,3,4": "has more than three numbers", "-1": "'-1' is not a whole number",
                               "0": "its x is not within 1 and 4294967295", "1,0": "its y is not within",
                               "1,1,4294967296": "its z is not within"}.items():
                self.refuses(f"{option} is '{text}': {rule}", *call, f"{option}={text}")
        self.refuses("--block is '16,17': 272 work-items; 256 are the most that the kernel was built for", *call,
                     "--block", "16,17")
        self.refuses("--block is '1025': 1025 work-items; 1024 are the most", "run", REGISTERS, "--kernel", "steps",
                     "--arg", "u32:0", "--block", "1025")
        self.refuses("--block is '4294967295,4294967295,4294967295'", *call, "--block", "4294967295,4294967295,4294967295")
        self.refuses("--grid is '1,67108864': 67108864 workgroups of 64 work-items in y; 4294967295 work-items are the most",
                     *call, "--block", "1,64", "--grid", "1,67108864")
        self.refuses("--grid is '65536,65536': more than 4294967295 workgroups, which are the most", *call, "--block", "1",
                     "--grid", "65536,65536")

    def test_lds_bytes(self):
        source = write_npy(self.folder / "in.npy", "<u4", (64,), array.array("I", range(64)).tobytes())
        call = ["run", KERNELS, "--kernel", "reverse", "--arg", f"buf:{source}", "--arg", "u32:0", "--out",
                f"0={self.out}"]
        self.succeeds(*call, "--lds-bytes", "256")
        self.assertEqual(list(self.elements("I")), list(range(63, -1, -1)))
        self.assertIn("lds_out_of_bounds", self.succeeds(*call, "--lds-bytes", "252", status=1))
        self.refuses("--lds-bytes is 65537: with the kernel's own 0 that is more than the 65536 there are", *call,
                     "--lds-bytes", "65537")
        self.refuses("--lds-bytes", *call, "--lds-bytes", "-4")
        self.refuses("--lds-bytes is 65473: with the kernel's own 64", "run", REGISTERS, "--kernel", "careless", "--arg",
                     "size:64", "--lds-bytes", "65473")

    def kinds(self, *arguments, status=1):
        result = self.json("run", REGISTERS, "--kernel", "careless", "--arg", "size:64:fill=1", *arguments, status=status)
        self.assertEqual(result["clean"], status == 0)
        return [report["kind"] for report in result["reports"]]

    def test_checks(self):
        both = ["pending_register", "lds_uninitialised"]
        self.assertEqual(self.kinds(), both)
        self.assertEqual(self.kinds("--check=all"), both)
        self.assertEqual(self.kinds("--check=none", status=0), [])
        self.assertEqual(self.kinds("--check=pending"), both[:1])
        self.assertEqual(self.kinds("--check", "uninitialised,hazards"), both[1:])
        call = ["run", REGISTERS, "--kernel", "careless", "--arg", "size:64"]
        self.refuses("--check is 'pending,typos': unknown check 'typos'; it must be all, none or a list of pending, "
                     "lds_races, ", *call, "--check=pending,typos")
        self.refuses("--check is 'pending,': unknown check ''", *call, "--check=pending,")

    def test_how_many_reports(self):
        self.assertEqual(self.kinds("--stop-at-report"), ["pending_register"])
        self.assertEqual(len(self.kinds("--max-reports", "2")), 2)
        # The limit is per kind.
        self.assertEqual(len(self.kinds("--max-reports", "1")), 2)
        self.refuses("--max-reports", "run", REGISTERS, "--kernel", "steps", "--arg", "u32:0", "--max-reports", "0")

    def test_reports_for_people(self):
        text = self.succeeds("run", REGISTERS, "--kernel", "careless", "--arg", "size:64:fill=1", status=1)
        self.assertRegex(text, r"""(?x)\A careless\ at\ 0x[0-9a-f]+:\ pending_register:\ reads\ v2\ .*\n
            \ +instruction\ +v_add_u32_e32\ v3,\ 1,\ v2\n \ +\S*emu_registers.s:\d+\n \ +where\ +workgroup\ 0,0,0,\ wave\ 0\n
            \ +other\ +0x[0-9a-f]+:\ global_load_dword\ v2,\ v1,\ s\[4:5\],\ wave\ 0\n \ +\S*emu_registers.s:\d+\n \n careless\ at""")
        self.assertTrue(text.endswith("careless: 1 workgroup, 1 wave, 11 instructions, 0 MFMAs, 0 LDS bank conflicts\n"
                                      "2 reports\n"), text)

    def test_reports_for_programs(self):
        result = self.json("run", REGISTERS, "--kernel", "careless", "--arg", "size:64:fill=1", "--out", f"0={self.out}",
                           status=1)
        report = result["reports"][0]
        self.assertEqual((report["kernel"], report["disassembly"], report["workgroup"], report["wave"]),
                         ("careless", "v_add_u32_e32 v3, 1, v2", [0, 0, 0], 0))
        self.assertEqual(report["other"]["pc"], report["pc"] - 8)
        self.assertEqual(result["counters"], {"workgroups": 1, "waves": 1, "wave_instructions": 11,
                                              "mfma_instructions": 0, "lds_bank_conflicts": 0,
                                              "buffer_lanes_out_of_range": 0})
        self.assertEqual(len(read_npy(self.out)[1]), 64)
        self.assertEqual(result["outputs"], [{"argument": 0, "file": str(self.out), "type": "u8", "shape": [64]}])
        self.assertEqual((result["kernel"], result["reports_dropped"]), ("careless", 0))
        result = self.json("run", REGISTERS, "--kernel", "steps", "--arg", "u32:0", "--check=none")
        self.assertEqual((result["reports"], result["counters"]["lds_bank_conflicts"]), ([], None))

    def test_completion_and_seed(self):
        # The value that the addition reads: the old one if the load is late, the loaded one if it is early.
        def sum_of(*arguments):
            text = self.succeeds("run", REGISTERS, "--kernel", "careless", "--arg", "size:64:fill=1", "--check=none",
                                 "--trace", *arguments)
            return re.search(r"v3 = (\w+) ", text).group(1)
        self.assertEqual(sum_of(), "0x00000001")
        self.assertEqual(sum_of("--completion", "late"), "0x00000001")
        self.assertEqual(sum_of("--completion", "early"), "0x01010102")
        seen = [sum_of("--completion", "random", "--seed", str(seed)) for seed in range(8)]
        self.assertEqual(set(seen), {"0x00000001", "0x01010102"})
        self.assertEqual(seen[3], sum_of("--completion", "random", "--seed", "3"))
        self.refuses("--completion is 'eventually'; it must be one of late, early, random", "run", REGISTERS, "--kernel",
                     "steps", "--arg", "u32:0", "--completion", "eventually")

    def order(self, *arguments, block="64"):
        text = self.succeeds("run", REGISTERS, "--kernel", "steps", "--grid", "16", "--block", block, "--arg", "u32:0",
                             "--trace", *arguments)
        return [(int(group), int(wave)) for group, wave in re.findall(r"(?m)^(\d+),0,0 wave (\d+) #0 ", text)]

    def test_orders_of_workgroups_and_waves(self):
        groups = list(range(16))
        self.assertEqual([group for group, _ in self.order()], groups)
        self.assertEqual([group for group, _ in self.order("--workgroups", "descending")], groups[::-1])
        self.assertEqual([group for group, _ in self.order("--workgroups", "by_xcd")],
                         [group for xcd in range(8) for group in (xcd, xcd + 8)])
        drawn = [group for group, _ in self.order("--workgroups", "random")]
        self.assertNotEqual(drawn, groups)
        self.assertEqual(sorted(drawn), groups)
        def first_waves(*arguments):
            text = self.succeeds("run", REGISTERS, "--kernel", "steps", "--block", "128", "--arg", "u32:0", "--trace", *arguments)
            return [int(wave) for wave in re.findall(r"(?m)^0,0,0 wave (\d+) ", text)]
        self.assertEqual(first_waves(), [0] * 15 + [1] * 15)
        self.assertEqual(first_waves("--waves", "round_robin"), [0, 1] * 15)
        drawn = [first_waves("--waves", "random", "--seed", seed) for seed in (1, 2, 3, 4, 2)]
        self.assertEqual(drawn[1], drawn[4])
        self.assertGreater(len(set(map(tuple, drawn))), 1)
        call = ["run", REGISTERS, "--kernel", "steps", "--arg", "u32:0"]
        self.refuses("--waves is 'fair'; it must be one of greedy, round_robin, random", *call, "--waves", "fair")
        self.refuses("--workgroups is 'up'; it must be one of ascending, descending, by_xcd, random", *call, "--workgroups",
                     "up")

    def numbers(self, *arguments):
        """The reciprocals and the NaNs of the kernel `numbers`."""
        text = self.succeeds("run", REGISTERS, "--kernel", "numbers", "--trace", "--trace-lanes", "64", *arguments)
        return [[int(value, 16) for value in re.search(rf"    {name} = (.*)\n", text).group(1).split()] for name in ("v2", "v4")]

    def test_numbers_that_hardware_does_not_promise(self):
        reciprocals, nans = self.numbers()
        self.assertEqual((len(set(nans)), nans[0] & 0x7fffffff), (1, 0x7fc00000))
        self.assertEqual(self.numbers("--scramble-nans")[0], reciprocals)
        scrambled = self.numbers("--scramble-nans")[1]
        self.assertGreater(len(set(scrambled)), 8)
        self.assertTrue(all(bits & 0x7f800000 == 0x7f800000 and bits & 0x7fffff for bits in scrambled))
        moved = self.numbers("--perturb-transcendentals")
        self.assertEqual(moved[1], nans)
        self.assertEqual({a - b for a, b in zip(moved[0], reciprocals)}, {-1, 0, 1})
        self.assertNotEqual(moved[0], self.numbers("--perturb-transcendentals", "--seed", "2")[0])

    def test_fidelity_note(self):
        call = ["run", REGISTERS, "--kernel", "numbers"]
        note = self.json(*call, "--fidelity")["fidelity"]
        self.assertEqual([entry["instruction"] for entry in note["approximated"]], ["v_rcp_f32"])
        self.assertEqual((note["addresses"], note["branches"]), ([], []))
        self.assertNotIn("fidelity", self.json(*call))
        plain = self.succeeds(*call, "--trace")
        traced = self.succeeds(*call, "--trace", "--fidelity")
        self.assertIn("\nfidelity:\n  approximated: v_rcp_f32, 1 time: ", traced)
        self.assertTrue(set(plain.splitlines()) <= set(traced.splitlines()))
        self.refuses("--fidelity", *call, "--timing", "--fidelity")

    def test_preloading_or_not(self):
        file = self.folder / "kernarg.bin"
        file.write_bytes(struct.pack("<Q", 0x1234))
        call = ["run", REGISTERS, "--kernel", "preloaded", "--kernarg-file", file, "--trace"]
        loads = []
        for more in ([], ["--no-preload"]):
            text = self.succeeds(*call, *more)
            self.assertIn("    s4 = 0x00001234\n", text)
            loads.append(text.count("s_load_dword "))
        self.assertEqual(loads, [0, 1])

    def test_budget(self):
        call = ["run", KERNELS, "--kernel", "spin", "--arg", "u32:1000"]
        text = self.succeeds(*call, "--budget", "4000", status=1)
        self.assertIn("budget_exhausted: the wave has executed 4000 instructions without ending", text)
        self.succeeds(*call, "--budget", "4010")
        self.refuses("--budget", *call, "--budget", "much")

    def test_threads(self):
        call = ["run", KERNELS, "--kernel", "spin", "--grid", "8", "--arg", "u32:10"]
        self.assertEqual(self.json(*call, "--threads", "1")["counters"], self.json(*call, "--threads", "3")["counters"])
        self.refuses("--threads", *call, "--threads", "0")


class TraceTest(EmuTest):
    STEPS = ["run", REGISTERS, "--kernel", "steps", "--arg", "u32:0x1234"]

    def trace(self, *arguments):
        """[(place, text of the instruction, lines of registers)]"""
        file = self.folder / "trace.txt"
        self.assertNotIn("#0", self.succeeds(*self.STEPS, f"--trace={file}", *arguments))
        steps = []
        for line in file.read_text().splitlines():
            if line.startswith("    "):
                steps[-1][2].append(line.strip())
            else:
                steps.append((*re.fullmatch(r"([\d,]+ wave \d+ #\d+ [0-9a-f]{6}): (.*)", line).groups(), []))
        return steps

    def test_each_instruction_and_what_it_writes(self):
        def row(values):
            return " ".join(f"0x{value % 2**32:08x}" for value in values)
        lanes = range(64)
        v1 = [7, 7] + [lane + 1 for lane in range(2, 64)]
        equal = sum(1 << lane for lane in lanes if v1[lane] == 7)
        all_lanes = "  exec 0xffffffffffffffff"
        expected = [
            ("s_mov_b32 s4, 7", ["s4 = 0x00000007"]),
            ("v_add_u32_e32 v1, 1, v0" + all_lanes, ["v1 = " + row(lane + 1 for lane in lanes)]),
            ("s_mov_b64 exec, 3", ["exec = 0x00000003 0x00000000"]),
            ("v_mov_b32_e32 v1, s4  exec 0x0000000000000003", ["v1 = " + row(v1)]),
            ("s_mov_b64 exec, -1", ["exec = 0xffffffff 0xffffffff"]),
            ("v_accvgpr_write_b32 a0, v1" + all_lanes, ["a0 = " + row(v1)]),
            ("v_cmp_eq_u32_e32 vcc, 7, v1" + all_lanes, ["vcc = " + row((equal, equal >> 32))]),
            ("s_cmp_eq_u32 s4, 7", ["scc = 0x00000001"]),
            ("s_mov_b32 m0, 64", ["m0 = 0x00000040"]),
            ("v_mad_u64_u32 v[4:5], s[8:9], s4, v0, 0" + all_lanes,
             ["v4 = " + row(7 * lane for lane in lanes), "v5 = " + row(0 for lane in lanes),
              "s[8:9] = 0x00000000 0x00000000"]),
            ("s_load_dword s5, s[0:1], 0x0", ["s5 in flight"]),
            ("s_waitcnt lgkmcnt(0)", ["s5 arrived = 0x00001234"]),
            ("s_cbranch_scc1 1", []),
            ("s_mov_b32 s6, s5", ["s6 = 0x00001234"]),
            ("s_endpgm", []),
        ]
        steps = self.trace("--trace-lanes", "64")
        self.assertEqual([step[1:] for step in steps], expected)
        entry = next(kernel["entry"] for kernel in json.loads(self.succeeds("list", REGISTERS, "--json"))["kernels"]
                     if kernel["name"] == "steps")
        self.assertEqual([step[0] for step in steps[:3]],
                         [f"0,0,0 wave 0 #{i} {entry + 4 * i:06x}" for i in range(3)])
        # An early load arrives at once.
        steps = self.trace("--completion", "early")
        self.assertEqual([step[2] for step in steps[10:12]], [["s5 = 0x00001234"], []])

    def test_lanes(self):
        v1 = [steps[1][2][0] for steps in (self.trace(), self.trace("--trace-lanes", "2"), self.trace("--trace-lanes", "0"))]
        self.assertEqual(v1, ["v1 = 0x00000001 0x00000002 0x00000003 0x00000004 ...", "v1 = 0x00000001 0x00000002 ...",
                              "v1 = ..."])
        self.refuses("--trace-lanes", *self.STEPS, "--trace", "--trace-lanes", "65")

    def test_only_one_workgroup_or_wave(self):
        shape = ["--grid", "2,3", "--block", "192"]
        def places(*arguments):
            return sorted({re.sub(r" #.*", "", step[0]) for step in self.trace(*shape, *arguments)})
        self.assertEqual(len(places()), 18)
        self.assertEqual(places("--trace-workgroup", "1,2"), [f"1,2,0 wave {wave}" for wave in range(3)])
        self.assertEqual(len(places("--trace-wave", "2")), 6)
        self.assertEqual(places("--trace-workgroup", "1", "--trace-wave", "1"), ["1,0,0 wave 1"])
        self.assertEqual(len(self.trace(*shape, "--trace-workgroup", "1", "--trace-wave", "1")), 15)
        call = [*self.STEPS, *shape, "--trace"]
        self.refuses("--trace-workgroup is '0,3'; the grid has 3 in y", *call, "--trace-workgroup", "0,3")
        self.refuses("--trace-workgroup is 'all': 'all' is not a whole number", *call, "--trace-workgroup", "all")
        self.refuses("--trace-wave is 3; a workgroup has 3 waves", *call, "--trace-wave", "3")
        self.refuses("--trace-wave requires --trace", *self.STEPS, "--trace-wave", "0")

    def test_where_it_goes(self):
        text = self.succeeds(*self.STEPS, "--trace")
        self.assertRegex(text, r"\A0,0,0 wave 0 #0 .*(?s:.*)s_endpgm\nsteps: 1 workgroup, ")
        self.refuses("--trace and --json would both write to stdout; --trace=FILE writes to a file", *self.STEPS,
                     "--trace", "--json")
        self.refuses("--trace: /no/such cannot be written: No such file", *self.STEPS, "--trace=/no/such")
        self.refuses("--trace: /dev/full cannot be written: No space left", *self.STEPS, "--trace=/dev/full")

    def test_changes_nothing(self):
        def result(*arguments):
            values = self.json("run", REGISTERS, "--kernel", "careless", "--grid", "3", "--threads=1", "--arg", "size:64:fill=1", *arguments,
                               status=0 if "--check=none" in arguments else 1)
            values.pop("seconds")
            return values
        for options in (["--completion=late"], ["--completion=early"], ["--completion=early", "--check=none"]):
            self.assertEqual(result(*options), result(*options, "--trace=/dev/null"))

    def patched_steps(self, before, after):
        """The trace of `steps` with other code."""
        code = bytearray(pathlib.Path(REGISTERS).read_bytes())
        code[(at := code.index(before)):at + len(after)] = after
        (self.folder / "a.co").write_bytes(code)
        return self.succeeds("run", self.folder / "a.co", "--kernel", "steps", "--arg", "u32:0", "--trace", status=1)

    def test_a_stop_is_the_last_line(self):
        # The branch around the trap is gone.
        text = self.patched_steps(struct.pack("<II", 0xbf850001, 0xbf920001), struct.pack("<I", 0xbf800000))
        self.assertRegex(text, r"\n0,0,0 wave 0 #13 \w+: s_trap 1\nsteps at 0x\w+: trap: the kernel stopped with s_trap\n")
        # An MFMA that would broadcast more blocks than exist: it writes nothing.
        text = self.patched_steps(struct.pack("<II", 0xd1e80804, 0x02020004), struct.pack("<II", 0xd3cd0700, 0x04020d04))
        self.assertRegex(text, r"\n0,0,0 wave 0 #9 \w+: v_mfma_f32_16x16x16_f16 v\[0:3\], .* cbsz:7  exec 0xf{16}\nsteps at ")


class ProgressTest(EmuTest):
    def test_a_long_run_shows_how_far_it_is(self):
        call = ["run", KERNELS, "--kernel", "spin", "--grid", "64", "--check=none", "--completion=early", "--arg"]
        begin = time.monotonic()
        self.assertEqual(run_on_a_terminal(EMU, *call, "u32:1000")[1], "")
        count = 1000
        while (seconds := self.json(*call, f"u32:{count}")["seconds"]) < 0.1:
            count *= 10
        long_call = [*call, f"u32:{int(count * 1.6 / seconds)}"]
        # Beside it the same into a pipe: only results are written.
        with subprocess.Popen([EMU, *map(str, long_call)], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                              stderr=subprocess.PIPE) as process:
            text = run_on_a_terminal(EMU, *long_call)[1]
            self.assertEqual(process.communicate()[1], b"")
        if "spin" not in text:
            self.skipTest(f"the run was over in less than a second, {time.monotonic() - begin} s in all")
        self.assertRegex(text, r"^(\r\x1b\[Kspin \[=*>? *\] +\d+% \d+ s)+\r\x1b\[K$")
        percents = [int(percent) for percent in re.findall(r"(\d+)%", text)]
        self.assertEqual(percents, sorted(percents))
        self.assertTrue(0 < percents[0] <= percents[-1] <= 100, percents)


if __name__ == "__main__":
    main()
