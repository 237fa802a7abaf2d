//===- WorkgroupSection.cpp - the section of an append_step that a workgroup belongs to -----------------===//
#include "cache_ops/WorkgroupSection.h"

using namespace mlir;

namespace sluice {

WorkgroupSection::WorkgroupSection(CacheOpEmitter &b, Value group)
    : b(b), call(locateArguments<package::StepKernargsOf>(b)),
      first{call.v.first_group(), call.q.first_group()}, isQ(b.isFalse(b.lessUnsigned(group, first.q))),
      isAfterK(b.isFalse(b.lessUnsigned(group, first.v))) {
  // K, V, Q: as many as are behind. LLVM would make branches of selects, and wait in each for its argument.
  static_assert(int(package::StepPart::k) == 0 && int(package::StepPart::v) == 1 &&
                int(package::StepPart::q) == 2);
  auto counted = [&](Value is) { return arith::ExtUIOp::create(b, b.getI32Type(), is); };
  Value number = b.add(counted(isAfterK), counted(isQ));
  static_cast<StepSectionOf &>(*this) = locateArguments<package::StepSectionOf>(b, number);
}

Value WorkgroupSection::hasMode(package::StepMode mode) const {
  return b.isFalse(b.equal(b.bitAnd(call.modes(), b.i32(mode)), b.i32(0)));
}

} // namespace sluice
