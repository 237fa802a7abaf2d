//===- context_test.cpp - contexts: devices, targets, packs ---------------------------------------------===//
#include "fixture.h"

#include <algorithm>
#include <cstring>
#include <utility>

using namespace sluice::test;

namespace {

/// Checks that creating a context is refused and leaks nothing.
void check_create_refused(const sluice_context_desc &desc, sluice_status status, const std::string &field,
                          const std::string &message) {
  Error error;
  sluice_context *context = reinterpret_cast<sluice_context *>(device_memory);
  check_refusal(sluice_context_create(&desc, &context, &error), error, status, field, message);
  CHECK(context == nullptr);
}

sluice_device_info device_of(const ContextHandle &context) {
  sluice_device_info info;
  sluice_device_info_init(&info, sizeof info);
  REQUIRE(sluice_context_device(context.get(), &info, nullptr) == SLUICE_OK);
  return info;
}

} // namespace

TEST_CASE("a target is a chip by name, without any device", "[context]") {
  const ContextHandle context = target_context();
  const sluice_device_info info = device_of(context);
  CHECK(info.kind == SLUICE_DEVICE_TARGET);
  CHECK(info.ordinal == -1);
  CHECK(info.compute_units == 304);
  CHECK(info.wave_size == 64);
  CHECK(info.lds_bytes == 65536);
  CHECK(info.hip_runtime_version == 0);
  CHECK(std::string(info.chip) == "gfx942");
  CHECK(std::string(info.arch) == "gfx942");
  CHECK(std::string(info.name) == "");
  CHECK(std::string(info.runtime) == "none");
  CHECK(sluice_context_hip_symbol(context.get(), "hipMalloc") == nullptr);
}

TEST_CASE("malformed targets are refused", "[context]") {
  sluice_context_desc desc = context_desc(SLUICE_DEVICE_TARGET);
  for (const char *target : {"gfx942", "gfx942:", "gfx942:0", "gfx942:-1", "gfx942:304x", ":304", ""}) {
    desc.target = target;
    const bool no_chip = std::strcmp(target, ":304") == 0;
    check_create_refused(desc, no_chip ? SLUICE_WRONG_ARCH : SLUICE_INVALID_ARGUMENT, "target",
                         no_chip ? "supported chips: gfx90a, gfx942, gfx950" : "as in gfx942:304");
  }
  desc.target = "gfx1100:96";
  check_create_refused(desc, SLUICE_WRONG_ARCH, "target", "supported chips: gfx90a, gfx942, gfx950");
  desc.target = "gfx950:256"; // known, but not in this pack
  check_create_refused(desc, SLUICE_WRONG_ARCH, "target",
                       "the target is gfx950; the kernel pack has kernels for gfx942");
}

TEST_CASE("a HIP device is described as its runtime reports it", "[context]") {
  FakeHip hip;
  hip.device_count = 3;
  sluice_context_desc desc = context_desc(SLUICE_DEVICE_HIP);
  desc.device_ordinal = 2;
  const sluice_device_info info = device_of(make_context(desc));
  CHECK(info.kind == SLUICE_DEVICE_HIP);
  CHECK(info.ordinal == 2);
  CHECK(info.compute_units == 304);
  CHECK(info.wave_size == 64);
  CHECK(info.lds_bytes == 65536);
  CHECK(info.hip_runtime_version == 60300000);
  CHECK(std::string(info.chip) == "gfx942");
  CHECK(std::string(info.arch) == "gfx942:sramecc+:xnack-");
  CHECK(std::string(info.name) == "Fake Instinct");
  CHECK(std::string(info.runtime) == "caller");
  CHECK(hip.count("hipSetDevice") == 0);
}

