"""Builds test programs that contain mutated files, next to those of the build and with its own commands.

Nothing in the source tree or build tree is written: mutated files, their objects and the programs linked from them are in
a separate folder, which is deleted after the run.
"""
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys

import mutants
import syntax


def run(command, folder):
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def output_of(command):
    return command[command.index("-o") + 1]


class Build:
    """A configured build tree: how it compiles a file and links a program."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder).resolve()
        database = self.folder / "compile_commands.json"
        if not database.is_file():
            sys.exit(f"mutate.py: {database} is missing: configure the build first, with ./dev build")
        self.compiles = {}  # source -> its commands; a file may be compiled more than once
        for entry in json.loads(database.read_text(encoding="utf-8")):
            self.compiles.setdefault(entry["file"], []).append(shlex.split(entry["command"]))

    def tests(self, names):
        """CTest's commands and folders of these tests, in this order."""
        listing = json.loads(run(["ctest", "--show-only=json-v1"], self.folder).stdout)
        found = {}
        for test in listing["tests"]:
            folder = [p["value"] for p in test.get("properties", []) if p["name"] == "WORKING_DIRECTORY"]
            found[test["name"]] = (test.get("command"), folder[0] if folder else str(self.folder))
        missing = [name for name in names if name not in found or not found[name][0]]
        if missing:
            sys.exit(f"mutate.py: this build has no tests {', '.join(missing)}")
        return [(name, *found[name]) for name in names]

    def make(self, targets):
        result = run(["ninja", *targets], self.folder)
        if result.returncode != 0:
            sys.exit(f"mutate.py: the tests cannot be built:\n{result.stdout}{result.stderr}")

    def links(self, targets):
        """{output: link command} of these targets and of the libraries in them; {archive: its objects}."""
        links, archives = {}, {}
        for line in run(["ninja", "-t", "commands", *targets], self.folder).stdout.splitlines():
            for part in line.split(" && "):
                words = shlex.split(part)
                if "qc" in words:
                    at = words.index("qc")
                    archives[words[at + 1]] = words[at + 2:]
                elif "-o" in words and "-c" not in words:
                    links[output_of(words)] = words
        # Programs that only generate inputs of the build are not test programs.
        inside, left = set(), [self.real_name(target) for target in targets]
        while left:
            name = left.pop()
            if name not in inside:
                inside.add(name)
                left += links.get(name, []) + archives.get(name, [])
        return ({name: words for name, words in links.items() if name in inside},
                {name: words for name, words in archives.items() if name in inside})

    def real_name(self, target):
        """A library under the name it is linked by."""
        return os.path.relpath(os.path.realpath(self.folder / target), self.folder)

    def includers(self, header, sources):
        """Which of the sources include the header, as far as ninja knows."""
        objects = {output_of(command): source for source in sources for command in self.compiles[source]}
        found, current = set(), None
        for line in run(["ninja", "-t", "deps", *objects], self.folder).stdout.splitlines():
            if line and not line[0].isspace():
                current = line.split(":")[0]
            elif os.path.realpath(os.path.join(self.folder, line.strip())) == str(header):
                found.add(objects[current])
        return sorted(found)


def targets_of(build, command):
    """The built files in a test's command, by their names in the build tree."""
    inside = str(build.folder) + "/"
    words = [word[len(inside):] for word in command if word.startswith(inside)]
    return [word for word in words if re.match(r"(bin|lib)/", word)]


def faulty_lines(errors, file):
    """The lines of a file with errors. If a value is no longer a constant, the notes name it."""
    lines, blamed, line = set(), set(), None
    for number, kind, text in re.findall(re.escape(str(file)) + r":(\d+):\d+: (error|note): (.*)", errors):
        if kind == "error":
            lines.add(int(number))
            line = int(number) if "constant expression" in text else None
        elif line is not None:
            blamed.add(line)
            lines.add(int(number))
    return lines - blamed


