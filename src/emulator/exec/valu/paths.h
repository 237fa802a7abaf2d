//===- paths.h - the vector ALU as compiled for each instruction set ------------------------------------===//
#pragma once

#include "emulator/exec/valu/table.h"

namespace sluice::emulator {

namespace portable {
const ValuTable &table();
}
#if defined(__x86_64__)
namespace avx2 {
const ValuTable &table();
}
namespace avx512 {
const ValuTable &table();
}
#endif

} // namespace sluice::emulator
