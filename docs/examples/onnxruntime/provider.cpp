//===- provider.cpp - the execution provider that ONNX Runtime loads ------------------------------------===//
//
// ONNX Runtime asks the provider which nodes it takes, and then makes its kernels for them. The provider
// takes every node of its two operators, and what Sluice cannot compute is refused when the session is made:
// nothing goes to another provider unnoticed.
//
//===----------------------------------------------------------------------------------------------------===//
#include "kernel.h"

#include <string_view>

namespace sluice_ort {

namespace {

constexpr const char *provider_name = "SluiceExecutionProvider";
// The session's options have those of a provider with this in front of their names.
constexpr std::string_view option_prefix = "ep.sluiceexecutionprovider.";

struct Operator {
  const char *domain, *name;
  int first_version, last_version;
  std::unique_ptr<Kernel> (*make)(const Node &, Device &);
};
constexpr Operator operators[] = {
    {"com.microsoft", "GroupQueryAttention", 1, 1, make_group_query_attention},
    {"", "Attention", 23, 25, make_attention},
};

Options options_of(const OrtSessionOptions *session) {
  OrtKeyValuePairs *pairs = nullptr;
  check(api->GetSessionOptionsConfigEntries(session, &pairs));
  const Owned<OrtKeyValuePairs> owned(pairs, api->ReleaseKeyValuePairs);
  const char *const *keys = nullptr, *const *values = nullptr;
  size_t count = 0;
  api->GetKeyValuePairs(pairs, &keys, &values, &count);
  Options options;
  for (size_t i = 0; i < count; ++i) {
    std::string_view key = keys[i];
    const std::string value = values[i];
    if (!key.starts_with(option_prefix)) continue;
    key.remove_prefix(option_prefix.size());
    if (key == "device")
      options.device = value;
    else if (key == "trace")
      options.trace = value;
    else if (key == "float32" && (value == "refuse" || value == "leave"))
      options.leave_float32 = value == "leave";
    else if (key == "float32")
      throw Refusal("the option float32 is '" + value + "'; it must be 'refuse' or 'leave'");
    else
      throw Refusal("the option '" + std::string(key) +
                    "' is unknown; the options are device, float32 and trace");
  }
  return options;
}

/// Of one session.
class Provider : public OrtEp {
public:
  explicit Provider(const Options &options);
  Provider(const Provider &) = delete;
  Provider &operator=(const Provider &) = delete;

private:
  struct Entry { // what ONNX Runtime hands back to make a kernel
    const Operator *kind;
    Provider *provider;
  };

  void take_nodes(const OrtGraph *graph, OrtEpGraphSupportInfo *taken) const;
  void add_kernels();
  static OrtStatus *make_kernel(void *entry, const OrtKernelInfo *info, OrtKernelImpl **out) noexcept;

