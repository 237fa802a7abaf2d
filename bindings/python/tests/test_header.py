"""The package has every field of the header's structs: the module's classes, and the calls that fill them from arrays."""

import pathlib
import re
import unittest
from unittest import mock

import numpy

import sluice
from sluice import _cache, _call, _core, _merge

ROOT = pathlib.Path(__file__).resolve().parents[3]


def structs():
    """The fields of each of the header's structs, without those that only a size or a 0 is for."""
    header = (ROOT / "include" / "sluice" / "sluice.h").read_text(encoding="utf-8")
    header = re.sub(r"/\*.*?\*/", "", header, flags=re.DOTALL)
    found = re.findall(r"typedef struct \w+ \{(.*?)\} sluice_(\w+);", header, re.DOTALL)
    return {struct: set(re.findall(r"(\w+)(?:\[\w+\])*;", body)) - {"struct_size", "reserved", "reserved2"}
            for body, struct in found}


class Header(unittest.TestCase):
    """Every field of the header's structs is one of the module's classes."""

    CLASSES = {"problem": "Problem", "args": "Args", "launch": "Launch", "append": "Append", "merge": "Merge",
               "page_copy": "PageCopy", "gather": "Gather", "build": "Build", "device_info": "Device", "support": "Support",
               "kernel_info": "Kernel", "plan_info": "PlanInfo", "counters": "Counters"}
    ELSEWHERE = {"error": "the package's exceptions", "context_desc": "arguments of Context", "dependency": "Wait",
                 "tensor": "tuples", "trace_record": "traces are for C"}
    ABSENT = {"launch.dependency_count": "Wait", "launch.dependencies": "Wait",
              "merge.partial_list": "an argument of merge", "merge.partial_lse_list": "an argument of merge"}

    def test_fields(self):
        found = structs()
        self.assertEqual(set(found), {*self.CLASSES, *self.ELSEWHERE})
        absent = {f"{struct}.{field}" for struct, fields in found.items() if struct not in self.ELSEWHERE
                  for field in fields if not hasattr(getattr(_core, self.CLASSES[struct]), field)}
        self.assertEqual(absent, set(self.ABSENT))


class Recorder:
    """Takes the place of a struct, and notes which fields get something other than zero."""

    def __init__(self):
        object.__setattr__(self, "given", set())

    def __getattr__(self, name):
        return 0

    def __setattr__(self, name, value):
        object.__setattr__(self, name, value)
        if value and value != (0, 0, 0, 0, 0):
            self.given.add(name)


def floats(*shape, dtype=numpy.float32):
    return numpy.ones(shape, dtype)


def ints(*shape):
    return numpy.ones(shape, numpy.int32)


