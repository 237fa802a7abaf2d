//===- attention_mask.cpp - attn_mask of ONNX's Attention, as Sluice takes it ---------------------------===//

#include "attention_mask.h"

#include <algorithm>
#include <cstring>

namespace sluice_ort::onnx_attention {

Mask::Mask(const Tensor &given, const Shape &wanted, bool may_be_shorter)
    : is_bits(given.type == ONNX_TENSOR_ELEMENT_DATA_TYPE_BOOL), shape(given.shape), data(given.data) {
  bool fits = given.is_given() && !shape.empty() && shape.size() <= wanted.size();
  if (fits) shape.insert(shape.begin(), wanted.size() - shape.size(), 1);
  for (size_t i = 0; fits && i < 3; ++i)
    fits = shape[i] == 1 || shape[i] == wanted[i];
  const int64_t keys = wanted[3];
  fits = fits && (shape[3] == keys || (may_be_shorter && shape[3] < keys));
  require(fits, "attn_mask has the shape " + shape_text(given.shape) + "; it must be " + shape_text(wanted) +
                    ", with all but the last dimension repeated where it is 1" +
                    (may_be_shorter ? " and fewer keys allowed" : ""));
  if (is_bits)
    pack_bits(given, keys);
  else if (shape[3] < keys)
    pad_bias(given, keys);
}

int64_t Mask::rows_of_keys() const {
  return shape[0] * shape[1] * shape[2];
}

void Mask::pack_bits(const Tensor &given, int64_t keys) {
  const int64_t row_bytes = (keys + 7) / 8, given_keys = shape[3], rows = rows_of_keys();
  bytes.resize(rows * row_bytes);
  const auto *from = given.as<const uint8_t>();
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t key = 0; key < given_keys; ++key)
      if (from[row * given_keys + key]) bytes[row * row_bytes + key / 8] |= uint8_t(1 << key % 8);
  shape[3] = row_bytes;
  data = bytes.data();
}

void Mask::pad_bias(const Tensor &given, int64_t keys) {
  const uint32_t type = bias_type(given.type, "attn_mask");
  const size_t size = sluice::element_bytes(type);
  const uint32_t hidden = type == SLUICE_F32 ? 0xff800000 : type == SLUICE_F16 ? 0xfc00 : 0xff80; // -infinity
  const int64_t given_keys = shape[3], rows = rows_of_keys();
  bytes.resize(rows * keys * size);
  for (int64_t row = 0; row < rows; ++row) {
    uint8_t *const to = &bytes[row * keys * size];
    std::copy_n(given.as<const uint8_t>() + row * given_keys * size, given_keys * size, to);
    for (int64_t key = given_keys; key < keys; ++key)
      std::memcpy(to + key * size, &hidden, size); // its low bytes come first
  }
  shape[3] = keys;
  data = bytes.data();
}

void Mask::set(HostCall &call) const {
  const sluice_tensor tensor = repeated(const_cast<void *>(data), shape);
  if (is_bits) {
    call.mask.bits = tensor;
    call.mask_bytes = elements_of(shape);
  } else {
    call.scores.bias = tensor;
    call.bias_bytes = elements_of(shape) * sluice::element_bytes(call.problem.scores.bias_type);
  }
}

} // namespace sluice_ort::onnx_attention
