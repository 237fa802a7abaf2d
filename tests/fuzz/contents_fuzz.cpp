//===- contents_fuzz.cpp - calls on the emulated device whose arrays hold arbitrary numbers -------------===//
//
// Runs and appends are legal, and small; their lengths, starts, slots and tables come from the fuzzer. Only
// O, LSE and caches may change, every kernel must end, and no kernel may leave its memory if the call says
// how much there is. The number of instructions of a call counts as coverage: the emulator is not
// instrumented.
//
//===----------------------------------------------------------------------------------------------------===//
#include "caller.h"
#include "calls/values.h"

#include <sluice/emulator.h>

#include <cstring>
#include <string>
#include <utility>
#include <vector>

using namespace sluice::fuzz;
namespace calls = sluice::calls;

namespace {

constexpr int32_t batch = 3, q_len = 36, kv_len = 100, q_heads = 2, dim = 64, page_size = 16;
constexpr int32_t pages_of_sequence = (kv_len + page_size - 1) / page_size, pages = batch * pages_of_sequence;
constexpr int32_t q_rows = batch * q_len, kv_rows = pages * page_size; // kv_rows >= batch * kv_len
constexpr size_t element_bytes = 2;

enum Kind : uint8_t { dense, ragged, block, csr_64, split, append_slots, append_block, append_csr, kinds };

template <typename... Parameters> int hip(const char *name, Parameters... parameters) {
  return reinterpret_cast<int (*)(Parameters...)>(sluice_emulator_symbol(name))(parameters...);
}

/// A separate block of device memory: the bytes around it belong to no block.
class Block {
public:
  explicit Block(size_t bytes, uint8_t byte) : initial(bytes, byte) {
    require(hip<void **, size_t>("hipMalloc", &memory, bytes) == 0, "hipMalloc");
    reset();
  }
  template <typename T> T *get() const { return static_cast<T *>(memory); }
  void set(const void *values, size_t bytes) {
    std::memcpy(initial.data(), values, bytes);
    reset();
  }
  void reset() const {
    require(hip<void *, const void *, size_t, int>("hipMemcpy", memory, initial.data(), initial.size(), 1) ==
                0,
            "hipMemcpy");
  }
  bool is_unchanged() const { return std::memcmp(memory, initial.data(), initial.size()) == 0; }

private:
  void *memory = nullptr;
  std::vector<uint8_t> initial;
};

struct Arrays {
  Block q{q_rows * q_heads * dim * element_bytes, 0x33}, k{kv_rows * dim * element_bytes, 0x34},
      v{kv_rows * dim * element_bytes, 0x35}, o{q_rows * q_heads * dim * element_bytes, 0x5a},
      lse{q_rows * q_heads * sizeof(float), 0x5a}, new_rows{q_rows * dim * element_bytes, 0x36};
  Block q_starts{(batch + 1) * 4, 0}, kv_starts{(batch + 1) * 4, 0}, q_lengths{batch * 4, 0},
      kv_lengths{batch * 4, 0}, table{pages * 4, 0}, wide_table{pages * 8, 0},
      page_starts{(batch + 1) * 4, 0}, slots{q_rows * 8, 0};
};

Arrays &arrays() {
  static Arrays made;
  return made;
}

sluice_context *device() {
  static sluice_context *const context = [] {
    for (const auto &[key, value] : {std::pair{"global_races", "off"},
                                     {"global_equal_stores", "off"},
                                     {"lane_stores", "off"},
                                     {"threads", "1"},
                                     {"instruction_budget", "2000000"}})
      require(sluice_emulator_configure(key, value) == SLUICE_EMULATOR_OK, key);
    sluice_context_desc desc;
    sluice_context_desc_init(&desc, sizeof desc);
    desc.kind = SLUICE_DEVICE_EMULATED;
    sluice_context *made = nullptr;
    sluice_error error;
    sluice_error_init(&error, sizeof error);
    require(sluice_context_create(&desc, &made, &error) == SLUICE_OK, error.message);
    return made;
  }();
  return context;
}

bool is_paged(Kind kind) {
  return kind == block || kind == csr_64 || kind == split;
}

calls::Problem problem_of(Kind kind) {
  calls::Problem problem;
  problem.q_type = problem.k_type = problem.v_type = problem.o_type = SLUICE_F16;
  problem.q_heads = q_heads;
  problem.kv_heads = 1;
  problem.head_dim_qk = problem.head_dim_v = dim;
  problem.flags = calls::write_lse | calls::causal;
  problem.mode = kind == dense ? calls::dense : kind == ragged ? calls::ragged : calls::paged;
  if (is_paged(kind)) {
    problem.page_size = page_size;
    problem.page_table_kind = kind == csr_64 ? SLUICE_PAGE_TABLE_CSR : SLUICE_PAGE_TABLE_BLOCK;
    if (kind == csr_64) problem.flags |= calls::page_index_64;
  }
  if (kind == split) {
    problem.max_batch = batch;
    problem.max_q_len = q_len;
    problem.max_kv_len = 8192;
  }
  return problem;
}

sluice_plan *plan_of(Kind kind) {
  static sluice_plan *plans[kinds] = {};
  if (plans[kind] != nullptr) return plans[kind];
  const calls::Problem problem = problem_of(kind);
  sluice_error error;
  sluice_error_init(&error, sizeof error);
  require(sluice_attention_plan(device(), calls::ProblemValues(problem), &plans[kind], &error) == SLUICE_OK,
          error.message);
  return plans[kind];
}

void *workspace_of(const sluice_plan *plan, uint64_t &bytes) {
  sluice_plan_info info;
  sluice_plan_info_init(&info, sizeof info);
  require(sluice_plan_describe(plan, &info, nullptr) == SLUICE_OK, "sluice_plan_describe");
  bytes = info.workspace_bytes;
  static Block *workspace = nullptr;
  if (workspace == nullptr && bytes != 0) workspace = new Block(bytes, 0xff);
  return bytes == 0 ? nullptr : workspace->get<void>();
}

/// Half of the numbers are near valid ones.
template <typename Number>
void fill(FuzzedDataProvider &bytes, Block &array, size_t count, int32_t usual_step) {
  std::vector<Number> numbers(count);
  for (size_t n = 0; n < count; ++n) {
    const auto choice = bytes.ConsumeIntegral<uint8_t>();
    numbers[n] = Number(usual_step) * Number(n);
    if (choice >= 192)
      numbers[n] = bytes.ConsumeIntegral<Number>();
    else if (choice >= 64)
      numbers[n] += Number(choice) - 128;
  }
  array.set(numbers.data(), count * sizeof(Number));
}

sluice_tensor rows(const Block &data, int64_t heads, int64_t outer = 0) {
  return {data.get<void>(), {outer, heads * dim, dim, 1}};
}

sluice_status run(Kind kind) {
  const Arrays &a = arrays();
  const calls::Problem problem = problem_of(kind);
  calls::Args args;
  args.scale = calls::usual_scale(problem);
  args.batch = batch;
  args.q_len = q_len;
  args.kv_len = kv_len;
  const bool has_starts = kind != dense;
  args.q = rows(a.q, q_heads, has_starts ? 0 : q_len * q_heads * dim);
  args.o = rows(a.o, q_heads, has_starts ? 0 : q_len * q_heads * dim);
  args.lse = {a.lse.get<void>(), {has_starts ? 0 : q_len * q_heads, q_heads, 1, 0}};
  args.k = rows(a.k, 1, kind == ragged ? 0 : kind == dense ? kv_len * dim : page_size * dim);
  args.v = rows(a.v, 1, args.k.stride[0]);
  args.q_lengths = kind == csr_64 ? nullptr : a.q_lengths.get<int32_t>();
  args.kv_lengths = a.kv_lengths.get<int32_t>();
  if (has_starts) {
    args.q_starts = a.q_starts.get<int32_t>();
    args.q_tokens = q_rows;
  }
  if (kind == ragged) {
    args.kv_starts = a.kv_starts.get<int32_t>();
    args.kv_tokens = kv_rows;
  }
  if (is_paged(kind)) {
    args.page_count = pages;
    args.page_table = kind == csr_64 ? a.wide_table.get<void>() : a.table.get<void>();
    if (kind == csr_64) args.page_starts = a.page_starts.get<int32_t>();
    if (kind != csr_64) args.page_table_stride = pages_of_sequence;
  }
  sluice_launch launch;
  sluice_launch_init(&launch, sizeof launch);
  launch.workspace = workspace_of(plan_of(kind), launch.workspace_bytes);
  return sluice_attention_run(plan_of(kind), calls::ArgsValues(problem, args), &launch, nullptr);
}

sluice_status append(Kind kind) {
  const Arrays &a = arrays();
  calls::Append call;
  call.source_type = call.cache_type = SLUICE_F16;
  call.kv_heads = 1;
  call.head_dim_qk = call.head_dim_v = dim;
  call.page_size = page_size;
  call.tokens = q_rows;
  call.k = call.v = rows(a.new_rows, 1);
  call.k_cache = rows(a.k, 1, page_size * dim);
  call.v_cache = rows(a.v, 1, page_size * dim);
  call.page_count = pages;
  if (kind == append_slots) {
    call.slots = a.slots.get<int64_t>();
    return sluice_cache_append(device(), calls::AppendValues(call), nullptr, nullptr);
  }
  call.batch = batch;
  call.starts = a.q_starts.get<int32_t>();
  call.kv_lengths = a.kv_lengths.get<int32_t>();
  call.page_table = a.table.get<void>();
  call.page_table_kind = kind == append_csr ? SLUICE_PAGE_TABLE_CSR : SLUICE_PAGE_TABLE_BLOCK;
  if (kind == append_csr) call.page_starts = a.page_starts.get<int32_t>();
  if (kind == append_block) call.page_table_stride = pages_of_sequence;
  return sluice_cache_append(device(), calls::AppendValues(call), nullptr, nullptr);
}

std::string take_reports() {
  std::string text(sluice_emulator_take_reports(nullptr, 0), '\0');
  sluice_emulator_take_reports(text.data(), text.size());
  return text.c_str();
}

/// Starts of CSR tables may lead beyond the table, whose end is unknown: only loads may go there.
void check_reports(Kind kind) {
  const std::string reports = take_reports();
  if (reports == "[]") return;
  const bool only_loads = reports.find("store") == reports.npos && reports.find("atomic") == reports.npos &&
                          reports.find("budget") == reports.npos;
  require(only_loads && (kind == csr_64 || kind == append_csr), reports.c_str());
  require(sluice_emulator_configure("clear_fault", "1") == SLUICE_EMULATOR_OK, "clear_fault");
}

__attribute__((section("__libfuzzer_extra_counters"))) uint8_t paths[4096];

uint64_t instructions() {
  sluice_emulator_counters_t counters;
  require(sluice_emulator_counters(&counters, sizeof counters) == SLUICE_EMULATOR_OK, "counters");
  return counters.wave_instructions;
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  FuzzedDataProvider bytes(data, size);
  const auto kind = Kind(bytes.ConsumeIntegralInRange<uint8_t>(0, kinds - 1));
  device();
  Arrays &a = arrays();
  fill<int32_t>(bytes, a.q_starts, batch + 1, q_len);
  fill<int32_t>(bytes, a.kv_lengths, batch, kv_len / 2);
  if (kind == append_slots) fill<int64_t>(bytes, a.slots, q_rows, 1);
  if (kind == ragged) fill<int32_t>(bytes, a.kv_starts, batch + 1, kv_len);
  if (kind < append_slots) fill<int32_t>(bytes, a.q_lengths, batch, q_len / 2);
  if (kind == csr_64)
    fill<int64_t>(bytes, a.wide_table, pages, 1);
  else if (kind > ragged)
    fill<int32_t>(bytes, a.table, pages, 1);
  if (kind == csr_64 || kind == append_csr) fill<int32_t>(bytes, a.page_starts, batch + 1, pages_of_sequence);

  const bool appends = kind >= append_slots;
  const uint64_t before = instructions();
  const sluice_status status = appends ? append(kind) : run(kind);
  // The first launch of a call may have faulted before the second.
  require(status == SLUICE_OK || (status == SLUICE_HIP && kind == csr_64), "a legal call was refused");
  (void)hip<void *>("hipStreamSynchronize", nullptr);
  paths[(kind * 512 + (instructions() - before) / 64 % 512) % sizeof paths] = 1;
  check_reports(kind);
  for (const Block *array : {&a.q, &a.q_starts, &a.kv_starts, &a.q_lengths, &a.kv_lengths, &a.table,
                             &a.wide_table, &a.page_starts, &a.slots, &a.new_rows})
    require(array->is_unchanged(), "an input has changed");
  for (const Block *cache : {&a.k, &a.v}) {
    require(appends || cache->is_unchanged(), "K or V has changed");
    cache->reset();
  }
  for (const Block *output : {&a.o, &a.lse}) {
    require(!appends || output->is_unchanged(), "an append has changed O or LSE");
    output->reset();
  }
  return 0;
}
