//===- cache_op_mutation_test.cpp - a defect of a single kernel of a cache operation is noticed ---------===//
//
// Like kernel_mutation_test.cpp for attention: for each kernel of the library and each defect, some case that
// runs on this kernel must show it.
//
//===----------------------------------------------------------------------------------------------------===//
#include "conformance/cache_ops/append_case.h"
#include "conformance/cache_ops/merge_case.h"
#include "conformance/cache_ops/page_copy_case.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <map>

using namespace sluice::conformance;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

const Target &target() {
  static const Target one({}, 304);
  return one;
}

/// The caches as a kernel without defects leaves them.
void write_perfect(const AppendCase &, const std::vector<StoredElement> &expected, AppendMemory &memory) {
  for (const StoredElement &element : expected)
    store(memory.buffers[size_t(element.buffer)], element.type, element.at, element.value);
}
void write_perfect(const PageCopyCase &c, const std::vector<MovedElement> &expected, PageCopyMemory &memory) {
  const std::vector<std::vector<std::byte>> before = memory.buffers;
  for (const MovedElement &element : expected) {
    std::vector<std::byte> &target = memory.buffers[size_t(element.buffer)];
    const size_t bytes = element.bytes;
    if (element.is_bits)
      std::memcpy(&target[size_t(element.at) * bytes],
                  &before[size_t(element.from_buffer)][size_t(element.from) * bytes], bytes);
    else
      store(target, c.target, element.at, element.value);
  }
}
void write_perfect(const MergeCase &c, const MergeExpected &expected, MergeMemory &memory) {
  size_t row = 0, i = 0;
  for (int t = 0; t < c.tokens; ++t)
    for (int h = 0; h < c.heads; ++h, ++row) {
      for (int e = 0; e < c.head_size; ++e)
        store(memory.buffers[size_t(memory.o.buffer)], c.o, memory.o.at(0, t, h, e), expected.o[i++]);
      if (c.lse)
        store(memory.buffers[size_t(memory.lse.buffer)], Element::f32, memory.lse.at(0, t, h),
              expected.lse[row]);
    }
}

/// The kernels that can have a defect.
enum class Of : uint8_t { all, no_blocks, fp8, steps, fp8_steps };

struct AppendMutant {
  const char *name;
  Of of;
  std::function<void(AppendCase &, AppendInputs &)> change;
};

/// The copy kernels that can have a defect: all, those that convert with scales, or those of groups.
enum class CopyKernels : uint8_t { all, scaling, groups };

struct PageCopyMutant {
  const char *name;
  CopyKernels of;
  std::function<void(PageCopyCase &, PageCopyInputs &)> change;
};

struct MergeMutant {
  const char *name;
  std::function<void(MergeCase &, MergeInputs &)> change;
  bool fp8_only = false; // of O
};

template <typename Change> AppendMutant slots_of(const char *name, Finding finding, Change change) {
  return {name, Of::all, [=](AppendCase &c, AppendInputs &in) {
            if (c.finding == finding) change(c, in);
          }};
}

/// Each row in the slot next to its own.
void miss_slots(AppendCase &c, AppendInputs &in) {
  for (std::optional<Slot> &slot : in.slots)
    if (slot) slot->row = (slot->row + 1) % c.page_size;
}
/// The last new row is lost.
void lose_row(AppendCase &, AppendInputs &in) {
  const auto last =
      std::find_if(in.slots.rbegin(), in.slots.rend(), [](const auto &slot) { return bool(slot); });
  last->reset();
}
void use_other_page(AppendCase &, AppendInputs &in) {
  for (std::optional<Slot> &slot : in.slots)
    if (slot) slot->page = (slot->page + 1) % in.pages_in_all;
}

void swap_elements(std::vector<double> &values, size_t head_size, size_t distance) {
  for (size_t at = 0; at < values.size(); at += head_size)
    std::swap(values[at], values[at + distance % head_size]);
}

/// Each token's heads of K get the tail of the first.
void copy_tails(const AppendCase &c, std::vector<double> &k) {
  const size_t row = size_t(c.head_size.qk), body = row - size_t(c.tail_dim);
  for (size_t at = 0; at < k.size(); at += row)
    std::copy_n(&k[at / (row * size_t(c.heads)) * row * size_t(c.heads) + body], c.tail_dim, &k[at + body]);
}

