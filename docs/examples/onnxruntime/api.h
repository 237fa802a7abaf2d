//===- api.h - ONNX Runtime's C API, with exceptions in place of statuses -------------------------------===//
//
// A call of the API returns an OrtStatus, which check() turns into an exception; functions that ONNX Runtime
// calls are wrapped by guarded(), which turns exceptions into an OrtStatus.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <onnxruntime_c_api.h> // and what it includes, onnxruntime_ep_c_api.h
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace sluice_ort {

/// The tables of the process's ONNX Runtime. CreateEpFactories sets them, before anything else runs.
inline const OrtApi *api = nullptr;
inline const OrtEpApi *ep_api = nullptr;

/// Sluice does not do what a node, a call or an option asks for. The message names it, its value and the
/// rule.
class Refusal : public std::runtime_error {
  using runtime_error::runtime_error;
};

/// Throws what a call of the API said was wrong.
inline void check(OrtStatus *status) {
  if (!status) return;
  const std::string message = api->GetErrorMessage(status);
  api->ReleaseStatus(status);
  throw std::runtime_error(message);
}

/// An object of the API, with the function that releases it.
template <class T> using Owned = std::unique_ptr<T, void (*)(T *)>;

/// Runs what ONNX Runtime has called, on behalf of `whom`, which is read when the body has failed.
template <class Body> OrtStatus *guarded(const std::string &whom, Body body) noexcept {
  const auto failed = [&](OrtErrorCode code, const char *message) {
    return api->CreateStatus(code, ("Sluice: " + whom + ": " + message).c_str());
  };
  try {
    body();
    return nullptr;
  } catch (const Refusal &refusal) {
    return failed(ORT_INVALID_ARGUMENT, refusal.what());
  } catch (const std::exception &exception) {
    return failed(ORT_FAIL, exception.what());
  }
}

using ElementType = ONNXTensorElementDataType;

/// "tensor(float16)" and so on, as models call it.
std::string type_name(ElementType type);

using Shape = std::vector<int64_t>;
/// "(1, 16, ?)": a dimension that is not known is -1.
std::string shape_text(const Shape &shape);
int64_t elements_of(const Shape &shape);

/// A node as the session knows it when kernels are made: attributes, types, and shapes as far as they are
/// known.
class Node {
public:
  explicit Node(const OrtKernelInfo *info) : info(info) {}

  /// "Attention 'layer.3'": for messages.
  std::string description() const;
  /// The operator set that the node's operator was last changed in.
  int since_version() const;
  int64_t integer(const char *attribute, int64_t otherwise) const;
  std::optional<float> real(const char *attribute) const;
  std::string text(const char *attribute, const std::string &otherwise) const;
  /// Whether an optional input or output is there.
  bool has_input(size_t index) const;
  bool has_output(size_t index) const;
  ElementType input_type(size_t index) const;
  /// The shape, with -1 for dimensions that only calls know; empty if not even the rank is known.
  Shape input_shape(size_t index) const;

private:
  const OrtKernelInfo *info;
};

/// A tensor of a call, in the host's memory.
struct Tensor {
  ElementType type = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
  Shape shape;
  void *data = nullptr; // null without elements; inputs are not written

  bool is_given() const { return type != ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED; }
  explicit operator bool() const { return data != nullptr; }
  template <class T> T *as() const { return static_cast<T *>(data); }
};

/// The inputs and outputs of one call of a node.
class Call {
public:
  explicit Call(OrtKernelContext *context) : context(context) {}

  /// Not given if an optional input is missing.
  Tensor input(size_t index) const;
  /// Not given if the model does not ask for the output.
  Tensor output(size_t index, const Shape &shape) const;

private:
  OrtKernelContext *context;
};

} // namespace sluice_ort
