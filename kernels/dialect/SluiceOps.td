//===- SluiceOps.td - the sluice dialect -----------------------------------------*- tablegen -*-===//
//
// Attention kernels between "what to compute" and ROCDL: tiles in LDS, asynchronous copies into them,
// and the marks, waits and barriers that order both. Everything else in a kernel is upstream MLIR.
//
//===--------------------------------------------------------------------------------------------===//
#ifndef SLUICE_OPS
#define SLUICE_OPS

include "mlir/Dialect/GPU/IR/GPUBase.td"
include "mlir/Dialect/LLVMIR/LLVMOpBase.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/OpBase.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Sluice_Dialect : Dialect {
  let name = "sluice";
  let cppNamespace = "::sluice";
  let summary = "LDS tiles, asynchronous copies and their synchronisation";
  let useDefaultAttributePrinterParser = 1;
  let useDefaultTypePrinterParser = 1;
}

//===-- Attributes ------------------------------------------------------------------------------===//

def Sluice_XorSwizzleAttr : AttrDef<Sluice_Dialect, "XorSwizzle"> {
  let mnemonic = "xor";
  let summary = "XOR swizzle of the chunks of a row";
  let description = [{
    Element (row, column) of a tile is in its row at chunk `(column / chunk) ^ (row / rows_per_phase %
    period)`. The map is its own inverse within a row, so it can be applied to the LDS address of a read and
    equally to the global address of a direct-to-LDS copy. `chunk` counts elements; `chunk = 0` is the
    identity. `dialect/Swizzle.h` has the arithmetic.
  }];
  let parameters = (ins "unsigned":$chunk, "unsigned":$period, DefaultValuedParameter<"unsigned", "1">:$rowsPerPhase);
  let builders = [
    AttrBuilder<(ins "unsigned":$chunk, "unsigned":$period), [{ return $_get($_ctxt, chunk, period, 1); }]>,
    AttrBuilder<(ins "::sluice::XorSwizzle":$policy), [{
      return $_get($_ctxt, policy.chunk, policy.period, policy.rowsPerPhase);
    }]>,
  ];
  let assemblyFormat = "`<` $chunk `,` $period (`,` $rowsPerPhase^)? `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    ::sluice::XorSwizzle getPolicy() const { return {getChunk(), getPeriod(), getRowsPerPhase()}; }
  }];
}

//===-- Types -----------------------------------------------------------------------------------===//

def Sluice_LdsTileType : TypeDef<Sluice_Dialect, "LdsTile"> {
  let mnemonic = "lds_tile";
  let summary = "a row-major tile in LDS";
  let description = [{
    `rows x columns` elements, rows contiguous and without padding, with a swizzle policy that every access
    applies: readers use logical coordinates.

    A tile of elements of one or two bytes may be `by_columns` (`dialect/ColumnLayout.h`): an access of 4
    elements covers rows `row` + 0..3 of one column, `row` a multiple of 4; an access of 16 bytes covers those
    and the same rows plus 8, and with elements of one byte also plus 16 and 24.
  }];
  let parameters = (ins "unsigned":$rows, "unsigned":$columns, "::mlir::Type":$elementType,
                        "::sluice::XorSwizzleAttr":$swizzle, "bool":$byColumns);
  let builders = [
    TypeBuilder<(ins "unsigned":$rows, "unsigned":$columns, "::mlir::Type":$elementType,
                     "::sluice::XorSwizzleAttr":$swizzle), [{
      return $_get($_ctxt, rows, columns, elementType, swizzle, /*byColumns=*/false);
    }]>,
  ];
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    unsigned getElementBytes() const { return getElementType().getIntOrFloatBitWidth() / 8; }
    unsigned getRowBytes() const { return getColumns() * getElementBytes(); }
    unsigned getBytes() const { return getRows() * getRowBytes(); }
  }];
}

def Sluice_TokenType : TypeDef<Sluice_Dialect, "Token"> {
  let mnemonic = "token";
  let summary = "an asynchronous copy that has been issued";
}