class MutatedPrograms:
    """The programs of some tests with all mutants of a file in them."""

    def __init__(self, build, root, folder, path, tests):
        self.build, self.root, self.folder, self.path = build, root, folder, path
        self.tests = tests
        self.source = path.read_bytes()
        self.links, self.archives = build.links(
            sorted({target for _, command, _ in tests for target in targets_of(build, command)}))
        self.units = self.find_units()
        self.programs = {}  # path in the build -> path of the mutated one

    def find_units(self):
        """The files to compile: this one, or those of the tested folders and of the tests that include it."""
        if self.path.suffix == ".cpp":
            return [str(self.path)]
        linked = {word for command in self.links.values() for word in command}
        linked |= {word for archive, objects in self.archives.items() if archive in linked for word in objects}
        sources = [source for source, commands in self.build.compiles.items()
                   if any(output_of(command) in linked for command in commands)]
        return self.build.includers(self.path, sources)

    def find(self):
        """All mutants, before those that do not compile are removed."""
        if not self.units:
            return []
        source = self.units[0]
        words = self.build.compiles[source][0]
        flags = [word for before, word in zip([""] + words, words)
                 if re.match(r"-(I|D|std|isystem)", word) or before == "-isystem"]
        trees = syntax.read_trees(source, flags)
        return mutants.find_mutants(self.path, str(self.path.relative_to(self.root)), self.source, trees)

    def compile(self, found):
        """Compiles the schema, leaving out mutants of lines that do not compile. Returns the mutants that are in it."""
        overlay = self.folder / "overlay"
        place = overlay / self.path.relative_to(self.root / "src" if self.path.suffix == ".h" else self.root)
        place.parent.mkdir(parents=True, exist_ok=True)
        selector = self.folder / "sluice_mutation.h"
        selector.write_text(mutants.SELECTOR, encoding="utf-8")
        for _ in range(8):
            place.write_text(mutants.schema(self.source, found), encoding="utf-8")
            errors = self.compile_units(overlay, place, selector)
            if errors is None:
                return found
            lines = faulty_lines(errors, place)
            kept = [m for m in found if not any(m.line <= line <= m.last_line for line in lines)]
            if len(kept) == len(found):
                break
            found = kept
        sys.exit(f"mutate.py: {self.path} with mutants does not compile:\n{errors}")

    def compile_units(self, overlay, place, selector):
        self.objects = {}
        for source in self.units:
            for command in self.build.compiles[source]:
                words = list(command)
                target = self.folder / "objects" / output_of(words)
                target.parent.mkdir(parents=True, exist_ok=True)
                self.objects[output_of(words)] = str(target)
                words[words.index("-o") + 1] = str(target)
                if source == str(self.path):
                    words[words.index(source)] = str(place)
                # The other includes are found where they were; the selector's first include leaves room for a
                # precompiled header.
                words[1:1] = ["-iquote", str(self.path.parent)] + (["-I" + str(overlay)] if self.path.suffix == ".h" else [])
                words += ["-include", str(selector), "-w", "-Wno-error"]
                result = run(words, self.build.folder)
                if result.returncode != 0:
                    return result.stderr
        return None

    def link(self):
        """Links everything that contains a mutated object or a mutated library, libraries before programs."""
        self.programs = {}
        libraries = self.folder / "linked" / "lib"
        paths = {f"-Wl,-rpath,{self.build.folder / 'lib'}": f"-Wl,-rpath,{libraries}"}
        for output in sorted(self.links, key=lambda output: ".so" not in output):
            words = self.parted(self.links[output])
            objects = [new for old, new in self.objects.items() if old not in words and
                       any(archive in words for archive, inside in self.archives.items() if old in inside)]
            words = [self.objects.get(word) or self.programs.get(str(self.build.folder / word)) or word for word in words]
            if words == self.parted(self.links[output]) and not objects:
                continue
            words = [paths.get(word, word) for word in words]
            target = self.folder / "linked" / output
            target.parent.mkdir(parents=True, exist_ok=True)
            at = words.index("-o")
            words[at:at + 2] = ["-o", str(target), *objects]
            result = run(words, self.build.folder)
            if result.returncode != 0:
                sys.exit(f"mutate.py: {output} with mutants does not link:\n{result.stderr}")
            self.programs[str(self.build.folder / output)] = str(target)
            if ".so" in output:
                self.link_names()

    def parted(self, words):
        """With the parts of libsluice.so instead of libsluice.a, which is one object linked from them."""
        if "lib/libsluice.a" not in words:
            return list(words)
        at = words.index("lib/libsluice.a")
        shared = next(command for output, command in self.links.items() if output.startswith("lib/libsluice.so"))
        return [*words[:at], *(word for word in shared if word.endswith((".o", ".a"))), *words[at + 1:]]

    def link_names(self):
        """A mutated libsluice.so under its other names, and beside it the emulator, where it is looked for."""
        library = self.folder / "linked" / "lib"
        for name in os.listdir(self.build.folder / "lib"):
            if not (library / name).exists() and ".so" in name:
                original = self.build.folder / "lib" / name
                is_alias = original.is_symlink() and (library / os.path.basename(original.resolve())).exists()
                (library / name).symlink_to(original.resolve().name if is_alias else original)

    def commands(self):
        """(name, command, folder) of each test that contains a mutant, with the mutated programs."""
        return [(name, [self.programs.get(word, word) for word in command], folder)
                for name, command, folder in self.tests if any(word in self.programs for word in command)]
