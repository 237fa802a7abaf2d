//===- workload_options.cpp - the workloads of a command line -------------------------------------------===//
#include "tools/bench/workload_options.h"

#include "package/dtypes.h"
#include "tools/shared/tool_error.h"

#include <algorithm>
#include <charconv>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace sluice::tools {

namespace {

constexpr uint32_t prefill_tokens = 16384; // of all sequences together
constexpr uint32_t cached_sequences = 32;  // of a decode
constexpr uint32_t usual_page_size = 16;
constexpr uint32_t usual_chunk = 512; // or all keys
constexpr uint32_t most_length = 1 << 20, most_sequences = 65535;
constexpr uint32_t most_separate_dim = 512; // longer rows of K also hold V

/// A whole number from 1 to `most`, and nothing else.
std::optional<uint32_t> number(std::string_view text, uint32_t most) {
  uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value == 0 || value > most)
    return std::nullopt;
  return value;
}

std::vector<WorkKind> kinds_of(const WorkloadOptions &options) {
  if (options.kinds.empty()) return {std::begin(work_kinds), std::end(work_kinds)};
  std::vector<WorkKind> kinds;
  for (const std::string &name : options.kinds) {
    const auto found = std::find_if(std::begin(work_kinds), std::end(work_kinds),
                                    [&](WorkKind kind) { return work_kind_name(kind) == name; });
    if (found == std::end(work_kinds))
      throw ToolError(
          fmt::format("--workload is '{}'; it must be 'prefill', 'decode', 'chunk' or 'draft'", name));
    kinds.push_back(*found);
  }
  return kinds;
}

HeadDims dims_of(const std::string &text) {
  const size_t slash = text.find('/');
  const auto qk = number(std::string_view(text).substr(0, slash), most_length);
  const auto v = slash == text.npos ? qk : number(std::string_view(text).substr(slash + 1), most_length);
  if (!qk || !v)
    throw ToolError(
        fmt::format("--head-dim is '{}'; it must be the elements of a row of K and V, as 128, of K and "
                    "of V, as 192/128, or only 'all'",
                    text));
  return {*qk, *v, *qk > most_separate_dim};
}

struct TypesAndDims {
  ElementTypes types;
  HeadDims dims;
};

ElementTypes types_named(const std::string &name) {
  for (const ElementTypes &types : element_types())
    if (types.name == name) return types;
  std::string names;
  for (const ElementTypes &types : element_types())
    names += fmt::format("'{}', ", types.name);
  throw ToolError(fmt::format("--type is '{}'; it must be {}or only 'all'", name, names));
}

/// As in names of kernels.
std::string_view dtype_name(uint32_t dtype) {
  return package::find_dtype(dtype)->name;
}

/// Whether a kernel was made for these types and head dims, and for many rows if the work is prefill. Every
/// kernel can return O as F32 or FP8, and those that can have scales per token, per page, of other groups or
/// zero points have them all; none is made for them.
bool has_kernel(const package::Manifest &kernels, const ElementTypes &types, const HeadDims &dims,
                WorkKind kind) {
  if (types.kv_scales == SLUICE_SCALE_PER_TOKEN || types.kv_scales == SLUICE_SCALE_PER_PAGE || types.zeros ||
      types.group > 32)
    return false;
  return std::any_of(kernels.kernels.begin(), kernels.kernels.end(), [&](const auto &kernel) {
    const package::KernelName &name = kernel.entry.name;
    return name.is_attention() && name.head_dim_qk == dims.qk && name.head_dim_v == dims.v &&
           (name.form == "mla") == dims.v_in_k && (kind != WorkKind::prefill || name.form != "decode") &&
           name.dtype == dtype_name(types.q) &&
           (name.kv_dtype.empty() ? name.dtype : name.kv_dtype) == dtype_name(types.kv) &&
           (name.o_dtype.empty() ? name.dtype : name.o_dtype) == dtype_name(types.o);
  });
}

std::vector<HeadDims> dims_of_kernels(const package::Manifest &kernels) {
  std::vector<HeadDims> dims;
  for (const package::PackedKernel &kernel : kernels.kernels) {
    const package::KernelName &name = kernel.entry.name;
    const HeadDims one = {name.head_dim_qk, name.head_dim_v, name.form == "mla"};
    if (name.is_attention() && std::find(dims.begin(), dims.end(), one) == dims.end()) dims.push_back(one);
  }
  std::sort(dims.begin(), dims.end(),
            [](const HeadDims &a, const HeadDims &b) { return std::tie(a.qk, b.v) < std::tie(b.qk, a.v); });
  return dims;
}

