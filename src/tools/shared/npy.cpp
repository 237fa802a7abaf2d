//===- npy.cpp - reading and writing .npy files ---------------------------------------------------------===//
//
// A file is the magic "\x93NUMPY", a version, the length of a header, the header, and the elements. The
// header is a Python dictionary literal with three keys in any order; HeaderParser reads exactly that much of
// Python.
//
//===----------------------------------------------------------------------------------------------------===//
#include "tools/shared/npy.h"

#include <array>
#include <bit>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fmt/format.h>
#include <limits>
#include <memory>
#include <optional>
#include <string_view>

namespace sluice::tools {

static_assert(std::endian::native == std::endian::little);

namespace {

struct TypeRow {
  NpyType type;
  std::string_view descr;
  std::string_view name;
  size_t bytes;
};
constexpr std::array<TypeRow, 12> type_rows = {{{NpyType::boolean, "|b1", "bool", 1},
                                                {NpyType::i8, "|i1", "i8", 1},
                                                {NpyType::u8, "|u1", "u8", 1},
                                                {NpyType::i16, "<i2", "i16", 2},
                                                {NpyType::u16, "<u2", "u16", 2},
                                                {NpyType::i32, "<i4", "i32", 4},
                                                {NpyType::u32, "<u4", "u32", 4},
                                                {NpyType::i64, "<i8", "i64", 8},
                                                {NpyType::u64, "<u8", "u64", 8},
                                                {NpyType::f16, "<f2", "f16", 2},
                                                {NpyType::f32, "<f4", "f32", 4},
                                                {NpyType::f64, "<f8", "f64", 8}}};

const TypeRow &row_of(NpyType type) {
  return type_rows[size_t(type)];
}

std::string all_types() {
  std::string text;
  for (const TypeRow &row : type_rows)
    text += fmt::format("{}'{}'", text.empty() ? "" : ", ", row.descr);
  return text;
}

constexpr std::string_view magic = "\x93NUMPY";
// Real headers have about a hundred bytes; the limit keeps a damaged length from becoming an allocation.
constexpr size_t max_header_bytes = 1 << 16;

struct Header {
  std::string descr;
  bool fortran_order = false;
  std::vector<int64_t> shape;
};

class HeaderParser {
public:
  HeaderParser(const std::string &path, std::string_view text) : path(path), text(text) {}

