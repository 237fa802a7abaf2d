//===- KernargName.h - names of kernel arguments, checked where they are written --------------*- C++ -*-===//
#pragma once

#include "package/kernargs.h"

#include "llvm/ADT/StringRef.h"

#include <string>

namespace sluice {

/// Ends the program with an error that names the argument. It is deliberately not constexpr: a constant
/// expression that reaches it does not compile.
[[noreturn]] void reportNoSuchKernarg(std::string_view name);

/// The index in a kernarg table of the field of that name.
template <const auto &fields> constexpr unsigned kernargIndex(std::string_view name) {
  for (unsigned index = 0; index < fields.size(); ++index)
    if (fields[index].name == name) return index;
  reportNoSuchKernarg(name);
}

/// One field of the kernarg table `fields`, by its name. A literal that does not name a field of the table
/// does not compile; a name that the program composes is looked up when the kernel is built.
template <const auto &fields> class KernargName {
public:
  consteval KernargName(const char *literal) : index(kernargIndex<fields>(literal)) {}
  KernargName(llvm::StringRef composed)
      : index(kernargIndex<fields>(std::string_view(composed.data(), composed.size()))) {}
  KernargName(const std::string &composed) : KernargName(llvm::StringRef(composed)) {}

  constexpr const package::KernargField &field() const { return fields[index]; }

  const unsigned index;
};

} // namespace sluice