const std::vector<AppendMutant> append_mutants = {
    slots_of("slots are missed by one", Finding::slots, miss_slots),
    slots_of("a row of slots is lost", Finding::slots, lose_row),
    slots_of("places through a block table are missed by one", Finding::block, miss_slots),
    slots_of("a page of a block table is another", Finding::block, use_other_page),
    slots_of("the last row of a block table is lost", Finding::block, lose_row),
    slots_of("places through CSR are missed by one", Finding::csr, miss_slots),
    slots_of("a page of CSR is another", Finding::csr, use_other_page),
    slots_of("the last row of CSR is lost", Finding::csr, lose_row),
    {"pages through entries of 64 bits are others", Of::all,
     [](AppendCase &c, AppendInputs &in) {
       if (c.wide) use_other_page(c, in);
     }},
    {"skipped rows are not skipped", Of::all,
     [](AppendCase &c, AppendInputs &in) {
       for (std::optional<Slot> &slot : in.slots)
         if (!slot && c.finding == Finding::slots) slot = Slot{0, 0};
     }},
    {"elements of packs are in another order", Of::no_blocks,
     [](AppendCase &c, AppendInputs &in) {
       if (c.k_pack != 0) swap_elements(in.k, size_t(c.head_size.qk), size_t(c.k_pack) - 1);
     }},
    {"K of the next head", Of::all,
     [](AppendCase &c, AppendInputs &in) {
       if (c.heads > 1) std::ranges::rotate(in.k, in.k.begin() + c.head_size.qk);
     }},
    {"V of the next head", Of::all,
     [](AppendCase &c, AppendInputs &in) {
       if (c.heads > 1 && !c.v_in_k) std::ranges::rotate(in.v, in.v.begin() + c.head_size.v);
     }},
    {"nothing is rotated", Of::all, [](AppendCase &c, AppendInputs &) { c.rotation = Rotation::none; }},
    {"halves are rotated as pairs", Of::all,
     [](AppendCase &c, AppendInputs &) {
       if (c.rotation == Rotation::halves) c.rotation = Rotation::pairs;
     }},
    {"pairs are rotated as halves", Of::all,
     [](AppendCase &c, AppendInputs &) {
       if (c.rotation == Rotation::pairs) c.rotation = Rotation::halves;
     }},
    {"a rotation backwards", Of::all,
     [](AppendCase &c, AppendInputs &in) {
       for (size_t i = 0; i < in.rotary.size(); ++i)
         if (i % size_t(c.rotary_dim) >= size_t(c.rotary_dim) / 2) in.rotary[i] *= -1;
     }},
    {"given positions are those of the next row", Of::all,
     [](AppendCase &c, AppendInputs &in) {
       if (c.positions) std::ranges::rotate(in.positions, in.positions.begin() + 1);
     }},
    {"positions of keys are off by one", Of::all,
     [](AppendCase &c, AppendInputs &in) {
       for (int &position : in.positions)
         if (!c.positions) ++position;
     }},
    {"no scale of K", Of::fp8, [](AppendCase &, AppendInputs &in) { std::ranges::fill(in.k_scale, 1.0); }},
    {"the scale of K of the first head", Of::fp8,
     [](AppendCase &, AppendInputs &in) { std::ranges::fill(in.k_scale, in.k_scale[0]); }},
    {"no scale of V", Of::fp8, [](AppendCase &, AppendInputs &in) { std::ranges::fill(in.v_scale, 1.0); }},
    {"the scale of V of the first head", Of::fp8,
     [](AppendCase &, AppendInputs &in) { std::ranges::fill(in.v_scale, in.v_scale[0]); }},
    {"K is multiplied with the scale of V", Of::fp8,
     [](AppendCase &, AppendInputs &in) { in.k_scale = in.v_scale; }},
    {"numbers beyond the largest of FP8 are halved", Of::fp8,
     [](AppendCase &c, AppendInputs &in) {
       for (double &value : in.k)
         if (std::fabs(value / in.k_scale[0]) > as_stored(c.cache, 1e9)) value /= 2;
     }},
    {"NaN becomes 0", Of::all,
     [](AppendCase &, AppendInputs &in) {
       for (double &value : in.k)
         if (std::isnan(value)) value = 0;
     }},
    {"Q of the next head", Of::steps,
     [](AppendCase &c, AppendInputs &in) {
       if (c.q_heads > 1) std::ranges::rotate(in.q, in.q.begin() + c.head_size.qk);
     }},
    {"Q of the next token", Of::steps,
     [](AppendCase &c, AppendInputs &in) {
       if (c.q_heads != 0) std::ranges::rotate(in.q, in.q.begin() + c.q_heads * c.head_size.qk);
     }},
    {"no Q of rows without a slot", Of::steps,
     [](AppendCase &c, AppendInputs &) {
       if (c.finding == Finding::slots) c.finding = Finding::block;
     }},
    {"Q of rows without a sequence", Of::steps,
     [](AppendCase &c, AppendInputs &) { c.finding = Finding::slots; }},
    {"no norm of K", Of::steps, [](AppendCase &, AppendInputs &in) { in.k_norm.clear(); }},
    {"no norm of Q", Of::steps, [](AppendCase &, AppendInputs &in) { in.q_norm.clear(); }},
    {"weights of a norm are all 1", Of::steps,
     [](AppendCase &, AppendInputs &in) { std::ranges::fill(in.k_norm, 1.0); }},
    {"weights of the next element", Of::steps,
     [](AppendCase &, AppendInputs &in) {
       if (!in.q_norm.empty()) std::ranges::rotate(in.q_norm, in.q_norm.begin() + 1);
     }},
    {"a norm of all but the last chunk", Of::steps,
     [](AppendCase &, AppendInputs &in) {
       if (in.k_norm.size() > 8) in.k_norm.resize(in.k_norm.size() - 8);
     }},
    {"a norm takes the tail too", Of::steps,
     [](AppendCase &c, AppendInputs &in) {
       if (c.k_norm) in.k_norm.resize(size_t(c.head_size.qk), 1.0);
     }},
    {"tails of the first head", Of::steps,
     [](AppendCase &c, AppendInputs &in) {
       if (c.tail_dim != 0) copy_tails(c, in.k);
     }},
    {"a rotation from the first element on", Of::steps,
     [](AppendCase &c, AppendInputs &) { c.rotary_first = 0; }},
    {"scales of the next page", Of::fp8_steps,
     [](AppendCase &c, AppendInputs &in) {
       if (c.k_scale == Scale::page) std::ranges::rotate(in.k_scale, in.k_scale.begin() + c.heads);
     }},
    {"a computed scale is that of the next row", Of::fp8_steps,
     [](AppendCase &c, AppendInputs &in) {
       if (c.v_scale == Scale::token) std::ranges::rotate(in.v, in.v.begin() + c.head_size.v);
     }},
    {"computed scales are 1", Of::fp8_steps,
     [](AppendCase &c, AppendInputs &) {
       if (c.k_scale == Scale::token) c.k_scale = Scale::none;
     }},
    {"the rotation of Q is that of the next row", Of::steps,
     [](AppendCase &c, AppendInputs &in) {
       if (c.q_heads != 0) std::ranges::rotate(in.positions, in.positions.begin() + 1);
     }},
};

