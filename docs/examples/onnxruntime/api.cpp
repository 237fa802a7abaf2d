//===- api.cpp - ONNX Runtime's C API, with exceptions in place of statuses -----------------------------===//

#include "api.h"

#include <functional>
#include <numeric>

namespace sluice_ort {

namespace {

/// A string that a function of the API writes to a buffer, after it has said how long it is.
template <class Get> std::string string_of(Get get) {
  size_t bytes = 0;
  check(get(nullptr, &bytes));
  std::string text(bytes, '\0');
  check(get(text.data(), &bytes));
  text.resize(bytes ? bytes - 1 : 0); // it counts the terminator
  return text;
}

/// The value of an attribute, if the node has it: the API knows no other way to ask.
template <class T, class Get> T attribute_or(T otherwise, Get get) {
  T value = otherwise;
  OrtStatus *const missing = get(&value);
  if (!missing) return value;
  api->ReleaseStatus(missing);
  return otherwise;
}

using TypeInfo = Owned<OrtTypeInfo>;

TypeInfo type_info(const OrtKernelInfo *info, size_t index) {
  OrtTypeInfo *type = nullptr;
  check(api->KernelInfo_GetInputTypeInfo(info, index, &type));
  return TypeInfo(type, api->ReleaseTypeInfo);
}

const OrtTensorTypeAndShapeInfo *tensor_info(const TypeInfo &type) {
  const OrtTensorTypeAndShapeInfo *tensor = nullptr;
  check(api->CastTypeInfoToTensorInfo(type.get(), &tensor));
  if (!tensor) throw std::runtime_error("an input is not a tensor");
  return tensor;
}

Tensor tensor_of(const OrtValue *value) {
  Tensor tensor;
  const int64_t *extents = nullptr;
  size_t rank = 0;
  check(api->GetTensorElementTypeAndShapeDataReference(value, &tensor.type, &extents, &rank));
  tensor.shape.assign(extents, extents + rank);
  size_t bytes = 0;
  check(api->GetTensorSizeInBytes(value, &bytes));
  const void *data = nullptr;
  check(api->GetTensorData(value, &data));
  tensor.data = bytes ? const_cast<void *>(data) : nullptr;
  return tensor;
}

} // namespace

std::string type_name(ElementType type) {
  switch (type) {
  case ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT:
    return "tensor(float)";
  case ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT16:
    return "tensor(float16)";
  case ONNX_TENSOR_ELEMENT_DATA_TYPE_BFLOAT16:
    return "tensor(bfloat16)";
  case ONNX_TENSOR_ELEMENT_DATA_TYPE_DOUBLE:
    return "tensor(double)";
  case ONNX_TENSOR_ELEMENT_DATA_TYPE_BOOL:
    return "tensor(bool)";
  case ONNX_TENSOR_ELEMENT_DATA_TYPE_INT8:
    return "tensor(int8)";
  case ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT8:
    return "tensor(uint8)";
  case ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32:
    return "tensor(int32)";
  case ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64:
    return "tensor(int64)";
  default:
    return "tensor of ONNX's element type " + std::to_string(type);
  }
}

std::string shape_text(const Shape &shape) {
  std::string text = "(";
  for (int64_t extent : shape)
    text += (text.size() > 1 ? ", " : "") + (extent < 0 ? "?" : std::to_string(extent));
  return text + ")";
}

int64_t elements_of(const Shape &shape) {
  return std::accumulate(shape.begin(), shape.end(), int64_t(1), std::multiplies<>());
}

std::string Node::description() const {
  const auto string = [&](auto get) {
    return string_of([&](char *out, size_t *bytes) { return get(info, out, bytes); });
  };
  return string(api->KernelInfo_GetOperatorType) + " '" + string(api->KernelInfo_GetNodeName) + "'";
}

int Node::since_version() const {
  int version = 0;
  check(api->KernelInfo_GetOperatorSinceVersion(info, &version));
  return version;
}

int64_t Node::integer(const char *attribute, int64_t otherwise) const {
  return attribute_or(
      otherwise, [&](int64_t *value) { return api->KernelInfoGetAttribute_int64(info, attribute, value); });
}

std::optional<float> Node::real(const char *attribute) const {
  return attribute_or(std::optional<float>(), [&](std::optional<float> *value) {
    return api->KernelInfoGetAttribute_float(info, attribute, &value->emplace());
  });
}

std::string Node::text(const char *attribute, const std::string &otherwise) const {
  size_t bytes = 0;
  if (OrtStatus *missing = api->KernelInfoGetAttribute_string(info, attribute, nullptr, &bytes)) {
    api->ReleaseStatus(missing);
    return otherwise;
  }
  return string_of([&](char *out, size_t *size) {
    return api->KernelInfoGetAttribute_string(info, attribute, out, size);
  });
}

bool Node::has_input(size_t index) const {
  size_t count = 0;
  check(api->KernelInfo_GetInputCount(info, &count));
  return index < count && !string_of([&](char *out, size_t *bytes) {
                             return api->KernelInfo_GetInputName(info, index, out, bytes);
                           }).empty();
}

bool Node::has_output(size_t index) const {
  size_t count = 0;
  check(api->KernelInfo_GetOutputCount(info, &count));
  return index < count && !string_of([&](char *out, size_t *bytes) {
                             return api->KernelInfo_GetOutputName(info, index, out, bytes);
                           }).empty();
}

ElementType Node::input_type(size_t index) const {
  const TypeInfo type = type_info(info, index);
  ElementType element = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
  check(api->GetTensorElementType(tensor_info(type), &element));
  return element;
}

Shape Node::input_shape(size_t index) const {
  const TypeInfo type = type_info(info, index);
  size_t rank = 0;
  check(api->GetDimensionsCount(tensor_info(type), &rank));
  Shape shape(rank);
  check(api->GetDimensions(tensor_info(type), shape.data(), rank));
  return shape;
}

Tensor Call::input(size_t index) const {
  size_t count = 0;
  check(api->KernelContext_GetInputCount(context, &count));
  const OrtValue *value = nullptr;
  if (index < count) check(api->KernelContext_GetInput(context, index, &value));
  return value ? tensor_of(value) : Tensor{};
}

Tensor Call::output(size_t index, const Shape &shape) const {
  size_t count = 0;
  check(api->KernelContext_GetOutputCount(context, &count));
  OrtValue *value = nullptr;
  if (index < count) check(api->KernelContext_GetOutput(context, index, shape.data(), shape.size(), &value));
  return value ? tensor_of(value) : Tensor{};
}

} // namespace sluice_ort
