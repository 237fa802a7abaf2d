//===- npy_test.cpp - .npy files: round trips, real files, and each kind of error -----------------------===//

#include "support/temporary_folder.h"
#include "tools/shared/npy.h"

#include <array>
#include <catch2/catch.hpp>

using namespace sluice::tools;
using sluice::test::TemporaryFolder;

namespace {

std::string data_file(const std::string &name) {
  return SLUICE_TEST_DATA "/jargon_lm/qkv/" + name;
}

std::string file_of(const std::string &header, const std::string &data, char version = 1) {
  std::string text = "\x93NUMPY";
  text += version;
  text += '\0';
  text += char(header.size() & 0xff);
  text += char(header.size() >> 8);
  if (version > 1) text += std::string(2, '\0');
  return text + header + data;
}

std::string error_of(const std::string &path) {
  try {
    read_npy(path);
  } catch (const NpyError &error) {
    return error.what();
  }
  return "no error";
}

} // namespace

TEST_CASE("an array written is the array read, for every type and rank") {
  TemporaryFolder folder;
  for (NpyType type : {NpyType::boolean, NpyType::i8, NpyType::u8, NpyType::i16, NpyType::u16, NpyType::i32,
                       NpyType::u32, NpyType::i64, NpyType::u64, NpyType::f16, NpyType::f32, NpyType::f64})
    for (const std::vector<int64_t> &shape : {std::vector<int64_t>{},
                                              {1},
                                              {7},
                                              {2, 3},
                                              {1, 5, 2, 4},
                                              {3, 0, 2},
                                              {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}}) {
      NpyArray array(type, shape);
      for (size_t i = 0; i < array.bytes.size(); ++i)
        array.bytes[i] = std::byte(i * 37 + 11);
      OutputFile file("--out", folder.path("a.npy"));
      write_npy(file, array);
      file.publish();
      const NpyArray back = read_npy(folder.path("a.npy"));
      CHECK(back.type == type);
      CHECK(back.shape == shape);
      CHECK(back.bytes == array.bytes);
      // The elements begin at a multiple of 64 bytes, as in NumPy's own files.
      CHECK((folder.read("a.npy").size() - array.bytes.size()) % 64 == 0);
    }
}

TEST_CASE("types are known by the format's names and by ours") {
  TemporaryFolder folder;
  const std::pair<const char *, const char *> names[] = {
      {"|b1", "bool"}, {"|i1", "i8"},  {"|u1", "u8"},  {"<i2", "i16"}, {"<u2", "u16"}, {"<f2", "f16"},
      {"<i4", "i32"},  {"<u4", "u32"}, {"<f4", "f32"}, {"<i8", "i64"}, {"<u8", "u64"}, {"<f8", "f64"}};
  for (const auto &[descr, keyword] : names) {
    const std::string header =
        std::string("{'descr': '") + descr + "', 'fortran_order': False, 'shape': (2,), }\n";
    const size_t bytes = size_t(descr[2] - '0');
    const NpyArray array = read_npy(folder.write("a.npy", file_of(header, std::string(2 * bytes, 'x'))));
    CHECK(npy_type_keyword(array.type) == keyword);
    CHECK(npy_type_bytes(array.type) == bytes);
  }
}

TEST_CASE("files that NumPy wrote are read") {
  const NpyArray q = read_npy(data_file("q.npy"));
  CHECK(q.type == NpyType::f16);
  CHECK(q.shape == std::vector<int64_t>{1, 256, 4, 128});
  CHECK(q.element_count() == 256 * 4 * 128);
  const NpyArray lse = read_npy(data_file("lse.npy"));
  CHECK(lse.type == NpyType::f32);
  CHECK(lse.shape == std::vector<int64_t>{1, 4, 256});
}

TEST_CASE("headers of versions 2 and 3 and keys in any order are read") {
  TemporaryFolder folder;
  for (char version : {1, 2, 3}) {
    const std::string path = folder.write(
        "a.npy", file_of("{\"shape\": (2,), 'fortran_order': False, 'descr':'<u2'}\n", "abcd", version));
    CHECK(read_npy(path).shape == std::vector<int64_t>{2});
  }
  // One dimension is the same in both orders.
  folder.write("f.npy", file_of("{'descr': '<u2', 'fortran_order': True, 'shape': (2,), }\n", "abcd"));
  CHECK(read_npy(folder.path("f.npy")).shape == std::vector<int64_t>{2});
}