const std::vector<PageCopyMutant> &page_copy_mutants() {
  const auto each_row = [](auto change) {
    return [=](PageCopyCase &c, PageCopyInputs &in) {
      for (MovedRow &row : in.rows)
        change(c, in, row);
    };
  };
  static const std::vector<PageCopyMutant> all = {
      {"a row is missing", CopyKernels::all,
       [](PageCopyCase &, PageCopyInputs &in) { in.rows.erase(in.rows.begin() + 1); }},
      {"pages go to themselves instead of by pairs", CopyKernels::all,
       each_row([](PageCopyCase &c, PageCopyInputs &, MovedRow &row) {
         if (c.moving == Moving::pairs) row.to_page = row.from_page;
       })},
      {"the next page is read", CopyKernels::all,
       each_row([](PageCopyCase &, PageCopyInputs &in, MovedRow &row) {
         row.from_page = (row.from_page + 1) % in.pages;
       })},
      {"only the first row of a page is read", CopyKernels::all,
       each_row([](PageCopyCase &, PageCopyInputs &, MovedRow &row) { row.from_row = 0; })},
      {"rows of a gather are one too late", CopyKernels::all,
       each_row(
           [](PageCopyCase &c, PageCopyInputs &, MovedRow &row) { row.to_row += c.is_gather() ? 1 : 0; })},
      {"first keys are ignored", CopyKernels::all,
       [](PageCopyCase &c, PageCopyInputs &in) {
         for (size_t i = 0; c.first_keys && i + 1 < in.rows.size(); ++i)
           in.rows[i].from_row = int64_t(i) % c.page_size;
       }},
      {"no scale of K", CopyKernels::scaling,
       [](PageCopyCase &, PageCopyInputs &in) { std::ranges::fill(in.k_scale, 1.0); }},
      {"the scale of K of the first head", CopyKernels::scaling,
       [](PageCopyCase &, PageCopyInputs &in) { std::ranges::fill(in.k_scale, in.k_scale[0]); }},
      {"no scale of V", CopyKernels::scaling,
       [](PageCopyCase &, PageCopyInputs &in) { std::ranges::fill(in.v_scale, 1.0); }},
      {"the scale of V of the first head", CopyKernels::scaling,
       [](PageCopyCase &, PageCopyInputs &in) { std::ranges::fill(in.v_scale, in.v_scale[0]); }},
      {"a scale is inverted", CopyKernels::scaling,
       [](PageCopyCase &, PageCopyInputs &in) {
         for (double &scale : in.k_scale)
           scale = 1 / scale;
       }},
      {"groups have 64 elements", CopyKernels::groups,
       [](PageCopyCase &c, PageCopyInputs &) {
         if (c.scale_group == 32) c.scale_group = 64;
       }},
  };
  return all;
}

