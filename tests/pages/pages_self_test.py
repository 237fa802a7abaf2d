#!/usr/bin/python3
"""The checks of the pages must fail on each kind of violation, and only then."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

import check_blocks
import check_commands
import check_html
import check_links
import check_names


class BlocksTest(unittest.TestCase):
    SOURCE = "int a;\n// <one>\n  int b;\n  // <two>\n  int c;\n  // </two>\n// </one>\n"
    PAGE = "Text.\n\n<!-- docs/x.cpp: one -->\n```cpp\nint b;\nint c;\n```\n"

    def check(self, page, source=SOURCE, sessions=""):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            (root / "docs").mkdir()
            (root / "docs/x.cpp").write_text(source)
            return check_blocks.check_page(root, pathlib.PurePath("docs/page.md"), page, sessions)

    def expect_one(self, page, text, **more):
        problems, _ = self.check(page, **more)
        self.assertEqual(len(problems), 1, problems)
        self.assertIn(text, problems[0])

    def test_equal_text_passes(self):
        self.assertEqual(self.check(self.PAGE), ([], self.PAGE))
        whole = "<!-- docs/x.cpp -->\n```cpp\nint a;\n  int b;\n  int c;\n```\n"
        self.assertEqual(self.check(whole), ([], whole))

    def test_differences_are_found_and_fixed(self):
        page = self.PAGE.replace("int c", "int d")
        problems, mended = self.check(page)
        self.assertIn("docs/page.md:4: the block differs from docs/x.cpp", problems[0])
        self.assertEqual(mended, self.PAGE)

    def test_code_from_nowhere(self):
        self.expect_one("Text.\n\n```c\nint b;\n```\n", "must name its file")
        self.expect_one("```c\nint b;\n```\n", "must name its file")
        self.expect_one(self.PAGE.replace("x.cpp", "y.cpp"), "No such file")
        self.expect_one(self.PAGE.replace(": one", ": three"), "has 0 regions 'three'")
        self.expect_one(self.PAGE, "has 2 regions 'one'", source=self.SOURCE * 2)

    def test_regions_are_shown(self):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            (root / "docs/examples").mkdir(parents=True)
            (root / "docs/examples/x.cpp").write_text(self.SOURCE)
            shown = "<!-- docs/examples/x.cpp: one -->\n"
            self.assertEqual(check_blocks.unshown(root, [shown]), ["no page shows the region 'two' of docs/examples/x.cpp"])
            self.assertEqual(check_blocks.unshown(root, [shown, shown.replace("one", "two")]), [])

    def test_sessions_are_run_elsewhere(self):
        session = "The file `x.c`:\n\n```c\nint b;\n```\n\n```console\n$ true\n```\n"
        self.assertEqual(self.check(session, sessions="docs/page.md")[0], [])
        self.expect_one(session, "does not run it", sessions="docs/other.md")
        problems, _ = self.check(session.replace("```console", "```text"))
        self.assertIn("must name its file", problems[0])


class LinksTest(unittest.TestCase):
    def problems(self, page, **files):
        tree = {"docs/README.md": "# Index\n\n`docs/page.md`\n", "docs/page.md": page, "src/half.h": "",
                "tests/CMakeLists.txt": "sluice_add_unit_test(half_test\n)\nadd_test(NAME run_${kind} COMMAND x)\nadd_test(NAME ${x} COMMAND x)",
                "docs/other.md": "# Other {#other}\n\n## A part, of it\n\n" + "[x](README.md)\n" * 10}
        tree["docs/README.md"] += "[other](other.md)\n"
        tree.update({name.replace("__", "/") + ".md": text for name, text in files.items()})
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder).resolve()
            for name, text in tree.items():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(text)
            return check_links.check(root)

    def expect_one(self, page, text, **files):
        problems = self.problems(page, **files)
        self.assertEqual(len(problems), 1, problems)
        self.assertIn(text, problems[0])

    def test_existing_targets_pass(self):
        self.assertEqual(self.problems("[a](other.md) [b](other.md#a-part-of-it) [c](#here) [d](other.md#other) `src/half.h` "
                                       "`half_test`, the tests `run_far` and `half_test` \\ref other [web](https://example.org/none)\n\n# Here\n"), [])

    def test_missing_targets_are_found(self):
        self.expect_one("[a](none.md)\n", "docs/page.md:1: the link has no target: none.md")
        self.expect_one("![a](none.svg)\n", "the link has no target")
        self.expect_one("[a](other.md#no-part)\n", "docs/other.md has no heading 'no-part'")
        self.expect_one("[a](../../outside.md)\n", "the link has no target")
        self.expect_one("\\ref lost\n", "no page is called 'lost'")
        self.expect_one("`src/none.h`\n", "src/none.h does not exist")
        self.expect_one("`none_test`\n", "no test is called none_test")
        self.expect_one("the test `walk_far`\n", "no test is called walk_far")
        self.expect_one("tests `run_far`,\n`half_test` and `walk`\n", "no test is called walk")

    def test_code_is_not_looked_at(self):
        self.assertEqual(self.problems("```\n[a](none.md) `src/none.h`\n```\n"), [])

    def test_the_index_is_complete(self):
        self.expect_one("", "docs/README.md does not name docs/lost.md", docs__lost="# Lost\n")
        self.assertEqual(self.problems("", docs__examples__x="# An example's\n"), [])

    def test_pages_without_links_prove_nothing(self):
        self.expect_one("", "would prove little", docs__other="# Other\n")


class HtmlTest(unittest.TestCase):
    PAGE = '<a href="other.html#there">x</a> <a href="#here" id="here">x</a>' + '<img src="../p.svg"/>' * 5

    TREE = 'var NAVTREE = [\n' + '[ "a", "other.html#there", null ],\n' * 5 + '[ "a", null, [\n] ]'

    def problems(self, page=PAGE, tree=TREE):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder) / "html"
            root.mkdir()
            (root.parent / "p.svg").write_text("")
            (root / "navtreedata.js").write_text(tree)
            (root / "page.html").write_text(page)
            (root / "other.html").write_text('<a id="there"/>')
            return check_html.problems(root)

    def test_existing_targets_pass(self):
        self.assertEqual(self.problems(), [])

    def test_missing_targets_are_found(self):
        self.assertEqual(self.problems(self.PAGE + '<img src="p.svg"/>'), ["page.html: p.svg does not exist"])
        self.assertEqual(self.problems(self.PAGE.replace("#there", "#their")), ["page.html: other.html has no place 'their'"])
        self.assertEqual(self.problems(self.PAGE.replace("#here", "#hear")), ["page.html: page.html has no place 'hear'"])
        self.assertEqual(len(self.problems("no picture")), 1)

    def test_the_navigation_leads_somewhere(self):
        self.assertEqual(self.problems(tree=self.TREE.replace("other.html#there", "others.html", 1)),
                         ["navtreedata.js: others.html does not exist"])
        self.assertEqual(self.problems(tree=self.TREE.replace("#there", "#their", 1)),
                         ["navtreedata.js: other.html has no place 'their'"])
        self.assertEqual(len(self.problems(tree="var NAVTREE = [ ]")), 1)

    def test_code_spans_are_recognised(self):
        self.assertEqual(self.problems(self.PAGE + "<code>`date`</code> <pre class='fragment'>`date`</pre>"), [])
        self.assertEqual(self.problems(self.PAGE + "<p>the ` of a span</p>"), ["page.html: a code span is not recognised"])


class CommandsTest(unittest.TestCase):
    HELP = {("sluice-emu", None): "Subcommands:\n  run    a launch\n  exec   a program\n",
            ("sluice-emu", "run"): "  --grid X   how many\n", ("sluice-emu", "exec"): "  --seed N\n",
            ("conformance", None): "  --case PATTERN\n"}

    class Fake(check_commands.Programs):
        def help(self, name, subcommand=None):
            return CommandsTest.HELP.get((name, subcommand), "")

    def wrong(self, text):
        programs = self.Fake({"sluice-emu": "", "conformance": ""})
        return [check_commands.wrong_with(command, programs) for _, command in check_commands.commands_of(text)]

    def test_right_commands(self):
        for text in ("    sluice-emu run --grid 4", "```\n$ build/dev/bin/conformance --case 'x'\n```", "`sluice-emu exec`",
                     "`sluice-emu exec --seed 7 ./program --theirs`", "`other --option`", "`sluice-emu`",
                     "    sluice-emu run \\\n      --grid 4"):
            self.assertEqual(set(self.wrong(text)), {None}, text)

    def test_wrong_commands(self):
        self.assertEqual(self.wrong("    sluice-emu ruin --grid 4"), ["sluice-emu has no command 'ruin'"])
        self.assertEqual(self.wrong("`sluice-emu run --gird 4`"), ["sluice-emu run has no option --gird"])
        self.assertEqual(self.wrong("`sluice-emu run --gri`"), ["sluice-emu run has no option --gri"])
        self.assertEqual(self.wrong("`build/dev/bin/conformance --cases`"), ["conformance has no option --cases"])
        self.assertEqual(self.wrong("    sluice-emu run \\\n      --gird 4"), ["sluice-emu run has no option --gird"])

    def test_scripts_can_be_run(self):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            (root / "tests").mkdir()
            script = root / "tests/a.py"
            script.write_text("#!/bin/sh\n")
            script.chmod(0o644)
            self.assertIsNone(check_commands.wrong_with_script("tests/a.py", root))
            self.assertIsNone(check_commands.wrong_with_script("other/a.py --fix", root))
            self.assertEqual(check_commands.wrong_with_script("tests/a.py --fix", root), "tests/a.py cannot be run")
            self.assertEqual(check_commands.wrong_with_script("tests/b.py --fix", root), "tests/b.py cannot be run")
            script.chmod(0o755)
            self.assertIsNone(check_commands.wrong_with_script("tests/a.py --fix", root))
            (root / "page.md").write_text("    tests/b.py --fix\n")
            self.assertEqual(check_commands.check(root, self.Fake({})),
                             ["page.md:1: tests/b.py cannot be run: tests/b.py --fix"])

    def test_help_is_asked_of_the_program(self):
        programs = check_commands.Programs({"echo": "/bin/echo"})
        self.assertEqual(programs.help("echo", "x").strip(), "x --help")
        with tempfile.TemporaryDirectory() as folder:
            program = pathlib.Path(folder) / "program"
            program.write_text("#!/bin/sh\necho $1 --help-hidden\n")
            program.chmod(0o755)
            programs = check_commands.Programs({"program": program})
            self.assertEqual(programs.help("program").strip(), "--help-hidden --help-hidden")


class NamesTest(unittest.TestCase):
    KERNELS = ["attn_fwd_f16_d128_q256_kv64_w8", "attn_fwd_bf16_d64_q16_kv32_w4_decode", "kv_append_f16_f16"]
    PASSES = {"reuse-lds", "sink-copies"}

    def kernels(self, text):
        return [message for _, message in check_names.wrong_kernels(text, self.KERNELS)]

    def passes(self, text):
        return [message for _, message in check_names.wrong_passes(text, self.PASSES)]

    def test_kernels(self):
        for text in ("`attn_fwd_f16_d128_q256_kv64_w8`.", "kv_append_f16_f16, kv_append_*", "attn_fwd_...", "f16_d128_q256_kv64_w8",
                     "attn_fwd_{f16_d128_*,bf16_d64_*_decode}", "attn_fwd_[bf]*16_d64_*", "other_kv_append_init, attn_fwd_params",
                     "sluice-kernelgen --row attn_fwd_f16_d160_q128_kv32_w4"):
            self.assertEqual(self.kernels(text), [], text)
        for name in ("attn_fwd_f16_d128_q128_kv64_w4", "kv_append_f16_f32", "kv_copy_*", "attn_fwd_{f16_d128_*,f16_d64_*}",
                     "f16_d128_q256_kv64_w4"):
            self.assertEqual(self.kernels(f"See `{name}`."), [f"no kernel is called {name}"])

    def test_passes(self):
        self.assertEqual(self.passes("`reuse-lds:2`, the pass `sink-copies`; `sluice-emu` and `clang-22`"), [])
        self.assertEqual(self.passes("`reuse-bytes` comes first"), ["no pass is called reuse-bytes"])
        self.assertEqual(self.passes("the pass `overlap-copies`"), ["no pass is called overlap-copies"])
        self.assertEqual(self.passes("the `overlap-copies` pass"), ["no pass is called overlap-copies"])

    def test_lists_of_passes(self):
        def wrong(shown, picture):
            table = "".join(f"| `{name}` | 1 | x |\n" for name in shown)
            proofs = f"<!-- passes: begin (x) -->\n{table}<!-- passes: end -->"
            return list(check_names.wrong_lists(proofs, f"Text\n```\n{picture}\n```\n", ["reuse-lds"], ["reuse-lds", "reuse-lds:2"]))

        self.assertEqual(wrong(["reuse-lds", "reuse-lds:2"], "reuse-lds  places"), [])
        self.assertEqual(len(wrong(["reuse-lds"], "reuse-lds")), 1)
        self.assertEqual(len(wrong(["reuse-lds", "reuse-lds:2"], "sink-copies")), 1)


class MaskCellsTest(unittest.TestCase):
    """The program that compares drawn masks with the reference."""

    def run_with(self, change):
        drawn = subprocess.run([sys.executable, "-B", DRAW, "--masks"], check=True, capture_output=True, text=True).stdout
        return subprocess.run([MASK_CELLS], input=change(drawn), capture_output=True, text=True)

    def test_drawn_masks_are_those_of_the_reference(self):
        done = self.run_with(lambda drawn: drawn)
        self.assertEqual((done.returncode, done.stdout), (0, ""))

    def test_one_wrong_cell_is_found(self):
        done = self.run_with(lambda drawn: drawn.replace("1111000", "1110000", 1))
        self.assertEqual(done.returncode, 1)
        self.assertIn("causal, bottom-right: a row is drawn as 1110000, and the reference sees 1111000", done.stdout)

    def test_few_masks_prove_little(self):
        self.assertEqual(self.run_with(lambda drawn: "".join(drawn.splitlines(True)[:5])).returncode, 1)
        self.assertEqual(self.run_with(lambda drawn: drawn + "and more\n").returncode, 1)


if __name__ == "__main__":
    DRAW, MASK_CELLS = sys.argv.pop(1), sys.argv.pop(1)
    unittest.main()
