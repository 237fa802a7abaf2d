//===- call_values.h - a flat problem and call as the small structs of attention.h ----------------------===//
#pragma once

#include <sluice/attention.h>

namespace sluice::test {

/// The small structs that mean the same. They point to one another: they stay where they are made.
struct CallValues {
  CallValues(const sluice_problem &problem, const sluice_args &call);
  CallValues(const CallValues &) = delete;
  CallValues &operator=(const CallValues &) = delete;

  /// Whether they can: V in K has the scales of K, and sequences without rows or keys have no arrays that say
  /// so.
  static bool can_say(const sluice_problem &problem, const sluice_args &call);

  sluice_attention attention = {};
  sluice_attention_args args = {};

private:
  void set_format(const sluice_problem &problem);
  void set_features(const sluice_problem &problem);
  void set_keys(const sluice_problem &problem, const sluice_args &call);
  void set_prefixes(const sluice_problem &problem, const sluice_args &call);
  void set_feature_args(const sluice_problem &problem, const sluice_args &call);

  sluice_kv_format format = {};
  sluice_kv_scales scales = {};
  sluice_kv kv = {}, prefix_kv = {};
  sluice_keys keys[2] = {};
  sluice_mask mask = {};
  sluice_scores score_changes = {};
  sluice_mask_args mask_args = {};
  sluice_scores_args scores_args = {};
  sluice_tensor lse = {};
  float scale = 0;
};

} // namespace sluice::test
