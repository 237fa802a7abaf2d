"""The structs of caches: a sluice_kv with its format and scales, from arrays."""

from __future__ import annotations

from typing import Any, Mapping, Sequence, Tuple

from . import _core
from ._call import Extent, array_of, at_least, block_table, c_tensor, checked, exactly
from ._enums import DType, KvFlag, PageTableKind, ScaleKind
from ._errors import InvalidArgument
from ._tensor import Tensor, tensor_of


def tensor_of_any_type(array: Any, field: str, counts: Tuple[int, ...]) -> Tensor:
    tensor = tensor_of(array, field)
    if len(tensor.shape) not in counts:
        raise InvalidArgument(f"{field} has {len(tensor.shape)} dimensions; it must have"
                              f" {' or '.join(str(count) for count in counts)}", field)
    return tensor


def with_dimensions(array: Any, field: str, counts: Tuple[int, ...]) -> Tensor:
    tensor = tensor_of_any_type(array, field, counts)
    if tensor.dtype is None:
        raise InvalidArgument(f"{field} is of integers; it must be of one of the library's types", field)
    return tensor


def dtype_of_tensor(tensor: Tensor) -> DType:
    assert tensor.dtype is not None  # checked above
    return tensor.dtype


class Cache:
    """A sluice_kv with its format, and with its scales if it gets any."""

    def __init__(self) -> None:
        self.format, self.kv = _core.KvFormat(), _core.Kv()
        self.kv.format = self.format

    def put(self, name: str, form: Tuple[int, int, int, int, int]) -> None:
        """Scales or zeros: k, v, k_zeros or v_zeros."""
        if self.kv.scales is None:
            self.kv.scales = _core.KvScales()
        setattr(self.kv.scales, name, form)

    def put_scale(self, side: str, array: Any, place: str) -> None:
        """The scale of a tensor, or one for each head."""
        if array is not None:
            getattr(self.format, side).scale_kind, address = scale_of(f"{side}_scale", array, self.format.kv_heads, place)
            self.put(side, (address, 0, 0, 0, 0))

    def put_pages(self, pages: Any, array: Any, page_starts: Any, batch: int, place: str) -> None:
        """A page table."""
        table = tensor_of(array, "page_table")
        if table.itemsize == 8:
            self.format.flags |= KvFlag.PAGE_INDEX_64
        if page_starts is not None:
            self.format.page_table = PageTableKind.CSR
            pages.starts = array_of(page_starts, "page_starts", place, None, 4, at_least(batch + 1, "batch + 1"))
            pages.table = array_of(array, "page_table", place, None, table.itemsize, at_least(0, "entries"))
            return
        pages.table, pages.stride = block_table(array, place, table.itemsize, batch, at_least(0, "pages"))

    def without_v(self) -> None:
        """V is in K, of which an operation on caches copies whole rows."""
        self.format.flags |= KvFlag.V_IN_K
        self.format.head_dim_v = self.format.head_dim_qk


def scale_of(field: str, array: Any, heads: int, place: str) -> Tuple[ScaleKind, int]:
    """Kind and address of a scale of a tensor, or of one for each head."""
    if array is None:
        return ScaleKind.NONE, 0
    is_one = tensor_of(array, field).shape == (1,)
    return (ScaleKind.PER_TENSOR if is_one else ScaleKind.PER_HEAD,
            array_of(array, field, place, DType.F32, 4, exactly(1 if is_one else heads, "kv_heads, or 1")))


def tensor_form(address: int, *strides: int) -> Tuple[int, int, int, int, int]:
    """The library's form of a tensor with four strides."""
    a, b, c, d = strides
    return address, a, b, c, d


def _group_tensor(cache: Cache, side: str, array: Any, field: str, first: Sequence[Extent], place: str) -> Tensor:
    """Scales or zeros of groups, with these extents before the heads. K's scales say how large a group is."""
    group = cache.format.k.scale_group
    if not group:
        raise InvalidArgument(f"{field} is given without k_group_scales, which say how large a group is", field)
    groups = (cache.format.head_dim_qk if side == "k" else cache.format.head_dim_v) // group
    return checked(array, field, place, DType.F16, 2,
                   [*first, exactly(cache.format.kv_heads, "heads of k"),
                    exactly(groups, f"groups of {group} elements of a row")])


