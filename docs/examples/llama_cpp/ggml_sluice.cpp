//===- ggml_sluice.cpp - a backend of ggml that computes attention with Sluice -------------------------===//
//
// ggml knows a backend as four tables of functions: a registration, its devices, a device's backends (streams
// of work) and buffers. This one has a device that accelerates, as ggml's for BLAS is: its tensors are in the
// buffers of the CPU's backend, and ggml's scheduler hands it the nodes that it says it supports. What the
// library or the device refuses becomes a status here, with a line in ggml's log.
//
//===----------------------------------------------------------------------------------------------------===//

#include "runner.h"

#include <cstdlib>
#include <ggml-backend-impl.h>
#include <ggml-impl.h>
#include <memory>
#include <string_view>

namespace ggml_sluice {

namespace {

constexpr const char *name = "Sluice";
constexpr const char *device_variable = "GGML_SLUICE_DEVICE";

/// Lives as long as the process: ggml never unloads a backend.
struct Global {
  explicit Global(const std::string &device_name) : device(device_name), description(device.description()) {}
  Device device;
  std::string description;
};
std::unique_ptr<Global> global;

/// How many "nodes" Sluice has computed, "plans" it has made and "allocations" of device memory there were,
/// in this process. Programs get it from ggml_backend_reg_get_proc_address as "ggml_backend_sluice_count".
uint64_t count(const char *what) {
  const Counters &counters = global->device.counters;
  const std::string_view wanted = what;
  return wanted == "nodes"         ? counters.nodes.load()
         : wanted == "plans"       ? counters.plans.load()
         : wanted == "allocations" ? counters.allocations.load()
                                   : 0;
}

// ------------------------------------------------------------------------------------------------ backend

/// Views need no computation, and neither do results without elements, which ggml's own backends skip.
bool is_free(const ggml_tensor &node) {
  return ggml_is_empty(&node) || node.op == GGML_OP_NONE || node.op == GGML_OP_RESHAPE ||
         node.op == GGML_OP_VIEW || node.op == GGML_OP_PERMUTE || node.op == GGML_OP_TRANSPOSE;
}

ggml_status compute_graph(ggml_backend_t backend, ggml_cgraph *graph) {
  for (int i = 0; i < graph->n_nodes; ++i) {
    ggml_tensor &node = *graph->nodes[i];
    if (!(node.flags & GGML_TENSOR_FLAG_COMPUTE) || is_free(node)) continue;
    try {
      if (node.op != GGML_OP_FLASH_ATTN_EXT) throw std::runtime_error("only attention is supported");
      static_cast<Runner *>(backend->context)->compute(node);
    } catch (const std::exception &error) {
      GGML_LOG_ERROR("%s: %s '%s': %s\n", name, ggml_op_desc(&node), node.name, error.what());
      return GGML_STATUS_FAILED;
    }
  }
  return GGML_STATUS_SUCCESS;
}

constexpr ggml_backend_i backend_functions = {
    .get_name = [](ggml_backend_t) { return name; },
    .free =
        [](ggml_backend_t backend) {
          delete static_cast<Runner *>(backend->context);
          delete backend;
        },
    .set_tensor_async = nullptr,
    .get_tensor_async = nullptr,
    .set_tensor_2d_async = nullptr,
    .get_tensor_2d_async = nullptr,
    .cpy_tensor_async = nullptr,
    .synchronize = nullptr,
    .graph_plan_create = nullptr,
    .graph_plan_free = nullptr,
    .graph_plan_update = nullptr,
    .graph_plan_compute = nullptr,
    .graph_compute = compute_graph,
    .event_record = nullptr,
    .event_wait = nullptr,
    .graph_optimize = nullptr,
};

// ------------------------------------------------------------------------------------------------- device

const char *description(ggml_backend_dev_t) {
  return global->description.c_str();
}

/// The device's memory holds copies for the time of a node: none to offer.
void memory(ggml_backend_dev_t, size_t *free, size_t *total) {
  *free = *total = 0;
}

void properties(ggml_backend_dev_t device, ggml_backend_dev_props *props) {
  *props = {};
  props->name = name;
  props->description = description(device);
  props->type = GGML_BACKEND_DEVICE_TYPE_ACCEL;
}

ggml_backend_t make_backend(ggml_backend_dev_t device, const char *) {
  static ggml_guid guid = {0x5c, 0x1d, 0x0f, 0x6e, 0x93, 0x2a, 0x4b, 0x7c,
                           0x8e, 0x51, 0x70, 0xd4, 0xb6, 0x0a, 0x3f, 0xe2};
  return new ggml_backend{&guid, backend_functions, device, new Runner(global->device)};
}

bool supports_op(ggml_backend_dev_t, const ggml_tensor *node) {
  if (is_free(*node)) return true;
  if (node->op != GGML_OP_FLASH_ATTN_EXT) return false;
  const Attention attention(*node);
  std::string why = refusal(attention);
  if (why.empty())
    if (const auto support = global->device.context().support(problem_of(attention).linked()); !support)
      why = support.error().message();
  if (!why.empty()) GGML_LOG_DEBUG("%s: '%s' is left to other backends: %s\n", name, node->name, why.c_str());
  return why.empty();
}

constexpr ggml_backend_device_i device_functions = {
    .get_name = [](ggml_backend_dev_t) { return name; },
    .get_description = description,
    .get_memory = memory,
    .get_type = [](ggml_backend_dev_t) { return GGML_BACKEND_DEVICE_TYPE_ACCEL; },
    .get_props = properties,
    .init_backend = make_backend,
    .get_buffer_type = [](ggml_backend_dev_t) { return ggml_backend_cpu_buffer_type(); },
    .get_host_buffer_type = nullptr,
    .buffer_from_host_ptr = nullptr,
    .supports_op = supports_op,
    .supports_buft = [](ggml_backend_dev_t,
                        ggml_backend_buffer_type_t type) { return ggml_backend_buft_is_host(type); },
    .offload_op = nullptr,
    .event_new = nullptr,
    .event_free = nullptr,
    .event_synchronize = nullptr,
};

// ------------------------------------------------------------------------------------------- registration

ggml_backend_dev_t the_device(ggml_backend_reg_t registration, size_t) {
  static ggml_backend_device device = {device_functions, registration, nullptr};
  return &device;
}

void *function_named(ggml_backend_reg_t, const char *wanted) {
  return std::string_view(wanted) == "ggml_backend_sluice_count" ? reinterpret_cast<void *>(count) : nullptr;
}

constexpr ggml_backend_reg_i registration_functions = {
    .get_name = [](ggml_backend_reg_t) { return name; },
    .get_device_count = [](ggml_backend_reg_t) -> size_t { return 1; },
    .get_device = the_device,
    .get_proc_address = function_named,
};

} // namespace

} // namespace ggml_sluice

/// The entry point that ggml_backend_load looks for. NULL, which ggml reports, if the device does not exist.
extern "C" __attribute__((visibility("default"))) ggml_backend_reg_t ggml_backend_init() {
  using namespace ggml_sluice;
  const char *const device_name = std::getenv(device_variable);
  try {
    if (!global) global = std::make_unique<Global>(device_name ? device_name : "hip:0");
  } catch (const std::exception &error) {
    GGML_LOG_ERROR("%s: %s (%s is %s)\n", name, error.what(), device_variable,
                   device_name ? device_name : "not set, so hip:0 is used; 'emulated' needs no GPU");
    return nullptr;
  }
  static ggml_backend_reg registration = {GGML_BACKEND_API_VERSION, registration_functions, nullptr};
  return &registration;
}