TEST_CASE("each wrong file is refused with its own reason") {
  TemporaryFolder folder;
  const std::string good = "{'descr': '<f2', 'fortran_order': False, 'shape': (2, 3), }\n";
  auto error = [&](const std::string &content) { return error_of(folder.write("x.npy", content)); };
  using Catch::Contains;

  CHECK_THAT(error_of(folder.path("none.npy")), Contains("none.npy: cannot be opened: No such file"));
  CHECK_THAT(error_of(folder.path("")), Contains("cannot be read: Is a directory"));
  CHECK_THAT(error(""), Contains("is truncated: 0 of the 8 bytes"));
  CHECK_THAT(error("PK\x03\x04 a zip archive"), Contains("is not a .npy file"));
  CHECK_THAT(error(file_of(good, std::string(12, 'x'), 9)), Contains("has .npy version 9.0"));
  CHECK_THAT(error(file_of(good, "").substr(0, 30)),
             Contains("is truncated: 20 of the 60 bytes of its header"));
  CHECK_THAT(error(file_of(good, std::string(11, 'x'))), Contains("needs 12 bytes, 11 are there"));
  CHECK_THAT(error(file_of(good, std::string(14, 'x'))), Contains("has 2 bytes after the 12"));
  CHECK_THAT(error(file_of("{'descr': '>f2', 'fortran_order': False, 'shape': (1,), }", "xx")),
             Contains("has element type '>f2'; '|b1', '|i1', '|u1', '<i2', '<u2',") &&
                 Contains("'<f8' are understood"));
  CHECK_THAT(
      error(file_of("{'descr': '<f2', 'fortran_order': True, 'shape': (2, 3), }", std::string(12, 'x'))),
      Contains("Fortran order"));
  CHECK_THAT(error(file_of("{'descr': [('a', '<f2')], 'fortran_order': False, 'shape': (1,), }", "xx")),
             Contains("a string expected"));
  CHECK_THAT(error(file_of("{'descr': '<f2', 'fortran_order': Maybe, 'shape': (1,), }", "xx")),
             Contains("neither True nor False"));
  CHECK_THAT(error(file_of("{'descr': '<f2', 'fortran_order': False, 'shape': (-1,), }", "xx")),
             Contains("not a whole number"));
  CHECK_THAT(error(file_of("{'descr': '<f2', 'fortran_order': False, }", "xx")), Contains("has no 'shape'"));
  CHECK_THAT(error(file_of("{'fortran_order': False, 'shape': (1,), }", "xx")), Contains("has no 'descr'"));
  CHECK_THAT(error(file_of("{'descr': '<f2', 'shape': (1,), }", "xx")), Contains("has no 'fortran_order'"));
  CHECK_THAT(error(file_of("{'descr': '<f2', 'colour': 'red', }", "xx")), Contains("unknown key 'colour'"));
  CHECK_THAT(error(file_of("{'descr': '<f2", "")), Contains("a string does not end"));
  CHECK_THAT(error(file_of("{'descr': '<f2', 'fortran_order': False, 'shape': (1,), } + {}\n", "xx")),
             Contains("something follows the closing '}' at byte 58"));
  CHECK_THAT(
      error(file_of("{'descr': '<f2', 'fortran_order': False, 'shape': (9223372036854775808,), }", "xx")),
      Contains("beyond 64 bits"));
  CHECK_THAT(
      error(file_of("{'descr': '<f2', 'fortran_order': False, 'shape': (4294967296, 4294967296), }", "xx")),
      Contains("beyond 64 bits"));
  // A shape far beyond the file is an error about the file, not an allocation.
  CHECK_THAT(error(file_of("{'descr': '<f2', 'fortran_order': False, 'shape': (1000000000000,), }", "xx")),
             Contains("2 are there"));
}

TEST_CASE("types, ranks and shapes that do not fit name the argument") {
  using Catch::Contains;
  const std::array types = {NpyType::f16};
  CHECK_THROWS_WITH(read_npy(data_file("lse.npy"), "--q", types, 4),
                    Contains("--q: ") && Contains("holds f32 ('<f4'); f16 ('<f2') is needed"));
  CHECK_THROWS_WITH(read_npy(data_file("q.npy"), "--q", types, 3),
                    Contains("--q: ") && Contains("has shape [1, 256, 4, 128]; 3 dimensions are needed"));
  const NpyArray q = read_npy(data_file("q.npy"), "--q", types, 4);
  CHECK_NOTHROW(expect_shape(q, "--q", std::array<int64_t, 4>{1, 256, 4, 128}));
  CHECK_THROWS_WITH(expect_shape(q, "--q", std::array<int64_t, 4>{1, 256, 2, 128}),
                    "--q has shape [1, 256, 4, 128]; [1, 256, 2, 128] is needed");
  CHECK_THROWS_AS(NpyArray(NpyType::f64, {int64_t(1) << 62, 4}), NpyError);
}