TEST_CASE("the old layout of device properties is read if the runtime lacks the new one", "[context]") {
  FakeHip hip;
  hip.missing = {"hipDeviceGetName", "hipRuntimeGetVersion", "hipGetErrorName"};
  const std::vector<const char *> in_turn = {"hipGetDevicePropertiesR0600", "hipGetDevicePropertiesR0000",
                                             "hipGetDeviceProperties"};
  for (const char *name : in_turn) {
    hip.forget_calls();
    const sluice_device_info info = device_of(fake_context());
    CHECK(std::string(info.arch) == "gfx942:sramecc+:xnack-");
    CHECK(std::string(info.name) == "");
    CHECK(info.hip_runtime_version == 0);
    for (const char *other : in_turn)
      CHECK(hip.count(other) == (other == name));
    hip.failing = {{name, 719}};
    check_create_refused(context_desc(SLUICE_DEVICE_HIP), SLUICE_HIP, "",
                         std::string(name) + " failed with ");
    hip.failing = {};
    hip.missing.insert(name);
  }
}

TEST_CASE("a missing required entry point is NO_DEVICE, and the message names it", "[context]") {
  FakeHip hip;
  const sluice_context_desc desc = context_desc(SLUICE_DEVICE_HIP);
  for (const char *name :
       {"hipInit", "hipGetDeviceCount", "hipGetDevice", "hipSetDevice", "hipDeviceGetAttribute",
        "hipModuleLoadData", "hipModuleUnload", "hipModuleGetFunction", "hipModuleLaunchKernel",
        "hipStreamWaitEvent", "hipStreamIsCapturing", "hipEventRecord"}) {
    hip.missing = {name};
    check_create_refused(desc, SLUICE_NO_DEVICE, name, std::string("has no entry point ") + name);
  }
  hip.missing = {"hipGetDevicePropertiesR0600", "hipGetDevicePropertiesR0000", "hipGetDeviceProperties"};
  check_create_refused(desc, SLUICE_NO_DEVICE, "hipGetDeviceProperties",
                       "has no entry point hipGetDeviceProperties");
}

TEST_CASE("impossible attributes are refused, though HIP succeeds", "[context]") {
  FakeHip hip;
  const sluice_context_desc desc = context_desc(SLUICE_DEVICE_HIP);
  const auto real = hip.attributes;
  for (const auto &[attribute, value] : real) {
    for (const int wrong : {0, -1}) {
      hip.attributes = real;
      hip.attributes[attribute] = wrong;
      check_create_refused(desc, SLUICE_HIP, "",
                           "returned " + std::to_string(wrong) + " for attribute " +
                               std::to_string(attribute) + " of device 0; it must be at least 1");
    }
    hip.attributes.erase(attribute);
    check_create_refused(desc, SLUICE_HIP, "",
                         "returned 0 for attribute " + std::to_string(attribute) +
                             " of device 0; it must be");
  }
}

TEST_CASE("a device of one compute unit is one", "[context]") {
  FakeHip hip;
  hip.attributes[63] = 1;
  CHECK(device_of(fake_context()).compute_units == 1);
}

TEST_CASE("capabilities are required only of known chips", "[context]") {
  FakeHip hip;
  hip.arch = "gfx999";
  hip.attributes[87] = 32;
  sluice::package::PackWriter writer("test", "22.1.8");
  add_fake_kernel(writer, kernel_entry("f16", 128, 8), "gfx999");
  const std::vector<std::byte> pack = writer.finish();
  sluice_context_desc desc = context_desc(SLUICE_DEVICE_HIP, pack);
  CHECK(device_of(make_context(desc)).wave_size == 32);
}

TEST_CASE("a device with less than its chip has is WRONG_ARCH, with the reason", "[context]") {
  FakeHip hip;
  const sluice_context_desc desc = context_desc(SLUICE_DEVICE_HIP);
  const auto real = hip.attributes;
  hip.attributes[87] = 32;
  check_create_refused(desc, SLUICE_WRONG_ARCH, "device",
                       "gfx942:sramecc+:xnack- with waves of 32 lanes; kernels for gfx942 have waves of 64");
  hip.attributes = real;
  hip.attributes[74] = 1024;
  check_create_refused(desc, SLUICE_WRONG_ARCH, "device",
                       "with 1024 bytes of LDS for a workgroup; attn_fwd_");
}

