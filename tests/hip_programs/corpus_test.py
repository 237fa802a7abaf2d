"""Runs each case of the corpus in a process of its own, and compares the kinds of its reports with those that it names.

usage: corpus_test.py SLUICE_EMU CORPUS
"""
import concurrent.futures
import json
import os
import subprocess
import sys

EMU, CORPUS = sys.argv[1:]


def found(name):
    """What a case reports, or how it failed."""
    done = subprocess.run([EMU, "exec", "--threads", "1", "--json", CORPUS, name], capture_output=True, text=True)
    said = json.loads(done.stdout[done.stdout.index("{\n"):] if "{\n" in done.stdout else done.stdout)
    if said["status"] != 0:
        return f"status {said['status']}: {done.stdout[:200]}"
    return " ".join(sorted({report["kind"] for report in said["reports"] if report["severity"] != "note"}))


listed = subprocess.run([EMU, "exec", CORPUS, "--list"], capture_output=True, text=True, check=True).stdout.splitlines()
wanted = dict(line.split(": ") if ": " in line else (line.rstrip(":"), "") for line in listed)
with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
    results = dict(zip(wanted, pool.map(found, wanted)))
wrong = [f"{name}: reports '{results[name]}', but '{wanted[name].strip()}' belongs to it"
         for name in wanted if results[name] != wanted[name].strip()]
print("\n".join(wrong + [f"{len(wanted)} programs, {len(wrong)} wrong"]))
sys.exit(bool(wrong) or len(wanted) < 40)
