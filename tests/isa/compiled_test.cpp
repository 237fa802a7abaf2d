//===- compiled_test.cpp - the machine executes what compilers generate ---------------------------------===//
#include "isa/decoded_corpus.h"

namespace sluice::test {

TEST_CASE("no instruction of a compiled program is refused", "[isa][corpus]") {
  CHECK(corpus().size() > 2000);
  for_each_instruction([](const Decoded &d) { return d.op.refusal; });
}

} // namespace sluice::test
