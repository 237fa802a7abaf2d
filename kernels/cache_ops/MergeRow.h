//===- MergeRow.h - a lane's row of the parts, and its place in the result --------------------*- C++ -*-===//
#pragma once

#include "cache_ops/MergeArguments.h"
#include "cache_ops/MergeLanes.h"

namespace sluice {

/// A lane's row of the parts. Every piece of a merge is built from it.
struct MergeRow {
  using Value = mlir::Value;

  MergeEmitter &b;
  const MergeArguments &arguments;
  const MergeLanes &lanes;
  const mlir::Type partial, result; // elements
  const Value exists;
  const Value number; // 0 if the row does not exist

  /// Numbers are divided where the results are used, rather than kept in registers.
  struct TokenAndHead {
    Value token, head; // the token is one of all sequences'
  };
  TokenAndHead divide() const;
  struct SequenceAndToken {
    Value sequence, token;
  };
  SequenceAndToken divideToken(Value token) const;
};

MergeRow findRow(MergeEmitter &b, const MergeArguments &arguments, const MergeLanes &lanes,
                 mlir::Type partial, mlir::Type result);

/// A row's place in the result.
struct MergePlace {
  mlir::Value isWanted; // the row exists, and its sequence is merged
  mlir::Value sequence, token;
  mlir::Value isLong; // the sequence has more than max_tokens
  static auto members(auto &of) { return std::tie(of.isWanted, of.sequence, of.token, of.isLong); }
};

/// A token's place is in its sequence, or in a cascade among all tokens.
enum class TokensAre { InSequences, InCascade };

MergePlace findPlace(const MergeRow &row, TokensAre tokens);

/// Whether a row of a cascade sees a prefix, and so has parts over its keys.
mlir::Value seesPrefix(const MergeRow &row);

/// The element of a tensor at these indices. Indices have 32 bits and strides 64.
struct IndexStep {
  mlir::Value index, stride;
};
mlir::Value advanceBy(MergeEmitter &b, mlir::Value start, mlir::Type type, llvm::ArrayRef<IndexStep> steps);

} // namespace sluice