/// By head dims, then types. "all" adds only combinations for which a kernel was made; the library decides
/// whether it computes named ones.
std::vector<TypesAndDims> types_and_dims(const WorkloadOptions &options, const package::Manifest &kernels,
                                         WorkKind kind) {
  const bool all_dims = options.head_dims == std::vector<std::string>{"all"};
  const bool all_types = options.types == std::vector<std::string>{"all"};
  std::vector<HeadDims> dims;
  if (all_dims)
    dims = dims_of_kernels(kernels);
  else
    for (const std::string &text : options.head_dims)
      dims.push_back(dims_of(text));
  std::vector<ElementTypes> types;
  if (all_types)
    types.assign(element_types().begin(), element_types().end());
  else
    for (const std::string &name : options.types)
      types.push_back(types_named(name));
  std::vector<TypesAndDims> both;
  for (const HeadDims &one_dims : dims)
    for (const ElementTypes &one_types : types)
      if (!(all_dims || all_types) || has_kernel(kernels, one_types, one_dims, kind))
        both.push_back({one_types, one_dims});
  if (both.empty())
    throw ToolError(fmt::format("the pack has no kernel for --type {} and --head-dim {}",
                                fmt::join(options.types, ","), fmt::join(options.head_dims, ",")));
  return both;
}

struct Sequences {
  uint32_t batch, length;
};

std::vector<Sequences> sequences_of(const WorkloadOptions &options, WorkKind kind) {
  std::vector<Sequences> all;
  for (const std::string &text : options.sequences) {
    const size_t by = text.find('x');
    const auto batch = number(std::string_view(text).substr(0, by), most_sequences);
    const auto length =
        by == text.npos ? std::nullopt : number(std::string_view(text).substr(by + 1), most_length);
    if (!batch || !length)
      throw ToolError(fmt::format("--sequences is '{}'; it must be SEQUENCESxKEYS, as 8x4096, with "
                                  "1 to {} sequences and 1 to {} keys",
                                  text, most_sequences, most_length));
    all.push_back({*batch, *length});
  }
  if (!all.empty()) return all;
  if (kind == WorkKind::prefill) {
    for (const uint32_t length : prefill_lengths(options))
      all.push_back({prefill_batch(options, length), length});
    return all;
  }
  const std::vector<uint32_t> usual = {kind == WorkKind::chunk ? 16384u : 4096u};
  for (const uint32_t length : options.kv_lens.empty() ? usual : options.kv_lens)
    all.push_back({options.batch.value_or(kind == WorkKind::chunk ? 1 : cached_sequences), length});
  return all;
}

/// Query rows of a chunk or a draft without --q-len.
std::vector<uint32_t> usual_rows(const WorkloadOptions &options, WorkKind kind, uint32_t kv_len) {
  const uint32_t least = kind == WorkKind::chunk ? most_draft_rows + 1 : 2;
  if (kv_len < least)
    throw ToolError(
        fmt::format("{} is {}; a {} has at least {} rows, all of them among its keys: choose more "
                    "keys, or --workload",
                    options.sequences.empty() ? "--kv-len" : "the number of keys of --sequences", kv_len,
                    work_kind_name(kind), least));
  if (kind == WorkKind::chunk) return {std::min(usual_chunk, kv_len)};
  std::vector<uint32_t> rows;
  for (const uint32_t q_len : {2, 4, 8, 16})
    if (q_len <= kv_len) rows.push_back(q_len);
  return rows;
}

/// Query rows of a sequence with this many keys.
std::vector<uint32_t> rows_of(const WorkloadOptions &options, WorkKind kind, uint32_t kv_len) {
  if (kind == WorkKind::prefill) return {kv_len};
  if (kind == WorkKind::decode) return {1};
  if (options.q_lens.empty()) return usual_rows(options, kind, kv_len);
  for (const uint32_t q_len : options.q_lens) {
    const bool fits =
        kind == WorkKind::chunk ? q_len > most_draft_rows : q_len >= 2 && q_len <= most_draft_rows;
    if (!fits)
      throw ToolError(
          kind == WorkKind::chunk
              ? fmt::format("--q-len is {}; a chunk has more than {} rows", q_len, most_draft_rows)
              : fmt::format("--q-len is {}; a draft has 2 to {} rows", q_len, most_draft_rows));
    if (q_len > kv_len)
      throw ToolError(
          fmt::format("{} query rows and {} keys; the rows of a {} are among its keys: --q-len is at "
                      "most the keys of --kv-len or --sequences",
                      q_len, kv_len, work_kind_name(kind)));
  }
  return options.q_lens;
}

