"""The provider itself: accepted and refused nodes, options, plans and memory, threads, and caches in place."""

import concurrent.futures
import ctypes
import os
import pathlib
import unittest

import numpy as np
import onnxruntime
from onnx import TensorProto, helper

import sessions

F32, F64 = np.float32, np.float64
Q, KV = np.ones((1, 4, 4 * 64), F32), np.ones((1, 4, 2 * 64), F32)
LENGTH, TOTAL = np.array([3], np.int32), np.array(4, np.int32)
PAST = np.ones((1, 2, 8, 64), F32)
HEADS = {"num_heads": 4, "kv_num_heads": 2}
SCALE = np.ones(1, F32)
NORM = np.ones(64, F32)
ANGLES = np.ones((8, 32), F32)


def group_query(inputs=None, outputs=(True, True, True), dtype="float16", **attributes):
    """(model, inputs) of a node; inputs replaces some of those of a prompt of 4, by their indices."""
    given = [Q, KV, KV, None, None, LENGTH, TOTAL, *[None] * 10]
    for index, value in (inputs or {}).items():
        given[index] = value
    return sessions.model_of_node("GroupQueryAttention", {**HEADS, **attributes}, given, outputs, dtype,
                                  domain="com.microsoft"), given


X = np.ones((1, 4, 4, 64), F32)
Y = np.ones((1, 2, 4, 64), F32)


def attention(inputs=None, outputs=(True,), dtype="float16", opset=25, **attributes):
    given = [X, Y, Y, None, None, None, None]
    for index, value in (inputs or {}).items():
        given[index] = value
    return sessions.model_of_node("Attention", attributes, given, outputs, dtype, opset), given


# Refusals when a session is created: the node, and words of the message.
REFUSED_NODES = [
    (group_query(dtype="float32"), r"GroupQueryAttention 'node': query is tensor\(float\); it must be tensor\(float16\) or"),
    (group_query(num_heads=3), "num_heads is 3 and kv_num_heads 2; both must be positive, and the first must be a multiple"),
    (group_query(local_window_size=0), "local_window_size is 0; it must be -1, or"),
    (group_query(local_window_size=3, causal=0), "local_window_size is 3; it must be -1, or with causal = 1"),
    (group_query(softcap=-1.0), "softcap is -1.000000; it must be finite and not negative"),
    (group_query(scale=-1.0), "scale is -1.000000; it must be finite and not negative"),
    (group_query(do_rotary=1), "do_rotary is 1; then cos_cache and sin_cache must be given"),
    (group_query({2: None}), "key and value must be given together"),
    (group_query({4: PAST}), "past_key and past_value must be given together"),
    (group_query({3: PAST.astype(np.int8), 4: PAST.astype(np.int8)}), r"past_key is tensor\(int8\); it must be of query's type"),
    (group_query({3: PAST, 4: PAST}, sliding_window_cache=1, local_window_size=8), "sliding_window_cache is 1; only 0"),
    (group_query(qk_output=1), "qk_output is 1; only 0 is supported"),
    (group_query(outputs=(True,) * 4), "output_qk is requested"),
    (group_query(kv_cache_bit_width=8), "kv_cache_bit_width is 8; only 0"),
    (group_query(k_quant_type="PER_TENSOR"), "k_quant_type is 'PER_TENSOR'; only 'NONE'"),
    (group_query({12: (SCALE, "float32"), 13: (SCALE, "float32")}), "k_scale is given; this input is not supported"),
    (group_query({14: NORM, 15: NORM}), "q_norm_weight is given; this input is not supported"),
    (group_query({0: np.ones((1, 4, 4 * 60), F32), 1: np.ones((1, 4, 2 * 60), F32), 2: np.ones((1, 4, 2 * 60), F32)}),
     "head_dim_qk is 60"),
    (attention(dtype="float32"), r"Attention 'node': Q is tensor\(float\); it must be tensor\(float16\) or"),
    (attention({2: (Y, "bfloat16")}), r"V is tensor\(bfloat16\); it must be of Q's type, tensor\(float16\)"),
    (attention(outputs=(True, False, False, True)), "qk_matmul_output is requested"),
    (attention(scale=-1.0), "scale is -1.000000; it must be finite and not negative"),
    (attention(softcap=-1.0), "softcap is -1.000000; it must be finite and not negative"),
    (attention(softmax_precision=11), r"softmax_precision is 11 \(double\)"),
    (attention({4: Y}, opset=23), "past_key and past_value must be given together"),
    (attention({4: Y, 5: Y, 6: np.array([4])}, opset=24), "nonpad_kv_seqlen is given; then past_key"),
    (attention({3: np.ones((4, 4), np.int32)}), r"attn_mask is tensor\(int32\); it must be tensor\(bool\)"),
    (attention({3: np.ones((4, 4), F64)}), r"attn_mask is tensor\(double\)"),
    (attention({0: np.ones((1, 4, 4, 1024), F32), 1: np.ones((1, 2, 4, 1024), F32)}), "head_dim_qk is 1024"),
]

