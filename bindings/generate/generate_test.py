#!/usr/bin/python3
"""Tests the description of small headers, and what the writers of the bindings are given.

usage: generate_test.py DOXYGEN
"""
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

import abi
import describe

BASE = """\
#ifndef SLUICE_BASE_H
#define SLUICE_BASE_H
/** @file
 * @brief Base. */
#include <stdint.h>
/** Result. */
typedef int32_t sluice_status;
/** Bits of things. */
enum sluice_flag {
  SLUICE_LOW = 1 << 0, /**< Low. */
  SLUICE_HIGH = 1 << 30 /**< High. */
};
/** Numbers. */
enum sluice_special { SLUICE_ALL = -1 /**< All. */ };
/** Hidden. */
typedef struct sluice_plan sluice_plan;
/** Part of others. */
typedef struct sluice_part {
  char text[3]; /**< Text. */
  float number; /**< Number. */
} sluice_part;
#endif
"""
TOP = """\
#ifndef SLUICE_SLUICE_H
#define SLUICE_SLUICE_H
/** @file
 * @brief Top. */
#include <sluice/base.h>
/** The generation. */
#define SLUICE_MAJOR 2
/** Called back. */
typedef void *(*sluice_fn)(const sluice_part *part, void *user);
/**
 * First `code`, and sluice_flag::SLUICE_LOW
 * goes on.
 *
 *     a   b
 *       c
 *
 * - One item that
 * goes on.
 * - Another.
 *
 * | x | yy |
 * | - | -- |
 * | 1 | 2  |
 *
 * Last.
 */
typedef struct sluice_all {
  uint32_t struct_size;      /**< Size. */
  uint32_t flags;            /**< sluice_flag bits. */
  sluice_part part[2];       /**< Parts. */
  sluice_fn callback;        /**< Callback. */
  const void *const *list;   /**< List. */
  void *const *mixed;        /**< Mixed. */
  uint8_t last;              /**< Last. */
} sluice_all;
/**
 * Makes a plan.
 * @param all  what of
 * @param out  receives it
 * @return SLUICE_OK
 */
sluice_status sluice_make(const sluice_all *all, sluice_plan **out);
#endif
"""


def described(top=TOP):
    with tempfile.TemporaryDirectory() as work:
        include = pathlib.Path(work)
        (include / "sluice").mkdir()
        (include / "sluice/base.h").write_text(BASE)
        (include / "sluice/sluice.h").write_text(top)
        return describe.describe(DOXYGEN, include)


