#!/usr/bin/python3
"""The tree check must fail on each kind of violation, and only then."""
import pathlib
import tempfile
import unittest

import check_features
import check_tree

RULES = """# page
<!-- folder rules: begin -->
| folder | what | ours | others |
| --- | --- | --- | --- |
| `include/sluice` | api | | |
| `src/support` | numbers | | |
| `src/runtime` | plans | `include/sluice` `src/support` | `posix` |
| `kernels/dialect` | dialect | | `mlir` `llvm` |
| `src/machine/low` | ground floor | | |
| `src/machine/high` | next floor | `src/machine/low` | |
| `bindings/go` | Go | `include/sluice` | |
<!-- folder rules: end -->
"""
CLEAN = {
    "docs/concepts/architecture.md": RULES,
    "include/sluice/sluice.h": "#include <stdint.h>\n",
    "src/support/half.h": "#include <cstdint>\n",
    "src/runtime/plan.cpp": '#include "plan.h"\n#include "support/half.h"\n#include <sluice/sluice.h>\n'
                            "#include <dlfcn.h>\n#include <vector>\n",
    "src/runtime/plan.h": '#include "runtime/plan.cpp"\n',
    "src/support/CMakeLists.txt": "sluice_add_library(support SOURCES half.cpp number.cpp)\n",
    "src/runtime/CMakeLists.txt": "# plans (the parts)\nadd_library(runtime STATIC plan.cpp)\n"
                                  "target_link_libraries(runtime PUBLIC support ${CMAKE_DL_LIBS} PRIVATE warnings)\n",
    "src/machine/low/CMakeLists.txt": "sluice_add_library(low SOURCES row.cpp)\nsluice_add_library(deep SOURCES deep.cpp)\n",
    "src/machine/high/CMakeLists.txt": "sluice_add_library(\n  high\n  SOURCES deep/step.cpp # one\n  LINKS low)\n",
    "src/machine/CMakeLists.txt": "add_library(all SHARED all.map)\n"
                                  "target_link_libraries(all PRIVATE $<LINK_LIBRARY:WHOLE_ARCHIVE,high> low)\n",
    "src/machine/low/row.h": "",
    "src/machine/low/row.cpp": "",
    "src/machine/low/deep.h": "",
    "src/machine/high/deep/step.cpp": '#include "machine/low/row.h"\n',
    "kernels/dialect/Ops.td": 'include "mlir/IR/OpBase.td"\n',
    "bindings/go/sluice.go": "package sluice\n\n// #include <sluice/sluice.h>\n// #include <stdlib.h>\nimport \"C\"\n",
    "kernels/dialect/Ops.cpp": '#include "dialect/Ops.h.inc"\n#include "llvm/ADT/STLExtras.h"\n',
}