# Refusals of a call, in a model with unknown shapes.
REFUSED_CALLS = [
    (group_query({0: np.ones((1, 4, 4 * 64 + 2), F32)}), "query has the shape .1, 4, 258.; its last dimension must be a multiple"),
    (group_query({0: Q[0]}), "query has the shape .4, 256.; it must be .batch, tokens, elements."),
    (group_query({0: Q[:, :, :0]}), "query has the shape .1, 4, 0.; its last dimension must be a multiple"),
    (group_query({0: Q[:, :0]}), "key has the shape .1, 4, 128.; it must be .1, 0, 128."),
    (group_query({1: np.ones((1, 3, 2 * 64), F32)}), "key has the shape .1, 3, 128.; it must be .1, 4, 128."),
    (group_query({2: np.ones((1, 4, 64), F32)}), "value has the shape .1, 4, 64.; it must be .1, 4, 128."),
    (group_query({5: np.array([3, 3], np.int32)}), "seqlens_k has the shape .2.; it must have one element for each of 1"),
    (group_query({5: np.array([4], np.int32)}), r"seqlens_k\[0\] is 4; it must be at least -1, which is no keys, and less"),
    (group_query({5: np.array([-2], np.int32)}), r"seqlens_k\[0\] is -2; it must be at least -1"),
    (group_query({6: np.array([4, 4], np.int32)}), "total_sequence_length has the shape .2.; it must have one element"),
    (group_query({6: np.array(3, np.int32)}), "total_sequence_length is 3; it must be at least the rows of query, 4"),
    (group_query({5: np.array([9], np.int32), 6: np.array(10, np.int32)}),
     "sequence 0 has 6 keys before this call; past_key has room for 0"),
    (group_query({3: PAST[0], 4: PAST}), "past_key has the shape .2, 8, 64.; it must be .batch, heads, keys, head size."),
    (group_query({3: PAST[:, :1], 4: PAST}), "past_key has the shape .1, 1, 8, 64.; it must be .1, 2, 8, 64."),
    (group_query({3: PAST, 4: PAST[:, :, :5]}), "past_value has the shape .1, 2, 5, 64.; it must be .1, 2, 8, 64."),
    (group_query({7: ANGLES, 8: ANGLES[:, :5]}, do_rotary=1), "sin_cache has the shape .8, 5.; it must be .8, 32."),
    (group_query({7: NORM, 8: NORM}, do_rotary=1), "cos_cache has the shape .64.; it must be .positions, pairs., with at most 32"),
    (group_query({7: np.ones((8, 33), F32), 8: ANGLES}, do_rotary=1), "cos_cache has the shape .8, 33.; it must be .positions"),
    (group_query({7: ANGLES[:0], 8: ANGLES[:0]}, do_rotary=1), "row 0 of sequence 0 has the position 0; cos_cache has 0"),
    (group_query({7: ANGLES[:3], 8: ANGLES[:3]}, do_rotary=1), "row 3 of sequence 0 has the position 3; cos_cache has 3"),
    (group_query({7: ANGLES, 8: ANGLES, 9: np.array([[9, 0, 0, 0]])}, do_rotary=1), "row 0 of sequence 0 has the position 9"),
    (group_query({7: ANGLES, 8: ANGLES, 9: np.array([[0, 1, 2]])}, do_rotary=1),
     "position_ids has the shape .1, 3.; it must be .1, 4."),
    (group_query({10: np.ones((1, 3, 4, 4), F32)}), "attention_bias has the shape .1, 3, 4, 4.; it must be .1, 4, 4, 4."),
    (group_query({11: np.ones(3, F32)}), "head_sink has the shape .3.; it must be .4."),
    (group_query({3: PAST, 4: PAST, 16: np.array([5], np.int32)}),
     r"query_seqlens\[0\] is 5; it must be at least 0 and at most 4"),
    (group_query({3: PAST, 4: PAST, 16: np.array([2, 2], np.int32)}), "query_seqlens has the shape .2.; it must be .1."),
    (group_query({3: PAST, 4: PAST, 16: np.array([], np.int32)}), "query_seqlens has the shape .0.; it must be .1."),
    (attention({0: X[0, 0]}), "Q has the shape .4, 64.; it must have 3 or 4 dimensions"),
    (attention({0: X[:, :0]}), "Q has the shape .1, 0, 4, 64.; it must have heads, and elements in each"),
    (attention({0: X[0], 1: Y[0], 2: Y[0]}), "with 3 dimensions q_num_heads and kv_num_heads must be given"),
    (attention({}, opset=23, q_num_heads=2, kv_num_heads=2),
     "Q has the shape .1, 4, 4, 64.; its second dimension must be the heads that an attribute names, 2"),
    (attention({0: X[:, :3]}), "Q, K and V have the shapes .*Q a multiple of K's heads"),
    (attention({0: np.ones((1, 4, 258), F32), 1: KV, 2: KV}, opset=23, q_num_heads=4, kv_num_heads=2),
     "Q has the shape .1, 4, 258.; its last dimension must be a multiple of the heads, 4"),
    (attention({0: Q}, opset=23, q_num_heads=4, kv_num_heads=2), "Q, K and V have different numbers of dimensions"),
    (attention({0: np.concatenate([X, X])}), "Q, K and V have the shapes .2, 4, 4, 64., .1, 2, 4, 64. and"),
    (attention({2: Y[:, :, :3]}), "Q, K and V have the shapes .1, 4, 4, 64., .1, 2, 4, 64. and .1, 2, 3, 64."),
    (attention({2: Y[:, :1]}), "Q, K and V have the shapes .1, 4, 4, 64., .1, 2, 4, 64. and .1, 1, 4, 64."),
    (attention({1: Y[..., :32]}), "Q, K and V have the shapes"),
    (attention({4: Y[:, :1], 5: Y}), "past_key and past_value have the shapes .1, 1, 4, 64."),
    (attention({1: Y[:, :, :2], 2: Y[:, :, :2], 4: Y, 5: Y}, is_causal=1), "K has the length 2; with is_causal or a window"),
    (attention({3: np.ones((3, 4), bool)}), "attn_mask has the shape .3, 4.; it must be .1, 4, 4, 4."),
    (attention({3: np.ones((4, 3), bool)}, opset=23), "attn_mask has the shape .4, 3.; it must be .1, 4, 4, 4."),
    (attention({6: np.array([5])}), r"nonpad_kv_seqlen\[0\] is 5; it must be at least 0 and at most 4"),
    (attention({6: np.array([1, 1])}), "nonpad_kv_seqlen has the shape .2.; it must be .1."),
]