class Description(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        # What the writers get is what is in the file.
        cls.found = abi.from_data(json.loads(describe.to_json(described())))

    def test_order_and_values(self):
        self.assertEqual([header.name for header in self.found.headers], ["sluice/base.h", "sluice/sluice.h"])
        self.assertEqual([(enum.name, enum.bits, [value.value for value in enum.values]) for enum in self.found.enums],
                         [("sluice_flag", True, [1, 1 << 30]), ("sluice_special", False, [-1])])
        self.assertEqual([(value.name, value.value) for value in self.found.constants], [("SLUICE_MAJOR", 2)])
        self.assertEqual([struct.name for struct in self.found.structs], ["sluice_part", "sluice_all"])
        self.assertEqual((self.found.aliases[0].type.c, self.found.opaque[0].name), ("int32_t", "sluice_plan"))

    def test_layout(self):
        part, everything = self.found.structs
        self.assertEqual([(member.offset, member.size) for member in part.members], [(0, 3), (4, 4)])
        self.assertEqual((part.size, part.align, part.is_sized), (8, 4, False))
        self.assertEqual([(member.name, member.offset, member.size) for member in everything.members],
                         [("struct_size", 0, 4), ("flags", 4, 4), ("part", 8, 16), ("callback", 24, 8), ("list", 32, 8),
                          ("mixed", 40, 8), ("last", 48, 1)])
        self.assertEqual((everything.size, everything.align, everything.is_sized), (56, 8, True))

    def test_types(self):
        members = {member.name: member for member in self.found.find("sluice_all").members}
        self.assertEqual(members["list"].type, abi.Type("void", "void", (True, True)))
        self.assertEqual(members["mixed"].type, abi.Type("void", "void", (False, True)))
        self.assertEqual(members["part"].type, abi.Type("sluice_part", "struct", (), 2))
        self.assertEqual(members["callback"].type.kind, "callback")
        self.assertEqual((members["flags"].enum, members["last"].enum), ("sluice_flag", ""))
        self.assertEqual([members[name].type.c for name in ("list", "mixed")], ["const void *const *", "void *const *"])
        callback, make = self.found.callbacks[0], self.found.functions[0]
        self.assertEqual([callback.returns.c] + [part.type.c for part in callback.parameters],
                         ["void *", "const sluice_part *", "void *"])
        self.assertEqual([make.returns.c] + [part.type.c for part in make.parameters],
                         ["sluice_status", "const sluice_all *", "sluice_plan **"])

    def test_comments(self):
        doc = self.found.find("sluice_all").doc
        self.assertEqual(doc, "First `code`, and sluice_flag::SLUICE_LOW goes on.\n\n    a   b\n      c\n\n"
                              "- One item that goes on.\n- Another.\n\n"
                              "| x | yy |\n| - | -- |\n| 1 | 2  |\n\nLast.")
        self.assertEqual(abi.wrapped(doc, 16)[:8], ["First `code`,", "and", "sluice_flag::SLUICE_LOW", "goes on.", "",
                                                    "    a   b", "      c", ""])
        self.assertEqual(abi.wrapped(doc, 16)[8:11], ["- One item that", "  goes on.", "- Another."])
        make = self.found.find("sluice_make")
        self.assertEqual((make.doc, make.returns_doc), ("Makes a plan.", "SLUICE_OK"))
        self.assertEqual([part.doc for part in make.parameters], ["what of", "receives it"])

    def test_what_is_refused(self):
        for old, new, says in [("uint8_t last", "short last", "does not know the type short"),
                               ("/**< Last. */", "", "Doxygen has warnings"),
                               ("MAJOR 2", "MAJOR (1 + 1)", "cannot evaluate"),
                               ("Last.\n */", "Last.<hr>\n */", "does not know Doxygen's <hruler>")]:
            with self.assertRaises(SystemExit) as refused:
                described(TOP.replace(old, new))
            self.assertIn(says, str(refused.exception))


class Files(unittest.TestCase):
    """The command, in a tree of its own with one writer."""

    def setUp(self):
        work = tempfile.TemporaryDirectory()
        self.addCleanup(work.cleanup)
        self.root = pathlib.Path(work.name)
        self.folder = self.root / "bindings/generate"
        self.folder.mkdir(parents=True)
        for name in ("__main__.py", "abi.py", "comments.py", "describe.py"):
            shutil.copy(pathlib.Path(__file__).parent / name, self.folder)
        shutil.copytree(describe.INCLUDE, self.root / "include")
        (self.folder / "go.py").write_text(
            "def write(abi):\n    return {'bindings/go/size.txt': f'{abi.find(\"sluice_tensor\").size}\\n'}\n")

    def run_it(self, *arguments):
        done = subprocess.run([sys.executable, "-B", self.folder, "--doxygen", DOXYGEN, *arguments], capture_output=True,
                              text=True)
        return done.returncode, done.stdout + done.stderr

    def test_writes_and_checks(self):
        self.assertEqual(self.run_it(), (0, "wrote bindings/abi.json\nwrote bindings/go/size.txt\n"))
        self.assertEqual((self.root / "bindings/go/size.txt").read_text(), "40\n")
        self.assertEqual(self.run_it(), (0, ""))
        self.assertEqual(self.run_it("--check"), (0, ""))
        (self.root / "bindings/go/size.txt").write_text("48\n")
        code, output = self.run_it("--check")
        self.assertEqual((code, "-48\n+40\n" in output, "abi.json" in output), (1, True, False))
        self.assertEqual((self.root / "bindings/go/size.txt").read_text(), "48\n")

    def test_a_change_of_a_header_shows(self):
        self.run_it()
        header = self.root / "include/sluice/types.h"
        for old, new in [("int64_t stride[4];", "int32_t stride[4];"), ("Element [0][0][0][0].", "Element 0.")]:
            text = header.read_text()
            self.assertEqual(text.count(old), 1)
            header.write_text(text.replace(old, new))
            code, output = self.run_it("--check")
            self.assertEqual((code, "bindings/abi.json" in output), (1, True))
            header.write_text(text)


if __name__ == "__main__":
    DOXYGEN = sys.argv.pop(1)
    unittest.main()
