//===- nearest_test.cpp - numbers that kernels of every feature do not support, and the nearest ---------===//
#include "split_fixture.h"

using namespace sluice::test;

namespace {

/// F16 and head dim 128, with all features.
ContextHandle able_context() {
  static const std::vector<std::byte> pack = [] {
    sluice::package::PackWriter writer("test", "22.1.8");
    sluice::package::KernelEntry entry = kernel_entry("f16", 128, 4);
    entry.features = all_features();
    add_fake_kernel(writer, std::move(entry));
    return writer.finish();
  }();
  sluice_context_desc desc = context_desc(SLUICE_DEVICE_TARGET, pack);
  return make_context(desc);
}

/// The message of a refusal for lack of support; "" if the problem is supported.
std::string refusal(const AttentionCall &call) {
  static const ContextHandle context = able_context();
  Error error;
  const sluice_status status = query(context, call, &error);
  if (status == SLUICE_OK) return "";
  CHECK(status == SLUICE_UNSUPPORTED);
  return error.message;
}

std::string refusal_of_pack(int32_t head_dim, int32_t pack) {
  AttentionCall call = good_call();
  make_paged(call);
  call.format.head_dim_qk = head_dim;
  call.format.k.pack = pack;
  return refusal(call);
}

std::string refusal_of_cap(float cap) {
  AttentionCall call = good_call();
  call.scores.soft_cap = cap;
  return refusal(call);
}

std::string refusal_of_heads(int32_t q_heads, int32_t kv_heads) {
  AttentionCall call = good_call();
  call.attention.q_heads = q_heads;
  call.format.kv_heads = kv_heads;
  return refusal(call);
}

std::string refusal_of_dim(int32_t head_dim, uint32_t flags = 0) {
  AttentionCall call = good_call();
  call.attention.flags = flags;
  call.format.head_dim_qk = head_dim;
  return refusal(call);
}

} // namespace

TEST_CASE("packs of K are powers of two from 8 on, and the nearest of them divides the row", "[nearest]") {
  for (const int32_t pack : {8, 16, 32, 64, 128})
    CHECK(refusal_of_pack(128, pack) == "");
  struct Case {
    int32_t head_dim, pack, nearest;
  };
  const Case cases[] = {{128, 1, 8},   {128, 4, 8},   {96, 12, 8}, {96, 24, 16}, {96, 48, 32}, {96, 96, 32},
                        {112, 14, 16}, {112, 28, 16}, {80, 10, 8}, {80, 20, 16}, {80, 40, 16}, {120, 24, 8}};
  for (const auto &[head_dim, pack, nearest] : cases)
    CHECK(refusal_of_pack(head_dim, pack) ==
          "kv.k.pack is " + std::to_string(pack) + "; nearest supported: " + std::to_string(nearest));
}

TEST_CASE("soft caps are of numbers that arithmetic in F32 can divide by", "[nearest]") {
  CHECK(refusal_of_cap(1e-30f) == "");
  CHECK_THAT(refusal_of_cap(9e-31f),
             Catch::StartsWith("scores.soft_cap is 9.0") && Catch::Contains("supported: 1.0"));
  CHECK(refusal_of_cap(65536) == "");
  CHECK(refusal_of_cap(65537) == "scores.soft_cap is 65537; nearest supported: 65536");
}

TEST_CASE("the maximum is 32768 heads, and the nearest number is a multiple of the KV heads", "[nearest]") {
  CHECK(refusal_of_heads(32768, 32768) == "");
  CHECK(refusal_of_heads(32769, 32769) == "kv.kv_heads is 32769; nearest supported: 32768");
  CHECK(refusal_of_heads(32770, 10) == "q_heads is 32770; nearest supported: 32760");
}

TEST_CASE("head dims are multiples of 8 up to the kernel's, and the next one is the advice", "[nearest]") {
  for (const int32_t dim : {8, 120, 128})
    CHECK(refusal_of_dim(dim) == "");
  struct Case {
    int32_t dim, nearest;
  };
  for (const auto &[dim, nearest] :
       {Case{1, 8}, Case{11, 16}, Case{12, 16}, Case{59, 64}, Case{99, 104}, Case{124, 128}})
    CHECK(refusal_of_dim(dim) ==
          "kv.head_dim_qk is " + std::to_string(dim) +
              " without SLUICE_ATTENTION_PADDED_ROWS; nearest supported: " + std::to_string(nearest));
  CHECK(refusal_of_dim(129) == "kv.head_dim_qk is 129; nearest supported: 128");
  CHECK(refusal_of_dim(136) == "kv.head_dim_qk is 136; nearest supported: 128");
  for (const int32_t dim : {1, 12, 99, 100, 127, 128})
    CHECK(refusal_of_dim(dim, SLUICE_ATTENTION_PADDED_ROWS) == "");
  CHECK(refusal_of_dim(129, SLUICE_ATTENTION_PADDED_ROWS) == "kv.head_dim_qk is 129; nearest supported: 128");
}
