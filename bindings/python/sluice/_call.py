"""Makes a call's struct from its arrays, and checks them against what the call needs.

The library checks alignment, strides and numbers; it cannot see how long arrays are, so this module checks that.
"""

from __future__ import annotations

import dataclasses
import numbers
import operator
from typing import Any, Mapping, Optional, Sequence, Tuple

from . import _core
from ._enums import PACK_ALL, SHARED, DType, MaskAlignment, PageTableKind, ScaleKind
from ._errors import InvalidArgument
from ._problem import Problem, checked_problem, head_dim_v_of, type_of
from ._tensor import Tensor, has_no_gaps, tensor_of

_ANY_STRIDE = 1 << 20  # a multiple of all that strides must be multiples of

# (extent, what it is, whether more is allowed)
Extent = Tuple[int, str, bool]
Arrays = Mapping[str, Tensor]  # those that are given


def exactly(extent: int, what: str) -> Extent:
    return extent, what, False


def at_least(extent: int, what: str) -> Extent:
    return extent, what, True


def whole_number(value: Any, field: str) -> int:
    """A number of sequences, rows or keys."""
    try:
        number = operator.index(value)
    except TypeError:
        raise InvalidArgument(f"{field} is {value!r}; it must be an integer", field) from None
    if not 0 <= number < 1 << 31:
        raise InvalidArgument(f"{field} is {number}; it must be from 0 to 2147483647", field)
    return number


def row_elements(problem: Problem, head_dim: int) -> int:
    """Elements of a row in memory: with padded_rows more than the head dim."""
    return (head_dim + 7) // 8 * 8 if problem.padded_rows else head_dim


def checked(array: Any, field: str, place: str, dtype: Optional[DType], itemsize: int, extents: Sequence[Extent],
            repeats: int = 0) -> Tensor:
    """An array with these types and extents. In the first `repeats` dimensions, an extent of 1 is accepted too."""
    tensor = tensor_of(array, field)
    if tensor.place != place:
        raise InvalidArgument(f"{field} is in {tensor.place} memory; it must be in {place} memory", field)
    # Only the caller knows whether bytes are integers of the library.
    as_integers = dtype in (DType.I8, None) and tensor.dtype in (DType.I8, None)
    if (tensor.dtype != dtype and not as_integers) or tensor.itemsize != itemsize:
        found = tensor.dtype.name if tensor.dtype else f"elements of {tensor.itemsize} bytes"
        wanted = dtype.name if dtype else f"integers of {itemsize} bytes"
        raise InvalidArgument(f"{field} is of {found}; it must be of {wanted}", field)
    if len(tensor.shape) != len(extents):
        raise InvalidArgument(f"{field} has {len(tensor.shape)} dimensions; it must have {len(extents)}", field)
    for i, (extent, (least, what, more)) in enumerate(zip(tensor.shape, extents)):
        if extent == least or (more and extent > least) or (i < repeats and extent == 1):
            continue
        raise InvalidArgument(f"{field}.shape[{i}] is {extent}; it must be {'at least ' if more else ''}{least} ({what})",
                              field)
    return tensor


def c_tensor(tensor: Tensor, extents: int = 4, repeats: bool = False) -> Tuple[int, int, int, int, int]:
    """The library's form. Rows of several sequences have no batch dimension; repeated dimensions have strides of 0."""
    strides = [0 if repeats and extent == 1 else step for extent, step in zip(tensor.shape, tensor.strides)]
    strides = [0] * (extents - len(strides)) + strides
    if len(strides) < 4:
        strides += [0] * (4 - len(strides))
    a, b, c, d = strides
    return tensor.address, a, b, c, d


def set_pages(kv: Any, pages: int) -> None:
    """The number of pages of a sluice_kv, and strides for fewer than two, which arrays may have 0 for."""
    kv.page_count = pages
    if pages > 1:
        return
    for name in ("k", "v"):
        address, first, *rest = getattr(kv, name)
        if first == 0 and address:
            setattr(kv, name, (address, _ANY_STRIDE, *rest))