  Header parse() {
    Header header;
    bool has_descr = false, has_order = false, has_shape = false;
    expect('{');
    while (!accept('}')) {
      const std::string key = string();
      expect(':');
      if (key == "descr") {
        header.descr = string();
        has_descr = true;
      } else if (key == "fortran_order") {
        header.fortran_order = boolean();
        has_order = true;
      } else if (key == "shape") {
        header.shape = tuple();
        has_shape = true;
      } else {
        fail(fmt::format("has the unknown key '{}'", key));
      }
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    skip_space();
    if (at != text.size())
      fail(fmt::format("is malformed: something follows the closing '}}' at byte {}", at));
    if (!has_descr) fail("has no 'descr'");
    if (!has_order) fail("has no 'fortran_order'");
    if (!has_shape) fail("has no 'shape'");
    return header;
  }

private:
  [[noreturn]] void fail(const std::string &what) const {
    throw NpyError(fmt::format("{}: the .npy header {}", path, what));
  }
  void skip_space() {
    while (at < text.size() && (text[at] == ' ' || text[at] == '\n' || text[at] == '\t'))
      ++at;
  }
  bool accept(char c) {
    skip_space();
    if (at < text.size() && text[at] == c) return ++at, true;
    return false;
  }
  void expect(char c) {
    if (!accept(c)) fail(fmt::format("is malformed: '{}' expected at byte {}", c, at));
  }
  std::string string() {
    skip_space();
    const char quote = at < text.size() ? text[at] : '\0';
    if (quote != '\'' && quote != '"') fail(fmt::format("is malformed: a string expected at byte {}", at));
    const size_t end = text.find(quote, at + 1);
    if (end == std::string_view::npos) fail("is malformed: a string does not end");
    std::string result(text.substr(at + 1, end - at - 1));
    at = end + 1;
    return result;
  }
  bool boolean() {
    skip_space();
    for (bool value : {true, false}) {
      const std::string_view word = value ? "True" : "False";
      if (text.substr(at, word.size()) == word) return at += word.size(), value;
    }
    fail("is malformed: 'fortran_order' is neither True nor False");
  }
  std::vector<int64_t> tuple() {
    std::vector<int64_t> result;
    expect('(');
    while (!accept(')')) {
      result.push_back(extent());
      if (!accept(',')) {
        expect(')');
        break;
      }
    }
    return result;
  }
  int64_t extent() {
    skip_space();
    const size_t begin = at;
    int64_t value = 0;
    for (; at < text.size() && text[at] >= '0' && text[at] <= '9'; ++at) {
      const int digit = text[at] - '0';
      if (value > (std::numeric_limits<int64_t>::max() - digit) / 10) fail("has an extent beyond 64 bits");
      value = value * 10 + digit;
    }
    if (at == begin) fail("is malformed: 'shape' holds something that is not a whole number");
    return value;
  }

  const std::string &path;
  std::string_view text;
  size_t at = 0;
};

std::optional<size_t> byte_count(std::span<const int64_t> shape, size_t element_bytes) {
  size_t count = element_bytes;
  for (int64_t extent : shape)
    if (__builtin_mul_overflow(count, size_t(extent), &count)) return std::nullopt;
  // An index must fit a signed 64-bit number of bytes.
  if (count > size_t(std::numeric_limits<int64_t>::max())) return std::nullopt;
  return count;
}

struct CloseFile {
  void operator()(std::FILE *file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, CloseFile>;

void read_exactly(std::FILE *file, void *data, size_t bytes, const std::string &path, std::string_view what) {
  if (bytes == 0) return;
  const size_t got = std::fread(data, 1, bytes, file);
  if (got == bytes) return;
  if (std::ferror(file)) throw NpyError(fmt::format("{}: cannot be read: {}", path, std::strerror(errno)));
  throw NpyError(
      fmt::format("{}: is truncated: {} of the {} bytes of its {} are there", path, got, bytes, what));
}

} // namespace

size_t npy_type_bytes(NpyType type) {
  return row_of(type).bytes;
}

std::string npy_type_name(NpyType type) {
  return fmt::format("{} ('{}')", row_of(type).name, row_of(type).descr);
}

std::string_view npy_type_keyword(NpyType type) {
  return row_of(type).name;
}

std::string shape_text(std::span<const int64_t> shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

NpyArray::NpyArray(NpyType type, std::vector<int64_t> extents) : type(type), shape(std::move(extents)) {
  const std::optional<size_t> count = byte_count(shape, npy_type_bytes(type));
  if (!count) throw NpyError(fmt::format("an array of shape {} is beyond 64 bits", shape_text(shape)));
  bytes.resize(*count);
}

NpyArray read_npy(const std::string &path) {
  File file(std::fopen(path.c_str(), "rb"));
  if (!file) throw NpyError(fmt::format("{}: cannot be opened: {}", path, std::strerror(errno)));

  std::array<unsigned char, 8> start{};
  read_exactly(file.get(), start.data(), start.size(), path, "first 8 header bytes");
  if (std::memcmp(start.data(), magic.data(), magic.size()) != 0)
    throw NpyError(fmt::format("{}: is not a .npy file: it does not begin with \\x93NUMPY", path));
  const int version = start[6];
  if (version < 1 || version > 3)
    throw NpyError(
        fmt::format("{}: has .npy version {}.{}; 1, 2 and 3 are understood", path, version, start[7]));

  // Version 1 has a 16-bit length, later ones 32 bits.
  uint32_t header_bytes = 0;
  read_exactly(file.get(), &header_bytes, version == 1 ? 2 : 4, path, "header length");
  if (header_bytes > max_header_bytes)
    throw NpyError(fmt::format("{}: claims a header of {} bytes; at most {} are accepted", path, header_bytes,
                               max_header_bytes));
  std::string text(header_bytes, '\0');
  read_exactly(file.get(), text.data(), text.size(), path, "header");
  Header header = HeaderParser(path, text).parse();

  NpyArray array;
  bool known = false;
  for (const TypeRow &row : type_rows) {
    if (header.descr != row.descr) continue;
    array.type = row.type;
    known = true;
  }
  if (!known)
    throw NpyError(
        fmt::format("{}: has element type '{}'; {} are understood", path, header.descr, all_types()));
  if (header.fortran_order && header.shape.size() > 1)
    throw NpyError(
        fmt::format("{}: is stored in Fortran order; C order is needed (numpy.ascontiguousarray)", path));

  const std::optional<size_t> bytes = byte_count(header.shape, npy_type_bytes(array.type));
  if (!bytes)
    throw NpyError(fmt::format("{}: its shape {} is beyond 64 bits", path, shape_text(header.shape)));
  // Compare with the file's size first: a damaged shape must not become a huge allocation.
  const long data_begin = std::ftell(file.get());
  if (data_begin < 0 || std::fseek(file.get(), 0, SEEK_END) != 0)
    throw NpyError(fmt::format("{}: cannot be measured: {}", path, std::strerror(errno)));
  const size_t there = size_t(std::ftell(file.get())) - size_t(data_begin);
  if (there < *bytes)
    throw NpyError(fmt::format("{}: is truncated: shape {} of {} needs {} bytes, {} are there", path,
                               shape_text(header.shape), npy_type_name(array.type), *bytes, there));
  if (there > *bytes)
    throw NpyError(fmt::format("{}: has {} bytes after the {} that shape {} of {} needs", path,
                               there - *bytes, *bytes, shape_text(header.shape), npy_type_name(array.type)));
  std::fseek(file.get(), data_begin, SEEK_SET);
  array.shape = std::move(header.shape);
  array.bytes.resize(*bytes);
  read_exactly(file.get(), array.bytes.data(), *bytes, path, "elements");
  return array;
}

NpyArray read_npy(const std::string &path, const std::string &argument, std::span<const NpyType> types,
                  size_t rank) {
  NpyArray array = read_npy(path);
  bool allowed = false;
  std::string names;
  for (NpyType type : types) {
    allowed |= array.type == type;
    names += (names.empty() ? "" : " or ") + npy_type_name(type);
  }
  if (!allowed)
    throw NpyError(
        fmt::format("{}: {} holds {}; {} is needed", argument, path, npy_type_name(array.type), names));
  if (array.shape.size() != rank)
    throw NpyError(fmt::format("{}: {} has shape {}; {} dimensions are needed", argument, path,
                               shape_text(array.shape), rank));
  return array;
}

void expect_shape(const NpyArray &array, const std::string &argument, std::span<const int64_t> shape) {
  if (array.shape.size() == shape.size() && std::equal(shape.begin(), shape.end(), array.shape.begin()))
    return;
  throw NpyError(
      fmt::format("{} has shape {}; {} is needed", argument, shape_text(array.shape), shape_text(shape)));
}

std::string npy_header(const NpyArray &array) {
  std::string shape;
  for (int64_t extent : array.shape)
    shape += fmt::format("{}, ", extent);
  std::string text = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}",
                                 row_of(array.type).descr, shape);
  // The elements start at a multiple of 64 bytes; the header ends with a newline.
  const size_t before = magic.size() + 2 + 2;
  text.append(63 - (before + text.size()) % 64, ' ');
  text.push_back('\n');
  if (text.size() > std::numeric_limits<uint16_t>::max())
    throw NpyError(fmt::format("an array of {} dimensions cannot be written", array.shape.size()));
  std::string header(magic);
  header += {char(1), char(0), char(text.size() & 0xff), char(text.size() >> 8)};
  return header + text;
}

void write_npy(OutputFile &file, const NpyArray &array) {
  const std::string header = npy_header(array);
  file.write({std::as_bytes(std::span(header)), array.bytes});
}

} // namespace sluice::tools
