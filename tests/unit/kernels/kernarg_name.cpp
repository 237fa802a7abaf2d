//===- kernarg_name.cpp - valid and invalid names of kernel arguments -----------------------------------===//
//
// usage: kernarg_name NAME     prints the argument that the composed name finds.
//
// With LITERAL, a name that is not in the table, this does not compile.
//
//===----------------------------------------------------------------------------------------------------===//
#include "attention/KernargName.h"
#include "package/cache_op_kernargs.h"

#include <cstdio>

using Name = sluice::KernargName<sluice::package::attention_kernarg_fields>;
using Sides = sluice::KernargSides<sluice::package::append_kernarg_fields>;

#ifdef LITERAL
static_assert(Name(LITERAL).index < sluice::package::attention_kernarg_fields.size());
#endif
#ifdef SIDES
static_assert(Sides(SIDES).k().offset != Sides(SIDES).v().offset);
#endif

int main(int, char **argv) {
  std::puts(std::string(Name(std::string(argv[1])).field().name).c_str());
}