def Sluice_PagesType : TypeDef<Sluice_Dialect, "Pages"> {
  let mnemonic = "pages";
  let summary = "how rows are divided into pages";
}

def Sluice_PageEntry : Type<CPred<"$_self == ::mlir::VectorType::get({2}, ::mlir::IntegerType::get($_self.getContext(), 32))">,
                            "two 32-bit halves of a page table's entry, the lower one first">,
                       BuildableType<"::mlir::VectorType::get({2}, $_builder.getI32Type())">;

//===-- Ops -------------------------------------------------------------------------------------===//

class Sluice_Op<string mnemonic, list<Trait> traits = []> : Op<Sluice_Dialect, mnemonic, traits>;

def Sluice_AttentionOp : Sluice_Op<"attention"> {
  let summary = "forward attention over the kernel arguments of the enclosing function";
  let description = [{
    The enclosing function has the parameters of the attention kernarg table. A workgroup of `waves` waves computes
    `tile_q` rows, which number the tokens and the query heads of a group together, in steps of `tile_kv` keys. A wave
    handles `wave_rows` of them at a time: 32 or 16. With `v_in_k`, if a workgroup has twice the rows that its waves
    handle at a time, a wave has two blocks of 16, which share the data it reads of K. If all waves have the same 16
    rows, they divide the keys between them, and a step belongs to one wave. With `v_in_k`, waves that have the same
    rows divide the columns of V and O between them, and each computes the scores itself.

    Q, K and V have elements of `element_type`, in which products are computed; or K and V have bytes of `kv_type`
    that are converted to it: f8E4M3FNUZ, f8E5M2FNUZ, or i8, which is signed; or blocks of 4 or 8 bits with common
    scales, `kv_blocks`: "q8_0", "q4_0" or "u4", whose rows count bytes (KeyBlocks.h). Waves that divide the keys
    read these. O has the same elements, or those of `o_type`, which f8E4M3FNUZ needs. `paged`: K and V may
    be in pages. `v_in_k`: V is the first `head_dim_v` elements of the rows of K. `v_by_columns`: tokens of a
    column of V are neighbours in memory, not the columns of a token; waves that divide the keys read it.
  }];
  let arguments = (ins TypeAttr:$element_type, OptionalAttr<TypeAttr>:$kv_type, OptionalAttr<StrAttr>:$kv_blocks,
                       OptionalAttr<TypeAttr>:$o_type, I32Attr:$head_dim_qk, I32Attr:$head_dim_v, I32Attr:$tile_q, I32Attr:$tile_kv, I32Attr:$waves,
                       I32Attr:$wave_rows,
                       UnitAttr:$paged, UnitAttr:$v_in_k, UnitAttr:$v_by_columns);
  let extraClassDeclaration = [{
    /// The blocks of `wave_rows` rows that a wave has.
    unsigned rowBlocks() { return std::max(1u, getTileQ() / (getWaves() * getWaveRows())); }
    /// Several waves that have the same rows divide the keys between them, or the columns of V.
    unsigned wavesOfRows() { return std::max(1u, getWaves() * getWaveRows() / getTileQ()); }
    bool wavesDivideKeys() { return !getVInK() && wavesOfRows() != 1; }
    unsigned columnGroups() { return getVInK() ? wavesOfRows() : 1; }
  }];
  let assemblyFormat = "attr-dict";
  let hasVerifier = 1;
}

def Sluice_LdsAllocOp : Sluice_Op<"lds_alloc", [MemoryEffects<[MemAlloc]>]> {
  let summary = "LDS for one tile, undefined until written";
  let description = [{
    `offset` is the tile's byte offset in the kernel's LDS, once `reuse-lds` has decided it. Tiles that are
    never live at the same time may overlap. `label` is a readable name for the tile.
  }];
  let arguments = (ins OptionalAttr<ConfinedAttr<I32Attr, [IntNonNegative]>>:$offset, OptionalAttr<StrAttr>:$label);
  let results = (outs Sluice_LdsTileType:$tile);
  let assemblyFormat = "attr-dict `:` type($tile)";
  let builders = [OpBuilder<(ins "LdsTileType":$tile), [{ build($_builder, $_state, tile, IntegerAttr(), StringAttr()); }]>];
}

