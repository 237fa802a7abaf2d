//===- WorkgroupSection.cpp - the section of an append_step that a workgroup belongs to -----------------===//
#include "cache_ops/WorkgroupSection.h"

using namespace mlir;

namespace sluice {

WorkgroupSection::WorkgroupSection(StepEmitter &b, Value group)
    : b(b), isQ(b.isFalse(b.lessUnsigned(group, b.argument("q_first_group")))),
      isAfterK(b.isFalse(b.lessUnsigned(group, b.argument("v_first_group")))) {
  auto numbered = [&](package::StepSection section) { return b.i32(int32_t(section)); };
  Value k = numbered(package::StepSection::k), v = numbered(package::StepSection::v);
  Value kOrV = b.select(isAfterK, v, k);
  number = b.select(isQ, numbered(package::StepSection::q), kOrV);
}

Value WorkgroupSection::hasMode(package::StepMode mode) const {
  return b.isFalse(b.equal(b.bitAnd(b.argument("modes"), b.i32(mode)), b.i32(0)));
}

} // namespace sluice
