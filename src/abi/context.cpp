//===- context.cpp - the C ABI: contexts ----------------------------------------------------------------===//
#include "abi/handles.h"
#include "abi/wall.h"
#include "package/embedded_pack.h"
#include "runtime/device.h"
#include "runtime/library.h"
#include "tensors/checks.h"

#include <utility>

using namespace sluice;
using support::Failure;
using support::Status;
using support::text;

namespace {

[[noreturn]] void invalid(const char *field, std::string message) {
  throw Failure(Status::invalid_argument, field, std::move(message));
}

void check_desc(const sluice_context_desc &desc) {
  if (desc.flags != 0) {
    throw Failure(
        Status::newer_struct, "flags",
        text("flags is ", support::hexadecimal(desc.flags), "; this version has no flags of a context"));
  }
  const bool is_target = desc.kind == SLUICE_DEVICE_TARGET;
  if (desc.kind == 0) invalid("kind", "kind is missing; it must be a sluice_device_kind");
  tensors::check_known("kind", desc.kind, SLUICE_DEVICE_TARGET, "SLUICE_DEVICE_TARGET (3)");
  if (is_target && desc.target == nullptr)
    invalid("target", "target is NULL; SLUICE_DEVICE_TARGET needs one");
  if (!is_target && desc.target != nullptr)
    invalid("target", "target is given; only SLUICE_DEVICE_TARGET has one");
  if (is_target && desc.device_ordinal != 0) {
    invalid("device_ordinal",
            text("device_ordinal is ", desc.device_ordinal, "; it must be 0: a target has no devices"));
  }
  if (desc.hip_resolver != nullptr && desc.kind != SLUICE_DEVICE_HIP) {
    invalid("hip_resolver", "hip_resolver is given; only SLUICE_DEVICE_HIP takes one");
  }
  if (desc.hip_resolver == nullptr && desc.hip_resolver_user != nullptr) {
    invalid("hip_resolver_user", "hip_resolver_user is given, but hip_resolver is NULL");
  }
  if (desc.pack == nullptr && desc.pack_bytes != 0) {
    invalid("pack", text("pack is NULL, but pack_bytes is ", desc.pack_bytes));
  }
}

runtime::Device open(const sluice_context_desc &desc) {
  if (desc.kind == SLUICE_DEVICE_TARGET) return runtime::named_target(desc.target);
  if (desc.kind == SLUICE_DEVICE_EMULATED) {
    return runtime::open_device(desc.kind, desc.device_ordinal, runtime::find_emulator());
  }
  if (desc.hip_resolver == nullptr) {
    return runtime::open_device(desc.kind, desc.device_ordinal, runtime::find_hip());
  }
  return runtime::open_device(desc.kind, desc.device_ordinal,
                              {desc.hip_resolver, desc.hip_resolver_user, "caller"});
}

std::span<const std::byte> pack_of(const sluice_context_desc &desc) {
  if (desc.pack != nullptr) return {static_cast<const std::byte *>(desc.pack), size_t(desc.pack_bytes)};
  return package::embedded_pack();
}

} // namespace

extern "C" {

sluice_status sluice_context_desc_init(sluice_context_desc *desc, size_t size) noexcept {
  return abi::init(desc, size);
}

sluice_status sluice_device_info_init(sluice_device_info *info, size_t size) noexcept {
  return abi::init(info, size);
}

sluice_status sluice_context_create(const sluice_context_desc *desc, sluice_context **out,
                                    sluice_error *error) noexcept {
  if (out != nullptr) *out = nullptr;
  return abi::wall(error, [&] {
    sluice_context_desc copy;
    const sluice_context_desc &wanted = abi::view(desc, "desc", copy);
    if (out == nullptr) invalid("out", "out is NULL");
    check_desc(wanted);
    const std::span<const std::byte> pack = pack_of(wanted);
    *out = new sluice_context{std::make_shared<runtime::Context>(open(wanted), pack)};
  });
}

void sluice_context_destroy(sluice_context *context) noexcept {
  delete context;
}

sluice_status sluice_context_device(const sluice_context *context, sluice_device_info *info,
                                    sluice_error *error) noexcept {
  return abi::wall(error, [&] {
    const runtime::Device &device = abi::context_of(context)->device();
    abi::check_output(info, "info");
    sluice_device_info out = {};
    out.kind = device.kind;
    out.ordinal = device.ordinal;
    out.compute_units = device.compute_units;
    out.wave_size = device.wave_size;
    out.lds_bytes = device.lds_bytes;
    out.hip_runtime_version = device.hip_runtime_version;
    abi::copy_text(out.chip, device.chip);
    abi::copy_text(out.arch, device.arch);
    abi::copy_text(out.name, device.name);
    abi::copy_text(out.runtime, device.origin);
    abi::fill(info, out);
  });
}

void *sluice_context_hip_symbol(const sluice_context *context, const char *name) noexcept {
  if (context == nullptr || name == nullptr) return nullptr;
  const auto &hip = context->context->device().hip;
  return hip ? hip->resolver(name, hip->user) : nullptr;
}

sluice_status sluice_set_trace(sluice_context *context, sluice_trace_fn trace, void *user,
                               sluice_error *error) noexcept {
  return abi::wall(error, [&] {
    runtime::Context &shared = *abi::context_of(context);
    shared.trace = trace;
    shared.trace_user = user;
  });
}

sluice_status sluice_set_ranges(sluice_context *context, uint32_t enabled, sluice_error *error) noexcept {
  return abi::wall(error, [&] {
    runtime::Context &shared = *abi::context_of(context);
    if (enabled > 1) invalid("enabled", text("enabled is ", enabled, "; it must be 0 or 1"));
    shared.ranges = enabled == 1 ? runtime::find_ranges() : runtime::RangeFunctions{};
  });
}

} // extern "C"
