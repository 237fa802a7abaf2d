//===- WorkgroupSection.h - the section of an append_step that a workgroup belongs to ---------*- C++ -*-===//
#pragma once

#include "cache_ops/CacheOpEmitter.h"

namespace sluice {

using StepEmitter = CacheOpEmitterOf<package::step_kernarg_fields>;

/// K, V or Q: a workgroup belongs to one of them, so its arguments are in scalar registers.
class WorkgroupSection {
public:
  using Value = mlir::Value;

  WorkgroupSection(StepEmitter &b, Value group);

  /// An argument of the section.
  Value operator[](StepEmitter::Sides name) const { return b.sideArgument(name, number); }
  Value hasMode(package::StepMode mode) const;
  Value isV() const { return b.both(isAfterK, b.isFalse(isQ)); }

  StepEmitter &b;
  const Value isQ;

private:
  Value isAfterK, number;
};

} // namespace sluice
