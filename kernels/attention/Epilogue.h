//===- Epilogue.h - O and LSE of the rows when all keys are done ------------------------------*- C++ -*-===//
//
// The sums of the lane groups become one, the sink's logit joins the denominator, V's scale the weight of O.
// O leaves in one of two ways:
//
//   tile   all rows of the workgroup are of one head, so they are one tile of O: stage-output takes it
//          through LDS, from which consecutive lanes store whole rows
//   rows   each lane stores columns of its own row, in the type of O or, of a part of the keys, in F32
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "attention/Addresses.h"
#include "attention/HeadColumns.h"
#include "attention/RegisterLoop.h"

namespace sluice {

class Epilogue {
public:
  using Value = mlir::Value;

  /// `scoreFactor`: see Softmax. `result`: the type of O. `firstColumn`: see TileProducts.
  /// Everything has to outlive this.
  Epilogue(Emitter &b, const Arguments &arguments, const Addresses &addresses, TileMath &math,
           const LaneRows &rows, llvm::ArrayRef<ColumnRead> columns, Value scoreFactor, mlir::Type result,
           Value firstColumn = {})
      : b(b), arguments(arguments), addresses(addresses), math(math), rows(rows), columns(columns),
        scoreFactor(scoreFactor), result(result), firstColumn(firstColumn) {}

  /// Rows of a head: `tileQ` of `headDim` columns.
  void storeTile(const RowState &state, unsigned tileQ, unsigned headDim) const;
  /// Rows of a group, whose keys may be a part of all.
  void storeRows(const RowState &state, const KeyRange &keys) const;
  /// The same of rows whose keys the waves have divided.
  void storeRows(const JoinedState &state, const KeyRange &keys) const;

private:
  Value sumOfGroups(const RowState &state) const;
  using Store = llvm::function_ref<void(Value column, Value chunk)>;
  /// `eachChunk`: calls a Store with O of this lane's row, weighted and of a type. `storesLse`: whether this
  /// wave does.
  void storeRows(Value maximum, Value sum, const KeyRange &keys, Value storesLse,
                 llvm::function_ref<void(Value weight, mlir::Type type, Store store)> eachChunk) const;
  Value chunkOf(llvm::ArrayRef<Value> elements, mlir::Type type) const;
  /// The sink's logit of this lane's head; of no meaning if there are no sinks.
  Value sinkOfHead(Value sinks) const;
  Value withScale(Value weight) const;
  void storeLse(Value lse, Value place) const;
  /// Calls `store` with O of this lane's row, of `type` and 16 bytes at a time, and the first column of each.
  void eachChunk(llvm::ArrayRef<Value> output, Value weight, mlir::Type type,
                 llvm::function_ref<void(Value column, Value chunk)> store) const;

  Emitter &b;
  const Arguments &arguments;
  const Addresses &addresses;
  TileMath &math;
  const LaneRows &rows;
  llvm::ArrayRef<ColumnRead> columns; // of V, from which the lanes have those of O
  Value scoreFactor;
  mlir::Type result;
  Value firstColumn;
};

} // namespace sluice