class Sluice_LiveMarkOp<string mnemonic> : Sluice_Op<mnemonic, [MemoryEffects<[MemRead, MemWrite]>]> {
  let arguments = (ins Sluice_LdsTileType:$tile);
  let assemblyFormat = "$tile attr-dict `:` type($tile)";
  let hasVerifier = 1;
}

def Sluice_LiveInOp : Sluice_LiveMarkOp<"live_in"> {
  let summary = "from here on the tile owns its bytes";
  let description = [{
    Begins a live range, before the first write. If the tile is already live on some of the paths that come
    here, it stays live on them.
  }];
}

def Sluice_LiveOutOp : Sluice_LiveMarkOp<"live_out"> {
  let summary = "from here on the tile's bytes may belong to another tile";
  let description = [{
    Ends a live range, after the last read and after the wait for every copy into the tile.
  }];
}

def Sluice_PagesOp : Sluice_Op<"pages", [AttrSizedOperandSegments, Pure]> {
  let summary = "how rows are divided into pages, and which rows have no page";
  let description = [{
    A source of rows is divided into pages of `rows` rows (at least 1): row n is row `n % rows` of page `n / rows`.
    Rows in `[hole_begin, hole_end)`, if given, do not exist, like those past the end. `magic` and `shift` replace
    divisions by `rows`, if the host has prepared them: n / rows is the upper half of 2n * magic, shifted right by
    shift, for 0 <= n < 2^31 (support/divisor.h). If `last_low` and `last_high` are given, the rows of an entry are
    zeros unless its lower half is at most the first and its upper half at most the second. All operands are
    wave-uniform.
  }];
  let arguments = (ins I32:$rows, Optional<I32>:$magic, Optional<I32>:$shift, Optional<I32>:$hole_begin,
                       Optional<I32>:$hole_end, Optional<I32>:$last_low, Optional<I32>:$last_high);
  let results = (outs Sluice_PagesType:$pages);
  let assemblyFormat = [{
    `of` $rows (`magic` $magic^ `shift` $shift)? (`hole` $hole_begin^ `to` $hole_end)? (`last` $last_low^ `and` $last_high)?
    attr-dict
  }];
  let hasVerifier = 1;
}

def Sluice_PageLookupOp : Sluice_Op<"page_lookup", [MemoryEffects<[MemRead]>]> {
  let summary = "each lane reads the page table's entry of one of the next rows";
  let description = [{
    Entry n of `table` belongs to page n of `pages`, the result of a `sluice.pages`. Lane l gets the entry of the page
    of row `first_row + l`, as its two halves, the lower one first. Entries are unsigned numbers of 32 bits, or of 64
    if `wide_pages` is given and true. `first_row` is not negative and wave-uniform, like the other operands.

    No entry is read for a row at or past `row_limit` or in the hole of `pages`: the lane's result is then undefined.
  }];
  let arguments = (ins LLVM_PointerInAddressSpace<1>:$table, I32:$first_row, I32:$row_limit,
                       Sluice_PagesType:$pages, Optional<I1>:$wide_pages);
  let results = (outs Sluice_PageEntry:$entries);
  let assemblyFormat = [{
    $table `[` $first_row `]` `limit` $row_limit `in` $pages (`wide` $wide_pages^)? attr-dict
  }];
  let hasVerifier = 1;
}

