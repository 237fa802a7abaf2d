//===- nested.h - damaged structs that point to one another ---------------------------------------------===//
//
// Each struct has a struct_size of its own, right or wrong, and words that may be anything. Pointers to other
// structs are right or NULL: no library can tell others.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "caller.h"

#include <sluice/merge.h>

#include <vector>

namespace sluice::fuzz {

template <typename Struct> Struct damaged(FuzzedDataProvider &bytes, const Struct *given) {
  Struct one = {};
  if (given != nullptr) one = *given;
  damage(bytes, one);
  return one;
}

/// The struct, or NULL where none was given, and sometimes where one was.
template <typename Struct>
const Struct *link(FuzzedDataProvider &bytes, Given<Struct> &to, const Struct *given) {
  const bool is_odd = bytes.ConsumeIntegralInRange(0, 31) == 0;
  return (given != nullptr) != is_odd ? to.get() : nullptr;
}

/// A struct without pointers to others.
template <typename Struct> class Leaf {
public:
  Leaf(FuzzedDataProvider &bytes, const Struct *given)
      : there(bytes, damaged(bytes, given)), pointer(link(bytes, there, given)) {}
  const Struct *get() const { return pointer; }

private:
  Given<Struct> there;
  const Struct *pointer;
};

class NestedKv {
public:
  NestedKv(FuzzedDataProvider &bytes, const sluice_kv *given)
      : format(bytes, given != nullptr ? given->format : nullptr),
        scales(bytes, given != nullptr ? given->scales : nullptr),
        there(bytes,
              [&] {
                sluice_kv kv = damaged(bytes, given);
                kv.format = format.get();
                kv.scales = scales.get();
                return kv;
              }()),
        pointer(link(bytes, there, given)) {}
  const sluice_kv *get() const { return pointer; }

private:
  Leaf<sluice_kv_format> format;
  Leaf<sluice_kv_scales> scales;
  Given<sluice_kv> there;
  const sluice_kv *pointer;
};

class NestedProblem {
public:
  NestedProblem(FuzzedDataProvider &bytes, const sluice_attention *given)
      : kv(bytes, given->kv), mask(bytes, given->mask), scores(bytes, given->scores), there(bytes, [&] {
          sluice_attention attention = damaged(bytes, given);
          attention.kv = kv.get();
          attention.mask = mask.get();
          attention.scores = scores.get();
          return attention;
        }()) {}
  const sluice_attention *get() { return there.get(); }

private:
  Leaf<sluice_kv_format> kv;
  Leaf<sluice_mask> mask;
  Leaf<sluice_scores> scores;
  Given<sluice_attention> there;
};

/// Two sets of keys one after the other, of one size, which may be wrong. Nothing is after the second.
class NestedKeys {
public:
  NestedKeys(FuzzedDataProvider &bytes, const sluice_keys *given, uint32_t sets)
      : own(bytes, given[0].kv), groups(bytes, sets > 1 ? given[1].kv : nullptr) {
    sluice_keys keys[2] = {damaged(bytes, given), damaged(bytes, sets > 1 ? given + 1 : nullptr)};
    keys[0].kv = own.get();
    keys[1].kv = groups.get();
    Given<sluice_keys> first(bytes, keys[0]);
    const uint32_t size = first.get()->struct_size;
    const size_t each = size > 65536 ? sizeof size : std::max<size_t>(size, sizeof size);
    memory.resize(2 * each);
    std::memcpy(memory.data(), first.get(), each);
    std::memcpy(memory.data() + each, &keys[1], std::min(each, sizeof keys[1]));
    if (bytes.ConsumeIntegralInRange(0, 15) != 0) std::memcpy(memory.data() + each, &size, sizeof size);
  }
  const sluice_keys *get() const { return reinterpret_cast<const sluice_keys *>(memory.data()); }

private:
  NestedKv own, groups;
  std::vector<std::byte> memory;
};

class NestedCall {
public:
  NestedCall(FuzzedDataProvider &bytes, const sluice_attention_args *given)
      : keys(bytes, given->keys, given->key_sets), mask(bytes, given->mask), scores(bytes, given->scores),
        there(bytes, [&] {
          sluice_attention_args args = damaged(bytes, given);
          args.keys = bytes.ConsumeIntegralInRange(0, 31) != 0 ? keys.get() : nullptr;
          if (args.key_sets > 2) args.key_sets = 2; // as many as there are
          args.mask = mask.get();
          args.scores = scores.get();
          const auto word = some_word(bytes);
          std::memcpy(&scale, &word, sizeof scale);
          args.scale = bytes.ConsumeBool() ? &scale : nullptr;
          if (given->lse != nullptr) lse = *given->lse;
          args.lse = given->lse != nullptr ? &lse : nullptr;
          return args;
        }()) {}
  const sluice_attention_args *get() { return there.get(); }

private:
  NestedKeys keys;
  Leaf<sluice_mask_args> mask;
  Leaf<sluice_scores_args> scores;
  float scale = 0;
  sluice_tensor lse = {};
  Given<sluice_attention_args> there;
};

class NestedAppend {
public:
  NestedAppend(FuzzedDataProvider &bytes, const sluice_append_args *given)
      : kv(bytes, given->kv), rotation(bytes, given->rotation), k_norm(bytes, given->k_norm),
        q_norm(bytes, given->q != nullptr ? given->q->norm : nullptr),
        q(bytes,
          [&] {
            sluice_append_q one = damaged(bytes, given->q);
            one.norm = q_norm.get();
            return one;
          }()),
        there(bytes, [&] {
          sluice_append_args args = damaged(bytes, given);
          args.kv = kv.get();
          args.rotation = rotation.get();
          args.k_norm = k_norm.get();
          args.q = link(bytes, q, given->q);
          return args;
        }()) {}
  const sluice_append_args *get() { return there.get(); }

private:
  NestedKv kv;
  Leaf<sluice_rotation> rotation;
  Leaf<sluice_norm> k_norm, q_norm;
  Given<sluice_append_q> q;
  Given<sluice_append_args> there;
};

/// A copy or a gather.
template <typename Args> class NestedMove {
public:
  NestedMove(FuzzedDataProvider &bytes, const Args *given)
      : source(bytes, given->source), target(bytes, given->target), there(bytes, [&] {
          Args args = damaged(bytes, given);
          args.source = source.get();
          args.target = target.get();
          return args;
        }()) {}
  const Args *get() { return there.get(); }

private:
  NestedKv source, target;
  Given<Args> there;
};

} // namespace sluice::fuzz
