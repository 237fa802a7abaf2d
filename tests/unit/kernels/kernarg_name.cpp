//===- kernarg_name.cpp - valid and invalid names of kernel arguments -----------------------------------===//
//
// usage: kernarg_name NAME     prints the argument that the composed name finds.
//
// With LITERAL, a name that is not in the table, this does not compile.
//
//===----------------------------------------------------------------------------------------------------===//
#include "attention/KernargName.h"

#include <cstdio>

using Name = sluice::KernargName<sluice::package::attention_kernarg_fields>;

#ifdef LITERAL
static_assert(Name(LITERAL).index < sluice::package::attention_kernarg_fields.size());
#endif

int main(int, char **argv) {
  std::puts(std::string(Name(std::string(argv[1])).field().name).c_str());
}
