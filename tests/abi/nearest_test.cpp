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
std::string refusal(const sluice_problem &problem) {
  static const ContextHandle context = able_context();
  Error error;
  const sluice_status status = sluice_query_support(context.get(), &problem, nullptr, &error);
  if (status == SLUICE_OK) return "";
  CHECK(status == SLUICE_UNSUPPORTED);
  return error.message;
}

std::string refusal_of_pack(int32_t head_dim, int32_t pack) {
  sluice_problem problem = good_problem();
  make_paged(problem);
  problem.head_dim_qk = head_dim;
  problem.k_pack = pack;
  return refusal(problem);
}

std::string refusal_of_cap(float cap) {
  sluice_problem problem = good_problem();
  problem.soft_cap = cap;
  return refusal(problem);
}

std::string refusal_of_heads(int32_t q_heads, int32_t kv_heads) {
  sluice_problem problem = good_problem();
  problem.q_heads = q_heads;
  problem.kv_heads = kv_heads;
  return refusal(problem);
}

std::string refusal_of_dim(int32_t head_dim, uint32_t more_flags = 0) {
  sluice_problem problem = good_problem();
  problem.flags |= more_flags;
  problem.head_dim_qk = head_dim;
  return refusal(problem);
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
          "k_pack is " + std::to_string(pack) + "; nearest supported: " + std::to_string(nearest));
}

TEST_CASE("soft caps are of numbers that arithmetic in F32 can divide by", "[nearest]") {
  CHECK(refusal_of_cap(1e-30f) == "");
  CHECK_THAT(refusal_of_cap(9e-31f),
             Catch::StartsWith("soft_cap is 9.0") && Catch::Contains("supported: 1.0"));
  CHECK(refusal_of_cap(65536) == "");
  CHECK(refusal_of_cap(65537) == "soft_cap is 65537; nearest supported: 65536");
}

TEST_CASE("the maximum is 32768 heads, and the nearest number is a multiple of the KV heads", "[nearest]") {
  CHECK(refusal_of_heads(32768, 32768) == "");
  CHECK(refusal_of_heads(32769, 32769) == "kv_heads is 32769; nearest supported: 32768");
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
          "head_dim_qk is " + std::to_string(dim) +
              " without SLUICE_PADDED_ROWS; nearest supported: " + std::to_string(nearest));
  CHECK(refusal_of_dim(129) == "head_dim_qk is 129; nearest supported: 128");
  CHECK(refusal_of_dim(136) == "head_dim_qk is 136; nearest supported: 128");
  for (const int32_t dim : {1, 12, 99, 100, 127, 128})
    CHECK(refusal_of_dim(dim, SLUICE_PADDED_ROWS) == "");
  CHECK(refusal_of_dim(129, SLUICE_PADDED_ROWS) == "head_dim_qk is 129; nearest supported: 128");
}