TEST_CASE("a machine without a GPU is NO_DEVICE, other errors are HIP", "[context]") {
  FakeHip hip;
  const sluice_context_desc desc = context_desc(SLUICE_DEVICE_HIP);
  for (const char *call : {"hipInit", "hipGetDeviceCount"}) {
    for (const int code : {100, 101}) {
      hip.failing = {{call, code}};
      check_create_refused(desc, SLUICE_NO_DEVICE, "device_ordinal",
                           std::string(call) + " of caller returned " + std::to_string(code));
    }
    hip.failing = {{call, 719}};
    check_create_refused(desc, SLUICE_HIP, "",
                         std::string(call) + " failed with hipErrorLaunchFailure (719)");
  }
  Error error;
  sluice_context *context = nullptr;
  sluice_context_create(&desc, &context, &error);
  CHECK(error.hip_code == 719);
  hip.failing = {};
  hip.device_count = 0;
  check_create_refused(desc, SLUICE_NO_DEVICE, "device_ordinal", "device_ordinal is 0; caller has 0 devices");
}

TEST_CASE("a device ordinal that does not exist is refused", "[context]") {
  FakeHip hip;
  sluice_context_desc desc = context_desc(SLUICE_DEVICE_HIP);
  for (const int ordinal : {1, -1}) {
    desc.device_ordinal = ordinal;
    check_create_refused(desc, SLUICE_NO_DEVICE, "device_ordinal",
                         "device_ordinal is " + std::to_string(ordinal) + "; caller has 1 device");
  }
  hip.device_count = desc.device_ordinal = 2;
  check_create_refused(desc, SLUICE_NO_DEVICE, "device_ordinal", "device_ordinal is 2; caller has 2 devices");
}

TEST_CASE("a device without kernels in the pack is WRONG_ARCH", "[context]") {
  FakeHip hip;
  for (const char *arch : {"gfx90a:sramecc+:xnack-", "gfx9420", "gfx94", ""}) {
    hip.arch = arch;
    check_create_refused(context_desc(SLUICE_DEVICE_HIP), SLUICE_WRONG_ARCH, "device",
                         std::string("the device is ") + arch + "; the kernel pack has kernels for gfx942");
  }
}

TEST_CASE("descriptions that contradict themselves are refused", "[context]") {
  FakeHip hip;
  sluice_context_desc desc = context_desc(SLUICE_DEVICE_TARGET);
  desc.kind = 0;
  check_create_refused(desc, SLUICE_INVALID_ARGUMENT, "kind", "kind is missing");
  desc.kind = 4;
  check_create_refused(desc, SLUICE_NEWER_STRUCT, "kind",
                       "kind is 4; the last value that this version knows is SLUICE_DEVICE_TARGET (3)");
  desc = context_desc(SLUICE_DEVICE_TARGET);
  desc.flags = 2;
  check_create_refused(desc, SLUICE_NEWER_STRUCT, "flags", "flags is 0x2");
  desc = context_desc(SLUICE_DEVICE_TARGET);
  desc.target = nullptr;
  check_create_refused(desc, SLUICE_INVALID_ARGUMENT, "target", "target is NULL");
  desc = context_desc(SLUICE_DEVICE_TARGET);
  desc.device_ordinal = 1;
  check_create_refused(desc, SLUICE_INVALID_ARGUMENT, "device_ordinal", "a target has no devices");
  desc = context_desc(SLUICE_DEVICE_TARGET);
  desc.hip_resolver = FakeHip::resolve;
  check_create_refused(desc, SLUICE_INVALID_ARGUMENT, "hip_resolver", "only SLUICE_DEVICE_HIP takes one");
  desc = context_desc(SLUICE_DEVICE_TARGET);
  desc.hip_resolver_user = &desc;
  check_create_refused(desc, SLUICE_INVALID_ARGUMENT, "hip_resolver_user", "hip_resolver is NULL");
  desc = context_desc(SLUICE_DEVICE_HIP);
  desc.target = "gfx942:304";
  check_create_refused(desc, SLUICE_INVALID_ARGUMENT, "target", "only SLUICE_DEVICE_TARGET has one");
  desc = context_desc(SLUICE_DEVICE_TARGET);
  desc.pack = nullptr;
  check_create_refused(desc, SLUICE_INVALID_ARGUMENT, "pack", "pack is NULL, but pack_bytes is");

  Error error;
  desc = context_desc(SLUICE_DEVICE_TARGET);
  check_refusal(sluice_context_create(&desc, nullptr, &error), error, SLUICE_INVALID_ARGUMENT, "out",
                "out is NULL");
  sluice_context_destroy(nullptr);
}

