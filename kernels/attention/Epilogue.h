//===- Epilogue.h - O and LSE of the rows when all keys are done ------------------------------*- C++ -*-===//
//
// Adds up the sums of the lane groups, adds the sink's logit to the denominator and multiplies the weight of
// O by V's scale. O is stored in its type, in F32 if the caller asks for it or O is of a split, or as
// E4M3FNUZ, divided by its own scale, in one of two ways:
//
//   tile   of many rows: stage-output moves them through LDS, from which consecutive lanes store whole lines
//   rows   each lane stores columns of its own row
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

  /// `scoreFactor`: see Softmax. `result`: the type of O. `firstColumn`: see TileProducts. Every reference
  /// must outlive this.
  Epilogue(Emitter &b, const Arguments &arguments, const Addresses &addresses, TileMath &math,
           const LaneRows &rows, llvm::ArrayRef<ColumnRead> columns, Value scoreFactor, mlir::Type result,
           Value firstColumn = {})
      : b(b), arguments(arguments), addresses(addresses), math(math), rows(rows), columns(columns),
        scoreFactor(scoreFactor), result(result), firstColumn(firstColumn) {}

  /// Stores a tile of `tileQ` rows.
  void storeTile(const RowState &state, const KeyRange &keys, unsigned tileQ) const;
  /// Stores row by row.
  void storeRows(const RowState &state, const KeyRange &keys) const;
  /// The same for rows whose keys the waves have divided.
  void storeRows(const JoinedState &state, const KeyRange &keys) const;

private:
  Value sumOfGroups(const RowState &state) const;
  /// What turns O^T into O: a factor, and for FP8 results the exponent of a power of two, else null.
  struct Weight {
    Value factor, exponent = {};
    static auto members(auto &of) { return std::tie(of.factor, of.exponent); }
  };
  /// Stores neighbouring columns of O. `firstColumn` is that of lane group 0.
  using Store = llvm::function_ref<void(unsigned firstColumn, Value column, Value chunk)>;
  /// Calls a Store with O of this lane's row, weighted and converted.
  using EachChunk = llvm::function_ref<void(Weight weight, mlir::Type type, Store store)>;
  /// Whether this wave stores LSE, and whether it does so before O: a held O takes all available registers,
  /// and after waves have joined, LLVM would wait for O's address once more before the LSE.
  struct StoresLse {
    Value condition;
    bool isFirst;
  };
  void storeRows(Value maximum, Value sum, const KeyRange &keys, StoresLse storesLse,
                 EachChunk eachChunk) const;
  /// `store` gets the offset of this lane's row of O.
  void finish(Value maximum, Value sum, const KeyRange &keys, StoresLse storesLse,
              llvm::function_ref<void(Value row, Weight weight, mlir::Type type)> store) const;
  Value columnLimit(mlir::Type type) const;
  Value chunkOf(llvm::ArrayRef<Value> elements, mlir::Type type) const;
  Weight overScaleOfO(Value weight) const;
  Value weighted(Value element, Weight weight) const;
  /// The sink's logit of this lane's head; meaningless without sinks.
  Value sinkOfHead(Value sinks) const;
  Value withScale(Value weight) const;
  void storeLse(Value lse, Value place) const;
  /// Stores 16 bytes at a time.
  void eachChunk(llvm::ArrayRef<Value> output, Weight weight, mlir::Type type, Store store) const;

  Emitter &b;
  const Arguments &arguments;
  const Addresses &addresses;
  TileMath &math;
  const LaneRows &rows;
  llvm::ArrayRef<ColumnRead> columns; // of V; they determine the lanes' columns of O
  Value scoreFactor;
  mlir::Type result;
  Value firstColumn;
};

} // namespace sluice