def Sluice_RowAddressesOp : Sluice_Op<"row_addresses", [Pure]> {
  let summary = "each lane computes where one of the next rows begins";
  let description = [{
    `entries` are the results of a `page_lookup` of the same rows. Row r of a page begins at

        base + entry * page_stride + r * row_stride

    or, with `pack_log2`, if packs of 2^pack_log2 rows are `row_stride` apart and their rows neighbours, at

        base + entry * page_stride + (r >> pack_log2) * row_stride + r % 2^pack_log2

    with strides that count elements of `element_bytes` bytes. Lane l gets the address of row `first_row + l`. If the
    look-up read no entry, or one beyond the last of `pages`, it gets the address of `row_bytes` zeros, as
    `sluice.zeros` returns it.
  }];
  let arguments = (ins LLVM_PointerInAddressSpace<1>:$base, I32:$first_row, I32:$row_limit, I64:$row_stride,
                       Sluice_PageEntry:$entries, Sluice_PagesType:$pages, I64:$page_stride,
                       Optional<I32>:$pack_log2, I32Attr:$element_bytes, I32Attr:$row_bytes);
  let results = (outs LLVM_PointerInAddressSpace<1>:$addresses);
  let assemblyFormat = [{
    $base `[` $first_row `]` `limit` $row_limit `stride` $row_stride `gather` $entries `in` $pages
    `stride` $page_stride (`packs` $pack_log2^)? attr-dict
  }];
  let hasVerifier = 1;
}

def Sluice_FoundRowsOp : Sluice_Op<"found_rows", [Pure]> {
  let summary = "which of the next rows have a page";
  let description = [{
    `entries` are the results of a `page_lookup`. Bit l of the result, which is wave-uniform, is 0 if the entry of
    lane l, one of the first 32, is beyond the last of `pages`, but 1 in any case if `all`, wave-uniform, is true. Bits of rows for which no
    entry was read are undefined.
  }];
  let arguments = (ins Sluice_PageEntry:$entries, Sluice_PagesType:$pages, I1:$all);
  let results = (outs I32:$found);
  let assemblyFormat = "$entries `in` $pages `or` $all attr-dict";
  let hasVerifier = 1;
}

/// Rows of global memory: where they are, which of their elements exist, and what they are for.
class Sluice_RowsOp<string mnemonic, dag target, dag type>
    : Sluice_Op<mnemonic, [AttrSizedOperandSegments, MemoryEffects<[MemRead, MemWrite]>]> {
  let arguments = !con((ins LLVM_PointerInAddressSpace<1>:$base, I32:$first_row, I32:$row_limit, I64:$row_stride),
                       target,
                       (ins Optional<I32>:$column_limit, Optional<Sluice_PageEntry>:$entries,
                            Optional<Sluice_PagesType>:$pages, Optional<I64>:$page_stride, Optional<I32>:$pack_log2,
                            Optional<I64>:$pack_stride, UnitAttr:$close_rows),
                       type);
  let hasVerifier = 1;
}

