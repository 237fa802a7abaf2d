//===- fixture.h - shared by the tests of the C ABI -----------------------------------------------------===//
#pragma once

#include "support/attention_call.h"
#include "support/fake_hip.h"
#include "support/test_pack.h"

#include <sluice/make.h>

#include <catch2/catch.hpp>

#include <memory>
#include <string>
#include <vector>

namespace sluice::test {

struct ContextDeleter {
  void operator()(sluice_context *context) const { sluice_context_destroy(context); }
};
struct PlanDeleter {
  void operator()(sluice_plan *plan) const { sluice_plan_destroy(plan); }
};
using ContextHandle = std::unique_ptr<sluice_context, ContextDeleter>;
using PlanHandle = std::unique_ptr<sluice_plan, PlanDeleter>;

struct Error : sluice_error {
  Error() { sluice_error_init(this, sizeof(sluice_error)); }
};

/// Checks a refusal: its status, field and message.
inline void check_refusal(sluice_status status, const Error &error, sluice_status expected,
                          const std::string &field, const std::string &message_part) {
  INFO(sluice_status_name(status) << " [" << error.field << "] " << error.message);
  CHECK(status == expected);
  CHECK(error.code == expected);
  CHECK(error.field == field);
  CHECK_THAT(error.message, Catch::Contains(message_part));
  // Names that only the library's inside has.
  for (const char *inner : {"SLUICE_MODE_", "SLUICE_DETERMINISM_", "SLUICE_WRITE_LSE", "SLUICE_SHARED_PREFIX",
                            "SLUICE_V_IN_K", "SLUICE_ZERO_POINTS", "page_table_", "prefix_", "max_q"})
    CHECK_THAT(std::string(error.field) + " " + error.message, !Catch::Contains(inner));
}

inline const std::vector<std::byte> &shared_test_pack() {
  static const std::vector<std::byte> pack = test_pack();
  return pack;
}

inline sluice_context_desc context_desc(uint32_t kind) {
  sluice_context_desc desc;
  sluice_context_desc_init(&desc, sizeof desc);
  desc.kind = kind;
  if (kind == SLUICE_DEVICE_HIP) desc.hip_resolver = FakeHip::resolve;
  if (kind == SLUICE_DEVICE_TARGET) desc.target = "gfx942:304";
  desc.pack = shared_test_pack().data();
  desc.pack_bytes = shared_test_pack().size();
  return desc;
}

/// With a pack instead of the one that context_desc(kind) has.
inline sluice_context_desc context_desc(uint32_t kind, const std::vector<std::byte> &pack) {
  sluice_context_desc desc = context_desc(kind);
  desc.pack = pack.data();
  desc.pack_bytes = pack.size();
  return desc;
}

inline ContextHandle make_context(const sluice_context_desc &desc) {
  Error error;
  sluice_context *context = nullptr;
  const sluice_status status = sluice_context_create(&desc, &context, &error);
  INFO(error.message);
  REQUIRE(status == SLUICE_OK);
  REQUIRE(context != nullptr);
  return ContextHandle(context);
}

/// A context of a target: answers questions only.
inline ContextHandle target_context() {
  return make_context(context_desc(SLUICE_DEVICE_TARGET));
}
/// A context of the existing FakeHip.
inline ContextHandle fake_context() {
  return make_context(context_desc(SLUICE_DEVICE_HIP));
}

/// Memory that is never accessed.
alignas(256) inline unsigned char device_memory[512];

/// F16, 8 query heads on 2 KV heads of dim 128, causal, with LSE; batch 2, 5 query rows, 7 keys, contiguous.
inline AttentionCall good_call() {
  AttentionCall call;
  call.format.kv_heads = 2;
  call.format.head_dim_qk = call.format.head_dim_v = 128;
  call.format.k.type = call.format.v.type = SLUICE_F16;
  call.attention.q_heads = 8;
  call.attention.q.type = call.attention.o.type = SLUICE_F16;
  call.attention.lse = SLUICE_LSE_LN;
  call.mask.flags = SLUICE_MASK_CAUSAL;
  call.args.batch = 2;
  call.args.rows.max_len = 5;
  call.keys[0].rows.max_len = 7;
  call.args.q = sluice_bshd(device_memory, 5, 8, 128);
  call.kv.k = sluice_bshd(device_memory + 16, 7, 2, 128);
  call.kv.v = sluice_bshd(device_memory + 32, 7, 2, 128);
  call.args.o = sluice_bshd(device_memory + 48, 5, 8, 128);
  call.lse = sluice_make_tensor(device_memory + 64, 8 * 5, 1, 5, 0);
  call.args.lse = &call.lse;
  call.scale = 0.25f;
  call.args.scale = &call.scale;
  return call;
}

/// The sequences are packed one after the other.
inline void make_ragged(AttentionCall &call) {
  call.attention.flags |= SLUICE_ATTENTION_RAGGED;
  call.args.rows.starts = call.keys[0].rows.starts = reinterpret_cast<const int32_t *>(device_memory);
  for (sluice_tensor *tensor : {&call.args.q, &call.kv.k, &call.kv.v, &call.args.o, &call.lse})
    tensor->stride[0] = 0;
}

/// Keys are in pages of 16 rows, one for each sequence.
inline void make_paged(AttentionCall &call) {
  call.format.page_size = 16;
  call.format.page_table = SLUICE_PAGE_TABLE_BLOCK;
  call.kv.k.stride[0] = call.kv.v.stride[0] = 16 * 2 * 128;
  call.keys[0].rows.lengths = reinterpret_cast<const int32_t *>(device_memory);
  call.keys[0].pages.table = device_memory;
  call.keys[0].pages.stride = 1;
}

inline sluice_status query(const ContextHandle &context, const AttentionCall &call, sluice_error *error) {
  return sluice_attention_support(context.get(), &call.attention, nullptr, error);
}

inline PlanHandle make_plan(const ContextHandle &context, const AttentionCall &call) {
  Error error;
  sluice_plan *plan = nullptr;
  const sluice_status status = sluice_attention_plan(context.get(), &call.attention, &plan, &error);
  INFO(error.message);
  REQUIRE(status == SLUICE_OK);
  return PlanHandle(plan);
}

inline sluice_status run(const PlanHandle &plan, const AttentionCall &call,
                         const sluice_launch *launch = nullptr, sluice_error *error = nullptr) {
  return sluice_attention_run(plan.get(), &call.args, launch, error);
}

inline sluice_launch good_launch() {
  sluice_launch launch;
  sluice_launch_init(&launch, sizeof launch);
  launch.stream = FakeHip::handle(0x100);
  return launch;
}

/// Runs a good call, and then the same call after a change, which is refused before anything is launched.
template <typename Refusal>
void check_call_refusal(FakeHip &hip, const ContextHandle &context, const sluice_launch &launch,
                        const Refusal &refusal, sluice_status status) {
  auto call = refusal.good();
  Error error;
  CHECK(run(make_plan(context, call), call, &launch, &error) == SLUICE_OK);
  INFO(error.message);
  refusal.change(call);
  const PlanHandle plan = make_plan(context, call);
  hip.forget_calls();
  check_refusal(run(plan, call, &launch, &error), error, status, refusal.field, refusal.message);
  CHECK(hip.call_count == 0);
}

} // namespace sluice::test