def keys_of(array: Any, field: str, place: str, dtype: DType, first: Sequence[Extent],
            dim: Extent) -> Tuple[Tensor, Tuple[int, int, int, int, int]]:
    """K or V with rows of `dim` elements, or of their bytes if they are in blocks; and the library's form of it."""
    elements, size = dtype.block
    if elements == 1:
        tensor = checked(array, field, place, dtype, size, [*first, dim])
        return tensor, c_tensor(tensor)
    row = exactly(dim[0] // elements * size, f"bytes of a row of {dim[0]} elements of {dtype.name}")
    tensor = checked(array, field, place, None, 1, [*first, row])
    *steps, within = tensor.strides
    if within != 1 and row[0] > 1:
        raise InvalidArgument(f"{field} has a stride of {within} bytes in a row; it must be 1", field)
    for extent, step in zip(tensor.shape, steps):
        if step % size and extent > 1:
            raise InvalidArgument(f"{field} has a stride of {step} bytes; it must be a multiple of {size}, the bytes of a"
                                  " block", field)
    strides = (*(step // size * elements for step in steps), 1)
    return tensor, c_tensor(dataclasses.replace(tensor, strides=strides))


def array_of(array: Any, field: str, place: str, dtype: Optional[DType], itemsize: int, extent: Extent) -> int:
    """The address of an array without gaps; 0 for None."""
    if array is None:
        return 0
    tensor = checked(array, field, place, dtype, itemsize, [extent])
    if tensor.strides[0] != 1 and tensor.shape[0] > 1:
        raise InvalidArgument(f"{field} has a stride of {tensor.strides[0]} elements; it must be 1", field)
    return tensor.address


def shared_stride(stride: int, owners: int) -> int:
    """The stride of a page table: if all of several sequences or prefixes share one, the library wants to be told."""
    return SHARED if stride == 0 and owners > 1 else stride


def block_table(array: Any, place: str, itemsize: int, batch: int, pages: Extent,
                field: str = "page_table") -> Tuple[int, int]:
    """Address and stride of the page numbers [batch, pages], of sequences or of prefixes."""
    owners = "batch" if field == "page_table" else "prefixes"
    found = checked(array, field, place, None, itemsize, [at_least(batch, owners), pages])
    _numbers_without_gaps(found, field, "pages")
    return found.address, shared_stride(found.strides[0], batch)


def _numbers_without_gaps(table: Tensor, field: str, what: str) -> None:
    if table.strides[-1] != 1 and table.shape[-1] > 1:
        raise InvalidArgument(f"{field} has a stride of {table.strides[-1]} elements between {what}; it must be 1", field)


@dataclasses.dataclass
class CallShape:
    """Numbers of sequences, rows, keys and keys of prefixes of a call. None means: from the arrays, or else from the
    bounds."""

    batch: Optional[int] = None
    q_len: Optional[int] = None
    kv_len: Optional[int] = None
    prefix_len: Optional[int] = None


def _extent(array: Any, index: int, field: str) -> int:
    shape = tensor_of(array, field).shape
    if len(shape) <= index:
        raise InvalidArgument(f"{field} has {len(shape)} dimensions; it must have more than {index}", field)
    return shape[index]


def intervals(starts: Any, field: str, what: str) -> int:
    """The number of sequences or prefixes that starts have."""
    shape = tensor_of(starts, field).shape
    if len(shape) != 1:
        raise InvalidArgument(f"{field} has {len(shape)} dimensions; it must have 1", field)
    if shape[0] == 0:
        raise InvalidArgument(f"{field}.shape[0] is 0; it must be at least 1 ({what} + 1)", field)
    return shape[0] - 1


def _length(given: Optional[int], name: str, array: Any, field: str, bound: Optional[int]) -> int:
    """Rows of each sequence: the caller's number, or the problem's bound where starts or a table say where rows are, or
    else the array's."""
    if given is not None:
        return whole_number(given, name)
    if bound is None:
        return _extent(array, 1, field)
    if bound == 0:
        raise InvalidArgument(f"{name} is None, and the problem's max_{name} is 0, unbounded; one of them must be given",
                              name)
    return bound


_PREFIX_ARRAYS = ("prefix_q_starts", "prefix_lengths", "prefix_page_table", "prefix_page_starts", "prefix_k", "prefix_v")


_ONE_FOR_ROWS = (ScaleKind.PER_TENSOR, ScaleKind.PER_HEAD)
_ONE_SCALES = ("q_scale", "k_scale", "v_scale", "o_scale")
_OWN_SCALES = ("k_scales", "v_scales", "k_zeros", "v_zeros")
_MASK_ARRAYS = frozenset(("mask", "spans", "diagonals", "causal"))
_SCORES_ARRAYS = frozenset(("bias", "alibi_slopes", "bias_scale", "sink_logits"))


@dataclasses.dataclass
class Call:
    """The structs of a call, as the module's functions take them."""

    args: Any
    keys: Any
    prefixes: Any = None
    scale: Optional[float] = None
    lse: Optional[Tuple[int, int, int, int, int]] = None


class _Filler:
    """Fills the structs of a call from the arguments of Plan.run."""

    def __init__(self, problem: Problem, arrays: Arrays, shape: CallShape, place: str) -> None:
        self.problem, self.arrays, self.place = problem, arrays, place
        self.args, self.keys, self.kv = _core.AttentionArgs(), _core.Keys(), _core.Kv()
        self.call = Call(self.args, self.keys)
        ragged, packed_keys = "q_starts" in arrays, "kv_starts" in arrays
        paged = problem.page_size != 0
        if ragged and not (problem.ragged or paged):
            raise InvalidArgument("q_starts is given, but the problem is not ragged; it must be None", "q_starts")
        if packed_keys and (paged or not problem.ragged):
            raise InvalidArgument("kv_starts is given, but the problem's keys are not ragged; it must be None", "kv_starts")
        self.batch = whole_number(shape.batch, "batch") if shape.batch is not None else (
            intervals(arrays["q_starts"], "q_starts", "batch") if ragged else _extent(arrays["q"], 0, "q"))
        self.q_len = _length(shape.q_len, "q_len", arrays["q"], "q", problem.max_q_len if ragged else None)
        self.has_cache_rows = not (paged or packed_keys) or _extent(arrays["k"], 0, "k") > 0
        self.kv_len = _length(shape.kv_len, "kv_len", arrays["k"], "k",
                              problem.max_kv_len if packed_keys or paged else None)
        # 0 rows or pages are "unknown" to the library, so starts and tables would lead out of them.
        if ragged and _extent(arrays["q"], 0, "q") == 0:
            self.q_len = 0
        if not self.has_cache_rows:
            self.kv_len = 0
        self.args.batch = self.batch
        self.kv.format, self.keys.kv = problem._kv, self.kv
        self._rows(ragged)
        self._keys(packed_keys, paged)
        self._mask()
        self._scores()
        self._one_scales()
        if not self._table_of_heads():
            self._table(self.keys.pages, "page_table", self.batch, self.kv_len, "kv_len")
        if problem.shared_prefix:
            self._prefixes(shape.prefix_len)
        else:
            wrong = [name for name in _PREFIX_ARRAYS if name in arrays]
            for name in wrong if shape.prefix_len is None else ("prefix_len", *wrong):
                raise InvalidArgument(f"{name} is given, but the problem lacks shared_prefix; it must be None", name)

    def _tensor(self, field: str, dtype: DType, extents: Sequence[Extent]) -> Tensor:
        return checked(self.arrays[field], field, self.place, dtype, dtype.bytes, extents)

    def _rows(self, ragged: bool) -> None:
        problem, args = self.problem, self.args
        rows = _extent(self.arrays["q"], 0, "q")
        first = [at_least(rows, "rows of q")] if ragged else [
            at_least(self.batch, "batch"), at_least(self.q_len, "rows of each sequence")]
        heads = exactly(problem.q_heads, "q_heads")
        dims = (exactly(row_elements(problem, problem.head_dim_qk), "head_dim_qk"),
                exactly(row_elements(problem, head_dim_v_of(problem)), "head_dim_v"))
        args.q = c_tensor(self._tensor("q", type_of(problem, "q_type"), [*first, heads, dims[0]]))
        args.o = c_tensor(self._tensor("o", type_of(problem, "o_type"), [*first, heads, dims[1]]))
        if "lse" in self.arrays:
            self.call.lse = c_tensor(self._tensor("lse", DType.F32, [*first, heads]), 3)
        self._place(args.rows, "q_starts", "q_lengths", self.q_len, rows if ragged else 0)

    def _keys(self, packed: bool, paged: bool) -> None:
        problem, kv = self.problem, self.kv
        heads = exactly(problem.kv_heads, "kv_heads")
        rows = _extent(self.arrays["k"], 0, "k")
        if paged:
            first = [at_least(rows, "pages of k"), exactly(problem.page_size, "page_size")]
        elif packed:
            first = [at_least(rows, "keys of k")]
        else:
            first = [at_least(self.batch, "batch"), at_least(self.kv_len, "keys of each sequence")]
        dim = exactly(row_elements(problem, problem.head_dim_qk), "head_dim_qk")
        dtype = type_of(problem, "k_type")
        if problem.k_pack:
            # [page, row, head, pack, element of the pack]
            packs = [exactly(problem.head_dim_qk // problem.k_pack, "packs of a row"), exactly(problem.k_pack, "k_pack")]
            k = self._tensor("k", dtype, [*first, heads, *packs])
            if k.strides[4] != 1:
                raise InvalidArgument(f"k has a stride of {k.strides[4]} elements inside a pack; it must be 1", "k")
            kv.k = c_tensor(dataclasses.replace(k, shape=k.shape[:4], strides=k.strides[:4]))
        else:
            _, kv.k = keys_of(self.arrays["k"], "k", self.place, dtype, [*first, heads], dim)
        if not problem.v_in_k:
            _, kv.v = self._values("v", first)
        elif "v" in self.arrays:
            raise InvalidArgument("v is given, but the problem has v_in_k; it must be None", "v")
        self._scales(first, heads)
        if paged:
            set_pages(kv, rows)
        self._place(self.keys.rows, "kv_starts", "kv_lengths", self.kv_len, rows if packed else 0)
        self.keys.pages.starts = self._array("page_starts", at_least(self.batch + 1, "batch + 1"))

    def _place(self, rows: Any, starts: str, lengths: str, longest: int, total: int) -> None:
        """Where sequences are. Without rows or keys the library has nothing to look up, and takes a length as forgotten."""
        first = self._array(starts, at_least(self.batch + 1, "batch + 1"))
        each = self._array(lengths, at_least(self.batch, "batch"))
        rows.max_len = longest
        if longest:
            rows.starts, rows.lengths, rows.total = first, each, total

    def _put_scales(self, name: str, form: Tuple[int, int, int, int, int]) -> None:
        if self.kv.scales is None:
            self.kv.scales = _core.KvScales()
        setattr(self.kv.scales, name, form)

    def _scales(self, first: Sequence[Extent], heads: Extent) -> None:
        """Scales and zeros of K and V that have places of their own."""
        problem = self.problem
        for field in _OWN_SCALES:
            if field not in self.arrays:
                continue
            side, what = field.split("_")
            kind = getattr(problem, f"{side}_scale_kind")
            if kind in (ScaleKind.NONE, *_ONE_FOR_ROWS):
                raise InvalidArgument(f"{field} is given, but the problem's {side}_scale_kind is not PER_TOKEN, PER_PAGE or"
                                      " PER_GROUP; it must be None", field)
            if kind == ScaleKind.PER_GROUP:
                row = problem.head_dim_qk if side == "k" else head_dim_v_of(problem)
                groups = at_least(row // max(problem.scale_group, 1), "groups of a row")
                form = c_tensor(self._tensor(field, DType.F16, [*first, heads, groups]))
            elif kind == ScaleKind.PER_PAGE:
                scales = self._tensor(field, DType.F32, [first[0], heads])
                form = (scales.address, scales.strides[0], 0, scales.strides[1], 0)
            else:
                form = c_tensor(self._tensor(field, DType.F32, [*first, heads]), 3)
            if side == "k" or not problem.v_in_k:
                self._put_scales(side if what == "scales" else field, form)

    def _values(self, field: str, first: Sequence[Extent]) -> Tuple[Tensor, Tuple[int, int, int, int, int]]:
        """V of sequences, pages or prefixes, and the library's form of it."""
        problem, dtype = self.problem, type_of(self.problem, "v_type")
        heads = exactly(problem.kv_heads, "kv_heads")
        dim = exactly(row_elements(problem, head_dim_v_of(problem)), "head_dim_v")
        if problem.v_pack in (0, PACK_ALL):
            if problem.v_pack and len(first) == 2 and first[1][2]:
                # Whole groups of 8 keys are read.
                first = [first[0], at_least(-(-first[1][0] // 8) * 8, f"{first[1][1]}, in whole groups of 8")]
            return keys_of(self.arrays[field], field, self.place, dtype, [*first, heads], dim)
        # [page, pack, head, column, token of the pack]
        packs = exactly(problem.page_size // problem.v_pack, "packs of a page")
        v = self._tensor(field, dtype, [first[0], packs, heads, dim, exactly(problem.v_pack, "v_pack")])
        if v.strides[4] != 1:
            raise InvalidArgument(f"{field} has a stride of {v.strides[4]} elements inside a pack; it must be 1", field)
        return v, c_tensor(dataclasses.replace(v, shape=v.shape[:4], strides=v.strides[:4]))

    def _array(self, field: str, extent: Extent, dtype: Optional[DType] = None) -> int:
        return array_of(self.arrays.get(field), field, self.place, dtype, 4, extent)

    def _mask(self) -> None:
        given, problem = self.arrays.get, self.problem
        lengths = at_least(self.batch, "batch")
        is_needed = (problem.bool_mask or problem.spans or problem.causal_by_sequence or
                     problem.mask_alignment == MaskAlignment.GIVEN_DIAGONAL)
        if not is_needed and _MASK_ARRAYS.isdisjoint(self.arrays):
            return
        args = self.args.mask = _core.MaskArgs()
        if given("mask") is not None:
            keys = self.q_len if problem.mask_new_rows else self.kv_len
            mask = checked(given("mask"), "mask", self.place, None, 1,
                           [*self._extents(), at_least((keys + 7) // 8, "bytes of 8 keys")], repeats=3)
            address, a, b, c, _ = c_tensor(mask, repeats=True)
            if keys:
                args.bits = (address, a, b, c, 1)
        args.diagonals, args.causal = self._array("diagonals", lengths), self._array("causal", lengths)
        self._spans(args)

    def _extents(self) -> Sequence[Extent]:
        return [at_least(self.batch, "batch"), at_least(self.problem.q_heads, "q_heads"), at_least(self.q_len, "rows")]

    def _scores(self) -> None:
        given, problem = self.arrays.get, self.problem
        is_needed = problem.bias_type is not None or problem.alibi or problem.bias_scale or problem.sink_logits
        if not is_needed and _SCORES_ARRAYS.isdisjoint(self.arrays):
            return
        args = self.args.scores = _core.ScoresArgs()
        if given("bias") is not None:
            dtype = type_of(problem, "bias_type") if problem.bias_type is not None else DType.F32
            bias = checked(given("bias"), "bias", self.place, dtype, dtype.bytes,
                           [*self._extents(), at_least(self.kv_len, "keys")], repeats=4)
            if self.kv_len:  # else rows have no elements that could be read
                args.bias = c_tensor(bias, repeats=True)
        args.alibi_slopes, args.alibi_stride = self._head_numbers("alibi_slopes")
        args.bias_scale, args.bias_scale_stride = self._head_numbers("bias_scale")
        args.sinks = self._array("sink_logits", exactly(problem.q_heads, "q_heads"), DType.F32)

    def _one_scales(self) -> None:
        """Scales of whole tensors or heads."""
        problem = self.problem
        for field in _ONE_SCALES:
            if field not in self.arrays:
                continue
            side = field[0]
            kind, heads = getattr(problem, f"{side}_scale_kind"), "kv_heads" if side in "kv" else "q_heads"
            extent = exactly(getattr(problem, heads), heads) if kind == ScaleKind.PER_HEAD else exactly(1, "one for the tensor")
            address = self._array(field, extent, DType.F32)
            if side in "qo":
                setattr(self.args, field, address)
            elif kind not in _ONE_FOR_ROWS:
                raise InvalidArgument(f"{field} is given, but the problem's {side}_scale_kind is not PER_TENSOR or PER_HEAD; it"
                                      " must be None", field)
            elif side == "k" or not problem.v_in_k:
                self._put_scales(side, (address, 0, 0, 0, 0))

    def _pages_of(self, keys: int, keys_name: str) -> Extent:
        pages = -(-keys // self.problem.page_size) if self.problem.page_size else 0
        return at_least(pages, f"pages of {keys_name} keys")

    def _table_of_heads(self) -> bool:
        """Puts a table with a list for each KV head, [batch, kv_heads, pages], or for CSR [kv_heads, entries]; returns
        whether there is one."""
        table, problem, pages = self.arrays.get("page_table"), self.problem, self.keys.pages
        is_csr = problem.page_table_kind == PageTableKind.CSR
        if table is None or len(tensor_of(table, "page_table").shape) != (2 if is_csr else 3):
            return False
        heads = exactly(problem.kv_heads, "kv_heads")
        last = [heads, at_least(0, "entries")] if is_csr else [
            at_least(self.batch, "batch"), heads, self._pages_of(self.kv_len, "kv_len")]
        found = checked(table, "page_table", self.place, None, 8 if problem.page_index_64 else 4, last)
        _numbers_without_gaps(found, "page_table", "entries" if is_csr else "pages")
        pages.table, pages.head_stride = found.address, found.strides[-2]
        pages.stride = 0 if is_csr else shared_stride(found.strides[0], self.batch)
        return True

    def _table(self, pages: Any, field: str, count: int, keys: int, keys_name: str) -> None:
        """A table for `count` sequences or prefixes."""
        table, problem = self.arrays.get(field), self.problem
        if table is None:
            return
        itemsize = 8 if problem.page_index_64 else 4
        if problem.page_table_kind == PageTableKind.CSR:
            pages.table = array_of(table, field, self.place, None, itemsize, at_least(0, "entries"))
        else:
            pages.table, pages.stride = block_table(table, self.place, itemsize, count, self._pages_of(keys, keys_name), field)

    def _prefixes(self, length: Optional[int]) -> None:
        problem = self.problem
        if "prefix_q_starts" not in self.arrays:
            raise InvalidArgument("prefix_q_starts is None; it is required with shared_prefix", "prefix_q_starts")
        count = intervals(self.arrays["prefix_q_starts"], "prefix_q_starts", "prefixes")
        given = self.arrays.get("prefix_k")
        length = _length(length, "prefix_len", given, "prefix_k", problem.max_prefix_len if given is None else None)
        if problem.page_size and not self.has_cache_rows:
            length = 0
        keys = self.call.prefixes = _core.Keys()
        keys.groups, keys.rows.max_len, keys.kv = count, length, self.kv
        starts = at_least(count + 1, "prefixes + 1")
        keys.group_starts = self._array("prefix_q_starts", starts)
        keys.pages.starts = self._array("prefix_page_starts", starts)
        lengths = self._array("prefix_lengths", at_least(count, "prefixes"))
        keys.rows.lengths = lengths if length else 0
        self._table(keys.pages, "prefix_page_table", count, length, "prefix_len")
        if given is None and "prefix_v" not in self.arrays and problem.page_size:
            return
        kv = keys.kv = _core.Kv()
        kv.format, kv.scales, kv.page_count = self.kv.format, self.kv.scales, self.kv.page_count
        heads = exactly(problem.kv_heads, "kv_heads")
        extents = [at_least(count, "prefixes"), at_least(length, "keys of each prefix")]
        if given is not None:
            _, kv.k = keys_of(given, "prefix_k", self.place, type_of(problem, "k_type"), [*extents, heads],
                              exactly(row_elements(problem, problem.head_dim_qk), "head_dim_qk"))
        if "prefix_v" in self.arrays:
            _, kv.v = self._values("prefix_v", extents)

    def _head_numbers(self, field: str) -> Tuple[int, int]:
        """Address and batch stride of numbers [q_heads], or [batch, q_heads] if sequences have their own."""
        array, heads = self.arrays.get(field), exactly(self.problem.q_heads, "q_heads")
        if array is None or len(tensor_of(array, field).shape) != 2:
            return array_of(array, field, self.place, DType.F32, 4, heads), 0
        found = checked(array, field, self.place, DType.F32, 4, [at_least(self.batch, "batch"), heads])
        if found.strides[1] != 1 and found.shape[1] > 1:
            raise InvalidArgument(f"{field} has a stride of {found.strides[1]} elements between heads; it must be 1", field)
        return found.address, found.strides[0]

    def _spans(self, args: Any) -> None:
        if "spans" not in self.arrays:
            # To the library this would be a call without spans.
            if self.problem.spans and self.batch and self.q_len:
                raise InvalidArgument("spans is None, but the problem has spans; they must be given", "spans")
            return
        spans = checked(self.arrays["spans"], "spans", self.place, None, 4,
                        [at_least(self.batch, "batch"), at_least(0, "spans"), exactly(2, "first key and end")])
        if not has_no_gaps(spans):
            raise InvalidArgument(f"spans has strides of {spans.strides} elements; they must have no gaps", "spans")
        args.spans, args.span_count = spans.address, spans.shape[1]


def call_args(problem: Problem, arrays: Mapping[str, Any], shape: CallShape, scale: Optional[float], place: str) -> Call:
    """The structs of a call whose arrays are in host or device memory."""
    checked_problem(problem)
    for field in ("q", "k", "o") if problem.v_in_k else ("q", "k", "v", "o"):
        if arrays.get(field) is None:
            raise InvalidArgument(f"{field} is None; it is required", field)
    # Each array is looked at once.
    given = {field: tensor_of(array, field) for field, array in arrays.items() if array is not None}
    call = _Filler(problem, given, shape, place).call
    if scale is not None:
        if not isinstance(scale, numbers.Real):
            raise InvalidArgument(f"scale is {scale!r}; it must be a number or None", "scale")
        call.scale = float(scale)
    return call