def Sluice_AsyncDmaOp : Sluice_RowsOp<"async_dma", (ins Sluice_LdsTileType:$tile),
                                      (ins OptionalAttr<TypeAttr>:$source_type)> {
  let summary = "copy consecutive rows of global memory into an LDS tile, asynchronously, by the whole workgroup";
  let description = [{
    Row r of the tile receives row `first_row + r` of the source, or zeros if `first_row + r >= row_limit`. Its
    columns from `column_limit` on (not negative, a multiple of 8, counted in elements) are zeros as well: rows of the
    source may be shorter than those of the tile. Strides count elements. All waves execute it together. Nothing may
    read the tile before an `async_wait` on the token.

    Row n of the source begins at `base + n * row_stride`. In a gather, the source is divided into `pages`, and row n
    begins at the address that `row_addresses` gives with the same operands: `entries` are the results of a
    `page_lookup` of the tile's rows. Rows in the hole of `pages`, and rows of entries beyond its last, become zeros,
    like those at or past `row_limit`. A tile of a gather has at most as many rows as a wave has lanes.

    Element c of a row is at offset c from the row's start; with packs, which only a gather can have, at `(c >>
    pack_log2) * pack_stride + c % 2^pack_log2`. All elements are within 2 GiB of the row's start.

    `close_rows`, only for contiguous rows, promises that the rows of the tile span less than 4 GiB, from the first
    byte of the first to the last byte of the last, and that `row_stride` is not negative.

    A copy `from` a type goes through registers: it is a `fetch_rows` and a `land_rows`. The source has elements of
    that type: the tile's type, of 1 or 2 bytes; or f8E4M3FNUZ, which become f16 or bf16 without loss. Every 8 columns
    then begin at a multiple of their size, and packs have 8 columns or more. Tiles `by_columns` are filled this way,
    from `close_rows` or by a gather.
  }];
  let results = (outs Sluice_TokenType:$token);
  let builders = [
    // A copy of contiguous rows.
    OpBuilder<(ins "::mlir::Type":$token, "::mlir::Value":$base, "::mlir::Value":$firstRow,
                   "::mlir::Value":$rowLimit, "::mlir::Value":$rowStride, "::mlir::Value":$tile), [{
      build($_builder, $_state, token, base, firstRow, rowLimit, rowStride, tile, {}, {}, {}, {}, {}, {}, false, {});
    }]>,
  ];
  let assemblyFormat = [{
    $base `[` $first_row `]` `limit` $row_limit (`columns` $column_limit^)? `stride` $row_stride
    (`gather` $entries^ `in` $pages `stride` $page_stride)? (`packs` $pack_log2^ `stride` $pack_stride)?
    `into` $tile (`from` $source_type^)? attr-dict `:` type($tile)
  }];
  let extraClassDeclaration = [{
    /// Divides every column_limit.
    static constexpr unsigned columnGranule = 8;
    bool isGather() { return bool(getEntries()); }
    bool isFetched() { return bool(getSourceType()); }
  }];
}

def Sluice_FetchRowsOp : Sluice_RowsOp<"fetch_rows", (ins), (ins TypeAttr:$source_type,
                                                               TypeAttrOf<Sluice_LdsTileType>:$tile_type)> {
  let summary = "load the rows for a tile into the registers of the workgroup";
  let description = [{
    The first half of an `async_dma` through registers: it has the same operands and the type of the tile. Its result
    `rows` holds what each lane has loaded: 8 columns at a time, or for tiles `by_columns` 8 or 4 of each of four
    rows. All waves execute it together. The backend waits for `rows` where they are used.
  }];
  let results = (outs AnyVectorOfNonZeroRank:$rows);
  let assemblyFormat = [{
    $base `[` $first_row `]` `limit` $row_limit (`columns` $column_limit^)? `stride` $row_stride
    (`gather` $entries^ `in` $pages `stride` $page_stride)? (`packs` $pack_log2^ `stride` $pack_stride)?
    `for` $tile_type `from` $source_type attr-dict `:` type($rows)
  }];
  let extraClassDeclaration = [{
    /// The columns of a row that a lane loads and writes at a time: at most 16 bytes, of memory and of LDS.
    static constexpr unsigned laneColumns = 8;
    bool isGather() { return bool(getEntries()); }
    /// The elements of `source` that each of `lanes` lanes has loaded, in dwords.
    static ::mlir::VectorType rowsType(LdsTileType tile, ::mlir::Type source, unsigned lanes);
    /// The first half of a copy through registers, by `lanes` lanes.
    static FetchRowsOp of(AsyncDmaOp copy, ::mlir::OpBuilder &builder, unsigned lanes);
  }];
}

def Sluice_LandRowsOp : Sluice_Op<"land_rows", [MemoryEffects<[MemWrite]>]> {
  let summary = "write rows that the workgroup has in registers to a tile, converted to elements of the tile";
  let description = [{
    The second half of an `async_dma` through registers. `rows` are the results of a `fetch_rows` for such a tile. All
    waves execute it together, and each writes a part of the tile: other waves see it after a `barrier`.
  }];
  let arguments = (ins AnyVectorOfNonZeroRank:$rows, Sluice_LdsTileType:$tile, TypeAttr:$source_type);
  let assemblyFormat = "$rows `into` $tile `from` $source_type attr-dict `:` type($rows) `,` type($tile)";
  let hasVerifier = 1;
}

def Sluice_AsyncWaitOp : Sluice_Op<"async_wait", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "from here on the copy is visible to every wave of the workgroup";
  let arguments = (ins Sluice_TokenType:$token);
  let assemblyFormat = "$token attr-dict";
}

def Sluice_AsyncMarkOp : Sluice_Op<"async_mark", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "close the group of copies this wave has issued since its last mark";
  let assemblyFormat = "attr-dict";
}

def Sluice_WaitMarksOp : Sluice_Op<"wait_marks", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "wait until at most `outstanding` of this wave's marked groups are in flight";
  let arguments = (ins ConfinedAttr<I32Attr, [IntNonNegative]>:$outstanding);
  let assemblyFormat = "$outstanding attr-dict";
}

def Sluice_UsualWayOp : Sluice_Op<"usual_way", [MemoryEffects<[MemWrite]>]> {
  let summary = "promises that an iteration of the loop around it takes no rare branch";
  let description = [{
    If the wave-uniform `holds` is true, each branch of the iteration that is marked `sluice.usual` takes its usual
    side. `holds` depends only on values known at the start of the iteration. If it is false, nothing is promised.
  }];
  let arguments = (ins I1:$holds);
  let assemblyFormat = "$holds attr-dict";
}

def Sluice_BarrierOp : Sluice_Op<"barrier", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "workgroup barrier that also completes this wave's LDS reads and writes";
  let description = [{
    Copies in flight stay in flight: only `wait_marks` completes them. Because the LDS reads complete before
    the barrier, another wave may overwrite the tile after it.
  }];
  let assemblyFormat = "attr-dict";
}

def Sluice_LdsWaitOp : Sluice_Op<"lds_wait", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "wait until this wave's LDS reads and writes are complete";
  let assemblyFormat = "attr-dict";
}

def Sluice_LoadToLdsOp : Sluice_Op<"load_to_lds", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "one direct-to-LDS load of a wave: lane i writes `bytes` bytes at `lds_offset + i * bytes`";
  let description = [{
    `lds_offset` (bytes from the start of the tile) is wave-uniform. `voffset` (bytes from the base of
    `resource`) is per lane; lanes beyond the resource's extent write zeros.
  }];
  let arguments = (ins LLVM_PointerInAddressSpace<8>:$resource, I32:$voffset, Sluice_LdsTileType:$tile,
                       I32:$lds_offset, I32Attr:$bytes);
  let assemblyFormat = "$resource `[` $voffset `]` `into` $tile `[` $lds_offset `]` attr-dict `:` type($tile)";
}

def Sluice_GatherToLdsOp : Sluice_Op<"gather_to_lds", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "like load_to_lds, with a separate address for each lane and no range check";
  let arguments = (ins LLVM_PointerInAddressSpace<1>:$address, Sluice_LdsTileType:$tile, I32:$lds_offset,
                       I32Attr:$bytes);
  let assemblyFormat = "$address `into` $tile `[` $lds_offset `]` attr-dict `:` type($tile)";
}

def Sluice_CountedLoadOp : Sluice_Op<"counted_load", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "a load of a dword per lane that is exactly one vector-memory instruction and does not move";
  let description = [{
    Marks count it like a direct-to-LDS load. `voffset` (bytes from the base of `resource`) is per lane; lanes beyond the
    resource's extent get 0. The backend waits for the result where it is first used.
  }];
  let arguments = (ins LLVM_PointerInAddressSpace<8>:$resource, I32:$voffset);
  let results = (outs I32:$value);
  let assemblyFormat = "$resource `[` $voffset `]` attr-dict";
}

def Sluice_ZerosOp : Sluice_Op<"zeros", [Pure]> {
  let summary = "the address of `bytes` zeros in the constant data of the code object, aligned to 16";
  let description = [{
    Read by a lane without a range check in place of a missing row, and by a wave without a page table.
  }];
  let arguments = (ins ConfinedAttr<I32Attr, [IntPositive]>:$bytes);
  let results = (outs LLVM_PointerInAddressSpace<1>:$address);
  let assemblyFormat = "$bytes attr-dict";
}

def Sluice_HoldOp : Sluice_Op<"hold", [Pure, AllTypesMatch<["value", "held"]>]> {
  let summary = "the accumulator of an MFMA, in AccVGPRs";
  let description = [{
    Emits no instruction if `value` comes from another `hold`, from an MFMA with the attribute `sluice.held`,
    whose accumulator is in AccVGPRs as well, or from branches and loops each side of which does. `settles`:
    the result may be read at once, whichever MFMA of at most eight passes it comes from.
  }];
  let arguments = (ins AnyVectorOfNonZeroRank:$value, UnitAttr:$settles);
  let results = (outs AnyVectorOfNonZeroRank:$held);
  let assemblyFormat = "$value (`settles` $settles^)? attr-dict `:` type($value)";
}

def Sluice_LdsReadOp : Sluice_Op<"lds_read", [MemoryEffects<[MemRead]>]> {
  let summary = "read consecutive elements of one row of a tile";
  let description = [{
    The elements (row, column), (row, column + 1) ... of the result's length, all in one chunk of the tile's
    swizzle: `column` is a multiple of the length.
  }];
  let arguments = (ins Sluice_LdsTileType:$tile, I32:$row, I32:$column);
  let results = (outs AnyVectorOfNonZeroRank:$value);
  let assemblyFormat = "$tile `[` $row `,` $column `]` attr-dict `:` type($tile) `,` type($value)";
  let hasVerifier = 1;
}

def Sluice_LdsWriteOp : Sluice_Op<"lds_write", [MemoryEffects<[MemWrite]>]> {
  let summary = "write consecutive elements of one row of a tile";
  let description = [{
    The elements (row, column), (row, column + 1) ... of the value's length, all in one chunk of the tile's
    swizzle: `column` is a multiple of the length. This wave's own reads see them at once, another wave's
    after a `barrier`.
  }];
  let arguments = (ins AnyVectorOfNonZeroRank:$value, Sluice_LdsTileType:$tile, I32:$row, I32:$column);
  let assemblyFormat = "$value `,` $tile `[` $row `,` $column `]` attr-dict `:` type($value) `,` type($tile)";
  let hasVerifier = 1;
}

def Sluice_StoreTileOp : Sluice_Op<"store_tile", [AttrSizedOperandSegments, MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "store a tile that the workgroup holds in registers to rows of global memory";
  let description = [{
    This lane holds `values[i]` of row `row` of the tile, starting at column `columns[i]`. The row begins at
    `address`, which is the same in all lanes with this row. Rows at or past `row_limit` and columns at or past
    `column_limit`, a multiple of 8, are not stored. Wave w has the rows [w, w + 1) * tile_rows / waves, and its lane
    l has row l of them, modulo their number. All waves execute it together.

    Values are in the order of panels of `panel_columns` columns: the first `panel_values[0]` of them are in the first
    panel, and so on.
  }];
  let arguments = (ins LLVM_PointerInAddressSpace<1>:$address, I32:$row, I32:$row_limit, I32:$column_limit,
                       Variadic<I32>:$columns, Variadic<AnyVectorOfNonZeroRank>:$values,
                       I32Attr:$tile_rows, I32Attr:$panel_columns, DenseI32ArrayAttr:$panel_values);
  let assemblyFormat = [{
    $address `row` $row `limit` $row_limit `columns` `(` $columns `)` `limit` $column_limit
    `values` `(` $values `:` type($values) `)` attr-dict
  }];
  let hasVerifier = 1;
}

//===-- Host --------------------------------------------------------------------------------------===//

def Sluice_RecordEventOp : Sluice_Op<"record_event", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "an event that completes with the work of a token";
  let description = [{
    On the host, a token of `gpu.launch_func` or `gpu.wait` represents a stream. The result represents an
    event, recorded on that stream here: it completes when the work of `token` has, and all other work the
    stream was given before this operation. A launch that depends on the event waits for it, and does not
    continue its stream; a token is an event if and only if this operation defines it.
  }];
  let arguments = (ins GPU_AsyncToken:$token);
  let results = (outs GPU_AsyncToken:$event);
  let assemblyFormat = "$token attr-dict";
  let hasVerifier = 1;
}

#endif // SLUICE_OPS