/// The effect of a change on the LSEs of some parts.
template <typename Change> void change_parts(const MergeCase &c, MergeInputs &in, Change change) {
  const size_t rows = size_t(c.tokens) * size_t(c.heads);
  for (size_t at = 0; at < in.lse.size(); ++at)
    in.lse[at] = change(int(at / rows), in.lse[at]);
}

template <int from> void lose_parts(MergeCase &c, MergeInputs &in) {
  change_parts(c, in, [&](int part, double lse) { return part >= from && c.parts > from ? -infinity : lse; });
}

const std::vector<MergeMutant> &merge_mutants() {
  static const std::vector<MergeMutant> all = {
      {"the first part is lost",
       [](MergeCase &c, MergeInputs &in) {
         change_parts(c, in, [](int part, double lse) { return part == 0 ? -infinity : lse; });
       }},
      {"the last part is lost",
       [](MergeCase &c, MergeInputs &in) {
         change_parts(c, in, [&](int part, double lse) { return part == c.parts - 1 ? -infinity : lse; });
       }},
      {"parts after the first of a lane are lost", lose_parts<4>},
      {"parts after the first of each slot are lost", lose_parts<16>},
      {"parts after those that are read at once are lost", lose_parts<64>},
      {"a part counts twice",
       [](MergeCase &c, MergeInputs &in) {
         change_parts(c, in, [](int part, double lse) { return part == 1 ? lse + std::log(2.0) : lse; });
       }},
      {"LSEs have the other base", [](MergeCase &c, MergeInputs &) { c.lse_base_2 = !c.lse_base_2; }},
      {"LSEs to base 2 are read to base e", [](MergeCase &c, MergeInputs &) { c.lse_base_2 = false; }},
      {"no sink logit", [](MergeCase &, MergeInputs &in) { std::ranges::fill(in.sink_logits, -infinity); }},
      {"the sink logit of the first head",
       [](MergeCase &, MergeInputs &in) { std::ranges::fill(in.sink_logits, in.sink_logits[0]); }},
      {"sink logits have the LSEs' base",
       [](MergeCase &c, MergeInputs &in) {
         for (double &sink : in.sink_logits)
           if (c.lse_base_2) sink *= std::log(2.0);
       }},
      {"parts that do not count do",
       [](MergeCase &, MergeInputs &in) {
         for (double &lse : in.lse)
           if (lse == -infinity) lse = -1e30;
       }},
      {"rows that no part has are NaN",
       [](MergeCase &c, MergeInputs &in) {
         const size_t rows = size_t(c.tokens) * size_t(c.heads), row = 5;
         for (size_t part = 0; c.weights == Weights::some && part < size_t(c.parts); ++part)
           in.lse[part * rows + row] = std::nan("");
       }},
      {"an LSE of +infinity is NaN",
       [](MergeCase &, MergeInputs &in) {
         for (double &lse : in.lse)
           if (lse == infinity) lse = std::nan("");
       }},
      {"parts from the second on are backwards",
       [](MergeCase &c, MergeInputs &in) {
         if (c.places != PartPlaces::listed) return;
         const size_t rows = size_t(c.tokens) * size_t(c.heads);
         for (size_t part = 1; part < size_t(c.parts) - part; ++part)
           std::swap_ranges(in.lse.begin() + int64_t(part * rows),
                            in.lse.begin() + int64_t((part + 1) * rows),
                            in.lse.begin() + int64_t((size_t(c.parts) - part) * rows));
       }},
      {"no scale of O", [](MergeCase &, MergeInputs &in) { std::ranges::fill(in.o_scale, 1.0); }, true},
      {"the scale of O of the first head",
       [](MergeCase &, MergeInputs &in) { std::ranges::fill(in.o_scale, in.o_scale[0]); }, true},
      {"O is multiplied by its scale",
       [](MergeCase &, MergeInputs &in) {
         for (double &scale : in.o_scale)
           scale = 1 / scale;
       },
       true},
      {"LSEs of the first sequence",
       [](MergeCase &c, MergeInputs &in) {
         if (c.sequences < 2) return;
         const size_t sequence_rows = size_t(c.tokens / c.sequences * c.heads),
                      rows = size_t(c.tokens * c.heads);
         for (size_t i = 0; i < in.lse.size(); ++i)
           in.lse[i] = in.lse[i / rows * rows + i % sequence_rows];
       }},
      {"the next row's LSE",
       [](MergeCase &, MergeInputs &in) { std::ranges::rotate(in.lse, in.lse.begin() + 1); }},
      {"elements of the next chunk",
       [](MergeCase &c, MergeInputs &in) {
         if (c.head_size > 8) std::ranges::rotate(in.partial, in.partial.begin() + 8);
       }},
      {"NaN that counts becomes 0",
       [](MergeCase &, MergeInputs &in) {
         for (double &value : in.partial)
           if (std::isnan(value)) value = 0;
       }},
  };
  return all;
}

