#!/usr/bin/python3
"""Checks which HIP runtime and which emulator a context gets, and the messages on machines without them.

usage: check_runtimes.py hip PROBE FOLDER          FOLDER/NUMBER holds a fake libamdhip64.so.NUMBER for 5, 6, 7, 42
       check_runtimes.py roctx PROBE FOLDER LIBRARY STATIC-PROBE
                                                   FOLDER/rocprofiler-sdk-roctx and FOLDER/roctx64 hold a fake roctx of
                                                   that name; LIBRARY is one of another name
       check_runtimes.py no_gpu PROBE              77 (skipped) if the system has no libamdhip64.so.5 or has a GPU
       check_runtimes.py emulator PROBE LIBRARY FOLDER STATIC-PROBE
                                                   LIBRARY is libsluice.so, FOLDER/emulator holds a fake emulator and
                                                   FOLDER/7 a libamdhip64.so.7, which is not an emulator; STATIC-PROBE
                                                   is linked with libsluice.a
"""
import ctypes
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

NOBODY = 65534  # the user of that name


def probe(command, folders, preload="", **how):
    """(status, field, message, [runtime, mapped files...]); fails if anything else is printed."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("LD_")}
    environment["LD_LIBRARY_PATH"] = ":".join(str(folder) for folder in folders)
    environment["LD_PRELOAD"] = str(preload)
    result = subprocess.run([str(part) for part in command], env=environment, capture_output=True, text=True, **how)
    lines = result.stdout.splitlines()
    if result.returncode != 0 or result.stderr or len(lines) != 2:
        sys.exit(f"{command}: exit {result.returncode}\n{result.stdout}{result.stderr}")
    return *lines[0].split("|"), lines[1].split("|")


def expect(what, actual, wanted):
    if actual != wanted:
        sys.exit(f"{what}: got {actual}, expected {wanted}")
    print(f"{what}: {wanted}")


def check_hip(program, folder):
    folder = pathlib.Path(folder)
    # By soname, the newest first, anywhere in the search path.
    for numbers, chosen in (("5", "5"), ("6 5", "6"), ("5 6", "6"), ("5 6 7", "7")):
        status, _, message, runtime = probe([program, "hip"], [folder / n for n in numbers.split()])
        expect(f"of {numbers}", (status, runtime), ("SLUICE_OK", [f"libamdhip64.so.{chosen}"] * 2))
    # A runtime that the process has already loaded wins over any other version, and remains the only one.
    for loaded in ("5", "42"):
        path = folder / loaded / f"libamdhip64.so.{loaded}"
        status, _, message, runtime = probe([program, "hip", path], [folder / "7"])
        expect(f"with {loaded} loaded", (status, runtime), ("SLUICE_OK", [str(path), path.name]))
    with tempfile.TemporaryDirectory() as renamed:
        path = pathlib.Path(renamed) / "libamdhip64-0a1b2c3d.so"
        shutil.copy(folder / "6/libamdhip64.so.6", path)
        status, _, message, runtime = probe([program, "hip", path], [folder / "7"])
        expect("with a renamed one loaded", (status, runtime), ("SLUICE_OK", [str(path), path.name]))
    # If none can be opened, the message gives the reason for each.
    with tempfile.TemporaryDirectory() as broken:
        for number in ("7", "6", "5"):
            (pathlib.Path(broken) / f"libamdhip64.so.{number}").write_text("no library")
        status, field, message, _ = probe([program, "hip"], [broken])
        expect("with three invalid files", (status, field), ("SLUICE_NO_DEVICE", "libamdhip64"))
        said = [rf"{re.escape(broken)}/libamdhip64\.so\.{number}: [^;]+" for number in ("7", "6", "5")]
        if not re.fullmatch("no HIP runtime is loaded, and opening one failed: " + "; ".join(said), message):
            sys.exit(f"unclear message: {message}")
    # A context that does not need HIP does not load it.
    status, _, message, runtime = probe([program, "target"], [folder / "7"])
    expect("for a target", (status, runtime), ("SLUICE_OK", ["none"]))


def check_no_gpu(program):
    try:
        ctypes.CDLL("libamdhip64.so.5")
    except OSError as reason:
        print(f"skipped: {reason}")
        sys.exit(77)
    if pathlib.Path("/dev/kfd").exists():
        print("skipped: this machine has a GPU")
        sys.exit(77)
    status, field, message, _ = probe([program, "hip"], [])
    expect("status", status, "SLUICE_NO_DEVICE")
    expect("field", field, "device_ordinal")
    if "HIP found no such device" not in message:
        sys.exit(f"unclear message: {message}")


def check_wrong_emulators(work, program, library, emulator, static_program):
    """The library does not open an emulator at a path that the user who starts the program controls."""
    soname = emulator.name
    theirs, programs = work / "theirs", work / "programs"
    for place in (theirs, programs):
        place.mkdir()
    shutil.copy(emulator, theirs)
    shutil.copy(static_program, programs / "probe")
    shutil.copy(emulator, programs)
    nothing = ("SLUICE_NO_DEVICE", soname)
    # A program may have any name; libsluice.a linked into it has no folder of its own.
    for name in (theirs / "probe", "./probe", "probe"):
        status, field, message, _ = probe([name, "emulated"], [], executable=programs / "probe", cwd=theirs)
        expect(f"a program that says it is {name}", (status, field), nothing)
        if str(theirs) in message:
            sys.exit(f"it looked there: {message}")
        if str(programs) in message:
            sys.exit(f"it looked beside the program: {message}")
    # A library that was opened by a relative path, in a process that has changed its folder since.
    home, elsewhere = work / "home", work / "elsewhere"
    for place in (home, elsewhere):
        place.mkdir()
    shutil.copy(library, home / "libsluice.so.2")
    shutil.copy(program, elsewhere / "probe")
    command = [elsewhere / "probe", "emulated", "-", theirs]
    status, field, message, _ = probe(command, [], "./libsluice.so.2", cwd=home)
    expect("a folder changed", (status, field), nothing)
    if f"{home}/{soname}" not in message:
        sys.exit(f"it did not look beside the library: {message}")
    shutil.copy(emulator, home)
    status, _, message, runtime = probe(command, [], "./libsluice.so.2", cwd=home)
    expect("a folder changed, and one beside the library", (status, message, runtime), ("SLUICE_OK", "", [soname]))
    check_more_rights(work, theirs, static_program)


def with_more_rights(work, static_program):
    """A copy of the program, to be run by a user with fewer rights; None where that cannot be made."""
    entered = work / "setuid"
    entered.mkdir()
    work.chmod(0o755)
    for file, name in ((static_program, "probe"), (shutil.which("id"), "id")):
        shutil.copy(file, entered / name)
        (entered / name).chmod(0o4755)
    # File systems and containers may not support it.
    try:
        rights = subprocess.run([entered / "id", "-u"], user=NOBODY, capture_output=True, text=True).stdout
    except PermissionError:
        rights = ""
    if os.geteuid() != 0 or rights != "0\n":
        print("skipped: no program with more rights can be made here")
        return None
    return entered / "probe"


def check_more_rights(work, theirs, static_program):
    """A program with more rights than its user opens no emulator."""
    entered = with_more_rights(work, static_program)
    if not entered:
        return
    status, field, message, _ = probe([theirs / "probe", "emulated"], [theirs], executable=entered, cwd=theirs, user=NOBODY)
    expect("with more rights", (status, field), ("SLUICE_NO_DEVICE", "libsluice_emulator.so.1"))
    if "AT_SECURE" not in message:
        sys.exit(f"unclear message: {message}")


def check_emulator(program, library, folder, static_program):
    soname = "libsluice_emulator.so.1"
    with tempfile.TemporaryDirectory() as work:
        apart, beside, wrong = (pathlib.Path(work) / name for name in ("apart", "beside", "wrong"))
        for place in (apart, beside, wrong):
            place.mkdir()
            shutil.copy(library, place / "libsluice.so.2")
            shutil.copy(program, place / "probe")
        shutil.copy(pathlib.Path(folder) / "emulator" / soname, beside)
        shutil.copy(pathlib.Path(folder) / "7/libamdhip64.so.7", wrong / soname)
        # Beside libsluice.so, which only the preload finds.
        status, _, message, runtime = probe([beside / "probe", "emulated"], [], beside / "libsluice.so.2")
        expect("beside the library", (status, message, runtime), ("SLUICE_OK", "", [soname]))
        # By soname.
        status, _, message, runtime = probe([apart / "probe", "emulated"], [apart, pathlib.Path(folder) / "emulator"])
        expect("in the search path", (status, message, runtime), ("SLUICE_OK", "", [soname]))
        # Not found: the message names the file and the places that were searched.
        status, field, message, _ = probe([apart / "probe", "emulated"], [apart])
        expect("nowhere", (status, field), ("SLUICE_NO_DEVICE", soname))
        for place in (f": {soname}: ", f"; {apart}/{soname}: "):
            if place not in message:
                sys.exit(f"the message does not say where it looked: {message}")
        # A file of that name that is something else.
        status, field, message, _ = probe([wrong / "probe", "emulated"], [wrong])
        expect("something else", (status, field), ("SLUICE_NO_DEVICE", soname))
        if "has no entry point sluice_emulator_symbol" not in message:
            sys.exit(f"unclear message: {message}")
        check_wrong_emulators(pathlib.Path(work), program, library, beside / soname, static_program)


def check_roctx(program, folder, library, static_program):
    folder = pathlib.Path(folder)
    new, old = folder / "rocprofiler-sdk-roctx", folder / "roctx64"
    names = ("librocprofiler-sdk-roctx.so.1", "libroctx64.so.4")
    for where, chosen in (([new, old], names[0]), ([old], names[1])):
        status, _, message, runtime = probe([program, "ranges"], where)
        expect(f"with {len(where)} of them", (status, message, runtime), ("SLUICE_OK", "", ["none", chosen]))
    # Functions that the process has already win, and nothing is opened.
    status, _, message, runtime = probe([program, "ranges"], [new, old], library)
    expect("in the process", (status, message, runtime), ("SLUICE_OK", "", ["none"]))
    status, field, message, runtime = probe([program, "ranges"], [])
    expect("nowhere", (status, field, runtime), ("SLUICE_UNSUPPORTED", "enabled", ["none"]))
    said = "the process has no roctxRangePushA and roctxRangePop" + "".join(f"; {name}: [^;]+" for name in names)
    if not re.fullmatch(said, message):
        sys.exit(f"unclear message: {message}")
    with tempfile.TemporaryDirectory() as work:
        other = pathlib.Path(work)
        shutil.copy(folder / "7/libamdhip64.so.7", other / names[0])
        status, _, message, _ = probe([program, "ranges"], [other])
        expect("something else", status, "SLUICE_UNSUPPORTED")
        if f"; {names[0]} lacks them; {names[1]}: " not in message:
            sys.exit(f"unclear message: {message}")
        # The loader drops LD_LIBRARY_PATH for such a program, but other ways to a library may stay open.
        entered = with_more_rights(other, static_program)
        if entered:
            status, field, message, _ = probe([entered, "ranges"], [new], user=NOBODY)
            expect("with more rights", (status, field), ("SLUICE_UNSUPPORTED", "enabled"))
            if "AT_SECURE" not in message:
                sys.exit(f"unclear message: {message}")


def main():
    checks = {"roctx": check_roctx, "hip": check_hip, "no_gpu": check_no_gpu, "emulator": check_emulator}
    if len(sys.argv) < 3 or sys.argv[1] not in checks:
        sys.exit(__doc__)
    checks[sys.argv[1]](*sys.argv[2:])


if __name__ == "__main__":
    main()
