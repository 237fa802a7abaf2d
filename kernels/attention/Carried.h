//===- Carried.h - what branches yield and loops carry ----------------------------------------*- C++ -*-===//
//
// A state is a value, a list, an array or a tuple of states, or a struct that lists its members in order:
//
//   struct Running {
//     Value maximum, sum;
//     SmallVector<Value> output;
//     static auto members(auto &of) { return std::tie(of.maximum, of.sum, of.output); }
//   };
//
// MLIR yields and carries flat lists of values. Only this file knows a value's position in one. A null value
// is in no list: it is null in all states of a branch or a loop, or in none.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "mlir/IR/Value.h"
#include "llvm/ADT/SmallVector.h"

#include <tuple>
#include <type_traits>

namespace sluice::carried {

/// Calls `visit` with each value of the state, null ones too.
template <typename State, typename Visit> void visitEach(State &state, Visit visit) {
  using Plain = std::remove_const_t<State>;
  auto visitAll = [&](auto &...parts) { (visitEach(parts, visit), ...); };
  if constexpr (std::is_same_v<Plain, mlir::Value>)
    visit(state);
  else if constexpr (requires { Plain::members(state); })
    std::apply(visitAll, Plain::members(state));
  else if constexpr (requires { std::tuple_size<Plain>::value; })
    std::apply(visitAll, state);
  else
    for (auto &part : state)
      visitEach(part, visit);
}

template <typename State> llvm::SmallVector<mlir::Value> flatten(const State &state) {
  llvm::SmallVector<mlir::Value> values;
  visitEach(state, [&](mlir::Value value) {
    if (value) values.push_back(value);
  });
  return values;
}

/// A state of the shape of `like` with these values.
template <typename State> State withValues(State like, mlir::ValueRange values) {
  auto next = values.begin();
  visitEach(like, [&](mlir::Value &value) {
    if (value) value = *next++;
  });
  assert(next == values.end() && "the sides of a branch, or the turns of a loop, differ in shape");
  return like;
}

/// The state that a function returns: operations are values.
template <typename Function, typename... Arguments> struct Returned {
  using Result = std::decay_t<std::invoke_result_t<Function, Arguments...>>;
  using State = std::conditional_t<std::is_convertible_v<Result, mlir::Value>, mlir::Value, Result>;
};

} // namespace sluice::carried