TEST_CASE("a truncated or altered pack is PACK_CORRUPT", "[context]") {
  std::vector<std::byte> pack = test_pack();
  sluice_context_desc desc = context_desc(SLUICE_DEVICE_TARGET, pack);
  make_context(desc);
  for (const size_t length :
       {size_t{0}, size_t{1}, size_t{47}, size_t{48}, pack.size() / 2, pack.size() - 1}) {
    desc.pack_bytes = length;
    check_create_refused(desc, SLUICE_PACK_CORRUPT, "pack",
                         length < 48 ? "less than its header" : "bytes instead of");
  }
  desc.pack_bytes = pack.size();
  const struct {
    size_t at;
    const char *message;
  } flips[] = {{0, "wrong magic"},
               {9, "the header's checksum"},
               {100, "the manifest's checksum"},
               {pack.size() - 1, "the checksum of attn_fwd_f16_d64_q256_kv64_w8"}};
  for (const auto &flip : flips) {
    pack[flip.at] ^= std::byte{4};
    check_create_refused(desc, SLUICE_PACK_CORRUPT, "pack", flip.message);
    pack[flip.at] ^= std::byte{4};
  }
}

TEST_CASE("a pack made for another argument layout is PACK_CORRUPT", "[context]") {
  const auto check = [](void (*change)(sluice::package::KernelEntry &), const char *message) {
    sluice::package::PackWriter writer("test", "22.1.8");
    sluice::package::KernelEntry entry = kernel_entry("f16", 128, 8);
    change(entry);
    add_fake_kernel(writer, entry);
    const std::vector<std::byte> pack = writer.finish();
    sluice_context_desc desc = context_desc(SLUICE_DEVICE_TARGET, pack);
    check_create_refused(desc, SLUICE_PACK_CORRUPT, "pack", message);
  };
  check([](auto &entry) { entry.kernarg_hash ^= 1; }, "takes arguments of layout");
  check([](auto &entry) { entry.kernarg_bytes += 8; }, "takes arguments of layout");
  check([](auto &entry) { entry.threads = 0; }, "claims workgroups of 0 lanes");
  check([](auto &entry) { entry.threads = 2048; }, "claims workgroups of 2048 lanes");
  check([](auto &entry) { entry.threads = 500; }, "claims workgroups of 500 lanes"); // of 8 waves
  check([](auto &entry) { entry.threads = 5 * 205, entry.name.waves = 5; },
        "claims workgroups of 1025 lanes");
  check([](auto &entry) { entry.name.head_dim_qk = 4104; }, "has unsupported sizes");
  check([](auto &entry) { entry.name.head_dim_v = 100; }, "has unsupported sizes");
  check([](auto &entry) { entry.name.tile_q = 8192; }, "has unsupported sizes");
  check([](auto &entry) { entry.name.tile_kv = 4096; }, "the keys of a tile must divide 2048");
  check([](auto &entry) { entry.name.tile_kv = 48; }, "the keys of a tile must divide 2048");
}

