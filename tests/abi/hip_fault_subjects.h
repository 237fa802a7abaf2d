//===- hip_fault_subjects.h - calls of which each HIP call fails once -----------------------------------===//
#pragma once

#include "emulated_calls.h"
#include "support/faulty_hip.h"

#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::test {

constexpr int context_device = 1; // not the thread's device, so that it must be made current

inline int complaints = 0;
inline std::string situation;

inline void expect(bool condition, const std::string &what) {
  if (condition) return;
  ++complaints;
  std::fprintf(stderr, "%s: %s\n", situation.c_str(), what.c_str());
}

/// Entry points that the runtime does not have.
inline std::set<std::string, std::less<>> missing_entries;
inline void *resolve_present(const char *name, void *) {
  return missing_entries.contains(std::string_view(name)) ? nullptr : FaultyHip::resolve(name, nullptr);
}

inline sluice_context *make_context() {
  sluice_context_desc desc;
  sluice_context_desc_init(&desc, sizeof desc);
  desc.kind = SLUICE_DEVICE_HIP;
  desc.device_ordinal = context_device;
  desc.hip_resolver = FaultyHip::resolve;
  sluice_context *context = nullptr;
  require_ok(sluice_context_create(&desc, &context, nullptr), "sluice_context_create");
  return context;
}

/// The subject of a function, created anew for each fault. `act` is the call, and may be repeated; `wait`
/// lets the work that it has enqueued run.
class Subject {
public:
  Subject() = default;
  Subject(const Subject &) = delete;
  Subject &operator=(const Subject &) = delete;
  virtual ~Subject() { set_device(0); }
  virtual sluice_status act(sluice_error *error) = 0;
  /// The result of all that was enqueued, as bytes; empty without a result.
  virtual std::vector<unsigned char> result() { return {}; }
};

struct ContextDeleter {
  void operator()(sluice_context *context) const {
    set_device(0);
    sluice_context_destroy(context);
  }
};
struct PlanDeleter {
  void operator()(sluice_plan *plan) const {
    set_device(0);
    sluice_plan_destroy(plan);
  }
};
using ContextHandle = std::unique_ptr<sluice_context, ContextDeleter>;
using PlanHandle = std::unique_ptr<sluice_plan, PlanDeleter>;

struct CreateContext : Subject {
  ContextHandle context;
  sluice_status act(sluice_error *error) override {
    context.reset();
    sluice_context_desc desc;
    sluice_context_desc_init(&desc, sizeof desc);
    desc.kind = SLUICE_DEVICE_HIP;
    desc.device_ordinal = context_device;
    desc.hip_resolver = resolve_present;
    auto *made = reinterpret_cast<sluice_context *>(1);
    const sluice_status status = sluice_context_create(&desc, &made, error);
    expect((made != nullptr) == (status == SLUICE_OK), "out is not as the status says");
    context.reset(made);
    return status;
  }
};

/// Creates a plan with up to three kernels.
struct CreatePlan : Subject {
  ContextHandle context{make_context()};
  PlanHandle plan;
  sluice_status act(sluice_error *error) override {
    plan.reset();
    const AttentionCall call = call_values(CallKind::split);
    auto *made = reinterpret_cast<sluice_plan *>(1);
    const sluice_status status = sluice_attention_plan(context.get(), &call.attention, &made, error);
    expect((made != nullptr) == (status == SLUICE_OK), "out is not as the status says");
    plan.reset(made);
    return status;
  }
};

struct Preload : Subject {
  ContextHandle context{make_context()};
  sluice_status act(sluice_error *error) override {
    const AttentionCall call = call_values(CallKind::split);
    return sluice_attention_preload(context.get(), &call.attention, error);
  }
};

/// With a dependency of each kind and a signal.
struct Enqueues : Subject {
  ContextHandle context{make_context()};
  std::unique_ptr<DeviceStream> stream, other;
  std::unique_ptr<DeviceEvent> recorded, free_event, signal;
  sluice_dependency dependencies[2] = {};

