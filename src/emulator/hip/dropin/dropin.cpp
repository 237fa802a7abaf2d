//===- dropin.cpp - libamdhip64 over the emulator -------------------------------------------------------===//
//
// Each exported function jumps to the emulator's function of the same name, so that the libraries of all
// versions are one device in a process. The environment configures it, because the program does not know
// about it.
//
//===----------------------------------------------------------------------------------------------------===//
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "emulator/hip/functions.h"
#include <sluice/emulator.h>

#define SLUICE_TEXT_OF(text) #text
#define SLUICE_TEXT(macro) SLUICE_TEXT_OF(macro)

#define SLUICE_FORWARD(name)                                                                                 \
  extern "C" {                                                                                               \
  __attribute__((visibility("hidden"))) void *sluice_slot_##name;                                            \
  }                                                                                                          \
  asm(".text\n"                                                                                              \
      ".globl " #name "\n"                                                                                   \
      ".type " #name ", @function\n" #name ":\n"                                                             \
      "  jmp *sluice_slot_" #name "(%rip)\n"                                                                 \
      ".size " #name ", . - " #name "\n");

#define SLUICE_FORWARD_FUNCTION(name, parameters) SLUICE_FORWARD(name)
#define SLUICE_FORWARD_REGISTRATION(result, name, parameters) SLUICE_FORWARD(name)
SLUICE_HIP_FUNCTIONS(SLUICE_FORWARD_FUNCTION)
SLUICE_HIP_REGISTRATION_FUNCTIONS(SLUICE_FORWARD_REGISTRATION)
SLUICE_FORWARD(hipGetErrorName)
SLUICE_FORWARD(hipGetErrorString)

namespace {

using namespace sluice::emulator::hip;

constexpr const char *library_name = "libamdhip64.so." SLUICE_TEXT(SLUICE_HIP_MAJOR);
constexpr const char *settings_variable = "SLUICE_EMULATOR_SETTINGS";

[[noreturn]] void stop(const std::string &message) {
  std::fprintf(stderr, "%s over the emulator: %s\n", library_name, message.c_str());
  std::_Exit(2);
}

void bind(void *&slot, const char *name) {
  slot = sluice_emulator_symbol(name);
  if (slot == nullptr) stop(std::string("the emulator has no ") + name);
}

/// "key=value;key=value", as for sluice_emulator_configure.
void configure(std::string_view settings) {
  while (!settings.empty()) {
    const size_t end = std::min(settings.find(';'), settings.size());
    const std::string setting(settings.substr(0, end));
    const size_t equals = std::min(setting.find('='), setting.size());
    const std::string key = setting.substr(0, equals);
    const std::string value = equals == setting.size() ? "" : setting.substr(equals + 1);
    if (sluice_emulator_configure(key.c_str(), value.c_str()) != SLUICE_EMULATOR_OK)
      stop(std::string(settings_variable) + ": '" + setting + "' is not a setting of the emulator");
    settings.remove_prefix(std::min(end + 1, settings.size()));
  }
}

#if SLUICE_HIP_MAJOR == 5
/// HIP 5 numbers memory types from the host's, and has no type for memory it does not know.
hipError_t pointer_attributes(hipPointerAttribute_t *attributes, const void *pointer) {
  static const auto get =
      reinterpret_cast<decltype(&hipPointerGetAttributes)>(sluice_emulator_symbol("hipPointerGetAttributes"));
  hipPointerAttribute_t found{};
  const hipError_t error = get(attributes == nullptr ? nullptr : &found, pointer);
  if (error != hipSuccess) return error;
  if (found.type == hipMemoryTypeUnregistered) return hipErrorInvalidValue;
  found.type = hipMemoryType(found.type - 1);
  *attributes = found;
  return hipSuccess;
}
#endif

__attribute__((constructor)) void start() {
#define SLUICE_BIND(name) bind(sluice_slot_##name, #name);
#define SLUICE_BIND_FUNCTION(name, parameters) SLUICE_BIND(name)
#define SLUICE_BIND_REGISTRATION(result, name, parameters) SLUICE_BIND(name)
  SLUICE_HIP_FUNCTIONS(SLUICE_BIND_FUNCTION)
  SLUICE_HIP_REGISTRATION_FUNCTIONS(SLUICE_BIND_REGISTRATION)
  SLUICE_BIND(hipGetErrorName)
  SLUICE_BIND(hipGetErrorString)
#if SLUICE_HIP_MAJOR == 5
  sluice_slot_hipPointerGetAttributes = reinterpret_cast<void *>(&pointer_attributes);
#endif
  if (const char *const settings = std::getenv(settings_variable)) configure(settings);
}

} // namespace
