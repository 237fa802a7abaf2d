//===- structs.h - the structs of the C ABI, with those that they point to ------------------------------===//
//
// They stay where they are made, since they point to one another.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include <sluice/cache.h>

namespace sluice::conformance {

template <typename Struct> Struct sized() {
  Struct one = {};
  one.struct_size = sizeof one;
  return one;
}

struct Pinned {
  Pinned() = default;
  Pinned(const Pinned &) = delete;
  Pinned &operator=(const Pinned &) = delete;
};

struct ProblemStructs : Pinned {
  sluice_kv_format kv = sized<sluice_kv_format>();
  sluice_mask mask = sized<sluice_mask>();
  sluice_scores scores = sized<sluice_scores>();
  sluice_attention attention = sized<sluice_attention>();

  ProblemStructs() {
    attention.kv = &kv;
    attention.mask = &mask;
    attention.scores = &scores;
  }
};

/// K and V in memory. The scales count where the formats have some.
struct KvStructs : Pinned {
  sluice_kv_format format = sized<sluice_kv_format>();
  sluice_kv_scales scales = sized<sluice_kv_scales>();
  sluice_kv kv = sized<sluice_kv>();

  KvStructs() { kv.format = &format; }
  void point_to_scales() {
    if (format.k.scale_kind != SLUICE_SCALE_NONE || format.v.scale_kind != SLUICE_SCALE_NONE)
      kv.scales = &scales;
  }
};

struct CallStructs : Pinned {
  KvStructs own, prefixes;
  sluice_keys keys[2] = {sized<sluice_keys>(), sized<sluice_keys>()};
  sluice_mask_args mask = sized<sluice_mask_args>();
  sluice_scores_args scores = sized<sluice_scores_args>();
  sluice_tensor lse = {};
  float scale = 0;
  sluice_attention_args args = sized<sluice_attention_args>();

  CallStructs() {
    keys[0].kv = &own.kv;
    keys[1].kv = &prefixes.kv;
    args.keys = keys;
    args.key_sets = 1;
    args.mask = &mask;
    args.scores = &scores;
  }
};

struct AppendStructs : Pinned {
  KvStructs cache;
  sluice_rotation rotation = sized<sluice_rotation>();
  sluice_norm k_norm = sized<sluice_norm>(), q_norm = sized<sluice_norm>();
  sluice_append_q q = sized<sluice_append_q>();
  sluice_append_args args = sized<sluice_append_args>();

  AppendStructs() { args.kv = &cache.kv; }
};

/// A copy or a gather.
template <typename Args> struct MoveStructs : Pinned {
  KvStructs source, target;
  Args args = sized<Args>();

  MoveStructs() {
    args.source = &source.kv;
    args.target = &target.kv;
  }
};

} // namespace sluice::conformance
