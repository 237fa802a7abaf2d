"""Calls on pieces of large blocks, as torch's caching allocator hands them out."""

import pathlib
import sys
import unittest

import numpy

import sluice

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from emulated import normal  # noqa: E402
from pool import Pool  # noqa: E402

PROBLEM = sluice.Problem("bf16", q_heads=2, kv_heads=2, head_dim_qk=64, lse=sluice.Lse.NONE)


class Pieces(unittest.TestCase):
    def setUp(self):
        self.context = sluice.Context("emulated")
        self.addCleanup(self.context.configure, "clear_fault", "1")

    def run_with(self, annotated, rows_beyond):
        """Attention whose K claims more rows than its piece of memory has."""
        pool = Pool(annotated).start()
        self.addCleanup(pool.stop)
        self.context.array(numpy.zeros(1 << 16), "f32")  # all memory has been in use before
        q, k, v = (self.context.array(normal(1, rows, 2, 64, seed=rows), "bf16") for rows in (8, 40, 41))
        wrong = sluice.Tensor.at(k.address, (1, 40 + rows_beyond, 2, 64), "bf16", owner=k)
        other = sluice.Tensor.at(v.address, (1, 40 + rows_beyond, 2, 64), "bf16", owner=v)
        o = self.context.empty((1, 8, 2, 64), "bf16")
        self.context.plan(PROBLEM).run(q, wrong, other, o)
        return o.numpy()

    def test_pieces_are_reused(self):
        pool = Pool().start()
        self.addCleanup(pool.stop)
        first = self.context.array(normal(100), "f32")
        place = first.address
        del first
        again = self.context.empty((100,), "f32")
        self.assertEqual(again.address, place)
        other = self.context.empty((100,), "f32")
        self.assertEqual(other.address, place + 1024)

    def test_results_are_the_same(self):
        numpy.testing.assert_array_equal(self.run_with(True, 0), self.run_with(False, 0))

    def test_an_overrun_into_the_next_piece_is_found(self):
        self.assertEqual(self.run_with(False, 1).shape, (1, 8, 2, 64))  # one large block: nothing is seen
        with self.assertRaises(sluice.HipError):
            self.run_with(True, 1)
        self.assertIn("global_out_of_bounds", {report["kind"] for report in self.context.reports()})


unittest.main()
