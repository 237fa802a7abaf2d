//===- structs.cpp - the structs of the C ABI as Python classes -----------------------------------------===//
//
// Fields have the names of sluice.h. Pointers are integers (0 is NULL), and a tensor is a tuple of its
// address and four strides in elements. Nothing here keeps memory alive.
//
//===----------------------------------------------------------------------------------------------------===//
#include "structs.h"

#include <sluice/sluice.h>

#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <cstdint>
#include <tuple>
#include <type_traits>

namespace nb = nanobind;

namespace sluice_python {
namespace {

using TensorTuple = std::tuple<uintptr_t, int64_t, int64_t, int64_t, int64_t>;

template <typename Struct, typename Member>
void field(nb::class_<Struct> &type, const char *name, Member Struct::*member) {
  if constexpr (std::is_pointer_v<Member>) {
    type.def_prop_rw(
        name, [member](const Struct &self) { return reinterpret_cast<uintptr_t>(self.*member); },
        [member](Struct &self, uintptr_t address) { self.*member = reinterpret_cast<Member>(address); });
  } else if constexpr (std::is_same_v<Member, sluice_tensor>) {
    type.def_prop_rw(
        name,
        [member](const Struct &self) {
          const sluice_tensor &tensor = self.*member;
          return TensorTuple(reinterpret_cast<uintptr_t>(tensor.data), tensor.stride[0], tensor.stride[1],
                             tensor.stride[2], tensor.stride[3]);
        },
        [member](Struct &self, const TensorTuple &tuple) {
          const auto &[data, a, b, c, d] = tuple;
          self.*member = {reinterpret_cast<void *>(data), {a, b, c, d}};
        });
  } else {
    type.def_rw(name, member);
  }
}

template <typename Struct, size_t size>
void text(nb::class_<Struct> &type, const char *name, char (Struct::*member)[size]) {
  type.def_prop_ro(name, [member](const Struct &self) { return static_cast<const char *>(self.*member); });
}

template <typename Struct>
void triple(nb::class_<Struct> &type, const char *name, uint32_t (Struct::*member)[3]) {
  type.def_prop_ro(name, [member](const Struct &self) {
    const auto &numbers = self.*member;
    return std::make_tuple(numbers[0], numbers[1], numbers[2]);
  });
}

template <typename Struct>
nb::class_<Struct> struct_of(nb::module_ &module, const char *name, sluice_status (*init)(Struct *, size_t)) {
  nb::class_<Struct> type(module, name);
  type.def("__init__", [init](Struct *self) {
    new (self) Struct;
    init(self, sizeof *self);
  });
  return type;
}

#define SLUICE_FIELD(name) field(type, #name, &Struct::name)
#define SLUICE_TEXT(name) text(type, #name, &Struct::name)
#define SLUICE_READ_ONLY(name) type.def_ro(#name, &Struct::name)
#define SLUICE_TRIPLE(name) triple(type, #name, &Struct::name)

void bind_problem(nb::module_ &module) {
  using Struct = sluice_problem;
  auto type = struct_of(module, "Problem", sluice_problem_init);
  SLUICE_FIELD(flags);
  SLUICE_FIELD(mode);
  SLUICE_FIELD(q_type);
  SLUICE_FIELD(k_type);
  SLUICE_FIELD(v_type);
  SLUICE_FIELD(o_type);
  SLUICE_FIELD(q_heads);
  SLUICE_FIELD(kv_heads);
  SLUICE_FIELD(head_dim_qk);
  SLUICE_FIELD(head_dim_v);
  SLUICE_FIELD(max_batch);
  SLUICE_FIELD(max_q_len);
  SLUICE_FIELD(max_kv_len);
  SLUICE_FIELD(max_q_tokens);
  SLUICE_FIELD(mask_alignment);
  SLUICE_FIELD(window_left);
  SLUICE_FIELD(window_right);
  SLUICE_FIELD(sink_tokens);
  SLUICE_FIELD(soft_cap);
  SLUICE_FIELD(bias_type);
  SLUICE_FIELD(q_scale_kind);
  SLUICE_FIELD(k_scale_kind);
  SLUICE_FIELD(v_scale_kind);
  SLUICE_FIELD(page_size);
  SLUICE_FIELD(page_table_kind);
  SLUICE_FIELD(k_pack);
  SLUICE_FIELD(lse_base);
  SLUICE_FIELD(determinism);
  SLUICE_FIELD(workspace_ceiling_bytes);
  SLUICE_FIELD(o_scale_kind);
  SLUICE_FIELD(max_prefixes);
  SLUICE_FIELD(max_prefix_len);
  SLUICE_FIELD(scale_group);
  SLUICE_FIELD(v_pack);
}

void bind_args(nb::module_ &module) {
  using Struct = sluice_args;
  auto type = struct_of(module, "Args", sluice_args_init);
  SLUICE_FIELD(flags);
  SLUICE_FIELD(batch);
  SLUICE_FIELD(q_len);
  SLUICE_FIELD(kv_len);
  SLUICE_FIELD(scale);
  SLUICE_FIELD(q);
  SLUICE_FIELD(k);
  SLUICE_FIELD(v);
  SLUICE_FIELD(o);
  SLUICE_FIELD(lse);
  SLUICE_FIELD(q_starts);
  SLUICE_FIELD(kv_starts);
  SLUICE_FIELD(q_lengths);
  SLUICE_FIELD(kv_lengths);
  SLUICE_FIELD(page_table);
  SLUICE_FIELD(page_table_stride);
  SLUICE_FIELD(page_starts);
  SLUICE_FIELD(bias);
  SLUICE_FIELD(mask);
  SLUICE_FIELD(alibi_slopes);
  SLUICE_FIELD(sink_logits);
  SLUICE_FIELD(q_scale);
  SLUICE_FIELD(k_scale);
  SLUICE_FIELD(v_scale);
  SLUICE_FIELD(page_count);
  SLUICE_FIELD(q_tokens);
  SLUICE_FIELD(kv_tokens);
  SLUICE_FIELD(k_scales);
  SLUICE_FIELD(v_scales);
  SLUICE_FIELD(o_scale);
  SLUICE_FIELD(bias_scale);
  SLUICE_FIELD(diagonals);
  SLUICE_FIELD(causal);
  SLUICE_FIELD(spans);
  SLUICE_FIELD(span_count);
  SLUICE_FIELD(alibi_batch_stride);
  SLUICE_FIELD(bias_scale_batch_stride);
  SLUICE_FIELD(prefix_count);
  SLUICE_FIELD(prefix_len);
  SLUICE_FIELD(prefix_q_starts);
  SLUICE_FIELD(prefix_lengths);
  SLUICE_FIELD(prefix_page_table);
  SLUICE_FIELD(prefix_page_table_stride);
  SLUICE_FIELD(prefix_page_starts);
  SLUICE_FIELD(prefix_k);
  SLUICE_FIELD(prefix_v);
  SLUICE_FIELD(k_zeros);
  SLUICE_FIELD(v_zeros);
  SLUICE_FIELD(page_table_head_stride);
}

void bind_launch(nb::module_ &module) {
  using Struct = sluice_launch;
  auto type = struct_of(module, "Launch", sluice_launch_init);
  SLUICE_FIELD(stream);
  SLUICE_FIELD(workspace);
  SLUICE_FIELD(workspace_bytes);
  SLUICE_FIELD(signal_event);
}

void bind_append(nb::module_ &module) {
  using Struct = sluice_append;
  auto type = struct_of(module, "Append", sluice_append_init);
  SLUICE_FIELD(flags);
  SLUICE_FIELD(source_type);
  SLUICE_FIELD(cache_type);
  SLUICE_FIELD(kv_heads);
  SLUICE_FIELD(head_dim_qk);
  SLUICE_FIELD(head_dim_v);
  SLUICE_FIELD(page_size);
  SLUICE_FIELD(page_table_kind);
  SLUICE_FIELD(k_pack);
  SLUICE_FIELD(k_scale_kind);
  SLUICE_FIELD(v_scale_kind);
  SLUICE_FIELD(tokens);
  SLUICE_FIELD(batch);
  SLUICE_FIELD(rotary_dim);
  SLUICE_FIELD(rotary_style);
  SLUICE_FIELD(k);
  SLUICE_FIELD(v);
  SLUICE_FIELD(k_cache);
  SLUICE_FIELD(v_cache);
  SLUICE_FIELD(slots);
  SLUICE_FIELD(starts);
  SLUICE_FIELD(kv_lengths);
  SLUICE_FIELD(page_table);
  SLUICE_FIELD(page_table_stride);
  SLUICE_FIELD(page_starts);
  SLUICE_FIELD(k_scale);
  SLUICE_FIELD(v_scale);
  SLUICE_FIELD(rotary);
  SLUICE_FIELD(rotary_stride);
  SLUICE_FIELD(positions);
  SLUICE_FIELD(page_count);
  SLUICE_FIELD(rotary_type);
  SLUICE_FIELD(rotary_first);
  SLUICE_FIELD(rotary_sin);
  SLUICE_FIELD(q_heads);
  SLUICE_FIELD(tail_dim);
  SLUICE_FIELD(q);
  SLUICE_FIELD(q_out);
  SLUICE_FIELD(k_tail);
  SLUICE_FIELD(q_tail);
  SLUICE_FIELD(q_norm);
  SLUICE_FIELD(k_norm);
  SLUICE_FIELD(norm_epsilon);
  SLUICE_FIELD(norm_type);
  SLUICE_FIELD(k_scales);
  SLUICE_FIELD(v_scales);
  SLUICE_FIELD(k_zeros);
  SLUICE_FIELD(v_zeros);
  SLUICE_FIELD(scale_group);
  SLUICE_FIELD(v_pack);
}

void bind_merge(nb::module_ &module) {
  using Struct = sluice_merge;
  auto type = struct_of(module, "Merge", sluice_merge_init);
  SLUICE_FIELD(flags);
  SLUICE_FIELD(partial_type);
  SLUICE_FIELD(o_type);
  SLUICE_FIELD(parts);
  SLUICE_FIELD(tokens);
  SLUICE_FIELD(heads);
  SLUICE_FIELD(head_dim_v);
  SLUICE_FIELD(lse_base);
  SLUICE_FIELD(partial);
  SLUICE_FIELD(partial_lse);
  SLUICE_FIELD(o);
  SLUICE_FIELD(lse);
  SLUICE_FIELD(sink_logits);
  SLUICE_FIELD(partial_lse_sequence_stride);
  SLUICE_FIELD(lse_sequence_stride);
  SLUICE_FIELD(sequence_tokens);
  SLUICE_FIELD(o_scale_kind);
  SLUICE_FIELD(o_scale);
}

void bind_page_copy(nb::module_ &module) {
  using Struct = sluice_page_copy;
  auto type = struct_of(module, "PageCopy", sluice_page_copy_init);
  SLUICE_FIELD(flags);
  SLUICE_FIELD(source_type);
  SLUICE_FIELD(target_type);
  SLUICE_FIELD(kv_heads);
  SLUICE_FIELD(head_dim_qk);
  SLUICE_FIELD(head_dim_v);
  SLUICE_FIELD(page_size);
  SLUICE_FIELD(source_k_pack);
  SLUICE_FIELD(target_k_pack);
  SLUICE_FIELD(k_scale_kind);
  SLUICE_FIELD(v_scale_kind);
  SLUICE_FIELD(k_source);
  SLUICE_FIELD(v_source);
  SLUICE_FIELD(k_target);
  SLUICE_FIELD(v_target);
  SLUICE_FIELD(pairs);
  SLUICE_FIELD(pair_count);
  SLUICE_FIELD(page_count);
  SLUICE_FIELD(k_scale);
  SLUICE_FIELD(v_scale);
  SLUICE_FIELD(k_scales);
  SLUICE_FIELD(v_scales);
  SLUICE_FIELD(k_zeros);
  SLUICE_FIELD(v_zeros);
  SLUICE_FIELD(k_target_scales);
  SLUICE_FIELD(v_target_scales);
  SLUICE_FIELD(k_target_zeros);
  SLUICE_FIELD(v_target_zeros);
  SLUICE_FIELD(scale_group);
}

void bind_gather(nb::module_ &module) {
  using Struct = sluice_gather;
  auto type = struct_of(module, "Gather", sluice_gather_init);
  SLUICE_FIELD(flags);
  SLUICE_FIELD(cache_type);
  SLUICE_FIELD(out_type);
  SLUICE_FIELD(kv_heads);
  SLUICE_FIELD(head_dim_qk);
  SLUICE_FIELD(head_dim_v);
  SLUICE_FIELD(page_size);
  SLUICE_FIELD(page_table_kind);
  SLUICE_FIELD(k_pack);
  SLUICE_FIELD(k_scale_kind);
  SLUICE_FIELD(v_scale_kind);
  SLUICE_FIELD(batch);
  SLUICE_FIELD(tokens);
  SLUICE_FIELD(k_cache);
  SLUICE_FIELD(v_cache);
  SLUICE_FIELD(k_out);
  SLUICE_FIELD(v_out);
  SLUICE_FIELD(out_starts);
  SLUICE_FIELD(kv_lengths);
  SLUICE_FIELD(first_keys);
  SLUICE_FIELD(page_table);
  SLUICE_FIELD(page_table_stride);
  SLUICE_FIELD(page_starts);
  SLUICE_FIELD(page_count);
  SLUICE_FIELD(k_scale);
  SLUICE_FIELD(v_scale);
  SLUICE_FIELD(k_scales);
  SLUICE_FIELD(v_scales);
  SLUICE_FIELD(k_zeros);
  SLUICE_FIELD(v_zeros);
  SLUICE_FIELD(k_out_scales);
  SLUICE_FIELD(v_out_scales);
  SLUICE_FIELD(k_out_zeros);
  SLUICE_FIELD(v_out_zeros);
  SLUICE_FIELD(scale_group);
}

void bind_answers(nb::module_ &module) {
  {
    using Struct = sluice_build;
    nb::class_<Struct> type(module, "Build", "Where the library and its kernels come from.");
    SLUICE_READ_ONLY(kernel_count);
    SLUICE_TEXT(version);
    SLUICE_TEXT(git_commit);
    SLUICE_TEXT(compiler);
    SLUICE_TEXT(llvm_version);
    SLUICE_TEXT(pack_id);
    SLUICE_TEXT(chips);
  }
  {
    using Struct = sluice_device_info;
    nb::class_<Struct> type(module, "Device", "What a context is bound to.");
    SLUICE_READ_ONLY(kind);
    SLUICE_READ_ONLY(ordinal);
    SLUICE_READ_ONLY(compute_units);
    SLUICE_READ_ONLY(wave_size);
    SLUICE_READ_ONLY(lds_bytes);
    SLUICE_READ_ONLY(hip_runtime_version);
    SLUICE_TEXT(chip);
    SLUICE_TEXT(arch);
    SLUICE_TEXT(name);
    SLUICE_TEXT(runtime);
  }
  {
    using Struct = sluice_support;
    nb::class_<Struct> type(module, "Support", "What a plan for a problem would use and need.");
    SLUICE_READ_ONLY(workspace_alignment);
    SLUICE_READ_ONLY(workspace_bytes);
    SLUICE_READ_ONLY(pointer_alignment);
    SLUICE_READ_ONLY(stride_multiple);
    SLUICE_TEXT(kernel);
  }
  {
    using Struct = sluice_kernel_info;
    nb::class_<Struct> type(module, "Kernel", "One kernel of a context.");
    SLUICE_READ_ONLY(dtype);
    SLUICE_READ_ONLY(head_dim_qk);
    SLUICE_READ_ONLY(head_dim_v);
    SLUICE_READ_ONLY(tile_q);
    SLUICE_READ_ONLY(tile_kv);
    SLUICE_READ_ONLY(waves);
    SLUICE_READ_ONLY(threads);
    SLUICE_READ_ONLY(lds_bytes);
    SLUICE_READ_ONLY(kernarg_bytes);
    SLUICE_TEXT(name);
    SLUICE_TEXT(operation);
    SLUICE_TEXT(features);
    SLUICE_TEXT(p_rounding);
    SLUICE_TEXT(chips);
    SLUICE_TEXT(more_features);
  }
  {
    using Struct = sluice_plan_info;
    nb::class_<Struct> type(module, "PlanInfo", "What a plan does.");
    SLUICE_READ_ONLY(tile_q);
    SLUICE_READ_ONLY(tile_kv);
    SLUICE_READ_ONLY(waves);
    SLUICE_READ_ONLY(lds_bytes);
    SLUICE_READ_ONLY(workspace_alignment);
    SLUICE_READ_ONLY(workspace_bytes);
    SLUICE_TRIPLE(max_grid);
    SLUICE_TRIPLE(block);
    SLUICE_TEXT(kernel);
    SLUICE_TEXT(reason);
  }
  {
    using Struct = sluice_counters;
    nb::class_<Struct> type(module, "Counters", "What the runs of a plan have done.");
    SLUICE_READ_ONLY(runs);
    SLUICE_READ_ONLY(refused);
    SLUICE_READ_ONLY(launches);
    SLUICE_READ_ONLY(main_launches);
    SLUICE_READ_ONLY(other_launches);
    SLUICE_READ_ONLY(merge_launches);
  }
}

#undef SLUICE_TRIPLE
#undef SLUICE_READ_ONLY
#undef SLUICE_TEXT
#undef SLUICE_FIELD

} // namespace

void bind_structs(nb::module_ &module) {
  bind_problem(module);
  bind_args(module);
  bind_launch(module);
  bind_append(module);
  bind_merge(module);
  bind_page_copy(module);
  bind_gather(module);
  bind_answers(module);
}

} // namespace sluice_python