template <typename AnyCase>
std::map<std::string, std::vector<AnyCase>> by_kernel(std::vector<AnyCase> cases) {
  std::map<std::string, std::vector<AnyCase>> result;
  for (AnyCase &c : cases)
    result[c.kernel].push_back(std::move(c));
  return result;
}

template <typename Memory>
std::vector<StoredElement> expect(const AppendCase &c, const AppendInputs &in, const Memory &before) {
  return compute_expected(c, in, before);
}
template <typename Memory>
std::vector<MovedElement> expect(const PageCopyCase &c, const PageCopyInputs &in, const Memory &before) {
  return compute_expected(c, in, before);
}
template <typename Memory> MergeExpected expect(const MergeCase &c, const MergeInputs &in, const Memory &) {
  return compute_expected(c, in);
}

/// A case whose right result passes, and what mutants make of it.
template <typename AnyCase> class Trial {
public:
  explicit Trial(const AnyCase &each)
      : c(each), in(make_inputs(c)), before(make_memory(c, in)), expected(expect(c, in, before)) {
    auto after = before;
    write_perfect(c, expected, after);
    REQUIRE(compare(c, expected, before, after).wrong == 0);
  }

  template <typename Mutant> bool shows(const Mutant &mutant) const {
    AnyCase changed = c;
    auto changed_in = in;
    mutant.change(changed, changed_in);
    auto after = before;
    write_perfect(c, expect(changed, changed_in, before), after);
    return compare(c, expected, before, after).wrong != 0;
  }

private:
  const AnyCase &c;
  decltype(make_inputs(c)) in;
  decltype(make_memory(c, in)) before;
  decltype(expect(c, in, before)) expected;
};

/// Each mutant shows in one of the kernel's cases.
template <typename AnyCase, typename Mutant>
void check_noticed(const std::vector<AnyCase> &cases, std::vector<const Mutant *> mutants) {
  for (const AnyCase &c : cases) {
    if (mutants.empty()) break;
    const Trial trial(c);
    std::erase_if(mutants, [&](const Mutant *mutant) { return trial.shows(*mutant); });
  }
  CAPTURE(cases.front().kernel);
  for (const Mutant *mutant : mutants)
    FAIL_CHECK(mutant->name);
}

