//===- KernargName.cpp - names of kernel arguments, checked where they are written ----------------------===//
#include "attention/KernargName.h"

#include "llvm/ADT/Twine.h"
#include "llvm/Support/ErrorHandling.h"

namespace sluice {

void reportNoSuchKernarg(std::string_view name) {
  llvm::report_fatal_error("no kernel argument is called '" + llvm::Twine(name) + "'",
                           /*gen_crash_diag=*/false);
}

} // namespace sluice
