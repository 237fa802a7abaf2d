//===- Schedule.cpp - a schedule as text ----------------------------------------------------------------===//
#include "attention/Schedule.h"

#include "llvm/ADT/STLExtras.h"

namespace sluice {

namespace {

struct Flag {
  llvm::StringLiteral name;
  bool Schedule::*value;
};
constexpr Flag flags[] = {
    {"few_registers", &Schedule::hasFewRegisters},
    {"keeps_addresses", &Schedule::keepsAddresses},
    {"full", &Schedule::isFull},
    {"holds_output", &Schedule::holdsOutput},
    {"copies_through_registers", &Schedule::copiesThroughRegisters},
    {"values_by_columns", &Schedule::valuesByColumns},
};

constexpr llvm::StringLiteral loops[] = {"own_tiles", "ahead", "plain"}; // in the order of KeyLoop
constexpr llvm::StringLiteral anyWaves = "any";

} // namespace

std::string Schedule::text() const {
  std::string result = "waves_per_simd=" + (wavesPerSimd ? std::to_string(*wavesPerSimd) : anyWaves.str());
  result += " loop=" + loops[size_t(loop)].str();
  for (const Flag &flag : flags)
    result += " " + flag.name.str() + (this->*flag.value ? "=1" : "=0");
  return result + " parked_reads=" + std::to_string(parkedReads);
}

bool Schedule::set(llvm::StringRef name, llvm::StringRef value) {
  if (name == "loop") {
    const auto *found = llvm::find(loops, value);
    if (found == std::end(loops)) return false;
    loop = KeyLoop(found - loops);
    return true;
  }
  if (name == "waves_per_simd" && value == anyWaves) {
    wavesPerSimd.reset();
    return true;
  }
  unsigned number;
  if (value.getAsInteger(10, number)) return false;
  if (name == "parked_reads") {
    parkedReads = number;
    return true;
  }
  if (name == "waves_per_simd") {
    constexpr unsigned most = 8;
    wavesPerSimd = number;
    return number != 0 && number <= most;
  }
  for (const Flag &flag : flags)
    if (flag.name == name && number <= 1) {
      this->*flag.value = number == 1;
      return true;
    }
  return false;
}

} // namespace sluice
