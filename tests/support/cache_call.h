//===- cache_call.h - one append, copy or gather, with all structs that it points to --------------------===//
#pragma once

#include "support/linked.h"

#include <sluice/cache.h>

namespace sluice::test {

/// A sluice_kv with what it points to. Everything is 0 but struct_size and the pointers between them.
struct KvStructs {
  sluice_kv_format format = sized<sluice_kv_format>();
  sluice_kv_scales scales = sized<sluice_kv_scales>();
  sluice_kv kv = sized<sluice_kv>();

  KvStructs() {
    kv.format = &format;
    kv.scales = &scales;
  }
  template <typename Visit> void each_pointer(Visit visit) {
    visit(kv.format);
    visit(kv.scales);
  }
};
using Kv = Linked<KvStructs>;

/// What an append may have beyond storing is there, but args does not point to it.
struct AppendStructs {
  Kv cache;
  sluice_rotation rotation = sized<sluice_rotation>();
  sluice_norm k_norm = sized<sluice_norm>(), q_norm = sized<sluice_norm>();
  sluice_append_q q = sized<sluice_append_q>();
  sluice_append_args args = sized<sluice_append_args>();

  AppendStructs() { args.kv = &cache.kv; }
  template <typename Visit> void each_pointer(Visit visit) {
    visit(args.kv);
    visit(args.rotation);
    visit(args.k_norm);
    visit(args.q);
    visit(q.norm);
  }
};
using AppendCall = Linked<AppendStructs>;

template <typename Args> struct TwoKvStructs {
  Kv source, target;
  Args args = sized<Args>();

  TwoKvStructs() {
    args.source = &source.kv;
    args.target = &target.kv;
  }
  template <typename Visit> void each_pointer(Visit visit) {
    visit(args.source);
    visit(args.target);
  }
};
using CopyCall = Linked<TwoKvStructs<sluice_copy_args>>;
using GatherCall = Linked<TwoKvStructs<sluice_gather_args>>;

} // namespace sluice::test