class Calls(unittest.TestCase):
    """Arrays reach every field. In calls that need not make sense, every number is other than 0."""

    def recorded(self, struct, make, calls):
        found = set()
        with mock.patch.object(_core, struct, Recorder):
            for arguments in calls:
                made = make("host", **arguments) if struct != "Args" else make(**arguments, scale=1.0, place="host")
                found |= (made[0] if isinstance(made, tuple) else made).given
        return found

    def test_runs(self):
        paged = {"mode": sluice.Mode.PAGED, "page_size": 8, "max_kv_len": 16, "shared_prefix": True, "max_prefix_len": 8}
        group = {"k_scale_kind": sluice.ScaleKind.PER_GROUP, "v_scale_kind": sluice.ScaleKind.PER_GROUP, "scale_group": 32}
        row_arrays = {"q": floats(2, 3, 4, 64), "o": floats(2, 3, 4, 64)}
        keys, pages, zeros = floats(2, 9, 2, 64), floats(5, 8, 2, 64), floats(5, 8, 2, 2, dtype=numpy.float16)
        dense = {**row_arrays, "k": keys, "v": keys, "lse": floats(2, 3, 4), "q_lengths": ints(2), "kv_lengths": ints(2),
                 "bias": floats(2, 4, 3, 9), "mask": floats(2, 4, 3, 2, dtype=numpy.uint8), "alibi_slopes": floats(2, 4),
                 "bias_scale": floats(2, 4), "sink_logits": floats(4), "q_scale": floats(1), "k_scale": floats(1),
                 "v_scale": floats(1), "o_scale": floats(1), "diagonals": ints(2), "causal": ints(2), "spans": ints(2, 1, 2),
                 "prefix_q_starts": ints(2), "prefix_lengths": ints(1), "prefix_k": floats(1, 8, 2, 64),
                 "prefix_v": floats(1, 8, 2, 64)}
        block = {**row_arrays, "k": pages, "v": pages, "k_scales": zeros, "v_scales": zeros, "k_zeros": zeros, "v_zeros": zeros,
                 "kv_lengths": ints(2), "page_table": ints(2, 2, 2), "prefix_q_starts": ints(2),
                 "prefix_page_table": ints(1, 1)}
        csr = {**row_arrays, "k": pages, "v": pages, "kv_lengths": ints(2), "page_table": ints(9), "page_starts": ints(3),
               "prefix_q_starts": ints(2), "prefix_page_table": ints(9), "prefix_page_starts": ints(2)}
        flat = {"q": floats(6, 4, 64), "o": floats(6, 4, 64), "k": floats(18, 2, 64), "v": floats(18, 2, 64),
                "q_starts": ints(3), "kv_starts": ints(3)}
        kinds = sluice.PageTableKind
        calls = [(dense, {"bias_type": "f32", "shared_prefix": True}),
                 (block, {**paged, **group, "page_table_kind": kinds.BLOCK}),
                 (csr, {**paged, "page_table_kind": kinds.CSR}),
                 (flat, {"mode": sluice.Mode.RAGGED, "max_q_len": 3, "max_kv_len": 9})]
        found = self.recorded("Args", _call.call_args, [
            {"problem": sluice.Problem("f32", 4, 2, 64, **fields), "arrays": arrays, "shape": _call.CallShape()}
            for arrays, fields in calls])
        self.assertEqual(found, structs()["args"])

    def test_cache_operations(self):
        rows, f16 = floats(3, 2, 64, dtype=numpy.float16), numpy.float16
        cache, table = floats(5, 8, 2, 64, dtype=f16), {"starts": ints(2), "kv_lengths": ints(1)}
        groups = floats(5, 8, 2, 2, dtype=f16)
        nothing = dict.fromkeys(("slots", "starts", "kv_lengths", "page_table", "page_starts", "k_scale", "v_scale", "rotary",
                                 "positions", "rotary_sin", "q", "q_out", "k_tail", "q_tail", "q_norm", "k_norm",
                                 "k_token_scales", "v_token_scales", "k_page_scales", "v_page_scales", "cache_type",
                                 "k_group_scales", "v_group_scales", "k_zeros", "v_zeros"))
        nothing.update(rotary_style=sluice.RotaryStyle.PAIRS, rotary_first=8, norm_epsilon=1.0)
        whole = {"k": rows, "v": rows, "k_cache": cache, "v_cache": cache, **nothing}
        step = {**whole, **table, "k": rows[..., :48], "k_tail": rows[..., 48:], "q": floats(3, 4, 48, dtype=f16),
                "q_out": floats(3, 4, 64, dtype=f16), "q_tail": floats(3, 4, 16, dtype=f16), "q_norm": floats(48),
                "k_norm": floats(48), "rotary": floats(9, 8, dtype=f16), "rotary_sin": floats(9, 8, dtype=f16),
                "positions": ints(3), "page_table": ints(1, 2), "k_scale": floats(1), "v_scale": floats(1)}
        packed = {**whole, "k_cache": floats(5, 8, 2, 8, 8, dtype=f16), "v_cache": floats(5, 1, 2, 64, 8, dtype=f16),
                  "slots": numpy.ones(3, numpy.int64)}
        csr = {**whole, **table, "page_table": ints(9), "page_starts": ints(2)}
        u4 = {**packed, "k_cache": floats(5, 8, 2, 32, dtype=numpy.uint8), "v_cache": floats(5, 8, 2, 32, dtype=numpy.uint8),
              "cache_type": "u4", "k_group_scales": groups, "v_group_scales": groups, "k_zeros": groups, "v_zeros": groups}
        found = self.recorded("Append", _cache.append_struct, [step, packed, csr, u4])
        self.assertEqual(found, structs()["append"])

        pages = {"k_source": floats(5, 8, 2, 8, 8, dtype=f16), "v_source": cache, "k_target": floats(5, 8, 2, 8, 8, dtype=f16),
                 "v_target": cache, "pairs": numpy.ones((2, 2), numpy.int64), "k_scale": floats(1), "v_scale": floats(2)}
        key_fields = dict.fromkeys(("k_token_scales", "v_token_scales", "k_page_scales", "v_page_scales", "cache_type",
                                    "k_group_scales", "v_group_scales", "k_zeros", "v_zeros"))
        by_keys = {"k_scale": None, "v_scale": None, "k_token_scales": floats(5, 8, 2), "v_page_scales": floats(5, 2)}
        group_fields = {**by_keys, "k_token_scales": None, "v_page_scales": None, "cache_type": "u4", "k_group_scales": groups,
                        "v_group_scales": groups, "k_zeros": groups, "v_zeros": groups}
        pages.update(key_fields)
        to = dict.fromkeys(("k_target_scales", "v_target_scales", "k_target_zeros", "v_target_zeros"))
        pages.update(to)
        u4 = floats(5, 8, 2, 32, dtype=numpy.uint8)
        u4_call = {**pages, **group_fields, **dict.fromkeys(to, groups), "k_source": u4, "v_source": u4, "k_target": u4,
                   "v_target": u4}
        self.assertEqual(self.recorded("PageCopy", _cache.copy_struct, [pages, {**pages, **by_keys}, u4_call]),
                         structs()["page_copy"])

        out = dict.fromkeys(("k_out_scales", "v_out_scales", "k_out_zeros", "v_out_zeros"))
        keys = {"k_cache": floats(5, 8, 2, 8, 8, dtype=f16), "v_cache": cache, "k_out": rows, "v_out": rows,
                "out_starts": ints(2), "kv_lengths": ints(1), "page_table": numpy.ones((1, 2), numpy.int64),
                "first_keys": ints(1), "page_starts": None, "k_scale": floats(1), "v_scale": floats(2), **key_fields, **out}
        csr = {**keys, "page_table": ints(9), "page_starts": ints(2)}
        u4_call = {**keys, **group_fields, **dict.fromkeys(out, floats(3, 2, 2, dtype=f16)), "k_cache": u4, "v_cache": u4,
                   "k_out": u4[0, :3], "v_out": u4[0, :3]}
        self.assertEqual(self.recorded("Gather", _cache.gather_struct, [keys, csr, {**keys, **by_keys}, u4_call]),
                         structs()["gather"])

        merge = {"partial": floats(2, 6, 4, 64), "partial_lse": floats(2, 2, 3, 4), "o": floats(6, 4, 64),
                 "lse": floats(2, 3, 4), "sink_logits": floats(4), "lse_base": sluice.LseBase.TWO, "infinity_is_empty": True,
                 "o_scale": floats(1)}
        self.assertEqual(self.recorded("Merge", _merge.merge_struct, [merge]),
                         structs()["merge"] - {"partial_list", "partial_lse_list"})

    def test_problems(self):
        """Every field of the struct is one of the dataclass, and every flag of the header has its name."""
        mine = set(sluice.Problem.__dataclass_fields__)
        self.assertEqual(structs()["problem"] - mine, {"flags"})
        text = (ROOT / "include" / "sluice" / "sluice.h").read_text(encoding="utf-8")
        flags = re.search(r"enum sluice_problem_flag \{(.*?)\};", text, re.DOTALL).group(1)
        names = {name.lower() for name in re.findall(r"SLUICE_(\w+) = 1 << ", flags)}
        self.assertEqual({name.replace("has_window", "window") for name in names} - mine, set())


if __name__ == "__main__":
    unittest.main()
