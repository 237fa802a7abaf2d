//===- WorkgroupSection.cpp - the section of an append_step that a workgroup belongs to -----------------===//
#include "cache_ops/WorkgroupSection.h"

using namespace mlir;

namespace sluice {

WorkgroupSection::WorkgroupSection(CacheOpEmitter &b, Value group)
    : b(b), call(locateArguments<package::StepKernargsOf>(b)),
      isQ(b.isFalse(b.lessUnsigned(group, call.q.first_group()))),
      isAfterK(b.isFalse(b.lessUnsigned(group, call.v.first_group()))) {
  auto numbered = [&](package::StepPart part) { return b.i32(int32_t(part)); };
  Value k = numbered(package::StepPart::k), v = numbered(package::StepPart::v);
  Value kOrV = b.select(isAfterK, v, k);
  Value number = b.select(isQ, numbered(package::StepPart::q), kOrV);
  static_cast<StepSectionOf &>(*this) = locateArguments<package::StepSectionOf>(b, number);
}

Value WorkgroupSection::hasMode(package::StepMode mode) const {
  return b.isFalse(b.equal(b.bitAnd(call.modes(), b.i32(mode)), b.i32(0)));
}

} // namespace sluice
