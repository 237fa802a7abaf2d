//===- append_speed.cpp - what appends cost, on the timing model ----------------------------------------===//
//
//   append_speed [PACK]
//
// For appends of engines' sizes: the modelled time of the launch with empty caches, beside the time that HBM
// needs for the bytes that have to be moved once. Prints a table in markdown. Fails if an append of many
// tokens is far from that limit.
//
//===----------------------------------------------------------------------------------------------------===//
#include "calls/values.h"
#include "emulator/machine/program.h"
#include "emulator/timing/timing.h"
#include "runtime/dtype.h"
#include "tools/bench/launch_timing.h"
#include "tools/bench/recorded_plan.h"
#include "tools/bench/workload.h"
#include "tools/bench/workload_tensors.h"
#include "tools/shared/context.h"
#include "tools/shared/pack_file.h"
#include "tools/shared/tool_error.h"

#include <cstdio>
#include <exception>
#include <numeric>
#include <string>
#include <vector>

namespace {

using namespace sluice;
using namespace sluice::tools;

constexpr uint32_t compute_units = 304;
constexpr int32_t page_size = 16;
constexpr uint64_t most_bytes = uint64_t(1) << 30; // of tensors; few of them are touched
// Shares of HBM's bandwidth: for launches that are long enough to fill the device; for those of K and V only
// into integers, whose lanes compute more than they move; and for those by columns, where each element is a
// store.
constexpr double least_percent = 80, least_of_integers = 50, least_of_columns = 40;
constexpr int32_t many_tokens = 4096;

struct Append {
  const char *name;
  int32_t tokens;
  int32_t q_heads, kv_heads, head_dim_qk, head_dim_v; // head_dim_v 0: calls::v_in_k
  uint32_t cache_type = SLUICE_BF16;
  int32_t rotary_dim = 0, rotary_first = 0, tail_dim = 0;
  bool norms = false;
  uint32_t source_type = SLUICE_BF16;
  int32_t v_pack = 0;
};

const Append appends[] = {
    {"K, V", 4096, 0, 8, 128, 128},
    {"K rotated, V", 4096, 0, 8, 128, 128, SLUICE_BF16, 128},
    {"Q, K rotated, V", 4096, 32, 8, 128, 128, SLUICE_BF16, 128},
    {"Q, K normed and rotated, V", 4096, 32, 8, 128, 128, SLUICE_BF16, 128, 0, 0, true},
    {"Q, K normed and rotated, V", 4096, 32, 8, 128, 128, SLUICE_E4M3FNUZ, 128, 0, 0, true},
    {"Q, K normed and rotated, V", 4096, 32, 8, 128, 128, SLUICE_E4M3FNUZ, 128, 0, 0, true, SLUICE_F16},
    {"K, V", 4096, 0, 8, 128, 128, SLUICE_I8},
    {"Q, K normed and rotated, V", 4096, 32, 8, 128, 128, SLUICE_I8, 128, 0, 0, true},
    {"K, V", 4096, 0, 8, 128, 128, SLUICE_Q8_0},
    {"Q, K normed and rotated, V", 4096, 32, 8, 128, 128, SLUICE_Q8_0, 128, 0, 0, true},
    {"K, V", 4096, 0, 8, 128, 128, SLUICE_Q4_0},
    {"Q, K normed and rotated, V", 4096, 32, 8, 128, 128, SLUICE_Q4_0, 128, 0, 0, true},
    {"K, V", 4096, 0, 8, 128, 128, SLUICE_U4},
    {"Q, K normed and rotated, V", 4096, 32, 8, 128, 128, SLUICE_U4, 128, 0, 0, true},
    {"Q, K with rotated tails, V in K", 4096, 16, 1, 576, 0, SLUICE_BF16, 64, 512, 64},
    {"K, V by columns", 4096, 0, 8, 128, 128, SLUICE_BF16, 0, 0, 0, false, SLUICE_BF16, SLUICE_PACK_ALL},
    {"K, V by columns in packs", 4096, 0, 8, 128, 128, SLUICE_BF16, 0, 0, 0, false, SLUICE_BF16, 8},
    {"K, V by columns", 4096, 0, 8, 128, 128, SLUICE_E4M3FNUZ, 0, 0, 0, false, SLUICE_BF16, SLUICE_PACK_ALL},
    {"K, V", 64, 0, 8, 128, 128},
    {"Q, K normed and rotated, V", 64, 32, 8, 128, 128, SLUICE_BF16, 128, 0, 0, true},
    {"Q, K with rotated tails, V in K", 64, 16, 1, 576, 0, SLUICE_BF16, 64, 512, 64},
};

/// The call, with its tensors in the model's memory. Rows are those of one sequence, in the order of pages.
class Call {
public:
  explicit Call(const Append &of) : memory(most_bytes) {
    const int64_t tokens = of.tokens, pages = (tokens + page_size - 1) / page_size;
    const bool has_v = of.head_dim_v != 0;
    call.flags = has_v ? 0 : uint32_t(calls::v_in_k);
    call.source_type = of.source_type;
    call.cache_type = of.cache_type;
    call.kv_heads = of.kv_heads;
    call.head_dim_qk = of.head_dim_qk;
    call.head_dim_v = of.head_dim_v;
    call.page_size = page_size;
    call.tokens = of.tokens;
    call.page_count = pages;
    const int32_t body = of.head_dim_qk - of.tail_dim;
    const runtime::Block block = runtime::dtype_block(of.cache_type);
    const auto cache = [&](int32_t columns) {
      return tensor(pages, page_size, of.kv_heads, columns, block.bytes, block.elements);
    };
    const auto rows = [&](int32_t heads, int32_t columns) {
      sluice_tensor made = tensor(1, tokens, heads, columns, 2);
      made.stride[0] = 0;
      return made;
    };
    call.k = rows(of.kv_heads, body);
    call.k_cache = cache(of.head_dim_qk);
    if (has_v) {
      call.v = rows(of.kv_heads, of.head_dim_v);
      call.v_cache = cache(of.head_dim_v);
      if (of.v_pack != 0) place_columns(of.v_pack);
    }
    if (of.cache_type == SLUICE_U4) {
      call.k_scale_kind = call.v_scale_kind = SLUICE_SCALE_PER_GROUP;
      call.scale_group = 64;
      call.flags |= calls::zero_points;
      for (sluice_tensor *const groups : {&call.k_scales, &call.v_scales, &call.k_zeros, &call.v_zeros})
        *groups = tensor(pages, page_size, of.kv_heads, of.head_dim_qk / call.scale_group, 2);
    } else if (of.cache_type == SLUICE_I8) {
      call.k_scale_kind = call.v_scale_kind = SLUICE_SCALE_PER_TOKEN;
      call.k_scales = tensor(pages, page_size, of.kv_heads, 1, sizeof(float));
      call.v_scales = tensor(pages, page_size, of.kv_heads, 1, sizeof(float));
    } else if (of.cache_type == SLUICE_E4M3FNUZ) {
      call.k_scale_kind = call.v_scale_kind = SLUICE_SCALE_PER_TENSOR;
      call.k_scale = call.v_scale = array(std::vector<float>(1, 0.5f));
    }
    call.q_heads = of.q_heads;
    call.tail_dim = of.tail_dim;
    if (of.q_heads != 0) {
      call.q = rows(of.q_heads, body);
      call.q_out = of.tail_dim == 0 ? call.q : rows(of.q_heads, of.head_dim_qk);
      if (of.tail_dim == 0) bytes += tokens * of.q_heads * of.head_dim_qk * 2; // in place
      if (of.tail_dim != 0) call.q_tail = rows(of.q_heads, of.tail_dim);
    }
    if (of.tail_dim != 0) call.k_tail = rows(of.kv_heads, of.tail_dim);
    if (of.norms) {
      call.norm_epsilon = 1e-6f;
      call.q_norm = call.k_norm = array(std::vector<uint16_t>(size_t(body), 0x3f80));
    }
    std::vector<int64_t> slots(size_t(tokens), 0);
    std::iota(slots.begin(), slots.end(), 0);
    call.slots = array(slots);
    if (of.rotary_dim == 0) return;
    call.rotary_dim = of.rotary_dim;
    call.rotary_first = of.rotary_first;
    call.rotary_stride = of.rotary_dim;
    call.rotary = array(std::vector<float>(size_t(tokens * of.rotary_dim), 0.5f));
    call.positions = array(std::vector<int32_t>(slots.begin(), slots.end()));
  }

