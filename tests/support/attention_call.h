//===- attention_call.h - one attention problem and one call of it, with all structs that they point to -===//
#pragma once

#include "support/linked.h"

#include <sluice/attention.h>

namespace sluice::test {

/// Every struct of attention.h that one problem and its call can have. Everything is 0 but struct_size and
/// the pointers between them: a test changes members only. args.lse and args.scale are NULL until a test sets
/// them.
struct AttentionStructs {
  sluice_kv_format format = sized<sluice_kv_format>();
  sluice_kv_scales scales = sized<sluice_kv_scales>();
  sluice_kv kv = sized<sluice_kv>(), prefix_kv = sized<sluice_kv>();
  sluice_mask mask = sized<sluice_mask>();
  sluice_scores scores = sized<sluice_scores>();
  sluice_attention attention = sized<sluice_attention>();
  sluice_keys keys[2] = {sized<sluice_keys>(), sized<sluice_keys>()};
  sluice_tensor lse = {};
  float scale = 0;
  sluice_mask_args mask_args = sized<sluice_mask_args>();
  sluice_scores_args scores_args = sized<sluice_scores_args>();
  sluice_attention_args args = sized<sluice_attention_args>();

  AttentionStructs() {
    kv.format = prefix_kv.format = attention.kv = &format;
    kv.scales = prefix_kv.scales = &scales;
    attention.mask = &mask;
    attention.scores = &scores;
    keys[0].kv = &kv;
    keys[1].kv = &prefix_kv;
    args.keys = keys;
    args.key_sets = 1;
    args.mask = &mask_args;
    args.scores = &scores_args;
  }
  template <typename Visit> void each_pointer(Visit visit) {
    visit(kv.format);
    visit(kv.scales);
    visit(prefix_kv.format);
    visit(prefix_kv.scales);
    visit(attention.kv);
    visit(attention.mask);
    visit(attention.scores);
    visit(keys[0].kv);
    visit(keys[1].kv);
    visit(args.keys);
    visit(args.lse);
    visit(args.scale);
    visit(args.mask);
    visit(args.scores);
  }
};
using AttentionCall = Linked<AttentionStructs>;

} // namespace sluice::test