def without_shapes(model):
    for info in model.graph.input:
        info.type.tensor_type.ClearField("shape")
    return model


class Refusals(unittest.TestCase):
    def test_nodes(self):
        for (model, _), message in REFUSED_NODES:
            with self.subTest(message), self.assertRaisesRegex(Exception, message):
                sessions.session(model)

    def test_calls(self):
        for (model, inputs), message in REFUSED_CALLS:
            with self.subTest(message):
                made = sessions.session(without_shapes(model))
                with self.assertRaisesRegex(Exception, message):
                    made.run(None, sessions.feeds_of(inputs))

    def test_after_a_refusal(self):
        """A session continues as if the call had not happened."""
        model, inputs = group_query()
        made = sessions.session(without_shapes(model))
        wanted = made.run(None, sessions.feeds_of(inputs))
        with self.assertRaises(Exception):
            made.run(None, {**sessions.feeds_of(inputs), "in5": np.array([9], np.int32)})
        for before, after in zip(wanted, made.run(None, sessions.feeds_of(inputs))):
            np.testing.assert_array_equal(before, after)


class MissingOutputs(unittest.TestCase):
    def test_results_are_the_same(self):
        """Omits all outputs that the operators allow to omit."""
        for make, given, choices in (
                (group_query, {3: PAST, 4: PAST}, [(True, False, False), (True, False, True), (True, True, False)]),
                (attention, {4: Y, 5: Y}, [(True, False, False)])):
            model, inputs = make(given, (True, True, True))
            inputs[0] = np.random.default_rng(0).standard_normal(inputs[0].shape).astype(F32)
            wanted = sessions.session(model).run(None, sessions.feeds_of(inputs))
            for outputs in choices:
                with self.subTest(node=make.__name__, outputs=outputs):
                    model, _ = make(given, outputs)
                    results = sessions.session(model).run(None, sessions.feeds_of(inputs))
                    for x, y in zip(results, (one for one, asked in zip(wanted, outputs) if asked), strict=True):
                        np.testing.assert_array_equal(x, y)


