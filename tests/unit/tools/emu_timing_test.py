#!/usr/bin/python3
"""Tests `sluice-emu run --timing`: its figures, its listing and its pictures. See emu_fixture.py."""
import fcntl
import os
import pathlib
import pty
import struct
import subprocess
import termios
import xml.etree.ElementTree

from emu_fixture import EMU, KERNELS, REGISTERS, EmuTest, main


class TimingTest(EmuTest):
    def test_timing(self):
        call = ["run", KERNELS, "--kernel", "spin", "--grid", "400", "--arg", "u32:100", "--timing"]
        text = self.succeeds(*call)
        self.assertIn("spin: about ", text)
        self.assertNotIn("waves lost", text)
        timing = self.json(*call)
        self.assertEqual((timing["kernel"], timing["workgroups"], timing["compute_units"]), ("spin", 400, 304))
        self.assertGreater(timing["clk"], 0)
        self.assertEqual((timing["simulated"]["workgroups"], timing["simulated"]["compute_units"]), (8, 4))
        timing = self.json(*call, "--timing-xcds", "1", "--timing-compute-units", "3")
        self.assertEqual((timing["simulated"]["workgroups"], timing["simulated"]["compute_units"]), (6, 3))
        self.assertRegex(self.succeeds(*call, "--timing-listing"), r"waves lost \d+ clk\n(.*\n)+ +8 .*: s_")

    def test_timing_says_how_far_off_it_may_be(self):
        call = ["run", KERNELS, "--kernel", "spin", "--grid", "40000", "--arg", "u32:100", "--timing"]
        one = self.succeeds(*call, "--timing-workgroups=1")
        self.assertIn("warning: the sample is too small: 1 of 40000 workgroups", one)
        self.assertIn("error of the sample unknown", one)
        timing = self.json(*call, "--timing-workgroups=8", "--timing-compute-units=2")
        self.assertEqual((timing["warnings"], timing["complete"]), ([], False))
        self.assertLess(timing["error_percent"], 1)
        self.assertEqual(len(timing["xcds"]), 8)

    def test_timing_at_the_published_clock(self):
        call = ["run", KERNELS, "--kernel", "spin", "--grid", "400", "--arg", "u32:100", "--timing"]
        self.assertEqual(self.json(*call, "--clock-curve")["clock_mhz"], 2100)  # no MFMA
        self.refuses(["--clock-curve", "--clock-mhz"], *call, "--clock-curve", "--clock-mhz=1200")
        self.refuses("--timing", *call[:-1], "--clock-curve")

    def test_timing_compute_units_that_share(self):
        call = ["run", KERNELS, "--kernel", "spin", "--grid", "40000", "--arg", "u32:100", "--timing",
                "--timing-workgroups=1", "--timing-compute-units=3"]
        for stride in (1, 8):
            numbers = [w["number"] for w in self.json(*call, f"--compute-unit-stride={stride}")["simulated"]["workgroup_times"]]
            self.assertEqual([n - numbers[0] for n in numbers], [0, 8 * stride, 16 * stride])
        self.refuses("compute_unit_stride is 30; with it 3 compute units must be among the 38", *call,
                     "--compute-unit-stride=30")
        self.refuses("--compute-unit-stride", *call, "--compute-unit-stride=0")
        self.refuses("--timing", *call[:-3], "--compute-unit-stride=2")
        self.refuses("--timing-xcds", *call, "--timing-xcds=9")

    def test_timing_of_another_device(self):
        call = ["run", KERNELS, "--kernel", "spin", "--grid", "400", "--arg", "u32:100", "--timing"]
        full = self.json(*call)
        slow = self.json(*call, "--clock-mhz", "1200", "--device-compute-units", "80")
        self.assertEqual((slow["clock_mhz"], slow["compute_units"]), (1200, 80))
        self.assertAlmostEqual(slow["microseconds"], slow["clk"] / 1200)
        self.assertAlmostEqual(full["microseconds"], full["clk"] / 2100)
        self.assertIn("at 1200 MHz on 80 compute units", self.succeeds(*call, "--clock-mhz=1200", "--device-compute-units=80"))

    def test_timing_instructions_as_json(self):
        call = ["run", KERNELS, "--kernel", "spin", "--arg", "u32:100", "--timing"]
        self.assertNotIn("instructions", self.json(*call))
        timing = self.json(*call, "--timing-listing")
        self.assertEqual(sum(i["issued"] for i in timing["instructions"]), timing["simulated"]["wave_instructions"])

    def test_timing_timeline(self):
        call = ["run", KERNELS, "--kernel", "spin", "--arg", "u32:100", "--timing"]
        text = self.succeeds(*call, "--timing-timeline", "-")
        self.assertRegex(text, r"\nspin, compute unit 0: iteration \d+ of 0 to \d+ of loop [0-9a-f]{6} by wave 0 of workgroup 0\n")
        self.assertNotIn("\x1b", text)
        wide = self.succeeds(*call, "--timing-timeline=-", "--timing-window=188,1188")
        self.assertEqual({len(line) for line in wide.split("\n") if " wg 0 " in line}, {120})
        self.assertIn("iteration 7 of", self.succeeds(*call, "--timing-timeline=-", "--timing-iteration=7"))
        self.assertIn("clk 200 to 300,", self.succeeds(*call, "--timing-timeline=-", "--timing-window=200,300"))
        file = self.folder / "timeline.svg"
        self.succeeds(*call, "--timing-timeline", file)
        root = xml.etree.ElementTree.parse(file).getroot()
        self.assertEqual(root.tag, "{http://www.w3.org/2000/svg}svg")
        self.assertIn("s_cbranch", "".join(root.itertext()))
        self.json(*call, "--timing-timeline", file)
        os.remove(file)
        self.refuses("iteration 100000 does not exist", *call, "--timing-timeline", file, "--timing-iteration=100000")
        self.assertFalse(os.path.exists(file))
        self.refuses("spin\" ran no MFMA", *call, "--timing-roofline", file)
        self.assertFalse(os.path.exists(file))
        self.refuses(["--timing-timeline", "--timing-roofline"], *call, "--timing-timeline", file, "--timing-roofline", file)
        self.refuses("--timing-timeline", *call, "--timing-timeline", self.folder / "none" / "timeline.svg")

    def test_timing_of_work_that_a_counter_gives(self):
        call = ["run", KERNELS, "--kernel", "claim", "--grid", "16", "--block", "64", "--arg", "size:4:fill=0", "--arg", "u32:40",
                "--timing"]
        self.refuses(["claim\" takes work from a counter in memory",
                      "(--timing-compute-units 38 --timing-xcds 8, no --timing-workgroups)"], *call)
        self.refuses("(--timing-compute-units 2 --timing-xcds 8", *call, "--device-compute-units=16")
        self.assertTrue(self.json(*call, "--timing-compute-units=38", "--timing-xcds=8")["complete"])

    def test_timing_refuses_what_it_does_not_do(self):
        call = ["run", KERNELS, "--kernel", "spin", "--arg", "u32:100", "--timing"]
        for option in ("--check=none", "--trace", "--waves=greedy", "--completion=early", "--seed=2", "--no-preload"):
            self.refuses(["--timing", option.split("=")[0]], *call, option)
        self.refuses("--timing-timeline - and --json", *call, "--timing-timeline=-", "--json")
        self.refuses("--timing-window is '7': has one number; it must be BEGIN,END", *call, "--timing-timeline=-", "--timing-window=7")
        self.refuses("--timing-window is '7,x'", *call, "--timing-timeline=-", "--timing-window=7,x")
        self.refuses("7 to 7 clk", *call, "--timing-timeline=-", "--timing-window=7,7")
        self.refuses("--timing-timeline", *call, "--timing-window=7,8")
        self.refuses("--timing-iteration", *call, "--timing-timeline=-", "--timing-window=7,8", "--timing-iteration=1")
        self.refuses("--timing", *call[:-1], "--timing-timeline=-")
        self.refuses("--timing", *call[:-1], "--clock-mhz=1200")
        self.refuses("--clock-mhz", *call, "--clock-mhz=0")
        self.refuses("the device has 12 compute units; it must be a multiple of 8", *call, "--device-compute-units=12")
        self.refuses("2 compute units to be simulated together; it must be one to 1", *call, "--device-compute-units=8",
                     "--timing-compute-units=2")
        self.refuses("--timing", *call[:-1], "--timing-listing")
        self.refuses("--timing-compute-units", *call, "--timing-compute-units", "39")

    def test_timeline_in_a_terminal(self):
        command = [EMU, "run", KERNELS, "--kernel", "spin", "--arg", "u32:100", "--timing", "--timing-timeline=-",
                   "--timing-window=188,1188"]

        def shown(environment):
            terminal, end = pty.openpty()
            fcntl.ioctl(end, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 70, 0, 0))
            process = subprocess.Popen(command, stdout=end, env=environment)
            os.close(end)
            text = b""
            try:
                while part := os.read(terminal, 65536):
                    text += part
            except OSError:  # the other end is closed
                pass
            os.close(terminal)
            self.assertEqual(process.wait(), 0)
            return text.decode()

        environment = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
        self.assertIn("\x1b[38;5;", shown(environment))
        plain = shown(environment | {"NO_COLOR": "1"})
        self.assertNotIn("\x1b", plain)
        self.assertEqual({len(line) for line in plain.split("\r\n") if " wg 0 " in line}, {70})

    def test_roofline(self):
        # `steps` with an MFMA, v[0:3] = v[4:5] * v[6:7] + v[0:3], instead of v_mad_u64_u32.
        code = bytearray(pathlib.Path(REGISTERS).read_bytes())
        before, after = struct.pack("<II", 0xd1e80804, 0x02020004), struct.pack("<II", 0xd3cd0000, 0x04020d04)
        code[(at := code.index(before)):at + len(after)] = after
        (self.folder / "a.co").write_bytes(code)
        file = self.folder / "roofline.svg"
        call = ["run", self.folder / "a.co", "--kernel", "steps", "--arg", "u32:0", "--timing"]
        self.succeeds(*call, "--timing-roofline", file)
        text = "".join(xml.etree.ElementTree.parse(file).getroot().itertext())
        self.assertIn("steps, 1 workgroup\n", text)
        self.assertIn("MFMA f16: 1307 TFLOPS", text)
        self.succeeds(*call, "--timing-roofline", file, "--clock-mhz=1200")
        self.assertIn("MFMA f16: 747 TFLOPS", "".join(xml.etree.ElementTree.parse(file).getroot().itertext()))


if __name__ == "__main__":
    main()