  void make_streams() {
    set_device(context_device);
    stream = std::make_unique<DeviceStream>();
    other = std::make_unique<DeviceStream>();
    recorded = std::make_unique<DeviceEvent>();
    free_event = std::make_unique<DeviceEvent>();
    signal = std::make_unique<DeviceEvent>();
    hip_call("hipEventRecord", recorded->get(), other->get());
    dependencies[0] = {SLUICE_DEPENDS_ON_EVENT, 0, recorded->get(), nullptr};
    dependencies[1] = {SLUICE_DEPENDS_ON_STREAM, 0, free_event->get(), other->get()};
  }
  void add_order(sluice_launch &launch) const {
    launch.dependencies = dependencies;
    launch.dependency_count = 2;
    launch.signal_event = signal->get();
  }
  sluice_launch ordered_launch() const {
    sluice_launch launch;
    sluice_launch_init(&launch, sizeof launch);
    launch.stream = stream->get();
    add_order(launch);
    return launch;
  }
};

template <CallKind kind> struct Run : Enqueues {
  PlanHandle plan;
  std::unique_ptr<DeviceCall> call;
  Run() {
    const AttentionCall values = call_values(kind);
    sluice_plan *made = nullptr;
    require_ok(sluice_attention_plan(context.get(), &values.attention, &made, nullptr),
               "sluice_attention_plan");
    plan.reset(made);
    sluice_plan_info info;
    sluice_plan_info_init(&info, sizeof info);
    require_ok(sluice_plan_describe(made, &info, nullptr), "sluice_plan_describe");
    require_ok((info.workspace_bytes != 0) != (kind == CallKind::split), "splitting as this test means it");
    make_streams();
    call = std::make_unique<DeviceCall>(kind, 7, info.workspace_bytes);
  }
  sluice_status act(sluice_error *error) override {
    call->clear();
    sluice_launch launch = call->launch(stream->get());
    add_order(launch);
    return sluice_attention_run(plan.get(), &call->values.args, &launch, error);
  }
  std::vector<unsigned char> result() override {
    stream->wait();
    return call->result();
  }
};

constexpr int cache_op_rows = 4, cache_op_row = call_heads * call_dim;

/// The first append, copy, gather or merge of a context, which loads its kernel.
struct Append : Enqueues {
  std::unique_ptr<DeviceBytes> rows, slots, cache;
  Append() {
    make_streams();
    rows = std::make_unique<DeviceBytes>(halves(cache_op_rows * cache_op_row, 3));
    slots = std::make_unique<DeviceBytes>(std::vector<int64_t>{5, 0, 2, 7});
    cache = std::make_unique<DeviceBytes>(halves(call_page * cache_op_row, 4));
  }
  sluice_status act(sluice_error *error) override {
    const DeviceAppend append(cache_op_rows, *rows, *cache, *slots);
    const sluice_launch launch = ordered_launch();
    return sluice_cache_append(context.get(), &append.args, &launch, error);
  }
  std::vector<unsigned char> result() override {
    stream->wait();
    return cache->read();
  }
};

/// Pages of a cache whose V is in K.
struct Cache {
  DeviceBytes bytes;
  sluice_kv_format format;
  sluice_kv kv;
  Cache(size_t pages, uint32_t seed)
      : bytes(halves(pages * call_page * cache_op_row, seed)),
        format(sluice_kv_pages(SLUICE_F16, call_heads, call_dim, call_page)),
        kv(sluice_make_kv(&format, sluice_pages_nhd(bytes.get(), call_page, call_heads, call_dim), {})) {
    format.flags = SLUICE_KV_V_IN_K;
    format.v = {};
  }
  Cache(const Cache &) = delete;
  Cache &operator=(const Cache &) = delete;
};