  Options options;
  Device device;
  std::vector<Entry> entries;
  Owned<OrtKernelRegistry> registry;
};

/// A kernel with the name of its node, for messages.
struct NamedKernel : OrtKernelImpl {
  std::string node;
  std::unique_ptr<Kernel> kernel;
};

Provider::Provider(const Options &given)
    : OrtEp{}, options(given), device(given), registry(nullptr, ep_api->ReleaseKernelRegistry) {
  ort_version_supported = ORT_API_VERSION;
  GetName = [](const OrtEp *) noexcept { return provider_name; };
  GetCapability = [](OrtEp *self, const OrtGraph *graph, OrtEpGraphSupportInfo *taken) noexcept {
    return guarded(provider_name, [&] { static_cast<Provider *>(self)->take_nodes(graph, taken); });
  };
  GetKernelRegistry = [](OrtEp *self, const OrtKernelRegistry **out) noexcept -> OrtStatus * {
    *out = static_cast<Provider *>(self)->registry.get();
    return nullptr;
  };
  add_kernels();
}

void Provider::add_kernels() {
  OrtKernelRegistry *made = nullptr;
  check(ep_api->CreateKernelRegistry(&made));
  registry.reset(made);
  for (const Operator &kind : operators)
    entries.push_back({&kind, this});
  for (Entry &entry : entries) { // whose places are final now
    OrtKernelDefBuilder *builder = nullptr;
    check(ep_api->CreateKernelDefBuilder(&builder));
    const Owned<OrtKernelDefBuilder> owned_builder(builder, ep_api->ReleaseKernelDefBuilder);
    check(ep_api->KernelDefBuilder_SetOperatorType(builder, entry.kind->name));
    check(ep_api->KernelDefBuilder_SetDomain(builder, entry.kind->domain));
    check(ep_api->KernelDefBuilder_SetSinceVersion(builder, entry.kind->first_version,
                                                   entry.kind->last_version));
    check(ep_api->KernelDefBuilder_SetExecutionProvider(builder, provider_name));
    // Without constraints on types: kernels refuse those they do not compute.
    OrtKernelDef *definition = nullptr;
    check(ep_api->KernelDefBuilder_Build(builder, &definition));
    const Owned<OrtKernelDef> owned_definition(definition, ep_api->ReleaseKernelDef);
    check(ep_api->KernelRegistry_AddKernel(registry.get(), definition, make_kernel, &entry));
  }
}

bool is_float32(const OrtNode *node) {
  size_t count = 0;
  check(api->Node_GetNumInputs(node, &count));
  std::vector<const OrtValueInfo *> inputs(count);
  check(api->Node_GetInputs(node, inputs.data(), count));
  const OrtTypeInfo *type = nullptr;
  check(api->GetValueInfoTypeInfo(inputs.at(0), &type));
  const OrtTensorTypeAndShapeInfo *tensor = nullptr;
  check(api->CastTypeInfoToTensorInfo(type, &tensor));
  ElementType element = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
  check(api->GetTensorElementType(tensor, &element));
  return element == ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT;
}

void Provider::take_nodes(const OrtGraph *graph, OrtEpGraphSupportInfo *taken) const {
  size_t count = 0;
  check(api->Graph_GetNumNodes(graph, &count));
  std::vector<const OrtNode *> nodes(count);
  check(api->Graph_GetNodes(graph, nodes.data(), count));
  for (const OrtNode *node : nodes) {
    const OrtKernelDef *definition = nullptr;
    check(ep_api->EpGraphSupportInfo_LookUpKernel(taken, node, &definition));
    if (!definition || (options.leave_float32 && is_float32(node))) continue;
    check(ep_api->EpGraphSupportInfo_AddSingleNode(taken, node));
  }
}

OrtStatus *Provider::make_kernel(void *entry, const OrtKernelInfo *info, OrtKernelImpl **out) noexcept {
  const auto &[kind, provider] = *static_cast<Entry *>(entry);
  std::string name = kind->name; // until the node's own is known
  return guarded(name, [&] {
    name = Node(info).description();
    auto made = std::make_unique<NamedKernel>();
    made->ort_version_supported = ORT_API_VERSION;
    made->flags = 0;
    made->node = name;
    made->kernel = kind->make(Node(info), provider->device);
    made->Compute = [](OrtKernelImpl *self, OrtKernelContext *context) noexcept {
      const auto &named = *static_cast<NamedKernel *>(self);
      return guarded(named.node, [&] { named.kernel->compute(Call(context)); });
    };
    made->Release = [](OrtKernelImpl *self) noexcept { delete static_cast<NamedKernel *>(self); };
    *out = made.release();
  });
}

/// Makes providers; one per process.
struct Factory : OrtEpFactory {
  Factory() : OrtEpFactory{} {
    ort_version_supported = ORT_API_VERSION;
    GetName = [](const OrtEpFactory *) noexcept { return provider_name; };
    GetVendor = [](const OrtEpFactory *) noexcept { return "Sluice"; };
    GetVendorId = [](const OrtEpFactory *) noexcept { return uint32_t(0); };
    GetVersion = [](const OrtEpFactory *) noexcept { return sluice_version(); };
    GetSupportedDevices = supported_devices;
    // Without memory of its own: what ONNX Runtime has for the CPU serves.
    CreateDataTransfer = [](OrtEpFactory *, OrtDataTransferImpl **out) noexcept -> OrtStatus * {
      *out = nullptr;
      return nullptr;
    };
    IsStreamAware = [](const OrtEpFactory *) noexcept { return false; };
    CreateEp = create;
    ReleaseEp = [](OrtEpFactory *, OrtEp *provider) noexcept { delete static_cast<Provider *>(provider); };
  }

  /// Tensors are in the host's memory, so to ONNX Runtime the provider is one of the CPU. Which device Sluice
  /// runs on is an option.
  static OrtStatus *supported_devices(OrtEpFactory *self, const OrtHardwareDevice *const *devices,
                                      size_t count, OrtEpDevice **out, size_t capacity,
                                      size_t *found) noexcept {
    return guarded(provider_name, [&] {
      *found = 0;
      for (size_t i = 0; i < count && *found < capacity; ++i)
        if (api->HardwareDevice_Type(devices[i]) == OrtHardwareDeviceType_CPU)
          check(ep_api->CreateEpDevice(self, devices[i], nullptr, nullptr, &out[(*found)++]));
    });
  }

  static OrtStatus *create(OrtEpFactory *, const OrtHardwareDevice *const *, const OrtKeyValuePairs *const *,
                           size_t, const OrtSessionOptions *session, const OrtLogger *,
                           OrtEp **out) noexcept {
    return guarded(provider_name, [&] { *out = new Provider(options_of(session)); });
  }
};

} // namespace

} // namespace sluice_ort

// The two names that ONNX Runtime looks for.
extern "C" __attribute__((visibility("default"))) OrtStatus *
CreateEpFactories(const char *, const OrtApiBase *base, const OrtLogger *, OrtEpFactory **factories,
                  size_t capacity, size_t *count) noexcept {
  using namespace sluice_ort;
  api = base->GetApi(ORT_API_VERSION);
  if (!api) { // older than the headers: the first version of the table has all that is needed to say so
    return base->GetApi(1)->CreateStatus(ORT_FAIL,
                                         "Sluice: this ONNX Runtime is too old; it must be 1.24 or later");
  }
  ep_api = api->GetEpApi();
  return guarded(provider_name, [&] {
    if (capacity < 1) throw Refusal("the array has no room for a factory");
    factories[0] = new Factory;
    *count = 1;
  });
}

extern "C" __attribute__((visibility("default"))) OrtStatus *
ReleaseEpFactory(OrtEpFactory *factory) noexcept {
  delete static_cast<sluice_ort::Factory *>(factory);
  return nullptr;
}