TEST_CASE("a pack's kernels may be as large as kernels can be", "[context]") {
  sluice::package::PackWriter writer("test", "22.1.8");
  sluice::package::KernelEntry entry = kernel_entry("f16", 4096, 16);
  entry.name.tile_q = 4096;
  entry.name.tile_kv = 2048;
  CHECK(entry.threads == 1024);
  add_fake_kernel(writer, entry);
  const std::vector<std::byte> pack = writer.finish();
  sluice_context_desc desc = context_desc(SLUICE_DEVICE_TARGET, pack);
  CHECK(make_context(desc) != nullptr);
}

TEST_CASE("only the kernels of the device's chip count", "[context]") {
  sluice::package::PackWriter writer("test", "22.1.8");
  add_fake_kernel(writer, kernel_entry("f16", 128, 8), "gfx942");
  add_fake_kernel(writer, kernel_entry("f16", 128, 4), "gfx950");
  const std::vector<std::byte> pack = writer.finish();
  sluice_context_desc desc = context_desc(SLUICE_DEVICE_TARGET, pack);
  const ContextHandle context = make_context(desc);
  uint32_t count = 0;
  REQUIRE(sluice_list_kernels(context.get(), 0, nullptr, &count, nullptr) == SLUICE_OK);
  CHECK(count == 1);
}

TEST_CASE("a device gets the code of its own chip, with any features", "[context]") {
  FakeHip hip;
  sluice::package::PackWriter writer("test", "22.1.8");
  const std::string chips[] = {"gfx90a", "gfx942", "gfx950"};
  std::vector<std::vector<std::byte>> code;
  std::vector<sluice::package::ChipCode> objects;
  for (uint32_t i = 0; i < std::size(chips); ++i)
    code.push_back(fake_code(600, i + 1));
  for (size_t i = 0; i < std::size(chips); ++i)
    objects.push_back({chips[i], code[i]});
  writer.add(kernel_entry("f16", 128, 8), objects);
  const std::vector<std::byte> pack = writer.finish();
  sluice_context_desc desc = context_desc(SLUICE_DEVICE_HIP, pack);
  for (size_t i = 0; i < std::size(chips); ++i)
    for (const char *features : {"", ":sramecc+:xnack-", ":sramecc+:xnack+", ":sramecc-:xnack-"}) {
      hip.arch = chips[i] + features;
      hip.loaded_image = {};
      const ContextHandle context = make_context(desc);
      CHECK(std::string(device_of(context).chip) == chips[i]);
      CHECK(std::string(device_of(context).arch) == hip.arch);
      const PlanHandle plan = make_plan(context, good_call());
      CHECK(std::equal(hip.loaded_image.begin(), hip.loaded_image.end(), code[i].begin()));
    }
  for (const char *arch : {"gfx908:sramecc+:xnack-", "gfx9500", "gfx1100"}) {
    hip.arch = arch;
    check_create_refused(desc, SLUICE_WRONG_ARCH, "device",
                         std::string("the device is ") + arch +
                             "; the kernel pack has kernels for gfx90a,gfx942,gfx950");
  }
  desc.kind = SLUICE_DEVICE_TARGET;
  desc.hip_resolver = nullptr;
  for (const auto &[target, lds_bytes] :
       {std::pair("gfx90a:104", 65536u), {"gfx942:304", 65536u}, {"gfx950:256", 163840u}}) {
    desc.target = target;
    CHECK(device_of(make_context(desc)).lds_bytes == lds_bytes);
  }
}

TEST_CASE("HIP entry points are handed out by name", "[context]") {
  FakeHip hip;
  const ContextHandle context = fake_context();
  CHECK(sluice_context_hip_symbol(context.get(), "hipEventRecord") ==
        FakeHip::resolve("hipEventRecord", nullptr));
  CHECK(sluice_context_hip_symbol(context.get(), "hipNoSuchThing") == nullptr);
  CHECK(sluice_context_hip_symbol(context.get(), nullptr) == nullptr);
  CHECK(sluice_context_hip_symbol(nullptr, "hipEventRecord") == nullptr);
}