  uint64_t clk(const PackFile &pack, std::string &kernel) {
    RecordedContext context(pack, compute_units);
    sluice_error error = make_error();
    sluice_launch launch;
    sluice_launch_init(&launch, sizeof launch);
    check(sluice_cache_append(context.get(), calls::AppendValues(call), &launch, &error), error);
    const std::vector<RecordedLaunch> launches = context.take_launches();
    const RecordedLaunch &recorded = launches.front();
    kernel = recorded.kernel;
    const emulator::Program program{pack.elf(pack.kernel(kernel), "gfx942")};
    // All workgroups of an XCD: an append is short, and its beginning and end count.
    emulator::timing::TimingOptions options;
    options.device = {.compute_units = compute_units};
    options.compute_units = options.device.compute_units_of_xcd();
    const emulator::timing::TimingResult result = emulator::timing::time_launch(
        program, kernel, recorded.grid, recorded.block, recorded.dynamic_lds_bytes, recorded.kernarg,
        memory.machine(), options);
    if (!result.reports.empty()) throw ToolError(kernel + ": " + emulator::to_text(result.reports.front()));
    clock_mhz = result.device.clock_mhz;
    return result.device_clk;
  }

  /// The time in which HBM moves the bytes that have to be moved.
  double least_clk() const {
    return double(bytes) / (hbm_terabytes_per_second() * 1e12) * double(clock_mhz) * 1e6;
  }

