//===- WorkgroupSection.h - the section of an append_step that a workgroup belongs to ---------*- C++ -*-===//
#pragma once

#include "cache_ops/KernelArguments.h"

namespace sluice {

/// K, V or Q: a workgroup belongs to one of them, so its arguments, the members of this, are in scalar
/// registers.
class WorkgroupSection : public package::StepSectionOf<Argument> {
public:
  using Value = mlir::Value;

  WorkgroupSection(CacheOpEmitter &b, Value group);

  Value hasMode(package::StepMode mode) const;
  Value isV() const { return b.both(isAfterK, b.isFalse(isQ)); }

  CacheOpEmitter &b;
  const package::StepKernargsOf<Argument> call; // the arguments of the whole call

private:
  // Loaded together, before the first comparison: with one wait.
  struct FirstGroups {
    Value v, q;
  };
  const FirstGroups first;

public:
  const Value isQ;

private:
  Value isAfterK;
};

} // namespace sluice
