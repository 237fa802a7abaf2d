//===- npy.h - reading and writing .npy files -----------------------------------------------------------===//
//
// The array format of NumPy, as far as the command line needs it: C order, little endian, numbers and
// booleans. Everything else is refused with an NpyError that names the file, its contents and the supported
// formats.
//
//===----------------------------------------------------------------------------------------------------===//
#pragma once

#include "tools/shared/output_file.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::tools {

class NpyError : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

/// The supported element types; bf16, which the format lacks, is stored as u16.
enum class NpyType : uint8_t { boolean, i8, u8, i16, u16, i32, u32, i64, u64, f16, f32, f64 };

size_t npy_type_bytes(NpyType type);
/// "f16 ('<f2')", for messages.
std::string npy_type_name(NpyType type);
/// "f16"
std::string_view npy_type_keyword(NpyType type);

struct NpyArray {
  NpyType type = NpyType::f32;
  std::vector<int64_t> shape;
  std::vector<std::byte> bytes;

  NpyArray() = default;
  /// Zero-filled.
  NpyArray(NpyType type, std::vector<int64_t> shape);

  size_t element_count() const { return bytes.size() / npy_type_bytes(type); }
  template <typename T> std::span<T> elements() {
    return {reinterpret_cast<T *>(bytes.data()), bytes.size() / sizeof(T)};
  }
  template <typename T> std::span<const T> elements() const {
    return {reinterpret_cast<const T *>(bytes.data()), bytes.size() / sizeof(T)};
  }
};

/// "[1, 256, 4, 128]"
std::string shape_text(std::span<const int64_t> shape);

NpyArray read_npy(const std::string &path);
/// Reads and checks: `argument` (such as "--q") names the file's role in the message about a wrong type or
/// shape.
NpyArray read_npy(const std::string &path, const std::string &argument, std::span<const NpyType> types,
                  size_t rank);
void expect_shape(const NpyArray &array, const std::string &argument, std::span<const int64_t> shape);

/// The bytes before the elements in a file. Throws NpyError if the shape has too many dimensions for it.
std::string npy_header(const NpyArray &array);
/// Writes header and elements; the caller publishes.
void write_npy(OutputFile &file, const NpyArray &array);

} // namespace sluice::tools