struct Copy : Enqueues {
  std::unique_ptr<Cache> source, target;
  std::unique_ptr<DeviceBytes> pairs;
  Copy() {
    make_streams();
    source = std::make_unique<Cache>(2, 3);
    target = std::make_unique<Cache>(2, 4);
    pairs = std::make_unique<DeviceBytes>(std::vector<int32_t>{1, 0});
  }
  sluice_status act(sluice_error *error) override {
    const sluice_copy_args args = {
        .struct_size = sizeof args,
        .pairs_64 = 0,
        .source = &source->kv,
        .target = &target->kv,
        .pairs = pairs->get(),
        .pair_count = 1,
    };
    const sluice_launch launch = ordered_launch();
    return sluice_cache_copy(context.get(), &args, &launch, error);
  }
  std::vector<unsigned char> result() override {
    stream->wait();
    return target->bytes.read();
  }
};

struct Gather : Enqueues {
  static constexpr int keys = call_page + 3;
  std::unique_ptr<Cache> source;
  std::unique_ptr<DeviceBytes> rows, lengths, starts, table;
  Gather() {
    make_streams();
    source = std::make_unique<Cache>(2, 3);
    rows = std::make_unique<DeviceBytes>(halves(keys * cache_op_row, 4));
    lengths = std::make_unique<DeviceBytes>(std::vector<int32_t>{keys});
    starts = std::make_unique<DeviceBytes>(std::vector<int32_t>{0, keys});
    table = std::make_unique<DeviceBytes>(std::vector<int32_t>{1, 0});
  }
  sluice_status act(sluice_error *error) override {
    sluice_kv_format format = sluice_kv_tensors(SLUICE_F16, call_heads, call_dim);
    format.flags = SLUICE_KV_V_IN_K;
    format.v = {};
    const sluice_kv target = sluice_make_kv(&format, sluice_packed(rows->get(), call_heads, call_dim), {});
    sluice_gather_args args = {};
    args.struct_size = sizeof args;
    args.batch = 1;
    args.source = &source->kv;
    args.target = &target;
    args.pages.table = table->get();
    args.lengths = static_cast<const int32_t *>(lengths->get());
    args.starts = static_cast<const int32_t *>(starts->get());
    args.tokens = keys;
    const sluice_launch launch = ordered_launch();
    return sluice_cache_gather(context.get(), &args, &launch, error);
  }
  std::vector<unsigned char> result() override {
    stream->wait();
    return rows->read();
  }
};

struct Merge : Enqueues {
  std::unique_ptr<DeviceBytes> partial, lse, o;
  Merge() {
    make_streams();
    partial = std::make_unique<DeviceBytes>(halves(2 * cache_op_rows * cache_op_row, 5));
    lse = std::make_unique<DeviceBytes>(std::vector<float>(size_t{2} * cache_op_rows * call_heads, 0.5f));
    o = std::make_unique<DeviceBytes>(halves(cache_op_rows * cache_op_row, 6));
  }
  sluice_status act(sluice_error *error) override {
    sluice_merge_args args = {};
    args.struct_size = sizeof args;
    args.tokens = cache_op_rows;
    args.heads = call_heads;
    args.head_dim = call_dim;
    args.lse_base = SLUICE_LSE_LN;
    args.parts.type = args.o_format.type = SLUICE_F16;
    args.parts.count = 2;
    args.parts.o = sluice_bshd(partial->get(), cache_op_rows, call_heads, call_dim);
    args.parts.lse = {lse->get(), {cache_op_rows * call_heads, call_heads, 1, 0}};
    args.o = sluice_packed(o->get(), call_heads, call_dim);
    const sluice_launch launch = ordered_launch();
    return sluice_attention_merge(context.get(), &args, &launch, error);
  }
  std::vector<unsigned char> result() override {
    stream->wait();
    return o->read();
  }
};

/// The last owner of a context with three modules.
struct Destroy : Subject {
  ContextHandle context{make_context()};
  PlanHandle plan;
  Destroy() {
    const AttentionCall call = call_values(CallKind::split);
    sluice_plan *made = nullptr;
    require_ok(sluice_attention_plan(context.get(), &call.attention, &made, nullptr),
               "sluice_attention_plan");
    plan.reset(made);
    context.reset();
  }
  sluice_status act(sluice_error *) override {
    plan.reset();
    return SLUICE_OK;
  }
};

} // namespace sluice::test