TEST_CASE("kernels are loaded once, on the context's device, and unloaded with the last user", "[context]") {
  FakeHip hip;
  hip.device_count = 4;
  hip.current_device = 1;
  sluice_context_desc desc = context_desc(SLUICE_DEVICE_HIP);
  desc.device_ordinal = 3;
  ContextHandle context = make_context(desc);
  CHECK(hip.loaded_modules == 0);
  hip.forget_calls();
  PlanHandle plan = make_plan(context, good_call());
  CHECK(hip.call_names() == std::vector<std::string>{"hipGetDevice", "hipSetDevice", "hipModuleLoadData",
                                                     "hipModuleGetFunction", "hipSetDevice"});
  CHECK(hip.functions == std::vector<std::string>{"attn_fwd_f16_d128_q256_kv64_w8"});
  CHECK(hip.current_device == 1);

  hip.forget_calls();
  const PlanHandle again = make_plan(context, good_call());
  CHECK(hip.call_count == 0);

  REQUIRE(sluice_attention_preload(context.get(), nullptr, nullptr) == SLUICE_OK);
  CHECK(hip.loaded_modules == 8);
  hip.forget_calls();
  REQUIRE(sluice_attention_preload(context.get(), nullptr, nullptr) == SLUICE_OK);
  AttentionCall other = good_call();
  other.attention.bounds.q_len = 1;
  const PlanHandle preloaded = make_plan(context, other);
  CHECK(hip.call_count == 0);

  // The plans keep what they need.
  context.reset();
  CHECK(hip.loaded_modules == 8);
  CHECK(run(plan, good_call()) == SLUICE_OK);
}

TEST_CASE("destroying context and plans unloads all modules", "[context]") {
  FakeHip hip;
  {
    const ContextHandle context = fake_context();
    const PlanHandle plan = make_plan(context, good_call());
    REQUIRE(sluice_attention_preload(context.get(), nullptr, nullptr) == SLUICE_OK);
    CHECK(hip.loaded_modules == 8);
    hip.current_device = 1;
    hip.forget_calls();
  }
  CHECK(hip.loaded_modules == 0);
  // On their own device; the thread's device is current again afterwards.
  std::vector<std::string> calls(8, "hipModuleUnload");
  calls.insert(calls.begin(), {"hipGetDevice", "hipSetDevice"});
  calls.push_back("hipSetDevice");
  CHECK(hip.call_names() == calls);
  CHECK(hip.current_device == 1);
}

TEST_CASE("preloading one problem loads its kernel; a target has nothing to load onto", "[context]") {
  FakeHip hip;
  const ContextHandle context = fake_context();
  const AttentionCall call = good_call();
  REQUIRE(sluice_attention_preload(context.get(), &call.attention, nullptr) == SLUICE_OK);
  CHECK(hip.functions == std::vector<std::string>{"attn_fwd_f16_d128_q256_kv64_w8"});
  Error error;
  check_refusal(sluice_attention_preload(target_context().get(), nullptr, &error), error, SLUICE_NO_DEVICE,
                "context", "which has no device to load kernels onto");
}

TEST_CASE("a kernel that HIP does not load is an error, and leaks nothing", "[context]") {
  FakeHip hip;
  const ContextHandle context = fake_context();
  const AttentionCall call = good_call();
  sluice_plan *plan = nullptr;
  const auto check = [&](const char *function, int code, sluice_status status) {
    hip.failing = {{function, code}};
    Error error;
    check_refusal(sluice_attention_plan(context.get(), &call.attention, &plan, &error), error, status,
                  "attn_fwd_f16_d128_q256_kv64_w8", std::string(function) + " failed with ");
    CHECK(error.hip_code == code);
    CHECK(plan == nullptr);
    CHECK(hip.loaded_modules == 0);
  };
  check("hipModuleLoadData", 2, SLUICE_HIP);
  check("hipModuleLoadData", 209, SLUICE_WRONG_ARCH);
  check("hipModuleGetFunction", 500, SLUICE_HIP);
  hip.failing = {};
  CHECK(make_plan(context, call) != nullptr);
}
