"""What `sluice-emu` says and returns where there are warnings; KERNELS is the code object of emu_masks.s."""
from emu_fixture import KERNELS as MASKS
from emu_fixture import REGISTERS, EmuTest, main


class WarningsTest(EmuTest):
    def test_warnings(self):
        masks = ["run", MASKS, "--kernel", "masks"]
        self.assertRegex(self.succeeds(*masks), r"\n3 reports, all of them warnings\n$")
        self.assertRegex(self.succeeds(*masks, "--max-reports", "1"),
                         r"\n1 report, a warning; --max-reports leaves out others, which occurred 2 times\n$")
        self.assertIn(": warning: hazard (compiler): vcc", self.succeeds(*masks))
        result = self.json(*masks)
        self.assertEqual((result["clean"], result["failed"], {r["severity"] for r in result["reports"]}),
                         (False, False, {"warning"}))
        result = self.json(*masks, "--warn", "none", status=1)
        self.assertEqual((result["failed"], {r["severity"] for r in result["reports"]}), (True, {"error"}))
        self.assertIn("nothing to report", self.succeeds(*masks, "--check", "hazards"))
        careless = ["run", REGISTERS, "--kernel", "careless", "--arg", "size:64:fill=1"]
        self.assertRegex(self.succeeds(*careless, "--warn", "all"), r"\n2 reports, all of them warnings\n$")
        self.assertRegex(self.succeeds(*careless, "--warn", "pending", status=1), r"\n2 reports, 1 of them a warning\n$")
        self.refuses("--warn is 'typo': there is no check 'typo'; it is default, all, none or a list of", *masks, "--warn",
                     "typo")
        self.refuses("--warn is 'global_bounds': global_bounds cannot only warn", *masks, "--warn", "global_bounds")

    def test_a_kernel_that_never_ends(self):
        text = self.succeeds("run", MASKS, "--kernel", "endless", "--budget", "1000", status=1)
        self.assertRegex(text, r"endless at 0x\w+: budget_exhausted: the wave has executed 1000 instructions without ending\n"
                               r"  instruction  s_branch")

    def test_levels(self):
        text = self.succeeds("check", MASKS)
        self.assertEqual(text.count("masks at 0x"), 3)
        self.assertEqual(text.count(": warning: hazard (compiler): vcc"), 3)
        self.assertTrue(text.endswith("\n3 reports: 0 required, 3 compiler, 0 by_count\n"), text)
        self.succeeds("check", MASKS, "--fail-on", "required")
        self.succeeds("check", MASKS, "--fail-on", "compiler", status=1)
        self.succeeds("check", MASKS, "--fail-on", "by_count", status=1)
        self.refuses("--fail-on", "check", MASKS, "--fail-on", "typo")


if __name__ == "__main__":
    main()