std::vector<bool> masks_of(const WorkloadOptions &options, WorkKind kind) {
  std::string causal = options.causal;
  // All rows but the last of a chunk or a draft come before keys that they must not see; a single row sees
  // all.
  if (causal.empty()) causal = kind == WorkKind::prefill ? "both" : kind == WorkKind::decode ? "off" : "on";
  if (causal == "both") return {false, true};
  return {causal == "on"};
}

/// Refuses options that no kind of work would use.
void check_use(const WorkloadOptions &options, const std::vector<WorkKind> &kinds) {
  const auto given = [&] {
    std::vector<std::string_view> names;
    for (const WorkKind kind : kinds)
      names.push_back(work_kind_name(kind));
    return fmt::format("{}", fmt::join(names, ","));
  };
  const auto is_prefill = [](WorkKind kind) { return kind == WorkKind::prefill; };
  if (!options.lengths.empty() && std::none_of(kinds.begin(), kinds.end(), is_prefill))
    throw ToolError(fmt::format("--lengths is for prefill, but --workload is {}; the keys of other work are "
                                "--kv-len",
                                given()));
  if (!options.kv_lens.empty() && std::all_of(kinds.begin(), kinds.end(), is_prefill))
    throw ToolError("--kv-len is for decode, chunk and draft, but --workload is prefill: use --lengths");
  if (!options.q_lens.empty() &&
      (kinds.size() != 1 || (kinds[0] != WorkKind::chunk && kinds[0] != WorkKind::draft)))
    throw ToolError(fmt::format("--q-len is for a chunk or a draft, but --workload is {}", given()));
}

} // namespace

std::vector<uint32_t> prefill_lengths(const WorkloadOptions &options) {
  return options.lengths.empty() ? std::vector<uint32_t>{1024, 4096, 16384} : options.lengths;
}

uint32_t prefill_batch(const WorkloadOptions &options, uint32_t length) {
  return options.batch.value_or(std::max(1u, prefill_tokens / length));
}

void check_heads(uint32_t heads, uint32_t kv_heads) {
  if (heads % kv_heads != 0)
    throw ToolError(fmt::format(
        "--heads is {} and --kv-heads {}; the heads of keys must divide those of queries", heads, kv_heads));
}

std::vector<Workload> workloads_of(const WorkloadOptions &options, const package::Manifest &kernels) {
  const std::vector<WorkKind> kinds = kinds_of(options);
  check_use(options, kinds);
  std::vector<Workload> all;
  for (const WorkKind kind : kinds)
    for (const TypesAndDims &both : types_and_dims(options, kernels, kind))
      for (const uint32_t heads : options.heads) {
        const uint32_t kv_heads = options.kv_heads.value_or(both.dims.v_in_k ? 1 : 8);
        check_heads(heads, kv_heads);
        for (const Sequences &sequences : sequences_of(options, kind))
          for (const uint32_t rows : rows_of(options, kind, sequences.length))
            for (const bool causal : masks_of(options, kind)) {
              Workload work{.kind = kind,
                            .types = both.types,
                            .dims = both.dims,
                            .q_heads = heads,
                            .kv_heads = kv_heads,
                            .batch = sequences.batch,
                            .q_len = rows,
                            .kv_len = sequences.length,
                            .causal = causal,
                            .prefix_len = options.prefix_len,
                            .cascade = options.cascade};
              work.sparse = options.sparse;
              work.page_size = options.page_size.value_or(work.sparse                 ? 1
                                                          : kind == WorkKind::prefill ? 0
                                                                                      : usual_page_size);
              if (work.sparse && work.page_size == 0)
                throw ToolError("--page-size is 0; lists of --sparse have pages of at least 1 row");
              work.shuffled_pages = options.pages == "shuffled";
              if (!work.cascade && (work.page_size == 0 || work.prefix_len % work.page_size != 0))
                throw ToolError(fmt::format("--shared-prefix is {} and the page size {}; with --no-cascade a "
                                            "prefix must fill its pages",
                                            work.prefix_len, work.page_size));
              check_size(work);
              all.push_back(work);
            }
      }
  return all;
}

} // namespace sluice::tools