  int64_t bytes = 0;

private:
  sluice_tensor tensor(int64_t outer, int64_t count, int64_t heads, int64_t columns, int64_t element_bytes,
                       int64_t elements_of_block = 1) {
    const int64_t size = outer * count * heads * columns / elements_of_block * element_bytes;
    bytes += size;
    return {.data = memory.allocate(uint64_t(size)),
            .stride = {count * heads * columns, heads * columns, columns, 1}};
  }

  /// The elements of V's cache as [page][head][row / pack][element][row % pack].
  void place_columns(int32_t v_pack) {
    const bool is_one_pack = v_pack == SLUICE_PACK_ALL;
    const int64_t pack = is_one_pack ? page_size : v_pack, page = int64_t{page_size} * call.head_dim_v;
    call.v_pack = v_pack;
    auto &stride = call.v_cache.stride;
    stride[0] = call.kv_heads * page;
    stride[1] = is_one_pack ? 1 : pack * call.head_dim_v;
    stride[2] = page;
    stride[3] = pack;
  }

  template <typename T> T *array(const std::vector<T> &values) {
    const uint64_t size = values.size() * sizeof(T);
    bytes += int64_t(size);
    T *const data = static_cast<T *>(memory.allocate(size));
    memory.upload(data, values.data(), size);
    return data;
  }

  ModelMemory memory;
  calls::Append call;
  uint32_t clock_mhz = 0;
};

const char *name_of(uint32_t cache_type) {
  switch (cache_type) {
  case SLUICE_E4M3FNUZ:
    return "E4M3FNUZ";
  case SLUICE_I8:
    return "I8";
  case SLUICE_U4:
    return "U4";
  case SLUICE_Q8_0:
    return "Q8_0";
  case SLUICE_Q4_0:
    return "Q4_0";
  default:
    return "BF16";
  }
}

} // namespace

int main(int argc, char **argv) try {
  const PackFile pack(argc > 1 ? argv[1] : "");
  int slow = 0;
  std::printf("| rows of a token: heads of Q / K and V x size | tokens | cache | kernel | MB | clk | clk of "
              "HBM | share |\n"
              "| --- | ---: | --- | --- | ---: | ---: | ---: | ---: |\n");
  for (const Append &append : appends) {
    Call call(append);
    std::string kernel;
    const auto clk = double(call.clk(pack, kernel));
    const double percent = 100 * call.least_clk() / clk;
    std::printf("| %s: %d/%d x %d | %d | %s | `%s` | %.1f | %.0f | %.0f | %.0f %% |\n", append.name,
                append.q_heads, append.kv_heads, append.head_dim_qk, append.tokens,
                name_of(append.cache_type), kernel.c_str(), double(call.bytes) / 1e6, clk, call.least_clk(),
                percent);
    std::fflush(stdout);
    const double least = append.v_pack != 0                                      ? least_of_columns
                         : append.q_heads == 0 && append.cache_type >= SLUICE_I8 ? least_of_integers
                                                                                 : least_percent;
    if (append.tokens != many_tokens || percent >= least) continue;
    std::fprintf(stderr, "%s, %s: %.1f %% of the bandwidth of HBM; %g %% is the least\n", append.name,
                 kernel.c_str(), percent, least);
    ++slow;
  }
  return slow == 0 ? 0 : 1;
} catch (const std::exception &error) {
  std::fprintf(stderr, "append_speed: %s\n", error.what());
  return 1;
}
