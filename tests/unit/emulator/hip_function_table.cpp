//===- hip_function_table.cpp - prints the tables of docs/reference/hip_functions.md --------------------===//
//
// The emulator says which functions of HIP it has. The lists here say what these refuse, and why the others
// are absent; an entry that names no function is an error.
//
//===----------------------------------------------------------------------------------------------------===//
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "emulator/hip/function_versions.h"
#include <sluice/emulator.h>

using namespace sluice::emulator::hip;

namespace {

struct Refusal {
  std::string_view function;
  std::string_view what; // is refused with hipErrorNotSupported
};
constexpr Refusal refusals[] = {
    {"hipEventCreateWithFlags", "`hipEventInterprocess`: an event belongs to one process"},
    {"hipGraphAddMemcpyNode", "arrays: the chip has no images"},
    {"hipGraphInstantiateWithFlags", "launches from the device"},
    {"hipLaunchKernelExC", "launch attributes"},
    {"hipMemPoolCreate", "handles for other processes"},
    {"hipMemcpy3D", "arrays: the chip has no images"},
    {"hipMemcpy3DAsync", "arrays: the chip has no images"},
};

struct Absence {
  std::string_view why;
  std::vector<std::string_view> parts; // of the functions' names; the first entry that matches counts
};
const Absence absences[] = {
    {"for each stream of a thread (`-fgpu-default-stream=per-thread`); `hipStreamPerThread` works as a "
     "stream",
     {"_spt"}},
    {"memory and events shared between processes or with other programs' devices",
     {"Ipc", "External", "Shareable", "ExportPointer", "ImportPointer", "HandleForAddressRange"}},
    {"arrays, textures and surfaces: the chip has no images",
     {"Array", "Tex", "Surf", "Mipmap", "AtoA", "AtoD", "AtoH", "DtoA", "HtoA", "MemcpyParam2D", "Channel"}},
    {"graphics interfaces", {"GL", "Graphics"}},
    {"contexts of the driver interface", {"Ctx", "ProfilerSta", "ProfilerSto"}},
    {"virtual memory management",
     {"hipMemAddress", "hipMemCreate", "hipMemMap", "hipMemRelease", "hipMemRetain", "hipMemSetAccess",
      "hipMemUnmap", "hipMemGetAccess", "hipMemGetAllocation"}},
    {"compiling and linking at run time", {"hipLink", "__hipGetPCH"}},
    {"profilers and tracers", {"Callback", "ActivityCallback", "hipApiName", "hipKernelName", "Tracer"}},
    {"launches over several devices at once", {"MultiDevice"}},
    {"memory nodes of graphs, user objects, and parameters that are read back from nodes",
     {"MemAllocNode", "MemFreeNode", "UserObject", "hipGraph", "hipDrvGraph", "GraphMem", "ToGraph"}},
    {"waits for values in memory", {"StreamWaitValue", "StreamWriteValue", "BatchMemOp"}},
    {"copies in forms that other functions have too",
     {"hipDrvMemcpy", "Batch", "Memcpy3DPeer", "MemsetD2D", "hipMemset3D", "Unaligned"}},
    {"choices that have no meaning here: one kind of device, memory and queue",
     {"ChooseDevice", "ValidDevices", "CUMask", "LinkType", "P2P", "AttachMem", "PrimaryCtx", "Attribute",
      "MemAdvise_v2", "MemPrefetchAsync_v2", "Access"}},
};

[[noreturn]] void fail(std::string_view name, const char *what) {
  std::fprintf(stderr, "%.*s %s\n", int(name.size()), name.data(), what);
  std::exit(1);
}

bool exists(std::string_view name) {
  return sluice_emulator_symbol(std::string(name).c_str()) != nullptr;
}

using Names = std::set<std::string_view>;

std::string list_of(const Names &names) {
  std::string text;
  for (std::string_view name : names)
    text += (text.empty() ? "`" : ", `") + std::string(name) + "`";
  return text;
}

std::string_view reason_for(std::string_view name) {
  for (const Absence &absence : absences)
    for (std::string_view part : absence.parts)
      if (name.find(part) != std::string_view::npos) return absence.why;
  return "not implemented";
}

} // namespace

int main() {
  std::map<int, Names> done;
  std::map<std::string_view, Names> absent;
  for (const auto &[name, since] : function_versions())
    (exists(name) ? done[since] : absent[reason_for(name)]).insert(name);

  size_t count = 0;
  for (const auto &[since, names] : done)
    count += names.size();
  std::printf("%zu of the %zu functions exist:\n\n| since | functions |\n| --- | --- |\n", count,
              function_versions().size());
  for (const auto &[since, names] : done)
    std::printf("| HIP %d.%d | %s |\n", since / 100, since % 100, list_of(names).c_str());

  std::printf("\nThese refuse a part of what HIP allows, with `hipErrorNotSupported`:\n\n| function | "
              "refuses |\n| --- | --- "
              "|\n");
  for (const Refusal &refusal : refusals) {
    if (!exists(refusal.function)) fail(refusal.function, "is listed with a refusal, but does not exist");
    std::printf("| `%s` | %s |\n", std::string(refusal.function).c_str(), std::string(refusal.what).c_str());
  }

  std::printf("\nThese are absent:\n\n| why | functions |\n| --- | --- |\n");
  for (const Absence &absence : absences) {
    if (!absent.contains(absence.why)) fail(absence.why, "is the reason for no function's absence");
    std::printf("| %s | %s |\n", std::string(absence.why).c_str(), list_of(absent[absence.why]).c_str());
  }
  std::printf("| not implemented | %s |\n", list_of(absent["not implemented"]).c_str());
  return 0;
}