class Options(unittest.TestCase):
    def test_refused(self):
        model, _ = group_query()
        for options, message in [({"device": "cpu"}, "the option device is 'cpu'; it must be 'emulated' or 'hip:N'"),
                                 ({"device": "hip:x"}, "the option device is 'hip:x'"),
                                 ({"device": "hip:01"}, "the option device is 'hip:01'"),
                                 ({"float32": "half"}, "the option float32 is 'half'; it must be 'refuse' or 'leave'"),
                                 ({"trace": "/nowhere/at/all"}, "the option trace is '/nowhere/at/all', which cannot"),
                                 ({"devise": "emulated"}, "the option 'devise' is unknown; the options are device, float32")]:
            with self.subTest(message), self.assertRaisesRegex(Exception, message):
                sessions.session(model, **options)

    def test_float32_goes_elsewhere_if_asked(self):
        model, inputs = group_query(dtype="float32")
        with sessions.Traced(model, float32="leave") as traced:
            result = traced.session.run(None, sessions.feeds_of(inputs))[0]
            self.assertEqual(traced.lines(""), [])
        np.testing.assert_allclose(result, 1, rtol=2.0 ** -20)

    def test_other_nodes_stay_with_sluice(self):
        model, inputs = group_query()
        with sessions.Traced(model, float32="leave") as traced:
            traced.session.run(None, sessions.feeds_of(inputs))
            self.assertEqual(len(traced.lines("run ")), 1)


def step(keys):
    """A token with keys - 1 in the past."""
    random = np.random.default_rng(keys)
    q, k, v = (random.standard_normal((1, 1, heads * 64)).astype(F32) for heads in (4, 2, 2))
    past = [random.standard_normal((1, 2, keys - 1, 64)).astype(F32) for _ in "kv"]
    return [q, k, v, *past, np.array([keys - 1], np.int32), np.array(keys, np.int32)]