class TreeTest(unittest.TestCase):
    def problems(self, files={}):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for name, text in {**CLEAN, **files}.items():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(text)
            return check_tree.check(root)

    def expect_one(self, files, text):
        problems = self.problems(files)
        self.assertEqual(len(problems), 1, problems)
        self.assertIn(text, problems[0])

    def test_clean_tree_passes(self):
        self.assertEqual(self.problems(), [])

    def test_include_against_the_arrows(self):
        self.expect_one({"src/support/half.cpp": '#include "runtime/plan.h"\n'}, "src/support may not include src/runtime")

    def test_rows_of_folders_in_folders(self):
        self.expect_one({"src/machine/low/row.cpp": '#include "machine/high/step.h"\n', "src/machine/high/step.h": ""},
                        "src/machine/low may not include src/machine/high")
        self.expect_one({"src/machine/other.cpp": ""}, "the folder 'src/machine' has no row")

    def test_include_through_a_relative_path(self):
        self.expect_one({"src/support/half.cpp": '\n#include "../runtime/plan.h"\n'},
                        "src/support/half.cpp:2: src/support may not include src/runtime")

    def test_llvm_in_the_run_time_world(self):
        self.expect_one({"src/runtime/x.cpp": "#include <llvm/ADT/StringRef.h>\n"}, "src/runtime may not include llvm")

    def test_public_header_includes_ours(self):
        self.expect_one({"include/sluice/more.h": '#include "support/half.h"\n'}, "may not include src/support")

    def test_indented_include(self):
        self.expect_one({"src/support/half.cpp": '  #  include "runtime/plan.h"\n'}, "may not include src/runtime")

    def test_tablegen_include(self):
        self.expect_one({"kernels/dialect/More.td": 'include "runtime/plan.h"\n'}, "may not include src/runtime")

    def test_generated_table_of_another_folder(self):
        self.expect_one({"src/support/half.cpp": '#include "dialect/Ops.h.inc"\n'}, "may not include kernels/dialect")

    def test_go_includes_in_comments(self):
        for spelled in ('// #include "support/half.h"', '#include "support/half.h"', '//   #  include "support/half.h"'):
            self.expect_one({"bindings/go/hip/hip.go": f'package hip\n{spelled}\nimport "C"\n'},
                            "bindings/go/hip/hip.go:2: bindings/go may not include src/support")

    def test_unknown_header(self):
        self.expect_one({"src/support/half.cpp": "#include <boost/any.hpp>\n"}, "nor in a known group")

    def test_folder_without_a_rule(self):
        self.expect_one({"src/surprise/x.cpp": "#include <vector>\n"}, "'src/surprise' has no row")

    def test_circle_of_rules(self):
        row, cells = "| `src/support` | numbers | | |", "| `src/support` | numbers | `{}` | |"
        for to, circle in (("src/runtime", "src/support -> src/runtime -> src/support"),
                           ("src/support", "src/support -> src/support")):
            self.expect_one({"docs/concepts/architecture.md": RULES.replace(row, cells.format(to))}, "form a circle: " + circle)

    def test_link_against_the_arrows(self):
        libraries = "sluice_add_library(support SOURCES half.cpp{})\n{}"
        for inside, behind in ((" LINKS runtime", ""), ("", "target_link_libraries(support PRIVATE runtime)\n"),
                               ("", "target_link_libraries(support PRIVATE $<LINK_LIBRARY:WHOLE_ARCHIVE,runtime>)\n")):
            self.expect_one({"src/support/CMakeLists.txt": libraries.format(inside, behind)},
                            "src/support/CMakeLists.txt: 'support' of src/support may not link 'runtime' of src/runtime")
        program = "add_executable(low row.cpp)\ntarget_link_libraries(low PRIVATE high)\n"
        self.expect_one({"src/machine/low/CMakeLists.txt": program},
                        "'low' of src/machine/low may not link 'high' of src/machine/high")

    def test_sources_that_cmake_finds(self):
        files = {"src/machine/high/CMakeLists.txt": "file(GLOB steps CONFIGURE_DEPENDS deep/*.cpp)\nlist(SORT steps)\n"
                                                    "sluice_add_library(\n  high\n  SOURCES ${steps}\n  LINKS low)\n"}
        self.assertEqual(self.problems(files), [])
        self.expect_one({**files, "src/machine/high/deep/step.cpp": ""},
                        "'high' links 'low', but includes none of its headers")

    def test_needless_link(self):
        self.expect_one({"src/runtime/plan.cpp": '#include "plan.h"\n#include <dlfcn.h>\n'},
                        "src/runtime/CMakeLists.txt: 'runtime' links 'support', but includes none of its headers")
        # Through a header of the folder it is needed.
        self.assertEqual(self.problems({"src/runtime/plan.cpp": '#include "plan.h"\n',
                                        "src/runtime/plan.h": '#include "support/half.h"\n'}), [])

    def test_needless_link_of_one_of_the_libraries_of_a_folder(self):
        links = {"src/machine/high/CMakeLists.txt": "sluice_add_library(high SOURCES deep/step.cpp LINKS low deep)\n"}
        self.expect_one(links, "'high' links 'deep', but includes none of its headers")
        step = {"src/machine/high/deep/step.cpp": '#include "machine/low/row.h"\n#include "machine/low/deep.h"\n'}
        self.assertEqual(self.problems({**links, **step}), [])

    def test_shared_library_counts_as_its_public_headers(self):
        program = "add_executable(program main.cpp)\ntarget_link_libraries(program PRIVATE all)\n"
        runtime = CLEAN["src/runtime/CMakeLists.txt"] + program
        main = {"src/runtime/CMakeLists.txt": runtime, "src/runtime/main.cpp": "#include <sluice/sluice.h>\n"}
        self.assertEqual(self.problems(main), [])
        self.expect_one({**main, "src/runtime/main.cpp": ""}, "'program' links 'all', but includes none of its headers")

    def test_stray_file_in_the_root(self):
        self.expect_one({"notes.txt": "x"}, "notes.txt: does not belong in the root")

    def test_empty_tree_proves_nothing(self):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            (root / "docs/concepts").mkdir(parents=True)
            (root / "docs/concepts/architecture.md").write_text(RULES)
            self.assertIn("prove nothing", check_tree.check(root)[0])

    def test_missing_table_is_an_error(self):
        with self.assertRaises(ValueError):
            check_tree.read_rules("no table")


class FeaturesTest(unittest.TestCase):
    PAGE = ("Run by `some_test`.\n\n| feature | supported | tested by |\n| --- | --- | --- |\n"
            "| LSE | by | yes | `*_lse*` |\n| factors | by | no |  |\n\n| other | table |\n")

    def problems(self, page, cases=("f16_lse",), tests=("some_test",)):
        return check_features.problems(page, cases, tests)

    def test_existing_cases_and_tests_pass(self):
        self.assertEqual(self.problems(self.PAGE), [])

    def test_missing_cases_and_tests_are_found(self):
        self.assertIn("no case of the suite is like '*_lse*'", self.problems(self.PAGE, cases=("f16",))[0])
        self.assertIn("no test is called 'some_test'", self.problems(self.PAGE, tests=())[0])
        self.assertIn("'LSE' is supported, but no cases", self.problems(self.PAGE.replace("`*_lse*`", ""))[0])

    def test_empty_pages_prove_nothing(self):
        self.assertIn("names no tests", self.problems(self.PAGE.replace("`some_test`", "none"))[0])
        bare = "Run by `some_test`.\n\n| feature | tested by |\n| --- | --- |\n\n"
        self.assertIn("no rows", self.problems(bare)[0])


if __name__ == "__main__":
    unittest.main()
