//===- KernelArguments.h - kernel arguments as members of the structs of their table ----------*- C++ -*-===//
#pragma once

#include "cache_ops/CacheOpEmitter.h"

namespace sluice {

/// An argument of the kernel, as a member of a struct of package/cache_op_kernargs.h. A call loads it: it is
/// loaded where it is used.
template <typename T> class Argument {
public:
  mlir::Value operator()() const { return b->loadArgument(place, package::kernarg_kind<T>()); }

  void locate(CacheOpEmitter &emitter, ArgumentPlace &next) {
    b = &emitter;
    place = next;
    next.offset += sizeof(T);
  }

private:
  CacheOpEmitter *b = nullptr;
  ArgumentPlace place = {};
};

/// Locates the members of a struct of arguments that begins at `next`, which moves to its end.
template <package::KernargStruct Struct>
void locate(Struct &arguments, CacheOpEmitter &b, ArgumentPlace &next) {
  auto locateMember = [&](auto &member) {
    if constexpr (package::KernargStruct<std::decay_t<decltype(member)>>)
      locate(member, b, next);
    else
      member.locate(b, next);
  };
  std::apply([&](auto &...members) { (locateMember(members), ...); }, arguments.members());
}

/// All arguments of a kernel.
template <template <template <typename> typename> typename Struct>
Struct<Argument> locateArguments(CacheOpEmitter &b) {
  Struct<Argument> arguments;
  ArgumentPlace next;
  locate(arguments, b, next);
  return arguments;
}

/// Those of one of several such structs that follow one another from the start of the kernel's arguments.
template <template <template <typename> typename> typename Struct>
Struct<Argument> locateArguments(CacheOpEmitter &b, mlir::Value number) {
  Struct<Argument> arguments;
  ArgumentPlace next = {.stride = sizeof(Struct<package::Plain>), .number = number};
  locate(arguments, b, next);
  return arguments;
}

} // namespace sluice