def step_model():
    return without_shapes(sessions.model_of_node("GroupQueryAttention", HEADS, step(2), [True] * 3, "float16",
                                                 domain="com.microsoft"))


def used_bytes():
    """Memory that is allocated on the emulated device."""
    library = ctypes.CDLL(str(pathlib.Path(os.environ["SLUICE_DIR"]) / "lib" / "libsluice_emulator.so.1"))
    library.sluice_emulator_symbol.restype = ctypes.c_void_p
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    get = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)(library.sluice_emulator_symbol(b"hipMemGetInfo"))
    assert get(ctypes.byref(free), ctypes.byref(total)) == 0
    return total.value - free.value


class Steps(unittest.TestCase):
    def test_plans_are_kept(self):
        with sessions.Traced(step_model()) as traced:
            for keys in [*range(17, 33), *range(17, 33)]:
                traced.session.run(None, sessions.feeds_of(step(keys)))
            self.assertEqual(len(traced.lines("plan ")), 1)
            self.assertGreaterEqual(len(traced.lines("run ")), 32)
            traced.session.run(None, sessions.feeds_of(step(33)))
            self.assertEqual(len(traced.lines("plan ")), 2)

    def test_memory_is_kept_and_given_back(self):
        before = used_bytes()
        with sessions.Traced(step_model()) as traced:
            traced.session.run(None, sessions.feeds_of(step(64)))
            allocations = len(traced.lines("memory "))
            self.assertGreater(allocations, 0)
            for keys in range(33, 65):
                traced.session.run(None, sessions.feeds_of(step(keys)))
            self.assertEqual(len(traced.lines("memory ")), allocations)
            traced.session.run(None, sessions.feeds_of(step(640)))
            self.assertGreater(len(traced.lines("memory ")), allocations)
            self.assertGreater(used_bytes(), before)
            del traced.session
            self.assertEqual(used_bytes(), before)

    def test_threads(self):
        made = sessions.session(step_model())
        lengths = range(5, 45)
        wanted = [made.run(None, sessions.feeds_of(step(keys))) for keys in lengths]
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            results = list(pool.map(lambda keys: made.run(None, sessions.feeds_of(step(keys))), lengths))
        for one, other in zip(wanted, results):
            for x, y in zip(one, other):
                np.testing.assert_array_equal(x, y)