def _rows_of_pages(cache: Cache, name: str, pages: int) -> Sequence[Extent]:
    return at_least(pages, f"pages of {name}"), exactly(cache.format.page_size, f"rows of a page of {name}")


def _scales_of_pages(cache: Cache, name: str, pages: int, side: str, token_scales: Any, page_scales: Any, group_scales: Any,
                     place: str) -> None:
    """Scales per token, [pages, page_size, kv_heads], per page, [pages, kv_heads], or per group. `name` is what K's is
    called."""
    heads, rows = exactly(cache.format.kv_heads, "heads of k"), _rows_of_pages(cache, name, pages)
    given = [f"{side}_{what}_scales" for what, array in (("token", token_scales), ("page", page_scales),
                                                         ("group", group_scales)) if array is not None]
    if len(given) > 1:
        raise InvalidArgument(f"{given[0]} and {given[1]} are both given", given[1])
    if token_scales is not None:
        scales = checked(token_scales, f"{side}_token_scales", place, DType.F32, 4, [*rows, heads])
        kind, strides = ScaleKind.PER_TOKEN, (*scales.strides, 0)
    elif page_scales is not None:
        scales = checked(page_scales, f"{side}_page_scales", place, DType.F32, 4, [rows[0], heads])
        kind, strides = ScaleKind.PER_PAGE, (scales.strides[0], 0, scales.strides[1], 0)
    elif group_scales is not None:
        if side == "k":
            groups = tensor_of_any_type(group_scales, "k_group_scales", (4,)).shape[3]
            cache.format.k.scale_group = cache.format.head_dim_qk // max(1, groups)
        scales = _group_tensor(cache, side, group_scales, f"{side}_group_scales", rows, place)
        kind, strides = ScaleKind.PER_GROUP, scales.strides
    else:
        return
    form = getattr(cache.format, side)
    form.scale_kind = kind
    if kind == ScaleKind.PER_GROUP:
        form.scale_group = cache.format.k.scale_group
    cache.put(side, tensor_form(scales.address, *strides))


def arrays_of_cache(cache: Cache, name: str, pages: int, place: str, *, k_token_scales: Any, v_token_scales: Any,
                     k_page_scales: Any, v_page_scales: Any, k_group_scales: Any, v_group_scales: Any, k_zeros: Any,
                     v_zeros: Any) -> None:
    """Scales and zeros of a cache."""
    for side, token_scales, page_scales, group_scales, zeros in (
            ("k", k_token_scales, k_page_scales, k_group_scales, k_zeros),
            ("v", v_token_scales, v_page_scales, v_group_scales, v_zeros)):
        _scales_of_pages(cache, name, pages, side, token_scales, page_scales, group_scales, place)
        if zeros is not None:
            getattr(cache.format, side).zero_points = 1
            found = _group_tensor(cache, side, zeros, f"{side}_zeros", _rows_of_pages(cache, name, pages), place)
            cache.put(f"{side}_zeros", c_tensor(found))


def copied_arrays(source: Cache, target: Cache, place: str, first: Sequence[Extent], arrays: Mapping[str, Any]) -> None:
    """Where the scales and zeros of a cache go between equal types, by their names. `first` are the extents before the
    heads: of pages and their rows, or of rows."""
    for field, array in arrays.items():
        if array is None:
            continue
        side = field[0]
        kind = getattr(source.format, side).scale_kind
        if field.endswith("zeros") or kind == ScaleKind.PER_GROUP:
            tensor = _group_tensor(source, side, array, field, first, place)
            form = c_tensor(tensor)
        else:
            # A page's only scale stays one in pages, but goes to each of the page's rows in a gather.
            is_per_page = kind == ScaleKind.PER_PAGE and len(first) == 2
            tensor = checked(array, field, place, DType.F32, 4,
                             [*(first[:1] if is_per_page else first), exactly(source.format.kv_heads, "heads of k")])
            rest = (0,) if is_per_page else tensor.strides[1:-1]
            form = tensor_form(tensor.address, *(0,) * (2 - len(first)), tensor.strides[0], *rest, tensor.strides[-1], 0)
        target.put(f"{side}_zeros" if field.endswith("zeros") else side, form)
