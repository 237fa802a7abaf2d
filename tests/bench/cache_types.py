#!/usr/bin/python3
"""Prints a table: decode with every type of cache beside BF16, on the timing model.

usage: cache_types.py SLUICE [PACK]

Q and O are BF16, 64 heads of queries and 8 of keys and values, 64 sequences of 4096 keys in pages of 16. All rows come from
one run of `sluice bench` with all eight XCDs, which share lines of HBM.
"""
import json
import pathlib
import subprocess
import sys
import tempfile

SCALED = ["fp8", "e5m2", "i8"]
CACHES = [cache + scales for cache in SCALED for scales in ("", "/token", "/page")] + [
    "q8_0", "q4_0", "u4/32", "u4/64", "u4/32/zeros", "u4/64/zeros"]
HEAD = ["K and V", "MB", "clk", "of BF16's bytes", "of BF16's speed", "HBM busy", "VALU busy", "MFMA busy", "waves per SIMD", "waves wait for"]


def rows_of(sluice, pack):
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "timings.json"
        types = ",".join(["bf16"] + [f"bf16+{cache}" for cache in CACHES])
        subprocess.run([sluice, "bench", "--timing", "--workload", "decode", "--sequences", "64x4096", "--type", types,
                        "--xcds", "8", "--json", file, *(["--pack", pack] if pack else [])],
                       check=True, stdout=subprocess.DEVNULL)
        return json.loads(file.read_text())["rows"]


def reasons_of(launch):
    largest = sorted(launch["wait_percent"].items(), key=lambda reason: -reason[1])[:3]
    return ", ".join(f"{name} {percent:.0f} %" for name, percent in largest)


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    rows = rows_of(sys.argv[1], sys.argv[2] if len(sys.argv) == 3 else None)
    print("| " + " | ".join(HEAD) + " |")
    print("| --- |" + " ---: |" * (len(HEAD) - 2) + " --- |")
    for row in rows:
        model, launch = row["model"], row["model"]["launches"][0]
        print("| " + " | ".join([
            row["type"].removeprefix("bf16+"),
            f"{row['needed_bytes'] / 1e6:.0f}",
            str(model["clk"]),
            f"{100 * row['needed_bytes'] / rows[0]['needed_bytes']:.0f} %",
            f"{rows[0]['model']['clk'] / model['clk']:.2f}",
            f"{launch['level_percent']['hbm']:.0f} %",
            *(f"{launch['busy_percent'][pipe]:.0f} %" for pipe in ("valu", "matrix")),
            str(launch["waves_per_simd"]),
            reasons_of(launch)]) + " |")


if __name__ == "__main__":
    main()