class OwnTypes(unittest.TestCase):
    """Models whose inputs and outputs are float16 themselves."""

    def setUp(self):
        shapes = {"q": [1, 1, 4 * 64], "k": [1, 1, 2 * 64], "v": [1, 1, 2 * 64], "pk": [1, 2, 16, 64], "pv": [1, 2, 16, 64]}
        node = helper.make_node("GroupQueryAttention", [*shapes, "l", "t"], ["o", "nk", "nv"], name="node",
                                domain="com.microsoft", **HEADS)
        infos = [helper.make_tensor_value_info(name, TensorProto.FLOAT16, shape) for name, shape in shapes.items()]
        infos += [helper.make_tensor_value_info("l", TensorProto.INT32, [1]),
                  helper.make_tensor_value_info("t", TensorProto.INT32, [])]
        outputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT16, None) for name in ("o", "nk", "nv")]
        self.model = helper.make_model(helper.make_graph([node], "graph", infos, outputs), ir_version=11, opset_imports=[
            helper.make_opsetid("", 23), helper.make_opsetid("com.microsoft", 1)])
        random = np.random.default_rng(1)
        self.feeds = {name: random.standard_normal(shape).astype(np.float16) for name, shape in shapes.items()}
        self.feeds.update(l=np.array([9], np.int32), t=np.array(10, np.int32))

    def test_caches_in_place(self):
        """past_key and present_key may be the same memory: then only the new row is written."""
        made = sessions.session(self.model)
        o, new_k, new_v = made.run(None, self.feeds)
        caches = {name: onnxruntime.OrtValue.ortvalue_from_numpy(self.feeds[name].copy()) for name in ("pk", "pv")}
        binding = made.io_binding()
        for name in ("q", "k", "v", "l", "t"):
            binding.bind_cpu_input(name, self.feeds[name])
        binding.bind_output("o")
        for past, present in (("pk", "nk"), ("pv", "nv")):
            binding.bind_ortvalue_input(past, caches[past])
            binding.bind_ortvalue_output(present, caches[past])
        made.run_with_iobinding(binding)
        np.testing.assert_array_equal(binding.copy_outputs_to_cpu()[0], o)
        for past, new in (("pk", new_k), ("pv", new_v)):
            got = caches[past].numpy()
            np.testing.assert_array_equal(got[:, :, :10], new[:, :, :10])
            np.testing.assert_array_equal(got[:, :, 10:], self.feeds[past][:, :, 10:])
            np.testing.assert_array_equal(new[:, :, 10:], 0)

    def test_caches_that_only_overlap(self):
        """Rows of a cache that grows move: it must not be the memory of the smaller one."""
        for shape in self.model.graph.input[3:5]:
            shape.type.tensor_type.shape.dim[2].dim_value = 9
        made = sessions.session(self.model)
        memory = {name: onnxruntime.OrtValue.ortvalue_from_numpy(np.zeros((1, 2, 12, 64), np.float16)) for name in ("pk", "pv")}
        for first_row, shape in ((0, [1, 2, 9, 64]), (1, [1, 2, 9, 64])):
            binding = made.io_binding()
            for name in ("q", "k", "v", "l", "t"):
                binding.bind_cpu_input(name, self.feeds[name])
            binding.bind_output("o")
            for past, present in (("pk", "nk"), ("pv", "nv")):
                address = memory[past].data_ptr()
                binding.bind_input(past, "cpu", 0, np.float16, shape, address + first_row * 64 * 2)
                binding.bind_output(present, "cpu", 0, np.float16, [1, 2, 10, 64], address)
            with self.assertRaisesRegex(Exception, "present_key has the shape .1, 2, 10, 64. and overlaps a past cache of"):
                made.run_with_iobinding(binding)

    def test_in_branches(self):
        """Models that were exported with and without a cache in one have their attention in branches of an If."""
        graph = self.model.graph
        outputs = [output.name for output in graph.output]
        branches = {name: helper.make_graph(graph.node, name, [], graph.output) for name in ("then_branch", "else_branch")}
        chosen = helper.make_node("If", ["choice"], [f"out_{name}" for name in outputs], **branches)
        model = helper.make_model(helper.make_graph(
            [chosen], "branches", [*graph.input, helper.make_tensor_value_info("choice", TensorProto.BOOL, [])],
            [helper.make_tensor_value_info(f"out_{name}", TensorProto.FLOAT16, None) for name in outputs]),
            ir_version=11, opset_imports=self.model.opset_import)
        wanted = sessions.session(self.model).run(None, self.feeds)
        with sessions.Traced(model) as traced:
            results = traced.session.run(None, {**self.feeds, "choice": np.array(True)})
            self.assertEqual(len(traced.lines(sessions.KERNELS["float16"])), 1)
        for x, y in zip(results, wanted, strict=True):
            np.testing.assert_array_equal(x, y)

    def test_model_stays_as_it_is(self):
        """The node runs on Sluice though the model is the one that ONNX Runtime's own kernel runs."""
        with sessions.Traced(self.model) as traced:
            ours = traced.session.run(None, self.feeds)
            self.assertEqual(len(traced.lines(sessions.KERNELS["float16"])), 1)
        for x, y in zip(ours, sessions.plain_session(self.model).run(None, self.feeds)):
            np.testing.assert_allclose(x[..., :10, :].astype(F32), y[..., :10, :], atol=2.0 ** -9)


if __name__ == "__main__":
    unittest.main()