template <typename Mutant, typename Is>
std::vector<const Mutant *> select(const std::vector<Mutant> &mutants, Is possible) {
  std::vector<const Mutant *> selected;
  for (const Mutant &mutant : mutants)
    if (possible(mutant)) selected.push_back(&mutant);
  return selected;
}

} // namespace

TEST_CASE("each defect of every append kernel is noticed") {
  const auto cases = by_kernel(append_cases(target(), Level::quick));
  CHECK(cases.size() == target().names("kv_append").size() + target().names("append_step").size());
  for (const auto &[kernel, kernel_cases] : cases) {
    const Element cache = kernel_cases.front().cache;
    const bool is_step = kernel.starts_with("append_step"), has_blocks = cache >= Element::u4;
    const bool is_fp8 = bytes_of(cache) == 1 && !has_blocks;
    check_noticed(kernel_cases, select(append_mutants, [&](const AppendMutant &mutant) {
                    switch (mutant.of) {
                    case Of::all:
                      return true;
                    case Of::no_blocks:
                      return !has_blocks;
                    case Of::fp8:
                      return is_fp8;
                    case Of::steps:
                      return is_step;
                    case Of::fp8_steps:
                      return is_fp8 && is_step;
                    }
                    return false;
                  }));
  }
}

TEST_CASE("each defect of every copy kernel is noticed") {
  const auto cases = by_kernel(page_copy_cases(target()));
  CHECK(cases.size() == target().names("kv_copy").size());
  for (const auto &[kernel, kernel_cases] : cases) {
    const PageCopyCase &first = kernel_cases.front();
    const bool scales = first.source != first.target && first.source < Element::u4;
    const bool has_groups =
        std::ranges::any_of(kernel_cases, [](const PageCopyCase &c) { return c.scale_group != 0; });
    check_noticed(kernel_cases, select(page_copy_mutants(), [&](const PageCopyMutant &mutant) {
                    switch (mutant.of) {
                    case CopyKernels::all:
                      return true;
                    case CopyKernels::scaling:
                      return scales;
                    case CopyKernels::groups:
                      return has_groups;
                    }
                    return false;
                  }));
  }
}

TEST_CASE("each defect of every merge kernel is noticed") {
  const auto cases = by_kernel(merge_cases(target(), Level::quick));
  CHECK(cases.size() == target().names("merge_states").size());
  for (const auto &[kernel, kernel_cases] : cases) {
    const bool is_fp8 = kernel_cases.front().o == Element::fp8;
    check_noticed(kernel_cases, select(merge_mutants(), [&](const MergeMutant &mutant) {
                    return !mutant.fp8_only || is_fp8;
                  }));
  }
}

TEST_CASE("a write outside the output of an append or a merge is noticed") {
  for (const AppendCase &c : append_cases(target(), Level::quick)) {
    // Blocks have their bytes elsewhere; what compares them is the same.
    if (!c.apart || c.cache >= Element::u4) continue;
    const AppendInputs in = make_inputs(c);
    const AppendMemory before = make_memory(c, in);
    const std::vector<StoredElement> expected = compute_expected(c, in, before);
    AppendMemory after = before;
    write_perfect(c, expected, after);
    // Between the first head of a row and the second.
    std::vector<std::byte> &cache = after.buffers[size_t(after.k_cache.buffer)];
    const size_t at = size_t(after.k_cache.at(0, 0, 0, c.head_size.qk)) * bytes_of(c.cache);
    cache[at] ^= std::byte(1);
    CHECK(compare(c, expected, before, after).wrong == 1);
  }
  for (const MergeCase &c : merge_cases(target(), Level::quick)) {
    if (c.in_place || !c.apart) continue;
    const MergeInputs in = make_inputs(c);
    const MergeMemory before = make_memory(c, in);
    const MergeExpected expected = compute_expected(c, in);
    MergeMemory after = before;
    write_perfect(c, expected, after);
    std::vector<std::byte> &o = after.buffers[size_t(after.o.buffer)];
    o[size_t(c.head_size) * bytes_of(c.o)] ^= std::byte(1);
    CHECK(compare(c, expected, before, after).wrong == 1);
  }
}
